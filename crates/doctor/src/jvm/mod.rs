//! Java virtual machines.

mod explicit;
mod files;
mod options;
mod transparent;

#[cfg(test)]
mod tests;

pub(super) use explicit::gives_up;

use model::Bytes;
use programs::size::jvm;
use programs::{Jvm, JvmKind};

use super::facts::pages_for;
use super::rule::Checks;
use super::topics::Topic;

pub(super) const TOPIC: Topic = Topic {
    words: include_str!("rules.toml"),
    checks: &[
        Checks::of_both("E01", explicit::fallback, files::OF, files::too_small),
        Checks::of_machine("E02", explicit::step_down),
        Checks::of_both("E03", options::sizes, files::OF, files::sizes),
        Checks::of_both("E05", transparent::disabled, files::OF, files::policy),
        Checks::of_machine("E06", transparent::zgc),
        Checks::of_machine("E07", transparent::stacks),
        Checks::of_machine("E08", transparent::pretouch),
        Checks::of_both("E13", options::old, files::OF, files::old_options),
    ],
};

/// Pages that such a JVM takes from the pool of its heap, as `hugewise size jvm` and `hugewise plan` count them.
pub(super) fn pool_pages(java: &Jvm, heap: Bytes, page: Bytes) -> u64 {
    let counted = match java.kind {
        JvmKind::OpenJ9 if java.has_code_on_base() => return pages_for(heap, page),
        JvmKind::OpenJ9 => jvm::openj9(heap, page, java.code_cache),
        JvmKind::HotSpot | JvmKind::Zing => jvm::jvm(&jvm::Jvm::known(
            heap,
            page,
            java.collector,
            java.version,
            java.code_cache,
        )),
    };
    let pages = counted.ok().and_then(|sizing| sizing.whole("pages"));
    pages.unwrap_or_else(|| pages_for(heap, page))
}
