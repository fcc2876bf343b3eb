//! Where the frames of base pages lie in memory, for root.

use std::fs::File;

use model::latency::Frames;
use model::{Bytes, Reading, Unread};

use super::folios::{hidden, read_words};
use super::pagemap::PageWord;

/// More shows nothing new, and takes a hundredth of a second a gibibyte.
const MOST: Bytes = Bytes::gib(4);

/// Where the frames of `len` bytes from `start` on lie in memory, of the first 4 GiB of them.
///
/// Denied without CAP_SYS_ADMIN, which hides frame numbers; failed where no page is in memory.
pub fn own_frames(start: usize, len: usize) -> Reading<Frames> {
    let path = "/proc/self/pagemap";
    let found = numbers(path, start as u64, (len as u64).min(MOST.0)).and_then(|frames| {
        let none = || Unread::new(model::Cause::Failed, path, "no page of the range is in memory");
        Frames::of(frames).ok_or_else(none)
    });
    found.into()
}

/// The frames of those pages of a process that are in memory, in their order, of `len` bytes from `start` on.
///
/// Denied without CAP_SYS_ADMIN, which hides frame numbers.
pub fn frames_of(process: u32, start: u64, len: u64) -> Reading<Vec<u64>> {
    numbers(&format!("/proc/{process}/pagemap"), start, len.min(MOST.0)).into()
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
    use super::{frames_of, own_frames};
    use model::Cause;

    #[test]
    fn the_frames_of_this_process_are_counted_or_it_says_why_not() {
        let memory = vec![1_u8; 64 << 12];
        let place = memory.as_ptr() as usize;
        match own_frames(place, memory.len()).into_result() {
            Ok(frames) => {
                let pages: u64 = frames.pages_by_run.iter().sum();
                assert!((64..=65).contains(&pages), "{frames:?}");
                assert!(frames.mean_run() >= 1.0 && frames.spread.0 > 0, "{frames:?}");
                let again = frames_of(std::process::id(), place as u64, memory.len() as u64);
                let again = again.known().map(|numbers| numbers.len() as u64);
                assert_eq!(again, Some(pages));
            }
            Err(why) => {
                assert_eq!(why.unread, Cause::Denied, "{why:?}");
                testing::skipped(&why.why);
            }
        }
        assert!(own_frames(1 << 46, 4096).known().is_none(), "nothing is mapped there");
    }
}
