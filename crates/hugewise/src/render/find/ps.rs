//! Processes and mappings as tables and lines of CSV.

mod cells;
mod parts;

use host::processes::Missed;
use model::process::Remedy;
use model::{Bytes, PageKind, Reading};

use super::unseen::in_words;
use crate::results::mappings::{MappingRow, MappingRows};
use crate::results::ps::{ProcessRow, Totals};
use crate::results::{OneProcess, ProcessList};
use crate::show::Show;
use cells::kinds_in_words;
pub(crate) use cells::share;
pub(super) use cells::{amount, by_kind, by_sort, percent};
use draw::{Field, Lines, Long, Rows, Sheet, columns, counted, lines, number, or, or_empty};

impl Show for ProcessList {
    fn title(&self) -> String {
        "Page kinds behind processes".to_owned()
    }

    fn sheets(&self) -> Vec<Sheet> {
        let mut sheet = match &self.groups {
            None => processes(&self.title(), &self.processes),
            Some(groups) => parts::groups(groups),
        };
        sheet.note(sums(&self.totals, self.filter.as_deref(), self.unseen.remedy));
        in_words(&self.unseen).into_iter().for_each(|words| sheet.note(words));
        let held = self.held_by_nobody.as_ref().and_then(parts::held);
        let more = parts::nodes(&self.processes).into_iter().chain(held);
        std::iter::once(sheet).chain(more).collect()
    }

    fn csv(&self) -> Lines<'_> {
        match &self.groups {
            None => csv(&self.processes),
            Some(groups) => parts::groups_csv(groups),
        }
    }
}

impl Show for OneProcess {
    fn title(&self) -> String {
        format!("Page kinds behind process {}", self.process.pid)
    }

    fn sheets(&self) -> Vec<Sheet> {
        let row = [ProcessRow {
            pages: self.process.clone(),
            missed: self.missed.clone(),
            nodes: self.nodes.clone(),
        }];
        let mut first = processes(&self.title(), &row);
        let coverage = self.coverage.as_ref().and_then(Reading::known).and_then(by_sort);
        coverage.iter().for_each(|text| first.note(format!("resident {text}")));
        parts::reasons(&mut first, self.missed.as_ref(), &self.hints);
        std::iter::once(first).chain(parts::nodes(&row)).collect()
    }

    fn long(&self) -> Option<Long<'_>> {
        self.mappings.as_ref().map(mappings)
    }

    fn csv(&self) -> Lines<'_> {
        let known = self.mappings.as_ref().and_then(Reading::known);
        lines(mapping_fields(), known.into_iter().flat_map(MappingRows::iter))
    }
}

/// One row each, with a column for every page kind that occurs.
fn processes(title: &str, rows: &[ProcessRow]) -> Sheet {
    let asked = rows.iter().any(|row| row.missed.is_some());
    let first = columns![|row| &ProcessRow;
        "#pid" => row.pages.pid, "name" => row.pages.name, "#resident" => short(&row.pages.resident),
        "#shared" => or(row.pages.shared.known().map(|&bytes| amount(bytes)), "?"),
    ];
    let huge = columns![|row| &ProcessRow; "#huge, %" => share(row.pages.backing.known())];
    let why = columns![|row| &ProcessRow;
        "#could be huge" => missed(row.missed.as_ref())[0], "why not" => missed(row.missed.as_ref())[1],
    ];
    let last = columns![|row| &ProcessRow;
        "~#page tables" => short(&row.pages.page_tables), "~THP" => thp(&row.pages.thp_enabled),
    ];
    let fields = first.into_iter().chain(by_kind(rows, |row| row.pages.backing.known()));
    let why = why.into_iter().filter(|_| asked);
    let fields = fields.chain(huge).chain(why).chain(last);
    let mut sheet = Sheet::of(title, fields, rows.iter());
    unread_notes(&mut sheet, rows);
    if asked && rows.iter().any(|row| row.missed.is_none()) {
        sheet.note("- = not looked into, because less than 16M of it is on base pages");
    }
    sheet
}

/// Memory that huge pages could back, and the reason for most of it. No cell is empty: that would read as nothing to gain.
fn missed(missed: Option<&Reading<Missed>>) -> [String; 2] {
    match missed {
        None => ["-".to_owned(), "-".to_owned()],
        Some(Reading::Unread(_)) => ["?".to_owned(), "?".to_owned()],
        Some(Reading::Known(missed)) => {
            let why = missed.main_reason().map_or("nothing", |reason| reason.short());
            let more = if missed.why.len() > 1 { ", .." } else { "" };
            [missed.bytes.to_string(), format!("{why}{more}")]
        }
    }
}

/// Why `?` stands in a row: one note for each reason, not for each process.
fn unread_notes(sheet: &mut Sheet, rows: &[ProcessRow]) {
    let pages: Vec<_> = rows.iter().filter_map(|row| row.pages.backing.unread()).collect();
    let missed = rows.iter().filter_map(|row| row.missed.as_ref()?.unread());
    let unread: Vec<_> = pages.into_iter().chain(missed).collect();
    if let Some(first) = unread.first() {
        let processes = rows.iter().filter(|row| {
            row.pages.backing.unread().is_some() || row.missed.as_ref().is_some_and(|missed| missed.unread().is_some())
        });
        sheet.note(format!(
            "? = not known, for {} of {}; the first reason: {first}",
            processes.count(),
            counted(rows.len(), "process")
        ));
    }
}

/// A known value, or `?`.
fn short(reading: &Reading<Bytes>) -> String {
    or(reading.known(), "?")
}

