//! Requests for pools beside sysctl settings and the running command line: sysfs.conf, tmpfiles, profiles of tuned, the next boot.

use host::Source;
use model::{Bytes, Unread};

use super::files::{Line, content, has_configuration, said};
use super::{Boot, BootLine, PoolRequest, Setting, policy, sysctl_files, tuned, written};

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

/// Those of sysfs.conf and tmpfiles, then those of units and of rc.local, then those of tuned, then those of the next boot; the first one for a size holds.
pub(super) fn read(
    source: &Source,
    next: &Result<Option<BootLine>, Unread>,
    refused: &mut Vec<Unread>,
) -> Result<Vec<PoolLine>, Unread> {
    has_configuration(source)?;
    let mut lines = summed(&written::sysfs_conf(source)?);
    lines.extend(summed(&written::tmpfiles(source)?));
    let mut rc_local = None;
    for path in RC_LOCAL {
        rc_local = rc_local.or(content(source, path)?.map(|text| (path.to_owned(), text)));
    }
    for (path, text) in policy::unit_files(source)?.into_iter().chain(rc_local) {
        let own: Vec<Setting> = said(&path, &text, &['#', ';']).flat_map(|line| echoed(&line)).collect();
        lines.extend(summed(&own));
    }
    for (path, text) in tuned::profiles(source)? {
        lines.extend(in_profile(&path, &text, refused));
    }
    let next = next.as_ref().map_err(Clone::clone)?;
    lines.extend(next.iter().flat_map(|next| at_boot(&next.place, &next.boot)));
    Ok(lines)
}

/// On Red Hat's the first is a link to the second.
const RC_LOCAL: [&str; 2] = ["/etc/rc.local", "/etc/rc.d/rc.local"];
/// The pool of the default size.
const DEFAULT_POOL: &str = "/proc/sys/vm/nr_hugepages";

/// What commands write by `echo NUMBER > FILE`, or by `tee`.
fn echoed(line: &Line<'_>) -> Vec<Setting> {
    let quotes = ['"', '\''];
    let written = line.text.split("echo ").skip(1).filter_map(|rest| {
        let (value, rest) = rest.split_once(['>', '|'])?;
        let rest = rest.trim_start_matches(['>', ' ']);
        let file = rest.strip_prefix("tee ").unwrap_or(rest).trim_start();
        let file = file.split([' ', ';', '&', quotes[0], quotes[1]]).next()?;
        (file.starts_with("/sys/") || file == DEFAULT_POOL)
            .then(|| line.setting(file, value.trim().trim_matches(quotes)))
    });
    written.collect()
}

/// Memory that the allocator of Nitro enclaves takes whenever it starts, in pages of any size.
pub(super) fn enclaves(source: &Source) -> Option<Setting> {
    let path = "/etc/nitro_enclaves/allocator.yaml";
    let text = content(source, path).ok()??;
    let mut lines = said(path, &text, &['#']);
    lines.find_map(|line| {
        let (name, value) = line.text.trim_start_matches("- ").split_once(':')?;
        (name.trim() == "memory_mib").then(|| line.setting(name.trim(), value.trim()))
    })
}

/// `.../hugepages/hugepages-1048576kB/nr_hugepages` and its number.
fn of_file(setting: &Setting) -> Option<PoolLine> {
    let size = match setting.name == DEFAULT_POOL {
        true => None,
        false => {
            let (_, rest) = setting.name.split_once("hugepages-")?;
            let kib = rest.strip_suffix("kB/nr_hugepages")?;
            Some(Bytes(kib.parse::<u64>().ok()?.checked_mul(1 << 10)?))
        }
    };
    Some(PoolLine {
        place: setting.place.clone(),
        size,
        pages: setting.value.parse().ok()?,
        is_by_node: setting.name.contains(OF_NODES),
    })
}

/// A write of a pool's count by a script: it sets the count, and adds nothing to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolWrite {
    /// What it comes to, and where.
    pub line: PoolLine,
    /// The node of which alone it is the count.
    pub node: Option<u32>,
    /// Programs that the script started before.
    pub after: usize,
}

impl PoolWrite {
    /// A value for vm.nr_hugepages, or for a pool's file.
    pub(super) fn of(setting: &Setting) -> Option<Self> {
        let of_default = |setting: &Setting| {
            Some(PoolLine {
                place: setting.place.clone(),
                size: None,
                pages: setting.value.parse().ok()?,
                is_by_node: false,
            })
        };
        let line = match setting.name == sysctl_files::POOL {
            true => of_default(setting)?,
            false => of_file(setting)?,
        };
        let node = match setting.name.split_once("/node/node") {
            Some((_, rest)) => Some(rest.split_once('/')?.0.parse().ok()?),
            None => None,
        };
        let after = 0;
        Some(Self { line, node, after })
    }

    /// The pages of each size after all writes: the last one for the whole pool, or those of nodes that follow it.
    pub fn left(writes: &[Self], default: Bytes) -> Vec<PoolLine> {
        let mut pools: Vec<(Bytes, Vec<&Self>)> = Vec::new();
        for write in writes {
            let size = write.line.size.unwrap_or(default);
            let at = pools.iter().position(|(known, _)| *known == size).unwrap_or_else(|| {
                pools.push((size, Vec::new()));
                pools.len() - 1
            });
            let held = &mut pools[at].1;
            held.retain(|before| write.node.is_some() && before.node.is_some() && before.node != write.node);
            held.push(write);
        }
        let sum = |(size, held): (Bytes, Vec<&Self>)| {
            let pages = held.iter().map(|write| write.line.pages);
            Some(PoolLine {
                place: held.last()?.line.place.clone(),
                size: Some(size),
                pages: pages.fold(0, u64::saturating_add),
                is_by_node: held.iter().any(|write| write.node.is_some()),
            })
        };
        pools.into_iter().filter_map(sum).collect()
    }
}

/// The lines of one size, which are those of several nodes, as one. Of several writes to a file the last one holds.
fn summed(all: &[Setting]) -> Vec<PoolLine> {
    let mut sums: Vec<PoolLine> = Vec::new();
    let holds = |(at, line): &(usize, &Setting)| all[at + 1..].iter().all(|later| later.name != line.name);
    let lines = all.iter().enumerate().filter(holds);
    for line in lines.filter_map(|(_, line)| of_file(line)) {
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
