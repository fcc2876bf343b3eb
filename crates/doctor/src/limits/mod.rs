//! Permissions and limits.

mod files;
mod guests;
mod memlock;
mod partly;
mod segments;
mod shm;

#[cfg(test)]
mod tests;

use programs::config::given::FileKind;

pub(crate) use memlock::{bars_segments, raised_for};
pub(crate) use shm::barred;

use super::rule::Checks;
use super::topics::Topic;

pub(super) const TOPIC: Topic = Topic {
    words: include_str!("rules.toml"),
    checks: &[
        Checks::of_machine("B01", shm::eperm),
        Checks::of_both(
            "B02",
            memlock::too_low,
            &[
                FileKind::Compose,
                FileKind::Pod,
                FileKind::Unit,
                FileKind::Libvirt,
                FileKind::Oracle,
            ],
            files::too_low,
        ),
        Checks::of_both(
            "B03",
            memlock::unlike_limits_conf,
            &[FileKind::Limits],
            files::not_for_services,
        ),
        Checks::of_machine("B04", memlock::changed_after_start),
        Checks::of_both("B05", shm::too_small, &[FileKind::Sysctl], segments::too_small),
        Checks::of_machine("B06", shm::group_invalid),
    ],
};
