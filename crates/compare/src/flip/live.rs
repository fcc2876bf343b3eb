//! A running process: its huge pages are collapsed and split by the kernel, its memory in use is read from its pagemap.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::thread;
use std::time::{Duration, Instant};

use host::processes;
use model::{PageKind, Unread};

use super::pieces::{PAGE, aligned};
use super::syscall::process_madvise;
use super::target::Target;

/// MADV_COLLAPSE of Linux 6.1.
pub(crate) const MADV_COLLAPSE: i32 = 25;
/// MADV_COLD of Linux 5.4: given for a part of a huge page, the kernel splits that page before it marks the part
/// (mm/madvise.c, madvise_cold_or_pageout_pte_range). The data stays where it is.
const MADV_COLD: i32 = 20;
/// A pagemap entry of a page that is in memory (Documentation/admin-guide/mm/pagemap.rst).
const PRESENT: u64 = 1 << 63;

/// A base page.
const BASE: u64 = PageKind::Base.x86_size().0;

/// One process, named by the user, that waits for what is done to it anyway: a walk takes what it takes, in steps
/// that hold the process up for a millisecond each.
pub(super) const PATIENT: processes::Limits = processes::Limits {
    walk_max: Duration::from_secs(30),
    ..processes::Limits::PATIENT
};

/// A process by its pidfd, so that another one with the same number is never touched.
pub(super) struct Live {
    pid: u32,
    process: OwnedFd,
    pagemap: File,
    began: Instant,
}

impl Live {
    pub(super) fn open(pid: u32) -> io::Result<Self> {
        Ok(Self {
            pid,
            process: process::handle(pid)?,
            pagemap: File::open(format!("/proc/{pid}/pagemap"))?,
            began: Instant::now(),
        })
    }
}

impl Target for Live {
    fn used(&mut self, at: u64) -> io::Result<f64> {
        const ENTRIES: usize = (PAGE.0 / BASE) as usize;
        let mut bytes = [0; ENTRIES * 8];
        self.pagemap.read_exact_at(&mut bytes, at / BASE * 8)?;
        let words = bytes.chunks_exact(8).filter_map(|word| word.try_into().ok());
        let present = words.filter(|&word| u64::from_ne_bytes(word) & PRESENT != 0).count();
        Ok(present as f64 / ENTRIES as f64)
    }

    fn collapse(&mut self, at: u64) -> io::Result<()> {
        process_madvise(self.process.as_fd(), at, PAGE.as_usize(), MADV_COLLAPSE)
    }

    fn split(&mut self, at: u64) -> io::Result<()> {
        process_madvise(self.process.as_fd(), at, BASE as usize, MADV_COLD)
    }

    fn large(&mut self, pieces: &[u64]) -> Result<BTreeSet<u64>, Unread> {
        let ranges: Vec<_> = pieces.iter().map(|&at| at..at + PAGE.0).collect();
        let large = processes::large(self.pid, &ranges, PATIENT)?;
        Ok(large.into_iter().flat_map(aligned).collect())
    }

    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    fn pause(&mut self, time: Duration) {
        thread::sleep(time);
    }
}
