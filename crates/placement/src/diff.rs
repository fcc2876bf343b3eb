//! What differs between recordings: throughput split into CPU share and efficiency, with moves and locality beside it. Pure.

use model::Envelope;
use model::placement::{Caveat, Diff, End, Kind, Part, Quantity, Recording, Side};

/// What a recording comes to, given its work; `None` if it is not known.
type Value = fn(&Recording, f64) -> Option<f64>;

/// Every quantity, in the order of a result.
const QUANTITIES: [(Quantity, Value); 10] = [
    (Quantity::Throughput, |run, work| Some(work / run.seconds)),
    (Quantity::CpuShare, |run, _| Some(run.cpus_used())),
    (Quantity::Efficiency, |run, work| Some(work / run.total.cpu())),
    (Quantity::SiblingMoves, |run, _| Some(moves(run, &[Kind::SmtSibling]))),
    (Quantity::NearMoves, |run, _| {
        Some(moves(run, &[Kind::SameLlc, Kind::OtherCore]))
    }),
    (Quantity::FarMoves, |run, _| {
        Some(moves(run, &[Kind::OtherSocket, Kind::OtherNode]))
    }),
    (Quantity::Preemptions, |run, _| {
        Some(run.total.preemptions? as f64 / run.total.cpu())
    }),
    (Quantity::PreemptedWait, |run, _| {
        Some(run.total.preempted_s? / run.total.cpu())
    }),
    (Quantity::MainNode, |run, _| {
        run.node_shares().into_values().reduce(f64::max)
    }),
    (Quantity::Locality, |run, _| run.locality()),
];

/// Recordings of one side with their files, and the work of each, if it was given.
pub struct Runs {
    pub recordings: Vec<(String, Envelope<Recording>)>,
    /// As many as there are recordings, or none.
    pub work: Vec<f64>,
}

/// The second side against the first.
pub fn diff(sides: &[Runs; 2]) -> Diff {
    let part = |(what, value): (Quantity, Value)| {
        let values = sides.each_ref().map(|runs| runs.values(value));
        let [under, over] = &values;
        // Without an interval where there is one run: the ratio of the two is what there is.
        let both = |over: &Vec<f64>, under: &Vec<f64>| {
            let count = over.len().min(under.len());
            match (count, over.first(), under.first()) {
                (1, Some(over), Some(under)) if *under > 0.0 && *over > 0.0 => stats::estimate(&[over / under]),
                _ => stats::ratio(over, under, 1),
            }
        };
        let median = |values: &Option<Vec<f64>>| stats::median(values.as_deref()?);
        Part {
            what,
            ratio: over
                .as_ref()
                .zip(under.as_ref())
                .and_then(|(over, under)| both(over, under)),
            values: [median(under), median(over)],
        }
    };
    let parts = QUANTITIES.into_iter().map(part);
    Diff {
        parts: parts.filter(|part| part.values != [None, None]).collect(),
        sides: sides.each_ref().map(Runs::side),
        caveats: caveats(sides),
    }
}

impl Runs {
    fn all(&self) -> impl Iterator<Item = &Recording> {
        self.recordings.iter().map(|(_, result)| &result.data)
    }

    fn side(&self) -> Side {
        Side {
            files: self.recordings.iter().map(|(file, _)| file.clone()).collect(),
            name: self
                .all()
                .next()
                .map_or_else(String::new, |recording| recording.target.name.clone()),
            work: self.work.clone(),
        }
    }

    /// One of each recording; `None` if it is not known of one of them.
    fn values(&self, value: Value) -> Option<Vec<f64>> {
        let of = |(place, recording): (usize, &Recording)| {
            let work = self.work.get(place).copied().unwrap_or(1.0);
            value(recording, work).filter(|value| value.is_finite())
        };
        self.all().enumerate().map(of).collect()
    }

    fn is_whole(&self) -> bool {
        self.all().all(|recording| recording.end == End::Exited(0))
    }
}

/// Moves of these kinds for each CPU second.
fn moves(recording: &Recording, kinds: &[Kind]) -> f64 {
    let each = recording.total.migrations.each().into_iter();
    let counts = each
        .filter(|(kind, _)| kinds.contains(kind))
        .map(|(_, count)| count as f64);
    counts.sum::<f64>() / recording.total.cpu()
}

fn caveats(sides: &[Runs; 2]) -> Vec<Caveat> {
    let results = || {
        sides
            .iter()
            .flat_map(|runs| runs.recordings.iter().map(|(_, result)| result))
    };
    let differ = |of: &dyn Fn(&Envelope<Recording>) -> String| {
        let mut all: Vec<String> = results().map(of).collect();
        all.dedup();
        all.len() > 1
    };
    let has_work = sides.iter().all(|runs| !runs.work.is_empty());
    let is_whole = sides.iter().all(Runs::is_whole);
    let is_incomplete = |result: &Envelope<Recording>| {
        let recording = &result.data;
        recording.missed.lost_records > 0 || recording.is_cut_off() || recording.end == End::SoFar
    };
    let machine = |result: &Envelope<Recording>| {
        format!(
            "{:?}",
            (&result.machine.cpu, &result.machine.kernel, &result.machine.cpus)
        )
    };
    [
        (differ(&machine), Caveat::OtherMachine),
        (
            differ(&|result| format!("{:?}", result.data.method)),
            Caveat::OtherMethod,
        ),
        (results().any(is_incomplete), Caveat::Incomplete),
        (sides.iter().any(|runs| runs.recordings.len() < 2), Caveat::OneRun),
        (!has_work && !is_whole, Caveat::UnknownWork),
        (!has_work && is_whole, Caveat::SameWork),
        (true, Caveat::NotSeparated),
    ]
    .into_iter()
    .filter_map(|(holds, caveat)| holds.then_some(caveat))
    .collect()
}

#[cfg(test)]
#[path = "diff_tests.rs"]
mod tests;