fn thp(enabled: &Reading<bool>) -> String {
    or(enabled.known().map(|&on| if on { "on" } else { "off" }), "?")
}

/// Less than a hundredth changes no share.
fn is_worth_saying(totals: &Totals) -> bool {
    totals.repeated.0 >= totals.resident.0.div_ceil(100).max(1)
}

fn sums(totals: &Totals, filter: Option<&str>, remedy: Option<Remedy>) -> String {
    let of = match totals.unread {
        0 => String::new(),
        _ => format!("of the {} that could be read ", totals.backing.total()),
    };
    let backed = |share: f64| format!(", {} % {of}backed by huge pages", number(share * 100.0));
    let share = or_empty(totals.backing.coverage().map(backed));
    let count = |processes: u64| counted(processes as usize, "process");
    let repeated = or_empty(is_worth_saying(totals).then(|| {
        let bytes = totals.repeated;
        format!("; up to {bytes} of it may count several times, as it is not known which processes share it")
    }));
    let unread = or_empty(in_words(&totals.unseen(remedy)).map(|words| format!("; {words}")));
    let which = or(filter.map(|filter| format!("{filter}:")), "all");
    format!(
        "{which} {}: {} resident ({}){share}; page tables {}; shared memory counts once{repeated}{unread}",
        count(totals.processes),
        totals.resident,
        totals.backing,
        totals.page_tables
    )
}

fn mappings(mappings: &Reading<MappingRows>) -> Long<'_> {
    let mut sheet = Sheet::of("Mappings", mapping_fields(), std::iter::empty());
    if let Reading::Unread(why) = mappings {
        sheet.note(format!("not known: {why}"));
    }
    let known = mappings.known();
    let rows = move || -> Rows<'_> {
        let (fields, rows) = (mapping_fields(), known.into_iter().flat_map(MappingRows::iter));
        Box::new(rows.map(move |row| draw::cells(&fields, &row)))
    };
    Long::new(sheet, rows)
}

fn mapping_fields<'a>() -> [Field<'a, MappingRow>; 21] {
    columns![|row| MappingRow;
        "address" => format!("{}-{}", row.pages.start, row.pages.end), start => row.pages.start, end => row.pages.end,
        "~perms" perms => row.pages.perms, name => row.pages.name, "#size" => row.pages.size, size => row.pages.size.0,
        "#resident" => amount(row.pages.backing.total()), resident => row.pages.backing.total().0,
        large => row.pages.backing.large().0, "backing" => kinds_in_words(&row.pages.backing), backing => row.pages.backing,
        base => row.pages.backing.of(PageKind::Base).0, thp => row.pages.backing.of(PageKind::Thp).0,
        "~THP eligible" => or(row.pages.thp_eligible.map(|yes| if yes { "yes" } else { "no" }), "?"),
        thp_eligible => row.pages.thp_eligible?, "why base" => row.why_base?.short(),
        "~flags" flags => row.pages.flags.join(" "), why_base => row.why_base?.short(), offset => row.pages.offset.0,
        "name" => row.pages.name,
    ]
}

fn csv(rows: &[ProcessRow]) -> Lines<'_> {
    let fields = columns![|row| &ProcessRow;
        pid => row.pages.pid, name => row.pages.name, uid => row.pages.uid.known()?,
        resident => bytes(&row.pages.resident), shared => bytes(&row.pages.shared), rss => bytes(&row.pages.rss),
        hugetlb => bytes(&row.pages.hugetlb), page_tables => bytes(&row.pages.page_tables),
        large => row.pages.backing.known()?.large().0, backing => row.pages.backing.known()?,
        base => row.pages.backing.known()?.of(PageKind::Base).0,
        thp => row.pages.backing.known()?.of(PageKind::Thp).0, thp_enabled => row.pages.thp_enabled.known()?,
        missed => known_missed(row)?.bytes.0, why => known_missed(row)?.main_reason()?.short(),
    ];
    lines(fields, rows.iter())
}

fn bytes(reading: &Reading<Bytes>) -> String {
    or_empty(reading.known().map(|bytes| bytes.0))
}

fn known_missed(row: &ProcessRow) -> Option<&Missed> {
    row.missed.as_ref().and_then(Reading::known)
}

#[cfg(test)]
mod tests {
    use crate::cli::args::Sort;
    use crate::results::ProcessList;
    use crate::samples::process_rows;
    use crate::show::Show;
    use draw::Look;

    #[test]
    fn every_kind_has_a_column_and_names_are_made_safe() {
        let list = ProcessList::new(process_rows(), Sort::Large, None);
        let text = list.sheets()[0].text(Look::plain(120));
        assert!(
            text.contains("hugetlb-2M") && text.contains("thp") && text.contains(r"db|\u{1b}[2J"),
            "{text}"
        );
        assert!(text.contains("all 3 processes: 1.5G resident"), "{text}");
        let mut rows = process_rows();
        rows[0].pages.backing = model::Reading::Unread(model::Unread::new(model::Cause::Denied, "/proc/10/smaps", ""));
        let part = ProcessList::new(rows, Sort::Large, None).sheets()[0].text(Look::plain(160));
        assert!(part.contains("that could be read backed by huge pages"), "{part}");
        assert!(
            part.contains("1 process could not be read (the first: denied"),
            "{part}"
        );
        let (head, lines) = list.csv();
        let lines: Vec<_> = lines.collect();
        assert_eq!(lines[0][..2], ["30", "jvm"]);
        assert!(lines.iter().all(|line| line.len() == head.len()));
    }
}
