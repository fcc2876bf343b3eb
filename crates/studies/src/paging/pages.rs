//! The page sizes of the published experiments.

use model::Bytes;

pub(super) const BASE: Bytes = Bytes::kib(4);
pub(super) const LARGE: Bytes = Bytes::mib(2);
pub(super) const HUGE: Bytes = Bytes::gib(1);
