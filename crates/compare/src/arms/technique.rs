//! How a policy is brought about for a program: by what the program is, and where its file does not show it, by a trial run.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::str::FromStr;

use model::Bytes;
pub use process::ThpSwitch;

use crate::Error;
use crate::policy::Policy;
use crate::preload::Layout;
use crate::program::{Allocator, Glibc, Memory, Program};
pub use crate::switches::Own;

/// A way to other pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Technique {
    /// Nothing but the kernel's THP switch.
    Switch,
    Tunables,
    /// Options of the Java virtual machine.
    Jvm,
    Program,
    Allocator(Allocator),
    /// From outside, while it runs.
    Collapse,
    /// An LD_PRELOAD library, for memory that the program maps itself.
    Preload,
}

impl Technique {
    /// What it uses, as sentences about an arm begin.
    pub fn title(self) -> &'static str {
        self.texts()[1]
    }

    /// Its name as it is typed, and its title.
    fn texts(self) -> [&'static str; 2] {
        match self {
            Self::Switch => ["switch", "as the machine's mode gives them"],
            Self::Tunables => ["tunables", "glibc's tunables"],
            Self::Jvm => ["jvm", "options of the JVM"],
            Self::Program => ["program", "the program's own switch"],
            Self::Allocator(Allocator::Jemalloc) => ["jemalloc", "jemalloc's options"],
            Self::Allocator(Allocator::Mimalloc) => ["mimalloc", "mimalloc's options"],
            Self::Allocator(Allocator::Tcmalloc) => ["tcmalloc", "tcmalloc's options"],
            Self::Collapse => ["collapse", "collapsed from outside while it runs"],
            Self::Preload => ["preload", "an LD_PRELOAD library"],
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collapse {
    Private,
    /// Code mapped from files.
    Text,
}

/// What is done to the child, and to nothing else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Setup {
    pub words: String,
    /// By which technique, for policies that have several.
    pub way: Option<Technique>,
    /// The setting of a program with a switch of its own.
    pub own: Option<Own>,
    /// Variables to set.
    pub env: Vec<(OsString, OsString)>,
    pub thp: ThpSwitch,
    /// What is collapsed while it runs.
    pub collapse: Option<Collapse>,
    /// How the LD_PRELOAD library lays out the program's mappings.
    pub preload: Option<Layout>,
    /// What the machine lacks for it, for the notes of every run.
    pub lacks: Option<String>,
}

impl fmt::Display for Technique {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.texts()[0])
    }
}

impl FromStr for Technique {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "switch" => Ok(Self::Switch),
            "tunables" => Ok(Self::Tunables),
            "jvm" => Ok(Self::Jvm),
            "program" => Ok(Self::Program),
            "jemalloc" => Ok(Self::Allocator(Allocator::Jemalloc)),
            "mimalloc" => Ok(Self::Allocator(Allocator::Mimalloc)),
            "collapse" => Ok(Self::Collapse),
            "preload" => Ok(Self::Preload),
            _ => Err(format!(
                "`{text}` is not a technique (write switch, tunables, jvm, program, jemalloc, mimalloc, collapse or preload)"
            )),
        }
    }
}

/// The setups of an arm, the usual one first: those after it are for programs whose memory it turns out not to reach. `given`
/// looks up the variables that the child would have anyway: those are added to, not replaced.
///
/// # Errors
/// If no technique gives this program such pages; the message says which page policy would work.
pub fn setups(
    policy: Policy,
    program: &Program,
    asked: Option<Technique>,
    given: &dyn Fn(&str) -> Option<OsString>,
) -> Result<Vec<Setup>, Error> {
    let memory = program.memory;
    if let Some(only) = without_technique(policy) {
        return Ok(vec![only.with(plain(policy, memory, given))]);
    }
    let mut techniques = asked.map_or_else(|| usual(policy, memory), |asked| vec![asked]);
    let by_chance = program
        .glibc
        .filter(|glibc| policy == Policy::Thp && glibc.is_by_chance());
    if by_chance.is_some() && techniques.len() > 1 {
        techniques.retain(|technique| *technique != Technique::Tunables);
    }
    let setups: Vec<Setup> = techniques
        .into_iter()
        .filter_map(|technique| {
            let way = Some(technique);
            with(technique, policy, memory, given).map(|setup| {
                let plain = plain(policy, memory, given);
                Setup { way, ..setup }.with(plain).said_of_chance(by_chance)
            })
        })
        .collect();
    if setups.is_empty() {
        return Err(no_way(policy, memory, asked.is_some()));
    }
    Ok(setups)
}

