//! The variables that switch a program's allocator to huge pages, or keep it from them.

use std::ffi::{OsStr, OsString};

use model::Bytes;
use model::PageKind::{Base, Hugetlb, Mthp, Thp};

use crate::policy::Policy;
use crate::program::{Allocator, Memory};
use crate::technique::Technique;

/// What the child would have anyway of a variable.
pub(super) type Given<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// HotSpot reads it behind its command line, so that it counts whatever is written there.
const JVM: &str = "_JAVA_OPTIONS";
/// The option has another name in its releases up to 2.0 than in those since.
const MIMALLOC: [&str; 2] = ["MIMALLOC_LARGE_OS_PAGES", "MIMALLOC_ALLOW_LARGE_OS_PAGES"];

/// A variable, what stands between its own value and another, and that.
type Variable = (&'static str, &'static str, String);

/// Those that bring pages about by this technique.
pub(super) fn on(technique: Technique, policy: Policy) -> Option<Vec<Variable>> {
    let one = |name, separator, value| Some(vec![(name, separator, value)]);
    match (technique, policy) {
        (Technique::Tunables, _) => one("GLIBC_TUNABLES", ":", tunables(policy)),
        (Technique::Jvm, Policy::Of(Thp)) => {
            one(JVM, " ", "-XX:+UseLargePages -XX:+UseTransparentHugePages".to_owned())
        }
        (Technique::Jvm, Policy::Of(Hugetlb(size))) => one(JVM, " ", jvm_pool(size)),
        (Technique::Allocator(Allocator::Jemalloc), Policy::Of(Thp)) => {
            one("MALLOC_CONF", ",", "thp:always,metadata_thp:auto".to_owned())
        }
        (Technique::Allocator(Allocator::Mimalloc), Policy::Of(Hugetlb(size))) if size == Bytes::mib(2) => {
            Some(MIMALLOC.map(|name| (name, "", "1".to_owned())).into())
        }
        _ => None,
    }
}

/// Those that keep a program from huge pages that it would take by itself, beside what the kernel's switch keeps from it.
pub(super) fn off(policy: Policy, memory: Memory, given: Given<'_>) -> Vec<Variable> {
    let off: &[(_, _, &str)] = match (policy, memory) {
        (Policy::Of(Base | Mthp(_)), Memory::Jvm) => &[(JVM, " ", "-XX:-UseLargePages -XX:-UseTransparentHugePages")],
        (Policy::Of(Base), Memory::Allocator(Allocator::Jemalloc)) => &[("MALLOC_CONF", ",", "thp:never")],
        (Policy::Of(Base | Thp | Mthp(_)), Memory::Allocator(Allocator::Mimalloc)) => {
            &[(MIMALLOC[0], "", "0"), (MIMALLOC[1], "", "0")]
        }
        // Where it names a hugetlbfs, memory is taken from that.
        (Policy::Of(Base | Thp), Memory::Allocator(Allocator::Tcmalloc)) => &[("TCMALLOC_MEMFS_MALLOC_PATH", "", "")],
        (Policy::Of(Base | Thp | Mthp(_)), Memory::Glibc | Memory::StaticGlibc | Memory::Database(_))
            if asks_for_pool(given) =>
        {
            &[("GLIBC_TUNABLES", ":", "glibc.malloc.hugetlb=0")]
        }
        _ => &[],
    };
    off.iter()
        .map(|(name, separator, value)| (*name, *separator, (*value).to_owned()))
        .collect()
}

/// Variables that are added to what the child would have anyway.
pub(super) fn set(variables: &[Variable], given: Given<'_>) -> Vec<(OsString, OsString)> {
    let set = |(name, separator, value): &Variable| (OsString::from(name), added(given(name), separator, value));
    variables.iter().map(set).collect()
}

fn asks_for_pool(given: Given<'_>) -> bool {
    given("GLIBC_TUNABLES").is_some_and(|tunables| tunables.to_string_lossy().contains("malloc.hugetlb"))
}

/// `-UseTransparentHugePages` written out switches hugetlb pages off, too, up to JDK 21, unless their kind is named; from 22 on
/// there is no such option.
fn jvm_pool(size: Bytes) -> String {
    format!(
        "-XX:+UseLargePages -XX:LargePageSizeInBytes={} -XX:-UseTransparentHugePages -XX:+IgnoreUnrecognizedVMOptions \
         -XX:+UseHugeTLBFS",
        size.exact().to_lowercase()
    )
}

/// Huge pages for malloc; then its heap grows by whole pages, and large blocks are taken from it instead of being mapped
/// one by one, whose ends would stay on base pages. 32 MiB is the highest threshold that every glibc takes. A block above it
/// that is smaller than a page would be mapped on base pages: with pages of 1 GiB none is mapped.
///
/// The size is written out: 2 would stand for the machine's default size, which is 1 GiB where the kernel's command line says so.
fn tunables(policy: Policy) -> String {
    let pages = match policy {
        Policy::Of(Hugetlb(size)) => size.0,
        _ => 1,
    };
    let heap = if pages > Bytes::mib(32).0 {
        "glibc.malloc.mmap_max=0:glibc.malloc.top_pad=0"
    } else {
        "glibc.malloc.mmap_threshold=33554432:glibc.malloc.top_pad=67108864"
    };
    format!("glibc.malloc.hugetlb={pages}:{heap}")
}

/// A value behind the one that is there, if there is one and several may be.
pub(super) fn added(given: Option<OsString>, separator: &str, value: impl AsRef<OsStr>) -> OsString {
    let mut all = given
        .filter(|given| !given.is_empty() && !separator.is_empty())
        .unwrap_or_default();
    if !all.is_empty() {
        all.push(separator);
    }
    all.push(value.as_ref());
    all
}
