//! `hugewise simulate`: other machines and other settings, on paper.

mod captured;
pub(super) mod host_memory;
pub(super) mod machine;
pub(super) mod scheduler;
pub(super) mod trace;
pub(super) mod translation;
