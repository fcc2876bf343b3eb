//! Requests for pools beside sysctl settings and the running command line: sysfs.conf, tmpfiles, profiles of tuned, the next boot.

use host::Source;
use model::{Bytes, Unread};

use super::files::{has_configuration, said};
use super::{Boot, BootLine, PoolRequest, Setting, tuned, written};

/// Where the files of nodes are.
const OF_NODES: &str = "system/node/node";

/// One place that requests pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolLine {
    /// `FILE:LINE`.
    pub place: String,
    /// Page size; `None` is the default size.
    pub size: Option<Bytes>,
    /// Pages on all nodes together.
    pub pages: u64,
    /// Does it name nodes?
    pub is_by_node: bool,
}

/// Those of sysfs.conf and tmpfiles, then those of tuned, then those of the next boot; the first one for a size holds.
pub(super) fn read(
    source: &Source,
    next: &Result<Option<BootLine>, Unread>,
    refused: &mut Vec<Unread>,
) -> Result<Vec<PoolLine>, Unread> {
    has_configuration(source)?;
    let mut lines = summed(&written::sysfs_conf(source)?);
    lines.extend(summed(&written::tmpfiles(source)?));
    for (path, text) in tuned::profiles(source)? {
        lines.extend(in_profile(&path, &text, refused));
    }
    let next = next.as_ref().map_err(Clone::clone)?;
    lines.extend(next.iter().flat_map(|next| at_boot(&next.place, &next.boot)));
    Ok(lines)
}

/// `.../hugepages/hugepages-1048576kB/nr_hugepages` and its number.
fn of_file(setting: &Setting) -> Option<PoolLine> {
    let (_, rest) = setting.name.split_once("hugepages-")?;
    let kib = rest.strip_suffix("kB/nr_hugepages")?;
    Some(PoolLine {
        place: setting.place.clone(),
        size: Some(Bytes(kib.parse::<u64>().ok()?.checked_mul(1 << 10)?)),
        pages: setting.value.parse().ok()?,
        is_by_node: setting.name.contains(OF_NODES),
    })
}

/// The lines of one size, which are those of several nodes, as one.
fn summed(all: &[Setting]) -> Vec<PoolLine> {
    let mut sums: Vec<PoolLine> = Vec::new();
    for line in all.iter().filter_map(of_file) {
        match sums.iter_mut().find(|sum| sum.size == line.size) {
            Some(sum) => {
                sum.pages = sum.pages.saturating_add(line.pages);
                sum.is_by_node |= line.is_by_node;
            }
            None => sums.push(line),
        }
    }
    sums
}

/// `[sysfs]` at run time, `[bootloader] cmdline...=` at the next boot. `[sysctl]` is one of the sysctl settings.
fn in_profile(path: &str, text: &str, refused: &mut Vec<Unread>) -> Vec<PoolLine> {
    let mut section = "";
    let (mut lines, mut by_file) = (Vec::new(), Vec::new());
    for line in said(path, text, tuned::COMMENT) {
        if line.text.starts_with('[') {
            section = line.text;
            continue;
        }
        let Some((key, value)) = line.pair() else { continue };
        match section {
            "[bootloader]" if key.starts_with("cmdline") => {
                let words = value.trim_matches(['"', '\'']).trim_start_matches(['+', '=']);
                lines.extend(at_boot(&line.place(), &Boot::parse(words, None)));
            }
            "[sysfs]" => by_file.extend(tuned::value(value).map(|value| line.setting(key, value))),
            _ => {}
        }
    }
    refused.extend(by_file.iter().filter_map(written::refused));
    lines.extend(summed(&by_file));
    lines
}

fn at_boot(place: &str, boot: &Boot) -> Vec<PoolLine> {
    let lines = boot.pools.iter().map(|pool| PoolLine {
        place: place.to_owned(),
        size: pool.size.or(boot.default_size),
        pages: pool.pages.total(),
        is_by_node: matches!(pool.pages, PoolRequest::ByNode(_)),
    });
    lines.collect()
}

/// Is it the file of a pool on one node, in pages of that size?
pub fn is_of_node(setting: &Setting, size: Bytes) -> bool {
    of_file(setting).is_some_and(|line| line.is_by_node && line.size == Some(size))
}

/// What these places request of a size, where `default` is the kernel's default size.
pub fn requested(lines: &[PoolLine], size: Bytes, default: Option<Bytes>) -> Option<&PoolLine> {
    lines.iter().find(|line| line.size.or(default) == Some(size))
}
