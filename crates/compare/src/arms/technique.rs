//! How a policy is brought about for a program: by what the program is, and where its file does not show it, by a trial run.

use std::ffi::OsString;
use std::fmt;
use std::str::FromStr;

use model::Bytes;
use model::PageKind::{Base, Hugetlb, Mthp, Thp};
pub use process::ThpSwitch;

use super::variables::{self, Given};
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

/// What an arm may ask for, with its name as it is typed and its title.
const TYPED: [(Technique, &str, &str); 8] = [
    (Technique::Switch, "switch", "as the machine's mode gives them"),
    (Technique::Tunables, "tunables", "glibc's tunables"),
    (Technique::Jvm, "jvm", "options of the JVM"),
    (Technique::Program, "program", "the program's own switch"),
    (
        Technique::Allocator(Allocator::Jemalloc),
        "jemalloc",
        "jemalloc's options",
    ),
    (
        Technique::Allocator(Allocator::Mimalloc),
        "mimalloc",
        "mimalloc's options",
    ),
    (Technique::Collapse, "collapse", "collapsed from outside while it runs"),
    (Technique::Preload, "preload", "an LD_PRELOAD library"),
];

impl Technique {
    /// What it uses, as sentences about an arm begin.
    pub fn title(self) -> &'static str {
        self.texts()[1]
    }

    /// Its name as it is typed, and its title.
    fn texts(self) -> [&'static str; 2] {
        let typed = TYPED.into_iter().find(|(technique, ..)| *technique == self);
        typed.map_or(["tcmalloc", "tcmalloc's options"], |(_, name, title)| [name, title])
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collapse {
    Private,
    /// Of private memory this percent of the 2 MiB ranges.
    Share(u8),
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
        let typed = TYPED.into_iter().find(|(_, name, _)| *name == text);
        typed.map(|(technique, ..)| technique).ok_or_else(|| {
            let [names @ .., last] = TYPED.map(|(_, name, _)| name);
            format!("`{text}` is not a technique (write {} or {last})", names.join(", "))
        })
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
    given: Given<'_>,
) -> Result<Vec<Setup>, Error> {
    let memory = program.memory;
    if let Some(only) = without_technique(policy) {
        return Ok(vec![only.without_own(policy, memory, given)]);
    }
    let mut techniques = asked.map_or_else(|| usual(policy, memory), |asked| vec![asked]);
    techniques.retain(|technique| asked.is_some() || in_vain(*technique, program).is_none());
    let by_chance = program
        .glibc
        .filter(|glibc| policy == Policy::Of(Thp) && glibc.is_by_chance());
    if by_chance.is_some() && techniques.len() > 1 {
        techniques.retain(|technique| *technique != Technique::Tunables);
    }
    let setups: Vec<Setup> = techniques
        .into_iter()
        .filter_map(|technique| {
            let way = Some(technique);
            let setup = with(technique, policy, program, given)?;
            let setup = Setup { way, ..setup }.without_own(policy, memory, given);
            Some(setup.said_of_chance(by_chance))
        })
        .collect();
    if setups.is_empty() {
        return Err(no_way(policy, memory, asked.is_some()));
    }
    Ok(setups)
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

    /// Kept from huge pages that the program would take by itself; what the arm itself sets stays.
    fn without_own(self, policy: Policy, memory: Memory, given: Given<'_>) -> Self {
        let plain = variables::set(&variables::off(policy, memory, given), given);
        let is_off = matches!(policy, Policy::Of(Base | Thp | Mthp(_)));
        let is_off = is_off && matches!(memory, Memory::Database(_));
        let is_new = |(name, _): &(OsString, OsString)| !self.env.iter().any(|(own, _)| own == name);
        let more: Vec<_> = plain.into_iter().filter(is_new).collect();
        let list: Vec<String> = more
            .iter()
            .map(|(name, value)| format!("{}={}", name.display(), value.display()))
            .collect();
        let own = self.own.or(is_off.then_some(Own::Off));
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

/// Are there several techniques for a policy, by the program? Others are the same for every program.
pub(super) fn are_several(policy: Policy) -> bool {
    without_technique(policy).is_none()
}

fn without_technique(policy: Policy) -> Option<Setup> {
    let switch = |words: &str, thp| Setup {
        words: words.to_owned(),
        thp,
        ..Setup::default()
    };
    match policy {
        Policy::Of(Base) => Some(switch("THP switched off (prctl PR_SET_THP_DISABLE)", ThpSwitch::Off)),
        Policy::Of(Mthp(size)) => {
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
        Policy::Of(Thp | Hugetlb(_)) => None,
    }
}

/// What may reach most of such a program's memory, in the order of preference: what the THP mode gives it, which counts where
/// that is `always` and changes pages alone, what the program does for itself, then an LD_PRELOAD library, then from outside. A
/// program with glibc may map its memory by itself, as Python does: its file does not show that.
fn usual(policy: Policy, memory: Memory) -> Vec<Technique> {
    use Technique::{Collapse, Jvm, Preload, Switch, Tunables};
    let own = match memory {
        Memory::Glibc => vec![Tunables, Preload, Collapse],
        Memory::Jvm => vec![Jvm, Collapse],
        Memory::Database(_) if policy != Policy::Of(Thp) => vec![Technique::Program],
        Memory::Database(_) => vec![Tunables, Preload, Collapse],
        Memory::Allocator(Allocator::Mimalloc) if policy != Policy::Of(Thp) => {
            vec![Preload, Technique::Allocator(Allocator::Mimalloc)]
        }
        Memory::Allocator(Allocator::Jemalloc) => vec![Technique::Allocator(Allocator::Jemalloc), Preload, Collapse],
        Memory::Allocator(_) => vec![Preload, Collapse],
        // Its version is not known, and some take the tunable for THP by chance.
        Memory::StaticGlibc if policy == Policy::Of(Thp) => vec![Collapse, Tunables],
        Memory::StaticGlibc => vec![Tunables],
        Memory::Go | Memory::OtherLibc | Memory::Static => vec![Collapse],
    };
    let switch = (policy == Policy::Of(Thp)).then_some(Switch);
    switch.into_iter().chain(own).collect()
}

/// Why a technique does nothing in a program, as far as its file shows: it is refused before any run.
pub(super) fn in_vain(technique: Technique, program: &Program) -> Option<String> {
    let (path, title) = (program.path.display(), program.memory.title());
    match (technique, program.memory) {
        (Technique::Tunables, Memory::Go | Memory::OtherLibc | Memory::Static | Memory::Allocator(_)) => {
            Some(format!("`tunables` sets glibc's malloc, and {path} is {title}"))
        }
        (Technique::Tunables, _) => {
            let glibc = program.glibc.filter(|glibc| !glibc.has_tunable())?;
            Some(format!(
                "`tunables` takes glibc 2.35 or later, and {path} is loaded by {glibc}"
            ))
        }
        (Technique::Preload, Memory::Go | Memory::StaticGlibc | Memory::Static) => Some(format!(
            "`preload` puts a library in front of a dynamic program, and {path} is {title}"
        )),
        (Technique::Jvm, memory) if memory != Memory::Jvm => Some(format!(
            "`jvm` sets options of a Java virtual machine, and {path} is none"
        )),
        (Technique::Allocator(_), Memory::Go) => {
            Some(format!("`{technique}` sets an allocator for C, and {path} is {title}"))
        }
        _ => None,
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
    Error::asked(format!("--arms {policy}"), why)
}

fn with(technique: Technique, policy: Policy, program: &Program, given: Given<'_>) -> Option<Setup> {
    let title = technique.title();
    if let Some(variables) = variables::on(technique, policy) {
        let list: Vec<String> = variables
            .iter()
            .map(|(name, _, value)| format!("{name}={value}"))
            .collect();
        return Some(Setup {
            words: format!("{title} ({})", list.join(" ")),
            env: variables::set(&variables, given),
            ..Setup::default()
        });
    }
    match (technique, policy) {
        (Technique::Switch, Policy::Of(Thp)) => Some(Setup {
            words: title.to_owned(),
            ..Setup::default()
        }),
        (Technique::Program, Policy::Of(Hugetlb(size))) if matches!(program.memory, Memory::Database(_)) => {
            Some(Setup {
                words: title.to_owned(),
                own: Some(Own::Pool(size)),
                ..Setup::default()
            })
        }
        (Technique::Preload, _) => in_front(policy, program, given),
        (Technique::Collapse, Policy::Of(Thp)) => Some(Setup {
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
fn in_front(policy: Policy, program: &Program, given: Given<'_>) -> Option<Setup> {
    let library = format!("{} that backs the program's own mappings", Technique::Preload.title());
    let has_malloc = matches!(program.memory, Memory::Glibc | Memory::Database(_));
    let beside = (has_malloc && in_vain(Technique::Tunables, program).is_none())
        .then(|| with(Technique::Tunables, policy, program, given))
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

#[cfg(test)]
#[path = "technique_tests.rs"]
mod tests;
