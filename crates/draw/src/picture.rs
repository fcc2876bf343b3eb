//! Draws figures as SVG, for pages and documents.

use std::ops::Range;

use plotters::coord::Shift;
use plotters::coord::ranged1d::{KeyPointHint, KeyPointWeight, NoDefaultFormatting, ValueFormatter};
use plotters::prelude::*;

use super::axis::{Axis, Scale, number};
use super::figure::{Along, Dot, Figure, Series};
use super::forest;
use super::heatmap;
use super::ink::{GRID, Hit, INK, PAPER, PictureError, mark, rgb, text};
use super::legend;
use super::sheet::Sheet;
use super::tone::Tone;
use model::Estimate;

/// Width of a document, and height of a chart in it, in pixels at zoom 1.
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

/// The height of a figure whose rows decide it, in pixels.
pub fn own_height(figure: &Figure) -> Option<u32> {
    forest::height(figure).map(|height| height as u32)
}

/// One figure as SVG without title and legend, with the places of its points.
pub fn picture(figure: &Figure, size: (u32, u32)) -> Result<Picture, PictureError> {
    let mut svg = String::new();
    let hits = {
        let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        let hits = draw(&root, figure, Dress::Bare, 1.0)?;
        root.present()?;
        hits
    };
    Ok(Picture { svg, size, hits })
}

/// Heat maps, and figures below them, as one SVG document.
pub fn svg(head: &[String], maps: &[Sheet], figures: &[Figure]) -> Result<Vec<u8>, PictureError> {
    let mut text = String::new();
    {
        let size = (WIDTH as u32, height(head, maps, figures, 1.0));
        let root = SVGBackend::with_string(&mut text, size).into_drawing_area();
        stack(&root, head, maps, figures, 1.0)?;
    }
    Ok(text.into_bytes())
}

fn height(head: &[String], maps: &[Sheet], figures: &[Figure], zoom: f64) -> u32 {
    let maps: f64 = maps.iter().map(heatmap::height).sum();
    let charts: f64 = figures.iter().map(chart_height).sum();
    ((head_height(head) + maps + charts) * zoom).ceil() as u32
}

fn head_height(head: &[String]) -> f64 {
    let air = if head.is_empty() { 0.0 } else { 18.0 };
    HEAD * head.len() as f64 + air
}

fn chart_height(figure: &Figure) -> f64 {
    forest::height(figure).unwrap_or(CHART)
}

fn stack<'a, B: DrawingBackend + 'a>(
    root: &DrawingArea<B, Shift>,
    head: &[String],
    maps: &[Sheet],
    figures: &[Figure],
    zoom: f64,
) -> Result<(), PictureError> {
    root.fill(&rgb(PAPER))?;
    let mut rest = root.clone();
    let mut cut = |height: f64| {
        let (top, below) = rest.split_vertically((height * zoom) as u32);
        rest = below;
        top
    };
    let top = cut(head_height(head));
    for (number, line) in head.iter().enumerate() {
        let place = (24.0 * zoom, (12.0 + HEAD * number as f64) * zoom);
        top.draw_text(line, &text(15.0 * zoom), (place.0 as i32, place.1 as i32))?;
    }
    for map in maps {
        heatmap::draw(&cut(heatmap::height(map)), map, zoom)?;
    }
    for figure in figures {
        draw(&cut(chart_height(figure)), figure, Dress::Whole, zoom)?;
    }
    Ok(root.present()?)
}

/// Does a picture stand alone, or on a page that has its title and its legend?
#[derive(Clone, Copy, PartialEq, Eq)]
enum Dress {
    Whole,
    Bare,
}

fn draw<'a, B: DrawingBackend + 'a>(
    area: &DrawingArea<B, Shift>,
    figure: &Figure,
    dress: Dress,
    zoom: f64,
) -> Result<Vec<Hit>, PictureError> {
    if figure.along == Along::Gain {
        return forest::draw(area, figure, dress == Dress::Whole, zoom);
    }
    let px = |pixels: f64| (pixels * zoom).round() as u32;
    let is_inside = figure.along == Along::WorkingSet;
    let area = match dress {
        Dress::Whole if !is_inside => &legend::above(area, figure, zoom)?,
        _ => area,
    };
    let (width, height) = area.dim_in_pixel();
    let (x, y) = (
        figure.x_axis((width / px(80.0)) as usize),
        figure.y_axis((height / px(50.0)) as usize),
    );
    let rows = y.ends;
    let left = px(left_of_axis(&y));
    let mut builder = ChartBuilder::on(area);
    if dress == Dress::Whole && is_inside {
        builder.caption(&figure.title, text(20.0 * zoom));
    }
    let mut chart = builder
        .margin(px(10.0))
        .margin_right(px(24.0))
        .x_label_area_size(px(46.0))
        .y_label_area_size(left)
        .build_cartesian_2d(x, y)?;
    chart
        .configure_mesh()
        .axis_style(rgb(INK))
        .bold_line_style(rgb(GRID))
        .light_line_style(TRANSPARENT)
        .label_style(text(17.0 * zoom))
        .x_desc(figure.along.label())
        .y_desc(&figure.y_label)
        .draw()?;
    draw_marks(&mut chart, figure, rows, zoom)?;
    let mut hits = Vec::new();
    let ends = chart.x_range();
    for series in &figure.series {
        if let Some(level) = series.level {
            draw_level(&mut chart, [ends.start, ends.end], level, series.tone, zoom)?;
        }
    }
    for series in &figure.series {
        hits.extend(draw_series(&mut chart, figure, series, zoom)?);
    }
    if dress == Dress::Whole && is_inside {
        names(&mut chart, figure.scale, zoom)?;
    }
    Ok(hits)
}

