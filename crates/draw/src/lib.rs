//! Tables, charts, pages and escaping: what any result is drawn with. It knows no result.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod axis;
pub mod figure;
mod forest;
mod grid;
pub mod heat;
mod heatmap;
pub mod ink;
pub mod json;
pub mod layout;
mod legend;
pub mod long;
pub mod look;
pub mod page;
pub mod picture;
pub mod prometheus;
pub mod provenance;
pub mod safe;
pub mod sheet;
pub mod table;
pub mod terminal;
pub mod tone;
pub mod words;
