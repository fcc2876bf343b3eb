//! Facts that several rules need.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::iter;
use std::ops::Range;

use host::snapshot;
use host::snapshot::hugetlb::path_in_pool;
use host::snapshot::{Feature, Pool, Thp};
use model::{Bytes, Reading};
use programs::config::given::FileKind;
use programs::config::{Distribution, Unit};
use programs::{Area, Details, Evidence, Groups, Jvm, Kind, Program};

use super::rule::answers::each;
use super::rule::{Answer, Case, Reason};

/// Files that start programs, and at the end those with nothing but commands.
pub(super) const ASKERS: &[FileKind] = &[FileKind::Unit, FileKind::Pod, FileKind::Compose, FileKind::Script];
/// Files that start programs, with their limits and their environment.
pub(super) const STARTERS: &[FileKind] = ASKERS.split_at(ASKERS.len() - 1).0;

/// The value of a reading, or the reason why there is none.
pub(super) fn known<T>(reading: &Reading<T>) -> Result<&T, Reason> {
    match reading {
        Reading::Known(value) => Ok(value),
        Reading::Unread(why) => Err(why.clone().into()),
    }
}

/// The pools, smallest pages first.
pub(super) fn pools(evidence: &Evidence) -> Result<&[Pool], Reason> {
    known(&evidence.snapshot.pools).map(Vec::as_slice)
}

/// The pools, or the one of the default size alone, which meminfo counts too.
pub(super) fn counted(evidence: &Evidence) -> Result<Cow<'_, [Pool]>, Reason> {
    match of_meminfo(evidence) {
        Ok(pool) if evidence.snapshot.pools.is_absent() && pool.nr.known().is_some() => Ok(Cow::Owned(vec![pool])),
        _ => pools(evidence).map(Cow::Borrowed),
    }
}

/// The pool of the default size as meminfo counts it, which does not say whose it is.
pub(super) fn of_meminfo(evidence: &Evidence) -> Result<Pool, Reason> {
    let memory = &evidence.snapshot.memory;
    Ok(Pool {
        size: default_size(evidence)?,
        nr: memory.pages("HugePages_Total"),
        free: memory.pages("HugePages_Free"),
        reserved: memory.pages("HugePages_Rsvd"),
        // Kernels before 2.6.24 have no surplus pages, and no such line.
        surplus: memory.pages("HugePages_Surp"),
        overcommit: evidence.snapshot.sysctls.number("vm.nr_overcommit_hugepages"),
        demotes_to: Reading::absent("demote_size"),
        nodes: Reading::absent("pools by node"),
    })
}

/// The same where it shows that no other pool has pages: it counts all pools together in `Hugetlb` (Linux 4.19).
pub(super) fn only_pool(evidence: &Evidence) -> Option<Pool> {
    let pool = of_meminfo(evidence)
        .ok()
        .filter(|_| evidence.snapshot.pools.is_absent())?;
    let all = evidence.snapshot.memory.get("Hugetlb");
    (bytes(&pool, *pool.nr.known()?) == *all.known()?).then_some(pool)
}

/// Where the pages of a pool are counted: a file, and its field.
pub(super) fn counted_in(evidence: &Evidence, pool: &Pool) -> (String, &'static str) {
    match evidence.snapshot.pools.is_absent() {
        true => ("/proc/meminfo".to_owned(), "HugePages_Total"),
        false => (pool_file(pool, "nr_hugepages"), ""),
    }
}

/// Those that have pages without the surplus.
pub(super) fn filled(evidence: &Evidence) -> Result<Vec<&Pool>, Reason> {
    let all = by_pool(evidence, persistent)?.into_iter();
    Ok(all.filter(|(_, bytes)| bytes.0 > 0).map(|(pool, _)| pool).collect())
}

/// Each pool with the bytes of so many of its pages.
pub(super) fn by_pool(
    evidence: &Evidence,
    pages: impl Fn(&Pool) -> Result<u64, Reason>,
) -> Result<Vec<(&Pool, Bytes)>, Reason> {
    let pools = pools(evidence)?.iter();
    pools.map(|pool| Ok((pool, bytes(pool, pages(pool)?)))).collect()
}

