//! Transparent huge pages: who may have them, at which sizes, and what became of it.

use model::{Bytes, Cause, PageKind, Reading, Unread};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::hugetlb::{directory_name, size_in_name, sizes_in_names};
use super::kernel::is_named_x86;
use super::numbers::Numbers;
use crate::{Source, parse};

/// Where the kernel keeps these settings.
pub const THP: &str = "/sys/kernel/mm/transparent_hugepage";

/// Where Red Hat Enterprise Linux 6 keeps them.
const REDHAT: &str = "/sys/kernel/mm/redhat_transparent_hugepage";

/// The THP policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Thp {
    /// Where this kernel keeps these settings.
    #[serde(default = "usual")]
    pub directory: String,
    /// Which anonymous memory may have them: `always`, `madvise` or `never`.
    pub enabled: Reading<Choice>,
    /// How hard a page fault tries to get one.
    pub defrag: Reading<Choice>,
    /// Which shared memory may have them.
    pub shmem_enabled: Reading<Choice>,
    /// The size that one PMD entry maps.
    pub pmd_size: Reading<Bytes>,
    /// Do read faults share one huge page of zeros?
    pub use_zero_page: Reading<bool>,
    /// Are huge pages that are mostly zero split under memory pressure?
    pub shrink_underused: Reading<bool>,
    /// Settings and counters of khugepaged, by file name.
    pub khugepaged: Reading<Numbers>,
    /// Every size that has a setting of its own (mTHP), smallest first; empty before Linux 6.8.
    pub sizes: Vec<ThpSize>,
    /// Files that this version does not know: settings of a newer or a patched kernel, which may change what the others mean.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
}

/// The files of Linux 6.18 (transhuge.rst).
const KNOWN: [&str; 8] = [
    "defrag",
    "enabled",
    "hpage_pmd_size",
    "khugepaged",
    "shmem_enabled",
    "shrink_underused",
    "use_zero_page",
    // Until Linux 5.15 or so.
    "debug_cow",
];
/// Those of one size.
const KNOWN_OF_SIZE: [&str; 3] = ["enabled", "shmem_enabled", "stats"];

/// The files that are not known, by their path below [`THP`].
fn unknown(source: &Source, names: &[String]) -> Vec<String> {
    let is_size = |name: &&String| size_in_name(name).is_some();
    let top = names
        .iter()
        .filter(|name| !is_size(name) && !KNOWN.contains(&name.as_str()));
    let of_size = names.iter().filter(is_size).flat_map(|size| {
        let files = source.list(&format!("{THP}/{size}")).into_result().unwrap_or_default();
        let files = files.into_iter().filter(|file| !KNOWN_OF_SIZE.contains(&file.as_str()));
        files.map(move |file| format!("{size}/{file}"))
    });
    let all: Vec<String> = top.cloned().chain(of_size).collect();
    for name in &all {
        // A capture keeps what was read.
        let _ = source.line(&format!("{THP}/{name}"));
    }
    all
}

/// One THP size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ThpSize {
    /// Size of one page.
    pub size: Bytes,
    /// Which anonymous memory may have them; absent for sizes that only shared memory has.
    pub enabled: Reading<Choice>,
    /// Which shared memory may have them.
    pub shmem_enabled: Reading<Choice>,
    /// Counters since boot, by file name.
    pub stats: Reading<Numbers>,
}

/// A setting of the form `always [madvise] never`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Choice {
    /// The value in brackets.
    pub chosen: String,
    /// All values that this kernel offers, in its order.
    pub offered: Vec<String>,
}

impl Thp {
    /// Those of a machine.
    pub fn read(source: &Source) -> Reading<Self> {
        match Self::below(source, THP) {
            absent if absent.is_absent() => match Self::below(source, REDHAT) {
                Reading::Known(thp) => Reading::Known(thp),
                Reading::Unread(_) => absent,
            },
            read => read,
        }
    }

    fn below(source: &Source, directory: &str) -> Reading<Self> {
        source.list(directory).map(|names| {
            let path = |name: &str| format!("{directory}/{name}");
            let sizes = sizes_in_names(&names).into_iter();
            Self {
                directory: directory.to_owned(),
                enabled: choice(source, &path("enabled"), BRACKETS),
                defrag: choice(source, &path("defrag"), BRACKETS),
                shmem_enabled: choice(source, &path("shmem_enabled"), BRACKETS),
                pmd_size: pmd_size(source, &path("hpage_pmd_size")),
                use_zero_page: source.switch(&path("use_zero_page")),
                shrink_underused: source.switch(&path("shrink_underused")),
                khugepaged: Numbers::of_directory(source, &path("khugepaged")),
                sizes: sizes.map(|size| ThpSize::read(source, size)).collect(),
                unknown: unknown(source, &names),
            }
        })
    }

    /// The settings of one size.
    pub fn size(&self, size: Bytes) -> Option<&ThpSize> {
        self.sizes.iter().find(|of| of.size == size)
    }

    /// Sizes with a switch for anonymous memory.
    pub fn switched(&self) -> Vec<Bytes> {
        let switched = self.sizes.iter().filter(|of| of.enabled.known().is_some());
        switched.map(|of| of.size).collect()
    }

    /// What governs anonymous pages of that size in the end: `always`, `madvise` or `never`, with `inherit` resolved.
    /// A size without a setting of its own follows the general one if it is the PMD size, and is `never` if only
    /// shared memory has it. A size that this kernel does not list is absent.
    pub fn policy(&self, size: Bytes) -> Reading<String> {
        self.resolved(size, &self.enabled, |of| &of.enabled)
    }

