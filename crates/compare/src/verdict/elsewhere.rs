//! Did an arm run on other CPUs than the reference? Then a difference may be that of the CPUs. Pure.

use std::collections::BTreeMap;

use host::CpuList;
use model::Warning;
use model::compare::Arm;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// The part of the CPU time that has to be elsewhere to be worth a word.
const DIFFERENT: f64 = 0.2;
/// The scheduler puts a thread here or there by chance: warnings that are false, of all comparisons.
const BY_CHANCE: f64 = 0.01;
/// How often runs of the same block change their arms, to see what chance does.
const EXCHANGES: u32 = 2000;

/// The share of the CPU time on each CPU.
type Shares = BTreeMap<u32, f64>;

/// One for each arm that ran elsewhere, of arms with so many slices of each process. Arms that had to (`--place`) are left out.
pub(crate) fn warnings(arms: &[Arm], per_start: u32) -> impl Iterator<Item = Warning> {
    let limit = BY_CHANCE / arms.len().saturating_sub(1).max(1) as f64;
    arms.iter().skip(1).filter_map(move |arm| {
        let reference = arms.first().filter(|reference| reference.place == arm.place)?;
        let blocks = blocks(reference, arm, per_start.max(1));
        let own: Vec<usize> = vec![0; blocks.len()];
        let apart = Apart::of(&blocks, &own)?;
        let is_elsewhere = apart.distance() >= DIFFERENT && by_chance(&blocks, apart.distance()) < limit;
        is_elsewhere.then(|| warning(reference, arm, &apart))
    })
}

fn warning(reference: &Arm, arm: &Arm, apart: &Apart) -> Warning {
    let cpus: CpuList = apart.more().collect();
    let share = |of: usize| apart.more().map(move |cpu| apart.0[of].get(&cpu).unwrap_or(&0.0));
    let percent = |of: usize| 100.0 * share(of).sum::<f64>();
    let text = format!(
        "`{}` spent {:.0} % of its CPU time on CPUs {cpus}, `{}` {:.0} %: a difference between them may be one between these CPUs (--place \
         puts all arms on the same ones)",
        arm.name,
        percent(0),
        reference.name,
        percent(1)
    );
    Warning::new("different-places", text)
}

/// The shares of each block: of the arm first, then those of the reference. Slices of one process are one.
fn blocks(reference: &Arm, arm: &Arm, per_start: u32) -> Vec<Vec<Shares>> {
    let of = |arm: &Arm, again: Option<bool>| {
        let mut by_block: BTreeMap<u32, Vec<Shares>> = BTreeMap::new();
        for run in arm.counted().filter(|run| again.is_none_or(|again| run.again == again)) {
            if let Some(shares) = run.shares() {
                by_block.entry(run.block / per_start).or_default().push(shares);
            }
        }
        by_block
    };
    let [own, first, second] = [of(arm, None), of(reference, Some(false)), of(reference, Some(true))];
    let block = |(block, own): (&u32, &Vec<Shares>)| {
        let peers = [&first, &second].into_iter().filter_map(|of| of.get(block));
        let all: Vec<Shares> = [own].into_iter().chain(peers).map(mean).collect();
        (all.len() > 1).then_some(all)
    };
    own.iter().filter_map(block).collect()
}

fn mean<'a>(shares: impl IntoIterator<Item = &'a Shares>) -> Shares {
    let (mut sum, mut count) = (Shares::new(), 0.0);
    for shares in shares {
        count += 1.0;
        for (&cpu, share) in shares {
            *sum.entry(cpu).or_default() += share;
        }
    }
    sum.values_mut().for_each(|share| *share /= count);
    sum
}

/// Mean shares of the chosen run of each block, and of its peers.
struct Apart([Shares; 2]);

impl Apart {
    fn of(blocks: &[Vec<Shares>], chosen: &[usize]) -> Option<Self> {
        let own = mean(blocks.iter().zip(chosen).map(|(block, &chosen)| &block[chosen]));
        let peers: Vec<Shares> = blocks
            .iter()
            .zip(chosen)
            .map(|(block, &chosen)| mean(block[..chosen].iter().chain(&block[chosen + 1..])))
            .collect();
        (!blocks.is_empty()).then(|| Self([own, mean(&peers)]))
    }

    /// CPUs on which the chosen runs spent more of their time.
    fn more(&self) -> impl Iterator<Item = u32> {
        let Self([own, peers]) = self;
        let is_more = |(cpu, share): &(&u32, &f64)| **share > *peers.get(cpu).unwrap_or(&0.0);
        own.iter().filter(is_more).map(|(&cpu, _)| cpu)
    }

