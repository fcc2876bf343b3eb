//! Pods of Kubernetes: what the API server rejects, what the kubelet cannot mount, what a node cannot hold.

mod dpdk;
mod names;
mod rejected;

use model::Bytes;
use model::findings::Severity;
use programs::config::Boot;
use programs::config::given::{Container, FileKind, Pod, Quantity, Volume};
use programs::{Evidence, Kind, is_of_vpp};

use super::kubernetes::{enough, idmapped, lacks_size, on_no_such};
use crate::demand::{Demand, Room, dpdk_demand, java_demand, mysql_demand, postgres, shortages, who};
use crate::facts::pages_for;
use crate::rule::answers::parts;
use crate::rule::{Answer, Case, Reason};
use dpdk::{no_huge_dir, page_of};
use names::{misnamed, volumes};
use rejected::{alone, differs, no_multiple, over_whole};

pub(super) const OF: &[FileKind] = &[FileKind::Pod];

pub(super) fn no_volume(evidence: &Evidence) -> Answer {
    let mut cases = Vec::new();
    for pod in &evidence.files.pods {
        // Databases and JVMs map their pages without a path.
        let needs_none = |container: &&Container| {
            container.postgres.is_some() || container.mysql.is_some() || container.java.is_some()
        };
        let is_served = |container: &&Container| mounts_one(pod, container) || needs_none(container);
        let without = |holder: &&Container| match holder.is_whole() {
            true => !pod.containers.iter().any(|own| is_served(&own)),
            false => !is_served(holder),
        };
        for container in pod.holders().filter(without) {
            let Some((page, _, quantity)) = container.hugetlb().into_iter().next() else {
                continue;
            };
            let text = format!(
                "{} requests hugetlb pages and mounts no hugetlbfs: programs that reach them through a file find none",
                who(pod, container)
            );
            let case = match unmounted(pod) {
                Some(volume) => Case::likely(text)
                    .seen(&volume.place, format!("volume {}", volume.name), "mounted by no container")
                    .fix(format!("volumeMounts: [{{name: {}, mountPath: /dev/hugepages}}] in the container", volume.name)),
                None => Case::hint(text).severity(Severity::Info).fix(format!(
                    "only if it needs a path (DPDK, QEMU): a volume emptyDir: {{medium: HugePages-{}i}}, mounted at /dev/hugepages",
                    page.exact()
                )),
            };
            cases.push(case.seen(&quantity.place, quantity.field(), &quantity.written).seen(
                &container.place,
                "volumeMounts",
                "no volume with medium HugePages",
            ));
        }
    }
    Ok(cases)
}

fn has_mounted(container: &Container, volume: &Volume) -> bool {
    container.mounts.iter().any(|mount| mount.volume == volume.name)
}

fn mounts_one(pod: &Pod, container: &Container) -> bool {
    pod.volumes.iter().any(|volume| has_mounted(container, volume))
}

/// A volume of huge pages that was meant to be mounted.
fn unmounted(pod: &Pod) -> Option<&Volume> {
    let is_mounted = |volume: &Volume| pod.containers.iter().any(|own| has_mounted(own, volume));
    pod.volumes.iter().find(|volume| !is_mounted(volume))
}

pub(super) fn specification(evidence: &Evidence) -> Answer {
    parts([by_pod(evidence), of_known_size(evidence)])
}

/// A JVM whose pages cannot be counted, beside a request of them.
fn of_known_size(evidence: &Evidence) -> Answer {
    for pod in &evidence.files.pods {
        let requests = pod.containers.iter().filter(|own| !pod.allowed(own).is_empty());
        let mut demands = requests.filter_map(|own| demand_in(evidence, own));
        if let Some(Err(reason)) = demands.find_map(|demand| demand.bytes.is_err().then_some(demand.bytes)) {
            return Err(Reason {
                elsewhere: Some(Vec::new()),
                ..reason
            });
        }
    }
    Ok(Vec::new())
}

fn by_pod(evidence: &Evidence) -> Answer {
    let mut cases = Vec::new();
    for pod in &evidence.files.pods {
        for holder in pod.holders() {
            cases.extend(misnamed(pod, holder));
            cases.extend(differs(pod, holder));
            cases.extend(alone(pod, holder));
            cases.extend(no_multiple(pod, holder));
        }
        cases.extend(over_whole(pod));
        cases.extend(volumes(pod));
        cases.extend(idmapped(evidence, pod));
        for container in &pod.containers {
            cases.extend(asks_unrequested(evidence, pod, container));
            cases.extend(too_few(evidence, pod, container));
            cases.extend(no_huge_dir(pod, container));
            cases.extend(on_no_node(evidence, pod, container));
        }
        cases.extend(pod.holders().filter_map(|holder| on_no_such(evidence, pod, holder)));
    }
    if evidence.files.sets_pools() || evidence.has_machine {
        let short = shortages(evidence, FileKind::Pod)?.into_iter();
        for short in short.filter(|short| !lacks_size(evidence, short.page)) {
            let text = format!(
                "{} {}: a node with this pool cannot run it",
                short.demand.who,
                short.text()
            );
            let case = short.case(text).severity(Severity::Warning);
            // A boot line needs a reboot, which starts the kubelet too.
            cases.push(case.fix_if(
                !short.is_at_boot,
                "then restart the kubelet, which counts the pools when it starts",
            ));
        }
    }
    Ok(cases)
}

