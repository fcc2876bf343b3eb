//! How much memory THP of a given size backs, one's own or another process's: a sample by physical page, for root.

use std::fs::File;

use model::{Backing, Bytes, Cause, PageKind, Reading, Unread};

use super::areas::Area;
use super::once::Sort;
use super::pagemap::{PAGEMAP, PageFlags, PageWord, hidden, read_words};
use super::proof::Proof;

const KPAGEFLAGS: &str = "/proc/kpageflags";

/// Ranges looked at: the share is then known to within 6 points, and the look takes a few milliseconds.
const SAMPLED: u64 = 256;

/// Larger than the PMD-mapped page of every machine, so no THP is larger.
const LARGEST: Bytes = Bytes::gib(1);

/// A proof of `len` bytes at `start` of this process with the share of its aligned ranges of `size` that are pages of exactly this size
/// moved from base to mTHP, and both accounts named. The ranges are sampled by /proc/self/pagemap and /proc/kpageflags.
///
/// Denied without CAP_SYS_ADMIN, which hides frame numbers. `size` is a power of two of at least two base pages.
pub fn own_range_mthp(proof: &Proof, start: usize, len: usize, size: Bytes) -> Reading<Proof> {
    let sample = || -> Result<Proof, Unread> {
        let frames = Frames::open(PAGEMAP.to_owned(), size)?;
        let (first, ranges) = aligned(start as u64, (start as u64).saturating_add(len as u64), size);
        let seen = frames.sample(first, ranges, SAMPLED)?;
        Ok(refined(proof, size, ranges, &seen))
    };
    sample().into()
}

fn refined(proof: &Proof, size: Bytes, ranges: u64, seen: &Seen) -> Proof {
    let base = proof.backing.of(PageKind::Base).0;
    let share = seen.exact as f64 / seen.ranges.max(1) as f64;
    let pages = (ranges as f64 * share).round() as u64;
    let mthp = pages.saturating_mul(size.0).min(base);
    let others = proof.backing.iter().filter(|&(kind, _)| kind != PageKind::Base);
    let split = [
        (PageKind::Base, Bytes(base - mthp)),
        (PageKind::Mthp(size), Bytes(mthp)),
    ];
    Proof {
        backing: others.chain(split).collect::<Backing>(),
        account: format!(
            "{}; kpageflags, {} of {ranges} ranges sampled",
            proof.account, seen.ranges
        ),
    }
}

/// The first aligned address, and how many whole ranges of that size follow it.
fn aligned(start: u64, end: u64, size: Bytes) -> (u64, u64) {
    let first = start.checked_next_multiple_of(size.0).unwrap_or(u64::MAX);
    (first, end.saturating_sub(first) / size.0)
}

/// Base pages looked at in all mappings of another process, in as many ranges but at least so many: the share is then known to within 12
/// points, and the look does not take longer for a larger size.
const SAMPLED_PAGES: u64 = 1 << 14;
const SAMPLED_LEAST: u64 = 64;

/// Bytes of a process's private memory on THP of exactly this size: of each of its mappings, by their bytes, a sample of what is in memory.
///
/// # Errors
/// Denied without CAP_SYS_ADMIN; absent if the process has ended.
pub fn mthp_of(pid: u32, areas: &[Area], size: Bytes) -> Result<Bytes, Unread> {
    let frames = Frames::open(format!("/proc/{pid}/pagemap"), size)?;
    let there = |area: &Area| area.counts().unwrap_or_default().rss.0;
    let may_have = |area: &&Area| Sort::of(*area) == Sort::Private && there(area) >= size.0;
    let all: u64 = areas.iter().filter(may_have).map(there).sum();
    let sampled = (SAMPLED_PAGES / frames.pages).clamp(SAMPLED_LEAST, SAMPLED);
    let mut found = 0;
    for area in areas.iter().filter(may_have) {
        let (first, ranges) = aligned(area.range.start, area.range.end, size);
        let most = (sampled as f64 * there(area) as f64 / all as f64).ceil() as u64;
        let seen = frames.sample(first, ranges, most)?;
        let share = (seen.exact * frames.pages) as f64 / seen.present.max(1) as f64;
        found += (there(area) as f64 * share) as u64;
    }
    Ok(Bytes(found))
}

