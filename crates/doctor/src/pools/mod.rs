//! The hugetlb pools.

mod asked;
mod boot;
mod cached;
mod files;
mod fork;
mod held;
mod malloc;
mod meant;
mod meminfo;
mod memory;
mod missing;
mod path;
mod scripts;
mod size;
mod spare;
mod used;
mod usual;
mod writers;

#[cfg(test)]
mod given_tests;
#[cfg(test)]
mod tests;

use programs::config::given::FileKind;

pub(crate) use path::{is_mounted, mount_there, mounted_sizes};

pub(super) use asked::{places, request};
pub(super) use malloc::uses_malloc;
pub(super) use memory::{is_starved, starves};
pub(super) use scripts::{is_written, is_written_by_node};
pub(super) use usual::is_miscounted;

use super::rule::Checks;
use super::topics::Topic;

/// The rule that finds no memory left beside the pools.
pub(super) const STARVES: &str = "A03";

pub(super) const TOPIC: Topic = Topic {
    words: include_str!("rules.toml"),
    checks: &[
        Checks::of_machine("A01", asked::pool_short),
        Checks::of_machine("A02", meminfo::pool_idle),
        Checks::of_machine(STARVES, memory::pool_starves),
        Checks::of_both("A04", used::consumer_bigger, &[FileKind::Oracle], files::instances),
        Checks::of_both("A05", meminfo::wrong_default, files::BOTH, files::wrong_default),
        Checks::of_machine("A06", size::all_reserved),
        Checks::of_machine("A07", size::surplus),
        Checks::of_both(
            "A08",
            size::overcommit_only,
            &[FileKind::Sysctl],
            files::overcommit_only,
        ),
        Checks::of_both("A12", writers::pool_clobbered, files::BOTH, files::several_writers),
        Checks::of_both("A13", boot::unsupported, &[FileKind::Cmdline], files::unsupported),
        Checks::of_both("A14", boot::order, &[FileKind::Cmdline], files::order),
        Checks::of_machine("A15", boot::no_1g),
        Checks::of_machine("A18", path::no_mount),
        Checks::of_machine("A20", path::orphans),
        Checks::of_machine("A21", memory::whole_descriptors),
        Checks::of_machine("A23", memory::page_tables),
        Checks::of_machine("A24", used::program_beside),
        Checks::of_machine("A25", fork::forks),
    ],
};
