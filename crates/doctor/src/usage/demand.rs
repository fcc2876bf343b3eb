//! The settings of a program about huge pages, whether its pool can serve it, and what to do next.

use model::{Reading, Unread};
use programs::Evidence;
use programs::{Jvm, Kind, Setting, Target};

use super::parts::asks_for_hugetlb;
use super::{Asked, Needs, Part, PartKind, PoolState, Why, heap_file};

const LARGE_PAGES: &str = "large-pages";
const POLICY: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
pub(super) const HEAP_AT: &str = "-XX:AllocateHeapAt";
const SHARED_POLICY: &str = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";

/// Every setting that decides, as far as it could be read.
pub(super) fn asked(evidence: &Evidence, target: &Target, kind: Option<Kind>) -> Vec<Asked> {
    let mut asked = match kind {
        Some(Kind::Postgres) => vec![own_setting(target, "huge_pages", "postgresql.conf")],
        Some(Kind::Mysql) => vec![own_setting(target, LARGE_PAGES, "my.cnf")],
        Some(Kind::Jvm) => target
            .main
            .jvm()
            .ok()
            .flatten()
            .map_or_else(Vec::new, |jvm| flags(target, jvm)),
        _ => Vec::new(),
    };
    let tunables = target.main.tunables.known().into_iter().flatten();
    let paging = tunables.filter(|(name, _)| {
        ["GLIBC_TUNABLES", "MALLOC_CONF", "MIMALLOC_", "TCMALLOC_"]
            .iter()
            .any(|known| name.starts_with(known))
    });
    asked.extend(paging.map(|(name, value)| Asked::set(name, value.clone(), target.main.file("environ"))));
    let thp = evidence.snapshot.thp.known();
    let policy = thp.and_then(|thp| thp.policy(*thp.pmd_size.known()?).known().cloned());
    asked.extend(policy.map(|policy| Asked::set("THP policy of anonymous memory", policy, POLICY)));
    let areas = target.main.areas().unwrap_or_default();
    let jvm = target.main.jvm().ok().flatten();
    if jvm.is_some_and(|jvm| heap_file::view(jvm, areas).is_some()) && heap_at(target).is_none() {
        let policy = thp.and_then(|thp| thp.shared_policy(*thp.pmd_size.known()?).known().cloned());
        asked.extend(policy.map(|policy| Asked::set("THP policy of shared memory", policy, SHARED_POLICY)));
    }
    if target.main.pages.thp_enabled.known() == Some(&false) && !target.main.is_mariadb() {
        asked.push(Asked::set("PR_SET_THP_DISABLE", "1", target.main.file("status")));
    }
    asked
}

impl Asked {
    fn set(setting: &str, value: impl Into<String>, place: impl Into<String>) -> Self {
        Self {
            setting: setting.to_owned(),
            value: Reading::Known(Some(value.into())),
            place: place.into(),
        }
    }
}

/// A setting of a server's own files.
fn own_setting(target: &Target, name: &str, file: &str) -> Asked {
    let setting = setting(target);
    let place = setting
        .as_ref()
        .ok()
        .copied()
        .flatten()
        .map(|setting| setting.place.clone());
    Asked {
        setting: name.to_owned(),
        value: setting
            .map(|setting| setting.map(|setting| setting.value.clone()))
            .into(),
        place: place
            .or_else(|| target.configuration())
            .unwrap_or_else(|| file.to_owned()),
    }
}

/// PostgreSQL's `huge_pages` or MySQL's `large-pages`, if it is set anywhere.
fn setting(target: &Target) -> Result<Option<&Setting>, Unread> {
    match &target.main.details {
        Some(details) => details.setting.as_ref().into_result().map(Option::as_ref),
        None => Ok(None),
    }
}

fn flags(target: &Target, jvm: &Jvm) -> Vec<Asked> {
    let flag = |setting: &str, is_set: bool| Asked {
        setting: setting.to_owned(),
        value: Reading::Known(is_set.then(|| "on".to_owned())),
        place: target.main.file("cmdline"),
    };
    let mut flags = vec![
        flag("-XX:+UseLargePages", jvm.large_pages),
        flag("-XX:+UseTransparentHugePages", jvm.transparent),
    ];
    let sizes = [("-XX:LargePageSizeInBytes", jvm.page_size), ("-Xmx", jvm.heap_max)];
    let sizes = sizes.into_iter().filter_map(|(setting, size)| Some((setting, size?)));
    flags.extend(sizes.map(|(setting, size)| Asked::set(setting, size.to_string(), target.main.file("cmdline"))));
    let directory = heap_at(target).into_iter();
    flags.extend(directory.map(|directory| Asked::set(HEAP_AT, directory, target.main.file("cmdline"))));
    flags
}

