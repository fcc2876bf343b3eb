//! A program that is started for a comparison in place, and which of its processes holds its memory.

use std::time::Duration;

use host::processes::status::Status;
use model::{Bytes, Unread};
use process::tree;

use crate::Error;
use crate::live::{Arm, Counting, Server};
use crate::metric::Asked;
use crate::worker::Worker;

/// What goes up so often in a row counts: by chance a number that wavers does so in one of 4! cases, and its slices show it then.
const RISES: u32 = 3;
/// The share of all memory that one process has to hold, as pages are changed in one only.
const MOSTLY: f64 = 0.9;

/// The program, as the machine is set: THP is neither switched off nor advised.
pub struct Own<'a> {
    pub(super) worker: Worker<'a>,
    server: Option<Server>,
    /// Why it has no hardware counters, or what they leave out.
    pub(super) pmu_note: Option<String>,
}

impl<'a> Own<'a> {
    /// Starts it with these counters.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(
        arm: Arm,
        (asked, server): (&[Asked], Option<Server>),
        counting: &Counting,
        stop: &'a dyn Fn() -> bool,
    ) -> Result<Self, Error> {
        Ok(Self {
            worker: Worker::start(arm, asked, counting, stop)?,
            server,
            pmu_note: counting.note(),
        })
    }

    /// Waits until it is ready, if it is a server that is loaded, or else until its counters go up again and again.
    ///
    /// # Errors
    /// If it ends before, or that takes longer than `patience`.
    pub fn until_it_works(&mut self, patience: Duration) -> Result<(), Error> {
        let Worker { arm, process, stop, .. } = &mut self.worker;
        match &self.server {
            Some(server) => server.wait_until_ready(arm, process, stop),
            None => self.worker.until_it_counts(RISES, patience),
        }
    }

    /// The process that holds its memory: itself, or one that it started.
    ///
    /// # Errors
    /// If it is spread over several.
    pub fn holder(&self) -> Result<u32, Error> {
        let family = tree::of(&self.worker.source, self.worker.id());
        let unread = |why: Unread| Error::InPlace(format!("where the program's memory is could not be read: {why}"));
        if let Some(why) = family.not_whole {
            return Err(unread(why));
        }
        let sizes = family.pids.into_iter().map(|pid| Ok((pid, self.memory(pid)?)));
        let sizes: Vec<(u32, u64)> = sizes.collect::<Result<_, _>>().map_err(unread)?;
        let all: u64 = sizes.iter().map(|(_, bytes)| bytes).sum();
        let largest = sizes.iter().max_by_key(|(_, bytes)| *bytes);
        let (pid, most) = largest.copied().unwrap_or((self.worker.id(), 0));
        if most as f64 >= MOSTLY * all as f64 {
            return Ok(pid);
        }
        Err(Error::InPlace(format!(
            "the program's memory is in {} processes, of which the largest holds {:.0} %, and pages can be changed in one only",
            sizes.len(),
            100.0 * most as f64 / all as f64
        )))
    }

    /// None of one that has ended.
    fn memory(&self, pid: u32) -> Result<u64, Unread> {
        let path = format!("/proc/{pid}/status");
        let Some(bytes) = self.worker.source.bytes(&path).if_present()? else {
            return Ok(0);
        };
        Ok(Status::parse(&path, &bytes).rss_anon.or_if_absent(Bytes(0))?.0)
    }

    /// Ends it as its user would: by `--stop`, or by a SIGTERM.
    ///
    /// # Errors
    /// If a server does not stop; then it is killed.
    pub fn end(mut self) -> Result<(), Error> {
        let Some(server) = &self.server else {
            return Ok(());
        };
        self.worker.will_end();
        let Worker { arm, process, stop, .. } = &mut self.worker;
        server.stop(arm, process, stop, &|| false)
    }
}
