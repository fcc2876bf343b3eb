//! What containers and Kubernetes need to use hugetlb pages.

use host::Evidence;
use host::programs::{GroupLevel, Kind, Limit};
use host::snapshot::Pool;
use model::Bytes;
use model::findings::Severity;

use crate::facts::{bytes, each, known, persistent, pool_file, pools, programs};
use crate::rule::{Answer, Case, Checks, Reason, Rule};

const TASK: &str = "https://kubernetes.io/docs/tasks/manage-hugepages/scheduling-hugepages/";

pub(super) const C04: Rule = Rule {
    id: "C04",
    name: "container-has-no-mount",
    severity: Severity::Warning,
    holds: "containers of every run-time",
    text: "A program in a container reaches hugetlb pages through a file, and its mount namespace has no hugetlbfs. The host's \
           /dev/hugepages is not visible inside. Kubernetes mounts one for an emptyDir volume with medium HugePages-2Mi (or \
           HugePages-1Gi); Docker and Podman with -v /dev/hugepages:/dev/hugepages.",
    link: TASK,
    checks: Checks::of_both(no_mount, super::pods::OF, super::pods::no_volume),
};

pub(super) const C05: Rule = Rule {
    id: "C05",
    name: "kubelet-stale",
    severity: Severity::Error,
    holds: "every kubelet: it counts the pools once, when it starts",
    text: "The kubelet reads the size of the pools when it starts and limits all pods together to that. Here the limit of \
           kubepods differs from the pool: pods with a promise of pages die of SIGBUS or stay Pending. Change pools at boot, or \
           restart the kubelet after each change.",
    link: "https://github.com/kubernetes/kubernetes/issues/99483",
    checks: Checks::of_machine(stale),
};

pub(super) const C06: Rule = Rule {
    id: "C06",
    name: "pod-spec-lint",
    severity: Severity::Error,
    holds: "Kubernetes with hugepages as a resource (1.14 and later); several sizes in one pod since 1.18",
    text: "A pod requests hugetlb pages in a way that Kubernetes does not accept. Requests and limits of hugepages-SIZE must \
           be equal and whole pages, and cpu or memory must be requested too. A volume with medium HugePages-SIZE needs that \
           size among the resources. The medium HugePages without a size only works with one size. The API server rejects the \
           first kinds; the last leaves the pod in FailedMount. Detected from YAML; a sysctl file or a machine given with it \
           also shows whether a node has as many pages.",
    link: TASK,
    checks: Checks::of_files(super::pods::OF, super::pods::specification),
};

fn no_mount(evidence: &Evidence) -> Answer {
    each(programs(evidence)?, |program| {
        let by_path = match known(&program.kind)? {
            Some(Kind::Dpdk) => program.argument("--in-memory").is_none(),
            _ => program
                .arguments
                .known()
                .is_some_and(|all| all.iter().any(|argument| argument.contains("/dev/hugepages"))),
        };
        let Some(groups) = program.cgroup()?.filter(|groups| groups.is_container && by_path) else {
            return Ok(None);
        };
        let Some(details) = &program.details else {
            return Ok(None);
        };
        if !known(&details.hugetlb_mounts)?.is_empty() {
            return Ok(None);
        }
        let case = Case::likely(format!(
            "{} needs a hugetlbfs in its container, and none is mounted",
            program.title()
        ))
        .seen(program.file("mounts"), "hugetlbfs", "none")
        .seen(program.file("cgroup"), "", &groups.path)
        .fix("Kubernetes: a volume emptyDir: {medium: HugePages-2Mi}, mounted at /dev/hugepages")
        .fix("Docker, Podman: -v /dev/hugepages:/dev/hugepages");
        Ok(Some(case))
    })
}

fn stale(evidence: &Evidence) -> Answer {
    let all = programs(evidence)?;
    let mut kubelet = None;
    for program in all {
        if program.is(Kind::Kubelet)? {
            kubelet = Some(program);
        }
    }
    let Some(kubelet) = kubelet else { return Ok(Vec::new()) };
    let mut pods: Option<&GroupLevel> = None;
    for program in all {
        let Some(groups) = program.cgroup()? else { continue };
        let root = |level: &&GroupLevel| {
            level.directory.ends_with("/kubepods.slice") || level.directory.ends_with("/kubepods")
        };
        pods = pods.or(groups.levels.iter().find(root));
    }
    let Some(pods) = pods else { return Ok(Vec::new()) };
    each(pools(evidence)?, |pool| differs(pool, pods, kubelet.pid()))
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
        .fix("systemctl restart kubelet")
        .fix("and fill pools at boot, before it starts"),
    ))
}
