//! fw, pcd, vfork and exec: processes created, ended and waited for.

use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;

use super::batch::{Batch, Timed, timed};
use super::program;
use crate::arena::{Arena, NotObtained, Want};
use crate::child::{Call, Child, Start, wait_for};

/// Processes that are created before the first of them is waited for.
const GROUP: u64 = 16;

/// One child after the other.
pub(super) struct Forks {
    start: Start,
    batch: u64,
    memory: Option<Arena>,
}

impl Forks {
    /// So many in a batch, beside memory if some is wanted.
    pub(super) fn open(start: Start, batch: u64, want: Option<&Want>) -> Result<Self, NotObtained> {
        Ok(Self {
            start,
            batch,
            memory: want.map(Arena::new).transpose()?,
        })
    }
}

impl Timed for Forks {
    fn batch(&mut self) -> io::Result<Batch> {
        let (start, children) = (self.start, self.batch);
        let mut batch = timed(children, || {
            (0..children).try_for_each(|_| wait_for(start.process(&Call::exit())?, 0))
        })?;
        batch.counts.children = children;
        Ok(batch)
    }

    fn memory(&mut self) -> io::Result<Option<Range<usize>>> {
        Ok(self.memory.as_ref().map(Arena::range))
    }
}

/// Groups of children among idle processes.
pub(super) struct Crowd {
    idle: Vec<Child>,
}

impl Crowd {
    pub(super) fn open(live: u32) -> io::Result<Self> {
        let idle = (0..live).map(|_| Child::idle()).collect::<io::Result<_>>()?;
        Ok(Self { idle })
    }
}

impl Timed for Crowd {
    fn batch(&mut self) -> io::Result<Batch> {
        let mut group = Vec::with_capacity(GROUP as usize);
        let mut batch = timed(GROUP, || {
            for _ in 0..GROUP {
                group.push(Start::Fork.process(&Call::exit())?);
            }
            group.iter().try_for_each(|&pid| wait_for(pid, 0))
        })?;
        batch.counts.children = GROUP;
        Ok(batch)
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.idle.iter().for_each(Child::end);
    }
}

/// Children that execute a program.
pub(super) fn exec() -> io::Result<impl FnMut() -> io::Result<Batch>> {
    let program = program::in_memory()?;
    Ok(move || {
        let name = [c"hugewise-program".as_ptr(), std::ptr::null()];
        let none: [*const libc::c_char; 1] = [std::ptr::null()];
        let call = Call {
            number: libc::SYS_execveat,
            arguments: [
                program.as_raw_fd() as usize,
                c"".as_ptr() as usize,
                name.as_ptr() as usize,
                none.as_ptr() as usize,
                libc::AT_EMPTY_PATH as usize,
            ],
        };
        let mut batch = timed(1, || wait_for(Start::Vfork.process(&call)?, program::STATUS))?;
        batch.counts.children = 1;
        Ok(batch)
    })
}