/// Bytes of all.
pub(super) fn sum<T>(all: &[(T, Bytes)]) -> Bytes {
    all.iter().map(|(_, bytes)| *bytes).sum()
}

/// The one with most, the first of those that have as much.
pub(super) fn largest<T>(all: impl IntoIterator<Item = (T, Bytes)>) -> Option<(T, Bytes)> {
    all.into_iter()
        .reduce(|most, next| if next.1 > most.1 { next } else { most })
}

pub(super) fn thp(evidence: &Evidence) -> Result<&Thp, Reason> {
    known(&evidence.snapshot.thp)
}

/// `always`, `madvise` or `never` for anonymous PMD-sized pages.
pub(super) fn policy(evidence: &Evidence) -> Result<String, Reason> {
    let thp = thp(evidence)?;
    let pmd = *known(&thp.pmd_size)?;
    Ok(thp.policy(pmd).into_result()?)
}

/// Was this kernel built without THP? Its directory is absent, and so are its lines of meminfo, which old kernels with another
/// directory have.
pub(super) fn lacks_thp(evidence: &Evidence) -> bool {
    evidence.snapshot.thp.is_absent()
        && total(evidence).is_ok()
        && evidence.snapshot.memory.get("AnonHugePages").is_absent()
}

/// Was this kernel built without hugetlb? Likewise.
pub(super) fn lacks_hugetlb(evidence: &Evidence) -> bool {
    evidence.snapshot.pools.is_absent() && total(evidence).is_ok() && default_size(evidence).is_err()
}

/// May any THP size back anonymous memory, if only where it was advised?
pub(super) fn any_size(evidence: &Evidence) -> Result<bool, Reason> {
    let thp = thp(evidence)?;
    if policy(evidence)? != "never" {
        return Ok(true);
    }
    for size in &thp.sizes {
        if thp.policy(size.size).into_result()? != "never" {
            return Ok(true);
        }
    }
    Ok(false)
}

pub(super) fn programs(evidence: &Evidence) -> Result<&[Program], Reason> {
    known(&evidence.programs).map(Vec::as_slice)
}

/// Every process that could be read, if any could.
pub(super) fn running(evidence: &Evidence) -> impl Iterator<Item = &Program> + Clone {
    evidence.programs.known().into_iter().flatten()
}

/// The first of its ancestors, or itself, from which on all are among these.
pub(super) fn oldest_of<'e>(program: &'e Program, all: &BTreeMap<u32, &'e Program>) -> &'e Program {
    let parent = |child: &&'e Program| all.get(child.parent.known()?).copied();
    // A capture may name a child as its own ancestor.
    let line = iter::successors(Some(program), parent).take(all.len() + 1);
    line.last().unwrap_or(program)
}

/// A process's mappings with the bytes behind them.
pub(super) fn counted_areas(program: &Program) -> Result<&[Area], Reason> {
    let areas = program.areas()?;
    match areas.iter().any(|area| area.counted.is_none()) {
        true => Err(format!(
            "{}: its mappings were not walked, because that would stall a process of this size",
            program.file("smaps")
        )
        .into()),
        false => Ok(areas),
    }
}

/// What a process has advised (MADV_HUGEPAGE).
pub(super) fn advised(program: &Program) -> Result<Bytes, Reason> {
    let areas = counted_areas(program)?.iter();
    let advised = areas.filter(|area| area.has("hg") == Some(true));
    Ok(advised.map(Area::size).sum())
}

type Examined<'e> = (&'e Program, &'e Details);

/// Why a program that runs may not be known: it could not be read, or is hidden from this user.
pub(super) fn unread_program(evidence: &Evidence) -> Option<Reason> {
    let unread = running(evidence).find_map(|program| program.kind.unread());
    evidence.hidden.as_ref().or(unread).map(|why| why.clone().into())
}

