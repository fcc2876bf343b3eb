//! CPUs in pairs: how long a cache line travels between them, and whether they are siblings on one core.

mod ping;

use std::time::Instant;

use model::cores::{Cores, Pair, Relation};
use model::{Progress, Warning, time_left};

use crate::contend::{self, Load};
use crate::{Error, distinct, pairs_of};

#[derive(Clone, Debug)]
pub struct Spec {
    /// The CPUs; every pair of them is measured.
    pub cpus: Vec<u32>,
    /// Rounds of each measurement per pair, in nine visits; more narrow the intervals.
    pub rounds: u32,
}

/// Visits to each pair, among which its rounds are shared out: all pairs are visited in turn, so that a change during the run shows
/// as a difference between visits. With nine of them one that was disturbed does not widen the interval.
const VISITS: u32 = 9;

/// Measures every pair. A pair that could not be measured is a warning, not an error.
///
/// # Errors
/// [`Error`] says why nothing was measured.
pub fn run(spec: &Spec, progress: &mut dyn Progress, stop: &dyn Fn() -> bool) -> Result<(Cores, Vec<Warning>), Error> {
    let begun = Instant::now();
    let cpus = distinct(spec.cpus.iter().copied());
    if cpus.len() < 2 {
        let count = cpus.len();
        return Err(Error::Spec(format!(
            "{count} CPU was named; a pair needs two (`--cpus 0,1`)"
        )));
    }
    let wanted: Vec<[u32; 2]> = pairs_of(&cpus).collect();
    let mut taken = vec![Taken::default(); wanted.len()];
    let visits = VISITS as usize * wanted.len();
    for (done, at) in (0..VISITS).flat_map(|_| 0..wanted.len()).enumerate() {
        Error::if_stopped(stop)?;
        let [one, two] = wanted[at];
        let share = done as f64 / visits as f64;
        let left = time_left(begun.elapsed(), share);
        progress.step(share, left, &format!("CPUs {one} and {two}"));
        taken[at].visit([one, two], spec.rounds.div_ceil(VISITS).max(1))?;
    }
    let pairs: Vec<Pair> = wanted
        .iter()
        .zip(&taken)
        .map(|(&cpus, taken)| taken.publish(cpus))
        .collect();
    let warnings = pairs.iter().filter_map(warning).collect();
    let cores = Cores {
        cpus,
        pairs,
        seconds: begun.elapsed().as_secs_f64(),
    };
    Ok((cores, warnings))
}

/// What the visits to one pair gave, visit by visit.
#[derive(Clone, Default)]
struct Taken {
    trips: Vec<Vec<f64>>,
    slowdowns: Vec<Vec<f64>>,
}

impl Taken {
    fn visit(&mut self, cpus: [u32; 2], rounds: u32) -> Result<(), Error> {
        self.trips.push(ping::round_trips(cpus, rounds)?);
        // Without pause: on one core multiplications halve each other, on two they do not notice.
        let [mut own, mut beside] = [Load::multiply(), Load::multiply()];
        let rounds = contend::beside(cpus, rounds, [&mut own, &mut beside])?;
        let slowdowns = rounds.into_iter().map(|round| 1.0 / round.share());
        self.slowdowns.push(slowdowns.collect());
        Ok(())
    }

    fn publish(&self, cpus: [u32; 2]) -> Pair {
        let slowdown = stats::of_visits(&self.slowdowns);
        Pair {
            cpus,
            round_trip_ns: stats::of_visits(&self.trips),
            slowdown,
            relation: Relation::of(slowdown),
        }
    }
}

fn warning(pair: &Pair) -> Option<Warning> {
    let [one, two] = pair.cpus;
    (pair.relation == Relation::Unknown).then(|| {
        let seen = pair
            .slowdown
            .map_or("they did not run at the same time".to_owned(), |slowdown| {
                format!("the slowdown is {:.2} to {:.2}", slowdown.low, slowdown.high)
            });
        Warning::new(
            "cores-unclear",
            format!(
                "whether CPUs {one} and {two} share a core is not clear: {seen}; measure again on a quieter machine"
            ),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::{Error, Spec, Taken, run};
    use model::cores::Relation;

    fn allowed() -> Vec<u32> {
        let set = rustix::thread::sched_getaffinity(None).expect("affinity");
        (0..1024).filter(|&cpu| set.is_set(cpu)).map(|cpu| cpu as u32).collect()
    }

    #[test]
    fn each_pair_is_looked_at_once() {
        assert_eq!(
            crate::pairs_of(&[0, 1, 4]).collect::<Vec<_>>(),
            [[0, 1], [0, 4], [1, 4]]
        );
    }

    #[test]
    fn visits_that_differ_widen_the_interval_however_many_rounds_each_has() {
        let mut taken = Taken::default();
        for visit in 0..9 {
            let level = 1.0 + 0.1 * f64::from(visit);
            taken.trips.push(vec![level; 100]);
            taken.slowdowns.push(vec![level; 100]);
        }
        let pair = taken.publish([0, 1]);
        let slowdown = pair.slowdown.expect("visits");
        assert!(slowdown.low < 1.15 && slowdown.high > 1.65, "{slowdown:?}");
        assert_eq!((slowdown.samples, pair.relation), (900, Relation::Unknown));
        assert_eq!(Taken::default().publish([0, 1]).relation, Relation::Unknown);
    }

    #[test]
    fn one_cpu_is_no_pair_and_an_impossible_one_is_named() {
        let spec = |cpus: &[u32]| Spec {
            cpus: cpus.to_vec(),
            rounds: 1,
        };
        assert!(matches!(run(&spec(&[0, 0]), &mut (), &|| false), Err(Error::Spec(_))));
        let error = run(&spec(&[1022, 1023]), &mut (), &|| false).expect_err("no such CPUs");
        assert!(error.to_string().contains("CPU 102"), "{error}");
        assert!(matches!(
            run(&spec(&[0, 1]), &mut (), &|| true),
            Err(Error::Interrupted)
        ));
    }

    #[test]
    fn two_cpus_of_this_machine_answer() {
        let cpus: Vec<u32> = allowed().into_iter().take(2).collect();
        if cpus.len() < 2 {
            #[allow(clippy::print_stderr)]
            {
                testing::skipped("this process may use one CPU only");
            }
            return;
        }
        let spec = Spec { cpus, rounds: 8 };
        let (cores, _) = run(&spec, &mut (), &|| false).expect("two allowed CPUs");
        assert_eq!(cores.pairs.len(), 1);
        let pair = &cores.pairs[0];
        // Light takes a nanosecond for a foot; whatever else the machine does only adds.
        assert!(pair.round_trip_ns.is_none_or(|ns| ns.median > 1.0), "{pair:?}");
        assert!(pair.slowdown.is_none_or(|slowdown| slowdown.median > 0.2), "{pair:?}");
    }
}
