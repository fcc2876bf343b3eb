//! Gains with their intervals against no gain: a row for each arm and metric.

use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::axis::Axis;
use super::figure::{Figure, Series};
use super::ink::{Area, GRID, Hit, INK, PictureError, mark, px, rgb, text_at};

/// Heights in pixels: above the first row, of a row, and of the axis below all rows.
const TOP: f64 = 8.0;
const ROW: f64 = 52.0;
const AXIS: f64 = 56.0;
const EDGE: f64 = 24.0;

/// The height of such a chart in pixels.
pub(super) fn height(figure: &Figure) -> Option<f64> {
    figure
        .along
        .is_rows()
        .then_some(TOP + ROW * figure.series.len() as f64 + AXIS)
}

/// Draws it, and gives back where the gains are.
pub(super) fn draw(area: &Area<'_>, figure: &Figure) -> Result<Vec<Hit>, PictureError> {
    let (width, height) = area.dim_in_pixel();
    let axis = figure.y_axis((f64::from(width) / 90.0) as usize);
    let ends = [px(EDGE), width as i32 - px(EDGE)];
    let bottom = height as i32 - px(AXIS - 8.0);
    for (value, label) in &axis.ticks {
        let x = across(&axis, ends, *value);
        let ink = if *value == 0.0 { INK } else { GRID };
        area.draw(&PathElement::new(vec![(x, px(TOP)), (x, bottom)], rgb(ink)))?;
        area.draw_text(label, &text_at(15.0, HPos::Center), (x, bottom + px(14.0)))?;
    }
    let middle = (width as i32 / 2, bottom + px(34.0));
    area.draw_text(&figure.y_label, &text_at(15.0, HPos::Center), middle)?;
    let mut hits = Vec::new();
    for (row, series) in figure.series.iter().enumerate() {
        let y = TOP + ROW * row as f64;
        area.draw_text(&series.name, &text_at(16.0, HPos::Left), (px(EDGE), px(y + 14.0)))?;
        hits.extend(interval(area, &axis, ends, (series, px(y + 36.0)))?);
    }
    Ok(hits)
}

/// The interval as a line, the gain as a mark on it.
fn interval(
    area: &Area<'_>,
    axis: &Axis,
    ends: [i32; 2],
    (series, y): (&Series, i32),
) -> Result<Vec<Hit>, PictureError> {
    let stroke = rgb(series.tone.light).stroke_width(2);
    let mut hits = Vec::new();
    for dot in &series.dots {
        let [low, x, high] = [dot.low, dot.value, dot.high].map(|value| across(axis, ends, value));
        area.draw(&PathElement::new(vec![(low, y), (high, y)], stroke))?;
        area.draw(&mark((x, y), series, 1.4))?;
        let tip = dot.tip.clone();
        hits.push(Hit { x, y, tip });
    }
    Ok(hits)
}

/// Where a gain lies; those beyond the axis lie at its end.
fn across(axis: &Axis, [left, right]: [i32; 2], value: f64) -> i32 {
    let share = (value - axis.ends[0]) / (axis.ends[1] - axis.ends[0]);
    left + (f64::from(right - left) * share.clamp(0.0, 1.0)).round() as i32
}
