//! The Java heap of a process: which mappings it is, and how much of it is on which pages. Found by the heap's own facts: the size that
//! the JVM reports or was given, and where a JVM puts a heap.

use std::ops::Range;

use host::processes::{Coverage, is_counted, taken_of_pool};
use model::{Backing, Bytes, Cause, Reading, Unread};
use programs::{Area, Jvm, Program};

use super::heap_file;

/// Compressed pointers reach 32 GiB, so that a JVM which uses them puts its heap below.
const COMPRESSED: u64 = 32 << 30;
/// Where heaps end and the space of classes begins: at 4 GiB, and 1 GiB below [`COMPRESSED`] (JDK 8 to 16).
const ENDS: [u64; 2] = [4 << 30, 31 << 30];

#[derive(Clone, Debug)]
pub(crate) struct Heap<'a> {
    /// Its mappings by address: of a file all views, of other memory what is reserved too.
    pub(super) areas: Vec<&'a Area>,
    /// First address, and one past the last; of a file that is mapped in several places, one of them.
    pub(super) range: Range<u64>,
    /// Bytes that the JVM took of what it reserved.
    pub(crate) committed: Bytes,
    /// What backs it, each page once. Of memory that draws from a pool, what is touched.
    pub(crate) backing: Reading<Backing>,
    /// Is it a file, as ZGC's is?
    pub(super) is_file: bool,
}

impl<'a> Heap<'a> {
    /// That of a process; `None` if it is no JVM.
    ///
    /// # Errors
    /// If its options or mappings could not be read, or none of them is its heap.
    pub(crate) fn of(program: &'a Program) -> Result<Option<Self>, Unread> {
        let Some(jvm) = program.jvm()? else { return Ok(None) };
        let areas = program.areas()?;
        let absent = |why: &str| Unread::new(Cause::Absent, program.file("maps"), why);
        if heap_file::is_used(jvm, areas) {
            let heap = of_file(jvm, areas);
            let why = "no mapping looks like the file that ZGC keeps its heap in";
            return heap.map(Some).ok_or_else(|| absent(why));
        }
        let run = anonymous(areas, jvm.granted.or(jvm.heap_max));
        let heap = run.and_then(|run| Self::new(run.iter().collect(), false));
        heap.map(Some)
            .ok_or_else(|| absent("no mapping looks like a Java heap"))
    }

    pub(super) fn new(areas: Vec<&'a Area>, is_file: bool) -> Option<Self> {
        let range = areas.first()?.range.start..areas.last()?.range.end;
        let committed = areas.iter().filter(|area| is_file || area.is_private_data());
        Some(Self {
            committed: committed.map(|area| area.size()).sum(),
            backing: counted(&areas),
            range,
            areas,
            is_file,
        })
    }

    /// Address space that is reserved for it; `None` of a file, of which ZGC reserves a multiple.
    pub(crate) fn reserved(&self) -> Option<Bytes> {
        (!self.is_file).then(|| Bytes(self.range.end - self.range.start))
    }

    /// Has the JVM advised some of it (MADV_HUGEPAGE)? `None` where its mappings do not show it.
    pub(crate) fn is_advised(&self) -> Option<bool> {
        let mut data = self.areas.iter().filter(|area| area.is_private_data() || self.is_file);
        data.try_fold(false, |any, area| Some(any || area.has("hg")?))
    }

    /// Bytes on base pages, and all: of memory that draws from a pool the whole, because it is reserved.
    ///
    /// # Errors
    /// If its mappings were not counted.
    pub(crate) fn on_base(&self) -> Result<(Bytes, Bytes), Unread> {
        let backing = self.backing.as_ref().into_result()?;
        let of_pool = |area: &&&Area| area.is_hugetlb() && (self.is_file || area.is_private_data());
        let pools = self.areas.iter().filter(of_pool).map(|area| area.size().0);
        let touched = backing.iter().filter(|(kind, _)| kind.pool().is_some());
        let touched: u64 = touched.map(|(_, bytes)| bytes.0).sum();
        let reserved = match self.is_file {
            true => touched,
            false => pools.sum(),
        };
        let base = backing.of(model::PageKind::Base);
        let all = backing.total().0.saturating_sub(touched).saturating_add(reserved);
        Ok((base, Bytes(all)))
    }
}

/// The most that the heap of a JVM may grow to: as it was asked for and the JVM rounds that up, or as it was reserved. Where the JVM
/// found too few pages and lowered it, what it asked for.
pub fn largest_heap(program: &Program) -> Option<Bytes> {
    let jvm = program.jvm().ok()??;
    let reserved = || Heap::of(program).ok()??.reserved();
    jvm.heap_max.max(jvm.granted).or_else(reserved)
}

/// Pages that a heap which is a file takes as it grows: those that it may have in the end, and those that it has. `None` of one that has all of its
/// pages from its start, as a segment has, or whose maximum is not known.
///
/// # Errors
/// If its options or mappings could not be read.
pub(crate) fn growing(program: &Program, page: Bytes) -> Result<Option<(u64, u64)>, Unread> {
    let Some(jvm) = program.jvm()?.filter(|jvm| jvm.wants_hugetlb()) else {
        return Ok(None);
    };
    let areas = program.areas()?;
    let own = taken_of_pool(areas, page).0 / page.0.max(1);
    if own == 0 || !heap_file::is_used(jvm, areas) {
        return Ok(None);
    }
    let grows = Heap::of(program)?.is_some_and(|heap| !heap.areas[0].is_segment());
    let most = largest_heap(program).filter(|_| grows);
    Ok(most.map(|most| (crate::jvm::pool_pages(jvm, most, page), own)))
}

