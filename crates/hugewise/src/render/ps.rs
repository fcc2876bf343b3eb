//! Processes and mappings as tables and lines of CSV.

use std::collections::BTreeSet;

use model::process::{MappingPages, ProcessPages};
use model::{Backing, Bytes, PageKind, Reading};

use super::axis::number;
use super::sheet::Sheet;
use crate::cli::typed::Format;
use crate::results::{OneProcess, ProcessList, Totals};
use crate::show::{Lines, Show, TABLES};

impl Show for ProcessList {
    const FORMS: &'static [Format] = &TABLES;
    const NAME: &'static str = "ps";

    fn title(&self) -> String {
        "Page kinds behind processes".to_owned()
    }

    fn sheets(&self) -> Vec<Sheet> {
        let mut sheet = processes(&self.title(), &self.processes);
        sheet.note(sums(&self.totals));
        vec![sheet]
    }

    fn csv(&self) -> Lines {
        let head = vec![
            "pid",
            "name",
            "uid",
            "resident",
            "rss",
            "hugetlb",
            "page_tables",
            "large",
            "backing",
            "thp_enabled",
        ];
        (head, self.processes.iter().map(csv_line).collect())
    }
}

impl Show for OneProcess {
    const FORMS: &'static [Format] = &TABLES;
    const NAME: &'static str = "process";

    fn title(&self) -> String {
        format!("Page kinds behind process {}", self.process.pid)
    }

    fn sheets(&self) -> Vec<Sheet> {
        let mut sheets = vec![processes(&self.title(), std::slice::from_ref(&self.process))];
        sheets.extend(self.mappings.as_ref().map(mappings));
        sheets
    }

    fn csv(&self) -> Lines {
        let head = vec![
            "start",
            "end",
            "perms",
            "name",
            "size",
            "resident",
            "large",
            "backing",
            "thp_eligible",
            "flags",
        ];
        let known = self.mappings.as_ref().and_then(Reading::known);
        (head, known.into_iter().flatten().map(csv_mapping).collect())
    }
}

/// One row each, with a column for every page kind that occurs.
fn processes(title: &str, rows: &[ProcessPages]) -> Sheet {
    let kinds: BTreeSet<PageKind> = rows
        .iter()
        .filter_map(|row| row.backing.known())
        .flat_map(kinds_of)
        .collect();
    let fixed = ["#pid", "name", "#resident"].map(str::to_owned);
    let heads = kinds.iter().map(|kind| format!("#{kind}"));
    let rest = ["#on large, %", "#page tables", "THP"].map(str::to_owned);
    let mut sheet = Sheet::new(title, fixed.into_iter().chain(heads).chain(rest));
    for row in rows {
        let known = row.backing.known();
        let by_kind = kinds
            .iter()
            .map(|&kind| known.map_or_else(|| "?".to_owned(), |backing| amount(backing.of(kind))));
        let share = known
            .and_then(Backing::coverage)
            .map_or_else(String::new, |share| number(share * 100.0));
        let first = [row.pid.to_string(), row.name.clone(), short(&row.resident)];
        let last = [share, short(&row.page_tables), thp(&row.thp_enabled)];
        sheet.row(first.into_iter().chain(by_kind).chain(last));
    }
    unread_notes(&mut sheet, rows);
    sheet
}

fn kinds_of(backing: &Backing) -> Vec<PageKind> {
    backing.iter().map(|(kind, _)| kind).collect()
}

/// Why `?` stands in a row: one note for each reason, not for each process.
fn unread_notes(sheet: &mut Sheet, rows: &[ProcessPages]) {
    let unread: Vec<_> = rows.iter().filter_map(|row| row.backing.unread()).collect();
    if let Some(first) = unread.first() {
        sheet.note(format!(
            "? = not known, for {} of {} processes; the first reason: {first}",
            unread.len(),
            rows.len()
        ));
    }
}

/// A known value, or `?`.
fn short(reading: &Reading<Bytes>) -> String {
    reading.known().map_or_else(|| "?".to_owned(), Bytes::to_string)
}

