//! Mounts, and pages in use that no process maps.

use std::collections::BTreeMap;

use host::snapshot::Mount;
use model::Bytes;
use programs::Evidence;
use programs::{Area, Kind, Program};

use super::meant::of_pods;
use crate::facts::{
    asks_for_other, available, by_pool, bytes, count, counted, counted_in, default_size, known, programs, running, sum,
};
use crate::rule::answers::each;
use crate::rule::{Answer, Case, Reason};

pub(super) fn no_mount(evidence: &Evidence) -> Answer {
    let mounts = known(&evidence.snapshot.mounts)?;
    let default = default_size(evidence)?;

    // libhugetlbfs moves segments to files, whatever else of the program has pages.
    let moves = |program: &&Program| {
        let areas = program.areas().unwrap_or_default();
        matches!(program.tunable("HUGETLB_ELFMAP"), Ok(Some(value)) if value != "no")
            && areas.iter().any(|area| area.name.contains("/libhugetlbfs.so"))
    };
    let by_path = |program: &&Program| {
        let kind = program.kind.known().copied().flatten();
        moves(program) || matches!(kind, Some(Kind::Dpdk | Kind::Qemu))
    };
    let by_paths: Vec<&Program> = running(evidence).filter(by_path).collect();
    let by_file = evidence.files.takes_by_files();
    each(counted(evidence)?.iter(), |pool| {
        let nr = *known(&pool.nr)?;
        let needs_path = by_paths
            .iter()
            .copied()
            .find(|program| !asks_for_other(program, pool.size));
        let by_file = by_file.as_ref().filter(|_| pool.size == default);
        let is_needed = needs_path.is_some() || by_file.is_some();
        let is_moved = default == pool.size && needs_path.as_ref().is_some_and(moves);
        let is_used = available(pool)? < nr && !is_moved;
        // A kubelet mounts volumes of the size that a pod asks for.
        let is_volume = !is_needed && of_pods(evidence, pool).is_some();
        if nr == 0 || is_used || is_volume || is_mounted(mounts, default, pool.size) {
            return Ok(None);
        }
        let size = pool.size.exact();
        let who = needs_path
            .map(Program::title)
            .or_else(|| by_file.map(|place| format!("the one that {place} starts")));
        let who = who.map_or(String::new(), |who| format!(" such as {who}"));
        let (file, field) = counted_in(evidence, pool);
        let at = match pool.size == default && hugetlbfs(mounts).next().is_none() {
            true => "/dev/hugepages".to_owned(),
            false => format!("/dev/hugepages-{size}"),
        };
        let case = Case::likely(format!(
            "programs that reach pages through a file{who} cannot use the pool of {} (pages of {size}): no hugetlbfs of that size is mounted",
            bytes(pool, nr)
        ))
        .info_if(!is_needed)
        .seen(file, field, nr)
        .seen("/proc/self/mounts", "hugetlbfs", mounted_sizes(evidence))
        .fix(format!("mkdir -p {at} && mount -t hugetlbfs -o pagesize={size} none {at}"))
        .fix(format!("to keep it: a line in /etc/fstab: none {at} hugetlbfs pagesize={size} 0 0"));
        Ok(Some(case.when(is_needed, |case| case.wants(pool.size))))
    })
}

fn hugetlbfs(mounts: &[Mount]) -> impl Iterator<Item = &Mount> {
    mounts.iter().filter(|mount| mount.kind == "hugetlbfs")
}

/// Is there a hugetlbfs with pages of that size?
pub(crate) fn is_mounted(mounts: &[Mount], default: Bytes, size: Bytes) -> bool {
    hugetlbfs(mounts).any(|mount| mount.page_size().unwrap_or(default) == size)
}

pub(crate) fn mounted_sizes(evidence: &Evidence) -> String {
    let mounts = evidence.snapshot.mounts.known().map_or(&[][..], Vec::as_slice);
    let named = |mount: &Mount| {
        let size = mount.option("pagesize").unwrap_or("default size");
        format!("{} ({size})", mount.target)
    };
    let list: Vec<String> = hugetlbfs(mounts).map(named).collect();
    match list.is_empty() {
        true => "none".to_owned(),
        false => list.join(" "),
    }
}

