//! Records a program from start to end, or a running process for a time.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use chase::counters::switches::now;
use host::processes::Stat;
use host::{CpuList, Distances, Snapshot, Source};
use model::placement::{Cpu, End, Method, Missed, NoRecords, Recording, Target};
use process::{Attention, Failure, Order, Output, Process, WaitError, cpu_time, tree};

use crate::collector::Collector;
use crate::kernel::refusal;
use crate::ledger::Account;
use crate::poll;
use crate::recorder::{By, Recorder};

/// Between two looks at what descends from the program and at its waits; a look takes a twentieth of the time at most.
const LOOK: Duration = Duration::from_millis(200);
const LOOK_SHARE: u32 = 20;
/// Between two results so far, likewise. The first comes at once, as a kill may too; then they come less and less often.
const SAVE: Duration = Duration::from_secs(1);
const FIRST_SAVE: Duration = Duration::from_millis(100);
const PARANOID: &str = "kernel.perf_event_paranoid";
const ONLINE: &str = "/sys/devices/system/cpu/online";

pub struct Spec<'a> {
    pub ordered: Ordered<'a>,
    /// For at most so long.
    pub time: Option<Duration>,
    /// By clocks of each CPU, without records of switches?
    pub is_light: bool,
}

pub enum Ordered<'a> {
    Start(&'a [OsString]),
    /// A running process.
    Attach(u32),
}

/// Why there is no recording.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot be started.
    #[error("{program}: {step} failed: {error}")]
    NotStarted {
        program: String,
        step: &'static str,
        error: std::io::Error,
    },
    #[error("--pid {0}: there is no such process")]
    NoProcess(u32),
    /// It cannot be waited for.
    #[error("waiting for the program failed: {0}")]
    Wait(std::io::Error),
}

/// Records it. `so_far` gets what there is: at once, and now and then.
///
/// # Errors
/// If there is nothing to record.
pub fn record(
    spec: &Spec<'_>,
    snapshot: &Snapshot,
    stop: &dyn Fn() -> bool,
    so_far: &mut dyn FnMut(Recording),
) -> Result<Recording, Error> {
    let mut session = Session::begin(spec, snapshot)?;
    let end = session.run(spec.time, stop, so_far)?;
    session.end(end)
}

/// A program under record.
struct Session<'a> {
    snapshot: &'a Snapshot,
    source: Source,
    subject: Subject,
    target: Target,
    recorder: Recorder,
    steal: model::Reading<BTreeMap<u32, u64>>,
    memory: BTreeMap<u32, u64>,
    memory_due: Duration,
    cpu_before: Duration,
}

enum Subject {
    Own(Box<Process>),
    /// With its start, by which its number is known to mean it.
    Foreign(u32, Option<u64>),
}

impl<'a> Session<'a> {
    fn begin(spec: &Spec<'_>, snapshot: &'a Snapshot) -> Result<Self, Error> {
        let source = Source::live();
        let cpu_before = cpu_time();
        let steal = poll::steal(&source);
        let (subject, recorder, command) = match spec.ordered {
            Ordered::Start(words) => {
                let (process, recorder) = started(words, snapshot, spec.is_light)?;
                let words = words.iter().map(|word| word.to_string_lossy().into_owned());
                (Subject::Own(Box::new(process)), recorder, words.collect())
            }
            Ordered::Attach(pid) => {
                let stat = Stat::of(&source, pid).into_result().ok().flatten();
                let stat = stat.ok_or(Error::NoProcess(pid))?;
                let recorder = Recorder::of_running(snapshot, pid, spec.is_light);
                (Subject::Foreign(pid, stat.started()), recorder, Vec::new())
            }
        };
        let pid = subject.pid();
        Ok(Self {
            snapshot,
            target: Target {
                pid,
                name: poll::name(&source, pid, pid),
                command,
            },
            source,
            subject,
            recorder,
            steal,
            memory: BTreeMap::new(),
            memory_due: LOOK,
            cpu_before,
        })
    }

