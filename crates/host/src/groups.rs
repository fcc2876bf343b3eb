//! The control group of a process and all above it, with what they allow of hugetlb pages and memory.

use model::{Bytes, Cause, Reading, Unread};

use crate::membership::with_ancestors;
use crate::snapshot::{Cgroup, CgroupVersion};
use crate::{Membership, Source, parse};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Limit {
    /// So many.
    Bytes(u64),
    Unlimited,
}

impl std::fmt::Display for Limit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bytes(bytes) => model::Bytes(*bytes).fmt(f),
            Self::Unlimited => f.pad("unlimited"),
        }
    }
}

/// A process's place among the control groups.
#[derive(Clone, Debug, PartialEq)]
pub struct Groups {
    /// Path below the hierarchy's root: `/system.slice/postgresql.service`.
    pub path: String,
    /// The systemd service that it runs in: `postgresql.service`.
    pub service: Option<String>,
    /// Does the path look like a container's?
    pub is_container: bool,
    /// Limits, from the process's own group upwards.
    pub levels: Vec<GroupLevel>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct GroupLevel {
    pub directory: String,
    /// Limits by page size; empty without the hugetlb controller.
    pub hugetlb: Vec<HugetlbLimit>,
    pub memory_max: Reading<Limit>,
    pub memory_current: Reading<Bytes>,
}

/// What a group may have of one page size.
#[derive(Clone, Debug, PartialEq)]
pub struct HugetlbLimit {
    pub page: Bytes,
    pub file: String,
    /// Most bytes in use; a fault above it is a SIGBUS.
    pub max: Reading<Limit>,
    /// Bytes in use in the group and all below it.
    pub current: Reading<Bytes>,
    /// Most bytes reserved; a mapping above it fails at once, as it should.
    pub reserved_max: Reading<Limit>,
    pub reserved_file: String,
    /// How often this group was refused pages: v2 counts at the group of the program that asked (`events.local`), v1 at the
    /// group whose limit was hit.
    pub refused: Reading<u64>,
    pub counter: String,
    /// The same of this group and of all that are or were below it, which v2 alone counts.
    pub refused_below: Reading<u64>,
    pub counter_below: String,
}

impl Groups {
    /// Those of a process.
    pub fn read(source: &Source, cgroup: &Cgroup, sizes: &[Bytes], pid: u32) -> Reading<Self> {
        Membership::read(source, pid).map(|membership| Self {
            service: membership.service(),
            is_container: membership.is_container(),
            levels: levels(source, cgroup, sizes, &membership.limits),
            path: membership.limits,
        })
    }

    /// The limits of one page size, from the process's own group upwards.
    pub fn limits(&self, page: Bytes) -> impl Iterator<Item = &HugetlbLimit> {
        self.levels
            .iter()
            .flat_map(|level| &level.hugetlb)
            .filter(move |limit| limit.page == page)
    }
}

/// A limit that a need is beyond.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooLow {
    pub file: String,
    pub allows: Bytes,
}

/// The limits of pages in use and of reserved ones that are below a need, from the process's own group upwards.
pub fn too_low(levels: &[GroupLevel], page: Bytes, need: Bytes) -> Vec<TooLow> {
    let limits = levels.iter().flat_map(|level| &level.hugetlb);
    let files = limits.filter(|limit| limit.page == page).flat_map(|limit| {
        let reserved = (&limit.reserved_file, &limit.reserved_max);
        [(&limit.file, &limit.max), reserved]
    });
    let lower = files.filter_map(|(file, max)| match max.known() {
        Some(&Limit::Bytes(allows)) if allows < need.0 => Some((file, Bytes(allows))),
        _ => None,
    });
    lower
        .map(|(file, allows)| TooLow {
            file: file.clone(),
            allows,
        })
        .collect()
}

/// A group and those above it, up to the first below the root.
pub fn levels(source: &Source, cgroup: &Cgroup, sizes: &[Bytes], path: &str) -> Vec<GroupLevel> {
    let paths = with_ancestors(path).filter(|path| !path.is_empty());
    read(source, cgroup, sizes, paths)
}

/// Groups below the root of the hierarchy; none where it is not known.
fn read<'a>(
    source: &Source,
    cgroup: &Cgroup,
    sizes: &[Bytes],
    paths: impl Iterator<Item = &'a str>,
) -> Vec<GroupLevel> {
    let Some(root) = cgroup.root.known() else {
        return Vec::new();
    };
    let v1 = is_v1(source, cgroup, root);
    let directories = paths.map(|path| format!("{root}{path}"));
    directories
        .map(|directory| GroupLevel::read(source, &directory, sizes, v1))
        .collect()
}

/// On a hybrid machine the controller can be in either hierarchy: only v2 lists its controllers in a file.
fn is_v1(source: &Source, cgroup: &Cgroup, root: &str) -> bool {
    match cgroup.version.known() {
        Some(CgroupVersion::V1) => true,
        Some(CgroupVersion::Hybrid) => source.line(&format!("{root}/cgroup.controllers")).is_absent(),
        Some(CgroupVersion::V2) | None => false,
    }
}

/// Below these the kubelet puts all pods, by its two drivers.
const PODS: [&str; 2] = ["/kubepods.slice", "/kubepods"];

/// The groups of all pods together, of those that the machine has.
pub fn pods(source: &Source, cgroup: &Cgroup, sizes: &[Bytes]) -> Vec<GroupLevel> {
    let lists = |path: &str| cgroup.root.known().map(|root| source.list(&format!("{root}{path}")));
    let there = PODS
        .into_iter()
        .filter(|path| lists(path).is_some_and(|list| list.known().is_some()));
    read(source, cgroup, sizes, there)
}

