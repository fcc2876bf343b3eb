//! Draws figures in a terminal: one cell per character, marks that differ without colour.

use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;
use ratatui::style::{Color, Style};
use ratatui::symbols::Marker;
use ratatui::widgets::Widget;
use ratatui::widgets::canvas::{Canvas, Points};

use super::axis::Axis;
use super::figure::{Figure, Mark, Series};
use super::look::Look;
use super::tone::Tone;

const HEIGHT: u16 = 22;
/// Columns for the labels of the values, rows for those of the sizes.
const GUTTER: (u16, u16) = (7, 2);

/// A figure as lines of text, with colours if the look has them.
pub fn plot(figure: &Figure, look: Look) -> String {
    let area = Rect::new(0, 0, look.width.clamp(40, 110), HEIGHT);
    let inner = Rect::new(GUTTER.0, 1, area.width - GUTTER.0 - 2, HEIGHT - 1 - GUTTER.1);
    let (x, y) = (
        figure.x_axis(usize::from(inner.width) / 7),
        figure.y_axis(usize::from(inner.height) / 2),
    );
    let mut buffer = Buffer::empty(area);
    rulers(&mut buffer, inner, &x, &y);
    for mark in &figure.marks {
        knee(&mut buffer, inner, x.ends, figure, mark);
    }
    for series in &figure.series {
        marks(&mut buffer, inner, figure, series, [x.ends, y.ends]);
    }
    legend(&mut buffer, figure);
    let marked: String = figure
        .marks
        .iter()
        .map(|mark| format!("┊ {}: {}\n", figure.along.text(mark.at), mark.text))
        .collect();
    format!(
        "{} ({})\n{}{marked}",
        figure.title,
        figure.y_label,
        text(&buffer, look.color)
    )
}

/// Which column or row of `cells` a place falls on.
fn cell(place: f64, ends: [f64; 2], cells: u16) -> u16 {
    let share = (place - ends[0]) / (ends[1] - ends[0]);
    (share.clamp(0.0, 1.0) * f64::from(cells.saturating_sub(1))).round() as u16
}

fn rulers(buffer: &mut Buffer, inner: Rect, x: &Axis, y: &Axis) {
    let (bottom, left) = (inner.bottom(), inner.left() - 1);
    for row in inner.top()..bottom {
        buffer.set_string(left, row, "│", Style::default());
    }
    buffer.set_string(
        left,
        bottom,
        "└".to_owned() + &"─".repeat(inner.width.into()),
        Style::default(),
    );
    for (place, label) in &y.ticks {
        let row = bottom - 1 - cell(*place, y.ends, inner.height);
        buffer.set_string(left, row, "┤", Style::default());
        buffer.set_string(
            0,
            row,
            format!("{label:>width$}", width = usize::from(left) - 1),
            Style::default(),
        );
    }
    for (place, label) in &x.ticks {
        let column = inner.left() + cell(*place, x.ends, inner.width);
        buffer.set_string(column, bottom, "┬", Style::default());
        let start = (column + 1).saturating_sub(label.len() as u16 / 2 + 1);
        buffer.set_string(
            start.min(buffer.area.width - label.len() as u16),
            bottom + 1,
            label,
            Style::default(),
        );
    }
}

/// A dotted line from top to bottom; what it marks stands below the plot.
fn knee(buffer: &mut Buffer, inner: Rect, x: [f64; 2], figure: &Figure, mark: &Mark) {
    let (place, _) = figure.place(mark.at, 1.0);
    let column = inner.left() + cell(place, x, inner.width);
    for row in inner.top()..inner.bottom() {
        buffer.set_string(column, row, "┊", color(mark.tone));
    }
}

fn marks(buffer: &mut Buffer, inner: Rect, figure: &Figure, series: &Series, [x, y]: [[f64; 2]; 2]) {
    let places: Vec<(f64, f64)> = series.dots.iter().map(|dot| figure.place(dot.at, dot.value)).collect();
    let tone = series.tone;
    let points = Points {
        coords: &places,
        color: color(tone),
    };
    Canvas::default()
        .x_bounds(x)
        .y_bounds(y)
        .marker(Marker::Custom(tone.mark))
        .paint(|context| context.draw(&points))
        .render(inner, buffer);
}

fn legend(buffer: &mut Buffer, figure: &Figure) {
    let mut column = GUTTER.0 + 1;
    for series in &figure.series {
        let tone = series.tone;
        let name = format!("{} {}", tone.mark, series.name);
        buffer.set_stringn(
            column,
            0,
            &name,
            usize::from(buffer.area.width.saturating_sub(column)),
            color(tone),
        );
        column += name.len() as u16 + 3;
    }
}

fn color(tone: Tone) -> Color {
    let [red, green, blue] = tone.light.map(|part| part.saturating_add(0x20));
    Color::Rgb(red, green, blue)
}

/// The buffer's rows without trailing blanks.
fn text(buffer: &Buffer, colored: bool) -> String {
    let width = usize::from(buffer.area.width);
    let rows = buffer.content.chunks(width).map(|row| {
        let used = row
            .iter()
            .rposition(|cell| cell.symbol() != " ")
            .map_or(0, |last| last + 1);
        row[..used]
            .iter()
            .map(|cell| {
                if colored {
                    painted(cell)
                } else {
                    cell.symbol().to_owned()
                }
            })
            .collect::<String>()
    });
    rows.map(|row| row + "\n").collect()
}

fn painted(cell: &Cell) -> String {
    match cell.fg {
        Color::Rgb(red, green, blue) => {
            let style = anstyle::Style::new().fg_color(Some(anstyle::RgbColor(red, green, blue).into()));
            format!("{style}{}{style:#}", cell.symbol())
        }
        _ => cell.symbol().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{cell, plot};
    use crate::render::look::Look;
    use crate::render::picture::tests::figure;

    #[test]
    fn ends_fall_on_the_first_and_the_last_cell() {
        assert_eq!(
            [0.0, 5.0, 10.0, 99.0].map(|place| cell(place, [0.0, 10.0], 11)),
            [0, 5, 10, 10]
        );
    }

    #[test]
    fn a_plot_has_every_kind_and_fits_the_width() {
        let text = plot(
            &figure(),
            Look {
                width: 80,
                color: false,
                plot: true,
            },
        );
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(
            text.contains("o base") && text.contains("+ thp") && text.contains("x hugetlb-2M"),
            "{text}"
        );
        assert!(
            text.contains("16K") && text.contains("1G") && !text.contains('\u{1b}'),
            "{text}"
        );
        assert!(
            text.contains("┊ 1M: a knee of thp") && text.matches('┊').count() > 8,
            "{text}"
        );
        for mark in ['o', '+', 'x'] {
            assert!(text.matches(mark).count() > 8, "{mark} in\n{text}");
        }
        assert!(
            plot(
                &figure(),
                Look {
                    width: 80,
                    color: true,
                    plot: true
                }
            )
            .contains("\u{1b}[38;2;")
        );
    }
}
