//! A table that may have hundreds of thousands of rows: they are made one by one and written as they are made.

use std::io::{self, Write};

use anstyle::Style;

use super::look::Look;
use super::safe::{markdown, markdown_paragraph, printable};
use super::sheet::{Column, Sheet};

/// Tables up to here are arranged like all others, with long cells wrapped; that takes some 4 KiB of memory for each row.
const MOST_ARRANGED: usize = 1000;

/// What stands between two cells of text.
const GAP: &str = "   ";
/// Columns of a cell to which others are aligned.
const WIDEST: usize = 1000;

pub type Rows<'a> = Box<dyn Iterator<Item = Vec<String>> + 'a>;

/// A table and where its rows come from.
pub struct Long<'a> {
    /// Title, columns and notes, without rows.
    pub head: Sheet,
    count: usize,
    /// Asked for twice: the first time for widths.
    rows: Box<dyn Fn() -> Rows<'a> + 'a>,
}

impl<'a> Long<'a> {
    pub fn new(head: Sheet, count: usize, rows: impl Fn() -> Rows<'a> + 'a) -> Self {
        Self {
            head,
            count,
            rows: Box::new(rows),
        }
    }

    /// Is it too long to be arranged?
    pub fn is_long(&self) -> bool {
        self.count > MOST_ARRANGED
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Its rows with the CSS classes of each cell.
    pub fn classed_rows(&self) -> impl Iterator<Item = Vec<(&'static str, String)>> + '_ {
        (self.rows)().map(move |row| {
            let cells = row.into_iter().map(|cell| printable(&cell));
            self.head.columns.iter().map(Column::classes).zip(cells).collect()
        })
    }

    /// With all its rows, as any other table.
    pub fn sheet(self) -> Sheet {
        let mut sheet = self.head;
        (self.rows)().for_each(|row| sheet.row(row));
        sheet
    }

    /// As text whose lines are not wrapped.
    pub fn write_text(&self, look: Look, out: &mut dyn Write) -> io::Result<()> {
        let widths = self.widths(&|text| printable(text));
        writeln!(out, "{}", self.head.title)?;
        let names = self.head.columns.iter().map(|column| column.name.clone());
        let names = aligned(names, &self.head.columns, &widths).join(GAP);
        let names = format!(" {}", names.trim_end());
        writeln!(out, "{}", look.painted(names, Style::new().bold()))?;
        let rule = widths.iter().sum::<usize>() + widths.len().saturating_sub(1) * GAP.len() + 2;
        writeln!(out, "{}", "─".repeat(rule))?;
        for row in (self.rows)() {
            let cells = row.iter().map(|cell| printable(cell));
            let line = aligned(cells, &self.head.columns, &widths).join(GAP);
            writeln!(out, " {}", line.trim_end())?;
        }
        self.head.notes.iter().try_for_each(|note| writeln!(out, "{note}"))
    }

    pub fn write_markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "## {}\n", markdown(&self.head.title))?;
        if !self.is_empty() {
            self.write_markdown_rows(out)?;
        }
        self.head
            .notes
            .iter()
            .try_for_each(|note| writeln!(out, "\n{}", markdown_paragraph(note)))
    }

    fn write_markdown_rows(&self, out: &mut dyn Write) -> io::Result<()> {
        let widths = self.widths(&markdown);
        let names = self.head.columns.iter().map(|column| markdown(&column.name));
        let names = aligned(names, &self.head.columns, &widths).join(" | ");
        writeln!(out, "| {names} |")?;
        let rules: Vec<String> = widths.iter().map(|width| "-".repeat(width + 2)).collect();
        writeln!(out, "|{}|", rules.join("|"))?;
        (self.rows)().try_for_each(|row| {
            let cells = row.iter().map(|text| markdown(text));
            writeln!(out, "| {} |", aligned(cells, &self.head.columns, &widths).join(" | "))
        })
    }

    /// Of the widest cell in each column, its head included. A longer cell stands out of its column.
    fn widths(&self, write: &dyn Fn(&str) -> String) -> Vec<usize> {
        let names = self.head.columns.iter().map(|column| write(&column.name));
        let mut widths: Vec<usize> = names.map(|name| name.chars().count()).collect();
        for row in (self.rows)() {
            for (width, cell) in widths.iter_mut().zip(&row) {
                *width = (*width).max(write(cell).chars().count().min(WIDEST));
            }
        }
        widths
    }
}

impl Sheet {
    pub fn markdown(&self) -> String {
        let mut text = Vec::new();
        let head = Self {
            rows: Vec::new(),
            ..self.clone()
        };
        let rows = || -> Rows<'_> { Box::new(self.rows.iter().cloned()) };
        // Writing to memory does not fail.
        let _ = Long::new(head, self.rows.len(), rows).write_markdown(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    }
}

fn aligned(cells: impl Iterator<Item = String>, columns: &[Column], widths: &[usize]) -> Vec<String> {
    let places = columns.iter().zip(widths);
    let aligned = cells.zip(places).map(|(cell, (column, &width))| match column.numeric {
        true => format!("{cell:>width$}"),
        false => format!("{cell:<width$}"),
    });
    aligned.collect()
}

#[cfg(test)]
mod tests {
    use super::{Long, Rows};
    use crate::look::Look;
    use crate::sheet::Sheet;

    #[test]
    fn a_cell_of_any_length_is_written() {
        let mut sheet = Sheet::new("Steps", ["step", "#size"]);
        let long = "x".repeat(100_000);
        sheet.row([long.as_str(), "1"]);
        sheet.row(["short", "2"]);
        let lines = sheet.markdown();
        let lines: Vec<&str> = lines.lines().collect();
        assert!(
            lines.iter().any(|line| line.contains(&long)) && lines[3].len() < 2000,
            "{}",
            lines[3]
        );
    }

    fn table() -> Long<'static> {
        let mut head = Sheet::new("Mappings", ["address", "#size", "name"]);
        head.note("two\nlines");
        Long::new(head, 3, || {
            let rows = [
                ["1000-2000", "4K", "[heap]"],
                ["7f0000000000-7f0000200000", "2M", ""],
                ["0-1", "128.5G", "a|b\u{1b}c"],
            ];
            Box::new(rows.into_iter().map(|row| row.map(str::to_owned).to_vec())) as Rows<'static>
        })
    }

    #[test]
    fn what_is_written_row_by_row_is_what_an_arranged_table_shows() {
        let look = Look::plain(200);
        let (mut text, mut markdown) = (Vec::new(), Vec::new());
        table().write_text(look, &mut text).expect("written");
        table().write_markdown(&mut markdown).expect("written");
        let sheet = table().sheet();
        assert_eq!(String::from_utf8(text).expect("text"), sheet.text(look));
        assert_eq!(String::from_utf8(markdown).expect("text"), sheet.markdown());
    }
}
