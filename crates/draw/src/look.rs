//! How text output looks: width, colours, plots.

use std::fmt::Display;

use anstyle::Style;

/// Columns where there is neither a terminal nor COLUMNS: wide enough that most tables do not wrap.
pub const WIDE: u16 = 160;

/// What the reader's terminal can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    pub width: u16,
    /// May colours be used?
    pub color: bool,
    /// Are plots wanted below the tables?
    pub plot: bool,
}

impl Look {
    /// For files: nothing is wrapped, coloured or plotted.
    pub const FILE: Self = Self::plain(0);

    /// So many columns, without colours and plots.
    pub const fn plain(width: u16) -> Self {
        Self {
            width,
            color: false,
            plot: false,
        }
    }

    /// The text in a style, where colours may be used.
    pub fn painted(self, text: impl Display, style: Style) -> String {
        let style = if self.color { style } else { Style::new() };
        format!("{style}{text}{style:#}")
    }
}
