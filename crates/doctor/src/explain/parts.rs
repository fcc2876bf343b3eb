//! A program's memory by part.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use host::processes::{Ground, Reason, Sort, objects, why_base};
use model::vms::Vm;
use model::{Bytes, PageKind, Reading, Unread};
use programs::size::mysql::innodb;
use programs::{Area, Jvm, Kind, SharedMemory, Target};

use super::heap::{Heap, counted, largest_heap};
use super::{HugetlbPages, Needs, Part, PartKind, Why, heap_file};
use crate::facts::{pages_for, range};

/// A smaller share of a program's memory on base pages for one reason is not worth a line.
const WORTH_A_LINE: f64 = 0.1;
/// Fewer bytes of files are the code of a small program.
const WORTH_A_PART: Bytes = Bytes::mib(16);

/// The part that matters most first: a heap, a guest's memory or a database's segments, then what is largest.
pub(super) fn parts(target: &Target, kind: Option<Kind>, default_page: Option<Bytes>) -> Vec<Part> {
    let areas = target.main.areas().unwrap_or_default();
    let heap = Heap::of(&target.main);
    let java = heap.as_ref().ok().and_then(Option::as_ref);
    let of_heap: BTreeSet<u64> = java
        .into_iter()
        .flat_map(|heap| &heap.areas)
        .map(|area| area.range.start)
        .collect();
    let heap_part = match &heap {
        Ok(heap) => heap.as_ref().map(|heap| java_heap(heap, target, default_page)),
        // Of other programs there is none, and of a JVM whose options are not known it is not known which.
        Err(why) => (kind == Some(Kind::Jvm)).then(|| unread(PartKind::JavaHeap, why.clone())),
    };
    let heap_file = java.filter(|heap| heap.is_file).map(|heap| heap.areas[0]);
    let mut seen = BTreeSet::new();
    let segments = target.shared.iter();
    let segments = segments.filter(|segment| !heap_file.is_some_and(|heap| heap_file::is_same(heap, &segment.area)));
    let segments = segments.filter(|segment| seen.insert((&segment.area.device, segment.area.inode)));
    let shared = segments.map(|segment| shared_memory(segment, target, default_page));
    let shared: Vec<Part> = shared.collect();
    if let Some(vm) = &target.vm {
        return heap_part.into_iter().chain([guest(vm, areas, default_page)]).collect();
    }
    let rest = areas.iter().filter(|area| !of_heap.contains(&area.range.start));
    let rest: Vec<&Area> = rest.collect();
    let rest = match target.main.areas() {
        Ok(_) => of_rest(target, &rest, default_page.filter(|_| kind == Some(Kind::Mysql))),
        Err(why) => vec![unread(PartKind::PrivateMemory, why)],
    };
    let (mut first, mut others): (Vec<Part>, Vec<Part>) = match kind {
        // Their cache is shared memory.
        Some(Kind::Postgres | Kind::Oracle) => (shared, rest),
        _ => (Vec::new(), rest.into_iter().chain(shared).collect()),
    };
    others.sort_by_key(|part| Reverse(part.weight()));
    first.splice(0..0, heap_part);
    first.extend(others);
    first
}

/// Private memory of all its processes, and the files that they map.
fn of_rest(target: &Target, rest: &[&Area], chunks: Option<Bytes>) -> Vec<Part> {
    let others = target.family.iter().flatten();
    let all: Vec<&Area> = rest.iter().copied().chain(others).collect();
    let of = |sort: Sort| all.iter().copied().filter(move |area| Sort::of(*area) == sort);
    let private: Vec<&Area> = of(Sort::Private).collect();
    let files: Vec<&Area> = of(Sort::File).collect();
    let part = of_areas(PartKind::PrivateMemory, &private);
    let has = part.hugetlb.map_or(0, |pages| pages.total);
    let private = Part {
        needs: chunks.map(|page| of_settings(target, page, has).unwrap_or_else(|| of_chunks(&private, page))),
        ..part
    };
    let private = private.without_needs_that_are_met();
    let is_worth = |part: &Part| {
        part.backing
            .known()
            .is_none_or(|backing| backing.total() >= WORTH_A_PART)
    };
    let files = Some(of_areas(PartKind::MappedFiles, &files)).filter(is_worth);
    let has_any = |part: &Part| part.backing.known().is_none_or(|backing| backing.total() > Bytes(0));
    Some(private).filter(has_any).into_iter().chain(files).collect()
}

