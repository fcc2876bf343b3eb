//! Faults of a mapped file whose pages are in the page cache: the kernel maps several around the one that was touched.

use std::fs::File;
use std::io::{self, Write};

use rustix::fs::MemfdFlags;
use rustix::mm::Advice;

use super::batch::{BASE, Batch, Timed, timed};
use crate::syscall::Mapping;

const PAGES: usize = 4096;
const BATCH: usize = 32;

/// How large the file is.
pub(super) const LEN: usize = PAGES * BASE;

/// A file in memory, mapped for reading.
pub(super) struct FileRead {
    file: Mapping,
    /// Bytes that one fault maps.
    window: usize,
    next: usize,
}

impl FileRead {
    pub(super) fn open() -> io::Result<Self> {
        let mut this = Self {
            file: Mapping::of_file(filled()?, LEN)?,
            window: BASE,
            next: 0,
        };
        this.window = this.find_window()?;
        this.renew()?;
        Ok(this)
    }

    /// Reads every page once: how many did each fault map?
    fn find_window(&mut self) -> io::Result<usize> {
        let read = timed(1, || {
            (0..LEN).step_by(BASE).for_each(|at| self.read(at));
            Ok(())
        })?;
        let faults = read.counts.faults.clamp(1, PAGES as u64);
        Ok((PAGES / faults as usize).next_power_of_two().min(PAGES / BATCH) * BASE)
    }

    fn read(&self, at: usize) {
        // SAFETY: callers pass offsets inside the mapping, which is readable as long as `self` lives.
        let _ = unsafe { self.file.start().add(at).read_volatile() };
    }

    /// Unmaps every page from this process; they stay in the page cache. Begins at a border of the windows, which lie at
    /// multiples of their own size.
    fn renew(&mut self) -> io::Result<()> {
        self.file.advise(0, LEN, Advice::LinuxDontNeed)?;
        self.next = self.file.start().align_offset(self.window);
        Ok(())
    }
}

impl Timed for FileRead {
    fn batch(&mut self) -> io::Result<Batch> {
        if self.next + BATCH * self.window > LEN {
            self.renew()?;
        }
        let windows = self.next..self.next + BATCH * self.window;
        self.next = windows.end;
        let mut batch = timed(BATCH as u64, || {
            windows.step_by(self.window).for_each(|at| self.read(at));
            Ok(())
        })?;
        batch.counts.pages = (BATCH * self.window / BASE) as u64;
        Ok(batch)
    }
}

/// A file without a name whose pages all exist.
fn filled() -> io::Result<File> {
    let mut file = File::from(rustix::fs::memfd_create("hugewise-file", MemfdFlags::CLOEXEC)?);
    (0..PAGES).try_for_each(|_| file.write_all(&[1; BASE]))?;
    Ok(file)
}