/// Pixels for the axis' name, its longest label and its ticks. The page's font decides how wide a digit is: 0.64 em at most.
fn left_of_axis(axis: &Axis) -> f64 {
    let longest = axis.ticks.iter().map(|(_, label)| label.chars().count()).max();
    (30.0 + 8.8 * longest.unwrap_or(0) as f64).max(62.0)
}

type Chart<'a, B> = ChartContext<'a, B, Cartesian2d<Axis, Axis>>;

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
fn draw_marks<'a, B: DrawingBackend + 'a>(
    chart: &mut Chart<'a, B>,
    figure: &Figure,
    [bottom, top]: [f64; 2],
    zoom: f64,
) -> Result<(), PictureError> {
    let px = |pixels: i32| (f64::from(pixels) * zoom) as i32;
    for (row, mark) in (0..).zip(&figure.marks) {
        let color = rgb(mark.tone.light);
        let (x, _) = figure.place(mark.at, 1.0);
        let line = PathElement::new(vec![(x, bottom), (x, top)], color.mix(0.6).stroke_width(px(1) as u32));
        chart.draw_series([line])?;
        let label = Text::new(
            mark.text.clone(),
            (px(4), px(4 + 18 * row)),
            text(14.0 * zoom).color(&color),
        );
        chart.draw_series([EmptyElement::at((x, top)) + label])?;
    }
    Ok(())
}

/// The interval of a median as a band across the chart, the median as a line in it.
fn draw_level<'a, B: DrawingBackend + 'a>(
    chart: &mut Chart<'a, B>,
    [left, right]: [f64; 2],
    level: Estimate,
    tone: Tone,
    zoom: f64,
) -> Result<(), PictureError> {
    let color = rgb(tone.light);
    let band = Rectangle::new([(left, level.low), (right, level.high)], color.mix(0.13).filled());
    chart.draw_series([band])?;
    let median = vec![(left, level.median), (right, level.median)];
    let line = PathElement::new(median, color.stroke_width((1.5 * zoom).round() as u32));
    chart.draw_series([line])?;
    Ok(())
}

/// Line, intervals and marks of one series; gives back where the points are.
fn draw_series<'a, B: DrawingBackend + 'a>(
    chart: &mut Chart<'a, B>,
    figure: &Figure,
    series: &Series,
    zoom: f64,
) -> Result<Vec<Hit>, PictureError> {
    let look = series.look();
    let color = rgb(series.tone.light);
    let stroke = |width: f64| color.stroke_width((width * zoom) as u32);
    let places: Vec<(f64, f64)> = series.dots.iter().map(|dot| figure.place(dot.at, dot.value)).collect();
    let (bottom, top) = (chart.y_range().start, chart.y_range().end);
    let intervals = series.dots.iter().map(|dot| {
        let ends = [dot.low, dot.high].map(|value| figure.place(dot.at, value));
        let ends = ends.map(|(x, y)| (x, y.clamp(bottom, top)));
        PathElement::new(ends.to_vec(), stroke(1.0))
    });
    chart.draw_series(intervals)?;
    for dots in figure.joined(series) {
        let line = dots.iter().map(|dot| figure.place(dot.at, dot.value));
        let width = if series.is_limit { 1.0 } else { 2.0 };
        chart.draw_series(LineSeries::new(line, stroke(width)))?;
    }
    chart
        .draw_series(places.iter().map(|&place| mark(place, look, zoom)))?
        .label(&series.name)
        .legend(move |(x, y)| mark((x + (8.0 * zoom) as i32, y), look, zoom * 1.3));
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

/// Where curves rise to the right, the upper left is free; where they may lie around zero, the lower right is.
fn names<'a, B: DrawingBackend + 'a>(chart: &mut Chart<'a, B>, scale: Scale, zoom: f64) -> Result<(), PictureError> {
    let position = match scale {
        Scale::Log => SeriesLabelPosition::UpperLeft,
        Scale::Linear | Scale::Close => SeriesLabelPosition::LowerRight,
    };
    let mut labels = chart.configure_series_labels();
    labels
        .position(position)
        .margin((12.0 * zoom) as i32)
        .legend_area_size((24.0 * zoom) as i32)
        .background_style(rgb(PAPER).mix(0.8))
        .label_font(text(18.0 * zoom));
    Ok(labels.draw()?)
}

#[cfg(test)]
#[path = "picture_tests.rs"]
pub(crate) mod tests;