/// As `size innodb` counts them, where the server's files could be read. How many pages align the buffer pool differs from start to start:
/// a server that has all others has what it needs.
fn of_settings(target: &Target, page: Bytes, has: u64) -> Option<Needs> {
    let settings = target.main.details.as_ref()?.innodb?;
    let sizing = innodb(&settings, page).ok()?;
    let most = sizing.whole("pages")?;
    let least = most.saturating_sub(sizing.whole("alignment").unwrap_or(0));
    let pages = if has >= least { has.min(most) } else { most };
    Some(Needs { page, pages })
}

/// The pages of memory that InnoDB takes in large allocations, those that fell back among them.
fn of_chunks(private: &[&Area], page: Bytes) -> Needs {
    let chunks = private.iter().filter(|area| is_chunk(area));
    let pages = chunks.map(|area| pages_for(area.size(), page)).sum();
    Needs { page, pages }
}

/// Smaller mappings are no chunks of a buffer pool.
const CHUNK: Bytes = Bytes::mib(32);

/// Is it an allocation that InnoDB asks huge pages for?
pub(crate) fn is_chunk(area: &Area) -> bool {
    area.is_private_data()
        && area.size() >= CHUNK
        && (area.is_hugetlb() || area.is_anonymous() && &*area.name != "[heap]")
}

fn shared_memory(segment: &SharedMemory, target: &Target, default_page: Option<Bytes>) -> Part {
    let area = &segment.area;
    let is_same = |other: &&Area| other.inode == area.inode && other.device == area.device;
    let others = target.family.iter().flatten();
    let all = target.main.areas().unwrap_or_default().iter().chain(others);
    let all: Vec<&Area> = all.filter(is_same).collect();
    let (size, touched) = (area.size(), segment.touched.clone());
    let hugetlb = of_pool(area, size, &touched);
    let lacking = default_page.filter(|_| hugetlb.is_none());
    Part {
        range: Some(range(&area.range)),
        needs: lacking.map(|page| Needs::of(page, size)),
        hugetlb,
        ..Part::new(PartKind::SharedMemory, size, counted(&all), touched)
    }
}

/// A guest's memory. Untouched, the mapping alone shows its pool: QEMU maps all of it at its start, and a guest that waits for a migration
/// touches nothing.
fn guest(vm: &Vm, areas: &[Area], default_page: Option<Bytes>) -> Part {
    let total = vm.configured.known().map_or(vm.mapped, |asked| asked.total());
    let touched = vm.backing.clone().map(|backing| backing.total());
    let of_touched = vm
        .backing
        .known()
        .and_then(|backing| backing.iter().find_map(|(kind, _)| kind.pool()));
    let is_untouched = touched.known() == Some(&Bytes(0));
    let mut mapped = areas.iter().filter_map(|area| Some((area, area.hugetlb_page()?)));
    let mapped = mapped.next().filter(|_| is_untouched);
    let hugetlb = match (of_touched, mapped) {
        (Some(page), _) => Some(HugetlbPages::of(page, total, touched.known().copied())),
        // Without a reservation (reserve=off) none of them is promised.
        (None, Some((area, page))) => {
            let is_reserved = area.has("nr") != Some(true);
            Some(HugetlbPages::of(page, total, is_reserved.then_some(Bytes(0))))
        }
        (None, None) => None,
    };
    let lacking = default_page.filter(|_| hugetlb.is_none());
    Part {
        hugetlb,
        needs: lacking.map(|page| Needs::of(page, total)),
        ..Part::new(PartKind::GuestMemory, total, vm.backing.clone(), touched)
    }
}

