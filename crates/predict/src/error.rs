//! Why a trace is not replayed.

use translation::study::StudyError;

use crate::trace::TraceError;

/// Why a trace is not replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The machine cannot do what is asked.
    #[error(transparent)]
    Study(#[from] StudyError),
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A trace does not say which of its accesses another CPU made.
    #[error("a trace runs on one virtual CPU: simulate a pattern for vcpus above 1")]
    Vcpus,
    /// Nothing is left to count.
    #[error("the trace has no accesses behind those of --warm-up")]
    OnlyWarmUp,
}
