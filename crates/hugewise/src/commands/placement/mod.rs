//! `hugewise placement`: where programs ran, what differs, and what is pinned wrongly.

pub(super) mod check;
pub(super) mod diff;
pub(super) mod record;
