//! THP, and how programs and libraries ask for it.

mod advice;
mod databases;
mod dormant;
mod drift;
mod effort;
mod eligible;
mod fallback;
mod files;
mod glibc;
mod in_vain;
mod options;
mod refusing;
mod shared;
mod sizes;
mod stalls;
mod tmpfs;
mod told;
mod vendors;

#[cfg(test)]
mod tests;

use programs::config::given::FileKind;

use crate::facts::{ASKERS, STARTERS};

pub(super) use glibc::{asked_by, asks_in_vain};
pub(super) use in_vain::{no_such_size, unread_conf};
pub(super) use options::is_missed;

use super::rule::Checks;
use super::topics::Topic;

pub(super) const TOPIC: Topic = Topic {
    words: include_str!("rules.toml"),
    checks: &[
        Checks::of_both("D01", advice::never_but_requested, STARTERS, files::never_but_requested),
        Checks::of_machine("D02", databases::redis),
        Checks::of_machine("D03", databases::mongo),
        Checks::of_machine("D05", stalls::stalls),
        Checks::of_machine("D06", effort::bloat),
        Checks::of_machine("D08", fallback::fallback_ratio),
        Checks::of_machine("D09", fallback::fragmented),
        Checks::of_machine("D10", eligible::not_eligible),
        Checks::of_machine("D11", advice::inherited),
        Checks::of_both("D12", advice::except_advised, &[FileKind::Unit], files::except_advised),
        Checks::of_machine("D14", glibc::auto_thp),
        Checks::of_both("D15", glibc::empty_pool, ASKERS, files::empty_pool),
        Checks::of_both("D16", glibc::mid_size_gap, STARTERS, files::mid_size_gap),
        Checks::of_both("D18", in_vain::in_vain, STARTERS, files::morecore),
        Checks::of_machine("D21", shared::of_shared_memory),
        Checks::of_both(
            "D22",
            drift::conflict,
            &[FileKind::Cmdline, FileKind::Unit],
            files::conflict,
        ),
        Checks::of_machine("D23", drift::drift),
        Checks::of_machine("D24", drift::newer),
        Checks::of_machine("D25", eligible::too_slow),
        Checks::of_machine("D27", shared::granule),
        Checks::of_machine("D28", tmpfs::option),
        Checks::of_both("D29", vendors::vendors, refusing::FILES, refusing::refusing),
        Checks::of_machine("D32", eligible::text_not_alignable),
        Checks::of_machine("D33", effort::neither_none_nor_all),
    ],
};