/// Groups of single pods that were refused pages. v1 alone is read: v2 sums them up in the group of all pods.
pub fn refused_pods(source: &Source, cgroup: &Cgroup, sizes: &[Bytes]) -> Vec<GroupLevel> {
    let Some(root) = cgroup.root.known().filter(|root| is_v1(source, cgroup, root)) else {
        return Vec::new();
    };
    let below = |path: &String| {
        let names = source.list(&format!("{root}{path}")).into_result().unwrap_or_default();
        let names = names.into_iter().filter(|name| is_of_pods(name));
        names.map(|name| format!("{path}/{name}")).collect::<Vec<_>>()
    };
    // Pods of the class Guaranteed stand beside the groups of the other classes.
    let first: Vec<String> = PODS.iter().flat_map(|path| below(&(*path).to_owned())).collect();
    let second: Vec<String> = first.iter().flat_map(below).collect();
    let paths = first.iter().chain(&second).map(String::as_str);
    let mut levels = read(source, cgroup, sizes, paths);
    let is_refused = |limit: &HugetlbLimit| limit.refused.known().is_some_and(|times| *times > 0);
    levels.retain(|level| level.hugetlb.iter().any(is_refused));
    levels
}

/// Is it the name of a group of a class of pods, or of a pod, by either driver?
fn is_of_pods(name: &str) -> bool {
    let names = ["besteffort", "burstable", "pod", "kubepods-"];
    names.iter().any(|start| name.starts_with(start))
}

impl GroupLevel {
    fn read(source: &Source, directory: &str, sizes: &[Bytes], v1: bool) -> Self {
        let limits = sizes
            .iter()
            .filter_map(|&page| HugetlbLimit::read(source, directory, page, v1));
        Self {
            directory: directory.to_owned(),
            hugetlb: limits.collect(),
            memory_max: limit(source, &format!("{directory}/memory.max")),
            memory_current: source.number(&format!("{directory}/memory.current")).map(Bytes),
        }
    }
}

impl HugetlbLimit {
    /// `None` if the group has no such file: the controller is not switched on there.
    fn read(source: &Source, directory: &str, page: Bytes, v1: bool) -> Option<Self> {
        let of_size = format!("{directory}/hugetlb.{}B", page.exact());
        let [file, usage] = hugetlb_files(directory, page, "", v1);
        let [reserved_file, _] = hugetlb_files(directory, page, ".rsvd", v1);
        let max = limit(source, &file);
        (!max.is_absent()).then(|| {
            let (counter, refused) = counted(source, &of_size, v1);
            let counter_below = format!("{of_size}.events");
            Self {
                page,
                max,
                current: source.number(&usage).map(Bytes),
                reserved_max: limit(source, &reserved_file),
                reserved_file,
                refused,
                counter,
                refused_below: match v1 {
                    true => Reading::absent(&counter_below),
                    false => events(source, &counter_below),
                },
                counter_below,
                file,
            }
        })
    }

    /// Is it a limit of the group itself, and of none above it?
    pub fn is_of(&self, groups: &Groups) -> bool {
        let own = groups.levels.first();
        own.is_some_and(|own| own.hugetlb.iter().any(|limit| limit.file == self.file))
    }
}

/// The files of a group's limit for pages of a size and of what counts against it: by use, or by reservation (`.rsvd`).
pub(crate) fn hugetlb_files(directory: &str, page: Bytes, part: &str, v1: bool) -> [String; 2] {
    let names = match v1 {
        true => ["limit_in_bytes", "usage_in_bytes"],
        false => ["max", "current"],
    };
    names.map(|name| format!("{directory}/hugetlb.{}B{part}.{name}", page.exact()))
}

/// The file of a group's own refusals, and their number. Captures before `events.local` was kept have the sum over all groups below.
fn counted(source: &Source, of_size: &str, v1: bool) -> (String, Reading<u64>) {
    if v1 {
        let file = format!("{of_size}.failcnt");
        let number = source.number(&file);
        return (file, number);
    }
    let (local, all) = (format!("{of_size}.events.local"), format!("{of_size}.events"));
    match events(source, &local) {
        count if count.is_absent() => {
            let count = events(source, &all);
            (all, count)
        }
        count => (local, count),
    }
}

/// v1 writes the largest number of whole pages for no limit.
pub(crate) const NO_LIMIT: u64 = 0x7fff_ffff_0000_0000;

/// `max`, or bytes.
pub(crate) fn limit(source: &Source, path: &str) -> Reading<Limit> {
    source.line(path).and_then(|line| match line.as_str() {
        "max" => Ok(Limit::Unlimited),
        bytes => parse::value::<u64>(path, 0, "", "bytes or `max`", bytes).map(|bytes| match bytes {
            0..NO_LIMIT => Limit::Bytes(bytes),
            _ => Limit::Unlimited,
        }),
    })
}

/// The count in a line `max 7`.
fn events(source: &Source, path: &str) -> Reading<u64> {
    source.text(path).and_then(|text| {
        let mut lines = text.lines().enumerate();
        let found = lines.find_map(|(index, line)| Some((index, line.strip_prefix("max ")?.to_owned())));
        let (index, seen) = found.ok_or_else(|| Unread::new(Cause::Absent, path, "no `max` line"))?;
        parse::value(path, index, "max", "a whole number", &seen)
    })
}
