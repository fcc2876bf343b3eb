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

/// The ways to a pool, or to THP, that lead through malloc.
pub(super) fn by_malloc(case: Case, evidence: &Evidence, program: &Program) -> Case {
    if let Some(way) = own_heap(program) {
        return case.fix(way);
    }
    if let Some((variable, value)) = asked_by(program) {
        return case.seen(program.file("environ"), variable, value).fix(format!(
            "{variable} has no effect on it: another allocator, a static program and one with raised privileges do not read it. Without another option free the pool"
        ));
    }
    if !is_of_glibc(program) {
        return case
            .fix("it maps no glibc, so that malloc's tunables do not reach it, unless glibc is linked in: without such an option free the pool");
    }
    let glibc = program.details.as_ref().and_then(|details| details.glibc.known());
    if let Some((major, minor)) = glibc.filter(|version| **version < (2, 35)) {
        return case.fix(format!(
            "its glibc {major}.{minor} has no tunable for huge pages (2.35 and later): without such an option free the pool"
        ));
    }
    case.fix("or start it with GLIBC_TUNABLES=glibc.malloc.hugetlb=2 (glibc 2.35 and later), and check its page kinds again: hugewise ps PID")
        .fix_if(
            policy(evidence).is_ok_and(|policy| policy != "never"),
            "or use THP: GLIBC_TUNABLES=glibc.malloc.hugetlb=1, and free the pool",
        )
}