    fn run(
        &mut self,
        time: Option<Duration>,
        stop: &dyn Fn() -> bool,
        so_far: &mut dyn FnMut(Recording),
    ) -> Result<End, Error> {
        let began = Instant::now();
        let mut pause = Duration::from_millis(1);
        let (mut look_due, mut save_due) = (LOOK, Duration::ZERO);
        loop {
            let left = time.map(|time| time.saturating_sub(began.elapsed()));
            match self
                .subject
                .rest(left.map_or(pause, |left| left.min(pause)), stop, &self.source)
            {
                Ok(None) => {}
                Ok(Some(end)) => return Ok(end),
                Err(WaitError::Interrupted) => return Ok(End::Interrupted),
                Err(WaitError::Failed(error)) => return Err(Error::Wait(error)),
            }
            if time.is_some_and(|time| began.elapsed() >= time) {
                return Ok(End::TimeOver);
            }
            pause = self.recorder.tick(self.target.pid);
            if began.elapsed() >= look_due {
                let before = cpu_time();
                self.look(began.elapsed());
                look_due = began.elapsed() + LOOK.max((cpu_time() - before) * LOOK_SHARE);
            }
            if began.elapsed() >= save_due {
                let before = cpu_time();
                so_far(self.recording(End::SoFar, None, now()));
                let usual = began.elapsed().clamp(FIRST_SAVE, SAVE);
                save_due = began.elapsed() + usual.max((cpu_time() - before) * LOOK_SHARE);
            }
        }
    }

    /// Waits on run queues, memory by node, and who descends from the program.
    fn look(&mut self, elapsed: Duration) {
        if let Subject::Own(process) = &self.subject {
            process.guard(&tree::of(&self.source, self.target.pid).pids);
        }
        if self.recorder.has_records() {
            self.recorder.read_queues();
        }
        if self.target.name.is_empty() || self.target.name == "hugewise" {
            self.target.name = poll::name(&self.source, self.target.pid, self.target.pid);
        }
        let nodes_here = self.snapshot.topology.nodes.known();
        let has_nodes = nodes_here.is_some_and(|nodes| nodes.len() > 1);
        if has_nodes && elapsed >= self.memory_due {
            self.memory_due = elapsed * 2;
            if let Some(memory) = poll::memory(&self.source, self.target.pid) {
                self.memory = memory;
            }
        }
    }

    fn end(mut self, end: End) -> Result<Recording, Error> {
        let ended = now();
        self.recorder.finish();
        match std::mem::replace(&mut self.subject, Subject::Foreign(0, None)) {
            Subject::Own(process) if end == End::Gone => {
                let done = process.end().map_err(Error::Wait)?;
                // Its last records.
                self.recorder.finish();
                let before = self.recorder.used_before().as_secs_f64();
                let rusage = done.ended.cpu.map(|cpu| cpu.total() - before);
                Ok(self.recording(of_status(done.ended.status), rusage, ended))
            }
            other => {
                drop(other);
                Ok(self.recording(end, None, ended))
            }
        }
    }

    fn recording(&mut self, end: End, rusage_s: Option<f64>, at: u64) -> Recording {
        let has_records = self.recorder.has_records();
        let lost_records = self.recorder.lost();
        let runs_on = |pid: u32, tid: u32| {
            let stat = Stat::of_thread(&self.source, pid, tid).filter(|stat| has_records && stat.state() == Some('R'));
            stat?.processor()
        };
        let (total, threads, others, slices) = self.recorder.ledger.closed(at, runs_on);
        let all_moves = self.recorder.has_all_moves();
        let missed = self.missed(&total, lost_records);
        let mut total = total.tally(has_records);
        if let Some(clocks) = self.recorder.clocks() {
            total.cpu_s = clocks.cpu_s();
            total.migrations = clocks.migrations().unwrap_or(total.migrations);
        }
        let used = total.cpu();
        let (method, no_records) = match &self.recorder.by {
            By::Records { .. } => (Method::SwitchRecords, None),
            By::Looks {
                why, clocks: Some(_), ..
            } => (Method::Clocks, Some(why.clone())),
            By::Looks { why, .. } => (Method::Procfs, Some(why.clone())),
        };
        Recording {
            target: self.target.clone(),
            method,
            all_moves,
            no_records,
            perf_event_paranoid: self.snapshot.sysctls.number(PARANOID).known().copied(),
            seconds: at.saturating_sub(self.recorder.began) as f64 / 1e9,
            end,
            cpus: self.cpus(),
            missed,
            total,
            threads: threads.iter().map(|thread| thread.thread(has_records)).collect(),
            others,
            memory: self.memory.clone(),
            slices,
            unassigned_s: rusage_s.map(|all| (all - used).max(0.0)),
            rusage_s,
            recorder_s: cpu_time().saturating_sub(self.cpu_before).as_secs_f64(),
        }
    }

