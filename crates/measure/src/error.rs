//! Why nothing was measured.

use std::io;
use std::path::PathBuf;

/// Why a measurement could not be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The user stopped it.
    #[error("interrupted")]
    Interrupted,
    /// This cannot be measured, or not so much at once.
    #[error("cannot measure this: {0}")]
    Spec(String),
    /// The timed thread could not be pinned.
    #[error("cannot pin the timed thread: {0}; choose another with --cpu")]
    Pin(io::Error),
    /// A thread could not be kept on its CPU.
    #[error("a thread could not stay on CPU {cpu}: {source}")]
    Stay {
        cpu: u32,
        /// The kernel's answer.
        source: io::Error,
    },
    /// A worker could not be started.
    #[error("{}: a worker could not be started: {source} (is there a limit on processes? `ulimit -u`)", .program.display())]
    Start {
        program: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// KVM, or the guest.
    #[error(transparent)]
    Vm(#[from] vm::Error),
}

impl Error {
    /// Has the user stopped it?
    ///
    /// # Errors
    /// [`Error::Interrupted`], if so.
    pub(crate) fn if_stopped(stop: &dyn Fn() -> bool) -> Result<(), Self> {
        if stop() { Err(Self::Interrupted) } else { Ok(()) }
    }

    /// A stable word for scripts: what kind of obstacle to guests this is.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Interrupted => "interrupted",
            Self::Vm(error) => error.code(),
            Self::Pin(_) => "no-cpu",
            _ => "bad-input",
        }
    }
}
