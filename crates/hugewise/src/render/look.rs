//! How text output looks: width, colours, plots.

/// What the reader's terminal can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    pub width: u16,
    /// May colours be used?
    pub color: bool,
    /// Are plots wanted below the tables?
    pub plot: bool,
}
