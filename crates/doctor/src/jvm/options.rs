//! Options of JVMs that do not do what they seem to.

use model::Bytes;
use programs::Evidence;
use programs::{Jvm, JvmKind};

use crate::facts::{each_jvm, known, pools};
use crate::rule::{Answer, Case};

pub(super) fn sizes(evidence: &Evidence) -> Answer {
    let sizes: Vec<Bytes> = pools(evidence)?.iter().map(|pool| pool.size).collect();
    each_jvm(evidence, Jvm::wants_hugetlb, |program, jvm| {
        let wrong = jvm.page_size.filter(|size| !sizes.contains(size));
        Ok(wrong.map(|size| invalid_size(&program.file("cmdline"), size, "this kernel and CPU have no such pages")))
    })
}

pub(crate) fn invalid_size(place: &str, size: Bytes, why: &str) -> Case {
    Case::sure(format!(
        "the JVM silently uses the default size instead of {}: {why}",
        size.exact()
    ))
    .seen(place, "-XX:LargePageSizeInBytes", size.exact())
    .fix("-XX:LargePageSizeInBytes=2m (or 1g), or leave the option out")
}

pub(super) fn old(evidence: &Evidence) -> Answer {
    let any = |_: &Jvm| true;
    each_jvm(evidence, any, |program, jvm| {
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
