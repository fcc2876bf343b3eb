//! The verdict claims what was measured, and nothing more.
