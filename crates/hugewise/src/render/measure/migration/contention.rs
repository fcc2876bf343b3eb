//! What CPUs at work leave of each other: a matrix of mixes for each pair of CPUs, and the same as a list with intervals.

use model::Estimate;
use model::migration::{Contention, Migration, Mix};

use crate::render::prove::placement::kind_name;
use draw::{Sheet, columns, number, or};

/// On a terminal: medians, one matrix for each pair of CPUs.
pub(super) fn matrices(migration: &Migration) -> Vec<Sheet> {
    let pairs = migration.contention.chunk_by(|one, next| one.cpus == next.cpus);
    pairs.map(matrix).collect()
}

/// In reports: each case with its interval and its A/A.
pub(super) fn cases(migration: &Migration) -> Option<Sheet> {
    let fields = columns![|case| &Contention;
        "CPUs" => format!("{} and {}", case.cpus[0], case.cpus[1]), "to" => kind_name(case.kind),
        "work" => case.mix.name(), "beside" => case.beside.name(), "#share" => median(case.share),
        "#95 % CI" => or(case.share.map(ends), "-"), "#alone again" => median(case.again),
    ];
    let title = "Throughput of a CPU beside another at work, as a share of that alone";
    Sheet::of(title, fields, migration.contention.iter()).with_rows()
}

fn matrix(cases: &[Contention]) -> Sheet {
    let is_there = |mix: &Mix| cases.iter().any(|case| case.beside == *mix);
    let beside: Vec<Mix> = Mix::ALL.into_iter().filter(is_there).collect();
    let [one, two] = cases[0].cpus;
    let title = format!(
        "Throughput of CPU {one} beside CPU {two} at work ({}), as a share of that alone",
        kind_name(cases[0].kind)
    );
    let case = |mix: Mix, beside: Mix| cases.iter().find(move |case| (case.mix, case.beside) == (mix, beside));
    let case = &case;
    let work = columns![|mix| Mix; "work" => mix.name()];
    let shares = beside.iter().flat_map(|&beside| {
        columns![|mix| Mix; (format!("#{}", beside.name())) => median(case(*mix, beside).and_then(|case| case.share))]
    });
    let at_work = Mix::ALL
        .into_iter()
        .filter(|mix| cases.iter().any(|case| case.mix == *mix));
    let mut sheet = Sheet::of(&title, work.into_iter().chain(shares), at_work);
    let farthest = |share: Estimate| (share.median - share.low).max(share.high - share.median);
    let widest = cases.iter().filter_map(|case| case.share.map(farthest));
    let widest = widest.fold(0.0, f64::max);
    sheet.note(format!(
        "each 95 % CI reaches up to {} from its median; the report and JSON have them",
        number(widest)
    ));
    sheet
}

fn median(value: Option<Estimate>) -> String {
    or(value.map(|value| number(value.median)), "-")
}

fn ends(share: Estimate) -> String {
    format!("{} to {}", number(share.low), number(share.high))
}
