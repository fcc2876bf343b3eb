//! Pages of a running, unmodified process from small to large and back, with its smaps before and after as proof.

mod collapse;
mod live;
mod pieces;
mod syscall;
mod target;
mod turn;

pub(crate) use collapse::meaning;
pub(crate) use live::MADV_COLLAPSE;
pub(crate) use pieces::{PAGE, aligned};
pub(crate) use syscall::process_madvise;

pub use collapse::{Budget, Error, Spec, run};
pub use pieces::Span;
pub use turn::{Flipped, To};

#[cfg(test)]
mod tests;
#[cfg(test)]
mod turn_tests;
