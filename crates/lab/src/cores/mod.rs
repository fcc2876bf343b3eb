//! CPUs in pairs: how long a cache line travels between them, and whether they are siblings on one core.

mod contend;
mod ping;

use std::time::{Duration, Instant};

use model::Doubt;
use model::cores::{Cores, Pair, Relation};

use crate::{Progress, stats};

/// What to look at.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The CPUs; every pair of them is measured.
    pub cpus: Vec<u32>,
    /// Rounds of each measurement per pair; more narrow the intervals.
    pub rounds: u32,
}

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The user stopped it.
    #[error("interrupted")]
    Interrupted,
    /// Fewer than two CPUs.
    #[error("{0} CPU was named; a pair needs two (`--cpus 0,1`)")]
    TooFew(usize),
    /// A thread could not be kept on its CPU.
    #[error("a thread could not stay on CPU {cpu}: {source}")]
    Pin {
        /// The CPU.
        cpu: u32,
        /// The kernel's answer.
        source: std::io::Error,
    },
}

/// Longest that one round may take: CPUs that are not run at the same time would wait for one another for ever.
const PATIENCE: Duration = Duration::from_millis(200);

/// Measures every pair. A pair that could not be measured is a doubt, not an error.
///
/// # Errors
/// [`Error`] says why nothing was measured.
pub fn run(spec: &Spec, progress: &mut dyn Progress, stop: &dyn Fn() -> bool) -> Result<(Cores, Vec<Doubt>), Error> {
    let begun = Instant::now();
    let mut cpus = spec.cpus.clone();
    cpus.sort_unstable();
    cpus.dedup();
    if cpus.len() < 2 {
        return Err(Error::TooFew(cpus.len()));
    }
    let wanted: Vec<[u32; 2]> = pairs_of(&cpus).collect();
    let mut pairs = Vec::with_capacity(wanted.len());
    for (done, &pair) in wanted.iter().enumerate() {
        if stop() {
            return Err(Error::Interrupted);
        }
        let share = done as f64 / wanted.len() as f64;
        let left = if done > 0 {
            begun.elapsed().mul_f64(1.0 / share - 1.0)
        } else {
            Duration::ZERO
        };
        progress.step(share, left, &format!("CPUs {} and {}", pair[0], pair[1]));
        pairs.push(measure(pair, spec.rounds)?);
    }
    let doubts = pairs.iter().filter_map(doubt).collect();
    let cores = Cores {
        cpus,
        pairs,
        seconds: begun.elapsed().as_secs_f64(),
    };
    Ok((cores, doubts))
}

fn pairs_of(cpus: &[u32]) -> impl Iterator<Item = [u32; 2]> + '_ {
    cpus.iter()
        .enumerate()
        .flat_map(|(at, &one)| cpus[at + 1..].iter().map(move |&two| [one, two]))
}

fn measure(cpus: [u32; 2], rounds: u32) -> Result<Pair, Error> {
    let trips = ping::round_trips(cpus, rounds)?;
    let slowdown = stats::estimate(&contend::slowdowns(cpus, rounds)?);
    Ok(Pair {
        cpus,
        round_trip_ns: stats::estimate(&trips),
        slowdown,
        relation: Relation::of(slowdown),
    })
}

fn doubt(pair: &Pair) -> Option<Doubt> {
    let [one, two] = pair.cpus;
    (pair.relation == Relation::Unknown).then(|| {
        let seen = pair
            .slowdown
            .map_or("they did not run at the same time".to_owned(), |slowdown| {
                format!("the slowdown is {:.2} to {:.2}", slowdown.low, slowdown.high)
            });
        Doubt::new(
            "cores-unclear",
            format!(
                "whether CPUs {one} and {two} share a core is not clear: {seen}; measure again on a quieter machine"
            ),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::{Error, Spec, pairs_of, run};

    fn allowed() -> Vec<u32> {
        let set = rustix::thread::sched_getaffinity(None).expect("affinity");
        (0..1024).filter(|&cpu| set.is_set(cpu)).map(|cpu| cpu as u32).collect()
    }

    #[test]
    fn each_pair_is_looked_at_once() {
        assert_eq!(pairs_of(&[0, 1, 4]).collect::<Vec<_>>(), [[0, 1], [0, 4], [1, 4]]);
    }

    #[test]
    fn one_cpu_is_no_pair_and_an_impossible_one_is_named() {
        let spec = |cpus: &[u32]| Spec {
            cpus: cpus.to_vec(),
            rounds: 1,
        };
        assert!(matches!(run(&spec(&[0, 0]), &mut (), &|| false), Err(Error::TooFew(1))));
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
        // Light takes a nanosecond for a foot; whatever the machine does meanwhile only adds.
        assert!(pair.round_trip_ns.is_none_or(|ns| ns.median > 1.0), "{pair:?}");
        assert!(pair.slowdown.is_none_or(|slowdown| slowdown.median > 0.2), "{pair:?}");
    }
}
