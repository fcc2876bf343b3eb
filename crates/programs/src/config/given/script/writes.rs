//! What a script writes to files of the kernel, and what is left of it in the end.

use std::collections::BTreeMap;

use super::Script;
use super::written::Unresolved;
use crate::config::{PoolWrite, Setting};

/// A value that is written to a file of the kernel.
pub(super) struct Write {
    pub(super) setting: Setting,
    pub(super) is_sure: bool,
    /// Is it written to the kernel? What is written to files of sysctl.d is not yet.
    pub(super) is_at_once: bool,
    /// Programs that were started before.
    pub(super) after: usize,
}

impl Write {
    /// That it may run, where it is about pages.
    fn doubt(&self) -> Option<Unresolved> {
        let Setting { place, name, value } = &self.setting;
        let why = || format!("`{value}` for {name} is not judged: whether it runs is not known");
        let is_ours = name.contains("hugepage");
        is_ours.then(|| Unresolved::new(place, why(), Some(name.clone())))
    }
}

/// All writes to one file.
struct Seen<'a> {
    value: &'a str,
    is_alike: bool,
    /// The last one that is sure.
    last: usize,
    /// The last one of all.
    end: usize,
}

/// Writes of which it is not known whether they run count where all others of their file are alike.
pub(super) fn settle(writes: &[Write], mut script: Script) -> Script {
    let seen = seen(writes);
    for (at, write) in writes.iter().enumerate() {
        let (setting, seen) = (&write.setting, &seen[write.setting.name.as_str()]);
        if !write.is_sure && !seen.is_alike {
            script.unresolved.extend(write.doubt());
            continue;
        }
        let after = write.after;
        let of_pool = PoolWrite::of(setting);
        script.pools.extend(of_pool.map(|write| PoolWrite { after, ..write }));
        match setting.name.starts_with('/') {
            _ if seen.last > at => {}
            true => script.sysfs.push(setting.clone()),
            false => script.sysctl.push(setting.clone()),
        }
    }
    script
}

/// The last value for each file, where it is known, and what may be written after the last one that is sure.
pub(super) fn left(writes: &[Write]) -> (Vec<Setting>, Vec<Unresolved>) {
    let seen = seen(writes);
    let (mut known, mut doubts) = (Vec::new(), Vec::new());
    for (at, write) in writes.iter().enumerate() {
        let seen = &seen[write.setting.name.as_str()];
        if at < seen.last {
            continue;
        }
        match seen.is_alike || seen.last == seen.end {
            true => known.push(write.setting.clone()),
            false if write.is_sure => {}
            false => doubts.extend(write.doubt()),
        }
    }
    (known, doubts)
}

fn seen(writes: &[Write]) -> BTreeMap<&str, Seen<'_>> {
    let mut all = BTreeMap::new();
    for (at, Write { setting, is_sure, .. }) in writes.iter().enumerate() {
        let own = all.entry(setting.name.as_str()).or_insert(Seen {
            value: &setting.value,
            is_alike: true,
            last: 0,
            end: at,
        });
        own.end = at;
        own.is_alike &= own.value == setting.value;
        if *is_sure {
            own.last = at;
        }
    }
    all
}
