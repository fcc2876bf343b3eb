//! Charts: what is to be drawn (`figure`), and what draws it: `picture` for pages and documents, `terminal` for text.

mod axis;
mod figure;
mod forest;
mod grid;
mod heatmap;
mod ink;
mod legend;
pub mod picture;
pub mod terminal;
mod tone;

pub use self::axis::{Scale, number, without_zeros};
pub use self::figure::{Along, Dot, Figure, Mark, Series};
pub use self::ink::PictureError;
pub(crate) use self::ink::{GRID, INK, PAPER};
pub use self::tone::{TONES, Tone};
