//! The pages of a pool that a JVM takes.

use model::Bytes;
use programs::size::jvm;
use programs::{Jvm, JvmKind};

use crate::facts::pages_for;

/// Pages that such a JVM takes from the pool of its heap, as `hugewise size jvm` and `hugewise plan` count them.
pub(crate) fn pool_pages(java: &Jvm, heap: Bytes, page: Bytes) -> u64 {
    let counted = match java.kind {
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
