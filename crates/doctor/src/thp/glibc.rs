//! glibc's tunables for huge pages, and what came before them.

use model::{Bytes, PageKind};
use programs::{Evidence, Program, in_list};

use crate::facts::{
    available, count, default_size, each_that_can, known, policy, pool_file, pools, programs, readable, thp_file,
};
use crate::kept::boot_pages;
use crate::remedy::Need;
use crate::rule::{Answer, Case, Reason};

/// The value of a tunable in GLIBC_TUNABLES.
fn tunable<'a>(program: &'a Program, name: &str) -> Result<Option<&'a str>, Reason> {
    let all = program.tunable("GLIBC_TUNABLES")?;
    Ok(all.and_then(|all| in_list(all, name)))
}

fn glibc(program: &Program) -> Option<(u32, u32)> {
    program.details.as_ref()?.glibc.known().copied()
}

pub(super) fn auto_thp(evidence: &Evidence) -> Answer {
    let is_arm = known(&evidence.snapshot.cpu.vendor)?.starts_with("0x");
    let policy = policy(evidence)?;
    if !is_arm || policy == "never" {
        return Ok(Vec::new());
    }
    let all = programs(evidence)?;
    let (grown, unread) = readable(all.iter().map(|program| Ok(is_grown(program)?.then_some(program))));
    let grown: Vec<&Program> = grown.into_iter().flatten().collect();
    let Some(first) = grown.first() else {
        return match unread {
            Some(reason) => Err(reason),
            None if all.iter().any(|program| glibc(program).is_some()) => Ok(Vec::new()),
            None => Err("the glibc version of no process could be read".into()),
        };
    };
    let bytes: Bytes = grown.iter().filter_map(|program| program.thp().ok()).sum();
    let case = Case::likely(format!(
        "{} {bytes} backed by THP, which malloc requests by default",
        count(grown.len() as u64, "small process has", "small processes have")
    ))
    .seen(first.file("smaps"), "glibc", "2.43 or later")
    .seen_backing(first, PageKind::Thp, first.thp()?)
    .seen(thp_file("enabled"), "", policy)
    .fix("for small programs: GLIBC_TUNABLES=glibc.malloc.hugetlb=0");
    Ok(vec![case])
}

/// Is it a small program with THP that a new glibc requested?
fn is_grown(program: &Program) -> Result<bool, Reason> {
    let is_default = tunable(program, "glibc.malloc.hugetlb")?.is_none();
    let is_small = *known(&program.pages.rss)? < Bytes::mib(256);
    if !is_default || !is_small || program.thp()?.0 == 0 {
        return Ok(false);
    }
    Ok(glibc(program).is_some_and(|version| version >= (2, 43)))
}

/// A variable by which an allocator or a garbage collector is told to take pages of a pool.
pub(super) struct Told {
    pub(super) variable: &'static str,
    pub(super) value: String,
    /// Of this size alone.
    pub(super) page: Option<Bytes>,
    /// Else of the default size alone, as mmap() takes it?
    is_default: bool,
    /// 0 where the variable does not say how many.
    pub(super) pages: u64,
    /// What allocates by it.
    pub(super) what: &'static str,
    /// What else helps, if anything does on every machine.
    pub(super) instead: Option<&'static str>,
    /// The sizes that the variable can name, by its own words.
    sizes: &'static [(&'static str, Bytes)],
    /// Where to read more of what is not glibc's.
    pub(super) link: Option<&'static str>,
    /// What a program has mapped that reads the variable: others inherit the environment.
    read_by: Option<&'static str>,
    /// Does THP under the policy `always` do as well?
    pub(super) or_always: bool,
}

impl Told {
    fn new(variable: &'static str, value: &str, what: &'static str, instead: &'static str) -> Self {
        Self {
            variable,
            value: value.to_owned(),
            page: None,
            is_default: false,
            pages: 1,
            what,
            instead: Some(instead),
            sizes: &[],
            link: None,
            read_by: None,
            or_always: false,
        }
    }

    /// So many pages at least.
    pub(super) fn least(&self) -> u64 {
        self.pages.max(1)
    }

    /// Of which size it takes pages, if only of one.
    pub(super) fn size(&self, default: Option<Bytes>) -> Option<Bytes> {
        self.page.or(default.filter(|_| self.is_default))
    }