/// The class Guaranteed: each container, also one that runs first, has limits of cpu and memory, and no smaller requests.
fn is_guaranteed(pod: &Pod) -> bool {
    let is_whole = |container: &Container, name: &str| {
        let limit = same(&container.limits, name).map(|limit| limit.amount);
        let request = same(&container.requests, name).map(|request| request.amount);
        limit.is_some() && request.is_none_or(|request| Some(request) == limit)
    };
    let mut all = pod.containers.iter();
    all.all(|container| ["cpu", "memory"].into_iter().all(|name| is_whole(container, name)))
}

/// Pages that all nodes have together and none has, where the kubelet takes all of a container from one. It aligns pods of the class
/// Guaranteed.
fn on_no_node(evidence: &Evidence, pod: &Pod, container: &Container) -> Option<Case> {
    // It passes over pods that have resources of their own.
    let is_aligned = pod.whole.is_none() && is_guaranteed(pod);
    let policy = evidence.files.aligned.as_ref().filter(|_| is_aligned)?;
    container.hugetlb().into_iter().find_map(|(page, _, quantity)| {
        let need = pages_for(Bytes(quantity.amount), page);
        let pool = evidence.snapshot.pool(page)?;
        let nodes: Option<Vec<u64>> = pool.nodes.known()?.iter().map(|node| node.nr.known().copied()).collect();
        let nodes = nodes?;
        let most = nodes.iter().copied().max()?;
        // What all nodes together lack is said above.
        if need <= most || need > nodes.iter().copied().fold(0, u64::saturating_add) {
            return None;
        }
        let size = page.exact();
        let case = Case::likely(format!(
            "{} needs {need} pages of {size} on one node, and no node has more than {most}: the kubelet refuses it (TopologyAffinityError)",
            who(pod, container)
        ));
        Some(
            case.severity(Severity::Warning)
                .seen(&quantity.place, quantity.field(), &quantity.written)
                .seen_line(policy)
                .seen(pool.directory(), "the most pages on one node", most)
                .fix(format!("request at most {most} pages of {size} in a container, or have {need} on one node"))
                .fix("or topologyManagerPolicy: restricted, which lets a container have memory of several nodes"),
        )
    })
}

/// A container that requests no pages, with a program that takes them where it can: its limit is 0, and the first touch is a SIGBUS.
fn asks_unrequested(evidence: &Evidence, pod: &Pod, container: &Container) -> Option<Case> {
    let mut own = pod.whole.iter().chain([container]);
    let is_silent = pod.allowed(container).is_empty() && own.all(|own| own.misnamed().is_none());
    let asks = container.asks.as_ref().filter(|_| is_silent)?;
    let is_postgres = container.postgres.is_some();
    let is_off = is_postgres && demand_in(evidence, container).is_none();
    let room = Room::of(evidence).ok()?;
    // Neither they nor /dev/hugepages name a size.
    let (page, (pages, place)) = room.filled().find(|(page, _)| *page == room.default)?;
    let who = format!("{} requests no hugetlb pages", who(pod, container));
    let case = match is_off {
        // initdb starts the server by postgresql.conf.sample, and makes postgresql.conf afterwards.
        true => Case::hint(format!(
            "{who}; its huge_pages = off does not hold for initdb: on a node with a pool a new database ends with SIGBUS"
        ))
        .severity(Severity::Info),
        false => Case::likely(match store_unmounted(container) {
            Some(directory) => format!(
                "{who} and mounts none at {directory} for {}: it does not start",
                asks.program
            ),
            None => format!(
                "{who} and its program asks for them: on a node with a pool {} {}",
                asks.program, asks.outcome()
            ),
        })
        .severity(match asks.is_of_old_release() {
            true => Severity::Info,
            false => Severity::Warning,
        }),
    };
    let case = case
        .seen(&asks.place, "asks", &asks.written)
        .seen(&container.place, "resources", "no hugepages")
        .seen(place, format!("pages of {}", page.exact()), pages);
    let case = case
        .when(!is_off, |case| {
            case.wants(page).fix(format!("let it not ask: {}", asks.switch))
        })
        .fix_if(
            is_postgres,
            "for a new database: initdb --set huge_pages=off (PostgreSQL 16 and later; POSTGRES_INITDB_ARGS of the official image), or huge_pages = off in the image's postgresql.conf.sample",
        )
        .fix(request(evidence, container, page))
        .fix_if(is_postgres, "or have it run on nodes without a pool");
    Some(case)
}

