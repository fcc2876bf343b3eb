//! What files ask for: a demand for each program that is configured to use hugetlb pages.

use std::path::Path;

use host::CpuList;
use host::processes::taken_of_pool;
use model::Bytes;
use programs::config::given::{Container, FileKind, Guest, HugeMount, Java, Manager, Pod, Server, pages_at};
use programs::config::{Boot, Given, Instance, Parameters, Setting};
use programs::postgres::{HugePages, no_mmap};
use programs::size::mysql::{Innodb, innodb};
use programs::size::oracle;
use programs::{Evidence, JvmKind, Kind, Program, mib_by_node};

use super::{Demand, Other, Room, guests_of};
use crate::facts::{in_postgres, pages_for, running};
use crate::jvm::pool_pages;
use crate::rule::Reason;

/// All of them, with the pools that there will be.
pub(crate) fn demands(evidence: &Evidence, room: &Room) -> Vec<Demand> {
    demands_of(&evidence.files, evidence, room)
}

/// Those of these files.
pub(crate) fn demands_of(given: &Given, evidence: &Evidence, room: &Room) -> Vec<Demand> {
    let default = room.default;
    let sizes = match evidence.snapshot.pools.is_absent() {
        false => room.sizes(),
        true => Boot::COMMON.to_vec(),
    };
    // One that runs in a pod has the pod's pages.
    let in_pods = given.containers().any(|container| container.postgres.is_some());
    let servers = given.servers(Kind::Postgres).into_iter().filter(|_| !in_pods);
    let postgres = servers.filter_map(|server| postgres(&server));
    let mysql = given.servers(Kind::Mysql).into_iter().filter(Server::asks);
    let mysql = mysql.map(|server| mysql_demand(&server, default));
    let java = given.java().into_iter().filter(|java| java.jvm.wants_hugetlb());
    let java = java.map(|one| java_demand(&one, &sizes, default));
    let guests = guests_of(given, evidence);
    let guests = guests.iter().filter(|guest| guest.is_by_pool()).flat_map(guest_demands);
    let pods = given.pods.iter().flat_map(pod_demands);
    let dpdk = given.socket_mem();
    let dpdk = dpdk
        .iter()
        .flat_map(|(set, directory)| dpdk_demands(set, directory.as_deref(), evidence));
    let oracle = given
        .oracle
        .iter()
        .filter_map(|own| oracle_demand(evidence, own, default));
    let servers = postgres.chain(mysql).chain(oracle).chain(java);
    servers.chain(guests).chain(pods).chain(dpdk).collect()
}

/// Do files start programs that take pages, none of which may take them by System V segments? MySQL does before 8.0.27, and a JVM
/// with options or by its release.
pub(crate) fn make_no_segments(evidence: &Evidence, room: &Room) -> bool {
    let may = |demand: &Demand| match demand.asker {
        FileKind::Oracle | FileKind::Java => true,
        FileKind::Mysql => matches!(demand.other, Other::InParts { .. }),
        _ => false,
    };
    let all = demands(evidence, room);
    !all.is_empty() && !all.iter().any(may)
}

/// Settings of which no two servers of one machine have the same value.
fn marks(server: &Server) -> Vec<(&'static str, String)> {
    let all = ["port", "datadir", "data_directory"].into_iter();
    all.filter_map(|name| Some((name, server.settings.last(name)?.value.clone())))
        .collect()
}

/// The line of a server's file that counts, or its default.
fn seen_of(server: &Server, name: &str, default: &str) -> Setting {
    let line = server.settings.last(name).cloned();
    line.unwrap_or_else(|| Setting::new(&server.path, name, default))
}

fn guest_demands(guest: &Guest) -> impl Iterator<Item = Demand> {
    let other = match guest.manager {
        Manager::Libvirt => Other::Named(|size| format!("<page size='{}' unit='KiB'/>", size.0 >> 10)),
        Manager::CloudHypervisor => Other::Named(|size| format!("hugepage_size={}", size.exact())),
        _ => Other::None,
    };
    guest.takes().into_iter().map(move |(size, page, nodes)| {
        let seen = Setting::new(&guest.place, "memory", size.to_string());
        Demand {
            page,
            strict: true,
            nodes: nodes.cloned(),
            other,
            ..Demand::new(FileKind::Libvirt, guest.name.clone(), seen, Ok(size))
        }
    })
}

/// A container, for users.
pub(crate) fn who(pod: &Pod, container: &Container) -> String {
    match container.is_whole() {
        true => format!("the pod {}", pod.name),
        false if pod.name.is_empty() => container.name.clone(),
        false => format!("{} of the pod {}", container.name, pod.name),
    }
}

