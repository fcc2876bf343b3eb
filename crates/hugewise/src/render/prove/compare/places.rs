//! Where the arms of a comparison ran: their share of time on each CPU, moves by kind, and waits on run queues.

use std::collections::{BTreeMap, BTreeSet};

use model::compare::{Arm, Compare, Ran, Run};
use model::placement::Kind;

use super::runs::ends;
use draw::{Sheet, columns, number, or};

/// Beyond so many CPUs a column for each says less than where most of the time was.
const MOST_CPUS: usize = 16;
/// The share of the time of which the CPUs are counted, where there are many.
const MOSTLY: f64 = 0.9;

/// `None` where no run has it.
pub(super) fn sheet(compare: &Compare) -> Option<Sheet> {
    let rans = || compare.arms.iter().flat_map(rans);
    let cpus: BTreeSet<u32> = rans().flat_map(|ran| ran.cpu_s.keys().copied()).collect();
    if cpus.is_empty() {
        return None;
    }
    let kinds = kinds(rans());
    let is_many = cpus.len() > MOST_CPUS;
    let arm = columns![|arm| &Arm; "arm" => arm.name];
    let each = cpus
        .iter()
        .filter(|_| !is_many)
        .flat_map(|cpu| columns![|arm| &Arm; (format!("#CPU {cpu} %")) => or(share(arm, *cpu).map(percent), "-")]);
    let most = columns![|arm| &Arm;
        "#CPU with most" => or(falling(arm).first().map(|(cpu, _)| *cpu), "-"),
        "#% there" => or(falling(arm).first().map(|(_, share)| percent(*share)), "-"),
        "#CPUs with 90 %" => or(enough(&falling(arm)), "-"),
    ];
    let most = most.into_iter().filter(|_| is_many);
    let moved = kinds.iter().flat_map(
        |&kind| columns![|arm| &Arm; (format!("#{} moves", short(kind))) => median(arm, |run| moves(run, kind))],
    );
    let wait = columns![|arm| &Arm; "#waited %" => range(arm, waited)];
    let fields = arm.into_iter().chain(each).chain(most).chain(moved).chain(wait);
    let mut sheet = Sheet::of("Where the arms ran", fields, compare.arms.iter());
    let turn = compare.design.method.turn();
    sheet.note(format!(
        "% = share of the CPU time, all {turn}s together; moves = moves from one CPU to another for each CPU second, by how far they go: \
         medians of the {turn}s; waited = time on run queues in % of the CPU time, from the {turn} with least to the one with most"
    ));
    if rans().all(|ran| ran.migrations.is_none()) {
        sheet.note(
            "moves by kind take root or kernel.perf_event_paranoid of 1 or less, and fewer of them a second than \
             kernel.perf_event_max_sample_rate",
        );
    } else if kinds.is_empty() {
        sheet.note(format!("no {turn} moved"));
    }
    Some(sheet)
}

/// Kinds of moves that are known of a run, and of which one has some.
fn kinds<'a>(rans: impl Iterator<Item = &'a Ran>) -> Vec<Kind> {
    let known: Vec<_> = rans.filter_map(|ran| ran.migrations).collect();
    let has = |kind: Kind| {
        let mut counts = known.iter().flat_map(model::placement::Migrations::each);
        counts.any(|(of, count)| of == kind && count > 0)
    };
    let kinds = Kind::KNOWN.into_iter().chain([Kind::Unknown]);
    kinds.filter(|&kind| has(kind)).collect()
}

fn percent(share: f64) -> String {
    number(share * 100.0)
}

/// The share of a CPU in the time of an arm; `None` where that is not known.
fn share(arm: &Arm, cpu: u32) -> Option<f64> {
    let shares = shares(arm);
    (!shares.is_empty()).then(|| shares.get(&cpu).copied().unwrap_or_default())
}

/// CPUs with their shares, the largest first.
fn falling(arm: &Arm) -> Vec<(u32, f64)> {
    let mut falling: Vec<(u32, f64)> = shares(arm).into_iter().collect();
    falling.sort_by(|one, other| other.1.total_cmp(&one.1));
    falling
}

/// How many of them have most of the time.
fn enough(falling: &[(u32, f64)]) -> Option<usize> {
    let mut sum = 0.0;
    let is_enough = |(_, share): &(u32, f64)| {
        sum += share;
        sum >= MOSTLY
    };
    falling.iter().position(is_enough).map(|place| place + 1)
}

/// Where its runs ran, as far as that is known.
fn rans(arm: &Arm) -> impl Iterator<Item = &Ran> {
    arm.runs.iter().filter_map(|run| run.ran.as_ref())
}

