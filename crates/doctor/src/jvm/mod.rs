//! Java virtual machines.

mod explicit;
mod files;
mod options;
mod transparent;

#[cfg(test)]
mod tests;

use host::programs::Jvm;
use model::Bytes;
use sim::size::jvm;

use super::rule::Rule;

/// Pages that such a JVM takes from the pool of its heap, as `hugewise size jvm` and `hugewise plan` count them.
pub(super) fn pool_pages(java: &Jvm, heap: Bytes, page: Bytes) -> u64 {
    let known = jvm::Jvm::known(heap, page, java.collector, java.version, java.code_cache);
    let counted = jvm::jvm(&known).ok().and_then(|sizing| sizing.whole("pages"));
    counted.unwrap_or_else(|| heap.0.div_ceil(page.0.max(1)))
}

pub(super) const RULES: &[Rule] = &[
    explicit::E01,
    explicit::E02,
    options::E03,
    transparent::E05,
    transparent::E06,
    transparent::E07,
    transparent::E08,
    options::E13,
];
