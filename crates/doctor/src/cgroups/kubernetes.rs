//! What containers and Kubernetes need to use hugetlb pages.

use host::snapshot::{Feature, Pool};
use model::Bytes;
use model::findings::Severity;
use programs::Evidence;
use programs::config::given::{Container, Pod};
use programs::{GroupLevel, Kind, Limit};

use crate::demand::who;
use crate::facts::{bytes, default_size, each_looked_into, known, pages_for, persistent, pool_file, pools, programs};
use crate::rule::answers::each;
use crate::rule::{Answer, Case, Reason};

pub(super) fn no_mount(evidence: &Evidence) -> Answer {
    each_looked_into(evidence, |program, details| {
        let mut arguments = program.arguments.known().into_iter().flatten();
        let by_path = match known(&program.kind)? {
            Some(Kind::Dpdk) => program.argument("--in-memory").is_none(),
            _ => arguments.any(|argument| argument.contains("/dev/hugepages")),
        };
        let Some(groups) = program.cgroup()?.filter(|groups| groups.is_container && by_path) else {
            return Ok(None);
        };
        if !known(&details.hugetlb_mounts)?.is_empty() {
            return Ok(None);
        }
        let case = Case::likely(format!(
            "{} needs a hugetlbfs in its container, and none is mounted",
            program.title()
        ))
        .wants(default_size(evidence)?)
        .seen(program.file("mounts"), "hugetlbfs", "none")
        .seen(program.file("cgroup"), "", &groups.path)
        .fix("Kubernetes: a volume emptyDir: {medium: HugePages-2Mi}, mounted at /dev/hugepages")
        .fix("Docker, Podman: -v /dev/hugepages:/dev/hugepages");
        Ok(Some(case))
    })
}

pub(super) fn stale(evidence: &Evidence) -> Answer {
    let all = programs(evidence)?;
    let mut kubelet = None;
    for program in all {
        if program.is(Kind::Kubelet)? {
            kubelet = Some(program);
        }
    }
    let Some(kubelet) = kubelet else { return Ok(Vec::new()) };
    if evidence.pods.is_empty() {
        return Err("a kubelet runs, and the control group of its pods (kubepods) could not be read".into());
    }
    let pools = pools(evidence)?.iter();
    let pairs = pools.flat_map(|pool| evidence.pods.iter().map(move |pods| (pool, pods)));
    each(pairs, |(pool, pods)| differs(pool, pods, kubelet.pid()))
}

/// Is it the group of all pods, by the name that the kubelet's drivers make?
pub(super) fn is_root_of_pods(directory: &str) -> bool {
    directory.ends_with("/kubepods.slice") || directory.ends_with("/kubepods")
}

/// Is it the group of all pods with another limit than the pool's size? Then C05 explains its refusals.
pub(super) fn is_stale(evidence: &Evidence, level: &GroupLevel) -> bool {
    let pools = evidence.snapshot.pools.known().into_iter().flatten();
    let mut pools = pools.filter(|_| is_root_of_pods(&level.directory));
    pools.any(|pool| matches!(differs(pool, level, 0), Ok(Some(_))))
}

fn differs(pool: &Pool, pods: &GroupLevel, kubelet: u32) -> Result<Option<Case>, Reason> {
    let Some(limit) = pods.hugetlb.iter().find(|limit| limit.page == pool.size) else {
        return Ok(None);
    };
    let has = bytes(pool, persistent(pool)?);
    let Limit::Bytes(max) = *known(&limit.max)? else {
        return Ok(None);
    };
    if Bytes(max) == has {
        return Ok(None);
    }
    Ok(Some(
        Case::sure(format!(
            "all pods together are limited to {} in pages of {}, and the pool has {has}: the kubelet (pid {kubelet}) read it before the pool changed",
            Bytes(max),
            pool.size.exact()
        ))
        .seen(&limit.file, "", Bytes(max))
        .seen(pool_file(pool, "nr_hugepages"), "in bytes", has)
        .seen(&limit.counter, "refused", &limit.refused)
        .fix("systemctl restart kubelet")
        .fix("and fill pools at boot, before it starts"),
    ))
}