/// With how that directory becomes a hugetlbfs, of pages of a size.
pub(crate) fn mount_there(case: Case, evidence: &Evidence, path: &str, size: Option<Bytes>) -> Case {
    let option = size.map_or_else(String::new, |size| format!(" -o pagesize={}", size.exact()));
    case.seen("/proc/self/mounts", "hugetlbfs", mounted_sizes(evidence))
        .fix("name a directory that is a hugetlbfs: one of those mounted, or a new one")
        .fix(format!(
            "mkdir -p {path} && mount -t hugetlbfs{option} hugetlbfs {path}"
        ))
}

pub(super) fn orphans(evidence: &Evidence) -> Answer {
    let used = by_pool(
        evidence,
        |pool| Ok(known(&pool.nr)?.saturating_sub(*known(&pool.free)?)),
    )?;
    let used = sum(&used);
    if used.0 == 0 {
        return Ok(Vec::new());
    }
    if evidence.config.is_inside {
        return Err("processes outside of this container are not seen, and those may map the pages in use".into());
    }
    let mapped = mapped(evidence)?;
    let unmapped = Bytes(used.0.saturating_sub(mapped.0));
    if unmapped.0 == 0 {
        return Ok(Vec::new());
    }
    let case = Case::sure(format!(
        "{unmapped} of hugetlb memory is in use, and no process maps it"
    ))
    .seen("/sys/kernel/mm/hugepages", "in use", used)
    .seen("/proc/*/status", "mapped by processes, at most", mapped);
    Ok(vec![holders(evidence, case)])
}

/// What processes hold together, shared memory once; never less than it is. A shared mapping counts with all its length:
/// pages that another process touched, and left behind, belong to it too.
pub(super) fn mapped(evidence: &Evidence) -> Result<Bytes, Reason> {
    let mut shared: BTreeMap<(&str, u64, u64), u64> = BTreeMap::new();
    let mut sum = 0_u64;
    for program in programs(evidence)? {
        let all = program.hugetlb()?.0;
        let areas: &[Area] = if all > 0 { program.areas().unwrap_or(&[]) } else { &[] };
        let mut told = 0_u64;
        for area in areas
            .iter()
            .filter(|area| area.is_hugetlb() && area.is_shared_data() && area.inode != 0)
        {
            told = told.saturating_add(area.counts().map_or(0, |counts| counts.hugetlb.0));
            let longest = shared.entry((&area.device, area.inode, area.offset)).or_default();
            *longest = area.size().0.max(*longest);
        }
        sum = sum.saturating_add(all.saturating_sub(told));
    }
    Ok(Bytes(shared.values().copied().fold(sum, u64::saturating_add)))
}

/// Who it may be: segments without a mapping, and files.
fn holders(evidence: &Evidence, mut case: Case) -> Case {
    let segments = evidence.config.segments.known().into_iter().flatten();
    for segment in segments.filter(|segment| segment.attached == 0 && segment.size >= Bytes::mib(2)) {
        case = case
            .seen(
                "/proc/sysvipc/shm",
                format!("shmid {} nattch 0", segment.id),
                segment.size,
            )
            .fix(format!(
                "if no program will attach to it again: ipcrm -m {}",
                segment.id
            ));
    }
    let files = evidence.config.hugetlb_files.known().map_or(&[][..], Vec::as_slice);
    for file in files.iter().take(4) {
        case = case
            .seen(file, "hugetlbfs file", "present")
            .fix(format!("if its program is gone: rm {file}"));
    }
    if files.len() > 4 {
        case = case.seen(
            "hugetlbfs",
            "more files",
            count(files.len() as u64 - 4, "file", "files"),
        );
    }
    case.fix("look for memfds that are open but not mapped: ls -l /proc/*/fd | grep memfd")
        .fix("look for files in hugetlbfs mounts of containers too, such as rtemap_* of a DPDK program that has ended")
}
