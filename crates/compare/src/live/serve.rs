//! A run of a server: started, warmed up by loads that do not count, loaded again and again, and stopped.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use ::process::Attention;
use model::compare::{Looks, Metric, Run};
use model::{Bytes, Cause, Unread};

use super::family::{Family, Look, MARK, Used};
use super::process::Process;
use super::server::{self, Load, Server};
use super::{Arm, Live, counted, named};
use crate::Error;
use crate::metric::From;
use crate::technique::Collapse;

/// A server that is looked at earlier may still take its memory.
const FIRST_LOOK: Duration = Duration::from_millis(300);
/// Between two looks, at least.
const LOOK_PERIOD: Duration = Duration::from_secs(1);
/// A later look replaces an earlier one unless memory was given back since.
const STILL_THERE: f64 = 0.9;

struct Served<'a> {
    live: &'a Live<'a>,
    arm: &'a Arm,
    server: &'a Server,
    process: Process,
    family: Family,
    began: Instant,
    seen: Option<Look>,
    looks: Looks,
    /// Since `began`.
    looked: Duration,
}

type Worth = BTreeMap<String, f64>;

impl Live<'_> {
    /// The loads are what is timed; memory, CPU time and page kinds are the server's.
    pub(super) fn serve(&self, arm: &Arm, server: &Server, attention: Attention) -> Result<Run, Error> {
        let (warm_up, loads) = match attention {
            // A trial looks at pages only.
            Attention::Free => (0, 1),
            Attention::Measured(_) => (server.warm_up, server.loads.max(1)),
        };
        let mut served = Served::start(self, arm, server)?;
        for _ in 0..warm_up {
            served.load(Attention::Free)?;
        }
        // Where it ran before is no part of the loads.
        served.process.ran();
        served.looks = Looks::default();
        let loads: Vec<Worth> = (0..loads).map(|_| served.load(attention)).collect::<Result<_, _>>()?;
        let has_worked = loads.iter().any(|load| load.contains_key(Metric::Cpu.name()));
        let mut run = served.end(has_worked)?;
        run.metrics.extend(medians(&loads));
        // What a server leaves in files is there when it has stopped.
        let files = self.find(arm, None, |from| !from.asks_the_program())?;
        run.metrics.extend(files);
        run.loads = loads;
        Ok(run)
    }
}

impl<'a> Served<'a> {
    /// Starts it, and waits until it is ready.
    fn start(live: &'a Live<'a>, arm: &'a Arm, server: &'a Server) -> Result<Self, Error> {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let mark = format!("{}.{}", std::process::id(), STARTED.fetch_add(1, Ordering::Relaxed));
        let mut marked = arm.clone();
        marked.setup.env.push((MARK.into(), mark.clone().into()));
        let process = Process::start(&marked, &live.counting, Attention::Free)?;
        let mut served = Self {
            family: Family::new(process.id(), &mark, arm.thp_size()),
            live,
            arm,
            server,
            process,
            began: Instant::now(),
            seen: None,
            looks: Looks::default(),
            looked: Duration::ZERO,
        };
        server.wait_until_ready(&marked, &mut served.process, live.stop)?;
        served.family.find_daemons();
        served.guard();
        served.began = Instant::now();
        Ok(served)
    }

    /// Whatever becomes of this program, none of it stays.
    fn guard(&self) {
        self.process.guard(&self.family.pids());
    }

    /// One load, with what it was worth.
    fn load(&mut self, attention: Attention) -> Result<Worth, Error> {
        let before = self.family.used();
        let had_daemons = self.family.has_daemons();
        self.process.counted();
        let (server, arm, stop) = (self.server, self.arm, self.live.stop);
        let began = Instant::now();
        let load = server::load(arm, &server.load, stop, || {
            if self.is_due(attention, began.elapsed()) {
                self.look()?;
            }
            let ended = self.process.rest(Duration::from_millis(1), stop)?;
            self.process.squeeze();
            // A daemon that was started by others is not known here.
            Ok(match server.is_daemon {
                true => had_daemons && !self.family.has_daemons(),
                false => ended,
            })
        });
        let load = load.map_err(|error| self.with_errors(error))?;
        if self.seen.is_none() {
            self.look()?;
        }
        self.worth(&load, before)
    }