/// A hugetlbfs in a pod with a user namespace of its own: the run-time makes an idmapped mount of each volume.
pub(super) fn idmapped(evidence: &Evidence, pod: &Pod) -> Option<Case> {
    let users = pod.own_users.as_ref()?;
    let kernel = &evidence.snapshot.kernel;
    let is_old = kernel.has(Feature::IdmappedHugetlbfs) == Some(false);
    let (place, name, medium) = match (pod.volumes.first(), pod.of_host.first()) {
        (Some(own), _) => (&own.place, &own.name, own.medium.as_str()),
        (None, Some(name)) => (&pod.place, name, "the host's hugetlbfs"),
        (None, None) => return None,
    };
    is_old.then(|| {
        Case::sure(format!(
            "the pod {} does not start on this node: with hostUsers: false its volume {name} needs an idmapped mount, which hugetlbfs has since Linux 6.9",
            pod.name
        ))
        .seen(users, "hostUsers", "false")
        .seen(place, format!("volume {name}"), medium)
        .seen("/proc/sys/kernel/osrelease", "", &kernel.release)
        .fix("run it on nodes with Linux 6.9 or later")
        .fix("or leave hostUsers: false out of this pod")
        .fix("or leave the volume out, if its program maps pages without a path (MAP_HUGETLB, memfd_create)")
    })
}

/// The request that does: extensions of PostgreSQL take shared memory of their own.
pub(super) fn enough(container: &Container, sized_in: &str, need: u64, page: Bytes) -> String {
    let set = container.postgres.as_ref();
    let set = set.and_then(|server| server.settings.last("shared_preload_libraries"));
    let libraries = set.map(|set| &*set.value).filter(|names| !names.is_empty());
    let beside = libraries.map_or(0, |_| need.div_ceil(10));
    let why = libraries.map_or_else(String::new, |names| {
        format!(": {need} pages, and a tenth more for {names}, which takes shared memory of its own")
    });
    format!(
        "hugepages-{}i: {}Mi in {}{why}",
        page.exact(),
        need.saturating_add(beside).saturating_mul(page.0) >> 20,
        sized_in
    )
}

/// Is it a page size that this node's CPU or kernel does not have, whatever is on its boot line?
pub(super) fn lacks_size(evidence: &Evidence, page: Bytes) -> bool {
    let sizes = evidence.snapshot.pools.known().filter(|pools| !pools.is_empty());
    let is_possible = match page {
        _ if page == Bytes::gib(1) => evidence.snapshot.cpu.has("pdpe1gb").known() != Some(&false),
        // Before Linux 5.8 it may only be missing beside another default size.
        _ => page == Bytes::mib(2),
    };
    evidence.has_machine && !is_possible && sizes.is_some_and(|pools| pools.iter().all(|pool| pool.size != page))
}

/// Pages of a size that the node does not have, and those of the largest smaller size that it has.
pub(super) fn on_no_such(evidence: &Evidence, pod: &Pod, container: &Container) -> Option<Case> {
    let mut asked = container.hugetlb().into_iter();
    let (page, _, quantity) = asked.find(|(page, ..)| lacks_size(evidence, *page))?;
    let pools = evidence.snapshot.pools.known()?;
    let other = pools.iter().rfind(|pool| pool.size < page).or(pools.first())?;
    let (size, has) = (page.exact(), other.size.exact());
    let whole = Bytes(quantity.amount).round_up_to(other.size);
    let case = Case::sure(format!(
        "{} requests pages of {size}, and this node has no pages of that size: the pod stays Pending",
        who(pod, container)
    ));
    let need = pages_for(whole, other.size);
    let is_short = persistent(other).is_ok_and(|pages| pages < need);
    let case = case
        .severity(Severity::Warning)
        .wants(other.size)
        .seen(&quantity.place, quantity.field(), &quantity.written)
        .seen(other.directory(), "its pages", &has)
        .fix(format!(
            "hugepages-{has}i: {}Mi in its limits and requests, and the medium HugePages-{has}i of its volume",
            whole.0 >> 20
        ))
        .when(is_short, |case| {
            case.fill_as(other, need, |command| format!("and its pages in the pool: {command}"))
        });
    Some(case.fix(format!("or run it on nodes whose CPU and kernel have pages of {size}")))
}
