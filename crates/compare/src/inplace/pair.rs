//! What `--live PID` and `--design flip` share: base and thp in one process.

use std::time::Duration;

use host::Snapshot;
use model::compare::Method;

use super::{Length, Process, SETTLE, Whose, slice};
use crate::flip::{self, Span, To};
use crate::metric::Asked;
use crate::request::Request;
use crate::score::Counter;
use crate::threads::Threads;
use crate::{Error, Named, Spec};

/// Long enough for a thousand timer ticks, short enough that drift stays out of a block.
const SLICE: Duration = Duration::from_secs(2);
/// A PMD range of which less is in use stays on base pages: collapsing would allocate the rest, as in `hugewise collapse`.
const USED: f64 = 0.5;

/// A comparison in place, but for its process.
#[derive(Clone, Debug)]
pub struct Pair {
    /// In the order of the comparison's.
    pub(super) arms: Vec<To>,
    pub(super) asked: Vec<Asked>,
    pub(super) length: Length,
    pub(super) whose: Whose,
    pub(super) range: Span,
    pub(super) threads: Threads,
}

impl Pair {
    /// What is asked of the process.
    ///
    /// # Errors
    /// If it cannot be compared in place, with what to write instead.
    pub fn new(request: &Request, whose: Whose, snapshot: &Snapshot) -> Result<Self, Error> {
        if request.range == Span::Text {
            let why =
                "code belongs to files, whose huge pages cannot be split in place (write anon, heap or addresses)";
            return Err(Error::asked("--range text", why));
        }
        let arms = arms(&request.arms)?;
        let length = match request.task.load() {
            Some(load) => Length::Load(load.to_owned()),
            None => Length::Time(request.slice.unwrap_or(SLICE)),
        };
        let page = snapshot.pmd_page().into_result();
        page.map_err(|why| {
            Error::asked(
                "this kernel has no transparent huge pages to collapse into",
                why.to_string(),
            )
        })?;
        slice::check(&request.task.asked, &length, whose).map_err(Error::InPlace)?;
        Ok(Self {
            arms,
            asked: request.task.asked.clone(),
            length,
            whose,
            range: request.range.clone(),
            threads: request.threads.clone(),
        })
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.arms.iter().map(|to| to.name().to_owned()).collect()
    }

    /// The experiment, of a process that is known by now.
    pub(crate) fn spec(&self, pid: u32, spec: Spec) -> Spec {
        let slice_seconds = match &self.length {
            Length::Time(time) => Some(time.as_secs_f64()),
            Length::Load(_) => None,
        };
        Spec {
            method: Method::Flip,
            arms: self.arms.iter().map(|to| named(*to)).collect(),
            in_place: Some(model::compare::InPlace {
                pid,
                started: self.whose == Whose::Own,
                range: self.range.to_string(),
                threads: self.threads.to_string(),
                slice_seconds,
                settle_seconds: SETTLE.as_secs_f64(),
            }),
            ..spec
        }
    }

    /// What is read at both ends of a slice. A metric without a place is looked for in what the load prints; without a load
    /// the process has to print it.
    pub(super) fn counters(&self, to: To) -> Vec<Counter> {
        let prints = self.whose == Whose::Own && matches!(self.length, Length::Time(_));
        let counters = self.asked.iter().filter(|asked| asked.from.is_some() || prints);
        counters.filter_map(|asked| Counter::of(asked, to.name())).collect()
    }

    /// The process, opened.
    ///
    /// # Errors
    /// If it cannot be reached, or has no such memory or threads.
    pub(crate) fn open<'s>(&self, pid: u32, stop: &'s dyn Fn() -> bool) -> Result<Process<'s>, Error> {
        let memory = flip::Spec {
            pid,
            span: self.range.clone(),
            used: USED,
            budget: None,
        };
        Process::open(memory, self.threads.clone(), stop)
    }
}

/// The two arms that pages in place can have.
fn arms(names: &[String]) -> Result<Vec<To>, Error> {
    let arm = |name: &String| match name.as_str() {
        "base" => Ok(To::Base),
        "thp" => Ok(To::Large),
        _ => {
            let why = "memory of a living process can be flipped to base and thp only (write base,thp; for others start it anew, without --live and --design flip)";
            Err(Error::asked(format!("--arms {name}"), why))
        }
    };
    let arms: Vec<To> = names.iter().map(arm).collect::<Result<_, _>>()?;
    match arms[..] {
        [first, second] if first != second => Ok(arms),
        _ => Err(Error::asked(
            format!("--arms {}", names.join(",")),
            "a flip in place is between two arms (write base,thp)",
        )),
    }
}

fn named(to: To) -> Named {
    Named {
        name: to.name().to_owned(),
        technique: to.technique().to_owned(),
        kind: Some(to.kind()),
        place: None,
    }
}
