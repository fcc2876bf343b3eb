//! What variables and options ask for of the pools.

use model::Bytes;
use programs::{Evidence, in_list};

use crate::facts::policy;

/// A variable or an option by which an allocator, a garbage collector or a program asks for pages of a pool.
#[derive(Clone)]
pub(super) struct Told {
    pub(super) variable: &'static str,
    pub(super) value: String,
    /// Of this size alone.
    pub(super) page: Option<Bytes>,
    /// Else of the default size alone, as mmap() takes it?
    pub(super) is_default: bool,
    /// 0 where the variable does not say how many.
    pub(super) pages: u64,
    /// What allocates by it.
    pub(super) what: &'static str,
    /// What it has without them.
    pub(super) falls_to: &'static str,
    /// The file of the process that shows it.
    pub(super) source: &'static str,
    /// What else helps, if anything does on every machine.
    pub(super) instead: Option<&'static str>,
    /// The sizes that the variable can name, by its own words.
    pub(super) sizes: &'static [(&'static str, Bytes)],
    /// Where to read more of what is not glibc's.
    pub(super) link: Option<&'static str>,
    /// What a program has mapped that reads the variable: others inherit the environment.
    pub(super) read_by: Option<&'static str>,
    /// Does THP under the policy `always` do as well?
    pub(super) or_always: bool,
}

impl Told {
    pub(super) fn new(variable: &'static str, value: &str, what: &'static str, instead: &'static str) -> Self {
        Self {
            variable,
            value: value.to_owned(),
            page: None,
            is_default: false,
            pages: 1,
            what,
            falls_to: "base pages",
            source: "environ",
            instead: Some(instead),
            sizes: &[],
            link: None,
            read_by: None,
            or_always: false,
        }
    }

    /// Is the same set to the same?
    pub(super) fn is_same(&self, other: &Self) -> bool {
        (self.variable, &self.value) == (other.variable, &other.value)
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
    if let Some(told) = get("GLIBC_TUNABLES").and_then(glibc) {
        return Some(told);
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
    let instead = "or use THP: the policy `always`, with that variable";
    if let Some(told) = switched(&get, "TBB_MALLOC_USE_HUGE_PAGES", "tbbmalloc", instead) {
        return Some(Told {
            or_always: true,
            read_by: Some("/libtbbmalloc"),
            link: Some(
                "https://www.intel.com/content/www/us/en/docs/onetbb/developer-guide-api-reference/2022-1/configuring-the-memory-allocator.html",
            ),
            ..told
        });
    }
    if let Some(told) = switched(&get, "PYTHON_PYMALLOC_HUGEPAGES", "pymalloc", POLICY) {
        return Some(Told {
            read_by: Some("python"),
            link: Some("https://github.com/python/cpython/issues/144319"),
            ..told
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

/// A switch that is on, of what takes pages of the default size.
fn switched<'a>(
    get: &impl Fn(&str) -> Option<&'a str>,
    name: &'static str,
    what: &'static str,
    instead: &'static str,
) -> Option<Told> {
    let value = get(name).filter(|value| *value == "1")?;
    Some(Told {
        is_default: true,
        ..Told::new(name, value, what, instead)
    })
}

/// glibc's tunable: a number from 2 on, of which a larger one is a page size.
fn glibc(all: &str) -> Option<Told> {
    let value = in_list(all, "glibc.malloc.hugetlb")?;
    let number = number(value).filter(|number| *number >= 2)?;
    let page = Some(Bytes(number)).filter(|_| number > 2);
    let instead = "or use THP: GLIBC_TUNABLES=glibc.malloc.hugetlb=1";
    Some(Told {
        page,
        is_default: true,
        pages: u64::from(page.is_none()),
        ..Told::new("GLIBC_TUNABLES: glibc.malloc.hugetlb", value, "malloc", instead)
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

/// The switch of .NET's garbage collector, which never falls back to base pages: a process that runs has its pages, and a limit of its heap.
pub(super) fn told_dotnet<'a>(get: impl Fn(&str) -> Option<&'a str>) -> Option<Told> {
    let of = |name| switched(&get, name, "the heap", POLICY);
    Some(Told {
        link: Some("https://learn.microsoft.com/en-us/dotnet/core/runtime-config/garbage-collector"),
        ..of("DOTNET_GCLargePages").or_else(|| of("COMPlus_GCLargePages"))?
    })
}

/// What else helps, where nothing is before it.
pub(super) fn alone(instead: &'static str) -> &'static str {
    instead.trim_start_matches("or ")
}