/// Of all runs together; empty where it is not known.
fn shares(arm: &Arm) -> BTreeMap<u32, f64> {
    let mut seconds: BTreeMap<u32, f64> = BTreeMap::new();
    for (&cpu, &time) in rans(arm).flat_map(|ran| &ran.cpu_s) {
        *seconds.entry(cpu).or_default() += time;
    }
    let all: f64 = seconds.values().sum();
    if all > 0.0 {
        seconds.values_mut().for_each(|time| *time /= all);
        seconds
    } else {
        BTreeMap::new()
    }
}

fn median(arm: &Arm, of: impl Fn(&Run) -> Option<f64>) -> String {
    let values: Vec<f64> = arm.counted().filter_map(of).collect();
    or(stats::median(&values).map(number), "-")
}

/// From the least to the most: waits of short runs are all or nothing, and a median of those is a fact of none.
fn range(arm: &Arm, of: impl Fn(&Run) -> Option<f64>) -> String {
    let values: Vec<f64> = arm.counted().filter_map(of).collect();
    let [least, most] = ends(&values).map(number);
    match values.is_empty() {
        true => "-".to_owned(),
        false if least == most => most,
        false => format!("{least} to {most}"),
    }
}

/// For each CPU second.
fn moves(run: &Run, kind: Kind) -> Option<f64> {
    let ran = run.ran.as_ref()?;
    let counts = ran.migrations?.each();
    let (_, count) = counts.into_iter().find(|(of, _)| *of == kind)?;
    per_cpu_second(ran, count as f64)
}

/// In percent of the CPU time.
fn waited(run: &Run) -> Option<f64> {
    let ran = run.ran.as_ref()?;
    per_cpu_second(ran, ran.queued_s? * 100.0)
}

fn per_cpu_second(ran: &Ran, value: f64) -> Option<f64> {
    let all: f64 = ran.cpu_s.values().sum();
    (all > 0.0).then(|| value / all)
}

/// Values of one run by name, for CSV.
pub(super) fn values(run: &Run) -> Vec<(String, f64)> {
    let Some(ran) = &run.ran else { return Vec::new() };
    let cpus = ran.cpu_s.iter().map(|(cpu, seconds)| (format!("cpu-{cpu}"), *seconds));
    let moves = ran.migrations.iter().flat_map(model::placement::Migrations::each);
    let moves = moves.map(|(kind, count)| (format!("moves-{}", short(kind).replace(' ', "-")), count as f64));
    let queued = ran.queued_s.map(|seconds| ("queued".to_owned(), seconds));
    cpus.chain(moves).chain(queued).collect()
}

fn short(kind: Kind) -> &'static str {
    match kind {
        Kind::SmtSibling => "sibling",
        Kind::SameLlc => "same LLC",
        Kind::OtherCore => "core",
        Kind::OtherSocket => "socket",
        Kind::OtherNode => "node",
        Kind::Unknown => "other",
    }
}

#[cfg(test)]
mod tests {
    use model::compare::{Ran, Verdict};
    use model::placement::Migrations;

    use super::super::tests::compare;
    use super::{sheet, values};

    #[test]
    fn each_arm_has_its_share_of_time_on_each_cpu_its_moves_and_its_waits() {
        let mut made = compare(Verdict::Better);
        assert!(sheet(&made).is_none());
        for run in made.arms.iter_mut().flat_map(|arm| &mut arm.runs) {
            run.ran = Some(Ran {
                cpu_s: [(0, 1.5), (3, 0.5)].into(),
                migrations: Some(Migrations {
                    other_node: 4,
                    ..Migrations::default()
                }),
                queued_s: Some(0.5),
            });
        }
        made.arms[1].runs[0].ran = None;
        let sheet = sheet(&made).expect("where they ran");
        let heads: Vec<&str> = sheet.columns.iter().map(|column| column.name.as_str()).collect();
        assert_eq!(heads, ["arm", "CPU 0 %", "CPU 3 %", "node moves", "waited %"]);
        assert_eq!(sheet.rows[1], ["thp", "75", "25", "2", "25"]);
        let values = values(&made.arms[0].runs[0]);
        assert!(values.contains(&("moves-node".to_owned(), 4.0)) && values.contains(&("cpu-3".to_owned(), 0.5)));
    }

    #[test]
    fn on_many_cpus_it_is_said_where_most_of_the_time_was() {
        let mut made = compare(Verdict::Better);
        let cpu_s: std::collections::BTreeMap<u32, f64> =
            (0..20).map(|cpu| (cpu, if cpu == 7 { 19.0 } else { 1.0 })).collect();
        made.arms[0].runs[0].ran = Some(Ran {
            cpu_s,
            ..Ran::default()
        });
        let sheet = sheet(&made).expect("where they ran");
        assert_eq!(sheet.rows[0][..4], ["base", "7", "50", "17"]);
        assert!(sheet.notes.iter().any(|note| note.contains("perf_event_paranoid")));
    }
}
