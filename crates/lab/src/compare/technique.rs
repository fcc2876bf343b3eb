//! How a policy is brought about for a program: chosen by what the program is, stated in the result, open to be overridden.

use std::ffi::{OsStr, OsString};
use std::str::FromStr;

use model::{Bytes, PageKind};

use super::Error;
use super::policy::Policy;
use super::program::{Allocator, Memory};

/// A way to other pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Technique {
    /// Nothing but the kernel's switch of transparent pages.
    Switch,
    /// glibc's tunables.
    Tunables,
    /// Options of the Java virtual machine.
    Jvm,
    /// Variables of an allocator.
    Allocator(Allocator),
    /// From outside, while it runs.
    Collapse,
    /// A library in front of the program, for memory that it maps itself.
    Preload,
}

/// What is collapsed from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collapse {
    /// Private memory.
    Private,
    /// Code mapped from files.
    Text,
}

/// The kernel's switch for the transparent pages of one process and its children.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThpSwitch {
    /// As it is.
    #[default]
    Left,
    /// Off.
    Off,
    /// Off but for memory that asked for it.
    ExceptAdvised,
}

/// What is done to the child, and to nothing else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Setup {
    /// In words.
    pub words: String,
    /// Variables to set.
    pub env: Vec<(OsString, OsString)>,
    /// The kernel's switch.
    pub thp: ThpSwitch,
    /// What is collapsed while it runs.
    pub collapse: Option<Collapse>,
    /// The kind that the library in front of the program gives to its mappings.
    pub preload: Option<PageKind>,
}

impl FromStr for Technique {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "switch" => Ok(Self::Switch),
            "tunables" => Ok(Self::Tunables),
            "jvm" => Ok(Self::Jvm),
            "jemalloc" => Ok(Self::Allocator(Allocator::Jemalloc)),
            "mimalloc" => Ok(Self::Allocator(Allocator::Mimalloc)),
            "collapse" => Ok(Self::Collapse),
            "preload" => Ok(Self::Preload),
            _ => Err(format!(
                "`{text}` is not a technique (write switch, tunables, jvm, jemalloc, mimalloc, collapse or preload)"
            )),
        }
    }
}

/// The setup of an arm. `given` looks up the variables that the child would have anyway: those are added to, not replaced.
///
/// # Errors
/// If no technique gives this program such pages; the message says which page policy would work.
pub fn setup(
    policy: Policy,
    memory: Memory,
    asked: Option<Technique>,
    given: &dyn Fn(&str) -> Option<OsString>,
) -> Result<Setup, Error> {
    let switch = |words: &str, thp| Setup {
        words: words.to_owned(),
        thp,
        ..Setup::default()
    };
    match policy {
        Policy::Base => Ok(switch(
            "transparent pages switched off (prctl PR_SET_THP_DISABLE)",
            ThpSwitch::Off,
        )),
        Policy::System => Ok(switch("as the machine and the program are set", ThpSwitch::Left)),
        Policy::ThpAdvised => {
            let words = "transparent pages where the program advises them (prctl PR_THP_DISABLE_EXCEPT_ADVISED)";
            Ok(switch(words, ThpSwitch::ExceptAdvised))
        }
        Policy::Text => Ok(Setup {
            words: "code collapsed from outside (process_madvise MADV_COLLAPSE)".to_owned(),
            collapse: Some(Collapse::Text),
            ..Setup::default()
        }),
        Policy::Thp | Policy::Hugetlb(_) => {
            let technique = asked.unwrap_or_else(|| usual(policy, memory));
            with(technique, policy, given).ok_or_else(|| no_way(policy, memory, asked.is_some()))
        }
    }
}

