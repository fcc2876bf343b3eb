//! What is done to a child between fork and exec, and its end with its accounts.
#![allow(unsafe_code)]

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use rustix::thread::CpuSet;

use crate::compare::place::Bound;
use crate::compare::technique::ThpSwitch;

/// `linux/prctl.h`, not in libc yet: the switch spares memory that asked for large pages (Linux 6.18).
const PR_THP_DISABLE_EXCEPT_ADVISED: libc::c_ulong = 1 << 1;
/// Nodes that fit a mask here.
const NODES: usize = 1024;

/// What a child does to itself before it becomes the program.
#[derive(Clone, Copy)]
struct Prepare {
    thp: ThpSwitch,
    cpus: Option<CpuSet>,
    nodes: Option<(libc::c_int, [u64; NODES / 64])>,
}

/// Has the child prepare itself: it dies with its parent, and has its switch, CPUs and nodes.
pub(super) fn prepare(command: &mut Command, thp: ThpSwitch, bound: &Bound) {
    let prepare = Prepare {
        thp,
        cpus: (!bound.cpus.is_empty()).then(|| bound.cpus.iter().fold(CpuSet::new(), with_cpu)),
        nodes: (!bound.nodes.is_empty()).then(|| (mode(bound), mask(&bound.nodes))),
    };
    let parent = rustix::process::getpid();
    // SAFETY: between fork and exec the closure makes system calls on values it holds; it neither allocates nor locks nor
    // panics.
    unsafe {
        command.pre_exec(move || prepare.carry_out(parent));
    }
}

fn with_cpu(mut set: CpuSet, &cpu: &u32) -> CpuSet {
    if (cpu as usize) < CpuSet::MAX_CPU {
        set.set(cpu as usize);
    }
    set
}

fn mode(bound: &Bound) -> libc::c_int {
    if bound.interleave {
        libc::MPOL_INTERLEAVE
    } else {
        libc::MPOL_BIND
    }
}

fn mask(nodes: &[u32]) -> [u64; NODES / 64] {
    let mut mask = [0; NODES / 64];
    for &node in nodes {
        if let Some(word) = mask.get_mut(node as usize / 64) {
            *word |= 1 << (node % 64);
        }
    }
    mask
}

impl Prepare {
    fn carry_out(&self, parent: Pid) -> io::Result<()> {
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        // The parent may have ended before the child was tied to it.
        if rustix::process::getppid() != Some(parent) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        self.switch()?;
        if let Some(cpus) = &self.cpus {
            rustix::thread::sched_setaffinity(None, cpus)?;
        }
        self.bind()
    }

    fn switch(&self) -> io::Result<()> {
        let flags = match self.thp {
            ThpSwitch::Left => return Ok(()),
            ThpSwitch::Off => 0,
            ThpSwitch::ExceptAdvised => PR_THP_DISABLE_EXCEPT_ADVISED,
        };
        let on: libc::c_ulong = 1;
        let unused: libc::c_ulong = 0;
        // SAFETY: the call changes a flag of this process only and takes no pointer.
        checked(unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, on, flags, unused, unused) }.into())
    }

    fn bind(&self) -> io::Result<()> {
        let Some((mode, mask)) = &self.nodes else { return Ok(()) };
        // SAFETY: the mask outlives the call and is as long as stated; the kernel reads one bit less than it is told.
        checked(unsafe { libc::syscall(libc::SYS_set_mempolicy, *mode, mask.as_ptr(), NODES + 1) })
    }
}

/// Where files arrive that a child opened before exec.
pub(super) struct Handed {
    from: OwnedFd,
    files: usize,
}

/// Has the child open files, after all else that it does to itself, and hand them to this process. Nobody waits for anybody.
pub(super) fn hand_over(
    command: &mut Command,
    open: Vec<impl Fn() -> io::Result<OwnedFd> + Send + Sync + 'static>,
) -> io::Result<Handed> {
    let (from, to) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    let files = open.len();
    // SAFETY: between fork and exec the closure makes system calls on values it holds; it neither allocates nor locks nor
    // panics.
    unsafe {
        command.pre_exec(move || {
            // Whatever comes of it, the program runs.
            let _ = open.iter().try_for_each(|open| send(&to, &open()?));
            Ok(())
        });
    }
    Ok(Handed { from, files })
}

fn send(to: &OwnedFd, file: &OwnedFd) -> io::Result<()> {
    let files = [file.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&files));
    sendmsg(to, &[IoSlice::new(&[0])], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

impl Handed {
    /// All of them, once the child has reached exec; `None` if one is missing.
    pub(super) fn files(&self) -> Option<Vec<OwnedFd>> {
        (0..self.files).map(|_| self.file()).collect()
    }

    fn file(&self) -> Option<OwnedFd> {
        let mut byte = [0];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        recvmsg(&self.from, &mut [IoSliceMut::new(&mut byte)], &mut control, flags).ok()?;
        control.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut files) => files.next(),
            _ => None,
        })
    }
}

fn checked(result: libc::c_long) -> io::Result<()> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// How a child ended and what it used, its own children that it waited for included.
pub(super) struct Ended {
    /// As `wait` tells it.
    pub(super) status: std::process::ExitStatus,
    /// CPU seconds in user mode.
    pub(super) user: f64,
    /// CPU seconds in the kernel.
    pub(super) system: f64,
    /// The largest resident set of any one process, in bytes.
    pub(super) max_rss: u64,
    /// Minor faults.
    pub(super) faults: u64,
    /// Major faults.
    pub(super) major_faults: u64,
    /// Voluntary context switches.
    pub(super) waits: u64,
    /// Involuntary ones.
    pub(super) preemptions: u64,
}

/// How a child that has ended ended, without taking its accounts.
pub(super) fn peek(child: &OwnedFd) -> io::Result<std::process::ExitStatus> {
    use std::os::unix::process::ExitStatusExt;
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    let status = rustix::process::waitid(WaitId::PidFd(child.as_fd()), options)?;
    let status = status.ok_or(io::ErrorKind::WouldBlock)?;
    // As `wait` would tell it: a code in the second byte, or a signal in the first.
    let code = status
        .exit_status()
        .map(|code| code << 8)
        .or(status.terminating_signal());
    Ok(std::process::ExitStatus::from_raw(code.unwrap_or_default()))
}

/// Waits for the end of a child of this process.
pub(super) fn wait(pid: Pid) -> io::Result<Ended> {
    use std::os::unix::process::ExitStatusExt;
    let mut status = 0;
    // SAFETY: all-zero is a valid rusage, and the call only fills in what it is given.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: both pointers are to values of this frame.
        let result = unsafe { libc::wait4(pid.as_raw_nonzero().get(), &raw mut status, 0, &raw mut usage) };
        if result >= 0 {
            break;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    Ok(Ended {
        status: std::process::ExitStatus::from_raw(status),
        user: seconds(usage.ru_utime),
        system: seconds(usage.ru_stime),
        max_rss: usage.ru_maxrss.cast_unsigned() * 1024,
        faults: usage.ru_minflt.cast_unsigned(),
        major_faults: usage.ru_majflt.cast_unsigned(),
        waits: usage.ru_nvcsw.cast_unsigned(),
        preemptions: usage.ru_nivcsw.cast_unsigned(),
    })
}