/// What keeps a program from huge pages that it would take by itself, beside what the kernel's switch keeps from it: the
/// variables, and what its own switch says.
struct Plain {
    own: Option<Own>,
    env: Vec<(OsString, OsString)>,
}

impl Setup {
    /// With a word on what this glibc does by chance, where that is in it.
    fn said_of_chance(self, glibc: Option<Glibc>) -> Self {
        let is_in_it = |(name, value): &(OsString, OsString)| {
            name == "GLIBC_TUNABLES" && value.to_string_lossy().contains("glibc.malloc.hugetlb=1:")
        };
        let glibc = glibc.filter(|_| self.env.iter().any(is_in_it));
        let said = glibc.map(|glibc| {
            format!(
                "{}; glibc {glibc} switches it on by chance, in some starts only",
                self.words
            )
        });
        Self {
            words: said.unwrap_or(self.words),
            ..self
        }
    }

    /// What the arm itself sets stays.
    fn with(self, plain: Plain) -> Self {
        let is_new = |(name, _): &(OsString, OsString)| !self.env.iter().any(|(own, _)| own == name);
        let more: Vec<_> = plain.env.into_iter().filter(is_new).collect();
        let list: Vec<String> = more
            .iter()
            .map(|(name, value)| format!("{}={}", name.display(), value.display()))
            .collect();
        let own = self.own.or(plain.own);
        let words = match (own, &list[..]) {
            (Some(Own::Off), []) if self.own.is_none() => format!("{}, its own switch set to off", self.words),
            (_, []) => self.words,
            (_, list) => format!("{}, {}", self.words, list.join(" ")),
        };
        Self {
            words,
            own,
            env: more.into_iter().chain(self.env).collect(),
            ..self
        }
    }
}

/// Of a policy without hugetlb pages, for a program that has a switch for them; nothing of others.
fn plain(policy: Policy, memory: Memory, given: &dyn Fn(&str) -> Option<OsString>) -> Plain {
    let off: &[(&str, &str, &str)] = match (policy, memory) {
        (Policy::Base | Policy::Mthp(_), Memory::Jvm) => {
            &[(JVM, " ", "-XX:-UseLargePages -XX:-UseTransparentHugePages")]
        }
        (Policy::Base, Memory::Allocator(Allocator::Jemalloc)) => &[("MALLOC_CONF", ",", "thp:never")],
        (Policy::Base | Policy::Thp | Policy::Mthp(_), Memory::Allocator(Allocator::Mimalloc)) => {
            &[(MIMALLOC[0], "", "0"), (MIMALLOC[1], "", "0")]
        }
        // Where it names a hugetlbfs, memory is taken from that.
        (Policy::Base | Policy::Thp, Memory::Allocator(Allocator::Tcmalloc)) => {
            &[("TCMALLOC_MEMFS_MALLOC_PATH", "", "")]
        }
        (Policy::Base, Memory::Glibc | Memory::Database(_)) if asks_for_pool(given) => {
            &[("GLIBC_TUNABLES", ":", "glibc.malloc.hugetlb=0")]
        }
        _ => &[],
    };
    let variable =
        |&(name, separator, value): &(&str, &str, &str)| (OsString::from(name), added(given(name), separator, value));
    let is_off =
        matches!(policy, Policy::Base | Policy::Thp | Policy::Mthp(_)) && matches!(memory, Memory::Database(_));
    Plain {
        own: is_off.then_some(Own::Off),
        env: off.iter().map(variable).collect(),
    }
}