/// The processes that were examined. One whose kind is unknown could have been among them, and one that is hidden.
pub(super) fn looked_into(evidence: &Evidence) -> Result<impl Iterator<Item = Result<Examined<'_>, Reason>>, Reason> {
    let hidden = evidence.hidden.iter().map(|why| Err(why.clone().into()));
    let seen = programs(evidence)?
        .iter()
        .filter_map(|program| match (&program.details, &program.kind) {
            (Some(details), Reading::Known(_)) => Some(Ok((program, details))),
            (_, Reading::Unread(why)) => Some(Err(why.clone().into())),
            (None, _) => None,
        });
    Ok(seen.chain(hidden))
}

/// Checks the processes that were examined.
pub(super) fn each_looked_into(
    evidence: &Evidence,
    look: impl Fn(&Program, &Details) -> Result<Option<Case>, Reason>,
) -> Answer {
    each(looked_into(evidence)?, |examined| {
        let (program, details) = examined?;
        look(program, details)
    })
}

/// Checks the JVMs that are of this sort.
pub(super) fn each_jvm(
    evidence: &Evidence,
    is_it: impl Fn(&Jvm) -> bool,
    look: impl Fn(&Program, &Jvm) -> Result<Option<Case>, Reason>,
) -> Answer {
    each(programs(evidence)?, |program| {
        match program.jvm()?.filter(|jvm| is_it(jvm)) {
            Some(jvm) => look(program, jvm),
            None => Ok(None),
        }
    })
}

/// Where memory is, in hex.
pub(super) fn range(range: &Range<u64>) -> String {
    format!("{:x}-{:x}", range.start, range.end)
}

/// The file that shows this mapping.
pub(super) fn shown_in(program: &Program, area: &Area) -> String {
    let name = match area.counted {
        Some(_) => "smaps",
        None => "maps",
    };
    program.file(name)
}

/// What is mapped and not resident yet.
pub(super) fn absent(area: &Area) -> Bytes {
    Bytes(area.size().0.saturating_sub(area.resident().unwrap_or_default().0))
}

/// Does it hold pages of other sizes, or is it set to ask for one? Then it asks for none of this size.
pub(super) fn asks_for_other(program: &Program, page: Bytes) -> bool {
    if let Some(size) = program.jvm().ok().flatten().and_then(|jvm| jvm.page_size) {
        return size != page;
    }
    let areas = program.areas().unwrap_or_default().iter();
    let held: Vec<Bytes> = areas.filter_map(Area::hugetlb_page).collect();
    !held.is_empty() && !held.contains(&page)
}

/// The unit of a program that runs as a service, if it could be read.
pub(super) fn unit(program: &Program) -> Option<&Unit> {
    program.details.as_ref()?.unit.as_ref()?.known()
}

/// The service that its control group is of.
pub(super) fn service(program: &Program) -> Option<&str> {
    program.cgroup().ok().flatten()?.service.as_deref()
}

/// The control groups of a program in a container.
pub(super) fn container(program: &Program) -> Option<&Groups> {
    program.cgroup().ok().flatten().filter(|groups| groups.is_container)
}

/// Is it in a control group of that name, or below one?
pub(super) fn is_in_group(program: &Program, part: &str) -> bool {
    let groups = program.cgroup().ok().flatten();
    groups.is_some_and(|groups| groups.path.contains(part))
}

/// Is it a guest that libvirt started?
pub(super) fn is_of_libvirt(program: &Program) -> bool {
    is_in_group(program, "/machine-qemu") || is_in_group(program, ".libvirt-qemu")
}

/// Memory that Firecracker does not advise, as no version before 2026 does: THP policies that wait for advice change nothing there.
pub(super) fn never_advised(program: &Program) -> impl Iterator<Item = &Area> {
    let is_it = program.is(Kind::Firecracker) == Ok(true);
    let areas = program.areas().unwrap_or_default().iter();
    areas.filter(move |area| is_it && !area.is_hugetlb() && area.has("hg") == Some(false))
}

