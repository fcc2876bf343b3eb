//! For whom an idle pool is.

use host::snapshot::Pool;
use model::Bytes;
use programs::config::given::Service;
use programs::config::{LimitLine, Parameters, Setting};
use programs::{Area, Evidence, HugetlbLimit, Kind, Limit, Program};

use crate::demand::{Room, demands_of};
use crate::facts::{bytes, default_size, file_name, file_of, running, service};
use crate::rule::{Case, Reason};

/// For whom a pool is: the line of a file that says it, and whose program is to be started.
pub(super) type Meant = (Setting, String);

pub(super) fn meant_for(evidence: &Evidence, pool: &Pool, memory: Bytes) -> Vec<Meant> {
    let is_default = default_size(evidence).ok() == Some(pool.size);
    let all = [
        by_group(evidence).filter(|_| is_default),
        by_enclaves(evidence),
        by_pods(evidence, pool),
        by_limit(evidence, memory),
        by_given(evidence, pool, memory),
        by_unit(evidence, pool, memory),
        by_segments(evidence, memory),
        by_instance(evidence, memory),
        by_name(evidence, pool),
    ];
    all.into_iter().flatten().collect()
}

/// With what shows whose an idle pool is, and what is to be started.
pub(super) fn start(case: Case, meant: &[Meant]) -> Case {
    let case = meant.iter().fold(case, |case, (line, _)| case.seen_line(line));
    let whose = meant.first().map_or("", |(_, whose)| whose);
    case.fix(format!(
        "start the program {whose}; if it falls back, see its own finding"
    ))
}

/// An instance of Oracle that files of the root describe.
fn by_instance(evidence: &Evidence, memory: Bytes) -> Option<Meant> {
    let mut all = evidence
        .config
        .instances
        .known()?
        .iter()
        .filter_map(Parameters::instance);
    let Setting { place, value, .. } = all.find(|instance| is_for(memory.0, instance.sga))?.setting;
    Some((
        Setting::new(&place, "SGA", value),
        format!("whose parameters are in {place}"),
    ))
}

/// An instance of Oracle whose segments fit the pool, and are on base pages.
fn by_segments(evidence: &Evidence, memory: Bytes) -> Option<Meant> {
    let is_instance = |program: &&Program| program.is(Kind::Oracle) == Ok(true) && program.details.is_some();
    let mut instances = running(evidence).filter(is_instance);
    instances.find_map(|program| {
        let areas = program.areas().ok()?.iter();
        let segments = areas.filter(|area| area.is_segment() && !area.is_hugetlb());
        let size: Bytes = segments.map(Area::size).sum();
        is_for(memory.0, size).then(|| {
            let line = Setting::new(program.file("smaps"), "segments on base pages", size.to_string());
            (line, format!("{} again, whose segments fit it", program.title()))
        })
    })
}

/// Programs whose names files have that fill a pool for them.
const NAMES: &str = "cassandra dpdk hana java kubevirt libvirt longhorn mariadb mayastor mysql openebs oracle ovs postgres qemu spdk \
                     vpp xmrig";

/// The file that fills the pool is named for a program.
fn by_name(evidence: &Evidence, pool: &Pool) -> Option<Meant> {
    let is_default = default_size(evidence).ok() == Some(pool.size);
    let line = evidence
        .config
        .sysctl
        .known()?
        .last("vm.nr_hugepages")
        .filter(|_| is_default)?;
    let file = file_name(&line.place).to_ascii_lowercase();
    let name = NAMES.split(' ').find(|name| file.contains(name))?;
    Some((line.clone(), format!("that {} is named for ({name})", line.place)))
}

/// `vm.hugetlb_shm_group` serves pools alone.
fn by_group(evidence: &Evidence) -> Option<Meant> {
    let name = "vm.hugetlb_shm_group";
    let gid: u32 = evidence.snapshot.sysctls.number(name).into_result().ok()?;
    let group = evidence.config.accounts.known()?.group(gid).filter(|_| gid != 0)?;
    let line = Setting::new("/proc/sys/vm/hugetlb_shm_group", "", gid.to_string());
    Some((line, format!("of the group {} ({name})", group.name)))
}

/// The allocator of Nitro enclaves keeps its pages for enclaves that are started later.
fn by_enclaves(evidence: &Evidence) -> Option<Meant> {
    let set = evidence.config.enclaves.as_ref().filter(|set| set.value != "0")?;
    Some((
        Setting::new(&set.place, "memory_mib", &set.value),
        "of the enclave (nitro-enclaves-allocator takes these pages at its start)".to_owned(),
    ))
}

