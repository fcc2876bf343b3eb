//! Comparisons of a made process in place: what happens within a slice and what must not, and how the process is left.

use std::time::Duration;

use chase::counters::program::Event;
use host::{Source, Tree};
use model::collapse::Refused;
use model::compare::{Ended, Flip, Method, Metric, Restored, Verdict};
use model::{Backing, Bytes, PageKind, Unread};

use super::{Finished, Length, Pair, Sample, Subject, Whose, run};
use crate::flip::{Span, To};
use crate::live::server::Load;
use crate::metric::Asked;
use crate::score::{Counter, Mark};
use crate::threads::Threads;
use crate::{Error, Spec, simulated};

/// A process that does a tenth more with huge pages, on a clock of its own.
struct Made {
    now: Duration,
    /// Nanoseconds, each of which makes one instruction; and how many of these were reported.
    cpu: u64,
    counted: u64,
    ops: f64,
    to: To,
    /// Can it have huge pages?
    can: bool,
    /// Slices until it ends, or until the user has had enough.
    ends_after: usize,
    stopped_after: usize,
    slices: usize,
    /// Slices in which it gets no CPU, from the first on.
    without_cpu: usize,
    /// Huge pages come back on base pages within a slice, as a share of its memory.
    comes_back: u64,
    events: Vec<&'static str>,
    whose: Whose,
}

impl Made {
    fn new() -> Self {
        Self {
            now: Duration::ZERO,
            cpu: 0,
            counted: 0,
            ops: 0.0,
            to: To::Base,
            can: true,
            ends_after: usize::MAX,
            stopped_after: usize::MAX,
            slices: 0,
            without_cpu: 0,
            comes_back: 0,
            events: Vec::new(),
            whose: Whose::Found,
        }
    }

    fn large(&self) -> u64 {
        match self.to {
            To::Large => 1000,
            To::Base if self.events.last() == Some(&"sample") => self.comes_back,
            To::Base => 0,
        }
    }
}

impl Subject for Made {
    fn flip(&mut self, to: To) -> Result<Flip, Error> {
        self.events.push("flip");
        self.now += Duration::from_millis(700);
        if to == To::Large && !self.can {
            self.to = To::Base;
            let refused = Refused {
                error: "EINVAL".to_owned(),
                meaning: "switched off by prctl".to_owned(),
                pieces: 500,
            };
            return Ok(Flip {
                refused: vec![refused],
                ..Flip::default()
            });
        }
        self.to = to;
        Ok(Flip::default())
    }

    fn look(&mut self) -> Result<Backing, Unread> {
        let large = self.large();
        self.events.push("look");
        let kinds = [
            (PageKind::Base, Bytes::mib(1000 - large)),
            (PageKind::Thp, Bytes::mib(large)),
        ];
        Ok(kinds.into_iter().collect())
    }

    fn sample(&mut self, counters: &[Counter], _: &str) -> Result<Sample, Error> {
        self.events.push("sample");
        if self.slices >= self.ends_after {
            return Err(Error::InPlace("nobody answers".to_owned()));
        }
        let counted = std::mem::replace(&mut self.counted, self.cpu);
        let machine = Tree::default().file("/proc/7/task/7/comm", "made\n");
        let machine = machine.file("/proc/7/schedstat", format!("{} 0 0\n", self.cpu));
        let times = Threads::All.times(&Source::from_tree("made", machine), 7);
        Ok(Sample {
            at: self.now.as_secs_f64(),
            mark: Mark {
                counts: counters.iter().map(|_| self.ops).collect(),
                times: times.expect("a thread"),
            },
            stat: None,
            counted: vec![(Event::Instructions, (self.cpu - counted) as f64)],
            ran: None,
        })
    }

    fn live_on(&mut self, time: Duration) -> Result<(), Error> {
        self.now += time;
        if time == super::SETTLE {
            self.events.push("settle");
            return Ok(());
        }
        self.events.push("slice");
        self.slices += 1;
        if self.slices > self.stopped_after {
            return Err(Error::Interrupted);
        }
        if self.slices <= self.without_cpu {
            return Ok(());
        }
        let rate = if self.to == To::Large { 1100.0 } else { 1000.0 };
        // A wobble without an effect behind it, so that the noise is not zero.
        let wobble = 1.0 + 0.001 * (self.slices * 7 % 5) as f64;
        self.cpu += time.as_nanos() as u64;
        self.ops += rate * wobble * time.as_secs_f64();
        Ok(())
    }

