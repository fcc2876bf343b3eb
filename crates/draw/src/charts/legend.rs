//! Title and names above a chart, so that no legend covers its points.

use plotters::style::text_anchor::HPos;

use super::figure::Figure;
use super::ink::{Area, PictureError, mark, px, text_at};

/// Heights in pixels: the title, and each row of names.
pub(super) const TITLE: f64 = 40.0;
const ROW: f64 = 26.0;
/// Pixels left of the first name, and what a mark and the gap behind a name take.
const LEFT: f64 = 24.0;
const MARK: f64 = 16.0;
const GAP: f64 = 26.0;

/// Draws them, and gives back what is left below.
pub(super) fn above<'a>(area: &Area<'a>, figure: &Figure) -> Result<Area<'a>, PictureError> {
    let style = |size: f64| text_at(size, HPos::Left);
    let widths = figure.legend().iter().map(|series| {
        let width = area.estimate_text_size(&series.name, &style(16.0))?.0;
        Ok(MARK + f64::from(width) + GAP)
    });
    let widths: Vec<f64> = widths.collect::<Result<_, PictureError>>()?;
    let places = places(&widths, f64::from(area.dim_in_pixel().0) - 2.0 * LEFT);
    let rows = places.last().map_or(0, |&(_, row)| row + 1);
    let (top, below) = area.split_vertically(px(TITLE + ROW * rows as f64));
    top.draw_text(&figure.title, &style(20.0), (px(LEFT), px(TITLE / 2.0)))?;
    for (series, (x, row)) in figure.legend().iter().zip(places) {
        let (x, y) = (LEFT + x, TITLE + ROW * (row as f64 + 0.5));
        let sign = mark((px(x + 5.0), px(y)), series, 1.2);
        top.draw(&sign)?;
        top.draw_text(&series.name, &style(16.0), (px(x + MARK), px(y)))?;
    }
    Ok(below)
}

/// Where names of these widths go: pixels from the left, and the row.
fn places(widths: &[f64], room: f64) -> Vec<(f64, usize)> {
    let (mut x, mut row) = (0.0, 0);
    let mut place = |&width: &f64| {
        if x > 0.0 && x + width > room {
            (x, row) = (0.0, row + 1);
        }
        let place = (x, row);
        x += width;
        place
    };
    widths.iter().map(&mut place).collect()
}

#[cfg(test)]
mod tests {
    use super::places;

    #[test]
    fn names_that_do_not_fit_go_to_the_next_row() {
        assert_eq!(
            places(&[100.0, 100.0, 150.0, 900.0, 10.0], 300.0),
            [(0.0, 0), (100.0, 0), (0.0, 1), (0.0, 2), (0.0, 3)]
        );
        assert!(places(&[], 300.0).is_empty());
    }
}
