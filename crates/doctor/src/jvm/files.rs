//! Java command lines against the pools and the policy that files set.

use programs::Evidence;
use programs::config::given::FileKind;

use super::options::{invalid_size, obsolete};
use crate::demand::{Shortage, shortages};
use crate::rule::{Answer, Case};

pub(super) const OF: &[FileKind] = &[FileKind::Java];

pub(super) fn too_small(evidence: &Evidence) -> Answer {
    if !evidence.files.java().iter().any(|java| java.jvm.wants_hugetlb()) {
        return Ok(Vec::new());
    }
    let case = |short: Shortage| {
        // ZGC commits its heap from the pool, and gives up where that fails.
        let outcome = match short.demand.strict {
            true => "does not start",
            false => "will use base pages",
        };
        let text = format!(
            "{} is configured to use huge pages and {outcome}: its heap with code cache and collector tables {}",
            short.demand.who,
            short.text()
        );
        short.case(text).fix("-Xlog:pagesize shows the page sizes it got")
    };
    Ok(shortages(evidence, FileKind::Java)?.into_iter().map(case).collect())
}

pub(super) fn sizes(evidence: &Evidence) -> Answer {
    let cases = evidence.files.java().into_iter().filter_map(|java| {
        let size = java.jvm.page_size.filter(|_| java.jvm.wants_hugetlb())?;
        let known = programs::config::Boot::COMMON.contains(&size);
        (!known).then(|| {
            invalid_size(
                &java.path,
                size,
                "Linux on x86-64 and arm64 has no pages of that size, and the JVM takes the default size",
            )
        })
    });
    Ok(cases.collect())
}

pub(super) fn policy(evidence: &Evidence) -> Answer {
    let all = evidence.files.java();
    let transparent: Vec<_> = all.iter().filter(|java| java.jvm.transparent).collect();
    if transparent.is_empty() {
        return Ok(Vec::new());
    }
    let Some(line) = evidence.files.policies.last() else {
        return Err("no file sets the THP policy (give the kernel's command line too)".into());
    };
    if line.value != "never" {
        return Ok(Vec::new());
    }
    let cases = transparent.into_iter().map(|java| {
        Case::sure(format!(
            "the JVM of {} is configured to use THP, and the THP policy is `never`",
            java.path
        ))
        .seen(&java.path, "-XX:+UseTransparentHugePages", "set")
        .seen(&line.place, "transparent_hugepage", &line.value)
        .fix("transparent_hugepage=madvise")
    });
    Ok(cases.collect())
}

pub(super) fn old_options(evidence: &Evidence) -> Answer {
    let all = evidence.files.java();
    Ok(all
        .iter()
        .filter_map(|java| obsolete(&java.path, &java.arguments, java.jvm.kind))
        .collect())
}
