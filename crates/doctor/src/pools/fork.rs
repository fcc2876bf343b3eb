//! Memory on hugetlb pages in programs that fork.

use model::Bytes;
use model::findings::Severity;
use programs::{Area, Evidence, Program};

use crate::facts::{known, programs};
use crate::rule::answers::{each_that_can, parts};
use crate::rule::{Answer, Case, Reason};

pub(super) fn forks(evidence: &Evidence) -> Answer {
    let all = programs(evidence)?;
    parts([
        each_that_can(all, |program| not_registered(evidence, program)),
        each_that_can(all, |program| one_heap(all, program)),
    ])
}

fn is_mapped(program: &Program, library: &str) -> Result<bool, Reason> {
    Ok(program.areas()?.iter().any(|area| area.name.contains(library)))
}

/// libibverbs keeps registered memory out of children with MADV_DONTFORK, by base pages, which the kernel refuses within a huge page.
fn not_registered(evidence: &Evidence, program: &Program) -> Result<Option<Case>, Reason> {
    const SAFE: &str = "RDMAV_HUGEPAGES_SAFE";
    let mut set = None;
    for name in ["RDMAV_FORK_SAFE", "IBV_FORK_SAFE"] {
        // rdma-core takes "0" as not set.
        set = set.or(program
            .tunable(name)?
            .filter(|value| *value != "0")
            .map(|value| (name, value)));
    }
    let Some((name, value)) = set.filter(|_| program.tunable(SAFE).is_ok_and(|value| value.is_none())) else {
        return Ok(None);
    };
    let huge = program.hugetlb()?;
    // Since Linux 5.13 the kernel reports that a fork copies such memory, and libibverbs leaves it alone.
    known(&evidence.snapshot.kernel.release)?;
    let copies = evidence
        .snapshot
        .kernel
        .version()
        .is_none_or(|version| version >= (5, 13));
    if copies || huge.0 == 0 || !is_mapped(program, "/libibverbs.so")? {
        return Ok(None);
    }
    Ok(Some(
        Case::likely(format!(
            "{} has {huge} on hugetlb pages and {name} in its environment: to register a part of such a page can fail (ibv_reg_mr: Invalid argument)",
            program.title()
        ))
        .severity(Severity::Warning)
        .seen(program.file("environ"), name, value)
        .seen(program.file("environ"), SAFE, "not set")
        .seen(program.file("status"), "HugetlbPages", huge)
        .fix(format!("{SAFE}=1 beside it, then restart it: registering takes longer then, and libfabric's provider efa refuses both together"))
        .fix(format!("or start it without {name}, where it does not fork")),
    ))
}

/// gperftools' tcmalloc maps one file of a hugetlbfs, shared unless a variable says otherwise: parent and child write to one heap.
fn one_heap(all: &[Program], program: &Program) -> Result<Option<Case>, Reason> {
    const PATH: &str = "TCMALLOC_MEMFS_MALLOC_PATH";
    let Some(path) = program.tunable(PATH)? else {
        return Ok(None);
    };
    let parent = *known(&program.parent)?;
    let Some(parent) = all.iter().find(|other| other.pid() == parent) else {
        return Ok(None);
    };
    let is_heap = |area: &&Area| area.is_hugetlb() && area.is_shared_data() && area.name.starts_with(path);
    let of_parent = parent.areas()?;
    let is_of_both = |area: &&Area| {
        of_parent
            .iter()
            .filter(is_heap)
            .any(|other| (&other.device, other.inode) == (&area.device, area.inode))
    };
    let shared = program.areas()?.iter().filter(is_heap).filter(is_of_both);
    let shared: Bytes = shared.map(Area::size).sum();
    if shared.0 == 0 {
        return Ok(None);
    }
    Ok(Some(
        Case::sure(format!(
            "{} and {} write to one heap of {shared}: malloc maps it shared, so that a fork copies nothing, and each destroys what the other wrote",
            parent.title(),
            program.title()
        ))
        .link(Some("https://github.com/gperftools/gperftools/issues/1139"))
        .seen(program.file("environ"), PATH, path)
        .seen(program.file("smaps"), "shared with its parent", shared)
        .seen(program.file("status"), "PPid", &program.parent)
        .fix("TCMALLOC_MEMFS_MAP_PRIVATE=1 (what is written after a fork then takes pages of the pool for each process), and restart it")
        .fix("or fork before anything is allocated"),
    ))
}
