//! The page options of a Java virtual machine, in the order in which the JVM applies them.

mod settle;
mod words;

use std::collections::BTreeMap;

use model::{Bytes, Collector, Unread};

use super::glibc::pair;
use super::hsperfdata;
use super::kind::Known;
use super::{Area, Program};
use host::Source;
use host::parse::shift;
use words::all_options;
pub(crate) use words::{READ_BY_JAVA, is_of_launcher, is_own, options, words_of};

pub(crate) const KNOWN: Known = Known {
    libraries: &["libjvm.so", "libj9vm"],
    images: &["elasticsearch", "opensearch"],
    ..Known::new("Java", &["jvm", "java"], &["java"])
};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JvmKind {
    /// OpenJDK's and Oracle's.
    #[default]
    HotSpot,
    /// Eclipse OpenJ9 and IBM's.
    OpenJ9,
    /// Azul's Zing (Prime).
    Zing,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Jvm {
    pub kind: JvmKind,
    /// Major version, such as 17; unknown without a `release` file or a version in its path.
    pub version: Option<u32>,
    /// `-XX:+UseLargePages`, or OpenJ9's `-Xlp`: explicit huge pages are requested.
    pub large_pages: bool,
    /// HotSpot's `-XX:+UseTransparentHugePages`.
    pub transparent: bool,
    /// OpenJ9's `-XX:-TransparentHugePage`: it does not advise its memory under the policy `madvise`, as it does by default.
    pub unadvised: bool,
    /// `-XX:LargePageSizeInBytes=`, or the size in `-Xlp`.
    pub page_size: Option<Bytes>,
    /// OpenJ9's `-Xlp:objectheap:...,strict`: it ends where its heap does not get the pages that it asks for.
    pub strict: bool,
    /// OpenJ9's `-Xlp:codecache:pagesize=`; without, its code is on huge pages, too.
    pub code_page: Option<Bytes>,
    /// `-Xmx`, or `-XX:MaxHeapSize=`.
    pub heap_max: Option<Bytes>,
    /// The part of its memory that the heap may grow to where no option sets a size, in millionths: `-XX:MaxRAMPercentage=`.
    pub share: Option<u64>,
    /// `-XX:MaxRAM=`: of more memory it takes no notice.
    pub memory_max: Option<Bytes>,
    /// The most that the heap may grow to, as the running JVM itself reports it.
    pub granted: Option<Bytes>,
    /// `-XX:+AlwaysPreTouch`.
    pub pretouch: bool,
    /// Huge pages through System V shared memory: `-XX:+UseSHM` (until JDK 21), and OpenJ9's `-Xlp`.
    pub shm: bool,
    /// The garbage collector that an option chooses, or that the running JVM itself reports.
    pub collector: Option<Collector>,
    /// `-XX:ReservedCodeCacheSize=`, OpenJ9's `-Xcodecachetotal`.
    pub code_cache: Option<Bytes>,
    /// `-XX:AllocateHeapAt=`: the directory of a file that is the heap.
    pub heap_at: Option<String>,
    /// HotSpot's option that switches off the huge pages that it asks for.
    pub off: Option<String>,
    /// Options about pages and sizes with which it does not start.
    pub refused: Vec<String>,
    /// Where options stand that are not on the command line: by a word of [`PLACED`], a file or variable.
    pub places: BTreeMap<&'static str, String>,
}

/// Words in the options that decide about pages.
const PLACED: [&str; 7] = [
    "UseLargePages",
    "UseTransparentHugePages",
    "LargePageSizeInBytes",
    "-Xmx",
    "MaxHeapSize",
    "AllocateHeapAt",
    "-Xlp",
];

type Field = fn(&mut Jvm) -> &mut Option<Bytes>;

/// Options of a size.
const SIZES: [(&str, Field); 6] = [
    ("-XX:LargePageSizeInBytes=", |jvm| &mut jvm.page_size),
    ("-XX:ReservedCodeCacheSize=", |jvm| &mut jvm.code_cache),
    ("-Xcodecachetotal", |jvm| &mut jvm.code_cache),
    ("-Xmx", |jvm| &mut jvm.heap_max),
    ("-XX:MaxHeapSize=", |jvm| &mut jvm.heap_max),
    ("-XX:MaxRAM=", |jvm| &mut jvm.memory_max),
];

/// An empty list of arguments means that it could not be read: a JVM is never started without any.
pub(super) fn read(source: &Source, program: &Program, areas: Option<&[Area]>) -> Result<Jvm, Unread> {
    let arguments = program.arguments.as_ref().into_result()?;
    if arguments.len() < 2 {
        let why = "it holds no arguments: they were left out of the capture";
        return Err(Unread::new(model::Cause::Absent, program.file("cmdline"), why));
    }
    let mut jvm = Jvm {
        kind: kind(areas, arguments),
        ..Jvm::default()
    };
    let all = all_options(source, program, arguments);
    for (option, place) in &all {
        jvm.take(option);
        if let Some(word) = PLACED.into_iter().find(|word| option.contains(word)) {
            // The last one holds.
            match place {
                Some(place) => drop(jvm.places.insert(word, place.clone())),
                None => drop(jvm.places.remove(word)),
            }
        }
    }
    let options: Vec<&str> = all.iter().map(|(option, _)| option.as_str()).collect();
    jvm.version = version(source, program, areas);
    jvm.settle(&options);
    let counters = areas.map(|areas| hsperfdata::counters(source, program.pid(), areas));
    let counters = counters.unwrap_or_default();
    jvm.granted = counters.heap;
    jvm.collector = jvm.collector.or(counters.collector);
    Ok(jvm)
}

impl Jvm {
    fn take(&mut self, option: &str) {
        let chosen = Collector::of_option(option);
        let off = option.strip_prefix("-XX:-");
        let left = off.and_then(|name| Collector::of_option(&format!("-XX:+{name}")));
        // OpenJ9 ignores options of HotSpot that it does not know, and has collectors of its own.
        let is_foreign = self.kind == JvmKind::OpenJ9 && (is_of_hotspot(option) || chosen.is_some());
        match option {
            _ if has_comment(option) => self.refused.push(option.to_owned()),
            _ if is_foreign => {}
            "-XX:-TransparentHugePage" => self.unadvised = true,
            "-XX:+TransparentHugePage" => self.unadvised = false,
            "-XX:+UseLargePages" => self.large_pages = true,
            "-XX:-UseLargePages" => self.large_pages = false,
            "-XX:+UseTransparentHugePages" => self.transparent = true,
            "-XX:-UseTransparentHugePages" => self.transparent = false,
            "-XX:+AlwaysPreTouch" => self.pretouch = true,
            "-XX:-AlwaysPreTouch" => self.pretouch = false,
            _ if chosen.is_some() => self.collector = chosen,
            _ if left.is_some() => self.collector = self.collector.filter(|own| Some(*own) != left),
            _ => self.take_value(option),
        }
    }

    fn take_value(&mut self, option: &str) {
        if names_pages(option) && !is_well_formed(option) {
            self.refused.push(option.to_owned());
        }
        let own_size = |(name, field): &(&str, Field)| Some((size_of(option.strip_prefix(name)?), *field));
        if let Some((size, field)) = SIZES.iter().find_map(own_size) {
            if size.is_none() {
                self.refused.push(option.to_owned());
            }
            *field(self) = size;
        } else if let Some(directory) = option.strip_prefix("-XX:AllocateHeapAt=") {
            self.heap_at = Some(directory.to_owned()).filter(|directory| !directory.is_empty());
        } else if let Some(rest) = option.strip_prefix("-Xlp") {
            self.take_xlp(rest);
        } else if let Some(share) = share_of(option) {
            self.share = Some(share);
        }
    }

    /// What follows `-Xlp`: a size for all, or options of the heap or of the code.
    fn take_xlp(&mut self, rest: &str) {
        let mut parts = rest.split([':', ',']);
        let size = parts.clone().find_map(|part| part.strip_prefix("pagesize="));
        let size = size.map_or_else(|| size_of(rest), size_of);
        if rest.starts_with(":codecache") {
            self.code_page = size;
            return;
        }
        self.large_pages = size.is_none_or(is_huge);
        self.shm |= self.large_pages;
        self.page_size = size;
        self.strict = parts.any(|part| part == "strict");
    }

    /// Is the code of an OpenJ9 on base pages?
    pub fn has_code_on_base(&self) -> bool {
        self.code_page.is_some_and(|size| !is_huge(size))
    }

    /// Does it end where its heap gets no pages? ZGC commits its heap from the pool.
    pub fn is_strict(&self) -> bool {
        self.strict || self.collector == Some(Collector::Z)
    }

    /// The maximum of the heap that was asked for, and the one that the JVM lowered it to: ZGC does where a pool has too few pages.
    pub fn lowered(&self) -> Option<(Bytes, Bytes)> {
        let (asked, granted) = self.heap_max.zip(self.granted)?;
        let is_less = granted.0 < asked.0 / 100 * 99;
        (is_less && self.wants_hugetlb()).then_some((asked, granted))
    }

    /// The maximum of a heap that no option sets, in so much memory. HotSpot takes half of a small one (`MinRAMPercentage`), 124.8 MiB of a larger one
    /// at least, and by default a quarter that compressed pointers reach, with the 2 GiB in front of the heap (arguments.cpp, `set_heap_size`).
    pub fn heap_in(&self, memory: Bytes) -> Option<Bytes> {
        const LEAST: Bytes = Bytes::mib(125);
        let part = self.part_of(memory)?;
        if self.kind != JvmKind::HotSpot {
            return Some(part);
        }
        let half = Bytes(self.counted(memory).0 / 2);
        let is_limited = self.share.is_none() && self.memory_max.is_none();
        let reach = match self.collector {
            Some(Collector::Z) => Bytes::gib(32),
            _ => Bytes::gib(30),
        };
        Some(match half < LEAST {
            true => half,
            false if is_limited => part.min(reach).max(LEAST),
            false => part.max(LEAST),
        })
    }

    /// The part of so much memory that an option names, or HotSpot's default.
    pub(crate) fn part_of(&self, memory: Bytes) -> Option<Bytes> {
        const QUARTER: u64 = 250_000;
        let default = (self.kind == JvmKind::HotSpot).then_some(QUARTER);
        let part = u128::from(self.counted(memory).0) * u128::from(self.share.or(default)?) / u128::from(WHOLE);
        Some(Bytes(u64::try_from(part).ok()?))
    }

    /// The memory that it takes notice of.
    fn counted(&self, memory: Bytes) -> Bytes {
        memory.min(self.memory_max.unwrap_or(memory))
    }

    /// The page size that it requests by name: ZGC has one, others take the default size for one that does not exist.
    pub fn named_page(&self, exists: impl Fn(Bytes) -> bool) -> Option<Bytes> {
        match self.takes_2m_alone() {
            true => Some(Bytes::mib(2)),
            false => self
                .page_size
                .filter(|page| !self.takes_default_alone() && exists(*page)),
        }
    }

    /// For HotSpot of JDK 11 and older `-XX:LargePageSizeInBytes` has no effect on Linux: it takes pages of the default size
    /// (os_linux.cpp, find_large_page_size).
    pub fn takes_default_alone(&self) -> bool {
        self.kind == JvmKind::HotSpot && self.version.is_some_and(|version| version <= 11)
    }

    /// ZGC maps its heap in granules of 2 MiB, and takes huge pages of that size only (JDK-8273872).
    pub fn takes_2m_alone(&self) -> bool {
        self.kind == JvmKind::HotSpot && self.collector == Some(Collector::Z)
    }

    /// The option that names the page size.
    pub fn size_option(&self) -> &'static str {
        match self.kind {
            JvmKind::OpenJ9 => "-Xlp:objectheap:pagesize",
            JvmKind::HotSpot | JvmKind::Zing => "-XX:LargePageSizeInBytes",
        }
    }

    /// Are explicit huge pages requested, and not THP? (`UseTransparentHugePages` goes first.)
    pub fn wants_hugetlb(&self) -> bool {
        self.large_pages && !self.transparent
    }
}

