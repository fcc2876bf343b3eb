//! A table before it is printed: the same rows for the terminal, Markdown and the report.

use std::collections::BTreeMap;

use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{Attribute, Cell, CellAlignment, Color, ContentArrangement, LineStyle, Table, TableStyle};

use super::heat::Heat;
use super::look::Look;

/// One line under the heads, none between the rows.
const RULED: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// A table with a title and notes below it. All its texts are safe to print: nothing in them steers a terminal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sheet {
    /// What it shows.
    pub title: String,
    /// Its columns.
    pub columns: Vec<Column>,
    /// Its rows, one text per column.
    pub rows: Vec<Vec<String>>,
    /// Sentences below it.
    pub notes: Vec<String>,
    /// Shades of cells by row and column, where the table is a heat map; the numbers say the same.
    pub shades: BTreeMap<(usize, usize), Heat>,
}

/// The head of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name, with the unit.
    pub name: String,
    /// Are its values numbers, to be aligned at the right?
    pub numeric: bool,
}

impl Sheet {
    /// An empty table; a column's name that begins with `#` holds numbers.
    pub fn new<S: AsRef<str>>(title: &str, columns: impl IntoIterator<Item = S>) -> Self {
        let column = |name: &str| Column {
            name: printable(name.trim_start_matches('#')),
            numeric: name.starts_with('#'),
        };
        Self {
            title: printable(title),
            columns: columns.into_iter().map(|name| column(name.as_ref())).collect(),
            ..Self::default()
        }
    }

    /// Adds a row.
    pub fn row<S: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.rows
            .push(cells.into_iter().map(|cell| printable(cell.as_ref())).collect());
    }

    /// Adds a row whose cells may have shades.
    pub fn shaded_row<S: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = (S, Option<Heat>)>) {
        let (texts, shades): (Vec<S>, Vec<Option<Heat>>) = cells.into_iter().unzip();
        let (row, shades) = (self.rows.len(), shades.into_iter().enumerate());
        self.shades
            .extend(shades.filter_map(|(column, heat)| Some(((row, column), heat?))));
        self.row(texts);
    }

    /// Is it a heat map?
    pub fn is_heat_map(&self) -> bool {
        !self.shades.is_empty()
    }

    /// Its rows with the CSS classes of each cell: `n` for numbers, `h0` to `h4` for shades.
    pub fn classed_rows(&self) -> Vec<Vec<(String, &str)>> {
        let classes = |row: usize, place: usize| {
            let numeric = self.columns.get(place).is_some_and(|column| column.numeric);
            let shade = self.shades.get(&(row, place)).map(|heat| format!("h{}", heat.index()));
            let classes: Vec<String> = numeric.then(|| "n".to_owned()).into_iter().chain(shade).collect();
            classes.join(" ")
        };
        self.rows
            .iter()
            .enumerate()
            .map(|(number, cells)| {
                let cells = cells.iter().enumerate();
                cells
                    .map(|(place, cell)| (classes(number, place), cell.as_str()))
                    .collect()
            })
            .collect()
    }

    /// Adds a sentence below the table.
    pub fn note(&mut self, text: impl AsRef<str>) {
        self.notes.push(printable(text.as_ref()));
    }

    /// As text for a terminal.
    pub fn text(&self, look: Look) -> String {
        let mut table = self.table(|text| text.to_owned(), look.color);
        table
            .load_style(RULED)
            .set_content_arrangement(ContentArrangement::Dynamic);
        table.set_width(look.width);
        let notes: String = self.notes.iter().map(|note| format!("{note}\n")).collect();
        self.titled("", &table, &notes)
    }

    /// As Markdown.
    pub fn markdown(&self) -> String {
        let mut table = self.table(escaped, false);
        table
            .load_style(ASCII_MARKDOWN)
            .set_content_arrangement(ContentArrangement::Disabled);
        let notes: String = self.notes.iter().map(|note| format!("\n{}\n", escaped(note))).collect();
        self.titled("## ", &table, &notes)
    }

    fn titled(&self, mark: &str, table: &Table, notes: &str) -> String {
        let gap = if mark.is_empty() { "" } else { "\n" };
        let rows = if self.rows.is_empty() {
            String::new()
        } else {
            format!("{}\n", table.trim_fmt())
        };
        format!("{mark}{}\n{gap}{rows}{notes}", self.title)
    }

    fn table(&self, write: impl Fn(&str) -> String, color: bool) -> Table {
        let mut table = Table::new();
        if color {
            table.enforce_styling();
        } else {
            table.force_no_tty();
        }
        let align = |column: &Column| {
            if column.numeric {
                CellAlignment::Right
            } else {
                CellAlignment::Left
            }
        };
        table.set_header(self.columns.iter().map(|column| {
            Cell::new(write(&column.name))
                .set_alignment(align(column))
                .add_attribute(Attribute::Bold)
        }));
        for (number, row) in self.rows.iter().enumerate() {
            let cells = row.iter().zip(&self.columns).enumerate();
            table.add_row(cells.map(|(place, (text, column))| {
                let cell = Cell::new(write(text)).set_alignment(align(column));
                let shade = self.shades.get(&(number, place)).filter(|_| color);
                match shade {
                    Some(&heat) => shaded(cell, heat),
                    None => cell,
                }
            }));
        }
        table
    }
}

/// Black on the shade: readable whatever the terminal's own colours are.
fn shaded(cell: Cell, heat: Heat) -> Cell {
    let [r, g, b] = heat.light();
    cell.bg(Color::Rgb { r, g, b }).fg(Color::Black)
}

/// Text from the machine without anything that steers a terminal: control characters become `\x1b` and the like.
pub fn printable(text: &str) -> String {
    let steers = |c: char| {
        c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        if steers(c) {
            safe.extend(c.escape_default());
        } else {
            safe.push(c);
        }
    }
    safe
}

/// Text that means itself in Markdown, inside a table too.
pub(crate) fn escaped(text: &str) -> String {
    let special = ['\\', '|', '*', '_', '`', '<', '>', '[', ']', '&'];
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        if special.contains(&c) {
            safe.push('\\');
        }
        safe.push(c);
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::{Heat, Sheet, printable};
    use crate::render::look::Look;

    fn hostile() -> Sheet {
        let mut sheet = Sheet::new("Processes", ["name", "#bytes"]);
        sheet.row(["a|b\u{1b}[31m<script>", "12"]);
        sheet.row(["plain", "1024"]);
        sheet.note("two\nlines");
        sheet
    }

    #[test]
    fn names_from_the_machine_cannot_steer_a_terminal_or_break_a_table() {
        let text = hostile().text(Look {
            width: 80,
            color: false,
            plot: false,
        });
        assert!(!text.contains('\u{1b}') && text.contains(r"\u{1b}[31m"), "{text}");
        let markdown = hostile().markdown();
        assert!(markdown.contains(r"a\|b\\u{1b}\[31m\<script\>"), "{markdown}");
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
        sheet.shaded_row([("4K", None), ("218", Some(Heat::of(1.6)))]);
        let look = |color| Look {
            width: 80,
            color,
            plot: false,
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
    fn numbers_stand_at_the_right() {
        let text = hostile().text(Look {
            width: 80,
            color: false,
            plot: false,
        });
        assert!(
            text.contains("    12\n") && text.contains("  1024\n") || text.lines().any(|line| line.ends_with("    12")),
            "{text}"
        );
    }
}
