//! What containers and Kubernetes need to use hugetlb pages.

use host::snapshot::Pool;
use model::Bytes;
use programs::Evidence;
use programs::{GroupLevel, Kind, Limit};

use crate::facts::{bytes, each, known, persistent, pool_file, pools, programs};
use crate::rule::{Answer, Case, Reason};

pub(super) fn no_mount(evidence: &Evidence) -> Answer {
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

pub(super) fn stale(evidence: &Evidence) -> Answer {
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
