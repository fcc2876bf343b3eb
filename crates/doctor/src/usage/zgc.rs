//! The Java heap of ZGC: a file in memory, which JDK 17 maps three times, at addresses that differ in their highest bit.

use std::collections::BTreeMap;

use host::programs::{Area, Target};
use model::{Bytes, Cause, Collector, Reading, Unread};

use super::pages::{backing, needs, of_pool, range, unread};
use super::{Part, PartKind};

/// Does this JVM keep its heap so?
pub(super) fn is_used(target: &Target) -> bool {
    let jvm = target.main.jvm().ok().flatten();
    let has_heap = || target.main.areas().unwrap_or_default().iter().any(is_heap);
    jvm.is_some_and(|jvm| jvm.collector == Some(Collector::Z) || has_heap())
}

/// Is it a mapping of the heap? The JVM calls the file `java_heap`, or `java_heap.hugetlb` with `-XX:+UseLargePages`.
pub(super) fn is_heap(area: &Area) -> bool {
    let file = area.name.rsplit(['/', ':']).next().unwrap_or_default();
    area.is_shared_memory() && file.starts_with("java_heap")
}

/// The heap as one of its views maps it. How large it may become is known from `-Xmx` alone.
pub(super) fn heap(target: &Target, default_page: Option<Bytes>) -> Part {
    let Some(view) = view(target) else {
        let why = "ZGC keeps its heap in a file of its own, and none is mapped by the name `java_heap`";
        return unread(
            PartKind::JavaHeap,
            Unread::new(Cause::Absent, target.main.file("maps"), why),
        );
    };
    let size = Bytes(view.iter().map(|area| area.size().0).sum());
    let touched = touched(target);
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
    let mut views: BTreeMap<u32, Vec<&Area>> = BTreeMap::new();
    for area in target.main.areas().ok()?.iter().filter(|area| is_heap(area)) {
        let highest_bit = area.range.start.checked_ilog2().unwrap_or(0);
        views.entry(highest_bit).or_default().push(area);
    }
    let resident = |view: &Vec<&Area>| backing(view).known().map(|backing| backing.total());
    views.into_values().max_by_key(resident)
}

/// The bytes of the file, through whichever view they were touched.
fn touched(target: &Target) -> Reading<Bytes> {
    let segment = target.shared.iter().find(|segment| is_heap(&segment.area));
    segment.map_or_else(
        || Reading::absent(target.main.file("map_files")),
        |segment| segment.touched.clone(),
    )
}
