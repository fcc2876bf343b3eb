//! A Java heap that is a file: ZGC's, which JDK 17 maps three times at addresses that differ in their highest bit, and that of
//! `-XX:AllocateHeapAt`.

use std::collections::BTreeMap;
use std::ops::Range;

use model::{Bytes, Cause, Collector, Reading, Unread};
use programs::{Area, Jvm, Target};

use super::pages::{backing, needs, of_pool, range, unread};
use super::{Part, PartKind};

/// Where ZGC maps its heap: its views begin at powers of two, below the kernel's choice for other mappings.
const OF_ZGC: Range<u64> = 1 << 42..7 << 44;
/// What each of its mappings is a multiple of.
const GRANULE: u64 = 2 << 20;

/// Does this JVM keep its heap so?
pub(super) fn is_used(target: &Target) -> bool {
    let jvm = target.main.jvm().ok().flatten();
    jvm.is_some_and(|jvm| jvm.collector == Some(Collector::Z) || name(target).is_some())
}

/// The file: `java_heap` in memory, or `java_heap.hugetlb` with `-XX:+UseLargePages`; else the largest below the directory that
/// the JVM was started with, or at an address of ZGC's heap.
pub(super) fn name(target: &Target) -> Option<&str> {
    let jvm = target.main.jvm().ok().flatten()?;
    let areas = target.main.areas().ok()?;
    let named = areas
        .iter()
        .find(|area| area.is_shared_memory() && file_name(area).starts_with("java_heap"));
    let is_heap = |area: &&Area| area.is_shared_data() && (is_asked_for(jvm, area) || is_of_zgc(jvm, area));
    let largest = || areas.iter().filter(is_heap).max_by_key(|area| area.size());
    Some(&named.or_else(largest)?.name)
}

fn file_name(area: &Area) -> &str {
    area.name.rsplit(['/', ':']).next().unwrap_or_default()
}

fn is_asked_for(jvm: &Jvm, area: &Area) -> bool {
    let directory = jvm.heap_at.as_deref().map(|directory| directory.trim_end_matches('/'));
    directory.is_some_and(|directory| {
        area.name
            .strip_prefix(directory)
            .is_some_and(|file| file.starts_with('/'))
    })
}

fn is_of_zgc(jvm: &Jvm, area: &Area) -> bool {
    let is_aligned = area.range.start.is_multiple_of(GRANULE) && area.size().0.is_multiple_of(GRANULE);
    jvm.collector == Some(Collector::Z) && is_aligned && OF_ZGC.contains(&area.range.start)
}

/// The heap as one of its views maps it. How large it may become is known from `-Xmx` alone.
pub(super) fn heap(target: &Target, default_page: Option<Bytes>) -> Part {
    let Some(view) = view(target) else {
        let why = "no mapping looks like the file that ZGC keeps its heap in";
        return unread(
            PartKind::JavaHeap,
            Unread::new(Cause::Absent, target.main.file("maps"), why),
        );
    };
    let size = Bytes(view.iter().map(|area| area.size().0).sum());
    let touched = touched(target, &view[0].name);
    let hugetlb = of_pool(view[0], size, &touched);
    let largest = target.main.jvm().ok().flatten().and_then(|jvm| jvm.heap_max);
    let ends = view.first().zip(view.last());
    Part {
        what: PartKind::JavaHeap,
        range: ends.map(|(first, last)| range(first.range.start, last.range.end)),
        size,
        needs: default_page
            .filter(|_| hugetlb.is_none())
            .zip(largest)
            .map(|(page, largest)| needs(page, largest)),
        hugetlb,
        backing: backing(&view),
        touched,
    }
}

/// The mappings of the view that has most pages: each view maps the whole heap, and has the pages that were used through it.
pub(super) fn view(target: &Target) -> Option<Vec<&Area>> {
    let name = name(target)?;
    let mut views: BTreeMap<u32, Vec<&Area>> = BTreeMap::new();
    for area in target
        .main
        .areas()
        .ok()?
        .iter()
        .filter(|area| &*area.name == name && area.is_shared_data())
    {
        let highest_bit = match OF_ZGC.contains(&area.range.start) {
            true => area.range.start.ilog2(),
            false => 0,
        };
        views.entry(highest_bit).or_default().push(area);
    }
    let resident = |view: &Vec<&Area>| backing(view).known().map(|backing| backing.total());
    views.into_values().max_by_key(resident)
}

/// The bytes of the file, through whichever view they were touched.
fn touched(target: &Target, name: &str) -> Reading<Bytes> {
    let segment = target.shared.iter().find(|segment| &*segment.area.name == name);
    segment.map_or_else(
        || Reading::absent(target.main.file("map_files")),
        |segment| segment.touched.clone(),
    )
}