    pub(super) fn has_always(&self, evidence: &Evidence) -> bool {
        self.or_always && policy(evidence).is_ok_and(|policy| policy == "always")
    }
}

const POLICY: &str = "or use THP: the policy `always`, without that variable";

fn number(value: &str) -> Option<u64> {
    value.parse().ok()
}

/// What the variables say: glibc's tunable, of which 2 is the default size and a larger number a page size; mimalloc's reserve of 1 GiB pages; oneTBB's
/// switch, whose allocator advises nothing; Python's since 3.15; SGLang's page size; the directory in which gperftools' tcmalloc makes its files.
pub(super) fn told<'a>(get: impl Fn(&str) -> Option<&'a str>) -> Option<Told> {
    let glibc = || get("GLIBC_TUNABLES").and_then(|all| in_list(all, "glibc.malloc.hugetlb"));
    if let Some(value) = glibc().filter(|value| number(value).is_some_and(|value| value >= 2)) {
        let variable = "GLIBC_TUNABLES: glibc.malloc.hugetlb";
        let named = number(value).filter(|value| *value > 2).map(Bytes);
        let told = Told::new(
            variable,
            value,
            "malloc",
            "or use THP: GLIBC_TUNABLES=glibc.malloc.hugetlb=1",
        );
        return Some(Told {
            page: named,
            is_default: true,
            pages: u64::from(named.is_none()),
            ..told
        });
    }
    let reserve = get("MIMALLOC_RESERVE_HUGE_OS_PAGES").and_then(|value| Some((value, number(value)?)));
    if let Some((value, pages @ 1..)) = reserve {
        return Some(Told {
            page: Some(Bytes::gib(1)),
            pages,
            link: Some("https://microsoft.github.io/mimalloc/environment.html"),
            ..Told::new("MIMALLOC_RESERVE_HUGE_OS_PAGES", value, "malloc", POLICY)
        });
    }
    let switched = |name| get(name).filter(|value| *value == "1");
    if let Some(value) = switched("TBB_MALLOC_USE_HUGE_PAGES") {
        let instead = "or use THP: the policy `always`, with that variable";
        return Some(Told {
            is_default: true,
            or_always: true,
            read_by: Some("/libtbbmalloc"),
            link: Some(
                "https://www.intel.com/content/www/us/en/docs/onetbb/developer-guide-api-reference/2022-1/configuring-the-memory-allocator.html",
            ),
            ..Told::new("TBB_MALLOC_USE_HUGE_PAGES", value, "tbbmalloc", instead)
        });
    }
    if let Some(value) = switched("PYTHON_PYMALLOC_HUGEPAGES") {
        return Some(Told {
            is_default: true,
            read_by: Some("python"),
            link: Some("https://github.com/python/cpython/issues/144319"),
            ..Told::new("PYTHON_PYMALLOC_HUGEPAGES", value, "pymalloc", POLICY)
        });
    }
    if let Some(told) = get("SGLANG_HUGEPAGE_SIZE").and_then(sglang) {
        return Some(told);
    }
    let path = get("TCMALLOC_MEMFS_MALLOC_PATH").filter(|path| !path.is_empty())?;
    Some(Told {
        link: Some("https://gperftools.github.io/gperftools/tcmalloc.html"),
        ..Told::new("TCMALLOC_MEMFS_MALLOC_PATH", path, "malloc", POLICY)
    })
}

const OF_SGLANG: [(&str, Bytes); 2] = [("2MB", Bytes::mib(2)), ("1GB", Bytes::gib(1))];

/// SGLang's host memory pool names a page size, and falls back to base pages where that pool has not enough (alloc_mmap of its memory_pool_host).
fn sglang(value: &str) -> Option<Told> {
    let word = value.trim().to_ascii_uppercase();
    let (_, page) = OF_SGLANG.into_iter().find(|(name, _)| *name == word)?;
    Some(Told {
        page: Some(page),
        pages: 0,
        instead: None,
        sizes: &OF_SGLANG,
        read_by: Some("python"),
        link: Some("https://github.com/sgl-project/sglang/issues/34972"),
        ..Told::new("SGLANG_HUGEPAGE_SIZE", value, "the host memory pool", "")
    })
}