/// The limit up to which a kubelet gives pages of that pool to pods, if it gives any.
pub(super) fn of_pods<'e>(evidence: &'e Evidence, pool: &Pool) -> Option<&'e HugetlbLimit> {
    let mut limits = evidence.pods.iter().flat_map(|pods| &pods.hugetlb);
    // Without a number it is that of no kubelet.
    let gives = |limit: &&HugetlbLimit| matches!(limit.max.known(), Some(Limit::Bytes(bytes)) if *bytes > 0);
    limits.find(|limit| limit.page == pool.size && gives(limit))
}

fn by_pods(evidence: &Evidence, pool: &Pool) -> Option<Meant> {
    let limit = of_pods(evidence, pool)?;
    let whose = format!(
        "of a pod with hugepages-{}i in its limits: the kubelet has these pages",
        pool.size.exact()
    );
    Some((Setting::new(&limit.file, "", limit.max.known()?.to_string()), whose))
}

/// Was that amount calculated for a pool of so much? Then it is at most twice as large.
fn is_for(bytes: u64, memory: Bytes) -> bool {
    bytes >= memory.0 && bytes / 2 <= memory.0
}

fn are_alike(one: Bytes, other: Bytes) -> bool {
    is_for(one.0, other) || is_for(other.0, one)
}

/// A limit of locked memory that was calculated for this pool: a user's own.
fn by_limit(evidence: &Evidence, memory: Bytes) -> Option<Meant> {
    let fits = |line: &&LimitLine| matches!(line.memlock(), Some(Limit::Bytes(bytes)) if is_for(bytes, memory));
    let own = evidence.config.limits.known().into_iter().flatten();
    let mut own = own.chain(&evidence.files.limits);
    let line = own.rfind(|line| !matches!(line.domain.as_str(), "*" | "root") && fits(line))?;
    let whose = format!("of {}, which may lock so much", line.domain);
    Some((Setting::new(&line.place, "memlock in KiB", &line.value), whose))
}

/// A file that was given asks for such a pool. The file that fills it now does not show a program that needs it.
fn by_given(evidence: &Evidence, pool: &Pool, memory: Bytes) -> Option<Meant> {
    let (files, default) = (&evidence.files, default_size(evidence).ok());
    let sysctl = evidence.config.sysctl.known();
    let filler = sysctl.and_then(|own| own.last("vm.nr_hugepages"));
    let is_other = |line: &Setting| filler.is_none_or(|filler| file_name(&filler.place) != file_name(&line.place));
    let set = files.sysctl.number("vm.nr_hugepages").ok().flatten();
    let set = set.filter(|(_, line)| default == Some(pool.size) && is_other(line));
    let mut lines = files.boot.iter().rev();
    let by_boot = || lines.find_map(|line| Some((line.boot.pages_of(pool.size, default)?, &line.place)));
    let set = set.map(|(pages, line)| (pages, &line.place)).or_else(by_boot);
    let (pages, place) = set?;
    if !are_alike(bytes(pool, pages), memory) {
        return None;
    }
    let whose = format!("for which {place} asks for these pages");
    Some((Setting::new(place, "pages", pages.to_string()), whose))
}

/// Units of the administrator that are not running, and together ask for such a pool.
fn by_unit(evidence: &Evidence, pool: &Pool, memory: Bytes) -> Option<Meant> {
    let mut units = evidence.config.own_units.known()?.clone();
    let runs = |unit: &Service| running(evidence).any(|program| service(program) == Some(&unit.name));
    units.services.retain(|unit| !runs(unit));
    let room = Room::of(evidence).ok()?;
    let mut demands = demands_of(&units, evidence, &room);
    demands.retain(|demand| demand.page.unwrap_or(room.default) == pool.size);
    let asked: Result<Vec<Bytes>, &Reason> = demands.iter().map(|demand| demand.bytes.as_ref().copied()).collect();
    let is_alike = asked.is_ok_and(|asked| are_alike(asked.into_iter().sum(), memory));
    let first = demands.into_iter().next().filter(|_| is_alike)?.seen;
    let whose = format!("of {}, which asks for these pages", file_of(&first.place));
    Some((first, whose))
}