    /// [`Self::policy`] of the PMD size, if both are known.
    pub fn pmd_policy(&self) -> Option<String> {
        self.policy(*self.pmd_size.known()?).known().cloned()
    }

    /// The same for shared memory without a mount of its own: System V, memfd, shared anonymous mappings. Beside the three there
    /// are `within_size`, `advise`, and for tests `deny` and `force`.
    pub fn shared_policy(&self, size: Bytes) -> Reading<String> {
        self.resolved(size, &self.shmem_enabled, |of| &of.shmem_enabled)
    }

    fn resolved(
        &self,
        size: Bytes,
        general: &Reading<Choice>,
        own: impl Fn(&ThpSize) -> &Reading<Choice>,
    ) -> Reading<String> {
        let general = || general.as_ref().map(|choice| choice.chosen.clone());
        match self.size(size).map(|of| own(of).as_ref()) {
            Some(Reading::Known(choice)) if choice.chosen == "inherit" => general(),
            Some(Reading::Known(choice)) => Reading::Known(choice.chosen.clone()),
            Some(Reading::Unread(why)) if why.unread != Cause::Absent => Reading::Unread(why),
            _ if self.pmd_size.known() == Some(&size) => general(),
            Some(_) => Reading::Known("never".to_owned()),
            None => Reading::absent(format!("{THP}/{}", directory_name(size))),
        }
    }

    /// The kinds that anonymous memory can have, smallest first.
    pub(super) fn kinds(&self) -> Vec<PageKind> {
        let pmd = self.pmd_size.known();
        let is_offered = |of: &&ThpSize| of.enabled.unread().is_none_or(|why| why.unread != Cause::Absent);
        let small = |of: &&ThpSize| pmd.is_none_or(|&pmd| of.size < pmd);
        let smaller = self.sizes.iter().filter(is_offered).filter(small);
        smaller
            .map(|of| PageKind::Mthp(of.size))
            .chain([PageKind::Thp])
            .collect()
    }
}

impl ThpSize {
    fn read(source: &Source, size: Bytes) -> Self {
        let directory = format!("{THP}/{}", directory_name(size));
        Self {
            size,
            enabled: choice(source, &format!("{directory}/enabled"), BRACKETS),
            shmem_enabled: choice(source, &format!("{directory}/shmem_enabled"), BRACKETS),
            stats: Numbers::of_directory(source, &format!("{directory}/stats")),
        }
    }
}

fn usual() -> String {
    THP.to_owned()
}

/// Old kernels do not report it. On x86-64 it has one value.
fn pmd_size(source: &Source, path: &str) -> Reading<Bytes> {
    let told = source.number(path).map(Bytes);
    let is_x86 = || {
        let cpuinfo = source.text("/proc/cpuinfo");
        cpuinfo
            .known()
            .is_some_and(|text| text.contains("vendor_id") && text.contains("\nflags"))
            || is_named_x86(source)
    };
    match told {
        absent if absent.is_absent() && is_x86() => Reading::Known(Bytes::mib(2)),
        told => told,
    }
}

const BRACKETS: [char; 2] = ['[', ']'];

/// One of a list, between `marks`.
pub(super) fn choice(source: &Source, path: &str, marks: [char; 2]) -> Reading<Choice> {
    source.line(path).and_then(|line| parse_choice(path, &line, marks))
}

fn parse_choice(path: &str, line: &str, marks: [char; 2]) -> Result<Choice, Unread> {
    let [open, close] = marks;
    let unmarked = |word: &str| Some(word.strip_prefix(open)?.strip_suffix(close)?.to_owned());
    let chosen = line.split_whitespace().find_map(unmarked);
    let wanted = format!("a list with one value in {open}brackets{close}");
    let chosen = chosen.ok_or_else(|| parse::garbled(path, 0, "", &wanted, line))?;
    let offered = line.split_whitespace().map(|word| word.trim_matches(marks).to_owned());
    Ok(Choice {
        chosen,
        offered: offered.collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::THP;
    use crate::{Snapshot, Source, Tree};

    #[test]
    fn files_of_a_newer_kernel_are_named() {
        let at = |name: &str| format!("{THP}/{name}");
        let tree = Tree::new()
            .line(&at("enabled"), "always [madvise] never")
            .line(&at("anon_beside_full"), "1")
            .line(&at("khugepaged/pages_to_scan"), 4096)
            .line(&at("hugepages-64kB/enabled"), "[always] inherit madvise never")
            .line(&at("hugepages-64kB/stats/nr_anon"), 0)
            .line(&at("hugepages-64kB/collapse"), 1);
        let thp = Snapshot::take(&Source::from_tree("made", tree.clone())).thp;
        let thp = thp.known().expect("settings");
        assert_eq!(thp.unknown, ["anon_beside_full", "hugepages-64kB/collapse"]);
        let source = Source::from_tree("made", tree);
        let reads = source.recorded(|source| drop(Snapshot::take(source)));
        for name in &thp.unknown {
            assert!(reads.files.contains_key(&at(name)), "{name} is not in a capture");
        }
        let live = Snapshot::take(&Source::from_tree(
            "made",
            Tree::new().line(&at("enabled"), "[always] never"),
        ))
        .thp;
        assert!(live.known().expect("settings").unknown.is_empty());
    }
}