/// The variable that asks for pages of a pool, and its value.
pub(crate) fn asked_by(program: &Program) -> Option<(&'static str, String)> {
    let tunables = program.tunables.known()?;
    let told = told(|name| tunables.get(name).map(String::as_str))?;
    reads(program, &told)
        .is_ok_and(|reads| reads)
        .then_some((told.variable, told.value))
}

/// Does a variable ask for pages that no pool has?
pub(crate) fn asks_in_vain(evidence: &Evidence, program: &Program) -> bool {
    rooms(evidence).is_ok_and(|rooms| unmet_by(evidence, &rooms, program).is_ok_and(|unmet| unmet.is_some()))
}

/// Does the program read the variable, as far as its mappings show?
fn reads(program: &Program, told: &Told) -> Result<bool, Reason> {
    match told.read_by {
        None => Ok(true),
        Some(name) => Ok(program.areas()?.iter().any(|area| area.name.contains(name))),
    }
}

/// The switch of .NET's garbage collector, which never falls back to base pages: a process that runs has its pages, and a limit of its heap.
pub(super) fn told_dotnet<'a>(get: impl Fn(&str) -> Option<&'a str>) -> Option<Told> {
    let switch = |name| Some((name, get(name).filter(|value| *value == "1")?));
    let (name, value) = switch("DOTNET_GCLargePages").or_else(|| switch("COMPlus_GCLargePages"))?;
    Some(Told {
        is_default: true,
        link: Some("https://learn.microsoft.com/en-us/dotnet/core/runtime-config/garbage-collector"),
        ..Told::new(name, value, "the heap", POLICY)
    })
}

/// Pages that each pool has for more programs.
fn rooms(evidence: &Evidence) -> Result<Vec<(Bytes, u64)>, Reason> {
    let mut rooms = Vec::new();
    for pool in pools(evidence)? {
        let growth = known(&pool.overcommit)?.saturating_sub(*known(&pool.surplus)?);
        rooms.push((pool.size, available(pool)?.saturating_add(growth)));
    }
    Ok(rooms)
}

/// What a variable asks for, where the pools have too little room for it, and how much they have.
fn unmet_by(evidence: &Evidence, rooms: &[(Bytes, u64)], program: &Program) -> Result<Option<(Told, u64)>, Reason> {
    let tunables = known(&program.tunables)?;
    let Some(told) = told(|name| tunables.get(name).map(String::as_str)) else {
        return Ok(None);
    };
    if !reads(program, &told)? {
        return Ok(None);
    }
    let page = told.size(default_size(evidence).ok());
    let own = rooms.iter().filter(|(size, _)| page.is_none_or(|page| page == *size));
    let room = own.fold(0_u64, |sum, (_, room)| sum.saturating_add(*room));
    let is_met = room >= told.least() || program.hugetlb()?.0 > 0 || told.has_always(evidence);
    Ok((!is_met).then_some((told, room)))
}

pub(super) fn empty_pool(evidence: &Evidence) -> Answer {
    let rooms = rooms(evidence)?;
    each_that_can(programs(evidence)?, |program| {
        let asked = unmet_by(evidence, &rooms, program)?;
        let case = |(told, room): (Told, u64)| named(unmet(evidence, program, &told, room), &told, &rooms);
        Ok(asked.map(case))
    })
}

