//! Where the frames of base pages lie in memory, for root.

use std::fs::File;

use model::{Bytes, Reading, Unread};

use super::folios::{hidden, read_words};
use super::pagemap::PageWord;

/// More shows nothing new, and takes a hundredth of a second a gibibyte.
const MOST: Bytes = Bytes::gib(4);

/// The frames of those pages of a process that are in memory, in their order, of the first 4 GiB of `len` bytes from `start` on.
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
