//! Pods of Kubernetes: what the API server rejects, what the kubelet cannot mount, what a node cannot hold.

use host::config::given::{Container, FileKind, Pod, Quantity};
use model::Bytes;
use model::findings::Severity;

use super::demand::shortages;
use super::{Check, Scope};
use crate::rule::{Answer, Case};

const OF: &[FileKind] = &[FileKind::Pod];

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "C04",
        of: OF,
        look: no_volume,
    },
    Check {
        id: "C06",
        of: OF,
        look: specification,
    },
];

fn no_volume(scope: &Scope<'_>) -> Answer {
    let mut cases = Vec::new();
    for pod in &scope.given.pods {
        let mounts_one =
            |container: &Container| pod.volumes.iter().any(|volume| container.mounts.contains(&volume.name));
        for container in pod.containers.iter().filter(|container| !mounts_one(container)) {
            let Some((_, quantity)) = container.hugetlb().into_iter().next() else {
                continue;
            };
            cases.push(
                Case::hint(format!(
                    "{} of the pod {} has pages and no hugetlbfs: programs that reach them through a file find none",
                    container.name, pod.name
                ))
                .severity(Severity::Info)
                .seen(&quantity.place, &quantity.resource, &quantity.written)
                .seen(&container.place, "volumeMounts", "no volume with medium HugePages")
                .fix("only if it needs a path (DPDK, QEMU): a volume emptyDir: {medium: HugePages-2Mi}, mounted at /dev/hugepages"),
            );
        }
    }
    Ok(cases)
}

fn specification(scope: &Scope<'_>) -> Answer {
    let mut cases = Vec::new();
    for pod in &scope.given.pods {
        for container in &pod.containers {
            cases.extend(differs(pod, container));
            cases.extend(alone(pod, container));
            cases.extend(no_multiple(pod, container));
        }
        cases.extend(volumes(pod));
    }
    if scope.given.has(FileKind::Sysctl) || scope.given.has(FileKind::Cmdline) || scope.machine.is_some() {
        for short in shortages(scope, FileKind::Pod)? {
            let text = format!("{} {}: no such node can take it", short.demand.who, short.text());
            cases.push(short.case(Case::likely(text).severity(Severity::Warning)));
        }
    }
    Ok(cases)
}

fn rejected(pod: &Pod, container: &Container, why: &str) -> Case {
    Case::sure(format!(
        "the API server rejects {} of the pod {}: {why}",
        container.name, pod.name
    ))
}

fn same<'a>(quantities: &'a [Quantity], resource: &str) -> Option<&'a Quantity> {
    quantities.iter().find(|quantity| quantity.resource == resource)
}

/// A limit alone is its request too; a request alone, or another amount, is not allowed.
fn differs(pod: &Pod, container: &Container) -> Option<Case> {
    let asked = container.requests.iter().filter(|quantity| quantity.page().is_some());
    let wrong = asked
        .into_iter()
        .find(|asked| same(&container.limits, &asked.resource).is_none_or(|limit| limit.amount != asked.amount))?;
    let limit = same(&container.limits, &wrong.resource);
    let case = rejected(
        pod,
        container,
        "hugetlb pages cannot be overcommitted, so requests and limits must be equal",
    )
    .seen(&wrong.place, format!("requests: {}", wrong.resource), &wrong.written)
    .seen(
        limit.map_or(&container.place, |limit| &limit.place),
        format!("limits: {}", wrong.resource),
        limit.map_or("not set", |limit| &limit.written),
    );
    Some(case.fix(format!("set both to the same amount of {}", wrong.resource)))
}

fn alone(pod: &Pod, container: &Container) -> Option<Case> {
    let (_, quantity) = container.hugetlb().into_iter().next()?;
    let asks = |name: &str| {
        same(&container.requests, name)
            .or(same(&container.limits, name))
            .is_some()
    };
    let beside = asks("cpu") || asks("memory");
    (!beside).then(|| {
        rejected(
            pod,
            container,
            "whoever asks for hugetlb pages must ask for cpu or memory too",
        )
        .seen(&quantity.place, &quantity.resource, &quantity.written)
        .seen(&container.place, "cpu and memory", "not asked for")
        .fix("add a request of cpu and memory")
    })
}

fn no_multiple(pod: &Pod, container: &Container) -> Option<Case> {
    let odd = |(page, quantity): &(Bytes, &Quantity)| page.0 > 0 && !quantity.amount.is_multiple_of(page.0);
    let (page, quantity) = container.hugetlb().into_iter().find(odd)?;
    Some(
        rejected(
            pod,
            container,
            &format!("{} is no whole number of pages of {}", quantity.written, page.exact()),
        )
        .seen(&quantity.place, &quantity.resource, &quantity.written)
        .fix(format!("make it a multiple of {}", page.exact())),
    )
}

fn volumes(pod: &Pod) -> Vec<Case> {
    let mut sizes: Vec<Bytes> = pod
        .containers
        .iter()
        .flat_map(Container::hugetlb)
        .map(|(page, _)| page)
        .collect();
    sizes.sort_unstable();
    sizes.dedup();
    let wrong = pod.volumes.iter().filter(|volume| match volume.page() {
        Some(page) => !sizes.contains(&page),
        // The medium without a size stands for the only one that is asked for.
        None => sizes.len() != 1,
    });
    let asked: Vec<String> = sizes.iter().map(|size| size.exact()).collect();
    let asked = if asked.is_empty() {
        "none".to_owned()
    } else {
        asked.join(" ")
    };
    wrong
        .map(|volume| {
            Case::sure(format!(
                "the pod {} hangs in FailedMount: {} fits no page size that it asks for",
                pod.name, volume.medium
            ))
            .seen(&volume.place, "medium", &volume.medium)
            .seen(&pod.place, "page sizes asked for", &asked)
            .fix("name the size in the medium (HugePages-2Mi), and ask for hugepages of that size in resources")
        })
        .collect()
}
