//! TLBs as timing shows them: the verdict on the host's pages, levels beside what CPUID and the CPU table list, walks, and curves.

use model::tlb::{CurvePoint, Entries, HostBacking, Known, Level, Tlb, Verdict, Walk};
use model::{Bytes, Estimate, PageKind};

use super::axis::Scale;
use super::figure::{Dot, Figure, Mark, Series};
use super::sheet::Sheet;
use super::table::{Field, Lines, lines};
use super::tone::Tone;
use super::words::or_empty;
use crate::cli::typed::Format;
use crate::show::{CHARTS, Show};

impl Show for Tlb {
    const FORMS: &'static [Format] = &CHARTS;
    const NAME: &'static str = "tlb";

    fn title(&self) -> String {
        "TLBs of this machine, from timing".to_owned()
    }

    fn headlines(&self) -> Vec<String> {
        vec![backing(self)]
    }

    fn sheets(&self) -> Vec<Sheet> {
        let sheets = [levels(self), walks(self), sharing(self), how(self)];
        sheets.into_iter().filter(|sheet| !sheet.rows.is_empty()).collect()
    }

    fn figures(&self) -> Vec<Figure> {
        vec![curves(self)]
            .into_iter()
            .filter(|figure| !figure.is_empty())
            .collect()
    }

    fn csv(&self) -> Lines<'_> {
        let fields: [Field<&Level>; _] = [
            Field::csv("kind", |level| level.kind.to_string()),
            Field::csv("level", |level| level.level.to_string()),
            Field::csv("entries", |level| or_empty(level.entries.and_then(Entries::value))),
            Field::csv("low", |level| or_empty(level.entries.map(|entries| entries.low))),
            Field::csv("high", |level| or_empty(level.entries.map(|entries| entries.high))),
            Field::csv("ways", |level| or_empty(level.ways)),
            Field::csv("miss_ns", |level| or_empty(level.miss_ns.map(|miss| miss.median))),
            Field::csv("miss_cycles", |level| {
                or_empty(level.miss_cycles.map(|miss| miss.median))
            }),
            Field::csv("not_told", |level| or_empty(level.not_told.as_ref())),
        ];
        lines(fields, self.levels.iter())
    }
}

/// The verdict on the host's pages in one sentence.
pub(super) fn backing(tlb: &Tlb) -> String {
    host(&tlb.host_backing)
}

/// The same of the verdict alone.
pub(super) fn host(backing: &HostBacking) -> String {
    let sure = format!("{:.0} % sure", backing.confidence * 100.0);
    match backing.verdict {
        Verdict::Small => format!(
            "The host backs this machine's huge pages with 4 KiB pages ({sure}): huge pages here keep only part of their gain."
        ),
        Verdict::Large => format!(
            "The host backs this machine with 2 MiB pages ({sure}): 1 GiB pages here reach no further than 2 MiB ones."
        ),
        Verdict::Huge => format!("The host backs this machine with 1 GiB pages ({sure})."),
        Verdict::None => format!("No splintering is visible ({sure}): one TLB entry holds a whole huge page."),
        Verdict::Unknown => {
            "The host's backing of this machine's huge pages is unknown: timing does not show it here.".to_owned()
        }
    }
}

pub(super) fn levels(tlb: &Tlb) -> Sheet {
    let mut sheet = Sheet::new(
        "TLB levels from timing, beside CPUID and the CPU table",
        [
            "pages",
            "#level",
            "#entries",
            "ways",
            "index",
            "#reach",
            "#a miss costs, ns",
            "#cycles",
            "CPUID, CPU table",
        ],
    );
    for level in &tlb.levels {
        sheet.row([
            level.kind.to_string(),
            level.level.to_string(),
            level
                .entries
                .map_or_else(|| "unknown".to_owned(), |entries| entries.to_string()),
            level.ways.map_or_else(String::new, |ways| ways.to_string()),
            level
                .index
                .map_or_else(String::new, |index| format!("{index:?}").to_lowercase()),
            reach(level),
            level.miss_ns.map_or_else(String::new, spread),
            level.miss_cycles.map_or_else(String::new, spread),
            others(tlb, level),
        ]);
    }
    for level in tlb.levels.iter().filter(|level| level.not_told.is_some()) {
        let why = level.not_told.as_deref().unwrap_or_default();
        sheet.note(format!("{} level {}: {why}", level.kind, level.level));
    }
    sheet
}

fn reach(level: &Level) -> String {
    let bytes = |entries: u32| Bytes(page(level.kind).0 * u64::from(entries));
    let text = |entries: Entries| match entries.value() {
        Some(value) => bytes(value).to_string(),
        None => format!("{} to {}", bytes(entries.low), bytes(entries.high)),
    };
    level.entries.map_or_else(String::new, text)
}

fn others(tlb: &Tlb, level: &Level) -> String {
    let said = |known: &&Known| known.kind == level.kind && known.level == level.level;
    let say = |known: &Known| {
        let ways = known.ways.map_or_else(String::new, |ways| format!(" {ways}"));
        format!("{}{ways} ({})", known.entries, known.source)
    };
    tlb.known.iter().filter(said).map(say).collect::<Vec<_>>().join(", ")
}

