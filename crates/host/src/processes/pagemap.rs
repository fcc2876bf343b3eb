//! The 64-bit words of /proc/PID/pagemap and /proc/kpageflags (the kernel's admin-guide/mm/pagemap.rst), and for root the frames behind a
//! process.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use model::{Bytes, Cause, Reading, Unread};

pub(super) const PAGEMAP: &str = "/proc/self/pagemap";
/// Bytes per word in both files.
const WORD: usize = size_of::<u64>();

/// What pagemap says of one virtual page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PageWord(pub(super) u64);

impl PageWord {
    /// Its frame number, if it is in memory; 0 is what a reader without CAP_SYS_ADMIN gets.
    pub(super) fn frame(self) -> Option<u64> {
        let is_present = self.0 & (1 << 63) != 0;
        is_present.then_some(self.0 & ((1 << 55) - 1))
    }
}

/// What kpageflags says of one physical page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PageFlags(pub(super) u64);

impl PageFlags {
    /// First page of a compound page.
    pub(super) const COMPOUND_HEAD: u64 = 1 << 15;
    /// Any other page of a compound page.
    pub(super) const COMPOUND_TAIL: u64 = 1 << 16;
    /// Of a hugetlb pool.
    pub(super) const HUGE: u64 = 1 << 17;
    /// Of a transparent huge page of any size.
    pub(super) const THP: u64 = 1 << 22;

    /// First page of a transparent huge page?
    pub(super) fn is_thp_head(self) -> bool {
        self.is_thp() && self.0 & Self::COMPOUND_HEAD != 0
    }

    /// A later page of a transparent huge page?
    pub(super) fn is_thp_tail(self) -> bool {
        self.is_thp() && self.0 & Self::COMPOUND_TAIL != 0
    }

    fn is_thp(self) -> bool {
        self.0 & Self::THP != 0 && self.0 & Self::HUGE == 0
    }
}

/// Reads up to `count` words from the `first`-th on; fewer at the end of the file.
pub(super) fn read_words(file: &File, path: &str, first: u64, count: u64) -> Result<impl Iterator<Item = u64>, Unread> {
    let mut bytes = vec![0; count as usize * WORD];
    let read =
        read_full(file, &mut bytes, first.saturating_mul(WORD as u64)).map_err(|error| Unread::of_io(path, &error))?;
    bytes.truncate(read);
    let words = bytes.as_chunks::<WORD>().0.to_vec();
    Ok(words.into_iter().map(u64::from_ne_bytes))
}

fn read_full(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut done = 0;
    while done < bytes.len() {
        match file.read_at(&mut bytes[done..], offset + done as u64)? {
            0 => break,
            read => done += read,
        }
    }
    Ok(done)
}

/// What a reader without the right to see frame numbers gets.
pub(super) fn hidden() -> Unread {
    let why = "frame numbers are hidden without CAP_SYS_ADMIN: run with sudo";
    Unread::new(Cause::Denied, PAGEMAP, why)
}

/// More shows nothing new, and takes a hundredth of a second a gibibyte.
const MOST: Bytes = Bytes::gib(4);

/// The frames of those pages of a process that are in memory, in their order, of the first 4 GiB of `len` bytes from `start` on.
///
/// Denied without CAP_SYS_ADMIN, which hides frame numbers.
pub fn frames_of(process: u32, start: u64, len: u64) -> Reading<Vec<u64>> {
    // In a PID namespace that has the /proc of another, its own number means another process.
    let path = match process == std::process::id() {
        true => "/proc/self/pagemap".to_owned(),
        false => format!("/proc/{process}/pagemap"),
    };
    numbers(&path, start, len.min(MOST.0)).into()
}

fn numbers(path: &str, start: u64, len: u64) -> Result<Vec<u64>, Unread> {
    let page = rustix::param::page_size() as u64;
    let pagemap = File::open(path).map_err(|error| Unread::of_io(path, &error))?;
    let words = read_words(&pagemap, path, start / page, len.div_ceil(page))?;
    let frames: Vec<u64> = words.filter_map(|word| PageWord(word).frame()).collect();
    match frames.contains(&0) {
        true => Err(hidden()),
        false => Ok(frames),
    }
}

#[cfg(test)]
mod tests {
    use super::frames_of;
    use model::Cause;

    #[test]
    fn the_frames_of_this_process_are_counted_or_it_says_why_not() {
        let memory = vec![1_u8; 64 << 12];
        let own = |start, len| frames_of(std::process::id(), start, len);
        match own(memory.as_ptr() as u64, memory.len() as u64).into_result() {
            Ok(frames) => assert!((64..=65).contains(&frames.len()), "{frames:?}"),
            Err(why) => {
                assert_eq!(why.unread, Cause::Denied, "{why:?}");
                testing::skipped(&why.why);
            }
        }
        let none = own(1 << 46, 4096);
        assert!(none.known().is_none_or(Vec::is_empty), "nothing is mapped there");
    }
}
