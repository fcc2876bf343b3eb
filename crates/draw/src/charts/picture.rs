//! Draws figures as SVG, for pages and documents.

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, KeyPointWeight, NoDefaultFormatting, ValueFormatter};
use plotters::prelude::*;

use super::axis::{Axis, number};
use super::figure::{Dot, Figure, Series};
use super::forest;
use super::heatmap;
use super::ink::{Area, GRID, Hit, INK, PAPER, PictureError, mark, rgb, text};
use super::legend::{self, TITLE};
use crate::sheet::Sheet;

/// Width of a document, and height of a chart in it, in pixels.
const WIDTH: f64 = 960.0;
const CHART: f64 = 540.0;
/// Height of a line above all charts.
const HEAD: f64 = 22.0;

/// A drawn figure and where its points are, in its own pixels.
#[derive(Clone, Debug)]
pub struct Picture {
    pub svg: String,
    /// Width and height in its own pixels.
    pub size: (u32, u32),
    /// The points, for hovering.
    pub hits: Vec<Hit>,
}

/// One figure as SVG without title and legend, with the places of its points. Rows decide its height by themselves.
pub fn picture(figure: &Figure, (width, height): (u32, u32)) -> Result<Picture, PictureError> {
    let size = (width, forest::height(figure).map_or(height, |rows| rows as u32));
    let mut svg = String::new();
    let hits = {
        let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        let hits = draw(&root, figure)?;
        root.present()?;
        hits
    };
    Ok(Picture { svg, size, hits })
}

/// Heat maps, and figures below them, as one SVG document.
pub fn svg(head: &[String], maps: &[Sheet], figures: &[Figure]) -> Result<Vec<u8>, PictureError> {
    let mut text = String::new();
    let below = maps.iter().map(heatmap::height).chain(figures.iter().map(chart_height));
    let height = head_height(head) + below.sum::<f64>();
    {
        let size = (WIDTH as u32, height.ceil() as u32);
        let root = SVGBackend::with_string(&mut text, size).into_drawing_area();
        stack(&root, head, maps, figures)?;
    }
    Ok(text.into_bytes())
}

fn head_height(head: &[String]) -> f64 {
    let air = if head.is_empty() { 0.0 } else { 18.0 };
    HEAD * head.len() as f64 + air
}

/// With its title and legend.
fn chart_height(figure: &Figure) -> f64 {
    forest::height(figure).map_or(CHART, |rows| TITLE + rows)
}

fn stack(root: &Area<'_>, head: &[String], maps: &[Sheet], figures: &[Figure]) -> Result<(), PictureError> {
    root.fill(&rgb(PAPER))?;
    let mut rest = root.clone();
    let mut cut = |height: f64| {
        let (top, below) = rest.split_vertically(height as u32);
        rest = below;
        top
    };
    let top = cut(head_height(head));
    for (number, line) in head.iter().enumerate() {
        top.draw_text(line, &text(15.0), (24, (12.0 + HEAD * number as f64) as i32))?;
    }
    for map in maps {
        heatmap::draw(&cut(heatmap::height(map)), map)?;
    }
    for figure in figures {
        draw(&legend::above(&cut(chart_height(figure)), figure)?, figure)?;
    }
    Ok(root.present()?)
}

/// Draws a chart, and gives back where its points are.
fn draw(area: &Area<'_>, figure: &Figure) -> Result<Vec<Hit>, PictureError> {
    if figure.along.is_rows() {
        return forest::draw(area, figure);
    }
    let (width, height) = area.dim_in_pixel();
    let (x, y) = (
        figure.x_axis((width / 80) as usize),
        figure.y_axis((height / 50) as usize),
    );
    let rows = y.ends;
    let left = left_of_axis(&y).round() as u32;
    let mut chart = ChartBuilder::on(area)
        .margin(10)
        .margin_right(24)
        .x_label_area_size(46)
        .y_label_area_size(left)
        .build_cartesian_2d(x, y)?;
    chart
        .configure_mesh()
        .axis_style(rgb(INK))
        .bold_line_style(rgb(GRID))
        .light_line_style(TRANSPARENT)
        .label_style(text(17.0))
        .x_desc(figure.along.label())
        .y_desc(&figure.y_label)
        .draw()?;
    draw_marks(&mut chart, figure, rows)?;
    draw_levels(&mut chart, figure)?;
    let mut hits = Vec::new();
    for series in &figure.series {
        hits.extend(draw_series(&mut chart, figure, series)?);
    }
    Ok(hits)
}

