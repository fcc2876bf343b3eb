//! A figure inside the page: drawn twice, for wide and for narrow screens, in colours that follow the page.

use std::collections::BTreeSet;

use crate::charts::picture::{self, Picture};
use crate::charts::{Dot, Figure, GRID, INK, PAPER, PictureError, Series, TONES, Tone, number};
use crate::columns;
use crate::sheet::Sheet;
use crate::words::joined;

const WIDE: (u32, u32) = (960, 480);
const NARROW: (u32, u32) = (420, 400);

/// A figure with its pictures and its numbers.
pub(super) struct Drawing {
    pub(super) figure: Figure,
    /// The same chart for wide and for narrow screens, by CSS class. Their SVG has no root, and colours are CSS variables.
    pub(super) faces: [(&'static str, Picture); 2],
    pub(super) table: Sheet,
}

impl Drawing {
    /// Draws a figure for the page.
    pub(super) fn of(figure: Figure) -> Result<Self, PictureError> {
        Ok(Self {
            faces: [("wide", face(&figure, WIDE)?), ("narrow", face(&figure, NARROW)?)],
            table: table(&figure),
            figure,
        })
    }
}

/// Corners of a mark around zero.
pub(super) fn corners(tone: &Tone) -> String {
    joined(tone.corners().iter().map(|(x, y)| format!("{x},{y}")), " ")
}

fn face(figure: &Figure, size: (u32, u32)) -> Result<Picture, PictureError> {
    let drawn = picture::picture(figure, size)?;
    let svg = themed(inner(&drawn.svg));
    Ok(Picture { svg, ..drawn })
}

/// What stands between the root's tags.
fn inner(svg: &str) -> &str {
    let start = svg.find('>').map_or(0, |end| end + 1);
    svg[start..].trim_end().trim_end_matches("</svg>")
}

/// Fixed colours as the page's variables, fonts as the page's own.
fn themed(elements: &str) -> String {
    let fixed = [(INK, "ink"), (GRID, "grid"), (PAPER, "paper")].map(|(color, name)| (color, format!("var(--{name})")));
    let kinds = TONES.iter().map(|tone| (tone.light, format!("var(--k{})", tone.index)));
    let with =
        |text: String, (color, variable)| text.replace(&format!("\"{}\"", hex(color)), &format!("\"{variable}\""));
    let themed = fixed.into_iter().chain(kinds).fold(elements.to_owned(), with);
    themed.replace(" font-family=\"sans-serif\"", "")
}

/// `#C44E00`, as the drawing library writes it.
pub(super) fn hex([red, green, blue]: [u8; 3]) -> String {
    format!("#{red:02X}{green:02X}{blue:02X}")
}

/// The chart's numbers, each with its interval: rows down, else places down and series across.
fn table(figure: &Figure) -> Sheet {
    let title = format!("{} ({}; 95 % CI)", figure.title, figure.y_label);
    let along = figure.along.label();
    if figure.along.is_rows() {
        let fields = columns![|series| &Series;
            (along) => series.name, (format!("#{}", figure.y_label)) => series.dots.first().map(interval)?,
        ];
        return Sheet::of(&title, fields, figure.series.iter());
    }
    let along = columns![|at| u64; (format!("#{along}")) => figure.along.text(*at)];
    let series = figure.series.iter().flat_map(|series| {
        columns![|at| u64; (format!("#{}", series.name)) => interval(series.dots.iter().find(|dot| dot.at == *at)?)]
    });
    let places: BTreeSet<u64> = figure.dots().map(|dot| dot.at).collect();
    Sheet::of(&title, along.into_iter().chain(series), places.into_iter())
}

fn interval(dot: &Dot) -> String {
    let value = number(dot.value);
    match dot.low == dot.high {
        true => value,
        false => format!("{value} ({} to {})", number(dot.low), number(dot.high)),
    }
}
