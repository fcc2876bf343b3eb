//! A Java heap that is a file: ZGC's, which JDK 17 maps three times at addresses that differ in their highest bit, that of
//! `-XX:AllocateHeapAt`, and a System V segment.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use model::{Bytes, Collector};
use programs::{Area, Jvm};

/// Where ZGC maps its heap: its views begin at powers of two, below the kernel's choice for other mappings.
const OF_ZGC: Range<u64> = 1 << 42..7 << 44;
/// What each of its mappings is a multiple of.
const GRANULE: u64 = 2 << 20;

/// Does this JVM keep its heap so?
pub(super) fn is_used(jvm: &Jvm, areas: &[Area]) -> bool {
    is_zgc(jvm) || file(jvm, areas).is_some()
}

/// A mapping of the file: `java_heap` in memory, or `java_heap.hugetlb` with `-XX:+UseLargePages`; else the largest below the
/// directory that the JVM was started with, at an address of ZGC's heap, or that is a segment.
fn file<'a>(jvm: &Jvm, areas: &'a [Area]) -> Option<&'a Area> {
    let named = areas
        .iter()
        .find(|area| area.is_shared_memory() && file_name(area).starts_with("java_heap"));
    let is_heap = |area: &&Area| {
        area.is_shared_data() && (is_asked_for(jvm, area) || is_of_zgc(jvm, area) || is_of_segment(jvm, area))
    };
    let largest = || areas.iter().filter(is_heap).max_by_key(|area| area.size());
    named.or_else(largest)
}

/// Do both map one file? Segments have a name together.
pub(super) fn is_same(one: &Area, other: &Area) -> bool {
    (one.inode, &one.device, &one.name) == (other.inode, &other.device, &other.name)
}

/// Is it a segment on pages of a pool that may hold the heap? Tables of the collector have smaller ones.
fn is_of_segment(jvm: &Jvm, area: &Area) -> bool {
    let heap = jvm.granted.or(jvm.heap_max).filter(|_| jvm.shm);
    area.is_segment() && area.is_hugetlb() && heap.is_some_and(|heap| area.size() >= heap)
}

/// Is it ZGC, by its option?
fn is_zgc(jvm: &Jvm) -> bool {
    jvm.collector == Some(Collector::Z)
}

fn file_name(area: &Area) -> &str {
    area.name.rsplit(['/', ':']).next().unwrap_or_default()
}

fn is_asked_for(jvm: &Jvm, area: &Area) -> bool {
    let directory = jvm.heap_at.as_deref();
    directory.is_some_and(|directory| Path::new(&*area.name).starts_with(directory))
}

fn is_of_zgc(jvm: &Jvm, area: &Area) -> bool {
    let is_aligned = area.range.start.is_multiple_of(GRANULE) && area.size().0.is_multiple_of(GRANULE);
    is_zgc(jvm) && is_aligned && OF_ZGC.contains(&area.range.start)
}

/// The mappings of the view that has most pages.
pub(super) fn view<'a>(jvm: &Jvm, areas: &'a [Area]) -> Option<Vec<&'a Area>> {
    fullest(views(jvm, areas)?)
}

/// Each view maps the whole heap, and has the pages that were used through it.
pub(super) fn views<'a>(jvm: &Jvm, areas: &'a [Area]) -> Option<BTreeMap<u32, Vec<&'a Area>>> {
    let file = file(jvm, areas)?;
    let mut views: BTreeMap<u32, Vec<&Area>> = BTreeMap::new();
    for area in areas.iter().filter(|area| is_same(file, area) && area.is_shared_data()) {
        let highest_bit = match OF_ZGC.contains(&area.range.start) {
            true => area.range.start.ilog2(),
            false => 0,
        };
        views.entry(highest_bit).or_default().push(area);
    }
    Some(views)
}

pub(super) fn fullest(views: BTreeMap<u32, Vec<&Area>>) -> Option<Vec<&Area>> {
    let resident = |view: &Vec<&Area>| view.iter().filter_map(|area| area.resident()).sum::<Bytes>();
    views.into_values().max_by_key(resident)
}