/// A Java heap. What it only set aside is no memory yet; of a file, how large it may become is known from its maximum alone.
fn java_heap(heap: &Heap<'_>, target: &Target, default_page: Option<Bytes>) -> Part {
    let jvm = target.main.jvm().ok().flatten();
    let touched = match heap.is_file {
        true => file_bytes(target, heap.areas[0]),
        false => heap.backing.clone().map(|backing| backing.total()),
    };
    let committed: Vec<&Area> = heap
        .areas
        .iter()
        .copied()
        .filter(|area| area.is_private_data())
        .collect();
    let hugetlb = match heap.is_file {
        true => of_pool(heap.areas[0], heap.committed, &touched),
        false => of_pools(&committed),
    };
    let largest = largest_heap(&target.main);
    let needs = |jvm: &Jvm, largest| {
        let page = default_page?;
        let pages = crate::jvm::pool_pages(jvm, largest, page);
        Some(Needs { page, pages })
    };
    Part {
        range: Some(range(&heap.range)),
        needs: jvm.zip(largest).and_then(|(jvm, largest)| needs(jvm, largest)),
        hugetlb,
        ..Part::new(PartKind::JavaHeap, heap.committed, heap.backing.clone(), touched)
    }
    .without_needs_that_are_met()
}

/// The bytes of a file, through whichever mapping they were touched.
fn file_bytes(target: &Target, area: &Area) -> Reading<Bytes> {
    let mut segments = target.shared.iter();
    let segment = segments.find(|segment| heap_file::is_same(area, &segment.area));
    segment.map_or_else(
        || Reading::absent(target.main.file("map_files")),
        |segment| segment.touched.clone(),
    )
}

/// The pages of shared memory that draws from a pool as this mapping of it does.
fn of_pool(area: &Area, size: Bytes, touched: &Reading<Bytes>) -> Option<HugetlbPages> {
    let touched = touched.known().copied();
    area.hugetlb_page().map(|page| HugetlbPages::of(page, size, touched))
}

/// A part whose mappings could not be read.
fn unread(what: PartKind, why: Unread) -> Part {
    Part::new(what, Bytes(0), Reading::Unread(why.clone()), Reading::Unread(why))
}

/// Several mappings as one part.
fn of_areas(what: PartKind, areas: &[&Area]) -> Part {
    // What is only set aside is no memory yet.
    let is_memory = |area: &&Area| what == PartKind::MappedFiles || area.is_private_data();
    let committed: Vec<&Area> = areas.iter().copied().filter(is_memory).collect();
    let backing = counted(areas);
    let size = match what {
        PartKind::MappedFiles => {
            let files = objects(areas.iter().copied(), Sort::File).into_iter();
            files.map(|file| file.size).sum()
        }
        _ => committed.iter().map(|area| area.size()).sum(),
    };
    let touched = backing.clone().map(|backing| backing.total());
    Part {
        hugetlb: of_pools(&committed),
        ..Part::new(what, size, backing, touched)
    }
}

/// The pages of those mappings that draw from a pool; of several sizes, the first.
fn of_pools(areas: &[&Area]) -> Option<HugetlbPages> {
    let page = areas.iter().find_map(|area| area.hugetlb_page())?;
    let of_size = || areas.iter().filter(|area| area.hugetlb_page() == Some(page));
    let size = of_size().map(|area| area.size()).sum();
    let touched = of_size().map(|area| area.counts().unwrap_or_default().hugetlb);
    Some(HugetlbPages::of(page, size, Some(touched.sum())))
}

