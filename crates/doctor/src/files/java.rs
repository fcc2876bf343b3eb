//! Java command lines against the pools and the policy that files set.

use host::config::given::FileKind;

use super::demand::{Shortage, shortages};
use super::{Check, Scope};
use crate::jvm::options::{invalid_size, obsolete};
use crate::rule::{Answer, Case};

const OF: &[FileKind] = &[FileKind::Java];

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "E01",
        of: OF,
        look: too_small,
    },
    Check {
        id: "E03",
        of: OF,
        look: sizes,
    },
    Check {
        id: "E05",
        of: OF,
        look: policy,
    },
    Check {
        id: "E13",
        of: OF,
        look: old_options,
    },
];

fn too_small(scope: &Scope<'_>) -> Answer {
    if !scope.given.java.iter().any(|java| java.jvm.wants_hugetlb()) {
        return Ok(Vec::new());
    }
    let case = |short: Shortage| {
        let case = Case::likely(format!(
            "{} is told to use large pages and will run on base pages: its heap {}",
            short.demand.who,
            short.text()
        ));
        short
            .case(case)
            .fix("a tenth more for code cache and collector tables; -Xlog:pagesize shows what it got")
    };
    Ok(shortages(scope, FileKind::Java)?.into_iter().map(case).collect())
}

fn sizes(scope: &Scope<'_>) -> Answer {
    let cases = scope.given.java.iter().filter_map(|java| {
        let size = java.jvm.page_size.filter(|_| java.jvm.wants_hugetlb())?;
        let known = host::config::Boot::SIZES.contains(&size);
        (!known).then(|| invalid_size(&java.path, size, "no machine that Linux runs on has such pages"))
    });
    Ok(cases.collect())
}

fn policy(scope: &Scope<'_>) -> Answer {
    let transparent: Vec<_> = scope.given.java.iter().filter(|java| java.jvm.transparent).collect();
    if transparent.is_empty() {
        return Ok(Vec::new());
    }
    let Some(line) = scope.given.policies.last() else {
        return Err("no file says what the policy of transparent pages is (give the kernel's command line too)".into());
    };
    if line.value != "never" {
        return Ok(Vec::new());
    }
    let cases = transparent.into_iter().map(|java| {
        Case::sure(format!(
            "the JVM of {} is told to use transparent pages, and the policy is `never`",
            java.path
        ))
        .seen(&java.path, "-XX:+UseTransparentHugePages", "set")
        .seen(&line.place, "transparent_hugepage", &line.value)
        .fix("transparent_hugepage=madvise")
    });
    Ok(cases.collect())
}

fn old_options(scope: &Scope<'_>) -> Answer {
    let all = scope.given.java.iter();
    Ok(all
        .filter_map(|java| obsolete(&java.path, &java.arguments, java.jvm.kind))
        .collect())
}
