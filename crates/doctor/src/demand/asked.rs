//! What files ask for: a demand for each program that is configured to use hugetlb pages.

use host::CpuList;
use model::Bytes;
use programs::Evidence;
use programs::config::given::{FileKind, Java, Manager, Server};
use programs::config::{Parameters, Setting};
use programs::postgres::HugePages;
use programs::size::mysql::{Innodb, innodb};
use programs::{JvmKind, Kind};

use super::{Demand, Other, Room, guests};
use crate::facts::in_postgres;
use crate::jvm::pool_pages;
use crate::rule::Reason;

/// `sizes` are those that pages have there, `default` is the one of programs that name none.
pub(super) fn demands(evidence: &Evidence, sizes: &[Bytes], default: Bytes) -> Vec<Demand> {
    let given = &evidence.files;
    // One that runs in a pod has the pod's pages.
    let in_pods = given.containers().any(|container| container.postgres.is_some());
    let servers = given.servers(Kind::Postgres).into_iter().filter(|_| !in_pods);
    let postgres = servers.filter_map(|server| postgres(&server));
    let mysql = given.servers(Kind::Mysql).into_iter().filter(Server::asks);
    let mysql = mysql.map(|server| mysql_demand(&server, default));
    let java = given.java().into_iter().filter(|java| java.jvm.wants_hugetlb());
    let java = java.map(|one| java_demand(&one, sizes, default));
    let guests = guests(evidence);
    let guests = guests.iter().filter(|guest| guest.is_by_pool()).flat_map(|guest| {
        guest.takes().into_iter().map(|(size, page, nodes)| Demand {
            asker: FileKind::Libvirt,
            who: guest.name.clone(),
            seen: (guest.place.clone(), "memory".to_owned(), size.to_string()),
            page,
            strict: true,
            bytes: Ok(size),
            nodes: nodes.cloned(),
            fewer: None,
            other: match guest.manager {
                Manager::Libvirt => Other::Named(|size| format!("<page size='{}' unit='KiB'/>", size.0 >> 10)),
                Manager::CloudHypervisor => Other::Named(|size| format!("hugepage_size={}", size.exact())),
                _ => Other::None,
            },
        })
    });
    let in_pod = given
        .pods
        .iter()
        .flat_map(|pod| pod.containers.iter().map(move |container| (pod, container)));
    let pods = in_pod.flat_map(|(pod, container)| {
        container.hugetlb().into_iter().map(|(page, quantity)| Demand {
            asker: FileKind::Pod,
            who: format!("{} of the pod {}", container.name, pod.name),
            seen: (quantity.place.clone(), quantity.field(), quantity.written.clone()),
            page: Some(page),
            strict: true,
            bytes: Ok(Bytes(quantity.amount)),
            nodes: None,
            fewer: None,
            other: Other::None,
        })
    });
    let dpdk = given.socket_mem();
    let dpdk = dpdk.iter().flat_map(|set| dpdk_demands(set, evidence));
    let oracle = given.oracle.iter().filter_map(oracle_demand);
    let servers = postgres.chain(mysql).chain(oracle).chain(java);
    servers.chain(guests).chain(pods).chain(dpdk).collect()
}

/// What a program of DPDK asks of each node. It takes pages of all sizes: where several pools are filled, its share of each is not known.
fn dpdk_demands(set: &Setting, evidence: &Evidence) -> Vec<Demand> {
    let room = Room::of(evidence);
    let filled: Vec<Bytes> = room.iter().flat_map(Room::filled).map(|(page, _)| page).collect();
    let number = |mib: &str| match mib.trim() {
        "" => Some(0),
        mib => mib.parse::<u64>().ok(),
    };
    let list: Option<Vec<u64>> = set.value.split(',').map(number).collect();
    // Files alone show no nodes: there the pool as a whole has to do, as for what is not asked by node.
    let is_by_node = evidence.has_machine && set.name.ends_with("socket-mem");
    let asked: Vec<(Option<u32>, Option<u64>)> = match (list, is_by_node) {
        (Some(list), true) => (0..).map(Some).zip(list.into_iter().map(Some)).collect(),
        (list, _) => vec![(None, list.map(|list| list.into_iter().fold(0, u64::saturating_add)))],
    };
    let demand = |(node, mib): (Option<u32>, Option<u64>)| Demand {
        asker: FileKind::Dpdk,
        who: format!("the DPDK program of {}", set.place),
        seen: (set.place.clone(), set.name.clone(), set.value.clone()),
        page: filled.first().copied(),
        strict: true,
        bytes: match mib {
            None => Err(format!("{}: {} is no list of MiB by node: {}", set.place, set.name, set.value).into()),
            Some(mib) if filled.len() < 2 => Ok(Bytes::mib(mib)),
            Some(_) => Err("pools of several sizes have pages, and DPDK takes those of each".into()),
        },
        nodes: node.map(|node| CpuList::from_iter([node])),
        fewer: None,
        other: Other::None,
    };
    asked
        .into_iter()
        .filter(|(_, mib)| *mib != Some(0))
        .map(demand)
        .collect()
}

