//! Columns that are written once, for tables and for CSV.

use std::borrow::Cow;

use super::long::Rows;
use super::sheet::Sheet;

/// Heads and lines of CSV; the lines are made one by one.
pub type Lines<'a> = (Vec<&'static str>, Rows<'a>);

type Cell<'a, T> = Box<dyn Fn(&T) -> Option<String> + 'a>;

/// A column of items `T`, as [`columns`](crate::columns) makes it.
pub struct Field<'a, T> {
    /// Its name in tables, as in [`Sheet::new`]; none if only CSV has it.
    pub head: Option<Cow<'static, str>>,
    /// Its name in CSV; none if only tables have it.
    pub csv: Option<&'static str>,
    /// The text of its cells; none where there is nothing.
    pub cell: Cell<'a, T>,
}

/// Columns of items: each has a head in tables (a literal, or text in parentheses), a name in CSV (a word) or both, and a value, in
/// which `?` leaves the cell empty. A value may name what is around it: references, and values that are copied.
///
/// `columns![|point| &Point; "#footprint" bytes => point.bytes, low => point.cost_ns?.low, (format!("#{kind}")) => point.of(kind)]`
#[macro_export]
macro_rules! columns {
    (|$item:pat_param| $of:ty; $($($head:literal)? $(($made:expr))? $($csv:ident)? => $cell:expr),+ $(,)?) => {
        [$({
            #[allow(unused_variables)]
            let cell = move |$item: &$of| -> Option<String> { Some(($cell).to_string()) };
            $crate::Field {
                head: $crate::columns!(@ $($head.into())? $($made.into())?),
                csv: $crate::columns!(@ $(stringify!($csv))?),
                cell: Box::new(cell),
            }
        }),+]
    };
    (@) => { None };
    (@ $name:expr) => { Some($name) };
}

impl<T> Field<'_, T> {
    fn text(&self, item: &T) -> String {
        (self.cell)(item).unwrap_or_default()
    }
}

pub fn lines<'a, T: 'a, const N: usize>(fields: [Field<'a, T>; N], items: impl Iterator<Item = T> + 'a) -> Lines<'a> {
    let head = fields.iter().filter_map(|field| field.csv).collect();
    let line = move |item: T| {
        let written = fields.iter().filter(|field| field.csv.is_some());
        written.map(|field| field.text(&item)).collect()
    };
    (head, Box::new(items.map(line)))
}

/// An item's cells in a table.
pub fn cells<T>(fields: &[Field<'_, T>], item: &T) -> Vec<String> {
    let shown = fields.iter().filter(|field| field.head.is_some());
    shown.map(|field| field.text(item)).collect()
}

/// Each item with each of its parts.
pub fn pairs<'a, A, B: 'a, P: IntoIterator<Item = &'a B>>(
    items: &'a [A],
    parts: impl Fn(&'a A) -> P,
) -> impl Iterator<Item = (&'a A, &'a B)> {
    items
        .iter()
        .flat_map(move |item| parts(item).into_iter().map(move |part| (item, part)))
}

impl Sheet {
    /// The items as a table, by the columns that tables have.
    pub fn of<'a, T>(
        title: &str,
        fields: impl IntoIterator<Item = Field<'a, T>>,
        items: impl Iterator<Item = T>,
    ) -> Self {
        let fields: Vec<_> = fields.into_iter().collect();
        let mut sheet = Self::new(title, fields.iter().filter_map(|field| field.head.as_deref()));
        items.for_each(|item| sheet.row(cells(&fields, &item)));
        sheet
    }
}

#[cfg(test)]
mod tests {
    use super::lines;
    use crate::Sheet;

    #[test]
    fn csv_has_every_column_and_a_table_those_with_a_head() {
        let fields = || columns![|(id, name)| (u32, &str); id => id, "#what" name => name];
        let items = || [(1, "one"), (2, "two")].into_iter();
        let (head, rows) = lines(fields(), items());
        assert_eq!(head, ["id", "name"]);
        assert_eq!(rows.collect::<Vec<_>>(), [["1", "one"], ["2", "two"]]);
        let sheet = Sheet::of("Title", fields(), items());
        assert_eq!(
            (sheet.rows, sheet.columns[0].numeric),
            (vec![vec!["one".to_owned()], vec!["two".to_owned()]], true)
        );
    }
}
