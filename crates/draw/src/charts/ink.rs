//! What every picture is drawn with: colors, the font, marks, and the error if it cannot be.

use plotters::coord::Shift;
use plotters::drawing::DrawingAreaErrorKind;
use plotters::element::ComposedElement;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::figure::Series;

/// Text and axes on light ground.
pub(crate) const INK: [u8; 3] = [0x1d, 0x21, 0x26];
/// Lines of the grid on light ground.
pub(crate) const GRID: [u8; 3] = [0xdf, 0xe3, 0xe8];
/// The ground of light pictures.
pub(crate) const PAPER: [u8; 3] = [0xff, 0xff, 0xff];

const FONT: &str = "sans-serif";

/// Why a picture could not be made.
#[derive(Debug, thiserror::Error)]
#[error("the picture could not be drawn: {0} (use --format csv or --format json to get the numbers)")]
pub struct PictureError(String);

/// A drawn point: its place in pixels and what there is to say about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// Pixels from the left.
    pub x: i32,
    /// Pixels from the top.
    pub y: i32,
    /// Text for hovering.
    pub tip: String,
}

/// Where pictures are drawn.
pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// A mark at a place: what is inside of it, and its outline.
pub(super) type Mark<C, B> = ComposedElement<C, B, Polygon<(i32, i32)>, PathElement<(i32, i32)>>;

/// The mark of a series: looks differ in shape, too, and limits are hollow.
pub(super) fn mark<C, B: DrawingBackend>(at: C, series: &Series, scale: f64) -> Mark<C, B> {
    let scaled = |&(x, y): &(f64, f64)| ((x * scale).round() as i32, (y * scale).round() as i32);
    let corners: Vec<(i32, i32)> = series.tone.corners().iter().map(scaled).collect();
    let color = rgb(series.tone.light);
    let (inside, outline) = match series.is_limit {
        true => (rgb(PAPER), color.to_rgba()),
        false => (color, TRANSPARENT),
    };
    let closed: Vec<(i32, i32)> = corners.iter().copied().chain(corners.first().copied()).collect();
    let outline = PathElement::new(closed, outline.stroke_width((1.5 * scale).round() as u32));
    EmptyElement::at(at) + Polygon::new(corners, inside.filled()) + outline
}

pub(super) fn rgb([red, green, blue]: [u8; 3]) -> RGBColor {
    RGBColor(red, green, blue)
}

pub(super) fn text(size: f64) -> TextStyle<'static> {
    (FONT, size).into_font().color(&rgb(INK))
}

/// Text that begins at a place, or has its middle there; half of its height is above the place.
pub(super) fn text_at(size: f64, at: HPos) -> TextStyle<'static> {
    text(size).pos(Pos::new(at, VPos::Center))
}

pub(super) fn px(pixels: f64) -> i32 {
    pixels.round() as i32
}

impl<E: std::error::Error + Send + Sync> From<DrawingAreaErrorKind<E>> for PictureError {
    fn from(error: DrawingAreaErrorKind<E>) -> Self {
        Self(error.to_string())
    }
}