/// It asks for pages of pools that have so much room, which is too little.
fn unmet(evidence: &Evidence, program: &Program, told: &Told, room: u64) -> Case {
    let why = match told.page {
        Some(page) if told.pages == 0 => {
            format!(
                "it is configured to take pages of {}, and {room} can be had",
                page.exact()
            )
        }
        Some(page) => format!(
            "it is configured to take {} of {}, and {room} can be had",
            count(told.pages, "page", "pages"),
            page.exact()
        ),
        None if told.or_always => {
            "it takes pages of a pool, or THP under the policy `always` alone, and has neither".to_owned()
        }
        None => match told.size(default_size(evidence).ok()) {
            Some(page) => format!(
                "it is configured to use the pool of {}, the default size, which has no free page",
                page.exact()
            ),
            None => "it is configured to use a pool, and no pool has a free page".to_owned(),
        },
    };
    let case = Case::sure(format!("{} of {} uses base pages: {why}", told.what, program.title()))
        .link(told.link)
        .seen(program.file("environ"), told.variable, &told.value)
        .seen(program.file("status"), "HugetlbPages", &program.pages.hugetlb)
        .seen_free(evidence);
    let page = told.page.or_else(|| default_size(evidence).ok());
    let case = match page {
        Some(page) => {
            let counted = told.page.is_some() && told.pages > 0;
            let more = told.pages.saturating_sub(room);
            let what = match counted {
                true => format!("{} of {}", count(more, "more page", "more pages"), page.exact()),
                false => format!("fill the pool of {}", page.exact()),
            };
            let text = format!("{what}: {}", fill(evidence, page, counted.then_some(more)));
            let pages = told.least();
            case.fix_with(Need::more(page, pages), text)
                .otherwise(without_room(evidence, page))
        }
        None => case.fix("fill the pool, then restart it"),
    };
    case.with(told.instead, Case::fix)
}

/// Where the pool of that size cannot have the pages.
pub(super) fn without_room(evidence: &Evidence, page: Bytes) -> String {
    let pools = evidence.snapshot.pools.known().into_iter().flatten();
    let sizes: Vec<String> = pools.map(|pool| pool.size.exact()).collect();
    let (page, has) = match evidence.snapshot.pool(page) {
        Some(_) => return "ask for fewer: the machine has no room for such a pool".to_owned(),
        None => (page.exact(), sizes.join(" and ")),
    };
    match sizes.is_empty() {
        true => format!("leave it out: this machine has no pages of {page}"),
        false => format!("ask for another size: this machine has no pages of {page}, and has those of {has}"),
    }
}

/// With the name of another size that has room.
fn named(case: Case, told: &Told, rooms: &[(Bytes, u64)]) -> Case {
    let other = told.sizes.iter().find_map(|(name, size)| {
        let has_room = |(page, room): &&(Bytes, u64)| page == size && *room >= told.least();
        Some((name, rooms.iter().find(has_room)?))
    });
    case.with(other, |case, (name, (page, room))| {
        case.wants(*page).fix(format!(
            "or name the size that has pages: {}={name} ({room} can be had)",
            told.variable
        ))
    })
}

/// How a pool gets so many more pages. Those of 1G are made at boot, before memory is fragmented.
fn fill(evidence: &Evidence, page: Bytes, more: Option<u64>) -> String {
    let pool = evidence.snapshot.pool(page);
    let has = pool.and_then(|pool| pool.nr.known().copied()).unwrap_or(0);
    let pages = more.map_or_else(|| "PAGES".to_owned(), |more| has.saturating_add(more).to_string());
    match pool.filter(|_| page < Bytes::gib(1)) {
        Some(pool) => format!("echo {pages} > {}, then restart it", pool_file(pool, "nr_hugepages")),
        None => boot_pages(evidence, page, pages),
    }
}

pub(super) fn mid_size_gap(evidence: &Evidence) -> Answer {
    let policy = policy(evidence)?;
    each_that_can(programs(evidence)?, |program| {
        let alone = tunable(program, "glibc.malloc.hugetlb")? == Some("1")
            && tunable(program, "glibc.malloc.mmap_threshold")?.is_none();
        if !alone || policy == "never" {
            return Ok(None);
        }
        let backing = known(&program.pages.backing)?;
        let (huge, base) = (backing.of(PageKind::Thp), backing.of(PageKind::Base));
        if base < Bytes::mib(64) || huge >= base {
            return Ok(None);
        }
        let share = backing.share(PageKind::Thp).unwrap_or(0.0) * 100.0;
        let case = Case::likely(format!("{share:.0} % of {} is backed by huge pages, {base} is not: blocks of 128 KiB to 2 MiB get none", program.title()))
            .seen(program.file("environ"), "GLIBC_TUNABLES: glibc.malloc.hugetlb", 1)
            .seen_backing(program, PageKind::Thp, huge)
            .seen_backing(program, PageKind::Base, base)
            .fix("GLIBC_TUNABLES=glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=1073741824:glibc.malloc.top_pad=67108864, then restart it")
            .fix("and check its page kinds again: hugewise ps PID");
        Ok(Some(case))
    })
}
