//! From the readings at both ends of a slice to its score. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use chase::counters::program::Event;
use host::processes::Stat;
use model::compare::{Flip, Metric, Ran};
use model::{Backing, PageKind, Unread};

use crate::Error;
use crate::live::server::Load;
use crate::metric::{self, Asked};
use crate::score::{self, Counter, Mark};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// Found running: it is left as it was found, and its output goes elsewhere.
    Found,
    /// The comparison's own: what it prints can be read, and it is ended.
    Own,
}

/// How long a slice is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Length {
    Time(Duration),
    /// As long as this command of the shell takes, which is run once in each.
    Load(String),
}

/// The process at one end of a slice.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Seconds on a clock.
    pub at: f64,
    /// Counters and CPU times.
    pub mark: Mark,
    /// The kernel's counts.
    pub stat: Option<Stat>,
    /// What was counted of the program since the sample before; empty if it is not counted.
    pub counted: Vec<(Event, f64)>,
    /// Where it ran since the sample before, if that is counted.
    pub ran: Option<Ran>,
}

impl Sample {
    /// Has no thread that counts used CPU time since?
    pub(super) fn has_used_none_since(&self, before: &Self) -> bool {
        self.mark.times.since(&before.mark.times).cpu.is_zero()
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Passed {
    pub(super) first: Sample,
    pub(super) last: Sample,
    /// The load that it lasted for.
    pub(super) load: Option<Load>,
}

/// Does what is asked make a score?
pub(super) fn check(asked: &[Asked], length: &Length, whose: Whose) -> Result<(), String> {
    let is_loaded = matches!(length, Length::Load(_));
    if asked.is_empty() {
        return Err(
            "nothing tells how much the process does: give a counter, such as --metric 'ops=ops ([0-9]+),from=FILE' \
                    (or from=cmd:COMMAND), or a load that is run in every slice (--load COMMAND)"
                .to_owned(),
        );
    }
    asked.iter().try_for_each(|asked| one(asked, is_loaded, whose))
}

fn one(asked: &Asked, is_loaded: bool, whose: Whose) -> Result<(), String> {
    let name = &asked.wanted.name;
    let is_built_in = asked.pattern.is_none();
    let fits_loads = [Metric::Wall.name(), Metric::Cpu.name()].contains(&name.as_str());
    if is_built_in && !fits_loads {
        return Err(format!(
            "--metric {name} is not judged here (write wall or cpu of --load, or NAME=REGEX,from=FILE|cmd:COMMAND)"
        ));
    }
    if is_built_in && !is_loaded {
        return Err(format!(
            "--metric {name} is as long as the slice: it takes a --load, which is run once in every slice"
        ));
    }
    if !is_built_in && asked.from.is_none() && !is_loaded && whose == Whose::Found {
        return Err(format!(
            "--metric {name}: nothing prints it (say where the counter is with from=FILE or from=cmd:COMMAND, or give a \
             --load that prints it)"
        ));
    }
    Ok(())
}

/// The score by every metric. A counter is a rate per CPU-second; what a load prints is taken as it is.
pub(super) fn metrics(
    arm: &str,
    asked: &[Asked],
    counters: &[Counter],
    passed: &Passed,
) -> Result<BTreeMap<String, f64>, Error> {
    let Passed { first, last, load } = passed;
    let score = score::between(arm, counters, &first.mark, &last.mark)?;
    let wall = load.as_ref().map_or(last.at - first.at, |load| load.wall.as_secs_f64());
    let mut metrics = score.rates;
    let mut add = |metric: Metric, value: f64| metrics.insert(metric.name().to_owned(), value);
    add(Metric::Wall, wall);
    add(Metric::Cpu, score.used.cpu.as_secs_f64());
    if let (Some(first), Some(last)) = (&first.stat, &last.stat) {
        for (metric, count) in [
            (Metric::Faults, Stat::faults as fn(&Stat) -> Option<u64>),
            (Metric::MajorFaults, Stat::major_faults),
        ] {
            if let (Some(first), Some(last)) = (count(first), count(last)) {
                add(metric, last.saturating_sub(first) as f64);
            }
        }
    }
    let printed = load.as_ref().map_or("", |load| load.output.as_str());
    for asked in asked.iter().filter(|asked| asked.from.is_none()) {
        if counters.iter().any(|counter| counter.wanted == asked.wanted) {
            continue;
        }
        let Some(pattern) = &asked.pattern else { continue };
        let name = &asked.wanted.name;
        let value = metric::find(pattern, printed).map_err(|why| Error::metric(arm, name, why))?;
        metrics.insert(name.clone(), value);
    }
    Ok(metrics)
}

/// The look at which less was on the arm's pages: it stands for the slice.
pub(super) fn worse(
    kind: PageKind,
    before: Result<Backing, Unread>,
    after: Result<Backing, Unread>,
) -> Result<Backing, Unread> {
    let (before, after) = (before?, after?);
    let is_less = after.share(kind) < before.share(kind);
    Ok(if is_less { after } else { before })
}

/// What was not as it should be, in words.
pub(super) fn notes(flip: &Flip, passed: &Passed) -> Vec<String> {
    let refused = flip.refused.iter().map(|refused| {
        let (pieces, error, meaning) = (refused.pieces, &refused.error, &refused.meaning);
        format!("{pieces} pieces could not be turned: {error}: {meaning}")
    });
    let used = passed.last.mark.times.since(&passed.first.mark.times);
    // What kept pages from being turned stands last, where a verdict looks for it.
    used.note().into_iter().chain(refused).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use host::{Source, Tree};
    use model::{Backing, Bytes, PageKind};

    use super::{Counter, Mark, Passed, Sample, check, metrics, worse};
    use crate::inplace::{Length, Whose};
    use crate::live::server::Load;
    use crate::metric::Asked;
    use crate::threads::Threads;

    fn asked(text: &str) -> Asked {
        text.parse().expect("a metric")
    }

    fn sample(at: f64, nanoseconds: u64, ops: f64) -> Sample {
        let machine = Tree::default().file("/proc/7/task/7/comm", "made\n");
        let machine = machine.file("/proc/7/schedstat", format!("{nanoseconds} 0 0\n"));
        let times = Threads::All.times(&Source::from_tree("made", machine), 7);
        Sample {
            at,
            mark: Mark {
                counts: vec![ops],
                times: times.expect("a thread"),
            },
            stat: None,
            counted: Vec::new(),
            ran: None,
        }
    }

    #[test]
    fn a_counter_is_a_rate_per_cpu_second_and_what_a_load_prints_is_taken_as_it_is() {
        let all = [asked("ops=([0-9]+),from=/x"), asked("us=fork ([0-9]+),lower")];
        let counters = [Counter::of(&all[0], "thp").expect("a counter")];
        let mut passed = Passed {
            first: sample(1.0, 0, 1000.0),
            last: sample(3.0, 500_000_000, 1800.0),
            load: Some(Load {
                wall: Duration::from_secs(1),
                output: "fork 42".to_owned(),
            }),
        };
        let scored = metrics("thp", &all, &counters, &passed).expect("a score");
        assert_eq!(
            (scored["ops"], scored["us"], scored["wall"], scored["cpu"]),
            (1600.0, 42.0, 1.0, 0.5)
        );
        passed.load = None;
        let alone = metrics("thp", &all[..1], &counters, &passed).expect("a score");
        assert_eq!(alone["wall"], 2.0);
        let error = metrics("thp", &all, &counters, &passed).expect_err("no load");
        assert!(error.to_string().contains("arm thp: --metric us"), "{error}");
    }

    #[test]
    fn what_makes_no_honest_score_is_refused_with_what_to_give() {
        let (time, load) = (Length::Time(Duration::from_secs(2)), Length::Load("x".to_owned()));
        let refused = |metrics: &[&str], length: &Length, part: &str| {
            let metrics: Vec<Asked> = metrics.iter().map(|text| asked(text)).collect();
            let why = check(&metrics, length, Whose::Found).expect_err(part);
            assert!(why.contains(part), "{why}");
        };
        refused(&[], &time, "--load");
        refused(&["wall"], &time, "takes a --load");
        refused(&["ops=([0-9]+)"], &time, "nothing prints it");
        refused(&["faults"], &load, "not judged here");
        let makes_sense = |metrics: &[Asked], length: &Length, whose: Whose| check(metrics, length, whose).is_ok();
        assert!(makes_sense(
            &[asked("wall"), asked("us=([0-9]+),lower")],
            &load,
            Whose::Found
        ));
        assert!(makes_sense(&[asked("ops=([0-9]+),from=cmd:info")], &time, Whose::Found));
        // What a program of its own prints can be read.
        assert!(makes_sense(&[asked("ops=([0-9]+)")], &time, Whose::Own));
        assert!(!makes_sense(&[asked("wall")], &time, Whose::Own));
    }

    #[test]
    fn pages_that_came_back_within_a_slice_count_against_it() {
        let backing = |base: u64, thp: u64| -> Backing {
            [(PageKind::Base, Bytes::mib(base)), (PageKind::Thp, Bytes::mib(thp))]
                .into_iter()
                .collect()
        };
        let seen = worse(PageKind::Base, Ok(backing(100, 0)), Ok(backing(40, 60)));
        assert_eq!(seen.expect("seen").share(PageKind::Base), Some(0.4));
        let seen = worse(PageKind::Thp, Ok(backing(10, 90)), Ok(backing(5, 95)));
        assert_eq!(seen.expect("seen").share(PageKind::Thp), Some(0.9));
    }
}