fn asks_for_pool(given: &dyn Fn(&str) -> Option<OsString>) -> bool {
    given("GLIBC_TUNABLES").is_some_and(|tunables| tunables.to_string_lossy().contains("malloc.hugetlb"))
}

/// HotSpot reads it behind its command line, so that it counts whatever is written there.
const JVM: &str = "_JAVA_OPTIONS";
/// The option has another name in its releases up to 2.0 than in those since.
const MIMALLOC: [&str; 2] = ["MIMALLOC_LARGE_OS_PAGES", "MIMALLOC_ALLOW_LARGE_OS_PAGES"];

/// Policies that are the same for every program.
fn without_technique(policy: Policy) -> Option<Setup> {
    let switch = |words: &str, thp| Setup {
        words: words.to_owned(),
        thp,
        ..Setup::default()
    };
    match policy {
        Policy::Base => Some(switch("THP switched off (prctl PR_SET_THP_DISABLE)", ThpSwitch::Off)),
        Policy::Mthp(size) => {
            let size = size.exact();
            let words = format!("THP of {size} by the machine's switch, for every program while it runs");
            Some(switch(&words, ThpSwitch::Left))
        }
        Policy::System => Some(switch("as the machine and the program are set", ThpSwitch::Left)),
        Policy::ThpAdvised => {
            let words = "THP where the program advises it (prctl PR_THP_DISABLE_EXCEPT_ADVISED)";
            Some(switch(words, ThpSwitch::ExceptAdvised))
        }
        Policy::Text => Some(Setup {
            words: "code collapsed from outside (process_madvise MADV_COLLAPSE)".to_owned(),
            collapse: Some(Collapse::Text),
            ..Setup::default()
        }),
        Policy::Thp | Policy::Hugetlb(_) => None,
    }
}

/// What may reach most of such a program's memory, in the order of preference: what the program does for itself, then an LD_PRELOAD
/// library, then from outside. A program with glibc may map its memory by itself, as Python does: its file does not show that.
fn usual(policy: Policy, memory: Memory) -> Vec<Technique> {
    use Technique::{Collapse, Jvm, Preload, Tunables};
    match memory {
        Memory::Glibc => vec![Tunables, Preload, Collapse],
        Memory::Jvm => vec![Jvm, Collapse],
        Memory::Database(_) if policy != Policy::Thp => vec![Technique::Program],
        Memory::Database(_) => vec![Tunables, Preload, Collapse],
        Memory::Allocator(Allocator::Mimalloc) if policy != Policy::Thp => {
            vec![Preload, Technique::Allocator(Allocator::Mimalloc)]
        }
        Memory::Allocator(Allocator::Jemalloc) => vec![Technique::Allocator(Allocator::Jemalloc), Preload, Collapse],
        Memory::Allocator(_) => vec![Preload, Collapse],
        Memory::Go | Memory::OtherLibc | Memory::Static => vec![Collapse],
    }
}

fn no_way(policy: Policy, memory: Memory, overridden: bool) -> Error {
    let why = if overridden {
        "this technique gives no such pages".to_owned()
    } else {
        format!(
            "{} takes no pages of a pool from outside: it would run on base pages (compare thp, which is collapsed from \
             outside, or write an arm with the program's own settings in --arms-file)",
            memory.title()
        )
    };
    Error::Arm {
        arm: policy.to_string(),
        why,
    }
}