/// The interval of a median as a band across the chart, the median as a line in it.
fn draw_levels(chart: &mut Chart<'_>, figure: &Figure) -> Result<(), PictureError> {
    let Range { start, end } = chart.x_range();
    for series in &figure.series {
        let Some(level) = series.level else { continue };
        let color = rgb(series.tone.light);
        let band = Rectangle::new([(start, level.low), (end, level.high)], color.mix(0.13).filled());
        chart.draw_series([band])?;
        let median = vec![(start, level.median), (end, level.median)];
        chart.draw_series([PathElement::new(median, color.stroke_width(2))])?;
    }
    Ok(())
}

/// Pixels for the axis' name, its longest label and its ticks. The page's font decides how wide a digit is: 0.64 em at most.
fn left_of_axis(axis: &Axis) -> f64 {
    let longest = axis.ticks.iter().map(|(_, label)| label.chars().count()).max();
    (30.0 + 8.8 * longest.unwrap_or(0) as f64).max(62.0)
}

type Chart<'a> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<Axis, Axis>>;

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, place: &f64, limit: (i32, i32)) -> i32 {
        let share = (place - self.ends[0]) / (self.ends[1] - self.ends[0]);
        limit.0 + (f64::from(limit.1 - limit.0) * share).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        match hint.weight() {
            KeyPointWeight::Bold | KeyPointWeight::Any => self.ticks.iter().map(|tick| tick.0).collect(),
        }
    }

    fn range(&self) -> Range<f64> {
        self.ends[0]..self.ends[1]
    }
}

impl ValueFormatter<f64> for Axis {
    fn format(place: &f64) -> String {
        number(*place)
    }

    fn format_ext(&self, place: &f64) -> String {
        self.label(*place)
    }
}

/// A thin line from top to bottom at each marked working set, what it marks beside it; one below the other, so that near
/// ones stay readable.
fn draw_marks(chart: &mut Chart<'_>, figure: &Figure, [bottom, top]: [f64; 2]) -> Result<(), PictureError> {
    for (row, mark) in (0..).zip(&figure.marks) {
        let color = rgb(mark.tone.light);
        let (x, _) = figure.place(mark.at, 1.0);
        let line = PathElement::new(vec![(x, bottom), (x, top)], color.mix(0.6).stroke_width(1));
        chart.draw_series([line])?;
        let label = Text::new(mark.text.clone(), (4, 4 + 18 * row), text(14.0).color(&color));
        chart.draw_series([EmptyElement::at((x, top)) + label])?;
    }
    Ok(())
}

/// Line, intervals and marks of one series; gives back where the points are.
fn draw_series(chart: &mut Chart<'_>, figure: &Figure, series: &Series) -> Result<Vec<Hit>, PictureError> {
    let color = rgb(series.tone.light);
    let stroke = |width| color.stroke_width(width);
    let places: Vec<(f64, f64)> = series.dots.iter().map(|dot| figure.place(dot.at, dot.value)).collect();
    let (bottom, top) = (chart.y_range().start, chart.y_range().end);
    let intervals = series.dots.iter().map(|dot| {
        let ends = [dot.low, dot.high].map(|value| figure.place(dot.at, value));
        let ends = ends.map(|(x, y)| (x, y.clamp(bottom, top)));
        PathElement::new(ends.to_vec(), stroke(1))
    });
    chart.draw_series(intervals)?;
    for dots in figure.joined(series) {
        let line = dots.iter().map(|dot| figure.place(dot.at, dot.value));
        let width = if series.is_limit { 1 } else { 2 };
        chart.draw_series(LineSeries::new(line, stroke(width)))?;
    }
    chart.draw_series(places.iter().map(|&place| mark(place, series, 1.0)))?;
    let hit = |(place, dot): (&(f64, f64), &Dot)| {
        let (x, y) = chart.backend_coord(place);
        Hit {
            x,
            y,
            tip: dot.tip.clone(),
        }
    };
    Ok(places.iter().zip(&series.dots).map(hit).collect())
}

#[cfg(test)]
#[path = "picture_tests.rs"]
pub(crate) mod tests;
