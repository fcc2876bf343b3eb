//! What is chosen for a file that is written: who may read it, and what becomes of one that is there.

/// Who may read a new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Those that the umask allows; a file that is replaced keeps its owner and mode.
    Usual,
    /// Its owner alone, from the first byte, whatever is replaced.
    Private,
}

/// What becomes of a file that is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Existing {
    Replace,
    /// It stays, and the write fails.
    Refuse,
}
