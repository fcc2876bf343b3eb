//! TLBs as timing shows them: the verdict on the host's pages, levels beside what CPUID and the CPU table list, walks, and curves.

use std::collections::BTreeSet;

use model::tlb::{CurvePoint, Entries, HostBacking, Known, Level, Sharing, Tlb, Verdict, Walk};
use model::{Bytes, Estimate, PageKind};

use super::latency::spread;
use crate::show::Show;
use draw::{Along, Dot, Figure, Lines, Mark, Scale, Series, Sheet, Tone, columns, joined, lines, or, or_empty};

impl Show for Tlb {
    fn title(&self) -> String {
        "TLBs of this machine, from timing".to_owned()
    }

    fn headlines(&self) -> Vec<String> {
        vec![host(&self.host_backing)]
    }

    fn sheets(&self) -> Vec<Sheet> {
        let sheets = [levels(self), walks(self), sharing(self), how(self)];
        sheets.into_iter().filter(|sheet| !sheet.rows.is_empty()).collect()
    }

    fn figures(&self) -> Vec<Figure> {
        let curves = Some(curves(self)).filter(|figure| !figure.is_empty());
        curves.into_iter().collect()
    }

    fn csv(&self) -> Lines<'_> {
        let fields = columns![|level| &Level;
            kind => level.kind, level => level.level, entries => level.entries?.value()?, low => level.entries?.low,
            high => level.entries?.high, ways => level.ways?, miss_ns => level.miss_ns?.median,
            miss_cycles => level.miss_cycles?.median, not_told => level.not_told.as_ref()?,
        ];
        lines(fields, self.levels.iter())
    }
}

/// The verdict on the host's pages in one sentence.
pub(crate) fn host(backing: &HostBacking) -> String {
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

pub(crate) fn levels(tlb: &Tlb) -> Sheet {
    let fields = columns![|level| &Level;
        "pages" => level.kind, "#level" => level.level, "#entries" => or(level.entries, "unknown"),
        "ways" => level.ways?, "index" => level.index.map(|index| format!("{index:?}").to_lowercase())?,
        "#reach" => level.entries.map(|entries| reach(level, entries))?,
        "#a miss costs, ns" => level.miss_ns.map(spread)?, "#cycles" => level.miss_cycles.map(spread)?,
        "CPUID, CPU table" => others(tlb, level),
    ];
    let title = "TLB levels from timing, beside CPUID and the CPU table";
    let mut sheet = Sheet::of(title, fields, tlb.levels.iter());
    for level in &tlb.levels {
        if let Some(why) = &level.not_told {
            sheet.note(format!("{} level {}: {why}", level.kind, level.level));
        }
    }
    sheet
}

fn reach(level: &Level, entries: Entries) -> String {
    let bytes = |entries: u32| Bytes(level.kind.x86_size().0 * u64::from(entries));
    match entries.value() {
        Some(value) => bytes(value).to_string(),
        None => format!("{} to {}", bytes(entries.low), bytes(entries.high)),
    }
}

fn others(tlb: &Tlb, level: &Level) -> String {
    let said = |known: &&Known| known.kind == level.kind && known.level == level.level;
    let say = |known: &Known| {
        let ways = or_empty(known.ways.map(|ways| format!(" {ways}")));
        format!("{}{ways} ({})", known.entries, known.source)
    };
    joined(tlb.known.iter().filter(said).map(say), ", ")
}

fn walks(tlb: &Tlb) -> Sheet {
    let fields = columns![|walk| &Walk;
        "pages" => walk.kind, "#pages touched" => walk.pages, "#their entries" => walk.entry_bytes,
        "#added cycles" => cost(walk, walk.cycles), "#added ns" => cost(walk, walk.ns),
    ];
    let title = "Page-table walks, by where the page-table entries are";
    let mut sheet = Sheet::of(title, fields, tlb.walks.iter());
    if !tlb.walks.is_empty() {
        sheet.note("a walk has no single cost: it depends on the cache or memory that holds the page-table entries");
    }
    sheet
}

/// A visit that had not converged in its time could only have become cheaper.
fn cost(walk: &Walk, estimate: Estimate) -> String {
    match walk.converged {
        true => spread(estimate),
        false => format!("at most {:.1}", estimate.high),
    }
}

fn sharing(tlb: &Tlb) -> Sheet {
    let fields = columns![|sharing| &Sharing;
        "kinds" => format!("{}, {}", sharing.kinds[0], sharing.kinds[1]), "#level" => sharing.level,
        "entries are" => or(sharing.shared.map(|is| if is { "shared" } else { "separate" }), "unknown"),
        "evidence" => sharing.evidence,
    ];
    Sheet::of("What page kinds share", fields, tlb.sharing.iter())
}

fn how(tlb: &Tlb) -> Sheet {
    let mut sheet = Sheet::new("Evidence", ["about", "evidence"]);
    for memory in &tlb.memory {
        sheet.row([format!("{} pages", memory.kind), memory.evidence.clone()]);
    }
    for evidence in &tlb.host_backing.evidence {
        sheet.row(["host backing".to_owned(), evidence.clone()]);
    }
    let clock = or(tlb.core_ghz.map(|clock| format!("{:.2} GHz", clock.median)), "unknown");
    let run = format!(
        "{:.1} s on CPU {}, core clock {clock}, {} groups of blocks dropped",
        tlb.seconds, tlb.cpu, tlb.dropped
    );
    sheet.row(["run", &run]);
    sheet
}

/// Cost against pages touched at the densest stride of each kind: where the knees of the levels show.
fn curves(tlb: &Tlb) -> Figure {
    let kinds: BTreeSet<PageKind> = tlb.curves.iter().map(|point| point.kind).collect();
    let title = "Core cycles of one access, by memory touched at one line per page";
    let series = kinds.into_iter().flat_map(|kind| lines_of(tlb, kind));
    Figure {
        marks: tlb.levels.iter().filter_map(knee).collect(),
        ..Figure::new("tlb-pages", title, Along::WorkingSet, ("cycles", Scale::Log), series)
    }
}

fn knee(level: &Level) -> Option<Mark> {
    let entries = level.entries?;
    Some(Mark {
        tone: Tone::of(level.kind),
        at: level.kind.x86_size().0 * u64::from(entries.low),
        text: format!("{} level {}: {entries} entries", level.kind, level.level),
    })
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
    let tip = format!("{} pages: {} cycles", point.pages, spread(point.cycles));
    Dot::of(point.pages * kind.x86_size().0, point.cycles, tip)
}