    fn load(&mut self, _: &str) -> Result<Load, Error> {
        self.events.push("slice");
        let us = if self.to == To::Large { 600 } else { 5000 };
        self.slices += 1;
        Ok(Load {
            wall: Duration::from_secs(1),
            output: format!("fork_us:{}", us + self.slices * 7 % 5),
        })
    }

    fn restore(&mut self) -> Result<Restored, Error> {
        self.events.push("restore");
        self.to = To::Base;
        Ok(Restored {
            before: [(PageKind::Base, Bytes::mib(1000))].into_iter().collect(),
            after: self.look().into(),
            wrong: 0,
            seconds: 0.5,
        })
    }

    fn has_ended(&self, _: Duration) -> bool {
        self.slices >= self.ends_after
    }

    fn gone(&self, arm: &str) -> Error {
        Error::Gone {
            arm: arm.to_owned(),
            status: "0".to_owned(),
            said: String::new(),
        }
    }

    fn pmu_note(&self) -> Option<String> {
        Some("user mode only".to_owned())
    }

    fn elapsed(&self) -> Duration {
        self.now
    }
}

fn spec(blocks: u32) -> Spec {
    let asked: Asked = "ops=([0-9]+),from=/x".parse().expect("a metric");
    Spec {
        most: blocks,
        ..simulated::spec(Method::Flip, &[PageKind::Base, PageKind::Thp], asked.wanted)
    }
}

fn compare(spec: &Spec, metric: &str, length: Length, made: &mut Made) -> Finished {
    let asked = vec![metric.parse().expect("a metric")];
    let pair = Pair {
        arms: vec![To::Base, To::Large],
        asked,
        length,
        whose: made.whose,
        range: Span::Anon,
        threads: Threads::All,
    };
    run(spec, Vec::new(), &pair, made, &mut (), &())
}

fn counted(spec: &Spec, made: &mut Made) -> Finished {
    compare(spec, "ops=([0-9]+),from=/x", Length::Time(Duration::from_secs(2)), made)
}

#[test]
fn a_process_that_does_more_with_large_pages_is_better_and_has_its_own_control() {
    let mut made = Made::new();
    let finished = counted(&spec(8), &mut made);
    let (compare, warnings) = finished.compared.expect("slices");
    let judged = &compare.verdicts[0];
    assert_eq!(judged.verdict, Verdict::Better, "{judged:?} {warnings:?}");
    assert!((1.09..1.11).contains(&judged.ratio.expect("a ratio")), "{judged:?}");
    assert!(
        compare.controls[0]
            .ratio
            .is_some_and(|ratio| (0.99..1.01).contains(&ratio))
    );
    assert!(compare.restored.is_some());
    // A rate per CPU-second, not a count.
    assert!(
        compare.arms[0]
            .values("ops")
            .iter()
            .all(|rate| (999.0..1006.0).contains(rate))
    );
}

#[test]
fn within_a_slice_nothing_happens_but_the_process() {
    let mut made = Made::new();
    counted(&spec(6), &mut made).compared.expect("slices");
    let slice = ["flip", "settle", "look", "sample", "slice", "sample", "look"];
    assert_eq!(made.events[..4], ["flip", "look", "flip", "look"], "the trial");
    let slices = made.events[4..].chunks(slice.len());
    let whole = slices.clone().take(18).filter(|events| **events == slice).count();
    assert_eq!((whole, made.events[4 + 18 * 7..].first()), (18, Some(&"restore")));
}

#[test]
fn a_slice_goes_on_until_the_process_has_had_a_cpu_but_not_for_long() {
    let short = |without_cpu: usize| {
        let mut made = Made {
            without_cpu,
            ..Made::new()
        };
        let length = Length::Time(Duration::from_millis(100));
        let finished = compare(&spec(6), "ops=([0-9]+),from=/x", length, &mut made);
        (finished.compared, made.slices)
    };
    let (compared, slices) = short(5);
    let (compare, _) = compared.expect("slices");
    // The first slice took six times as long, and what it is worth is the same.
    assert_eq!(slices, 18 + 5);
    let rates = compare.arms.iter().flat_map(|arm| arm.values("ops"));
    assert!(rates.into_iter().all(|rate| (999.0..1106.0).contains(&rate)));
    let (compared, slices) = short(usize::MAX);
    let error = compared.expect_err("no CPU time").to_string();
    assert!(
        error.contains("used no CPU time") && (20..25).contains(&slices),
        "{error} {slices}"
    );
}

