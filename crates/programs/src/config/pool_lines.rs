//! Requests for pools beside sysctl files and the boot command line: profiles of tuned, and sysfs.conf.

use host::Source;
use model::{Bytes, Unread};

use super::files::{Line, has_configuration, listed, said, taken};
use super::{Boot, tuned};

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

/// Those of sysfs.conf, then those of tuned; the first one for a size holds.
pub(super) fn read(source: &Source) -> Result<Vec<PoolLine>, Unread> {
    has_configuration(source)?;
    let mut lines = sysfs_conf(source)?;
    for (path, text) in tuned::profiles(source)? {
        lines.extend(in_profile(&path, &text));
    }
    Ok(lines)
}

/// `kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages = 4`; those of several nodes add up.
fn sysfs_conf(source: &Source) -> Result<Vec<PoolLine>, Unread> {
    let drop_ins = listed(source, "/etc/sysfs.d")?;
    let drop_ins = drop_ins.into_iter().map(|name| format!("/etc/sysfs.d/{name}"));
    let paths = ["/etc/sysfs.conf".to_owned()].into_iter().chain(drop_ins);
    let all = taken(source, paths, &['#'], |line| {
        let (file, pages) = line.pair()?;
        let (_, rest) = file.split_once("hugepages-")?;
        let kib = rest.strip_suffix("kB/nr_hugepages")?;
        Some(PoolLine {
            place: line.place(),
            size: Some(Bytes(kib.parse::<u64>().ok()?.checked_mul(1 << 10)?)),
            pages: pages.parse().ok()?,
        })
    })?;
    let mut sums: Vec<PoolLine> = Vec::new();
    for line in all {
        match sums.iter_mut().find(|sum| sum.size == line.size) {
            Some(sum) => sum.pages = sum.pages.saturating_add(line.pages),
            None => sums.push(line),
        }
    }
    Ok(sums)
}

/// `[sysctl] vm.nr_hugepages=` at run time, `[bootloader] cmdline...=` at the next boot.
fn in_profile(path: &str, text: &str) -> Vec<PoolLine> {
    let mut section = "";
    let mut lines = Vec::new();
    for line in said(path, text, tuned::COMMENT) {
        if line.text.starts_with('[') {
            section = line.text;
        } else if let Some((key, value)) = line.pair() {
            match section {
                "[sysctl]" if key == "vm.nr_hugepages" => lines.extend(of_sysctl(&line, value)),
                "[bootloader]" if key.starts_with("cmdline") => lines.extend(of_boot(&line, value)),
                _ => {}
            }
        }
    }
    lines
}

fn of_sysctl(line: &Line<'_>, value: &str) -> Option<PoolLine> {
    Some(PoolLine {
        place: line.place(),
        size: None,
        pages: value.trim_matches('"').parse().ok()?,
    })
}

fn of_boot(line: &Line<'_>, value: &str) -> Vec<PoolLine> {
    let boot = Boot::parse(value.trim_start_matches(['+', '=']), None);
    let lines = boot.pools.iter().map(|pool| PoolLine {
        place: line.place(),
        size: pool.size,
        pages: pool.pages.total(),
    });
    lines.collect()
}

/// What these places request of a size, where `default` is the kernel's default size.
pub fn requested(lines: &[PoolLine], size: Bytes, default: Option<Bytes>) -> Option<&PoolLine> {
    lines.iter().find(|line| line.size.or(default) == Some(size))
}
