//! The settings of a program about huge pages, whether its pool can serve it, and what to do next.

use std::iter;

use host::groups::{self, TooLow};
use host::snapshot::Thp;
use model::{Bytes, PageKind, Reading, Unread};
use programs::Evidence;
use programs::postgres::HugePages;
use programs::{Area, Jvm, JvmKind, Kind, Server, Setting, Target};

use super::heap::growing;
use super::parts::is_shared_by_policy;
use super::{Asked, Needs, Part, PartKind, PoolState, Why, heap_file};
use crate::facts::thp_file;
use crate::thp::unread_conf;

/// What a program needs, and the limits below that.
pub(super) type Limited = (Needs, Vec<TooLow>);

pub(super) const HEAP_AT: &str = "-XX:AllocateHeapAt";

/// Every setting that decides, as far as it could be read.
pub(super) fn asked(evidence: &Evidence, target: &Target, kind: Option<Kind>, parts: &[Part]) -> Vec<Asked> {
    let jvm = target.main.jvm().ok().flatten();
    let mut asked = match kind.and_then(Kind::server) {
        Some(server) => std::iter::once(own_setting(target, server))
            .chain(beside(target))
            .collect(),
        None => jvm.map_or_else(Vec::new, |jvm| flags(target, jvm)),
    };
    let paging = of_allocators(target);
    let is_unread =
        |name: &str| name == "MALLOC_CONF" && unread_conf(evidence, &target.main).is_ok_and(|case| case.is_some());
    let read_by = |name: &str| if is_unread(name) { " (read by nothing)" } else { "" };
    asked.extend(paging.map(|(name, value)| {
        let value = format!("{value}{}", read_by(name));
        Asked::set(name, value, target.main.file("environ"))
    }));
    let thp = evidence.snapshot.thp.known();
    let policy = thp.and_then(Thp::pmd_policy);
    asked.extend(policy.map(|policy| Asked::set("THP policy of anonymous memory", policy, thp_file("enabled"))));
    let areas = target.main.areas().unwrap_or_default();
    let is_shared_heap = jvm.is_some_and(|jvm| heap_file::view(jvm, areas).is_some()) && heap_at(target).is_none();
    let mut counts = areas.iter().filter_map(Area::counts);
    if is_shared_heap || is_shared_by_policy(target, parts) || counts.any(|counts| counts.shmem_pmd.0 > 0) {
        let policy = thp.and_then(|thp| thp.shared_policy(*thp.pmd_size.known()?).known().cloned());
        asked.extend(policy.map(|policy| Asked::set("THP policy of shared memory", policy, thp_file("shmem_enabled"))));
    }
    if target.main.pages.thp_enabled.known() == Some(&false) && !target.main.is_mariadb() {
        asked.push(Asked::set("PR_SET_THP_DISABLE", "1", target.main.file("status")));
    }
    asked
}

