//! Pages of a running, unmodified process from small to large, with the kernel's accounts before and after as proof.

mod collapse;
mod live;
mod pieces;
mod syscall;

pub(crate) use live::MADV_COLLAPSE;
pub(crate) use syscall::process_madvise;

pub use collapse::{Budget, Error, ParseBudgetError, Spec, run};
pub use pieces::{ParseSpanError, Span};

#[cfg(test)]
mod tests;
