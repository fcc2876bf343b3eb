//! Where the frames of base pages lie in memory, for root.

use std::fs::File;

use model::{Bytes, Reading, Unread};

use super::folios::{hidden, read_words};
use super::pagemap::PageWord;

/// More shows nothing new, and takes a hundredth of a second a gibibyte.
const MOST: Bytes = Bytes::gib(4);

/// The frames of those pages of this process that are in memory, in their order, of the first 4 GiB of `len` bytes from `start` on.
///
/// Denied without CAP_SYS_ADMIN, which hides frame numbers.
pub fn own_frames(start: usize, len: usize) -> Reading<Vec<u64>> {
    numbers("/proc/self/pagemap", start as u64, (len as u64).min(MOST.0)).into()
}

/// The same of another process.
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
                assert!((64..=65).contains(&frames.len()), "{frames:?}");
                let again = frames_of(std::process::id(), place as u64, memory.len() as u64);
                let again = again.known().map(Vec::len);
                assert_eq!(again, Some(frames.len()));
            }
            Err(why) => {
                assert_eq!(why.unread, Cause::Denied, "{why:?}");
                testing::skipped(&why.why);
            }
        }
        let none = own_frames(1 << 46, 4096);
        assert!(none.known().is_none_or(Vec::is_empty), "nothing is mapped there");
    }
}
