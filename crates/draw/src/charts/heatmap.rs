//! Heat maps as pictures: a shaded sheet drawn as a grid, its numbers in the cells.

use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::ink::{Area, PictureError, px, rgb, text_at};
use crate::sheet::Sheet;

/// Heights in pixels: the title, each row, and each note.
const TITLE: f64 = 56.0;
const ROW: f64 = 46.0;
const NOTE: f64 = 28.0;

/// How high it is, in pixels.
pub(super) fn height(sheet: &Sheet) -> f64 {
    TITLE + ROW * (sheet.rows.len() + 1) as f64 + NOTE + 12.0
}

/// Draws it: heads above, the first column at the left, shades behind the numbers, and the first note (the legend) below.
pub(super) fn draw(area: &Area<'_>, sheet: &Sheet) -> Result<(), PictureError> {
    let width = f64::from(area.dim_in_pixel().0);
    let column = (width - 48.0) / sheet.columns.len().max(1) as f64;
    let cell = |row: usize, at: usize| [24.0 + column * at as f64, TITLE + ROW * row as f64];
    let write =
        |words: &str, size: f64, [x, y]: [f64; 2], at: HPos| area.draw_text(words, &text_at(size, at), (px(x), px(y)));
    write(&sheet.title, 20.0, [24.0, TITLE / 2.0], HPos::Left)?;
    let heads = sheet.columns.iter().map(|column| column.name.clone()).collect();
    for (number, row) in std::iter::once(&heads).chain(&sheet.rows).enumerate() {
        for (place, words) in row.iter().enumerate() {
            let [x, y] = cell(number, place);
            let shade = number.checked_sub(1).and_then(|row| sheet.shades.get(&(row, place)));
            if let Some(heat) = shade {
                let corners = [(px(x + 2.0), px(y + 2.0)), (px(x + column - 2.0), px(y + ROW - 2.0))];
                area.draw(&Rectangle::new(corners, rgb(heat.light()).filled()))?;
            }
            write(words, 17.0, [x + column / 2.0, y + ROW / 2.0], HPos::Center)?;
        }
    }
    let below = [24.0, TITLE + ROW * (sheet.rows.len() + 1) as f64 + NOTE / 2.0];
    if let Some(note) = sheet.notes.first() {
        write(note, 14.0, below, HPos::Left)?;
    }
    Ok(())
}
