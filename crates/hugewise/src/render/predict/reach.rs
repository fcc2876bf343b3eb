//! TLB reach as a table, with the arithmetic below it.

use model::Bytes;
use translation::reach::{Cover, Reach};

use crate::results::ReachTable;
use crate::show::Show;
use draw::{Lines, Sheet, columns, lines, pairs, without_zeros};

impl Show for ReachTable {
    fn title(&self) -> String {
        "TLB reach".to_owned()
    }

    fn sheets(&self) -> Vec<Sheet> {
        let fields = columns![|row| &Reach;
            "page" => row.page.exact(), "#entries" => row.entries, "#reach" => row.reach,
            "#reach, GiB" => significant(row.reach.0 as f64 / Bytes::gib(1).0 as f64),
        ];
        let covers = self.rows.first().into_iter().flat_map(|row| &row.covers);
        let shares = covers.enumerate().flat_map(|(place, cover)| {
            let head = format!("#% of {}", cover.working_set.exact());
            columns![|row| &Reach; (head) => significant(row.covers.get(place)?.share * 100.0)]
        });
        let mut sheet = Sheet::of(&self.title(), fields.into_iter().chain(shares), self.rows.iter());
        sheet.note(
            "reach = entries x page size; % = reach / working set, at most 100: the hit rate of uniform random accesses",
        );
        sheet.note(
            "a CPU holds fewer entries for huge pages than its headline number: `hugewise measure tlb` measures them",
        );
        vec![sheet]
    }

    fn csv(&self) -> Lines<'_> {
        let fields = columns![|(row, cover)| (&Reach, &Cover);
            page_bytes => row.page.0, entries => row.entries, reach_bytes => row.reach.0,
            working_set_bytes => cover.working_set.0, share => cover.share,
        ];
        lines(fields, pairs(&self.rows, |row| &row.covers))
    }
}

/// Three significant digits below 1, four above: as the published tables print them.
fn significant(value: f64) -> String {
    if value == 0.0 || value.fract() == 0.0 {
        return format!("{value}");
    }
    let digits = if value < 1.0 { 3 } else { 5 };
    let before = value.abs().log10().floor() as i32 + 1;
    without_zeros(&format!("{value:.*}", (digits - before).max(0) as usize)).to_owned()
}

#[cfg(test)]
mod tests {
    use super::significant;

    #[test]
    fn numbers_are_as_the_published_table_prints_them() {
        for (value, text) in [
            (0.000244140625, "0.000244"),
            (0.0030517578125, "0.00305"),
            (1.5625, "1.5625"),
            (50.0, "50"),
            (0.5, "0.5"),
        ] {
            assert_eq!(significant(value), text);
        }
    }
}
