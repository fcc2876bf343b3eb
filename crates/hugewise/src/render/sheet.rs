//! A table before it is printed: the same rows for the terminal, Markdown and the report.

use std::collections::BTreeMap;

use anstyle::{AnsiColor, RgbColor, Style};
use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{Cell, CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};

use super::heat::Heat;
use super::look::Look;
pub use super::safe::printable;
use super::safe::{markdown, markdown_paragraph};

/// One line under the heads, none between the rows.
const RULED: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

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

    pub fn text(&self, look: Look) -> String {
        let mut table = self.table(str::to_owned);
        table
            .load_style(RULED)
            .set_content_arrangement(ContentArrangement::Dynamic);
        table.set_width(look.width);
        let notes: String = self.notes.iter().map(|note| format!("{note}\n")).collect();
        let lines = if look.color {
            self.painted(&table)
        } else {
            table.trim_fmt()
        };
        titled(&format!("{}\n", self.title), !self.rows.is_empty(), &lines, &notes)
    }

    pub fn markdown(&self) -> String {
        let mut table = self.table(markdown);
        table
            .load_style(ASCII_MARKDOWN)
            .set_content_arrangement(ContentArrangement::Disabled);
        let notes = self
            .notes
            .iter()
            .map(|note| format!("\n{}\n", markdown_paragraph(note)));
        titled(
            &format!("## {}\n\n", markdown(&self.title)),
            !self.rows.is_empty(),
            &table.trim_fmt(),
            &notes.collect::<String>(),
        )
    }

    fn table(&self, write: impl Fn(&str) -> String) -> Table {
        let mut table = Table::new();
        let align = |column: &Column| {
            if column.numeric {
                CellAlignment::Right
            } else {
                CellAlignment::Left
            }
        };
        let heads = self.columns.iter();
        table.set_header(heads.map(|column| Cell::new(write(&column.name)).set_alignment(align(column))));
        for row in &self.rows {
            let cells = row.iter().zip(&self.columns);
            table.add_row(cells.map(|(text, column)| Cell::new(write(text)).set_alignment(align(column))));
        }
        table
    }

    /// The lines of a table with bold heads, and its shades where no cell is broken into lines.
    fn painted(&self, table: &Table) -> String {
        let text = table.trim_fmt();
        let (heads, rows) = text.split_at(text.find('─').unwrap_or(0));
        let bold = Style::new().bold();
        let heads = heads.lines().map(|line| format!("{bold}{line}{bold:#}\n"));
        let whole = rows.lines().count() == self.rows.len() + 1;
        let widths: Vec<usize> = table.column_max_content_widths().into_iter().map(usize::from).collect();
        let rows = rows
            .lines()
            .enumerate()
            .map(|(number, line)| match number.checked_sub(1) {
                Some(row) if whole => self.shaded_line(row, line, &widths),
                _ => format!("{line}\n"),
            });
        heads.chain(rows).collect::<String>().trim_end().to_owned()
    }

    /// One line of a table: a blank, the cell and a blank for each column.
    fn shaded_line(&self, row: usize, line: &str, widths: &[usize]) -> String {
        let mut rest = line;
        let mut painted = String::new();
        for (place, width) in widths.iter().enumerate() {
            let end = rest.char_indices().nth(width + 2).map_or(rest.len(), |(end, _)| end);
            let (cell, after) = rest.split_at(end);
            match self.shades.get(&(row, place)) {
                Some(heat) => painted += &format!("{0}{cell}{0:#}", shade(*heat)),
                None => painted += cell,
            }
            rest = after;
        }
        painted + rest + "\n"
    }
}

fn titled(head: &str, has_rows: bool, table: &str, notes: &str) -> String {
    let rows = if has_rows { format!("{table}\n") } else { String::new() };
    format!("{head}{rows}{notes}")
}

/// Black on the shade: readable whatever the terminal's own colours are.
fn shade(heat: Heat) -> Style {
    let [r, g, b] = heat.light();
    Style::new()
        .bg_color(Some(RgbColor(r, g, b).into()))
        .fg_color(Some(AnsiColor::Black.into()))
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