/// Every mapping of the file that a heap is, and where the fullest of its views lies.
fn of_file<'a>(jvm: &Jvm, areas: &'a [Area]) -> Option<Heap<'a>> {
    let views = heap_file::views(jvm, areas)?;
    let all: Vec<&Area> = views.values().flatten().copied().collect();
    let view = Heap::new(heap_file::fullest(views)?, true)?;
    Some(Heap {
        backing: counted(&all),
        areas: all,
        ..view
    })
}

/// What backs mappings, each page once.
pub(super) fn counted(areas: &[&Area]) -> Reading<Backing> {
    match is_counted(areas.iter().copied()) {
        true => Reading::Known(Coverage::of(areas.iter().copied()).all()),
        false => {
            let why = "counting these pages would hold up a process of this size";
            Reading::Unread(Unread::new(Cause::Failed, "/proc/PID/smaps", why))
        }
    }
}

/// Class data sharing maps its archive into the heap (G1), and in front of the space of classes.
fn is_archive(area: &Area) -> bool {
    area.name.ends_with(".jsa")
}

/// May it be a part of a heap?
fn is_heap_like(area: &Area) -> bool {
    (is_archive(area) || area.is_anonymous() && &*area.name != "[heap]" || area.is_hugetlb())
        && area.perms.ends_with('p')
}

/// Memory that it took, and that is no archive.
fn taken(run: &[Area]) -> u64 {
    let own = run.iter().filter(|area| area.is_private_data() && !is_archive(area));
    own.map(|area| area.size().0).sum()
}

/// Lower is likelier: below the reach of compressed pointers, then most memory.
fn rank(run: &[Area]) -> (bool, std::cmp::Reverse<u64>) {
    (run[0].range.start >= COMPRESSED, std::cmp::Reverse(taken(run)))
}

/// The mappings of a heap without a file: adjacent ones that are together as long as it may grow, or else those that look most like
/// one.
fn anonymous(areas: &[Area], most: Option<Bytes>) -> Option<&[Area]> {
    let runs = areas.chunk_by(|one, next| is_heap_like(one) && is_heap_like(next) && one.range.end == next.range.start);
    let runs: Vec<&[Area]> = runs.filter(|run| is_heap_like(&run[0]) && taken(run) > 0).collect();
    let Some(Bytes(most)) = most else { return likely(&runs) };
    let exact = runs.iter().flat_map(|run| of_size(run, most));
    exact.min_by_key(|run| rank(run)).or_else(|| {
        // The JVM rounds up what it was given.
        let longer = runs
            .iter()
            .flat_map(|run| parts(run))
            .filter_map(|part| at_least(part, most));
        longer.min_by_key(|run| (rank(run).0, run[run.len() - 1].range.end - run[0].range.start))
    })
}

/// Every part of a run that is just so long and begins with no archive.
fn of_size(run: &[Area], most: u64) -> impl Iterator<Item = &[Area]> {
    let starts = (0..run.len()).filter(|&at| !is_archive(&run[at]));
    let part = move |at: usize| {
        let end = run[at].range.start.checked_add(most)?;
        let last = run.binary_search_by_key(&end, |area| area.range.end).ok()?;
        run.get(at..=last).filter(|part| !part.is_empty() && taken(part) > 0)
    };
    starts.filter_map(part)
}

/// The first mappings of a run that are at least so long.
fn at_least(run: &[Area], most: u64) -> Option<&[Area]> {
    let end = run[0].range.start.checked_add(most)?;
    let last = run.iter().position(|area| area.range.end >= end)?;
    Some(&run[..=last]).filter(|run| taken(run) > 0)
}

/// The parts of a run between the addresses where heaps end, without the space of classes, which begins with an archive.
fn parts(run: &[Area]) -> impl Iterator<Item = &[Area]> {
    let parts = run.chunk_by(|_, next| !ENDS.contains(&next.range.start));
    parts.filter(|part| {
        !part
            .iter()
            .take_while(|area| taken(std::slice::from_ref(area)) == 0)
            .any(is_archive)
    })
}

/// The one that looks most like a heap whose size is not known. Beyond the reach of compressed pointers, it is reserved whole.
fn likely<'a>(runs: &[&'a [Area]]) -> Option<&'a [Area]> {
    let parts: Vec<&[Area]> = runs
        .iter()
        .flat_map(|run| parts(run))
        .filter(|part| taken(part) > 0)
        .collect();
    let length = |part: &&&[Area]| part[part.len() - 1].range.end - part[0].range.start;
    let large = parts
        .iter()
        .filter(|part| length(part) >= COMPRESSED)
        .max_by_key(length);
    large.or_else(|| parts.iter().min_by_key(|part| rank(part))).copied()
}

#[cfg(test)]
#[path = "heap_tests.rs"]
mod tests;