/// What maps virtual pages to frames, and what says of these which folios they belong to.
struct Frames {
    pagemap: File,
    path: String,
    kpageflags: File,
    page: u64,
    /// Base pages of the folios that are looked for.
    pages: u64,
}

/// What a sample of aligned ranges found.
#[derive(Default)]
struct Seen {
    ranges: u64,
    /// Those that are one huge page of exactly this size: in one piece, aligned, one folio.
    exact: u64,
    /// Base pages of the ranges that are in memory.
    present: u64,
}

impl Frames {
    fn open(path: String, size: Bytes) -> Result<Self, Unread> {
        let page = rustix::param::page_size() as u64;
        if !size.0.is_power_of_two() || size.0 < 2 * page || size > LARGEST {
            let why = format!(
                "{} is no THP size: wanted a power of two from {} to {LARGEST}",
                size.exact(),
                Bytes(2 * page)
            );
            return Err(Unread::new(Cause::Failed, KPAGEFLAGS, why));
        }
        let open = |path: &str| File::open(path).map_err(|error| Unread::of_io(path, &error));
        Ok(Self {
            pagemap: open(&path)?,
            path,
            kpageflags: open(KPAGEFLAGS)?,
            page,
            pages: size.0 / page,
        })
    }

    /// Looks at up to `most` of the ranges that follow each other from an address on.
    fn sample(&self, first: u64, ranges: u64, most: u64) -> Result<Seen, Unread> {
        let mut seen = Seen {
            ranges: ranges.min(most),
            ..Seen::default()
        };
        for index in 0..seen.ranges {
            let at = first / self.page + spread(index, seen.ranges, ranges) * self.pages;
            let (present, is_one) = self.folio(at)?;
            seen.exact += u64::from(is_one);
            seen.present += present;
        }
        Ok(seen)
    }

    /// How many pages of a range are in memory, and whether they are one huge page of its size.
    fn folio(&self, first_page: u64) -> Result<(u64, bool), Unread> {
        let words = read_words(&self.pagemap, &self.path, first_page, self.pages)?;
        let frames: Vec<Option<u64>> = words.map(|word| PageWord(word).frame()).collect();
        if frames.len() as u64 != self.pages {
            return Err(Unread::new(Cause::Absent, &self.path, "the process has ended"));
        }
        if frames.contains(&Some(0)) {
            return Err(hidden());
        }
        let present = frames.iter().flatten().count() as u64;
        let Some(first) = one_piece(&frames) else {
            return Ok((present, false));
        };
        // A smaller folio at the beginning would end at a power of two. Behind the range is seen whether the folio ends here.
        let ends = (0..=self.pages.ilog2()).map(|order| 1 << order);
        let mut flags = Vec::new();
        for page in std::iter::once(0).chain(ends) {
            flags.extend(read_words(&self.kpageflags, KPAGEFLAGS, first + page, 1)?.map(PageFlags));
        }
        Ok((present, is_one(&flags, self.pages.ilog2() as usize + 1)))
    }
}

/// The `index`-th of `sampled` picks out of `ranges`: one in each of `sampled` equal strata, at a fixed but irregular
/// place in it, so that a pattern in the memory is not met in step.
fn spread(index: u64, sampled: u64, ranges: u64) -> u64 {
    let edge = |index: u64| (u128::from(index) * u128::from(ranges) / u128::from(sampled)) as u64;
    let (low, high) = (edge(index), edge(index + 1));
    low + (index.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) % (high - low)
}

/// The first frame, if all are present, in one piece, and aligned to their number.
fn one_piece(frames: &[Option<u64>]) -> Option<u64> {
    let first = (*frames.first()?)?;
    let in_order = frames.iter().zip(first..).all(|(&frame, wanted)| frame == Some(wanted));
    (in_order && first % frames.len() as u64 == 0).then_some(first)
}

/// Are these the flags of one huge page: of those of its `pages` frames that show its folio, and of the frame behind them?
fn is_one(flags: &[PageFlags], pages: usize) -> bool {
    let Some((head, tails)) = flags.get(..pages).and_then(<[_]>::split_first) else {
        return false;
    };
    let goes_on = flags.get(pages).is_some_and(|next| next.is_thp_tail());
    head.is_thp_head() && tails.iter().all(|tail| tail.is_thp_tail()) && !goes_on
}

#[cfg(test)]
#[path = "folios_tests.rs"]
mod tests;
