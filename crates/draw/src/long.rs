//! A table that may have hundreds of thousands of rows: they are made one by one and written as they are made.

use std::io::{self, Write};

use super::look::Look;
use super::safe::{markdown, markdown_paragraph, printable};
use super::sheet::{Column, Sheet};
use super::words::joined;

/// Rows of a text that are arranged together, which takes some 4 KiB of memory for each.
const ARRANGED: usize = 1000;

pub type Rows<'a> = Box<dyn Iterator<Item = Vec<String>> + 'a>;

/// A table and where its rows come from.
pub struct Long<'a> {
    /// Title, columns and notes, without rows.
    pub head: Sheet,
    /// Asked for again by each form, and to know whether there are any.
    rows: Box<dyn Fn() -> Rows<'a> + 'a>,
}

impl<'a> Long<'a> {
    pub fn new(head: Sheet, rows: impl Fn() -> Rows<'a> + 'a) -> Self {
        let rows = Box::new(rows);
        Self { head, rows }
    }

    pub fn is_empty(&self) -> bool {
        (self.rows)().next().is_none()
    }

    /// Its rows with the CSS classes of each cell.
    pub fn classed_rows(&self) -> impl Iterator<Item = Vec<(&'static str, String)>> + '_ {
        (self.rows)().map(move |row| {
            let cells = row.into_iter().map(|cell| printable(&cell));
            self.head.columns.iter().map(Column::classes).zip(cells).collect()
        })
    }

    /// As any other table; beyond a thousand rows each thousand has heads of its own.
    pub fn write_text(&self, look: Look, out: &mut dyn Write) -> io::Result<()> {
        let mut rows = (self.rows)().peekable();
        let mut sheet = self.head.clone();
        loop {
            sheet.rows.clear();
            rows.by_ref().take(ARRANGED).for_each(|row| sheet.row(row));
            let is_last = rows.peek().is_none();
            sheet.notes = if is_last { self.head.notes.clone() } else { Vec::new() };
            out.write_all(sheet.text(look).as_bytes())?;
            if is_last {
                return Ok(());
            }
            sheet.title.clear();
        }
    }

    pub fn write_markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "## {}\n", markdown(&self.head.title))?;
        if !self.is_empty() {
            let columns = &self.head.columns;
            let names = columns.iter().map(|column| markdown(&column.name));
            writeln!(out, "{}", markdown_row(names))?;
            let rules = columns.iter().map(|column| if column.numeric { "---:" } else { "---" });
            writeln!(out, "{}", markdown_row(rules.map(str::to_owned)))?;
            (self.rows)().try_for_each(|row| {
                let cells = row.iter().map(|cell| markdown(cell));
                writeln!(out, "{}", markdown_row(cells))
            })?;
        }
        let mut notes = self.head.notes.iter();
        notes.try_for_each(|note| writeln!(out, "\n{}", markdown_paragraph(note)))
    }
}

fn markdown_row(cells: impl Iterator<Item = String>) -> String {
    format!("| {} |", joined(cells, " | "))
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
        let _ = Long::new(head, rows).write_markdown(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::{Long, Rows};
    use crate::look::Look;
    use crate::sheet::Sheet;

    #[test]
    fn markdown_has_numbers_at_the_right() {
        let mut sheet = Sheet::new("Steps", ["step", "#size"]);
        sheet.row(["first|second", "1"]);
        sheet.row(["", "2"]);
        let expected = "## Steps\n\n| step | size |\n| --- | ---: |\n| first\\|second | 1 |\n|  | 2 |\n";
        assert_eq!(sheet.markdown(), expected);
    }

    fn table() -> Long<'static> {
        let mut head = Sheet::new("Mappings", ["address", "#size", "name"]);
        head.note("two\nlines");
        Long::new(head, || {
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
        let mut sheet = table().head;
        (table().rows)().for_each(|row| sheet.row(row));
        assert_eq!(String::from_utf8(text).expect("text"), sheet.text(look));
        assert_eq!(String::from_utf8(markdown).expect("text"), sheet.markdown());
    }

    #[test]
    fn each_thousand_rows_have_heads_and_the_last_have_the_notes() {
        let long = Long::new(table().head, || {
            let rows = (0..2500).map(|row| vec![row.to_string(), "4K".to_owned(), String::new()]);
            Box::new(rows) as Rows<'static>
        });
        let mut text = Vec::new();
        long.write_text(Look::plain(80), &mut text).expect("written");
        let text = String::from_utf8(text).expect("text");
        let count = |part: &str| text.matches(part).count();
        assert_eq!([count("Mappings"), count("address"), count("two")], [1, 3, 1]);
        assert!(text.starts_with("Mappings\n") && text.contains(" 2499 "), "{text}");
    }
}
