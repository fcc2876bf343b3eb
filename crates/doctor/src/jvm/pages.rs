//! The pages of a pool that a JVM takes.

use model::Bytes;
use programs::Jvm;
use programs::size::jvm;

/// Pages that such a JVM takes from the pool of its heap, as `hugewise size jvm` and `hugewise plan` count them.
pub(crate) fn pool_pages(java: &Jvm, heap: Bytes, page: Bytes) -> u64 {
    let known = jvm::Jvm::known(heap, page, java.collector, java.version, java.code_cache);
    let counted = jvm::jvm(&known).ok().and_then(|sizing| sizing.whole("pages"));
    counted.unwrap_or_else(|| heap.0.div_ceil(page.0.max(1)))
}