/// The directory of the file that a Java heap is by `-XX:AllocateHeapAt`.
fn heap_at(target: &Target) -> Option<&str> {
    target.main.jvm().ok().flatten()?.heap_at.as_deref()
}

/// Does a program ask for pages of a pool?
enum Asks {
    Yes,
    /// It is set not to; this would ask.
    No(&'static str),
    /// It asks for THP, or for nothing that is known here.
    Otherwise,
}

/// Why the part that matters most is not on hugetlb pages, if it could be.
pub(super) fn why(target: &Target, part: Option<&Part>, pools: &[PoolState]) -> Vec<Why> {
    if let Some(directory) = heap_at(target) {
        let directory = directory.to_owned();
        return vec![Why::HeapFile { directory }];
    }
    let kind = target.main.kind.known().copied().flatten();
    let needs = part.and_then(|part| part.needs);
    // A Java heap without a known maximum, and MySQL's memory, may still ask.
    let is_heap = part.is_some_and(|part| part.what == PartKind::JavaHeap);
    if needs.is_none() && !is_heap && kind != Some(Kind::Mysql) {
        return Vec::new();
    }
    match (asks(target, kind), needs) {
        (Asks::No(setting), _) => vec![Why::NotAsked {
            setting: setting.to_owned(),
        }],
        (Asks::Yes, Some(needs)) => of_pool(needs, part, pools).into_iter().collect(),
        (Asks::Yes, None) | (Asks::Otherwise, _) => Vec::new(),
    }
}

fn asks(target: &Target, kind: Option<Kind>) -> Asks {
    let is_on = |value: &str| programs::config::mysql::is_on(value);
    match (kind, setting(target)) {
        (Some(Kind::Postgres), Ok(Some(set))) if set.value == "off" => Asks::No("huge_pages = try or on"),
        (Some(Kind::Postgres), Ok(_)) => Asks::Yes,
        (Some(Kind::Mysql), Ok(Some(set))) if is_on(&set.value) => Asks::Yes,
        (Some(Kind::Mysql), Ok(_)) => Asks::No(LARGE_PAGES),
        // Its files could not be read; its log may say that it asked.
        (Some(Kind::Mysql), Err(_)) if was_refused(target) => Asks::Yes,
        (Some(Kind::Jvm), _) => match target.main.jvm() {
            Ok(Some(jvm)) if asks_for_hugetlb(jvm) => Asks::Yes,
            Ok(Some(jvm)) if !jvm.transparent => Asks::No("-XX:+UseLargePages or -XX:+UseTransparentHugePages"),
            _ => Asks::Otherwise,
        },
        (Some(kind), _) if kind.is_hypervisor() => {
            let asked = || target.vm.as_ref()?.configured.known()?.memory.first()?.kind;
            match asked() {
                Some(_) => Asks::Yes,
                None => Asks::No("memory-backend-file,mem-path=/dev/hugepages or libvirt's <hugepages/>"),
            }
        }
        _ => Asks::Otherwise,
    }
}

/// Does its log say that the kernel had no page for it? (`Couldn't allocate ... bytes (Large/HugeTLB memory page size ...); errno 12`)
fn was_refused(target: &Target) -> bool {
    let mut lines = target.log.lines.iter();
    lines.any(|line| line.text.contains("HugeTLB") && line.text.contains("errno 12"))
}

/// What the pool has for it: its own pages count as spare ones.
fn of_pool(needs: Needs, part: Option<&Part>, pools: &[PoolState]) -> Option<Why> {
    let pool = pools.iter().find(|pool| pool.page == needs.page)?;
    let own = part
        .and_then(|part| part.hugetlb)
        .filter(|pages| pages.page == needs.page);
    let own = own.map_or(0, |pages| pages.total);
    let spare = pool.spare?.saturating_add(own);
    match () {
        // It has what it asks for; the rest of its memory never asks.
        () if own >= needs.pages => None,
        () if spare >= needs.pages => Some(Why::Restart { needs, spare }),
        () => Some(Why::PoolShort { needs, spare }),
    }
}

/// Its systemd service, if it runs as one.
pub(super) fn service(target: &Target) -> Option<String> {
    target.main.cgroup().ok().flatten()?.service.clone()
}