fn pod_demands(pod: &Pod) -> impl Iterator<Item = Demand> {
    pod.hugetlb().into_iter().map(move |(page, container, quantity)| {
        let seen = Setting::new(&quantity.place, quantity.field(), &quantity.written);
        Demand {
            page: Some(page),
            strict: true,
            ..Demand::new(FileKind::Pod, who(pod, container), seen, Ok(Bytes(quantity.amount)))
        }
    })
}

/// A program of DPDK that takes pages of this size alone.
pub(crate) fn dpdk_demand(set: &Setting, page: Bytes) -> Option<Demand> {
    let parts = mib_by_node(set)?
        .into_iter()
        .map(|mib| Bytes(mib.saturating_mul(1 << 20)));
    let bytes = parts.map(|part| part.round_up_to(page)).sum();
    let who = format!("the DPDK program of {}", set.place);
    Some(Demand {
        page: Some(page),
        strict: true,
        ..Demand::new(FileKind::Dpdk, who, set.clone(), Ok(bytes))
    })
}

/// The page size of a path on hugetlbfs, which scripts mount or the machine has; `None` of a size is the default one.
fn pages_of(path: &str, evidence: &Evidence) -> Option<Option<Bytes>> {
    let mut by_scripts = evidence.files.mounts.iter();
    let by_script = by_scripts.rfind(|mount| Path::new(path).starts_with(&mount.target));
    let mounts = evidence.snapshot.mounts.known().map(Vec::as_slice);
    by_script.map(HugeMount::written).or_else(|| pages_at(path, mounts))
}

/// Is that directory on no hugetlbfs of this machine, and on none that files mount? A unit may mount one there.
pub(crate) fn is_no_hugetlbfs(path: &str, evidence: &Evidence) -> bool {
    let is_known = evidence.has_machine && evidence.snapshot.mounts.known().is_some();
    is_known && !evidence.files.may_be_mounted(path) && pages_of(path, evidence).is_none()
}