#[test]
fn what_is_counted_is_told_of_each_slice_by_itself() {
    let (compare, _) = counted(&spec(6), &mut Made::new()).compared.expect("slices");
    let instructions = compare.arms[0].values(Metric::Instructions.name());
    assert_eq!(instructions, [2e9; 12]);
    assert_eq!(compare.pmu_note.as_deref(), Some("user mode only"));
}

#[test]
fn what_a_load_prints_is_the_score_as_it_is() {
    let mut made = Made::new();
    let mut spec = spec(6);
    let metric = "fork=fork_us:([0-9]+),lower";
    spec.wanted = vec![metric.parse::<Asked>().expect("a metric").wanted];
    let finished = compare(&spec, metric, Length::Load("bgsave".to_owned()), &mut made);
    let judged = finished.compared.expect("slices").0.verdicts.remove(0);
    assert_eq!(judged.verdict, Verdict::Better);
    assert!(
        judged.ratio.is_some_and(|ratio| (8.0..8.6).contains(&ratio)),
        "{judged:?}"
    );
}

#[test]
fn an_arm_that_cannot_take_effect_is_told_with_its_reason_after_one_block() {
    let mut made = Made::new();
    made.can = false;
    let (compare, _) = counted(&spec(30), &mut made).compared.expect("slices");
    let judged = &compare.verdicts[0];
    assert_eq!((judged.verdict, compare.design.blocks), (Verdict::NotInEffect, 1));
    let notes = &compare.arms[1].runs[0].notes;
    assert_eq!(
        notes.last().map(String::as_str),
        Some("500 pieces could not be turned: EINVAL: switched off by prctl")
    );
}

#[test]
fn pages_that_come_back_within_base_slices_are_never_no_difference() {
    let mut made = Made::new();
    made.comes_back = 500;
    let (compare, warnings) = counted(&spec(6), &mut made).compared.expect("slices");
    assert_eq!(compare.verdicts[0].verdict, Verdict::Unknown, "{:?}", compare.verdicts);
    assert!(
        warnings.iter().any(|warning| warning.code == "pages-changed"),
        "{warnings:?}"
    );
    // A few of them leave the arm what it is, with a warning.
    let mut made = Made::new();
    made.comes_back = 30;
    let (compare, warnings) = counted(&spec(6), &mut made).compared.expect("slices");
    assert_eq!(compare.verdicts[0].verdict, Verdict::Better, "{:?}", compare.verdicts);
    assert!(
        warnings.iter().any(|warning| warning.code == "pages-changed"),
        "{warnings:?}"
    );
}

#[test]
fn the_process_gets_its_pages_back_whatever_ends_the_comparison() {
    let mut made = Made::new();
    made.stopped_after = 10;
    let (compare, _) = counted(&spec(8), &mut made).compared.expect("three blocks");
    assert_eq!((compare.design.ended, compare.design.blocks), (Ended::Interrupted, 3));
    assert_eq!(made.events.iter().filter(|event| **event == "restore").count(), 1);
    let mut made = Made::new();
    made.stopped_after = 1;
    let finished = counted(&spec(8), &mut made);
    assert!(matches!(finished.compared, Err(Error::Interrupted)));
    assert!(finished.restored.is_some_and(|restored| restored.is_ok()));
}

#[test]
fn a_process_of_its_own_tells_its_counter_by_what_it_prints_and_needs_no_pages_back() {
    let mut made = Made::new();
    made.whose = Whose::Own;
    let finished = compare(
        &spec(8),
        "ops=([0-9]+)",
        Length::Time(Duration::from_secs(2)),
        &mut made,
    );
    let (compare, _) = finished.compared.expect("slices");
    assert_eq!(compare.verdicts[0].verdict, Verdict::Better);
    assert!(finished.restored.is_none() && compare.restored.is_none() && !made.events.contains(&"restore"));
}

#[test]
fn if_the_process_ends_what_was_finished_is_judged_and_it_is_said() {
    let mut made = Made::new();
    made.ends_after = 25;
    let finished = counted(&spec(12), &mut made);
    let (compare, warnings) = finished.compared.expect("eight blocks");
    assert_eq!((compare.design.ended, compare.design.blocks), (Ended::ProgramEnded, 8));
    assert_eq!(compare.verdicts[0].verdict, Verdict::Better);
    assert!(warnings.iter().any(|warning| warning.code == "program-ended"));
    assert!(finished.restored.is_none() && compare.restored.is_none());
    let mut made = Made::new();
    made.ends_after = 1;
    assert!(matches!(
        counted(&spec(12), &mut made).compared,
        Err(Error::Gone { .. })
    ));
}