/// The variables by which allocators take huge pages.
pub(super) fn of_allocators(target: &Target) -> impl Iterator<Item = (&String, &String)> {
    let tunables = target.main.tunables.known().into_iter().flatten();
    tunables.filter(|(name, _)| {
        ["GLIBC_TUNABLES", "MALLOC_CONF", "MIMALLOC_", "TCMALLOC_"]
            .iter()
            .any(|known| name.starts_with(known))
    })
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
fn own_setting(target: &Target, server: &Server) -> Asked {
    let setting = setting(target);
    let place = setting.clone().ok().flatten().map(|setting| setting.place.clone());
    Asked {
        setting: server.setting.to_owned(),
        value: setting
            .map(|setting| setting.map(|setting| setting.value.clone()))
            .into(),
        place: place
            .or_else(|| target.configuration())
            .unwrap_or_else(|| server.file.to_owned()),
    }
}

/// Other settings of PostgreSQL that decide whether it takes huge pages, and of which size; where they are set.
fn beside(target: &Target) -> impl Iterator<Item = Asked> {
    let settings = target.main.details.as_ref().map(|details| &details.settings);
    let names = ["huge_page_size", "shared_memory_type"].into_iter();
    let set = names.filter_map(move |name| settings?.last(name));
    set.map(|set| Asked::set(&set.name, &set.value, &set.place))
}

/// The setting of a server, if it is set anywhere.
fn setting(target: &Target) -> Result<Option<&Setting>, Unread> {
    match &target.main.details {
        Some(details) => details.setting.as_ref().into_result().map(Option::as_ref),
        None => Ok(None),
    }
}

fn flags(target: &Target, jvm: &Jvm) -> Vec<Asked> {
    let place = |setting: &str| {
        let mut places = jvm.places.iter().filter(|(word, _)| is_about(setting, word));
        places
            .next()
            .map_or_else(|| target.main.file("cmdline"), |(_, place)| place.clone())
    };
    let flag = |setting: &str, is_set: bool| Asked {
        setting: setting.to_owned(),
        value: Reading::Known(is_set.then(|| "on".to_owned())),
        place: place(setting),
    };
    let mut flags = match jvm.kind {
        JvmKind::OpenJ9 => vec![
            flag("-Xlp", jvm.large_pages),
            flag("-XX:-TransparentHugePage", jvm.unadvised),
        ],
        JvmKind::HotSpot | JvmKind::Zing => vec![
            flag("-XX:+UseLargePages", jvm.large_pages),
            // One that is switched off is set all the same.
            flag(
                "-XX:+UseTransparentHugePages",
                jvm.transparent || (jvm.off.is_some() && !jvm.large_pages),
            ),
        ],
    };
    let sizes = [(jvm.size_option(), jvm.page_size), ("-Xmx", jvm.heap_max)];
    let sizes = sizes.into_iter().filter_map(|(setting, size)| Some((setting, size?)));
    flags.extend(sizes.map(|(setting, size)| Asked::set(setting, size.to_string(), place(setting))));
    let directory = heap_at(target).into_iter();
    flags.extend(directory.map(|directory| Asked::set(HEAP_AT, directory, place(HEAP_AT))));
    flags.extend(jvm.off.iter().map(|off| Asked::set(off, "set", place(off))));
    flags
}

/// Is a setting of explain's the one that this word of an option sets?
fn is_about(setting: &str, word: &str) -> bool {
    let other = [("-XX:+UseLargePages", "-Xlp"), ("-Xmx", "MaxHeapSize")];
    setting.contains(word) || other.contains(&(setting, word))
}

/// The directory of the file that a Java heap is by `-XX:AllocateHeapAt`.
fn heap_at(target: &Target) -> Option<&str> {
    target.main.jvm().ok().flatten()?.heap_at.as_deref()
}

/// The option of a JVM that switches off the huge pages that it asks for.
fn switched_off(target: &Target) -> Option<String> {
    target.main.jvm().ok().flatten()?.off.clone()
}

fn wants_pool(target: &Target) -> bool {
    target.main.jvm().ok().flatten().is_some_and(Jvm::wants_hugetlb)
}

/// Does a program ask for pages of a pool?
enum Asks {
    Yes,
    /// It is set not to; this would ask.
    No(&'static str),
    /// It asks for THP, or for nothing that is known here.
    Otherwise,
}

/// The place where a setting is set that stands against huge pages, and so where it is to be changed.
pub(super) fn place(target: &Target, setting: &str) -> Option<String> {
    let settings = &target.main.details.as_ref()?.settings;
    let name = setting.split([' ', '=']).next()?.replace('-', "_");
    settings.last(&name).map(|set| set.place.clone())
}

/// Why the part that matters most is not on hugetlb pages, if it could be.
pub(super) fn why(target: &Target, part: Option<&Part>, pools: &[PoolState]) -> Vec<Why> {
    if let Some(directory) = heap_at(target) {
        let directory = directory.to_owned();
        return vec![Why::HeapFile { directory }];
    }
    let kind = target.main.kind.known().copied().flatten();
    let needs = part.and_then(|part| part.needs);
    if let Some(option) = switched_off(target) {
        let short = needs.and_then(|needs| of_pool(needs, part, pools));
        let short = short.filter(|why| matches!(why, Why::PoolShort { .. }) && wants_pool(target));
        return iter::once(Why::SwitchedOff { option }).chain(short).collect();
    }
    // A Java heap without a known maximum, and MySQL's memory, may still ask.
    let is_heap = part.is_some_and(|part| part.what == PartKind::JavaHeap);
    if needs.is_none() && !is_heap && kind != Some(Kind::Mysql) {
        return Vec::new();
    }
    let asks = match asks(target, kind) {
        Asks::Yes if kind == Some(Kind::Postgres) && is_of_other_type(target) => Asks::No(MMAP),
        asks => asks,
    };
    match (asks, needs) {
        (Asks::No(_), _) if part.is_some_and(is_served_by_thp) => Vec::new(),
        (Asks::No(setting), _) => vec![Why::NotAsked {
            setting: setting.to_owned(),
        }],
        (Asks::Yes, Some(needs)) => of_pool(needs, part, pools)
            .into_iter()
            .chain(started_before(target))
            .collect(),
        (Asks::Yes, None) | (Asks::Otherwise, _) => Vec::new(),
    }
}

/// Private memory that is mostly on THP needs no pool, and the rest has the kernel's own reasons.
pub(super) fn is_served_by_thp(part: &Part) -> bool {
    let backing = part.backing.known();
    let is_most = backing.is_some_and(|backing| backing.of(PageKind::Thp).0 > backing.total().0 / 2);
    is_most && part.what == PartKind::PrivateMemory
}

/// With `huge_pages = on` PostgreSQL ends where it gets no huge pages, so a server on base pages was started with another value.
fn started_before(target: &Target) -> Option<Why> {
    let set = setting(target).ok().flatten()?;
    let is_on = HugePages::of(&set.value) == Some(HugePages::On) && target.main.is(Kind::Postgres) == Ok(true);
    is_on.then(|| Why::StartedBefore {
        setting: format!("{} = {}", set.name, set.value),
        place: set.place.clone(),
    })
}

/// What PostgreSQL takes huge pages for.
pub(super) const MMAP: &str = "shared_memory_type = mmap";

fn is_of_other_type(target: &Target) -> bool {
    target.shared.first().is_some_and(|segment| segment.area.is_segment())
}

fn asks(target: &Target, kind: Option<Kind>) -> Asks {
    match (kind.and_then(Kind::server), setting(target)) {
        (Some(server), Ok(set)) => {
            return match (server.asks)(set.map(|set| set.value.as_str())) {
                true => Asks::Yes,
                false => Asks::No(server.asking),
            };
        }
        // Its files could not be read; its log may say that it asked.
        (Some(_), Err(_)) if was_refused(target) => return Asks::Yes,
        _ => {}
    }
    match kind {
        Some(Kind::Jvm) => match target.main.jvm() {
            Ok(Some(jvm)) if jvm.wants_hugetlb() => Asks::Yes,
            // It advises its memory by default.
            Ok(Some(jvm)) if jvm.kind == JvmKind::OpenJ9 => match jvm.unadvised {
                true => Asks::No("-Xlp:objectheap:pagesize=2M or -XX:+TransparentHugePage"),
                false => Asks::Otherwise,
            },
            Ok(Some(jvm)) if !jvm.transparent => Asks::No("-XX:+UseLargePages or -XX:+UseTransparentHugePages"),
            _ => Asks::Otherwise,
        },
        Some(kind) if kind.is_hypervisor() => {
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

/// A restart gives a JVM before 17 no page of a size that it names, where it gets none of the default size.
pub(super) fn put_tried_first(evidence: &Evidence, target: &Target, why: &mut [Why]) {
    let jvm = target.main.jvm().ok().flatten();
    for why in why {
        let Why::Restart { needs, .. } = why else { continue };
        if let Some(pool) = jvm.and_then(|jvm| crate::jvm::gives_up(evidence, jvm, needs.page)) {
            let needs = Needs {
                page: pool.size,
                pages: 1,
            };
            *why = Why::PoolShort { needs, spare: 0 };
        }
    }
}

/// Pages that are there help no program that may not take them.
pub(super) fn barred(evidence: &Evidence, target: &Target, why: &[Why]) -> Option<Why> {
    let Some(Why::Restart { needs, .. }) = why.first() else {
        return None;
    };
    let is_mysql = target.main.is(Kind::Mysql) == Ok(true) && !target.main.is_mariadb();
    let by_segments = is_mysql || target.main.jvm().ok().flatten().is_some_and(|jvm| jvm.shm);
    let group = by_segments.then(|| crate::limits::barred(evidence, &target.main, needs.bytes()).ok())??;
    Some(Why::Barred { group: group? })
}

/// ZGC lowers the maximum of its heap where it found too few pages.
pub(super) fn lowered(target: &Target) -> Option<Why> {
    let (asked, granted) = target.main.jvm().ok()??.lowered()?;
    Some(Why::Lowered { asked, granted })
}

/// Puts a limit of its control groups in front of other reasons; it makes a restart alone none.
pub(super) fn put_limit(target: &Target, part: Option<&Part>, why: &mut Vec<Why>) -> Option<Limited> {
    let (needs, limits) = limited(target, part, why)?;
    why.retain(|why| !matches!(why, Why::Restart { .. }));
    // What it does not ask for is no reason yet.
    let place = usize::from(matches!(
        why.first(),
        Some(Why::NotAsked { .. } | Why::SwitchedOff { .. })
    ));
    let least = limits.iter().min_by_key(|limit| limit.allows);
    let of_limit = |limit: &TooLow| Why::Limited {
        needs,
        allows: limit.allows,
        file: limit.file.clone(),
    };
    why.splice(place..place, least.map(of_limit));
    Some((needs, limits))
}

/// A heap that is a file takes pages as it grows.
pub(super) fn no_room_to_grow(target: &Target, page: Option<Bytes>, pools: &[PoolState]) -> Option<Why> {
    let jvm = target.main.jvm().ok()??;
    let page = page.filter(|_| jvm.lowered().is_none())?;
    let (pages, own) = growing(&target.main, page).ok()??;
    let spare = pools.iter().find(|pool| pool.page == page)?.spare?.saturating_add(own);
    let needs = Needs { page, pages };
    (spare < pages).then_some(Why::NoRoomToGrow { needs, spare })
}

/// The limits of its control groups that its pages are beyond, those that it has or those that it asks for.
fn limited(target: &Target, part: Option<&Part>, why: &[Why]) -> Option<Limited> {
    let asks = |why: &Why| !matches!(why, Why::HeapFile { .. });
    let part = part.filter(|part| part.hugetlb.is_some() || why.iter().any(asks))?;
    let has = part.hugetlb.map(|pages| Needs {
        page: pages.page,
        pages: pages.total,
    });
    let needs = part.needs.into_iter().chain(has).max_by_key(|needs| needs.bytes())?;
    let groups = target.main.cgroup().ok().flatten()?;
    let limits = groups::too_low(&groups.levels, needs.page, needs.bytes());
    (!limits.is_empty()).then_some((needs, limits))
}
