//! A table before it is printed: the same rows for the terminal, Markdown and the report.

use std::collections::BTreeMap;

use super::heat::Heat;
use super::safe::printable;

/// A table with a title and notes below it. All its texts are safe to print: nothing in them steers a terminal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sheet {
    pub title: String,
    pub columns: Vec<Column>,
    pub rows: Vec<Vec<String>>,
    /// Sentences below it.
    pub notes: Vec<String>,
    /// Shades of cells by row and column, where the table is a heat map; the numbers say the same.
    pub shades: BTreeMap<(usize, usize), Heat>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    pub name: String,
    /// Are its values numbers, to be aligned at the right?
    pub numeric: bool,
    /// May it be left out where there is no room?
    pub is_spare: bool,
}

impl Column {
    /// Its cells' CSS classes: `n` for numbers, `s` for what is left out on a narrow screen.
    pub fn classes(&self) -> &'static str {
        match (self.numeric, self.is_spare) {
            (false, false) => "",
            (true, false) => "n",
            (false, true) => "s",
            (true, true) => "n s",
        }
    }
}

impl Sheet {
    /// An empty table. A column whose name begins with `#` holds numbers; one that begins with `~` may be left out.
    pub fn new<S: AsRef<str>>(title: &str, columns: impl IntoIterator<Item = S>) -> Self {
        let column = |name: &str| Column {
            name: printable(name.trim_start_matches(['~', '#'])),
            numeric: name.trim_start_matches('~').starts_with('#'),
            is_spare: name.starts_with('~'),
        };
        Self {
            title: printable(title),
            columns: columns.into_iter().map(|name| column(name.as_ref())).collect(),
            ..Self::default()
        }
    }

    pub fn row<S: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.rows
            .push(cells.into_iter().map(|cell| printable(cell.as_ref())).collect());
    }

    /// Adds a row of a name and cells that may have shades.
    pub fn shaded_row(&mut self, name: &str, cells: impl IntoIterator<Item = (String, Option<Heat>)>) {
        let (mut texts, row) = (vec![name.to_owned()], self.rows.len());
        for (text, heat) in cells {
            self.shades.extend(heat.map(|heat| ((row, texts.len()), heat)));
            texts.push(text);
        }
        self.row(texts);
    }

    /// The table, if it has rows.
    pub fn with_rows(self) -> Option<Self> {
        (!self.rows.is_empty()).then_some(self)
    }

    /// Has it neither rows nor notes?
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.notes.is_empty()
    }

    /// Names the columns that are left out where there is no room, if any may be.
    pub fn no_room(&self) -> Option<String> {
        let spare = self.columns.iter().filter(|column| column.is_spare);
        let spare: Vec<&str> = spare.map(|column| column.name.as_str()).collect();
        (!spare.is_empty()).then(|| format!("no room here for: {}", spare.join(", ")))
    }

    pub fn is_heat_map(&self) -> bool {
        !self.shades.is_empty()
    }

    /// Its rows with the CSS classes of each cell: those of its column, and `h0` to `h4` for shades.
    pub fn classed_rows(&self) -> Vec<Vec<(String, &str)>> {
        let classes = |row: usize, place: usize| {
            let column = self.columns.get(place).map_or("", Column::classes);
            match self.shades.get(&(row, place)) {
                Some(heat) => format!("{column} h{}", heat.index()).trim_start().to_owned(),
                None => column.to_owned(),
            }
        };
        let rows = self.rows.iter().enumerate();
        let classed = rows.map(|(number, cells)| {
            let cells = cells.iter().enumerate();
            let cells = cells.map(|(place, cell)| (classes(number, place), cell.as_str()));
            cells.collect()
        });
        classed.collect()
    }

    /// Adds a sentence below the table.
    pub fn note(&mut self, text: impl AsRef<str>) {
        self.notes.push(printable(text.as_ref()));
    }
}

#[cfg(test)]
mod tests {
    use super::{Heat, Sheet, printable};
    use crate::look::Look;

    fn hostile() -> Sheet {
        let mut sheet = Sheet::new("Processes", ["name", "#bytes"]);
        sheet.row(["a|b\u{1b}[31m<script>", "12"]);
        sheet.row(["plain", "1024"]);
        sheet.note("two\nlines");
        sheet
    }

    #[test]
    fn names_from_the_machine_cannot_steer_a_terminal_or_break_a_table() {
        let text = hostile().text(Look::plain(80));
        assert!(!text.contains('\u{1b}') && text.contains(r"\u{1b}[31m"), "{text}");
        let markdown = hostile().markdown();
        assert!(markdown.contains(r"a\|b\\u{1b}\[31m&lt;script&gt;"), "{markdown}");
        let bars: Vec<usize> = markdown
            .lines()
            .filter(|line| line.starts_with('|'))
            .map(|line| line.matches('|').count() - line.matches(r"\|").count())
            .collect();
        assert_eq!(bars, [3, 3, 3, 3], "{markdown}");
        assert_eq!(printable("ok\u{202e}"), r"ok\u{202e}");
    }

    #[test]
    fn shades_colour_a_terminal_that_wants_colours_and_never_hide_the_numbers() {
        let mut sheet = Sheet::new("Map", ["page", "#ns"]);
        sheet.shaded_row("4K", [("218".to_owned(), Some(Heat::of(1.6)))]);
        let look = |color| Look {
            color,
            ..Look::plain(80)
        };
        let classed = [("", "4K"), ("n h3", "218")].map(|(classes, cell)| (classes.to_owned(), cell));
        assert_eq!(sheet.classed_rows(), [classed]);
        let [plain, colored] = [false, true].map(|color| sheet.text(look(color)));
        assert!(!plain.contains('\u{1b}') && plain.contains("218"), "{plain}");
        assert!(
            colored.contains("48;2;251;189;116") && colored.contains("218"),
            "{colored:?}"
        );
        assert!(!sheet.markdown().contains('\u{1b}'));
    }

    #[test]
    fn columns_that_a_narrow_screen_leaves_out_are_marked_and_named() {
        let mut sheet = Sheet::new("Pairs", ["size", "~#ns", "~what"]);
        sheet.row(["64M", "150", "reads"]);
        let classed = [("", "64M"), ("n s", "150"), ("s", "reads")];
        assert_eq!(
            sheet.classed_rows(),
            [classed.map(|(classes, cell)| (classes.to_owned(), cell))]
        );
        assert_eq!(sheet.no_room().as_deref(), Some("no room here for: ns, what"));
        assert_eq!(hostile().no_room(), None);
    }

    #[test]
    fn numbers_stand_at_the_right() {
        let text = hostile().text(Look::plain(80));
        assert!(
            text.contains("    12\n") && text.contains("  1024\n") || text.lines().any(|line| line.ends_with("    12")),
            "{text}"
        );
    }
}