/// `pagesize=4K` switches huge pages off in OpenJ9, and so 64K where these are base pages.
fn is_huge(size: Bytes) -> bool {
    size > Bytes::kib(64)
}

/// `UseLargePages` of `-XX:+UseLargePages`, `LargePageSizeInBytes` of `-XX:LargePageSizeInBytes=2m`.
fn name_of(option: &str) -> &str {
    let name = option.get(4..).unwrap_or_default().trim_start_matches(['+', '-']);
    name.split('=').next().unwrap_or(name)
}

/// Has it a comment in it, where its value is no text that may have one?
pub(crate) fn has_comment(option: &str) -> bool {
    let is_text = ["-D", "-XX:On", "--"].iter().any(|start| option.starts_with(start));
    !is_text && option.contains(" #")
}

/// Is it an option about huge pages by its name?
fn names_pages(option: &str) -> bool {
    let is_flag = option.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("-XX:"));
    let name = name_of(option).to_ascii_lowercase();
    is_flag && ["hugepage", "largepage"].iter().any(|word| name.contains(word))
}

/// Is it one of [`PAGE_OPTIONS`] as HotSpot takes it: a flag with a sign, or a size with a value?
fn is_well_formed(option: &str) -> bool {
    let has_sign = option.get(4..).is_some_and(|rest| rest.starts_with(['+', '-']));
    let (name, has_value) = (name_of(option), option.contains('='));
    let is_size = matches!(name, "LargePageSizeInBytes" | "LargePageHeapSizeThreshold");
    PAGE_OPTIONS.contains(&name) && has_value == is_size && has_sign != is_size
}

