//! A program's memory by part.

use std::collections::BTreeMap;

use host::processes::why_base;
use host::snapshot::Thp;
use model::vms::Vm;
use model::{Bytes, PageKind};
use programs::{Area, Jvm, Kind, SharedMemory, Target};

use super::pages::{backing, needs, of_pool, range, unread};
use super::{HugetlbPages, Part, PartKind, Why, heap_file};

/// A smaller share of a program's memory on base pages for one reason is not worth a line.
const WORTH_A_LINE: f64 = 0.1;

/// The part that matters most first.
pub(super) fn parts(target: &Target, kind: Option<Kind>, default_page: Option<Bytes>) -> Vec<Part> {
    let is_file = heap_file::is_used(target);
    let heap_file = heap_file::name(target);
    let shared: Vec<Part> = target
        .shared
        .iter()
        .filter(|segment| Some(&*segment.area.name) != heap_file)
        .map(|segment| shared_memory(segment, default_page))
        .collect();
    let areas = target.main.areas().unwrap_or_default();
    let heap = match is_file {
        true => Some(heap_file::heap(target, default_page)),
        false => heap(target).map(|areas| of_areas(PartKind::JavaHeap, areas, default_page)),
    };
    let heap = heap.map(|part| with_what_lies_beside(part, target));
    let in_heap =
        |area: &Area| heap_range(target).is_some_and(|(start, end)| area.range.start >= start && area.range.end <= end);
    let private: Vec<&Area> = areas.iter().filter(|area| is_private(area) && !in_heap(area)).collect();
    let private = match target.main.areas() {
        Ok(_) => of_areas(PartKind::PrivateMemory, &private, None),
        Err(why) => unread(PartKind::PrivateMemory, why),
    };
    let guest = target.vm.as_ref().map(|vm| guest(vm, default_page));
    // Of a guest's program the rest is small, and its memory may be shared or private.
    let (shared, private) = match &guest {
        Some(_) => (Vec::new(), Vec::new()),
        None if private
            .backing
            .known()
            .is_some_and(|backing| backing.total() == Bytes(0)) =>
        {
            (shared, Vec::new())
        }
        None => (shared, vec![private]),
    };
    let leading = heap.into_iter().chain(guest);
    if is_shared_database(kind) || !shared.is_empty() && private_is_smaller(&shared, &private) {
        leading.chain(shared).chain(private).collect()
    } else {
        leading.chain(private).chain(shared).collect()
    }
}

fn private_is_smaller(shared: &[Part], private: &[Part]) -> bool {
    let size = |part: &Part| part.backing.known().map_or(part.size.0, |backing| backing.total().0);
    shared.iter().map(size).sum::<u64>() >= private.iter().map(size).sum()
}

fn is_private(area: &Area) -> bool {
    area.is_private_data() && (area.is_anonymous() || area.is_hugetlb())
}

fn shared_memory(segment: &SharedMemory, default_page: Option<Bytes>) -> Part {
    let area = &segment.area;
    let backing = backing(&[area]);
    let hugetlb = of_pool(area, area.size(), &segment.touched);
    Part {
        what: PartKind::SharedMemory,
        range: Some(range(area.range.start, area.range.end)),
        size: area.size(),
        needs: default_page
            .filter(|_| hugetlb.is_none())
            .map(|page| needs(page, area.size())),
        hugetlb,
        touched: segment.touched.clone(),
        backing,
    }
}

fn guest(vm: &Vm, default_page: Option<Bytes>) -> Part {
    let total = vm.configured.known().map_or(vm.mapped, |asked| asked.total());
    let kind = vm
        .backing
        .known()
        .and_then(|backing| backing.iter().find_map(|(kind, _)| kind.pool()));
    let touched = vm.backing.clone().map(|backing| backing.total());
    Part {
        what: PartKind::GuestMemory,
        range: None,
        size: total,
        hugetlb: kind.map(|page| HugetlbPages {
            page,
            total: total.0.div_ceil(page.0.max(1)),
            touched: touched.known().map(|bytes| bytes.0 / page.0.max(1)),
        }),
        needs: default_page.filter(|_| kind.is_none()).map(|page| needs(page, total)),
        backing: vm.backing.clone(),
        touched,
    }
}

/// The mappings of a Java heap: adjacent memory without a file, as long as its `-Xmx` or, without one, the longest.
fn heap(target: &Target) -> Option<&[Area]> {
    let jvm = target
        .main
        .jvm()
        .ok()
        .flatten()
        .filter(|_| !heap_file::is_used(target))?;
    let areas = target.main.areas().ok()?;
    let runs = areas.chunk_by(|one, next| is_heap_like(one) && is_heap_like(next) && one.range.end == next.range.start);
    let runs = runs.filter(|run| run.iter().any(Area::is_private_data) && run.iter().all(is_heap_like));
    let size = |run: &&[Area]| run.iter().map(|area| area.size().0).sum::<u64>();
    match jvm.heap_max {
        Some(most) => runs
            .filter(|run| size(run) >= most.0)
            .min_by_key(size)
            .map(|run| clipped(run, most)),
        None => runs.max_by_key(size),
    }
}

/// Class data sharing maps its archive (`classes.jsa`) into the heap.
fn is_heap_like(area: &Area) -> bool {
    (area.name.ends_with(".jsa") || area.is_anonymous() && &*area.name != "[heap]" || area.is_hugetlb())
        && area.perms.ends_with('p')
}