/// All of its shared memory, as `hugewise size postgres` counts it; `None` if it is configured not to try.
pub(crate) fn postgres(server: &Server) -> Option<Demand> {
    let settings = server.postgres();
    let huge_pages = settings
        .as_ref()
        .map(|settings| settings.huge_pages)
        .unwrap_or_default();
    if huge_pages == HugePages::Off || no_mmap(server).is_some() {
        return None;
    }
    let line = server.settings.last("shared_buffers");
    Some(Demand {
        asker: FileKind::Postgres,
        who: format!("the server of {}", server.path),
        seen: (
            line.map_or(&server.path, |line| &line.place).clone(),
            "shared_buffers".to_owned(),
            line.map_or("128MB (default)", |line| &line.value).to_owned(),
        ),
        page: settings.as_ref().ok().and_then(|settings| settings.page),
        strict: huge_pages == HugePages::On,
        bytes: settings.map(|settings| settings.shared_memory()).map_err(Reason::from),
        nodes: server.nodes.clone(),
        fewer: None,
        other: Other::Named(|size| format!("huge_page_size = {} (PostgreSQL 14 and later)", in_postgres(size))),
    })
}

/// A `shared_memory_type` of PostgreSQL that takes no huge pages.
pub(crate) fn no_mmap(server: &Server) -> Option<&Setting> {
    let set = server.settings.last("shared_memory_type")?;
    (!set.value.eq_ignore_ascii_case("mmap")).then_some(set)
}

/// HotSpot takes the default size in place of one that does not exist.
pub(crate) fn java_demand(java: &Java, sizes: &[Bytes], default: Bytes) -> Demand {
    let own = java.jvm.named_page(|size| sizes.contains(&size));
    let page = own.unwrap_or(default);
    let bytes = |heap| Bytes(pool_pages(&java.jvm, heap, page).saturating_mul(page.0));
    let xmx = java.argument("-Xmx").unwrap_or("no -Xmx");
    Demand {
        asker: FileKind::Java,
        who: format!("the JVM of {}", java.path),
        seen: (java.path.clone(), "heap".to_owned(), xmx.to_owned()),
        page: own,
        strict: java.jvm.collector == Some(model::Collector::Z),
        nodes: java.nodes.clone(),
        fewer: None,
        // OpenJ9 takes the default size alone (eclipse-openj9/openj9#1418).
        other: match java.jvm.kind {
            JvmKind::OpenJ9 => Other::None,
            _ => Other::Named(|size| format!("-XX:LargePageSizeInBytes={} (JDK 17 and later)", size.exact())),
        },
        bytes: java
            .jvm
            .heap_max
            .map(bytes)
            .ok_or_else(|| format!("{}: no -Xmx sets the size of the heap", java.path).into()),
    }
}

/// The SGA of an instance that takes what is in the pool.
fn oracle_demand(own: &Parameters) -> Option<Demand> {
    let instance = own.instance().filter(|_| own.takes_pages())?;
    let set = &instance.setting;
    Some(Demand {
        asker: FileKind::Oracle,
        who: format!("the instance of {}", own.path),
        seen: (set.place.clone(), set.name.clone(), set.value.clone()),
        page: None,
        strict: instance.is_strict,
        bytes: Ok(instance.in_granules()),
        nodes: None,
        fewer: None,
        other: Other::None,
    })
}

/// As `hugewise size innodb` counts it.
pub(crate) fn mysql_demand(server: &Server, page: Bytes) -> Demand {
    let mut settings = Innodb::of(server.settings.pairs());
    settings.is_mariadb = server.is_mariadb;
    let name = settings.decides();
    let line = server.settings.last(name);
    let refused = || server.mysql_bytes(name).err();
    let sizing = innodb(&settings, page).ok();
    let whole = |step: &str| sizing.as_ref()?.whole(step);
    Demand {
        asker: FileKind::Mysql,
        who: format!("the server of {}", server.path),
        seen: (
            line.map_or(&server.path, |line| &line.place).clone(),
            name.to_owned(),
            line.map_or("128M (default)", |line| &line.value).to_owned(),
        ),
        page: None,
        strict: false,
        bytes: match (refused(), whole("pages")) {
            (Some(why), _) => Err(why.into()),
            (None, Some(pages)) => Ok(Bytes(pages.saturating_mul(page.0))),
            (None, None) => Err(format!("{}: the chunks of its buffer pool have no size", server.path).into()),
        },
        nodes: server.nodes.clone(),
        fewer: settings.fewer(page),
        // MariaDB tries all sizes, the largest first (my_large_virtual_alloc).
        other: match server.is_mariadb {
            true => Other::ByItself(settings.mapped()),
            false => Other::InParts {
                each: whole("chunk_pages").unwrap_or(1),
                parts: whole("chunks").unwrap_or(0),
            },
        },
    }
}
