//! A collapse as tables: what backed the memory before and after, and what became of its pieces.

use std::collections::BTreeSet;

use model::collapse::Collapse;
use model::{Backing, Bytes, PageKind};

use crate::render::find::ps::share;
use crate::render::measure::latency::spread;
use crate::show::Show;
use draw::{Lines, Sheet, columns, lines, or_empty};

impl Show for Collapse {
    fn title(&self) -> String {
        format!("Huge pages for process {} ({})", self.pid, self.name)
    }

    fn sheets(&self) -> Vec<Sheet> {
        let mut sheet = Sheet::new(&self.title(), ["", "#before", "#after"]);
        let both = self.before.iter().chain(self.after.iter());
        let kinds: BTreeSet<PageKind> = both.map(|(kind, _)| kind).collect();
        for kind in kinds {
            let amounts = [&self.before, &self.after].map(|backing| backing.of(kind).to_string());
            sheet.row(std::iter::once(kind.to_string()).chain(amounts));
        }
        let shares = [&self.before, &self.after].map(|backing| share(Some(backing)));
        sheet.row(std::iter::once("on huge pages, %".to_owned()).chain(shares));
        sheet.note(pieces(self));
        for refused in &self.refused {
            let (pieces, error, meaning) = (refused.pieces, &refused.error, &refused.meaning);
            sheet.note(format!("refused {pieces}: {error}: {meaning}"));
        }
        sheet.note("proved by /proc/PID/smaps, over the mappings that hold these pieces");
        vec![sheet]
    }

    fn csv(&self) -> Lines<'_> {
        let fields = columns![|(when, kind, bytes)| (&str, PageKind, Bytes);
            pid => self.pid, name => self.name, range => self.range, when => when, kind => kind,
            bytes => bytes.0,
        ];
        let amounts = |(when, backing): (&'static str, &'_ Backing)| (when, backing.iter().collect::<Vec<_>>());
        let both = [("before", &self.before), ("after", &self.after)].map(amounts);
        let items = both
            .into_iter()
            .flat_map(move |(when, amounts)| amounts.into_iter().map(move |(kind, bytes)| (when, kind, bytes)));
        lines(fields, items)
    }
}

fn pieces(collapse: &Collapse) -> String {
    let pieces = collapse.pieces;
    let each = or_empty(collapse.ms.map(|ms| format!("; {} ms each", spread(ms))));
    let left = || format!(", {} left when it was stopped", pieces.left);
    let left = or_empty(collapse.stopped.then(left));
    format!(
        "{} pieces of {} ({}): {} large now, {} too little in use, {} refused{left}; {:.1} s{each}",
        pieces.total(),
        collapse.page.exact(),
        collapse.range,
        pieces.large,
        pieces.sparse,
        pieces.refused,
        collapse.seconds
    )
}