/// Is it an option about huge pages that OpenJ9 has not? (Its documentation, "Switching to Eclipse OpenJ9".)
pub fn is_of_hotspot(option: &str) -> bool {
    names_pages(option) && name_of(option) != "TransparentHugePage"
}

/// Options of HotSpot about huge pages, of any version, and OpenJ9's.
const PAGE_OPTIONS: [&str; 11] = [
    "TransparentHugePage",
    "UseLargePages",
    "UseTransparentHugePages",
    "LargePageSizeInBytes",
    "LargePageHeapSizeThreshold",
    "UseLargePagesInMetaspace",
    "UseLargePagesIndividualAllocation",
    "LargePagesIndividualAllocationInjectError",
    "UseMadvPopulateWrite",
    "THPStackMitigation",
    "PrintLargePages",
];

/// What [`Jvm::share`] is a part of.
pub(crate) const WHOLE: u64 = 1_000_000;

/// `-XX:MaxRAMPercentage=75.0`, or `-XX:MaxRAMFraction=4` of earlier releases.
fn share_of(option: &str) -> Option<u64> {
    if let Some(parts) = option.strip_prefix("-XX:MaxRAMFraction=") {
        return WHOLE.checked_div(parts.parse().ok()?);
    }
    let percent: f64 = option.strip_prefix("-XX:MaxRAMPercentage=")?.parse().ok()?;
    (0.0..=100.0)
        .contains(&percent)
        .then(|| (percent / 100.0 * WHOLE as f64) as u64)
}