    /// The part of the time that is elsewhere: 0 of the same places, 1 of other ones.
    fn distance(&self) -> f64 {
        let Self([own, peers]) = self;
        let more = |cpu: u32| own.get(&cpu).unwrap_or(&0.0) - peers.get(&cpu).unwrap_or(&0.0);
        self.more().map(more).sum()
    }
}

/// How often chance alone gets as far: within a block any of the runs could have been the arm's.
fn by_chance(blocks: &[Vec<Shares>], distance: f64) -> f64 {
    let mut random = Pcg64Mcg::seed_from_u64(1);
    let mut as_far = 1;
    for _ in 0..EXCHANGES {
        let chosen: Vec<usize> = blocks.iter().map(|block| random.random_range(0..block.len())).collect();
        let apart = Apart::of(blocks, &chosen).map_or(0.0, |apart| apart.distance());
        as_far += u32::from(apart >= distance - 1e-9);
    }
    f64::from(as_far) / f64::from(EXCHANGES + 1)
}

#[cfg(test)]
mod tests {
    use model::compare::{Arm, Ran, Run};
    use model::{Bytes, PageKind};

    use super::warnings;
    use crate::proof::effect;

    /// A run with this share of its time on CPU 1, and the rest on CPU 0.
    fn run(block: usize, again: bool, on_1: f64) -> Run {
        let ran = Ran {
            cpu_s: [(0, 1.0 - on_1), (1, on_1)].into(),
            ..Ran::default()
        };
        Run {
            block: block as u32,
            again,
            ran: Some(ran),
            ..Run::bare([], Ok([(PageKind::Base, Bytes::mib(64))].into_iter().collect()))
        }
    }

    fn arm(name: &str, mut runs: Vec<Run>) -> Arm {
        let (coverage, took_effect) = effect(Some(PageKind::Base), &mut runs, 0.5);
        Arm {
            name: name.to_owned(),
            technique: String::new(),
            kind: Some(PageKind::Base),
            place: None,
            took_effect,
            coverage,
            runs,
        }
    }

    /// Of the reference's first and second run of each block, and of the arm's.
    fn arms(shares: &[[f64; 3]]) -> [Arm; 2] {
        let of = |at: usize| {
            let runs = shares.iter().enumerate();
            runs.map(move |(block, shares)| run(block, at == 1, shares[at]))
        };
        [arm("base", of(0).chain(of(1)).collect()), arm("thp", of(2).collect())]
    }

    #[test]
    fn an_arm_on_another_cpu_than_the_reference_is_reported_with_both_shares() {
        let found: Vec<_> = warnings(&arms(&[[0.1, 0.2, 0.9]; 8]), 1).collect();
        let [warning] = &found[..] else { panic!("{found:?}") };
        assert_eq!(warning.code, "different-places");
        for part in ["`thp` spent 90 %", "CPUs 1,", "`base` 15 %"] {
            assert!(warning.text.contains(part), "{}", warning.text);
        }
    }

    #[test]
    fn runs_that_chance_puts_here_or_there_are_no_reason_to_warn() {
        let here_or_there = [
            [0.0, 1.0, 1.0],
            [1.0, 0.0, 1.0],
            [0.0, 0.0, 1.0],
            [1.0, 0.0, 0.0],
            [0.0, 1.0, 1.0],
            [0.0, 0.0, 0.0],
            [1.0, 0.0, 1.0],
            [0.0, 1.0, 0.0],
        ];
        assert_eq!(warnings(&arms(&here_or_there), 1).count(), 0);
        // Too few blocks show nothing.
        assert_eq!(warnings(&arms(&[[0.0, 0.0, 1.0]; 3]), 1).count(), 0);
        // Slices of one process share its place.
        assert_eq!(warnings(&arms(&[[0.0, 0.0, 1.0]; 8]), 4).count(), 0);
    }

    #[test]
    fn an_arm_that_had_to_run_elsewhere_is_not_reported_and_nor_is_one_of_which_nothing_is_known() {
        let mut there = arms(&[[0.0, 0.0, 1.0]; 8]);
        there[1].place = Some("pin=1".to_owned());
        assert_eq!(warnings(&there, 1).count(), 0);
        there[1].place = None;
        there[1].runs.iter_mut().for_each(|run| run.ran = None);
        assert_eq!(warnings(&there, 1).count(), 0);
    }
}