/// What lies behind the heap, if a mapping ends just where the heap does.
fn clipped(run: &[Area], most: Bytes) -> &[Area] {
    let end = run.first().map_or(0, |area| area.range.start.saturating_add(most.0));
    let place = run.iter().position(|area| area.range.end == end);
    place.map_or(run, |place| &run[..=place])
}

/// The address space of a Java heap, as it was reserved. Of ZGC it is a multiple of the heap's maximum, and not known here.
pub fn reserved_heap(target: &Target) -> Option<Bytes> {
    heap_range(target).map(|(start, end)| Bytes(end - start))
}

fn heap_range(target: &Target) -> Option<(u64, u64)> {
    let run = heap(target)?;
    Some((run.first()?.range.start, run.last()?.range.end))
}

/// Several mappings as one part. What a heap only set aside is no memory yet.
fn of_areas<A: std::borrow::Borrow<Area>>(what: PartKind, areas: &[A], default_page: Option<Bytes>) -> Part {
    let all: Vec<&Area> = areas.iter().map(std::borrow::Borrow::borrow).collect();
    let committed: Vec<&Area> = all.iter().copied().filter(|area| area.is_private_data()).collect();
    let size = Bytes(committed.iter().map(|area| area.size().0).sum());
    let backing = backing(&committed);
    let hugetlb = whole_hugetlb(&committed);
    let span = (what == PartKind::JavaHeap)
        .then(|| Some((all.first()?.range.start, all.last()?.range.end)))
        .flatten();
    let reserved = span.map_or(size, |(start, end)| Bytes(end - start));
    Part {
        what,
        range: span.map(|(start, end)| range(start, end)),
        size,
        touched: backing.clone().map(|backing| backing.total()),
        needs: default_page
            .filter(|_| hugetlb.is_none())
            .map(|page| needs(page, reserved)),
        hugetlb,
        backing,
    }
}

/// A JVM takes pages for its code cache and the collector's tables too.
fn with_what_lies_beside(mut part: Part, target: &Target) -> Part {
    let jvm = target.main.jvm().ok().flatten();
    let heap = jvm.and_then(|jvm| jvm.heap_max).or_else(|| reserved_heap(target));
    if let (Some(needs), Some(jvm), Some(heap)) = (part.needs.as_mut(), jvm, heap) {
        needs.page = jvm.page_size.unwrap_or(needs.page);
        needs.pages = crate::jvm::pool_pages(jvm, heap, needs.page);
    }
    part
}

/// The pages of mappings that all draw from one pool.
fn whole_hugetlb(areas: &[&Area]) -> Option<HugetlbPages> {
    let counted = |area: &Area| area.counted.as_ref().filter(|_| area.is_hugetlb()).cloned();
    let page = areas.first().and_then(|area| counted(area)?.kernel_page)?;
    let mut pages = HugetlbPages {
        page,
        total: 0,
        touched: Some(0),
    };
    for area in areas {
        let counted = counted(area).filter(|counted| counted.kernel_page == Some(page))?;
        pages.total += area.size().0 / page.0.max(1);
        pages.touched = pages
            .touched
            .map(|touched| touched + counted.counts.hugetlb().0 / page.0.max(1));
    }
    Some(pages)
}

/// Why private memory is on base pages, the most bytes first; in front of it why a heap is that is a file.
pub(super) fn thp_reasons(target: &Target, parts: &[Part], thp: Option<&Thp>) -> Vec<Why> {
    let areas = target.main.areas().unwrap_or_default().iter();
    let private: Vec<&Area> = areas.filter(|area| is_private(area)).collect();
    let reasons = |part, areas: &[&Area]| reasons(part, areas, target, parts, thp);
    // Of a heap that is kept in a directory, its file system is the reason.
    let is_own = target
        .main
        .jvm()
        .ok()
        .flatten()
        .is_some_and(|jvm| jvm.heap_at.is_none());
    let heap = heap_file::view(target).filter(|_| is_own).unwrap_or_default();
    let heap = reasons(PartKind::JavaHeap, &heap);
    let private = reasons(PartKind::PrivateMemory, &private);
    heap.into_iter().chain(private).collect()
}

fn reasons(part: PartKind, areas: &[&Area], target: &Target, parts: &[Part], thp: Option<&Thp>) -> Vec<Why> {
    let all: u64 = parts.iter().filter_map(Part::huge_and_all).map(|(_, all)| all).sum();
    let mut sums = BTreeMap::new();
    let counted = areas.iter().filter(|area| area.counted.is_some());
    for pages in counted.map(|area| area.to_pages()) {
        if let Some(reason) = why_base(&pages, &target.main.pages, thp) {
            *sums.entry(reason).or_insert(0) += pages.backing.of(PageKind::Base).0;
        }
    }
    let mut reasons: Vec<_> = sums
        .into_iter()
        .filter(|(_, bytes)| *bytes as f64 >= WORTH_A_LINE * all as f64)
        .collect();
    reasons.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    let why = |(reason, bytes)| Why::Thp {
        part,
        reason,
        bytes: Bytes(bytes),
    };
    reasons.into_iter().map(why).collect()
}

/// Does it ask for pages of a pool?
pub(super) fn asks_for_hugetlb(jvm: &Jvm) -> bool {
    jvm.large_pages && !jvm.transparent
}

/// Is it a database whose cache is shared memory?
fn is_shared_database(kind: Option<Kind>) -> bool {
    matches!(kind, Some(Kind::Postgres | Kind::Oracle))
}
