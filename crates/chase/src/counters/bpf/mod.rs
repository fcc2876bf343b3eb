//! Context switches of some threads and of all that descends from them, by small programs in the kernel (BPF): for root they cost a switch
//! less than perf events do. The programs are made here, as no library loads them without a compiler or a C library for BPF.

mod btf;
mod code;
mod syscall;

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use host::Source;
use model::placement::NoBpf;

use super::switches::{Record, What, now, thread_time};
use btf::Layout;
use code::{Maps, flag};
use syscall::{Kind, Ring};

/// Bytes of the ring of all CPUs, and what of it may be full between two readings.
const RING: usize = 4 << 20;
const USUAL: usize = 512 << 10;
/// Threads that are followed at once.
const THREADS: u32 = 1 << 16;
const TYPES: &str = "/sys/kernel/btf/vmlinux";
const NAMESPACE: &str = "/proc/self/ns/pid";
/// `PROC_PID_INIT_INO` of the kernel's `linux/proc_ns.h`: the programs see the numbers of threads that the first namespace has.
const FIRST_NAMESPACE: &str = "pid:[4026531836]";

/// Programs that record, and what they recorded.
pub struct Traced {
    ring: Ring,
    followed: OwnedFd,
    counts: OwnedFd,
    /// While these are open, the programs run.
    _programs: [OwnedFd; 4],
    /// The processes of threads.
    pids: HashMap<u32, u32>,
}

/// From when on a thread is recorded.
#[derive(Clone, Copy, Debug)]
pub struct Followed {
    pub began: u64,
    /// The CPU time of that thread until then.
    pub used_before: Duration,
}

impl Traced {
    /// Loads the programs. They record no thread yet.
    ///
    /// # Errors
    /// Why this machine has none.
    pub fn new() -> Result<Self, NoBpf> {
        // The first that needs privilege.
        let ring = Ring::new(RING).map_err(|error| match error.raw_os_error() {
            Some(libc::EPERM) => NoBpf::NotPermitted,
            Some(libc::ENOSYS) => NoBpf::NotBuilt,
            _ => NoBpf::Failed(error.to_string()),
        })?;
        let source = Source::live();
        if source
            .link(NAMESPACE)
            .known()
            .is_none_or(|name| name != FIRST_NAMESPACE)
        {
            return Err(NoBpf::PidNamespace);
        }
        let types = source.bytes(TYPES).into_result().map_err(|_| NoBpf::NoTypes)?;
        let layout = Layout::of(&types).ok_or(NoBpf::NoTypes)?;
        Self::load(ring, &layout).map_err(|error| NoBpf::Failed(error.to_string()))
    }

    fn load(ring: Ring, layout: &Layout) -> io::Result<Self> {
        let followed = syscall::map(Kind::Hash, 4, 4, THREADS)?;
        let counts = syscall::map(Kind::Array, 4, 8, 2)?;
        let maps = Maps {
            followed: followed.as_raw_fd(),
            ring: ring.map(),
            counts: counts.as_raw_fd(),
        };
        let programs = [
            syscall::attached(&code::switch(layout, maps), layout.switch)?,
            syscall::attached(&code::fork(layout, maps), layout.fork)?,
            syscall::attached(&code::exec(layout, maps), layout.exec)?,
            syscall::attached(&code::rename(layout, maps), layout.rename)?,
        ];
        Ok(Self {
            ring,
            followed,
            counts,
            _programs: programs,
            pids: HashMap::new(),
        })
    }

    /// Records the calling thread, which is the first of its process, and all that it starts from here on.
    ///
    /// # Errors
    /// The kernel's.
    pub fn follow_own(&self) -> io::Result<Followed> {
        let number = |id: rustix::process::Pid| id.as_raw_nonzero().get().cast_unsigned();
        let (tid, pid) = (number(rustix::thread::gettid()), number(rustix::process::getpid()));
        syscall::set(&self.followed, tid, pid)?;
        Ok(Followed {
            began: now(),
            used_before: thread_time(),
        })
    }

    /// Records another thread, and all that it starts from here on. One that has ended stays without records.
    ///
    /// # Errors
    /// The kernel's, if there are too many.
    pub fn add(&mut self, pid: u32, tid: u32) -> io::Result<()> {
        self.pids.insert(tid, pid);
        syscall::set(&self.followed, tid, pid)
    }

    /// Takes what was recorded since the last call, and gives how full the ring was: 1 is as much as there should be.
    pub fn drain(&mut self, records: &mut Vec<Record>) -> f64 {
        let pids = &mut self.pids;
        let bytes = self.ring.take(|bytes| {
            let _ = decode(bytes, pids, records);
        });
        bytes as f64 / USUAL as f64
    }

    /// Records that found no room so far; a switch from one recorded thread to another is one record.
    pub fn lost(&self) -> u64 {
        syscall::count(&self.counts, code::LOST).unwrap_or(0)
    }

    /// Threads that are not recorded, as there are too many.
    pub fn unfollowed(&self) -> u64 {
        syscall::count(&self.counts, code::UNFOLLOWED).unwrap_or(0)
    }
}

/// What one record of the ring means; `None` if it is too short.
fn decode(bytes: &[u8], pids: &mut HashMap<u32, u32>, records: &mut Vec<Record>) -> Option<()> {
    let (words, name) = bytes.split_at_checked(code::RECORD as usize)?;
    let word = |at: usize| super::word(words, at);
    let at = super::double(words, 0)?;
    let (first, second, cpu, flags) = (word(8)?, word(12)?, word(16)?, word(20)?);
    let mut push = |pid, tid, what| {
        records.push(Record {
            at,
            cpu,
            pid,
            tid,
            what,
        });
    };
    let process = |pids: &HashMap<u32, u32>, tid| pids.get(&tid).copied().unwrap_or(tid);
    let has = |flag| flags & flag != 0;
    if has(flag::DEAD) {
        push(pids.remove(&first).unwrap_or(first), first, What::Exit);
    } else if has(flag::OUT) {
        let preempted = has(flag::PREEMPTED);
        push(process(pids, first), first, What::Out { preempted });
    }
    if has(flag::IN) {
        push(process(pids, second), second, What::In);
    }
    if has(flag::FORK) {
        pids.insert(first, second);
        push(second, first, What::Fork);
    }
    if has(flag::NAME) {
        push(process(pids, first), first, What::Name(super::switches::text(name)));
    }
    if has(flag::EXEC) {
        pids.remove(&first);
        push(second, first, What::Exit);
        push(second, second, What::Fork);
        push(second, second, What::In);
    }
    Some(())
}

#[cfg(test)]
mod tests;
