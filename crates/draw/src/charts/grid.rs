//! Characters in rows and columns, each with a colour or none.

use anstyle::{RgbColor, Style};

/// One character to a cell.
pub(super) struct Grid {
    width: usize,
    cells: Vec<(char, Option<RgbColor>)>,
}

impl Grid {
    pub(super) fn new(width: u16, height: u16) -> Self {
        let (width, height) = (usize::from(width), usize::from(height));
        Self {
            width,
            cells: vec![(' ', None); width * height],
        }
    }

    /// Writes from a place to the right. What does not fit is cut, and what could steer a terminal is left out.
    pub(super) fn write(&mut self, [column, row]: [u16; 2], text: &str, color: Option<RgbColor>) {
        let (column, row) = (usize::from(column), usize::from(row));
        let line = self.cells.chunks_mut(self.width).nth(row).unwrap_or_default();
        let cells = line.iter_mut().skip(column);
        for (cell, sign) in cells.zip(text.chars().filter(|sign| !sign.is_control())) {
            *cell = (sign, color);
        }
    }

    /// The rows without trailing blanks, with colours or without.
    pub(super) fn text(&self, colored: bool) -> String {
        let rows = self.cells.chunks(self.width).map(|row| {
            let last = row.iter().rposition(|(sign, _)| *sign != ' ');
            let used = last.map_or(0, |last| last + 1);
            let cells = row[..used].iter();
            let signs = cells.map(|(sign, color)| painted(*sign, color.filter(|_| colored)));
            signs.chain(["\n".to_owned()]).collect::<String>()
        });
        rows.collect()
    }
}

fn painted(sign: char, color: Option<RgbColor>) -> String {
    let style = Style::new().fg_color(color.map(Into::into));
    format!("{style}{sign}{style:#}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_cut_and_blanks_at_the_end_are_not_told() {
        let mut grid = Grid::new(4, 2);
        grid.write([2, 0], "a\u{1b}bcd", Some(RgbColor(1, 2, 3)));
        grid.write([0, 1], "ü ", None);
        grid.write([4, 1], "x", None);
        grid.write([0, 2], "x", None);
        assert_eq!(grid.text(false), "  ab\nü\n");
        let painted = |sign: char| format!("\u{1b}[38;2;1;2;3m{sign}\u{1b}[0m");
        assert_eq!(grid.text(true), format!("  {}{}\nü\n", painted('a'), painted('b')));
    }
}