/// Is it a machine of Arm, by the number that stands for the vendor of its CPU?
pub(super) fn is_arm(evidence: &Evidence) -> Result<bool, Reason> {
    Ok(known(&evidence.snapshot.cpu.vendor)?.starts_with("0x"))
}

/// The size of pages of a pool that a program gets which names none: of a machine that does not show it, that of x86.
pub(super) fn default_page(evidence: &Evidence) -> Bytes {
    default_size(evidence).unwrap_or(Bytes::mib(2))
}

pub(super) fn total(evidence: &Evidence) -> Result<Bytes, Reason> {
    Ok(evidence.config.total.clone().into_result()?)
}

/// The size that a plain MAP_HUGETLB or SHM_HUGETLB gets.
pub(super) fn default_size(evidence: &Evidence) -> Result<Bytes, Reason> {
    Ok(evidence.snapshot.memory.get("Hugepagesize").into_result()?)
}

pub(super) fn has(evidence: &Evidence, feature: Feature) -> Result<bool, Reason> {
    known(&evidence.snapshot.kernel.release)?;
    let has = evidence.snapshot.kernel.has(feature);
    has.ok_or_else(|| "/proc/sys/kernel/osrelease: the kernel's version has an unknown form".into())
}

pub(super) fn distribution(evidence: &Evidence) -> Distribution {
    let own = evidence.config.distribution.known();
    own.copied().unwrap_or(Distribution::Other)
}

/// Pages that are always there: those of the pool without the surplus.
pub(super) fn persistent(pool: &Pool) -> Result<u64, Reason> {
    let surplus = pool.surplus.or_if_absent(0)?;
    Ok(known(&pool.nr)?.saturating_sub(surplus))
}

/// Pages that a new mapping can get.
pub(super) fn available(pool: &Pool) -> Result<u64, Reason> {
    let reserved = *known(&pool.reserved)?;
    Ok(known(&pool.free)?.saturating_sub(reserved))
}

pub(super) fn bytes(pool: &Pool, pages: u64) -> Bytes {
    Bytes(pool.size.0.saturating_mul(pages))
}

/// The pages of that size that hold so much.
pub(super) fn pages_for(bytes: Bytes, page: Bytes) -> u64 {
    bytes.0.div_ceil(page.0.max(1))
}

/// The file of a pool's setting.
pub(super) fn pool_file(pool: &Pool, name: &str) -> String {
    format!("{}/{name}", pool.directory())
}

/// The file of a place, which may be `FILE:LINE`.
pub(super) fn file_of(place: &str) -> &str {
    place.rsplit_once(':').map_or(place, |(file, _)| file)
}

/// Its name without directories.
pub(super) fn file_name(place: &str) -> &str {
    let file = file_of(place);
    file.rsplit('/').next().unwrap_or(file)
}

/// The file of a node's part of a pool.
pub(super) fn node_file(pool: &Pool, node: u32) -> String {
    path_in_pool(pool.size, Some(node), "nr_hugepages")
}

/// The file of a THP setting.
pub(super) fn thp_file(name: &str) -> String {
    format!("{}/{name}", snapshot::thp::THP)
}

/// `part` of `whole` in per cent; 0 of nothing.
pub(super) fn percent(part: Bytes, whole: Bytes) -> f64 {
    if whole.0 == 0 {
        0.0
    } else {
        part.0 as f64 * 100.0 / whole.0 as f64
    }
}

/// Is it hugewise itself? Its memory is a measurement, not a fault of the machine.
pub(super) fn is_own(program: &Program) -> bool {
    program.pages.name == "hugewise"
}

/// A page size as PostgreSQL's `huge_page_size` takes it: `64kB`, `2MB`.
pub(super) fn in_postgres(size: Bytes) -> String {
    format!("{}B", size.exact().replace('K', "k"))
}

/// A count such as `3 processes`.
pub(super) fn count(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}
