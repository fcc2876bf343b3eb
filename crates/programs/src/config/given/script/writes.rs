//! What a script writes to files of the kernel, and what is left of it in the end.

use std::collections::BTreeMap;

use super::Script;
use crate::config::{PoolWrite, Setting};

/// A value that is written to a file of the kernel.
pub(super) struct Write {
    pub(super) setting: Setting,
    pub(super) is_sure: bool,
    /// Programs that were started before.
    pub(super) after: usize,
}

/// All writes to one file.
struct Seen<'a> {
    value: &'a str,
    is_alike: bool,
    /// The last one that is sure.
    last: usize,
}

/// Writes of which it is not known whether they run count where all others of their file are alike.
pub(super) fn settle(writes: &[Write], mut script: Script) -> Script {
    let seen = seen(writes);
    for (at, write) in writes.iter().enumerate() {
        let (setting, seen) = (&write.setting, &seen[write.setting.name.as_str()]);
        if !write.is_sure && !seen.is_alike {
            if setting.name.contains("hugepage") {
                let why = "is not judged: whether it runs is not known";
                let Setting { place, name, value } = setting;
                script.unresolved.push(format!("{place}: `{value}` for {name} {why}"));
            }
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

fn seen(writes: &[Write]) -> BTreeMap<&str, Seen<'_>> {
    let mut all = BTreeMap::new();
    for (at, Write { setting, is_sure, .. }) in writes.iter().enumerate() {
        let own = all.entry(setting.name.as_str()).or_insert(Seen {
            value: &setting.value,
            is_alike: true,
            last: 0,
        });
        own.is_alike &= own.value == setting.value;
        if *is_sure {
            own.last = at;
        }
    }
    all
}
