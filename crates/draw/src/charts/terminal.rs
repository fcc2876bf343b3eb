//! Draws figures in a terminal: one cell per character, marks that differ without colour.

use anstyle::RgbColor;

use super::axis::Axis;
use super::figure::{Figure, Mark, Series};
use super::grid::Grid;
use super::tone::Tone;
use crate::look::Look;

const HEIGHT: u16 = 22;
/// Columns for the labels of the values; the first row of the values, and the one behind their last.
const LEFT: u16 = 7;
const TOP: u16 = 1;
const BOTTOM: u16 = HEIGHT - 2;
const ROWS: u16 = BOTTOM - TOP;

/// A figure as lines of text, with colours if the look has them.
pub fn plot(figure: &Figure, look: Look) -> String {
    let width = look.width.clamp(40, 110);
    let columns = width - LEFT - 2;
    let (x, y) = (
        figure.x_axis(usize::from(columns) / 7),
        figure.y_axis(usize::from(ROWS) / 2),
    );
    let mut grid = Grid::new(width, HEIGHT);
    rulers(&mut grid, width, columns, [&x, &y]);
    for mark in &figure.marks {
        knee(&mut grid, columns, x.ends, figure, mark);
    }
    for series in &figure.series {
        marks(&mut grid, columns, figure, series, [x.ends, y.ends]);
    }
    legend(&mut grid, figure);
    let marked = figure.marks.iter();
    let marked = marked.map(|mark| format!("┊ {}: {}\n", figure.along.text(mark.at), mark.text));
    let (plot, marked) = (grid.text(look.color), marked.collect::<String>());
    format!("{} ({})\n{plot}{marked}", figure.title, figure.y_label)
}

/// Which column or row of `cells` a place falls on.
fn cell(place: f64, ends: [f64; 2], cells: u16) -> u16 {
    let share = (place - ends[0]) / (ends[1] - ends[0]);
    (share.clamp(0.0, 1.0) * f64::from(cells.saturating_sub(1))).round() as u16
}

fn rulers(grid: &mut Grid, width: u16, columns: u16, [x, y]: [&Axis; 2]) {
    let left = LEFT - 1;
    for row in TOP..BOTTOM {
        grid.write([left, row], "│", None);
    }
    let axis = "└".to_owned() + &"─".repeat(columns.into());
    grid.write([left, BOTTOM], &axis, None);
    for (place, label) in &y.ticks {
        let row = BOTTOM - 1 - cell(*place, y.ends, ROWS);
        grid.write([left, row], "┤", None);
        let label = format!("{label:>width$}", width = usize::from(left) - 1);
        grid.write([0, row], &label, None);
    }
    for (place, label) in &x.ticks {
        let column = LEFT + cell(*place, x.ends, columns);
        grid.write([column, BOTTOM], "┬", None);
        let start = (column + 1).saturating_sub(label.len() as u16 / 2 + 1);
        grid.write([start.min(width - label.len() as u16), BOTTOM + 1], label, None);
    }
}

/// A dotted line from top to bottom; what it marks stands below the plot.
fn knee(grid: &mut Grid, columns: u16, x: [f64; 2], figure: &Figure, mark: &Mark) {
    let (place, _) = figure.place(mark.at, 1.0);
    let column = LEFT + cell(place, x, columns);
    for row in TOP..BOTTOM {
        grid.write([column, row], "┊", color(mark.tone));
    }
}

fn marks(grid: &mut Grid, columns: u16, figure: &Figure, series: &Series, [x, y]: [[f64; 2]; 2]) {
    let is_within = |place: f64, ends: [f64; 2]| (ends[0]..=ends[1]).contains(&place);
    let places = series.dots.iter().map(|dot| figure.place(dot.at, dot.value));
    for (across, up) in places.filter(|(across, up)| is_within(*across, x) && is_within(*up, y)) {
        let column = LEFT + cell(across, x, columns);
        let row = BOTTOM - 1 - cell(up, y, ROWS);
        grid.write([column, row], &series.sign().to_string(), color(series.tone));
    }
}

fn legend(grid: &mut Grid, figure: &Figure) {
    let mut column = LEFT + 1;
    for series in &figure.series {
        let name = format!("{} {}", series.sign(), series.name);
        grid.write([column, 0], &name, color(series.tone));
        column += name.len() as u16 + 3;
    }
}

fn color(tone: Tone) -> Option<RgbColor> {
    let [red, green, blue] = tone.light.map(|part| part.saturating_add(0x20));
    Some(RgbColor(red, green, blue))
}

#[cfg(test)]
mod tests {
    use super::super::picture::tests::figure;
    use super::{cell, plot};
    use crate::look::Look;

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
                plot: true,
                ..Look::plain(80)
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

    #[test]
    fn limits_have_the_sign_of_what_did_not_converge() {
        let mut figure = figure();
        figure.series[0].is_limit = true;
        let look = Look {
            plot: true,
            ..Look::plain(80)
        };
        let text = plot(&figure, look);
        assert!(text.contains("? base") && !text.contains("o base"), "{text}");
        assert!(text.matches('?').count() > 10, "{text}");
    }
}