    fn cpus(&self) -> Vec<Cpu> {
        let topology = &self.snapshot.topology;
        let after = poll::steal(&self.source);
        let cpu = |cpu: &host::snapshot::LogicalCpu| Cpu {
            cpu: cpu.cpu,
            core: cpu.core.known().copied(),
            package: cpu.package.known().copied(),
            node: topology.node_of(cpu.cpu),
            steal_s: poll::stolen(&self.steal, &after, cpu.cpu),
        };
        topology.cpus.iter().map(cpu).collect()
    }

    fn missed(&self, total: &Account, lost_records: u64) -> Missed {
        let migrations = match &self.recorder.by {
            By::Records { .. } => None,
            // Each was recorded.
            By::Looks { .. } if self.recorder.has_all_moves() => None,
            By::Looks { counted, .. } => counted.map(|counted| counted.saturating_sub(total.moves())),
        };
        let online = self.source.value::<CpuList>(ONLINE, "a list of CPUs");
        let known = |cpu: &u32| self.snapshot.topology.cpus.iter().any(|known| known.cpu == *cpu);
        let new_cpus = online
            .known()
            .map_or(0, |online| online.iter().filter(|cpu| !known(cpu)).count());
        Missed {
            lost_records,
            unpaired: self.recorder.ledger.unpaired,
            migrations,
            new_cpus: new_cpus as u64,
        }
    }
}

impl Subject {
    fn pid(&self) -> u32 {
        match self {
            Self::Own(process) => process.id(),
            Self::Foreign(pid, _) => *pid,
        }
    }

    /// Waits a while; gives [`End::Gone`] if it has ended.
    fn rest(&mut self, pause: Duration, stop: &dyn Fn() -> bool, source: &Source) -> Result<Option<End>, WaitError> {
        match self {
            Self::Own(process) => Ok(process.rest(pause, stop)?.then_some(End::Gone)),
            Self::Foreign(pid, started) => {
                std::thread::sleep(pause);
                if stop() {
                    return Err(WaitError::Interrupted);
                }
                let stat = Stat::of(source, *pid).into_result().ok().flatten();
                let is_there = |stat: &Stat| stat.started() == *started && !matches!(stat.state(), Some('Z' | 'X'));
                Ok((!stat.as_ref().is_some_and(is_there)).then_some(End::Gone))
            }
        }
    }
}

/// Starts a program whose switches are recorded from before its first instruction.
fn started(words: &[OsString], snapshot: &Snapshot, is_light: bool) -> Result<(Process, Recorder), Error> {
    let cpus: Vec<u32> = snapshot.topology.cpus.iter().map(|cpu| cpu.cpu).collect();
    let program = || {
        words
            .first()
            .map_or_else(String::new, |word| word.to_string_lossy().into_owned())
    };
    let failed = |failure: Failure| Error::NotStarted {
        program: program(),
        step: failure.step.title(),
        error: failure.error,
    };
    let order = Order {
        switches: if is_light { &[] } else { &cpus },
        places: if is_light { &cpus } else { &[] },
        output: Output::Passed,
        ..Order::plain(words)
    };
    let mut process = Process::start(&order, Attention::Free, false).map_err(failed)?;
    let by = recorded_by(&mut process, &cpus, snapshot);
    let recorder = Recorder::of_started(snapshot, process.id(), by);
    Ok((process, recorder))
}

/// What a program that was started is recorded by.
fn recorded_by(process: &mut Process, cpus: &[u32], snapshot: &Snapshot) -> By {
    let records = process.recorders().switches.take();
    let records = records.map(|switches| switches.map(By::records));
    let clocks = Collector::of(process, cpus, &Distances::of(&snapshot.topology));
    let by = records.or(clocks.map(|clocks| clocks.map(By::clocks)));
    by.map_or(By::looks(NoRecords::NotWanted, None), |by| {
        by.unwrap_or_else(|error| By::looks(refusal(&error, || false), None))
    })
}

fn of_status(status: ExitStatus) -> End {
    match (status.code(), status.signal()) {
        (_, Some(signal)) => End::Killed(signal),
        (code, None) => End::Exited(code.unwrap_or(0)),
    }
}
