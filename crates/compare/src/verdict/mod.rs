//! What runs come to: which of them count, intervals and verdicts, when to stop, and what weakens them.

pub(crate) mod elsewhere;
pub mod forecast;
pub mod interim;
pub mod judge;
pub mod paired;
pub(crate) mod parts;
pub mod proof;
pub(crate) mod recheck;
pub(crate) mod rising;
pub mod score;
pub(crate) mod warming;
pub(crate) mod warnings;