/// What a program of DPDK asks of each node. Without a directory it takes pages of all sizes: where several pools are filled, its share of each is
/// not known.
fn dpdk_demands(set: &Setting, directory: Option<&str>, evidence: &Evidence) -> Vec<Demand> {
    let room = Room::of(evidence);
    let own = directory.and_then(|directory| pages_of(directory, evidence));
    let filled: Vec<Bytes> = room.iter().flat_map(Room::filled).map(|(page, _)| page).collect();
    let list = mib_by_node(set);
    // Files alone show no nodes: there the pool as a whole has to do, as for what is not asked by node.
    let is_by_node = evidence.has_machine && set.name.ends_with("socket-mem");
    let asked: Vec<(Option<u32>, Option<u64>)> = match (list, is_by_node) {
        (Some(list), true) => (0..).map(Some).zip(list.into_iter().map(Some)).collect(),
        (list, _) => vec![(None, list.map(|list| list.into_iter().fold(0, u64::saturating_add)))],
    };
    let demand = |(node, mib): (Option<u32>, Option<u64>)| {
        let bytes = match mib {
            None => Err(format!("{}: {} is no list of MiB by node: {}", set.place, set.name, set.value).into()),
            Some(mib) if filled.len() < 2 || own.is_some() => Ok(Bytes::mib(mib)),
            Some(_) => Err("pools of several sizes have pages, and DPDK takes those of each".into()),
        };
        let who = format!("the DPDK program of {}", set.place);
        Demand {
            page: own.unwrap_or(filled.first().copied()),
            strict: true,
            nodes: node.map(|node| CpuList::from_iter([node])),
            ..Demand::new(FileKind::Dpdk, who, set.clone(), bytes)
        }
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
    if huge_pages == HugePages::Off || no_mmap(&server.settings).is_some() {
        return None;
    }
    let page = settings.as_ref().ok().and_then(|settings| settings.page);
    let bytes = settings.map(|settings| settings.shared_memory()).map_err(Reason::from);
    let who = format!("the server of {}", server.path);
    let seen = seen_of(server, "shared_buffers", "128MB (default)");
    Some(Demand {
        page,
        strict: huge_pages == HugePages::On,
        nodes: server.nodes.clone(),
        marks: marks(server),
        other: Other::Named(|size| format!("huge_page_size = {} (PostgreSQL 14 and later)", in_postgres(size))),
        ..Demand::new(FileKind::Postgres, who, seen, bytes)
    })
}

/// HotSpot takes the default size in place of one that does not exist.
pub(crate) fn java_demand(java: &Java, sizes: &[Bytes], default: Bytes) -> Demand {
    let own = java.jvm.named_page(|size| sizes.contains(&size));
    let page = own.unwrap_or(default);
    let bytes = |heap| Bytes(pool_pages(&java.jvm, heap, page).saturating_mul(page.0));
    let unknown = || {
        format!(
            "{}: neither -Xmx nor a limit of memory shows the size of the heap",
            java.path
        )
        .into()
    };
    let bytes = java.jvm.heap_max.map(bytes).ok_or_else(unknown);
    Demand {
        page: own,
        strict: java.jvm.is_strict(),
        nodes: java.nodes.clone(),
        // OpenJ9 takes the default size alone (eclipse-openj9/openj9#1418).
        other: match java.jvm.kind {
            JvmKind::OpenJ9 => Other::None,
            _ => Other::Named(|size| format!("-XX:LargePageSizeInBytes={} (JDK 17 and later)", size.exact())),
        },
        ..Demand::new(FileKind::Java, format!("the JVM of {}", java.path), java.heap(), bytes)
    }
}

/// The SGA of an instance that takes what is in the pool.
fn oracle_demand(evidence: &Evidence, own: &Parameters, page: Bytes) -> Option<Demand> {
    let instance = own.at_least().filter(|_| own.takes_pages())?;
    let who = format!("the instance of {}", own.path);
    let sga = instance.in_granules();
    // What is no granule takes one page at least: alert logs show 8193 of 2M for 16G, and 20481 for 40G.
    let least = Bytes(sga.0.saturating_add(page.0));
    let spare = |pages: u64| pages.saturating_sub(pages_for(least, page));
    let counted = oracle(sga, 1, page).ok().and_then(|sizing| sizing.whole("pages"));
    let counted = counted.map_or(0, spare);
    let runs = beyond_sga(evidence, page);
    let shown = |(pages, program): &(u64, &Program)| {
        let name = format!("pages of {}", page.exact());
        Setting::new(program.file("smaps"), name, pages.to_string())
    };
    Some(Demand {
        strict: instance.is_strict,
        marks: own.sid().map(|sid| ("sid", sid)).into_iter().collect(),
        beyond: runs.map_or(counted, |(pages, _)| beyond(pages, page).saturating_sub(1).max(counted)),
        shown: runs.as_ref().map(shown),
        ..Demand::new(FileKind::Oracle, who, instance.setting.clone(), Ok(least))
    })
}

/// What an SGA of whole granules leaves of so many pages.
fn beyond(pages: u64, page: Bytes) -> u64 {
    let sga = Instance::within(Bytes(pages.saturating_mul(page.0)));
    pages.saturating_sub(pages_for(sga, page))
}

/// The pages of the instance that runs and has most beyond its SGA. Many would be an SGA of other granules.
fn beyond_sga(evidence: &Evidence, page: Bytes) -> Option<(u64, &Program)> {
    const MOST: u64 = 16;
    let instances = running(evidence).filter(|program| program.is(Kind::Oracle) == Ok(true));
    let pages = |program: &Program| {
        let areas = program.areas().ok()?.iter().filter(|area| area.is_shared_data());
        Some(pages_for(taken_of_pool(areas, page), page))
    };
    let all = instances.filter_map(|program| Some((pages(program)?, program)));
    all.filter(|(pages, _)| (1..=MOST).contains(&beyond(*pages, page)))
        .max_by_key(|(pages, _)| beyond(*pages, page))
}

/// As `hugewise size innodb` counts it.
pub(crate) fn mysql_demand(server: &Server, page: Bytes) -> Demand {
    let mut settings = Innodb::of(server.settings.pairs());
    settings.is_mariadb = server.is_mariadb;
    let name = settings.decides();
    let sizing = innodb(&settings, page).ok();
    let whole = |step: &str| sizing.as_ref()?.whole(step);
    let bytes = match (server.mysql_bytes(name).err(), whole("pages")) {
        (Some(why), _) => Err(why.into()),
        (None, Some(pages)) => Ok(Bytes(pages.saturating_mul(page.0))),
        (None, None) => Err(format!("{}: the chunks of its buffer pool have no size", server.path).into()),
    };
    let who = format!("the server of {}", server.path);
    let seen = seen_of(server, name, "128M (default)");
    Demand {
        nodes: server.nodes.clone(),
        marks: marks(server),
        fewer: settings.fewer(page),
        // MariaDB tries all sizes, the largest first (my_large_virtual_alloc).
        other: match server.is_mariadb {
            true => Other::ByItself(settings.mapped()),
            false => Other::InParts {
                each: whole("chunk_pages").unwrap_or(1),
                parts: whole("chunks").unwrap_or(0),
            },
        },
        ..Demand::new(FileKind::Mysql, who, seen, bytes)
    }
}