    fn worth(&mut self, load: &Load, before: Used) -> Result<Worth, Error> {
        let used = self.family.used().since(before);
        let (counts, _) = counted::metrics(&self.process.counted());
        let metrics = used.into_iter().flatten().chain(counts);
        let metrics = metrics.chain([(Metric::Wall, load.wall.as_secs_f64())]);
        let mut worth: Worth = named(metrics).collect();
        let printed = self.live.find(self.arm, Some(&load.output), From::asks_the_program)?;
        worth.extend(printed);
        Ok(worth)
    }

    fn is_due(&self, attention: Attention, since: Duration) -> bool {
        let Some(seen) = &self.seen else {
            return since >= FIRST_LOOK;
        };
        let now = self.began.elapsed();
        let allowed = now.as_secs_f64() * attention.share();
        now >= self.looked + LOOK_PERIOD && self.looks.seconds + seen.took.as_secs_f64() <= allowed
    }

    /// Looks at its pages. A reference that is not what it is called is reported at once.
    fn look(&mut self) -> Result<(), Error> {
        let look = self.family.look();
        self.guard();
        self.looked = self.began.elapsed();
        self.looks.count += 1;
        self.looks.seconds += look.took.as_secs_f64();
        let backing = look.backing.as_ref();
        backing.map_or(Ok(()), |backing| self.live.must_be_base(self.arm, backing))?;
        let had = self.seen.as_ref().map_or(0, |seen| total(seen).0);
        if total(&look).0 as f64 >= STILL_THERE * had as f64 {
            self.seen = Some(look);
        }
        Ok(())
    }

    fn with_errors(&self, error: Error) -> Error {
        match error {
            Error::Failed { what, said, .. } if said.is_empty() => {
                Error::failed(self.arm, what, &self.process.outputs.errors())
            }
            other => other,
        }
    }

    /// Stops it; a run without the worth of its loads.
    fn end(mut self, has_worked: bool) -> Result<Run, Error> {
        self.guard();
        self.server.check(self.arm, self.live.stop)?;
        // A daemon is no descendant of the command that was started.
        let ran = self.process.ran().filter(|_| !self.family.has_daemons());
        let family = &self.family;
        let still_there = || family.has_daemons();
        self.server
            .stop(self.arm, &mut self.process, self.live.stop, &still_there)?;
        let done = self.process.end()?;
        let look = self.seen.filter(|_| has_worked);
        let why = "the processes of the command used no CPU time under the load, so that another one serves it";
        let unread = || Unread::new(Cause::Absent, "/proc/PID/stat", why);
        let backing = look.as_ref().map_or_else(|| Err(unread()), |look| look.backing.clone());
        let memory = look.as_ref().filter(|look| look.backing.is_ok());
        let memory = memory.map(|look| (Metric::Memory.name().to_owned(), total(look).0 as f64));
        let whole = look.as_ref().map_or(Bytes(0), |look| look.whole);
        self.live.whole.set(self.live.whole.get().max(whole));
        let is_about_code = self.arm.setup.collapse == Some(Collapse::Text);
        Ok(Run {
            text: look.filter(|_| is_about_code).map(|look| look.text),
            looks: self.looks,
            notes: done.note.into_iter().collect(),
            ran,
            ..Run::bare(memory, backing)
        })
    }
}

fn total(look: &Look) -> Bytes {
    look.backing.as_ref().map_or(Bytes(0), |backing| backing.total())
}

/// The median of each metric that all loads have.
fn medians(loads: &[Worth]) -> Worth {
    let names = loads.first().into_iter().flat_map(Worth::keys);
    let median = |name: &String| {
        let values: Option<Vec<f64>> = loads.iter().map(|load| load.get(name).copied()).collect();
        Some((name.clone(), stats::median(&values?)?))
    };
    names.filter_map(median).collect()
}
