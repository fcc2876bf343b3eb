//! What a script writes to files of the kernel, and what is left of it in the end.

use super::Script;
use crate::config::{PoolWrite, Setting};

/// A value that is written to a file of the kernel.
pub(super) struct Write {
    pub(super) setting: Setting,
    pub(super) is_sure: bool,
    /// Programs that were started before.
    pub(super) after: usize,
}

/// Writes of which it is not known whether they run count where all others of their file are alike.
pub(super) fn settle(writes: &[Write], mut script: Script) -> Script {
    for (
        at,
        Write {
            setting,
            is_sure,
            after,
        },
    ) in writes.iter().enumerate()
    {
        let is_other = |write: &Write| write.setting.name == setting.name && write.setting.value != setting.value;
        if !is_sure && writes.iter().any(is_other) {
            if setting.name.contains("hugepage") {
                let why = "is not judged: whether it runs is not known";
                let Setting { place, name, value } = setting;
                script.unresolved.push(format!("{place}: `{value}` for {name} {why}"));
            }
            continue;
        }
        let write = PoolWrite::of(setting);
        script
            .pools
            .extend(write.map(|write| PoolWrite { after: *after, ..write }));
        let is_last = writes[at + 1..]
            .iter()
            .all(|write| !write.is_sure || write.setting.name != setting.name);
        match setting.name.starts_with('/') {
            _ if !is_last => {}
            true => script.sysfs.push(setting.clone()),
            false => script.sysctl.push(setting.clone()),
        }
    }
    script
}
