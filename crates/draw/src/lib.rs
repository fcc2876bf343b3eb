//! Tables, charts, pages and escaping: what any result is drawn with. It knows no result.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod axis;
mod figure;
mod forest;
mod grid;
mod heat;
mod heatmap;
mod ink;
mod json;
pub mod layout;
mod legend;
mod long;
mod look;
mod page;
pub mod picture;
pub mod prometheus;
pub mod provenance;
pub mod safe;
mod sheet;
mod table;
pub mod terminal;
mod tone;
mod words;

pub use axis::{Scale, number, without_zeros};
pub use figure::{Along, Dot, Figure, Mark, Series};
pub use heat::{Heat, STEPS, legend};
pub use ink::PictureError;
pub use json::{Layout, ToJson};
pub use long::{Long, Rows};
pub use look::{Look, WIDE};
pub use page::{Block, Content};
pub use safe::printable;
pub use sheet::Sheet;
pub use table::{Field, Lines, lines};
pub use tone::{TONES, Tone};
pub use words::{NOT_CONVERGED, counted, limits, moment, or, or_empty, processes};