/// The technique that reaches most of such a program's memory.
fn usual(policy: Policy, memory: Memory) -> Technique {
    match (policy, memory) {
        (_, Memory::Glibc) => Technique::Tunables,
        (_, Memory::Jvm) => Technique::Jvm,
        (Policy::Thp, Memory::Allocator(Allocator::Jemalloc)) => Technique::Allocator(Allocator::Jemalloc),
        (Policy::Hugetlb(_), Memory::Allocator(_)) => Technique::Preload,
        _ => Technique::Collapse,
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

fn with(technique: Technique, policy: Policy, given: &dyn Fn(&str) -> Option<OsString>) -> Option<Setup> {
    let variable = |words: &str, name: &str, separator: &str, value: &str| {
        Some(Setup {
            words: format!("{words} ({name}={value})"),
            env: vec![(name.into(), added(given(name), separator, value))],
            ..Setup::default()
        })
    };
    match (technique, policy) {
        (Technique::Switch, Policy::Thp) => Some(Setup {
            words: "as the machine's mode gives them".to_owned(),
            ..Setup::default()
        }),
        (Technique::Tunables, _) => variable("glibc's tunables", "GLIBC_TUNABLES", ":", &tunables(policy)),
        (Technique::Jvm, Policy::Thp) => variable(
            "options of the JVM",
            "JAVA_TOOL_OPTIONS",
            " ",
            "-XX:+UseTransparentHugePages",
        ),
        (Technique::Jvm, Policy::Hugetlb(size)) => {
            let options = format!(
                "-XX:+UseLargePages -XX:LargePageSizeInBytes={}",
                size.exact().to_lowercase()
            );
            variable("options of the JVM", "JAVA_TOOL_OPTIONS", " ", &options)
        }
        (Technique::Allocator(Allocator::Jemalloc), Policy::Thp) => {
            variable("jemalloc's options", "MALLOC_CONF", ",", "thp:always,metadata_thp:auto")
        }
        (Technique::Allocator(Allocator::Mimalloc), Policy::Hugetlb(size)) if size == Bytes::mib(2) => {
            variable("mimalloc's options", "MIMALLOC_ALLOW_LARGE_OS_PAGES", "", "1")
        }
        (Technique::Preload, _) => Some(Setup {
            words: "a library in front of the program (LD_PRELOAD) that gives its own mappings such pages".to_owned(),
            preload: policy.kind(),
            ..Setup::default()
        }),
        (Technique::Collapse, Policy::Thp) => Some(Setup {
            words: "collapsed from outside while it runs (process_madvise MADV_COLLAPSE)".to_owned(),
            collapse: Some(Collapse::Private),
            ..Setup::default()
        }),
        _ => None,
    }
}

/// Large pages for malloc; then its heap grows by whole pages, and large blocks are cut from it instead of being mapped
/// one by one, whose ends would stay on base pages. 32 MiB is the highest threshold that glibc takes.
fn tunables(policy: Policy) -> String {
    let (pages, pad) = match policy {
        Policy::Hugetlb(size) if size != Bytes::mib(2) => (size.0.to_string(), size.0),
        Policy::Hugetlb(_) => ("2".to_owned(), 64 << 20),
        _ => ("1".to_owned(), 64 << 20),
    };
    format!("glibc.malloc.hugetlb={pages}:glibc.malloc.mmap_threshold=33554432:glibc.malloc.top_pad={pad}")
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
mod tests {
    use super::{Collapse, Setup, Technique, ThpSwitch, setup};
    use crate::compare::Error;
    use crate::compare::policy::Policy;
    use crate::compare::program::{Allocator, Memory};
    use model::Bytes;

    const POOL: Policy = Policy::Hugetlb(Bytes::mib(2));

    fn chosen(policy: Policy, memory: Memory) -> Result<Setup, Error> {
        setup(policy, memory, None, &|_| None)
    }

    #[test]
    fn each_program_gets_the_technique_that_reaches_its_memory() {
        let words = |policy, memory| chosen(policy, memory).expect("a way").words;
        assert!(words(Policy::Thp, Memory::Glibc).contains("glibc.malloc.hugetlb=1:"));
        assert!(words(POOL, Memory::Glibc).contains("glibc.malloc.hugetlb=2:"));
        assert!(words(Policy::Hugetlb(Bytes::gib(1)), Memory::Glibc).contains("hugetlb=1073741824:"));
        assert!(words(POOL, Memory::Jvm).contains("-XX:+UseLargePages -XX:LargePageSizeInBytes=2m"));
        assert!(words(Policy::Thp, Memory::Allocator(Allocator::Jemalloc)).contains("thp:always"));
        let collapsed = chosen(Policy::Thp, Memory::Static).expect("a way");
        assert_eq!((collapsed.collapse, collapsed.env.len()), (Some(Collapse::Private), 0));
        assert_eq!(chosen(Policy::Base, Memory::Go).expect("a way").thp, ThpSwitch::Off);
    }

    #[test]
    fn what_cannot_work_is_refused_with_what_would() {
        for memory in [Memory::Static, Memory::Go, Memory::OtherLibc] {
            let error = chosen(POOL, memory).expect_err("no way").to_string();
            assert!(
                error.contains("--arms hugetlb-2M") && error.contains("compare thp"),
                "{error}"
            );
        }
        let error = setup(POOL, Memory::Glibc, Some(Technique::Collapse), &|_| None).expect_err("no way");
        assert!(
            error.to_string().contains("this technique gives no such pages"),
            "{error}"
        );
    }

    #[test]
    fn variables_that_are_set_are_added_to() {
        let given = |name: &str| (name == "JAVA_TOOL_OPTIONS").then(|| "-Xss1m".into());
        let setup = setup(Policy::Thp, Memory::Jvm, None, &given).expect("a way");
        assert_eq!(
            setup.env,
            [("JAVA_TOOL_OPTIONS".into(), "-Xss1m -XX:+UseTransparentHugePages".into())]
        );
    }
}