/// Sizes as the JVM takes them: `4g`, `512M`, `2048`, `0x1000k`. It does not start with anything behind the letter.
pub(crate) fn size_of(text: &str) -> Option<Bytes> {
    let unit = text.chars().next_back().and_then(shift).filter(|shift| *shift <= 40);
    let digits = unit.map_or(text, |_| &text[..text.len() - 1]);
    let hex = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"));
    let number = match hex {
        Some(hex) => u64::from_str_radix(hex, 16).ok()?,
        None => digits.parse().ok()?,
    };
    number.checked_mul(1 << unit.unwrap_or(0)).map(Bytes)
}

/// By its libraries; HotSpot does not start with options of OpenJ9.
fn kind(areas: Option<&[Area]>, arguments: &[String]) -> JvmKind {
    let is_of_openj9 = |argument: &String| OF_OPENJ9.iter().any(|option| argument.starts_with(option));
    match areas.map(implementation).unwrap_or_default() {
        JvmKind::HotSpot if options(arguments).any(is_of_openj9) => JvmKind::OpenJ9,
        kind => kind,
    }
}

const OF_OPENJ9: [&str; 5] = ["-Xlp", "-Xcodecache", "-Xgcpolicy", "-Xshareclasses", "-Xscmx"];

fn implementation(areas: &[Area]) -> JvmKind {
    let mapped = |word: &str| areas.iter().any(|area| area.name.contains(word));
    if mapped("libj9") {
        JvmKind::OpenJ9
    } else if mapped("zing") {
        JvmKind::Zing
    } else {
        JvmKind::HotSpot
    }
}

/// The library that is the machine.
fn library(areas: &[Area]) -> Option<&str> {
    areas
        .iter()
        .map(|area| &*area.name)
        .find(|name| name.ends_with("/libjvm.so"))
}

/// The `release` file beside the library, in the process's own root and in the machine's.
pub(crate) fn release_files(source: &Source, pid: u32, areas: &[Area]) -> Option<Vec<String>> {
    let (home, _) = library(areas)?.rsplit_once("/lib/")?;
    let inside = format!("/proc/{pid}/root{home}/release");
    let outside = source.follows_processes().then(|| format!("{home}/release"));
    Some([inside].into_iter().chain(outside).collect())
}

/// From the `release` file, the environment of the official images, or the path's name.
fn version(source: &Source, program: &Program, areas: Option<&[Area]>) -> Option<u32> {
    let areas = areas?;
    let told = release_files(source, program.pid(), areas).and_then(|files| {
        files
            .iter()
            .find_map(|path| source.text(path).known().and_then(|text| in_release(text)))
    });
    let variable = || {
        let value = program.tunables.known()?.get("JAVA_VERSION")?;
        in_text(value.trim_start_matches("jdk-"))
    };
    told.or_else(variable).or_else(|| in_path(library(areas)?))
}

/// `JAVA_VERSION="17.0.15"`; `1.8.0_392` is 8.
fn in_release(text: &str) -> Option<u32> {
    let line = text.lines().find_map(|line| line.strip_prefix("JAVA_VERSION="))?;
    in_text(line.trim_matches('"'))
}

fn in_text(text: &str) -> Option<u32> {
    let (major, minor) = pair(text.trim_start_matches('v'))?;
    Some(if major == 1 { minor } else { major })
}

/// `/usr/lib/jvm/java-17-openjdk-amd64/...`, `/opt/jdk-21.0.2/...`
fn in_path(path: &str) -> Option<u32> {
    let after = |word: &str| path.split_once(word).map(|(_, rest)| rest);
    let rest = after("java-").or_else(|| after("jdk-")).or_else(|| after("jdk"))?;
    in_text(rest).filter(|version| (6..100).contains(version))
}