/// Nothing is blank: a table of zeros hides the few numbers that matter.
pub(super) fn amount(bytes: Bytes) -> String {
    if bytes.0 == 0 { String::new() } else { bytes.to_string() }
}

fn thp(enabled: &Reading<bool>) -> String {
    match enabled {
        Reading::Known(true) => "on",
        Reading::Known(false) => "off",
        Reading::Unread(_) => "?",
    }
    .to_owned()
}

fn sums(totals: &Totals) -> String {
    let share = totals.backing.coverage().map_or_else(String::new, |share| {
        format!(", {} % on large pages", number(share * 100.0))
    });
    let unread = if totals.unread == 0 {
        String::new()
    } else {
        format!("; {} processes could not be looked into", totals.unread)
    };
    format!(
        "all {} processes: {} resident ({}){share}; page tables {}; memory that processes share counts once for each{unread}",
        totals.processes, totals.resident, totals.backing, totals.page_tables
    )
}

fn mappings(mappings: &Reading<Vec<MappingPages>>) -> Sheet {
    let mut sheet = Sheet::new(
        "Mappings",
        [
            "address",
            "perms",
            "#size",
            "#resident",
            "backing",
            "THP eligible",
            "flags",
            "name",
        ],
    );
    match mappings {
        Reading::Unread(why) => sheet.note(format!("not known: {why}")),
        Reading::Known(mappings) => {
            for mapping in mappings {
                let eligible = mapping.thp_eligible.map_or("?", |yes| if yes { "yes" } else { "no" });
                sheet.row([
                    format!("{}-{}", mapping.start, mapping.end),
                    mapping.perms.clone(),
                    mapping.size.to_string(),
                    amount(mapping.backing.total()),
                    if mapping.backing.total().0 == 0 {
                        String::new()
                    } else {
                        mapping.backing.to_string()
                    },
                    eligible.to_owned(),
                    mapping.flags.join(" "),
                    mapping.name.clone(),
                ]);
            }
        }
    }
    sheet
}

fn bytes(reading: &Reading<Bytes>) -> String {
    reading.known().map_or_else(String::new, |bytes| bytes.0.to_string())
}

fn csv_line(process: &ProcessPages) -> Vec<String> {
    let backing = process.backing.known();
    vec![
        process.pid.to_string(),
        process.name.clone(),
        process.uid.known().map_or_else(String::new, u32::to_string),
        bytes(&process.resident),
        bytes(&process.rss),
        bytes(&process.hugetlb),
        bytes(&process.page_tables),
        backing.map_or_else(String::new, |backing| backing.large().0.to_string()),
        backing.map_or_else(String::new, Backing::to_string),
        process.thp_enabled.known().map_or_else(String::new, bool::to_string),
    ]
}

fn csv_mapping(mapping: &MappingPages) -> Vec<String> {
    vec![
        mapping.start.clone(),
        mapping.end.clone(),
        mapping.perms.clone(),
        mapping.name.clone(),
        mapping.size.0.to_string(),
        mapping.backing.total().0.to_string(),
        mapping.backing.large().0.to_string(),
        mapping.backing.to_string(),
        mapping.thp_eligible.map_or_else(String::new, |yes| yes.to_string()),
        mapping.flags.join(" "),
    ]
}

#[cfg(test)]
mod tests {
    use crate::cli::typed::Sort;
    use crate::render::look::Look;
    use crate::results::ProcessList;
    use crate::samples::processes;
    use crate::show::Show;

    #[test]
    fn every_kind_has_a_column_and_names_are_made_safe() {
        let list = ProcessList::new(processes(), Sort::Large, None);
        let text = list.sheets()[0].text(Look {
            width: 120,
            color: false,
            plot: false,
        });
        assert!(
            text.contains("hugetlb-2M") && text.contains("thp") && text.contains(r"db|\u{1b}[2J"),
            "{text}"
        );
        assert!(text.contains("all 3 processes: 1.5G resident"), "{text}");
        let (head, lines) = list.csv();
        assert_eq!(lines[0][..2], ["30", "jvm"]);
        assert!(lines.iter().all(|line| line.len() == head.len()));
    }
}
