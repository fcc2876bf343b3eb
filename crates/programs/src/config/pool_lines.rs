//! Requests for pools beside sysctl files and the running command line: sysfs.conf, tmpfiles, profiles of tuned, the next boot.

use host::Source;
use model::{Bytes, Unread};

use super::files::{Line, has_configuration, listed, said, taken};
use super::{Boot, BootLine, kernel_number, policy, sysctl_files, tuned};

/// One place that requests pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolLine {
    /// `FILE:LINE`.
    pub place: String,
    /// Page size; `None` is the default size.
    pub size: Option<Bytes>,
    /// Pages on all nodes together.
    pub pages: u64,
}

/// Those of sysfs.conf and tmpfiles, then those of tuned, then those of the next boot; the first one for a size holds.
pub(super) fn read(
    source: &Source,
    next: &Result<Option<BootLine>, Unread>,
    refused: &mut Vec<Unread>,
) -> Result<Vec<PoolLine>, Unread> {
    has_configuration(source)?;
    let mut lines = sysfs_conf(source)?;
    lines.extend(summed(policy::tmpfiles(source, written)?));
    for (path, text) in tuned::profiles(source)? {
        lines.extend(in_profile(&path, &text, refused));
    }
    let next = next.as_ref().map_err(Clone::clone)?;
    lines.extend(next.iter().flat_map(|next| at_boot(&next.place, &next.boot)));
    Ok(lines)
}

/// Lines of sysfsutils; those of several nodes add up.
fn sysfs_conf(source: &Source) -> Result<Vec<PoolLine>, Unread> {
    let drop_ins = listed(source, "/etc/sysfs.d")?;
    let drop_ins = drop_ins.into_iter().map(|name| format!("/etc/sysfs.d/{name}"));
    let paths = ["/etc/sysfs.conf".to_owned()].into_iter().chain(drop_ins);
    Ok(summed(taken(source, paths, &['#'], of_sysfs)?))
}

/// `.../hugepages/hugepages-1048576kB/nr_hugepages = 4`
fn of_sysfs(line: &Line<'_>) -> Option<PoolLine> {
    let (file, pages) = line.pair()?;
    written(line, file, pages)
}

/// A file of the kernel that gets a number of pages.
fn written(line: &Line<'_>, file: &str, pages: &str) -> Option<PoolLine> {
    let (_, rest) = file.split_once("hugepages-")?;
    let kib = rest.strip_suffix("kB/nr_hugepages")?;
    Some(PoolLine {
        place: line.place(),
        size: Some(Bytes(kib.parse::<u64>().ok()?.checked_mul(1 << 10)?)),
        pages: pages.parse().ok()?,
    })
}

/// The lines of one size, which are those of several nodes, as one.
fn summed(all: Vec<PoolLine>) -> Vec<PoolLine> {
    let mut sums: Vec<PoolLine> = Vec::new();
    for line in all {
        match sums.iter_mut().find(|sum| sum.size == line.size) {
            Some(sum) => sum.pages = sum.pages.saturating_add(line.pages),
            None => sums.push(line),
        }
    }
    sums
}

/// `[sysctl] vm.nr_hugepages=` at run time, `[bootloader] cmdline...=` at the next boot.
fn in_profile(path: &str, text: &str, refused: &mut Vec<Unread>) -> Vec<PoolLine> {
    let mut section = "";
    let (mut lines, mut by_file) = (Vec::new(), Vec::new());
    for line in said(path, text, tuned::COMMENT) {
        if line.text.starts_with('[') {
            section = line.text;
            continue;
        }
        let Some((key, value)) = line.pair() else { continue };
        let value = value.trim_matches(['"', '\'']);
        match section {
            // A value with a variable of tuned is worked out by tuned alone.
            "[sysctl]" if key == "vm.nr_hugepages" && !value.contains('$') => match kernel_number::taken(value) {
                Ok(pages) => lines.push(PoolLine {
                    place: line.place(),
                    size: None,
                    pages,
                }),
                Err(()) => refused.extend(sysctl_files::refused(&line.setting(key, value))),
            },
            "[bootloader]" if key.starts_with("cmdline") => {
                lines.extend(at_boot(
                    &line.place(),
                    &Boot::parse(value.trim_start_matches(['+', '=']), None),
                ));
            }
            "[sysfs]" => by_file.extend(of_sysfs(&line)),
            _ => {}
        }
    }
    lines.extend(summed(by_file));
    lines
}

fn at_boot(place: &str, boot: &Boot) -> Vec<PoolLine> {
    let lines = boot.pools.iter().map(|pool| PoolLine {
        place: place.to_owned(),
        size: pool.size.or(boot.default_size),
        pages: pool.pages.total(),
    });
    lines.collect()
}

/// What these places request of a size, where `default` is the kernel's default size.
pub fn requested(lines: &[PoolLine], size: Bytes, default: Option<Bytes>) -> Option<&PoolLine> {
    lines.iter().find(|line| line.size.or(default) == Some(size))
}
