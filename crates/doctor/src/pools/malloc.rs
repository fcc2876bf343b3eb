//! Where malloc is the way to a pool, or to THP, and where it is not.

use programs::{Evidence, Program, glibc_library};

use crate::facts::policy;
use crate::rule::Case;
use crate::thp::asked_by;

/// Runtimes whose heap is not malloc's: the name of their processes, the file of their code, and the way that there is.
const OWN_HEAPS: [(&str, &str, &str); 3] = [
    (
        "dotnet",
        "/libcoreclr.so",
        "of .NET that is DOTNET_GCLargePages=1 beside DOTNET_GCHeapHardLimit (in hexadecimal bytes); malloc's tunables do not reach its heap",
    ),
    (
        "beam.smp",
        "/beam.smp",
        "Erlang's allocators take no pages of a pool (erlang/otp#7977), and malloc's tunables do not reach them: free the pool",
    ),
    (
        "node",
        "/node",
        "V8's heap takes no pages of a pool (--use-largepages is for code, on THP), and malloc's tunables do not reach it: free the pool",
    ),
];

fn own_heap(program: &Program) -> Option<&'static str> {
    let has_code = |file: &str| {
        let mut areas = program.areas().into_iter().flatten();
        areas.any(|area| area.perms.contains('x') && area.name.ends_with(file))
    };
    let own = OWN_HEAPS
        .iter()
        .find(|(name, file, _)| program.pages.name == *name || has_code(file));
    own.map(|(.., way)| *way)
}

/// Is malloc glibc's, as far as its code shows? A static program, one of Go or one on musl maps no such library.
fn is_of_glibc(program: &Program) -> bool {
    let areas = program.areas().unwrap_or_default();
    let has_code = areas
        .iter()
        .any(|area| area.perms.contains('x') && area.name.starts_with('/'));
    !has_code || glibc_library(areas).is_some()
}

/// Is its heap malloc's, as far as its code shows?
pub(crate) fn uses_malloc(program: &Program) -> bool {
    own_heap(program).is_none() && is_of_glibc(program)
}

/// Why glibc's tunables do not reach it, as far as its code shows.
fn without_tunable(program: &Program) -> Option<String> {
    if !is_of_glibc(program) {
        return Some(
            "it maps no glibc, so that malloc's tunables do not reach it, unless glibc is linked in".to_owned(),
        );
    }
    let glibc = program.details.as_ref()?.glibc.known();
    let (major, minor) = glibc.filter(|version| **version < (2, 35))?;
    Some(format!(
        "its glibc {major}.{minor} has no tunable for huge pages (2.35 and later)"
    ))
}

/// The ways to a pool, or to THP, that lead through malloc. A pool that is too small comes before all of them.
pub(super) fn by_malloc(case: Case, evidence: &Evidence, program: &Program, is_too_small: bool) -> Case {
    if let Some(way) = own_heap(program) {
        return case.fix(way);
    }
    let asked = asked_by(program);
    let is_of_other = asked
        .as_ref()
        .is_some_and(|(name, _)| !name.starts_with("GLIBC_TUNABLES"));
    if let Some(why) = without_tunable(program).filter(|_| !is_of_other) {
        return case.fix(format!("{why}: without another option free the pool"));
    }
    if let Some((variable, value)) = asked {
        return case
            .seen(program.file("environ"), variable, value)
            .fix(format!(
                "restart it{}: {variable} is read at its start, and the pool may have had no room then",
                if is_too_small { " with a larger pool" } else { "" }
            ))
            .fix_if(
                !is_too_small,
                "if that changes nothing, it does not read the variable (another allocator, raised privileges): then free the pool",
            );
    }
    case.fix("or start it with GLIBC_TUNABLES=glibc.malloc.hugetlb=2 (glibc 2.35 and later), and check its page kinds again: hugewise ps PID")
        .fix_if(
            policy(evidence).is_ok_and(|policy| policy != "never"),
            "or use THP: GLIBC_TUNABLES=glibc.malloc.hugetlb=1, and free the pool",
        )
}
