//! Where the frames of one's own base pages lie in memory, for root.

use std::fs::File;

use model::latency::Frames;
use model::{Bytes, Reading, Unread};

use super::folios::{hidden, read_words};
use super::pagemap::PageWord;

const PAGEMAP: &str = "/proc/self/pagemap";
/// More shows nothing new, and takes a hundredth of a second a gibibyte.
const MOST: Bytes = Bytes::gib(4);

/// Where the frames of `len` bytes from `start` on lie in memory, of the first 4 GiB of them.
///
/// Denied without CAP_SYS_ADMIN, which hides frame numbers; failed where no page is in memory.
pub fn own_frames(start: usize, len: usize) -> Reading<Frames> {
    frames(start as u64, (len as u64).min(MOST.0)).into()
}

fn frames(start: u64, len: u64) -> Result<Frames, Unread> {
    let page = rustix::param::page_size() as u64;
    let pagemap = File::open(PAGEMAP).map_err(|error| Unread::of_io(PAGEMAP, &error))?;
    let words = read_words(&pagemap, PAGEMAP, start / page, len.div_ceil(page))?;
    let frames: Vec<u64> = words.filter_map(|word| PageWord(word).frame()).collect();
    if frames.contains(&0) {
        return Err(hidden());
    }
    Frames::of(frames).ok_or_else(|| Unread::new(model::Cause::Failed, PAGEMAP, "no page of the range is in memory"))
}

#[cfg(test)]
mod tests {
    use super::own_frames;
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
            }
            Err(why) => {
                assert_eq!(why.unread, Cause::Denied, "{why:?}");
                testing::skipped(&why.why);
            }
        }
        assert!(own_frames(1 << 46, 4096).known().is_none(), "nothing is mapped there");
    }
}
