//! How what was found becomes the shape of a result, with a warning for what was not.

use model::tlb::{CurvePoint, Level};
use model::{Bytes, Estimate, PageKind, Warning};

use super::discover::Found;
use super::probe::Sweep;
use super::survey::Survey;

/// The warning about a level whose entries contention took for a good part of the time.
pub(super) fn contention(kind: PageKind, level: u8, found: &Found) -> Option<Warning> {
    const OFTEN: f64 = 0.75;
    let (free, entries) = found.free.filter(|&free| free < OFTEN).zip(found.entries)?;
    let text = format!(
        "{kind} pages, level {level}: the {entries} entries that timing shows were all free in {:.0} % of the passes only; contention on \
         the same core (a hidden SMT sibling, another guest, an interrupt) held some in the others, and programs here get fewer as \
         long as that lasts",
        100.0 * free
    );
    Some(Warning::new("tlb-neighbor", text))
}

/// The warning about a level whose entries are unknown.
pub(super) fn unknown(level: &Level) -> Option<Warning> {
    let why = level.not_told.as_deref().filter(|_| level.entries.is_none())?;
    let text = format!("{} pages, level {}: {why}", level.kind, level.level);
    Some(Warning::new("tlb-unknown", text))
}

/// The first level of a kind whose pages the host splinters.
pub(super) fn splintered(kind: PageKind, parts: Bytes) -> Level {
    let not_told = format!(
        "the host splinters these pages into pages of {parts}: each part that is touched takes an entry of its own"
    );
    let found = Found {
        not_told: Some(not_told),
        ..Found::default()
    };
    level_of(kind, 1, &found)
}

/// A level as a result has it.
pub(crate) fn level_of(kind: PageKind, level: u8, found: &Found) -> Level {
    Level {
        kind,
        level,
        entries: found.entries,
        ways: found.ways,
        index: found.index,
        miss_ns: None,
        miss_cycles: stats::estimate(&found.penalty),
        not_told: found.not_told.clone(),
    }
}

/// Every probe that was answered, with its spread.
pub(super) fn curves(kind: PageKind, survey: &Survey) -> Vec<CurvePoint> {
    let points = [Sweep::Near, Sweep::Far]
        .into_iter()
        .flat_map(|sweep| survey.points(sweep));
    points
        .filter_map(|(probe, floor)| {
            let cycles = stats::estimate(survey.all(probe))?;
            Some(CurvePoint {
                kind,
                stride: if probe.layout.is_drawn() {
                    0
                } else {
                    1 << probe.layout.stride
                },
                drawn_from: probe.layout.is_drawn().then(|| 1 << probe.layout.stride),
                block: 1 << probe.layout.block,
                pages: probe.pages.into(),
                cycles: Estimate {
                    low: floor.min(cycles.low),
                    ..cycles
                },
            })
        })
        .collect()
}