fn with(
    technique: Technique,
    policy: Policy,
    memory: Memory,
    given: &dyn Fn(&str) -> Option<OsString>,
) -> Option<Setup> {
    let title = technique.title();
    let variable = |name: &str, separator: &str, value: &str| {
        Some(Setup {
            words: format!("{title} ({name}={value})"),
            env: vec![(name.into(), added(given(name), separator, value))],
            ..Setup::default()
        })
    };
    match (technique, policy) {
        (Technique::Switch, Policy::Thp) => Some(Setup {
            words: title.to_owned(),
            ..Setup::default()
        }),
        (Technique::Tunables, _) => variable("GLIBC_TUNABLES", ":", &tunables(policy)),
        (Technique::Jvm, Policy::Thp) => variable(JVM, " ", "-XX:+UseLargePages -XX:+UseTransparentHugePages"),
        (Technique::Jvm, Policy::Hugetlb(size)) => variable(JVM, " ", &jvm_pool(size)),
        (Technique::Program, Policy::Hugetlb(size)) if matches!(memory, Memory::Database(_)) => Some(Setup {
            words: title.to_owned(),
            own: Some(Own::Pool(size)),
            ..Setup::default()
        }),
        (Technique::Allocator(Allocator::Jemalloc), Policy::Thp) => {
            variable("MALLOC_CONF", ",", "thp:always,metadata_thp:auto")
        }
        (Technique::Allocator(Allocator::Mimalloc), Policy::Hugetlb(size)) if size == Bytes::mib(2) => Some(mimalloc()),
        (Technique::Preload, _) => in_front(policy, memory, given),
        (Technique::Collapse, Policy::Thp) => Some(Setup {
            words: format!("{title} (process_madvise MADV_COLLAPSE)"),
            collapse: Some(Collapse::Private),
            ..Setup::default()
        }),
        _ => None,
    }
}

/// Arenas of many programs are smaller than a page, down to this (Python's until 3.9); the library carves them out of whole ones.
const ARENA: Bytes = Bytes::kib(256);

/// The library, and for `malloc` of a glibc, whose calls it cannot see, the tunables beside it.
fn in_front(policy: Policy, memory: Memory, given: &dyn Fn(&str) -> Option<OsString>) -> Option<Setup> {
    let library = format!("{} that backs the program's own mappings", Technique::Preload.title());
    let beside = matches!(memory, Memory::Glibc | Memory::Database(_))
        .then(|| with(Technique::Tunables, policy, memory, given))
        .flatten();
    Some(Setup {
        words: match &beside {
            None => library,
            Some(beside) => format!("{library}, and for malloc {}", beside.words),
        },
        env: beside.map_or_else(Vec::new, |beside| beside.env),
        preload: Some(Layout::of(policy.kind()?).ok()?.with_minimum(ARENA)),
        ..Setup::default()
    })
}

fn mimalloc() -> Setup {
    Setup {
        words: format!(
            "{} ({}=1)",
            Technique::Allocator(Allocator::Mimalloc).title(),
            MIMALLOC.join("=1 ")
        ),
        env: MIMALLOC.map(|name| (name.into(), "1".into())).into(),
        ..Setup::default()
    }
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
/// one by one, whose ends would stay on base pages. 32 MiB is the highest threshold that glibc takes. A block above it that is
/// smaller than a page would be mapped on base pages: with pages of 1 GiB none is mapped.
///
/// The size is written out: 2 would stand for the machine's default size, which is 1 GiB where the kernel's command line says so.
fn tunables(policy: Policy) -> String {
    let pages = match policy {
        Policy::Hugetlb(size) => size.0,
        _ => 1,
    };
    let heap = if pages > Bytes::mib(32).0 {
        "glibc.malloc.mmap_max=0:glibc.malloc.top_pad=0"
    } else {
        "glibc.malloc.mmap_threshold=33554432:glibc.malloc.top_pad=67108864"
    };
    format!("glibc.malloc.hugetlb={pages}:{heap}")
}

fn added(given: Option<OsString>, separator: &str, value: &str) -> OsString {
    match given {
        Some(mut given) if !given.is_empty() && !separator.is_empty() => {
            given.push(OsStr::new(separator));
            given.push(value);
            given
        }
        _ => value.into(),
    }
}

#[cfg(test)]
#[path = "technique_tests.rs"]
mod tests;
