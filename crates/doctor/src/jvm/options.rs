//! Options of JVMs that do not do what they seem to.

use host::Evidence;
use host::programs::JvmKind;
use model::Bytes;
use model::findings::Severity;

use crate::facts::{each, known, pools, programs};
use crate::rule::{Answer, Case, Checks, Rule};

const JAVA: &str = "https://docs.oracle.com/en/java/javase/21/docs/specs/man/java.html";

pub(super) const E03: Rule = Rule {
    id: "E03",
    name: "jvm-invalid-size",
    severity: Severity::Warning,
    holds: "HotSpot of every version",
    text: "-XX:LargePageSizeInBytes names a size that the kernel does not have. HotSpot then uses the default size and reports it \
           only with -Xlog:pagesize. Sizes are 2M and 1G on x86-64; on arm64 with pages of 4K also 64K and 32M. A missing unit is \
           a common reason.",
    link: JAVA,
    checks: Checks::of_both(sizes, super::files::OF, super::files::sizes),
};

pub(super) const E13: Rule = Rule {
    id: "E13",
    name: "obsolete-flags",
    severity: Severity::Info,
    holds: "HotSpot: UseSHM and UseHugeTLBFS went with JDK 22 (deprecated since 21); -XlargePages was JRockit's; OpenJ9: -Xlp since Java 8",
    text: "The JVM is started with an option for huge pages that its version does not know, or that belongs to another JVM. The \
           option is ignored with a warning, or the JVM does not start. For HotSpot -XX:+UseLargePages replaces all of them; for \
           OpenJ9 -Xlp:objectheap:pagesize= and -Xlp:codecache:pagesize= replace a bare -Xlp.",
    link: JAVA,
    checks: Checks::of_both(old, super::files::OF, super::files::old_options),
};

fn sizes(evidence: &Evidence) -> Answer {
    let sizes: Vec<Bytes> = pools(evidence)?.iter().map(|pool| pool.size).collect();
    each(programs(evidence)?, |program| {
        let asked = program
            .jvm()?
            .filter(|jvm| jvm.wants_hugetlb())
            .and_then(|jvm| jvm.page_size);
        let wrong = asked.filter(|size| !sizes.contains(size));
        Ok(wrong.map(|size| invalid_size(&program.file("cmdline"), size, "this kernel and CPU have no such pages")))
    })
}

/// A size that is none.
pub(crate) fn invalid_size(place: &str, size: Bytes, why: &str) -> Case {
    Case::sure(format!(
        "the JVM silently uses the default size instead of {}: {why}",
        size.exact()
    ))
    .seen(place, "-XX:LargePageSizeInBytes", size.exact())
    .fix("-XX:LargePageSizeInBytes=2m (or 1g), or leave the option out")
}

fn old(evidence: &Evidence) -> Answer {
    each(programs(evidence)?, |program| {
        let Some(jvm) = program.jvm()? else { return Ok(None) };
        Ok(obsolete(&program.file("cmdline"), known(&program.arguments)?, jvm.kind))
    })
}

/// The first option that no longer does what it did.
pub(crate) fn obsolete(place: &str, arguments: &[String], kind: JvmKind) -> Option<Case> {
    let is_old = |argument: &&String| match argument.as_str() {
        "-XX:+UseSHM" | "-XX:+UseHugeTLBFS" | "-XlargePages" => kind == JvmKind::HotSpot,
        "-Xlp" => true,
        _ => false,
    };
    let old = arguments.iter().find(is_old)?;
    Some(
        Case::likely(format!("newer versions ignore {old}, or do not start with it"))
            .seen(place, "", old)
            .fix("HotSpot: -XX:+UseLargePages; OpenJ9: -Xlp:objectheap:pagesize=2M"),
    )
}
