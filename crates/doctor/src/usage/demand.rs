//! The settings of a program about huge pages, whether its pool can serve it, and what to do next.

use model::{Reading, Unread};
use programs::Evidence;
use programs::{Jvm, Kind, Setting, Target};

use super::parts::asks_for_hugetlb;
use super::{Asked, Part, PartKind, PoolState, Why, heap_file};

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
    if target.main.pages.thp_enabled.known() == Some(&false) {
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

/// Why the part that matters most is not on hugetlb pages, if it could be.
pub(super) fn why(target: &Target, kind: Option<Kind>, part: Option<&Part>, pools: &[PoolState]) -> Vec<Why> {
    if let Some(directory) = heap_at(target) {
        let directory = directory.to_owned();
        return vec![Why::HeapFile { directory }];
    }
    if kind == Some(Kind::Mysql) {
        match setting(target).map(not_asked_of_mysql) {
            Ok(why) if why.is_empty() => {}
            Ok(why) => return why,
            Err(_) => return Vec::new(),
        }
    }
    let needs = part.and_then(|part| part.needs);
    // A Java heap without a known maximum may still ask.
    if needs.is_none() && !part.is_some_and(|part| part.what == PartKind::JavaHeap) {
        return Vec::new();
    }
    let not_asked = |setting: &str| Why::NotAsked {
        setting: setting.to_owned(),
    };
    let asks = match kind {
        Some(Kind::Postgres) => match setting(target) {
            Ok(Some(off)) if off.value == "off" => Err(not_asked("huge_pages = try or on")),
            Ok(_) => Ok(()),
            Err(_) => return Vec::new(),
        },
        Some(Kind::Jvm) => match target.main.jvm() {
            Ok(Some(jvm)) if asks_for_hugetlb(jvm) => Ok(()),
            Ok(Some(jvm)) if jvm.transparent => return Vec::new(),
            Ok(Some(_)) => Err(not_asked("-XX:+UseLargePages or -XX:+UseTransparentHugePages")),
            Ok(None) | Err(_) => return Vec::new(),
        },
        Some(Kind::Mysql) => Ok(()),
        Some(kind) if kind.is_hypervisor() => {
            let asked = target
                .vm
                .as_ref()
                .and_then(|vm| vm.configured.known()?.memory.first()?.kind);
            asked
                .map(|_| ())
                .ok_or_else(|| not_asked("memory-backend-file,mem-path=/dev/hugepages or libvirt's <hugepages/>"))
        }
        _ => return Vec::new(),
    };
    if let Err(why) = asks {
        return vec![why];
    }
    let Some(needs) = needs else {
        return Vec::new();
    };
    let spare = pools
        .iter()
        .find(|pool| pool.page == needs.page)
        .and_then(|pool| pool.spare);
    let own = part
        .and_then(|part| part.hugetlb)
        .filter(|pages| pages.page == needs.page);
    let own = own.map_or(0, |pages| pages.total);
    spare
        .map(|spare| spare.saturating_add(own))
        .map(|spare| match spare >= needs.pages {
            true => Why::Restart { needs, spare },
            false => Why::PoolShort { needs, spare },
        })
        .into_iter()
        .collect()
}

/// How many pages it needs, its files alone do not say.
fn not_asked_of_mysql(setting: Option<&Setting>) -> Vec<Why> {
    let is_on = setting.is_some_and(|setting| programs::config::mysql::is_on(&setting.value));
    let why = (!is_on).then(|| Why::NotAsked {
        setting: LARGE_PAGES.to_owned(),
    });
    why.into_iter().collect()
}

/// Its systemd service, if it runs as one.
pub(super) fn service(target: &Target) -> Option<String> {
    target.main.cgroup().ok().flatten()?.service.clone()
}