/// Why memory is on base pages, the most bytes first of each part; in front of it why a heap is that is a file.
pub(super) fn thp_reasons(target: &Target, parts: &[Part], ground: &Ground<'_>) -> Vec<Why> {
    let areas = target.main.areas().unwrap_or_default();
    let of = |sort: Sort| -> Vec<&Area> { areas.iter().filter(|area| Sort::of(*area) == sort).collect() };
    let reasons = |part, areas: &[&Area]| reasons(part, areas, target, parts, ground);
    // Of a heap that is kept in a directory, its file system is the reason.
    let jvm = target.main.jvm().ok().flatten().filter(|jvm| jvm.heap_at.is_none());
    let found = Heap::of(&target.main).ok().flatten().filter(|_| jvm.is_some());
    let heap = match (&found, jvm) {
        (Some(heap), Some(jvm)) if heap.is_file => heap_file::view(jvm, areas).unwrap_or_default(),
        (Some(heap), _) => heap.areas.clone(),
        (None, _) => Vec::new(),
    };
    let of_heap: BTreeSet<u64> = heap.iter().map(|area| area.range.start).collect();
    let heap = reasons(PartKind::JavaHeap, &heap);
    let private: Vec<&Area> = of(Sort::Private)
        .into_iter()
        .filter(|area| !of_heap.contains(&area.range.start))
        .collect();
    let private = reasons(PartKind::PrivateMemory, &private);
    // Guests have the memory of a file or segment with `share=on`.
    let shared = match target.vm {
        Some(_) => reasons(PartKind::GuestMemory, &of(Sort::Shared)),
        None if is_shared_by_policy(target, parts) => reasons(PartKind::SharedMemory, &of(Sort::Shared)),
        None => Vec::new(),
    };
    // Beside other memory it is a program's code.
    let is_first = parts.first().is_some_and(|part| part.what == PartKind::MappedFiles);
    let files = match is_first {
        true => reasons(PartKind::MappedFiles, &of(Sort::File)),
        false => Vec::new(),
    };
    shared.into_iter().chain(heap).chain(private).chain(files).collect()
}

/// Does the machine's policy decide about its shared memory? Servers and JVMs have settings of their own for theirs.
pub(super) fn is_shared_by_policy(target: &Target, parts: &[Part]) -> bool {
    let kind = target.main.kind.known().copied().flatten();
    let has_own = kind.is_some_and(|kind| kind.server().is_some() || kind == Kind::Jvm);
    let mut shared = parts.iter().filter(|part| part.what == PartKind::SharedMemory);
    !has_own && shared.any(|part| part.hugetlb.is_none())
}

fn reasons(part: PartKind, areas: &[&Area], target: &Target, parts: &[Part], ground: &Ground<'_>) -> Vec<Why> {
    let all: u64 = parts.iter().filter_map(Part::huge_and_all).map(|(_, all)| all).sum();
    let sums = base_by_reason(areas, target, ground);
    // Of a guest that touched nothing yet, the rest is little as well.
    let all = all.max(sums.values().sum());
    let mut reasons: Vec<_> = sums
        .into_iter()
        .filter(|(_, bytes)| *bytes as f64 >= WORTH_A_LINE * all as f64)
        .collect();
    reasons.sort_by_key(|(_, bytes)| Reverse(*bytes));
    let why = |(reason, bytes)| Why::Thp {
        part,
        reason,
        bytes: Bytes(bytes),
    };
    reasons.into_iter().map(why).collect()
}

/// Bytes on base pages, as far as they were counted, by the kernel's reason.
pub(super) fn base_by_reason(areas: &[&Area], target: &Target, ground: &Ground<'_>) -> BTreeMap<Reason, u64> {
    let mut sums = BTreeMap::new();
    let counted = areas.iter().filter(|area| area.counted.is_some());
    for pages in counted.map(|area| area.to_pages()) {
        if let Some(reason) = why_base(&pages, &target.main.pages, ground) {
            *sums.entry(reason).or_default() += pages.backing.of(PageKind::Base).0;
        }
    }
    sums
}
