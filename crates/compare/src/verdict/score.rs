//! What a slice of time is worth: what each counter gained for each second of CPU time of the chosen threads.

use std::collections::BTreeMap;
use std::sync::Arc;

use process::rights::ShutIn;
use regex::Regex;

use crate::Error;
use crate::metric::{self, Asked, From, Wanted};
use crate::threads::{Times, Used};

/// A number that goes up while a program works.
#[derive(Clone, Debug)]
pub struct Counter {
    /// Its name, and whether more of it is better.
    pub wanted: Wanted,
    pattern: Regex,
    /// Where it is read; the program's own output if nowhere else.
    pub from: Option<From>,
    shut_in: Option<Arc<ShutIn>>,
}

/// Counters and CPU times at one end of a slice.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    pub counts: Vec<f64>,
    /// CPU time of the threads that count.
    pub times: Times,
}

/// What a slice was worth.
#[derive(Clone, Debug, PartialEq)]
pub struct Score {
    /// By counter: its gain per second of CPU time.
    pub rates: BTreeMap<String, f64>,
    /// The CPU time.
    pub used: Used,
}

impl Counter {
    /// The counter that a metric asks for, with the arm's name wherever the place says `{arm}`; `None` of a metric that
    /// every run has.
    pub fn of(asked: &Asked, arm: &str) -> Option<Self> {
        Some(Self {
            wanted: asked.wanted.clone(),
            pattern: asked.pattern.clone()?,
            from: asked.from.as_ref().map(|from| from.of_arm(arm)),
            shut_in: asked.shut_in.clone(),
        })
    }

    /// Its value now; `output` is what the program wrote so far.
    ///
    /// # Errors
    /// If the place cannot be read, or has no such number; names the metric and the arm. [`Error::Interrupted`] if the user has
    /// stopped it in between.
    pub fn read(&self, arm: &str, output: &dyn Fn() -> String, stop: &dyn Fn() -> bool) -> Result<f64, Error> {
        let text = match &self.from {
            Some(from) => from.text(self.shut_in.as_deref(), stop),
            None => Ok(output()),
        };
        let value = text.and_then(|text| metric::find(&self.pattern, &text));
        value.map_err(|why| match stop() {
            true => Error::Interrupted,
            false => Error::metric(arm, &self.wanted.name, why),
        })
    }
}

/// What happened between two marks of one program.
///
/// # Errors
/// If no CPU time was used, or a counter went back.
pub fn between(arm: &str, counters: &[Counter], from: &Mark, to: &Mark) -> Result<Score, Error> {
    let used = to.times.since(&from.times);
    let seconds = used.cpu.as_secs_f64();
    let mut rates = BTreeMap::new();
    for (counter, (before, after)) in counters.iter().zip(from.counts.iter().zip(&to.counts)) {
        let (name, gained) = (&counter.wanted.name, after - before);
        if seconds <= 0.0 {
            let why = "its threads used no CPU time in a slice: choose others (--threads), or give it work to do";
            return Err(Error::metric(arm, name, why));
        }
        if gained < 0.0 {
            let why = format!("it went back from {before} to {after}: name a number that only goes up");
            return Err(Error::metric(arm, name, why));
        }
        rates.insert(name.clone(), gained / seconds);
    }
    Ok(Score { rates, used })
}

#[cfg(test)]
mod tests {
    use super::{Counter, Mark, between};
    use crate::threads::{Threads, Times};
    use host::{Source, Tree};

    /// The times of a process whose only thread was on a CPU for so long.
    fn times(nanoseconds: u64) -> Times {
        let mut machine = Tree::default();
        machine = machine.file("/proc/7/task/7/comm", "made\n");
        machine = machine.file("/proc/7/schedstat", format!("{nanoseconds} 0 0\n"));
        Threads::All
            .times(&Source::from_tree("made", machine), 7)
            .expect("there")
    }

    fn counter(text: &str) -> Counter {
        Counter::of(&text.parse().expect("a metric"), "thp").expect("a counter")
    }

    fn mark(count: f64, nanoseconds: u64) -> Mark {
        Mark {
            counts: vec![count],
            times: times(nanoseconds),
        }
    }

    #[test]
    fn a_slice_is_worth_what_its_counter_gained_by_cpu_second() {
        let counters = [counter("ops=([0-9]+)")];
        let score = between(
            "thp",
            &counters,
            &mark(100.0, 1_000_000_000),
            &mark(150.0, 1_250_000_000),
        );
        assert_eq!(score.expect("a score").rates["ops"], 200.0);
        for (to, why) in [
            (mark(150.0, 1_000_000_000), "no CPU time"),
            (mark(50.0, 2_000_000_000), "went back from 100 to 50"),
        ] {
            let error = between("thp", &counters, &mark(100.0, 1_000_000_000), &to).expect_err(why);
            assert!(error.to_string().contains(why), "{error}");
        }
    }

    #[test]
    fn each_arm_has_a_place_of_its_own_and_without_a_place_the_output_is_read() {
        let own = counter("ops=thp ([0-9]+),from=cmd:echo {arm} 17");
        assert_eq!(own.read("thp", &String::new, &|| false).expect("there"), 17.0);
        let said = counter("ops=ops ([0-9]+)").read("thp", &|| "ops 3\nops 4".to_owned(), &|| false);
        assert_eq!(said.expect("there"), 4.0);
        let error = counter("ops=ops,from=/nonexistent/x").read("thp", &String::new, &|| false);
        assert!(
            error
                .expect_err("nowhere")
                .to_string()
                .contains("arm thp: --metric ops")
        );
    }
}
