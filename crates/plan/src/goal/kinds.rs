//! The kinds of goals: which keys each has, and what their values must be.

use host::snapshot::hugetlb::directory_name;
use host::snapshot::thp::THP;
use model::plan::Target;
use model::{Bytes, Collector};
use programs::{Kind, Server};

use super::error::GoalError;
use super::names;
use super::want::{
    DatabaseGoal, Hypervisor, JvmGoal, JvmKind, JvmPages, OracleGoal, PlacedBy, PlacementGoal, PoolGoal, ThpGoal,
    VmGoal, Want,
};
use super::words::Words;

const KINDS: &str = "pool:2M=16, thp=madvise, jvm:heap=3.5g,user=NAME, postgres:FILE, mysql:FILE, oracle:sga=24G, redis, \
                     vm:64G,pages=1G, kubernetes:2M=512, placement:SERVICE,cpus=0-3, or a FILE.toml; for what \
                     runs: postgres, mysql, jvm:pid=PID, vm:NAME";
/// Programs without a goal of their own, and the goal that is theirs.
const PROGRAMS: [(&[&str], &str); 4] = [
    (
        &[
            "cassandra",
            "elasticsearch",
            "hbase",
            "jboss",
            "kafka",
            "neo4j",
            "opensearch",
            "solr",
            "spark",
            "tomcat",
            "wildfly",
        ],
        "jvm:heap=SIZE with its -Xmx, or jvm:pid=PID while it runs, as it is a Java program",
    ),
    (
        &["mongo", "mongod", "mongodb"],
        "thp=always,defrag=defer+madvise,khugepaged.max_ptes_none=0 for MongoDB from 8.0 on, thp=never before (see hugewise doctor \
         --explain D03)",
    ),
    (
        &["clickhouse"],
        "thp=madvise, which ClickHouse's documentation asks for",
    ),
    (&["kvm", "libvirt", "qemu"], "vm:NAME of a guest that runs, or vm:64G"),
];
const ACCOUNT: &str = "a name of letters, digits and _ . - that begins with a letter";
const SERVICE: &str = "the name of a systemd service";
const PATH: &str = "an absolute path of letters, digits and / . _ + @ - without `..`";
const PAGE: &str = "a page size such as 2M or 1G";
const CPUS: &str = "CPUs such as 0-3 or 0+2+8-11";
const BUFFER_POOL: &str = "buffer-pool";
const SIZE: &str = "a size with a unit, such as 6g";
const POLICY: &str = "always, madvise, never, or another word of the kernel's list";

/// What the words want, and the keys of their kind, for the message about an unknown one.
pub(super) fn want(words: &mut Words) -> Result<(Want, &'static str), GoalError> {
    const POOL: &str = "SIZE=PAGES, node, group, mount";
    const THP: &str = "enabled, defrag, shmem_enabled, khugepaged.NAME, mthp-SIZE, service";
    const JVM: &str = "heap, user, group, service, kind, pages, collector, jdk, code-cache";
    if let Some((kind, server)) = Kind::of_server(&words.kind) {
        return Ok((Want::Database(database(words, kind, server)?), server.keys));
    }
    Ok(match words.kind.as_str() {
        "pool" => (Want::Pool(pool(words)?), POOL),
        "thp" => (Want::Thp(thp(words)?), THP),
        "jvm" | "java" => (Want::Jvm(jvm(words)?), JVM),
        "oracle" => (Want::Oracle(oracle(words)?), "sga, user, instances"),
        "redis" | "valkey" | "keydb" => (Want::Redis, ""),
        "vm" => (Want::Vm(vm(words)?), "memory, pages, hypervisor, node, count, name"),
        "kubernetes" => (Want::Kubernetes(pool(words)?), POOL),
        "placement" => (Want::Placement(placement(words)?), "service, cpus, memory, by"),
        kind => {
            let known = PROGRAMS.iter().find(|(names, _)| names.contains(&kind));
            return Err(words.fail("", kind, known.map_or(KINDS, |(_, goal)| *goal)));
        }
    })
}

fn pool(words: &mut Words) -> Result<PoolGoal, GoalError> {
    let mut pools = Vec::new();
    for (size, count) in words.drain(names::page) {
        let wanted = "a number of pages, such as 16";
        let pages = names::pages(&count).ok_or_else(|| words.fail(&size.exact(), &count, wanted))?;
        pools.push((size, pages));
    }
    if pools.is_empty() {
        return Err(words.fail("", "", "a page size and a number of pages, such as pool:2M=16"));
    }
    Ok(PoolGoal {
        pools,
        node: words.checked("node", names::node, "a node number")?,
        group: words.checked("group", names::account, ACCOUNT)?,
        mount: words.checked("mount", names::path, PATH)?,
    })
}