fn spread(estimate: Estimate) -> String {
    let half = (estimate.high - estimate.low) / 2.0;
    format!("{:.1} ± {half:.1}", estimate.median)
}

fn walks(tlb: &Tlb) -> Sheet {
    let mut sheet = Sheet::new(
        "Page-table walks, by where the page-table entries are",
        [
            "pages",
            "#pages touched",
            "#their entries",
            "#added cycles",
            "#added ns",
        ],
    );
    for Walk {
        kind,
        pages,
        entry_bytes,
        cycles,
        ns,
        converged,
    } in &tlb.walks
    {
        // A visit that had not converged in its time could only have become cheaper.
        let spread = |estimate: Estimate| match *converged {
            true => spread(estimate),
            false => format!("at most {:.1}", estimate.high),
        };
        sheet.row([
            kind.to_string(),
            pages.to_string(),
            entry_bytes.to_string(),
            spread(*cycles),
            spread(*ns),
        ]);
    }
    if !tlb.walks.is_empty() {
        sheet.note("a walk has no single cost: it depends on the cache or memory that holds the page-table entries");
    }
    sheet
}

fn sharing(tlb: &Tlb) -> Sheet {
    let mut sheet = Sheet::new("What page kinds share", ["kinds", "#level", "entries are", "evidence"]);
    for sharing in &tlb.sharing {
        let [one, two] = sharing.kinds;
        let shared = match sharing.shared {
            Some(true) => "shared",
            Some(false) => "separate",
            None => "unknown",
        };
        sheet.row([
            format!("{one}, {two}"),
            sharing.level.to_string(),
            shared.to_owned(),
            sharing.evidence.clone(),
        ]);
    }
    sheet
}

fn how(tlb: &Tlb) -> Sheet {
    let mut sheet = Sheet::new("Evidence", ["about", "evidence"]);
    for memory in &tlb.memory {
        sheet.row([format!("{} pages", memory.kind), memory.evidence.clone()]);
    }
    for evidence in &tlb.host_backing.evidence {
        sheet.row(["host backing".to_owned(), evidence.clone()]);
    }
    let clock = tlb
        .core_ghz
        .map_or_else(|| "unknown".to_owned(), |clock| format!("{:.2} GHz", clock.median));
    sheet.row([
        "run".to_owned(),
        format!(
            "{:.1} s on CPU {}, core clock {clock}, {} groups of blocks dropped",
            tlb.seconds, tlb.cpu, tlb.dropped
        ),
    ]);
    sheet
}

/// Cost against pages touched at the densest stride of each kind: where the knees of the levels show.
fn curves(tlb: &Tlb) -> Figure {
    let mut kinds: Vec<PageKind> = tlb.curves.iter().map(|point| point.kind).collect();
    kinds.sort();
    kinds.dedup();
    let title = "Core cycles of one access, by memory touched at one line per page".to_owned();
    let series = kinds.into_iter().flat_map(|kind| lines_of(tlb, kind));
    Figure {
        marks: tlb.levels.iter().filter_map(knee).collect(),
        ..Figure::by_working_set("tlb-pages".to_owned(), title, ("cycles", Scale::Log), series)
    }
}

/// Where a level is full.
fn knee(level: &Level) -> Option<Mark> {
    let entries = level.entries?;
    Some(Mark {
        tone: Tone::of(level.kind),
        at: page(level.kind).0 * u64::from(entries.low),
        text: format!("{} level {}: {entries} entries", level.kind, level.level),
    })
}

fn page(kind: PageKind) -> Bytes {
    kind.page_size(Bytes::kib(4), Bytes::mib(2))
}

/// A line for each sweep over page counts. Sweeps put their lines into other sets of the caches, so that their costs differ where
/// they overlap: joined by page count they would be a zigzag.
fn lines_of(tlb: &Tlb, kind: PageKind) -> Vec<Series> {
    let of_kind = || tlb.curves.iter().filter(|point| point.kind == kind);
    let of_kind = || of_kind().filter(|point| point.drawn_from.is_none());
    let densest = of_kind().map(|point| point.stride).min();
    let points: Vec<&CurvePoint> = of_kind().filter(|point| Some(point.stride) == densest).collect();
    let sweeps: Vec<&[&CurvePoint]> = points.chunk_by(|one, next| one.pages < next.pages).collect();
    let line = |(number, sweep): (usize, &&[&CurvePoint])| {
        let line = Series::of_kind(kind, sweep.iter().map(|point| dot(kind, point)).collect());
        let name = if sweeps.len() > 1 {
            format!("{kind}, sweep {number}")
        } else {
            line.name
        };
        Series { name, ..line }
    };
    (1..).zip(&sweeps).map(line).collect()
}

fn dot(kind: PageKind, point: &CurvePoint) -> Dot {
    Dot {
        at: point.pages * page(kind).0,
        value: point.cycles.median,
        low: point.cycles.low,
        high: point.cycles.high,
        tip: format!("{} pages: {} cycles", point.pages, spread(point.cycles)),
    }
}
