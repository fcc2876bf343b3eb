//! How much memory THP of a given size backs, one's own or another process's: a sample by physical page, for root.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use model::{Backing, Bytes, Cause, PageKind, Reading, Unread};
use rustix::io::Errno;

use super::areas::Area;
use super::once::Sort;
use super::pagemap::{PageFlags, PageWord, WORD, words};
use super::proof::Proof;

const PAGEMAP: &str = "/proc/self/pagemap";
const KPAGEFLAGS: &str = "/proc/kpageflags";

/// Ranges looked at: the share is then known to within 6 points, and the look takes a few milliseconds.
const SAMPLED: u64 = 256;

/// Larger than the PMD-mapped page of every machine, so no THP is larger.
const LARGEST: Bytes = Bytes::gib(1);

/// How many of the sampled ranges lie in one huge page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolioSample {
    /// The page size asked for.
    pub size: Bytes,
    /// Aligned ranges of that size in the region.
    pub ranges: u64,
    /// How many of them were looked at, spread evenly.
    pub sampled: u64,
    /// Those that are one huge page of exactly this size: in one piece, aligned, one folio.
    pub exact: u64,
    /// Those that lie inside a larger page.
    pub larger: u64,
    /// The account, such as `kpageflags, 256 of 4096 ranges sampled`.
    pub account: String,
}

impl FolioSample {
    /// The share of the sampled ranges that are pages of exactly this size, from 0 to 1; `None` if the region holds
    /// no aligned range.
    pub fn share(&self) -> Option<f64> {
        (self.sampled > 0).then(|| self.exact as f64 / self.sampled as f64)
    }

    /// A proof of the same range with this share of its aligned ranges moved from base to mTHP, and both accounts
    /// named.
    pub fn refine(&self, proof: &Proof) -> Proof {
        let base = proof.backing.of(PageKind::Base).0;
        let share = self.share().unwrap_or_default();
        let pages = (self.ranges as f64 * share).round() as u64;
        let mthp = pages.saturating_mul(self.size.0).min(base);
        let others = proof.backing.iter().filter(|&(kind, _)| kind != PageKind::Base);
        let split = [
            (PageKind::Base, Bytes(base - mthp)),
            (PageKind::Mthp(self.size), Bytes(mthp)),
        ];
        Proof {
            backing: others.chain(split).collect::<Backing>(),
            account: format!("{}; {}", proof.account, self.account),
        }
    }
}

/// Samples the aligned ranges of `size` in `len` bytes at `start` of this process, by /proc/self/pagemap and
/// /proc/kpageflags.
///
/// Denied without CAP_SYS_ADMIN, which hides frame numbers. `size` is a power of two of at least two base pages.
pub fn own_range_mthp(start: usize, len: usize, size: Bytes) -> Reading<FolioSample> {
    sample(start as u64, len as u64, size).into()
}

fn sample(start: u64, len: u64, size: Bytes) -> Result<FolioSample, Unread> {
    let frames = Frames::open(PAGEMAP.to_owned(), size)?;
    let (first, ranges) = aligned(start, start.saturating_add(len), size);
    let seen = frames.sample(first, ranges, SAMPLED)?;
    let account = format!("kpageflags, {} of {ranges} ranges sampled", seen.ranges);
    Ok(FolioSample {
        size,
        ranges,
        sampled: seen.ranges,
        exact: seen.exact,
        larger: seen.larger,
        account,
    })
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
    exact: u64,
    larger: u64,
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
        let open = |path: &str| {
            File::open(path).map_err(|error| match Errno::from_io_error(&error) {
                Some(Errno::SRCH) => ended(path),
                _ => Unread::of_io(path, &error),
            })
        };
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
            let (present, folio) = self.folio(at)?;
            match folio {
                Folio::Exact => seen.exact += 1,
                Folio::Larger => seen.larger += 1,
                Folio::Other => {}
            }
            seen.present += present;
        }
        Ok(seen)
    }

    /// How many pages of a range are in memory, and what the range is.
    fn folio(&self, first_page: u64) -> Result<(u64, Folio), Unread> {
        let words = read_words(&self.pagemap, &self.path, first_page, self.pages)?;
        let frames: Vec<Option<u64>> = words.map(|word| PageWord(word).frame()).collect();
        if frames.len() as u64 != self.pages {
            return Err(ended(&self.path));
        }
        if frames.contains(&Some(0)) {
            return Err(hidden());
        }
        let present = frames.iter().flatten().count() as u64;
        let Some(first) = one_piece(&frames) else {
            return Ok((present, Folio::Other));
        };
        // A smaller folio at the beginning would end at a power of two. Behind the range is seen whether the folio ends here.
        let ends = (0..=self.pages.ilog2()).map(|order| 1 << order);
        let mut flags = Vec::new();
        for page in std::iter::once(0).chain(ends) {
            flags.extend(read_words(&self.kpageflags, KPAGEFLAGS, first + page, 1)?.map(PageFlags));
        }
        Ok((present, judge(&flags, self.pages.ilog2() as usize + 1)))
    }
}

/// The `index`-th of `sampled` picks out of `ranges`: one in each of `sampled` equal strata, at a fixed but irregular
/// place in it, so that a pattern in the memory is not met in step.
fn spread(index: u64, sampled: u64, ranges: u64) -> u64 {
    let edge = |index: u64| (u128::from(index) * u128::from(ranges) / u128::from(sampled)) as u64;
    let (low, high) = (edge(index), edge(index + 1));
    low + (index.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) % (high - low)
}

/// What a range of one huge page's size turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Folio {
    Exact,
    Larger,
    Other,
}

fn ended(path: &str) -> Unread {
    Unread::new(Cause::Absent, path, "the process has ended")
}

/// What a reader without the right to see frame numbers gets.
pub(super) fn hidden() -> Unread {
    let why = "frame numbers are hidden without CAP_SYS_ADMIN: run with sudo";
    Unread::new(Cause::Denied, PAGEMAP, why)
}

/// The first frame, if all are present, in one piece, and aligned to their number.
fn one_piece(frames: &[Option<u64>]) -> Option<u64> {
    let first = (*frames.first()?)?;
    let in_order = frames.iter().zip(first..).all(|(&frame, wanted)| frame == Some(wanted));
    (in_order && first % frames.len() as u64 == 0).then_some(first)
}

/// Judges the flags of `pages` frames of a range, those that show its folio, and of the one behind them.
fn judge(flags: &[PageFlags], pages: usize) -> Folio {
    let Some((head, tails)) = flags.get(..pages).and_then(<[_]>::split_first) else {
        return Folio::Other;
    };
    if !tails.iter().all(|tail| tail.is_thp_tail()) {
        return Folio::Other;
    }
    let goes_on = flags.get(pages).is_some_and(|next| next.is_thp_tail());
    match (head.is_thp_head(), head.is_thp_tail()) {
        (true, _) if !goes_on => Folio::Exact,
        (true, _) | (_, true) => Folio::Larger,
        _ => Folio::Other,
    }
}

/// Reads up to `count` words from the `first`-th on; fewer at the end of the file.
pub(super) fn read_words(file: &File, path: &str, first: u64, count: u64) -> Result<impl Iterator<Item = u64>, Unread> {
    let mut bytes = vec![0; count as usize * WORD];
    let read =
        read_full(file, &mut bytes, first.saturating_mul(WORD as u64)).map_err(|error| Unread::of_io(path, &error))?;
    bytes.truncate(read);
    let words: Vec<u64> = words(&bytes).collect();
    Ok(words.into_iter())
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

#[cfg(test)]
#[path = "folios_tests.rs"]
mod tests;
