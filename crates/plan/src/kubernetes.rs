//! A node of Kubernetes: its pools before the kubelet looks, and what a pod writes to get pages.

use std::fmt::Write as _;

use model::Bytes;
use model::plan::Layer;

use super::draft::{Draft, Drafts};
use super::goal::PoolGoal;
use super::mounts;

const SOURCE: &str = "Kubernetes documentation, Manage HugePages";

pub(super) fn draft(drafts: &mut Drafts<'_>, pool: &PoolGoal) -> Result<(), String> {
    mounts::draft(drafts, pool)?;
    let kubelet = Draft::instruction(Layer::Kubernetes, "kubelet", "this node", "systemctl restart kubelet");
    let why = "the kubelet counts pages when it starts, and keeps the cgroup limits of that moment";
    drafts.add(kubelet.restart("kubelet"), why, SOURCE);
    let pod = Draft::instruction(Layer::Kubernetes, "pod", "the pod's manifest", manifest(&pool.pools));
    let why = "requests equal limits, with cpu or memory beside them; without a request a pod's limit \
               is 0 and its first touch ends in SIGBUS";
    drafts.add(pod, why, SOURCE);
    Ok(())
}

/// The parts of a pod that have to do with pages.
fn manifest(pools: &[(Bytes, u64)]) -> String {
    let (mut limits, mut mounts, mut volumes) = (String::new(), String::new(), String::new());
    for &(page, pages) in pools {
        let (size, mib) = (format!("{}i", page.exact()), (page.0 >> 20).saturating_mul(pages));
        let name = format!("hugepages-{}", size.to_ascii_lowercase());
        let _ = writeln!(limits, "        hugepages-{size}: {mib}Mi");
        let _ = writeln!(mounts, "    - name: {name}\n      mountPath: /{name}");
        let _ = writeln!(
            volumes,
            "  - name: {name}\n    emptyDir:\n      medium: HugePages-{size}"
        );
    }
    format!(
        "spec:\n  containers:\n  - name: app\n    resources:\n      requests:\n        cpu: 1\n        memory: 1Gi\n{limits}      \
         limits:\n        cpu: 1\n        memory: 1Gi\n{limits}    volumeMounts:\n{mounts}  volumes:\n{volumes}"
    )
}