fn thp(words: &mut Words) -> Result<ThpGoal, GoalError> {
    let mut settings = Vec::new();
    for key in ["enabled", "defrag", "shmem_enabled"] {
        let is_plain = |text: &str| text.chars().all(|c| c.is_ascii_lowercase() || "+_".contains(c));
        let word = |text: &str| is_plain(text).then(|| text.to_owned());
        if let Some(value) = words.checked(key, word, POLICY)? {
            settings.push((key.to_owned(), value));
        }
    }
    let khugepaged = |key: &str| {
        let name = format!("khugepaged/{}", key.strip_prefix("khugepaged.")?);
        let path = format!("{THP}/{name}");
        Target::Setting { path }.is_allowed(&[]).then_some(name)
    };
    for (name, value) in words.drain(khugepaged) {
        let number = value.parse::<u32>();
        let number = number.map_err(|_| words.fail(&name, &value, "a whole number"))?;
        settings.push((name, number.to_string()));
    }
    for (size, value) in words.drain(|key| names::page(key.strip_prefix("mthp-")?)) {
        if !matches!(value.as_str(), "always" | "inherit" | "madvise" | "never") {
            let key = format!("mthp-{}", size.exact());
            return Err(words.fail(&key, &value, "always, inherit, madvise or never"));
        }
        settings.push((format!("{}/enabled", directory_name(size)), value));
    }
    if settings.is_empty() {
        return Err(words.fail("", "", "a policy, such as thp=madvise"));
    }
    let service = words.checked("service", names::service, SERVICE)?;
    Ok(ThpGoal { settings, service })
}

fn jvm(words: &mut Words) -> Result<JvmGoal, GoalError> {
    let pages = |text: &str| match text {
        "thp" => Some(JvmPages::Thp),
        text => names::page(text).map(JvmPages::Pool),
    };
    let version = |text: &str| text.parse().ok().filter(|jdk| (1..100).contains(jdk));
    let kind = words.typed("kind", "hotspot, openj9 or sun")?;
    let collector = words.checked("collector", Collector::named, "serial, parallel, g1, zgc or shenandoah")?;
    if let (Some(JvmKind::OpenJ9), Some(collector)) = (kind, collector) {
        let wanted = "none beside kind=openj9: these are HotSpot's, and OpenJ9 has -Xgcpolicy";
        return Err(words.fail("collector", &collector.to_string(), wanted));
    }
    Ok(JvmGoal {
        heap: words.needed("heap", names::size, SIZE)?,
        user: words.checked("user", names::account, ACCOUNT)?,
        group: words.checked("group", names::account, ACCOUNT)?,
        service: words.checked("service", names::service, SERVICE)?,
        kind,
        pages: words
            .checked("pages", pages, "thp, or a page size such as 2M")?
            .unwrap_or(JvmPages::Default),
        collector,
        jdk: words.checked("jdk", version, "a version such as 21")?,
        code_cache: words.checked("code-cache", names::size, SIZE)?,
    })
}

fn database(words: &mut Words, kind: Kind, server: &Server) -> Result<DatabaseGoal, GoalError> {
    Ok(DatabaseGoal {
        kind,
        is_mariadb: words.kind == "mariadb",
        file: words.needed("file", names::path, PATH)?,
        page: words.checked("pages", names::page, PAGE)?,
        user: words
            .checked("user", names::account, ACCOUNT)?
            .unwrap_or_else(|| server.account.to_owned()),
        service: match words.checked("service", names::service, SERVICE)?.as_deref() {
            Some("none" | "none.service") => None,
            named => Some(named.unwrap_or(server.service).to_owned()),
        },
        buffer_pool: match server.keys.ends_with(BUFFER_POOL) {
            true => words.checked(BUFFER_POOL, names::size, SIZE)?,
            false => None,
        },
    })
}

fn placement(words: &mut Words) -> Result<PlacementGoal, GoalError> {
    let goal = PlacementGoal {
        service: words.needed("service", names::service, SERVICE)?,
        cpus: words.checked("cpus", names::cpus, CPUS)?,
        memory: words.checked("memory", names::node, "the number of a node")?,
        by: words.typed("by", "affinity or cpuset")?.unwrap_or(PlacedBy::Affinity),
    };
    match (&goal.cpus, goal.memory) {
        (None, None) => Err(words.fail("cpus", "", CPUS)),
        _ => Ok(goal),
    }
}

fn oracle(words: &mut Words) -> Result<OracleGoal, GoalError> {
    let few = |text: &str| text.parse().ok().filter(|count| (1..1000).contains(count));
    Ok(OracleGoal {
        sga: words.needed("sga", names::size, SIZE)?,
        instances: words.checked("instances", few, "a number of instances")?.unwrap_or(1),
        user: words
            .checked("user", names::account, ACCOUNT)?
            .unwrap_or_else(|| "oracle".to_owned()),
    })
}

fn vm(words: &mut Words) -> Result<VmGoal, GoalError> {
    let few = |text: &str| text.parse().ok().filter(|count| (1..10_000).contains(count));
    Ok(VmGoal {
        memory: words.needed("memory", names::size, "the guest's memory, such as vm:64G")?,
        page: words.checked("pages", names::page, PAGE)?.unwrap_or(Bytes::mib(2)),
        hypervisor: words
            .typed("hypervisor", "libvirt, qemu, cloud-hypervisor or esx")?
            .unwrap_or(Hypervisor::Libvirt),
        node: words.checked("node", names::node, "a node number")?,
        count: words.checked("count", few, "a number of guests")?.unwrap_or(1),
        name: words
            .checked("name", names::guest, "a name of letters, digits and _ . -")?
            .unwrap_or_else(|| VmGoal::UNNAMED.to_owned()),
    })
}
