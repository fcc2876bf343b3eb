//! Who took a lease, and whether that process still lives.

use std::path::Path;

use host::processes::Stat;
use model::{Cause, Unread};
use serde::{Deserialize, Serialize};

use crate::sink::{self, Sink};

/// A process; its start time distinguishes it from a later one with the same id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Owner {
    /// Process id.
    pub(crate) pid: u32,
    /// Start time in clock ticks since boot (field 22 of /proc/PID/stat).
    pub(crate) start: u64,
}

/// Does a process still hold its memory?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    /// It runs, or cannot be looked at: its leases are left alone.
    Alive,
    /// It has been killed or is exiting, but its mappings may not be gone yet.
    Dying,
    /// It is gone, or a zombie without memory.
    Gone,
}

impl Owner {
    /// The process that asks.
    pub(crate) fn this(sink: &dyn Sink) -> Result<Self, Unread> {
        let path = "/proc/self/stat";
        let text = sink::text(sink, path)?;
        read(&text, None).map(|(owner, _)| owner).ok_or_else(|| {
            let why = "expected the 31 or more fields of proc_pid_stat(5)";
            Unread::new(Cause::Garbled, format!("{path}:1"), why)
        })
    }

    /// Is this process still there?
    pub(crate) fn life(self, sink: &dyn Sink) -> Life {
        let path = format!("/proc/{}/stat", self.pid);
        match sink.read(Path::new(&path)) {
            Ok(text) => read(&text, Some(self.start)).map_or(Life::Alive, |(_, life)| life),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Life::Gone,
            // ESRCH: it went away between open and read.
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) => Life::Gone,
            Err(_) => Life::Alive,
        }
    }
}

/// PF_EXITING of the kernel's sched.h.
const EXITING: u64 = 0x4;
/// SIGKILL's bit in the mask of pending signals.
const KILLED: u64 = 1 << 8;

/// The process that a /proc/PID/stat is of, and whether one that started at `start` still lives in it.
fn read(text: &str, start: Option<u64>) -> Option<(Owner, Life)> {
    let stat = Stat::parse(text)?;
    let (pid, started, threads) = (stat.pid()?, stat.started()?, stat.threads()?);
    let ended = matches!(stat.state()?, 'Z' | 'X');
    let is_dying = stat.flags()? & EXITING != 0 || stat.pending()? & KILLED != 0;
    // The first thread may have ended while another still finishes a write in the kernel.
    let life = if start.is_some_and(|start| start != started) || (ended && threads <= 1) {
        Life::Gone
    } else if ended || is_dying {
        Life::Dying
    } else {
        Life::Alive
    };
    Some((Owner { pid, start: started }, life))
}

#[cfg(test)]
mod tests {
    use super::{Life, Owner, read};
    use crate::sink::LiveSink;

    fn stat(state: char, flags: u64, threads: u64, start: u64, pending: u64) -> String {
        let mut fields = vec!["0".to_owned(); 52];
        fields[0] = "77".to_owned();
        fields[1] = "(a) Z 1 (b)".to_owned();
        fields[2] = state.to_string();
        fields[8] = flags.to_string();
        fields[19] = threads.to_string();
        fields[21] = start.to_string();
        fields[30] = pending.to_string();
        fields.join(" ")
    }

    #[test]
    fn life_is_told_from_state_flags_signals_and_start_time() {
        let owner = Owner { pid: 77, start: 500 };
        for (text, life) in [
            (stat('S', 0x40_0000, 2, 500, 0), Life::Alive),
            (stat('S', 0, 1, 501, 0), Life::Gone),
            (stat('Z', 0x4, 1, 500, 0), Life::Gone),
            (stat('Z', 0x4, 2, 500, 0), Life::Dying),
            (stat('R', 0x4, 1, 500, 0), Life::Dying),
            (stat('S', 0, 1, 500, 0x100), Life::Dying),
        ] {
            let (found, lives) = read(&text, Some(owner.start)).expect(&text);
            assert_eq!((found.pid, lives), (77, life), "{text}");
        }
        assert!(read("77 (x) S 1", None).is_none());
    }

    #[test]
    fn this_process_lives_and_no_process_has_its_id_and_another_start() {
        let this = Owner::this(&LiveSink).expect("own stat");
        assert_eq!(this.pid, std::process::id());
        assert_eq!(this.life(&LiveSink), Life::Alive);
        let start = this.start + 1;
        assert_eq!(Owner { start, ..this }.life(&LiveSink), Life::Gone);
    }
}