/// The directory for Ray's object store, where the container has nothing mounted there.
fn store_unmounted(container: &Container) -> Option<&str> {
    let directory = container.option("--plasma-directory")?;
    container.mount_of(directory).is_none().then_some(directory)
}

/// How it requests the pages that its program asks for, as far as its command or its settings say how many.
fn request(evidence: &Evidence, container: &Container, page: Bytes) -> String {
    let size = page.exact();
    let of_store = container.option("--object-store-memory");
    let of_server = || Some(demand_in(evidence, container)?.bytes.ok()?.0);
    let of_dpdk = || Some(dpdk_demand(&container.dpdk()?, page)?.bytes.ok()?.0);
    let bytes = of_store.and_then(|bytes| bytes.parse::<u64>().ok());
    let bytes = bytes.or_else(of_server).or_else(of_dpdk);
    let amount = bytes.map_or_else(String::new, |bytes| {
        let whole = pages_for(Bytes(bytes), page).saturating_mul(page.0);
        format!(": {}Mi or more", whole >> 20)
    });
    let beside = match requests_other(container) {
        true => "",
        false => ", and cpu or memory",
    };
    let volume = store_unmounted(container).map_or_else(String::new, |directory| {
        format!(", and mount a volume emptyDir: {{medium: HugePages-{size}i}} at {directory}")
    });
    format!(
        "or request them: hugepages-{size}i{amount} in {}{beside}{volume}",
        container.sized_in
    )
}

/// Does it request cpu or memory, which hugetlb pages need beside them?
fn requests_other(container: &Container) -> bool {
    let asks = |name: &&str| {
        same(&container.requests, name)
            .or(same(&container.limits, name))
            .is_some()
    };
    ["cpu", "memory"].iter().any(asks)
}

/// What the program in a container needs of pages, against what the container requests of them.
fn too_few(evidence: &Evidence, pod: &Pod, container: &Container) -> Option<Case> {
    let allowed = pod.allowed(container);
    let demand = match container.dpdk() {
        Some(set) if is_of_vpp(&set) => None,
        Some(set) => dpdk_demand(&set, page_of(pod, container)?),
        None => demand_in(evidence, container),
    }?;
    let page = demand.page.unwrap_or(USUAL);
    let need = pages_for(*demand.bytes.as_ref().ok()?, page);
    let has = allowed.iter().find(|(size, ..)| *size == page);
    let (first, holder, quantity) = has.or(allowed.first())?;
    let pages = has.map_or(0, |(size, _, quantity)| quantity.amount / size.0.max(1));
    if pages >= need {
        return None;
    }
    let outcome = match demand.strict {
        true => "it does not start",
        false => "it falls back to base pages, or ends with SIGBUS where the run-time sets no limit of reservations",
    };
    let size = page.exact();
    let is_least = demand.asker == FileKind::Postgres;
    let least = if is_least { "at least " } else { "" };
    let case = Case::likely(format!(
        "{} needs {least}{need} pages of {size}, and its limit is {pages}: {outcome}",
        who(pod, container)
    ))
    .seen_line(&demand.seen)
    .seen(&quantity.place, quantity.field(), &quantity.written)
    .fix(enough(container, holder.sized_in, need, page));
    let other = demand.asker == FileKind::Java && has.is_none();
    let own = match container.version {
        Some(version @ ..15) => format!(
            "that is for version 15, and PostgreSQL {version} prints no number of its own: where it is too low, the error of huge_pages = on names the bytes that it asked for"
        ),
        _ => "that is for version 15, and later ones need a few pages more: postgres -C shared_memory_size_in_huge_pages prints the server's own number"
            .to_owned(),
    };
    let case = case.fix_if(is_least, own);
    Some(case.fix_if(
        other,
        format!(
            "or let the JVM ask for the pages that it has: -XX:LargePageSizeInBytes={}",
            first.exact()
        ),
    ))
}

/// The default size of nodes.
const USUAL: Bytes = Bytes::mib(2);

/// A JVM by its options; PostgreSQL by its command, over the file that was given beside.
fn demand_in(evidence: &Evidence, container: &Container) -> Option<Demand> {
    if let Some(java) = container.java.as_ref().filter(|java| java.jvm.wants_hugetlb()) {
        return Some(java_demand(java, &Boot::COMMON, USUAL));
    }
    if let Some(server) = &container.mysql {
        return Some(mysql_demand(server, USUAL));
    }
    let own = container.postgres.as_ref()?;
    let mut server = match &evidence.files.servers(Kind::Postgres)[..] {
        [only] => only.clone(),
        _ => own.clone(),
    };
    if server != *own {
        server.settings = server.settings.with(&own.settings);
    }
    postgres(&server)
}

fn same<'a>(quantities: &'a [Quantity], resource: &str) -> Option<&'a Quantity> {
    quantities.iter().find(|quantity| quantity.resource == resource)
}

#[cfg(test)]
mod tests;
