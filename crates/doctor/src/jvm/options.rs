//! Options of JVMs that do not do what they seem to.

use host::snapshot::Pool;
use model::Bytes;
use model::findings::Severity;
use programs::Evidence;
use programs::{Jvm, JvmKind, is_of_hotspot};

use crate::facts::{each_jvm, known, pools};
use crate::rule::{Answer, Case};

pub(super) fn sizes(evidence: &Evidence) -> Answer {
    let sizes: Vec<Bytes> = pools(evidence)?.iter().map(|pool| pool.size).collect();
    each_jvm(evidence, Jvm::wants_hugetlb, |program, jvm| {
        let wrong = jvm.page_size.filter(|size| !sizes.contains(size));
        Ok(wrong.map(|size| {
            let place = program.file("cmdline");
            invalid_size(
                (&place, jvm.size_option()),
                size,
                "this kernel and CPU have no such pages",
            )
        }))
    })
}

pub(crate) fn invalid_size((place, option): (&str, &str), size: Bytes, why: &str) -> Case {
    Case::sure(format!(
        "the JVM silently uses the default size instead of {}: {why}",
        size.exact()
    ))
    .seen(place, option, size.exact())
    .fix(format!("{option}=2m (or 1g), or leave the option out"))
}

pub(super) fn old(evidence: &Evidence) -> Answer {
    let is_filled = |pool: &Pool| pool.nr.known().is_some_and(|nr| *nr > 0);
    let filled = pools(evidence).is_ok_and(|pools| pools.iter().any(is_filled));
    let any = |_: &Jvm| true;
    each_jvm(evidence, any, |program, jvm| {
        let is_spare = filled && program.hugetlb().is_ok_and(|taken| taken.0 == 0);
        Ok(in_vain(
            &program.file("cmdline"),
            known(&program.arguments)?,
            jvm,
            is_spare,
        ))
    })
}

/// Options of HotSpot that are gone: name, the release that ignores it, after which none starts with it (JDK-8245215, JDK-8261894).
const GONE: [(&str, u32); 3] = [("UseLargePagesInMetaspace", 16), ("UseSHM", 22), ("UseHugeTLBFS", 22)];

/// The first option that does not do what it seems to. Is there a pool with pages of which it takes none?
pub(crate) fn in_vain(place: &str, arguments: &[String], jvm: &Jvm, is_spare: bool) -> Option<Case> {
    let is_hotspot = jvm.kind == JvmKind::HotSpot;
    let case = |argument: &String| {
        match argument.as_str() {
        "-XlargePages" if is_hotspot => Some(old_case(place, argument)),
        "-Xlp" => (jvm.version != Some(8)).then(|| deprecated(place, argument)),
        _ if is_hotspot => gone(place, argument, jvm.version),
        _ => (jvm.kind == JvmKind::OpenJ9 && is_of_hotspot(argument)).then(|| {
            Case::sure(format!("OpenJ9 ignores {argument}, which is an option of HotSpot"))
                .link(Some("https://eclipse.dev/openj9/docs/xlpobjectheap/"))
                .seen(place, "", argument)
                .fix("for a pool: -Xlp:objectheap:pagesize=2M; for THP none: the policy `madvise` (unless -XX:-TransparentHugePage) or `always`")
        }),
    }
    };
    let first = arguments.iter().find_map(case);
    let is_overruled = is_hotspot && jvm.large_pages && jvm.transparent && is_spare;
    let is_alone = is_hotspot && jvm.page_size.is_some() && !jvm.large_pages && !jvm.transparent;
    let is_annulled = is_hotspot && jvm.off.is_some() && !jvm.large_pages;
    first
        .or_else(|| is_annulled.then(|| annulled(place)))
        .or_else(|| is_overruled.then(|| overruled(place)))
        .or_else(|| is_alone.then(|| alone(place).severity(if is_spare { Severity::Warning } else { Severity::Info })))
}

fn old_case(place: &str, argument: &str) -> Case {
    Case::likely(format!("newer versions ignore {argument}, or do not start with it"))
        .seen(place, "", argument)
        .fix("-XX:+UseLargePages")
}

fn deprecated(place: &str, argument: &str) -> Case {
    Case::likely(format!("{argument} of OpenJ9 still works, and is deprecated after Java 8"))
        .link(Some("https://eclipse.dev/openj9/docs/xlp/"))
        .seen(place, "", argument)
        .fix("-Xlp:objectheap:pagesize=SIZE and -Xlp:codecache:pagesize=SIZE, of the size that is Hugepagesize in /proc/meminfo")
}

fn gone(place: &str, argument: &str, version: Option<u32>) -> Option<Case> {
    let name = argument.strip_prefix("-XX:")?.trim_start_matches(['+', '-']);
    let (_, ignored) = GONE.iter().find(|(gone, _)| *gone == name)?;
    let case = Case::likely(format!(
        "JDK {} and later do not start with {argument}, and JDK {ignored} ignores it",
        ignored + 1
    ))
    .seen(place, "", argument)
    .fix(format!(
        "leave {argument} out; -XX:+UseLargePages is what asks for huge pages"
    ));
    // One that runs takes it.
    Some(match version {
        None => case.severity(Severity::Warning),
        Some(_) => case,
    })
}

/// HotSpot's large_page_init() looks for a pool only where THP is not asked for.
fn overruled(place: &str) -> Case {
    Case::sure(
        "-XX:+UseTransparentHugePages goes before -XX:+UseLargePages: the JVM uses THP, and takes no page of the pool",
    )
    .severity(Severity::Warning)
    .seen(place, "-XX:+UseLargePages -XX:+UseTransparentHugePages", "set")
    .fix("for the pool: leave -XX:+UseTransparentHugePages out, and restart the JVM")
    .fix("or for THP: leave -XX:+UseLargePages out, and free the pool")
}

/// HotSpot's large_page_init() takes that for all huge pages, whatever the order is.
fn annulled(place: &str) -> Case {
    Case::sure("-XX:-UseLargePages annuls -XX:+UseTransparentHugePages: the JVM asks for no huge pages")
        .severity(Severity::Warning)
        .seen(place, "-XX:+UseTransparentHugePages -XX:-UseLargePages", "set")
        .fix("leave -XX:-UseLargePages out, and restart the JVM")
}

/// A size alone asks for nothing (-Xlog:pagesize of JDK 17 and 25: `Large page support disabled`).
fn alone(place: &str) -> Case {
    Case::sure("-XX:LargePageSizeInBytes has no effect without -XX:+UseLargePages: the JVM asks for no page of a pool")
        .seen(place, "-XX:LargePageSizeInBytes", "set")
        .seen(place, "-XX:+UseLargePages", "not set")
        .fix("add -XX:+UseLargePages, with a pool for the heap (hugewise size jvm), or leave the size out")
}
