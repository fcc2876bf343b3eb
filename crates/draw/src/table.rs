//! Columns that are written once, for tables and for CSV.

use super::long::Rows;
use super::sheet::Sheet;

/// Heads and lines of CSV; the lines are made one by one.
pub type Lines<'a> = (Vec<&'static str>, Rows<'a>);

/// A column of items `T`: its name in tables, its name in CSV, and the text of its cells.
pub struct Field<T> {
    head: Option<&'static str>,
    csv: Option<&'static str>,
    cell: Cell<T>,
}

enum Cell<T> {
    Always(fn(&T) -> String),
    /// Empty where there is nothing.
    Known(fn(&T) -> Option<String>),
}

impl<T> Field<T> {
    /// A column that only CSV has.
    pub fn csv(csv: &'static str, cell: fn(&T) -> String) -> Self {
        Self {
            head: None,
            csv: Some(csv),
            cell: Cell::Always(cell),
        }
    }

    /// The same of values that some items lack.
    pub fn opt(csv: &'static str, cell: fn(&T) -> Option<String>) -> Self {
        Self {
            head: None,
            csv: Some(csv),
            cell: Cell::Known(cell),
        }
    }

    /// A column that only tables have; `head` as in [`Sheet::new`].
    pub fn shown(head: &'static str, cell: fn(&T) -> String) -> Self {
        Self {
            head: Some(head),
            csv: None,
            cell: Cell::Always(cell),
        }
    }

    /// A column that tables and CSV have.
    pub fn both(head: &'static str, csv: &'static str, cell: fn(&T) -> String) -> Self {
        Self {
            csv: Some(csv),
            ..Self::shown(head, cell)
        }
    }

    fn text(&self, item: &T) -> String {
        match self.cell {
            Cell::Always(cell) => cell(item),
            Cell::Known(cell) => cell(item).unwrap_or_default(),
        }
    }
}

pub fn lines<'a, T: 'a, const N: usize>(fields: [Field<T>; N], items: impl Iterator<Item = T> + 'a) -> Lines<'a> {
    let head = fields.iter().filter_map(|field| field.csv).collect();
    let line = move |item: T| {
        let written = fields.iter().filter(|field| field.csv.is_some());
        written.map(|field| field.text(&item)).collect()
    };
    (head, Box::new(items.map(line)))
}

/// The items as a table, by the columns that tables have.
pub fn sheet<T>(title: &str, fields: &[Field<T>], items: impl Iterator<Item = T>) -> Sheet {
    let shown = || fields.iter().filter(|field| field.head.is_some());
    let mut sheet = Sheet::new(title, shown().filter_map(|field| field.head));
    items.for_each(|item| sheet.row(shown().map(|field| field.text(&item))));
    sheet
}

#[cfg(test)]
mod tests {
    use super::{Field, lines, sheet};

    #[test]
    fn csv_has_every_column_and_a_table_those_with_a_head() {
        let fields = || {
            [
                Field::csv("id", |(id, _): &(u32, &str)| id.to_string()),
                Field::both("#what", "name", |(_, name): &(u32, &str)| (*name).to_owned()),
            ]
        };
        let items = || [(1, "one"), (2, "two")].into_iter();
        let (head, rows) = lines(fields(), items());
        assert_eq!(head, ["id", "name"]);
        assert_eq!(rows.collect::<Vec<_>>(), [["1", "one"], ["2", "two"]]);
        let sheet = sheet("Title", &fields(), items());
        assert_eq!(
            (sheet.rows, sheet.columns[0].numeric),
            (vec![vec!["one".to_owned()], vec!["two".to_owned()]], true)
        );
    }
}
