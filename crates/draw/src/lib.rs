//! Tables, charts, pages and escaping: what any result is drawn with. It knows no result.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod charts;
mod heat;
mod json;
pub mod layout;
mod long;
mod look;
mod page;
pub mod provenance;
pub mod safe;
mod sheet;
mod table;
mod words;

pub use charts::{
    Along, Dot, Figure, Mark, PictureError, Scale, Series, TONES, Tone, number, picture, terminal, without_zeros,
};
pub use heat::{Heat, legend, share_legend};
pub use json::{Layout, ToJson};
pub use long::{Long, Rows};
pub use look::{Look, WIDE};
pub use page::{Block, Content};
pub use safe::printable;
pub use sheet::Sheet;
pub use table::{Field, Lines, cells, lines, pairs};
pub use words::{NOT_CONVERGED, counted, joined, limits, moment, or, or_empty};
