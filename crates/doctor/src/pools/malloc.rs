//! Where malloc is the way to a pool, or to THP, and where it is not.

use programs::{Evidence, Program, glibc_library};

use crate::facts::policy;
use crate::rule::Case;
use crate::thp::asked_by;

/// The name of a process, the file of its code, and what is to be said of its memory.
type Row = (&'static str, &'static str, &'static str);

/// A runtime whose heap is not malloc's, and the way that there is.
const OWN_HEAP: Row = (
    "dotnet",
    "/libcoreclr.so",
    "of .NET that is DOTNET_GCLargePages=1 beside DOTNET_GCHeapHardLimit (in hexadecimal bytes); malloc's tunables do not reach its heap",
);

/// Programs whose memory is never of a pool, and not malloc's: SAP IQ has no option for it by its vendor's own words.
const TAKE_NONE: [Row; 4] = [
    (
        "beam.smp",
        "/beam.smp",
        "Erlang's allocators take no pages of a pool (erlang/otp#7977), and malloc's tunables do not reach them",
    ),
    (
        "node",
        "/node",
        "V8's heap takes no pages of a pool (--use-largepages is for code, on THP), and malloc's tunables do not reach it",
    ),
    ("iqsrv15", "/iqsrv15", OF_IQ),
    ("iqsrv16", "/iqsrv16", OF_IQ),
];

const OF_IQ: &str = "SAP IQ's caches (-iqmc, -iqtc, -iqlm) take no pages of a pool, and it has no option for them";

fn is_of(program: &Program, (name, file, _): &Row) -> bool {
    let mut areas = program.areas().into_iter().flatten();
    program.pages.name == *name || areas.any(|area| area.perms.contains('x') && area.name.ends_with(*file))
}

/// Why a program takes no pages of a pool, whatever it is set to.
pub(super) fn takes_none(program: &Program) -> Option<&'static str> {
    let row = TAKE_NONE.iter().find(|row| is_of(program, row));
    row.map(|(.., why)| *why)
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
    !is_of(program, &OWN_HEAP) && takes_none(program).is_none() && is_of_glibc(program)
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
    if is_of(program, &OWN_HEAP) {
        return case.fix(OWN_HEAP.2);
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
