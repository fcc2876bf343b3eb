//! Java command lines against the pools and the policy that files set.

use model::Bytes;
use model::findings::Severity;
use programs::config::given::{FileKind, Java};
use programs::{Evidence, JvmKind};

use super::options::{in_vain, invalid_size};
use super::transparent::under_never;
use crate::demand::{Room, Shortage, shortages};
use crate::facts::pages_for;
use crate::rule::answers::parts;
use crate::rule::{Answer, Case};

pub(super) const OF: &[FileKind] = &[FileKind::Java];

pub(super) fn too_small(evidence: &Evidence) -> Answer {
    let all = evidence.files.java();
    if !all.iter().any(|java| java.jvm.wants_hugetlb()) {
        return Ok(Vec::new());
    }
    let case = |short: Shortage<'_>| {
        let own = all.iter().find(|java| java.heap() == short.demand.seen);
        let openj9 = own.map(|java| &java.jvm).filter(|jvm| jvm.kind == JvmKind::OpenJ9);
        // The heap of OpenJ9 is allocated before its code cache, which may be on base pages.
        let has_heap = openj9.and_then(|jvm| Some(pages_for(jvm.heap_max?, short.page) <= short.left));
        let steps_down = short
            .smaller_page()
            .filter(|_| openj9.is_none() && short.demand.page.is_some());
        let outcome = match short.demand.strict && has_heap != Some(true) {
            true => "does not start",
            false => "will use base pages",
        };
        let outcome = steps_down.map_or_else(
            || outcome.to_owned(),
            |size| {
                let size = size.exact();
                format!("{outcome} with JDK 17 (JDK 25 takes pages of {size}, whose pool has room for it)")
            },
        );
        let what = match openj9 {
            Some(jvm) if jvm.has_code_on_base() => "its heap",
            Some(_) => "its heap with code cache",
            // Those take pages of 2M then.
            None if short.page > Bytes::mib(2) => "its heap",
            None => "its heap with code cache and collector tables",
        };
        let shown = match openj9 {
            Some(_) => "-verbose:sizes shows the page sizes that it asks for, and -verbose:gc those of its heap",
            None => "-Xlog:pagesize shows the page sizes it got",
        };
        let text = format!(
            "{} is configured to use huge pages and {outcome}: {what} {}",
            short.demand.who,
            short.text()
        );
        let case = short.case(text).fix(shown);
        case.when(steps_down.is_some(), |case| case.severity(Severity::Warning))
    };
    Ok(shortages(evidence, FileKind::Java)?.into_iter().map(case).collect())
}

pub(super) fn sizes(evidence: &Evidence) -> Answer {
    let all = evidence.files.java();
    let mut cases: Vec<Case> = all.iter().filter_map(|java| of_zgc(evidence, java)).collect();
    let others = all.iter().filter(|java| !java.jvm.takes_2m_alone());
    cases.extend(others.filter_map(|java| {
        let size = java.jvm.page_size.filter(|_| java.jvm.wants_hugetlb())?;
        let known = programs::config::Boot::COMMON.contains(&size);
        (!known).then(|| {
            invalid_size(
                (java.place_of(java.jvm.size_option()), java.jvm.size_option()),
                size,
                "Linux on x86-64 and arm64 has no pages of that size, and the JVM takes the default size",
            )
        })
    }));
    Ok(cases)
}

/// ZGC with a page size that is not its own: JDK 18 and later name 2M to the kernel, those before get the default size.
fn of_zgc(evidence: &Evidence, java: &Java) -> Option<Case> {
    let own = Bytes::mib(2);
    if !java.jvm.takes_2m_alone() || !java.jvm.wants_hugetlb() {
        return None;
    }
    if let Some(size) = java.jvm.page_size.filter(|size| *size != own) {
        let case = Case::sure(format!(
            "the JVM of {} does not start (JDK 18 and later): ZGC takes huge pages of 2M only, and {} is named",
            java.path,
            size.exact()
        ));
        let case = case.severity(Severity::Error);
        return Some(
            case.seen(
                java.place_of("-XX:LargePageSizeInBytes"),
                "-XX:LargePageSizeInBytes",
                size.exact(),
            )
            .fix("leave -XX:LargePageSizeInBytes out, and have a pool of 2M pages for the heap: hugewise size jvm"),
        );
    }
    let default = Room::of(evidence).ok()?.default;
    let is_other = default != own;
    is_other.then(|| {
        Case::likely(format!(
            "the JVM of {} does not start with JDK 17 and earlier: the file of its heap gets pages of the default size, {}, and ZGC takes 2M only; \
             JDK 18 and later take theirs from the pool of 2M",
            java.path,
            default.exact()
        ))
        .seen(java.place_of("-XX:+UseZGC"), "-XX:+UseZGC -XX:+UseLargePages", "set")
        .seen("the kernel", "default size of huge pages", default.exact())
        .fix("JDK 18 or later, with a pool of 2M pages for the heap (hugewise size jvm)")
        .fix("or default_hugepagesz=2M on the boot command line: pages of other sizes are still asked for by hugepagesz= and hugepages=")
    })
}

pub(super) fn policy(evidence: &Evidence) -> Answer {
    parts([Ok(switched_off(evidence)), by_policy(evidence)])
}

/// JVMs of services to which systemd gives no THP.
fn switched_off(evidence: &Evidence) -> Vec<Case> {
    let off = evidence.files.java_without_thp().into_iter();
    let asks = off.filter(|(java, _)| java.jvm.transparent);
    let cases = asks.map(|(java, (value, place))| {
        Case::sure(format!(
            "the JVM of {} is configured to use THP, and its service gets none, whatever the policy is (MemoryTHP={value})",
            java.path
        ))
        .seen(java.place_of("-XX:+UseTransparentHugePages"), "-XX:+UseTransparentHugePages", "set")
        .seen(place, "MemoryTHP", value)
        .fix("take MemoryTHP= out of the unit, or MemoryTHP=madvise, then: systemctl daemon-reload, and restart it")
    });
    cases.collect()
}

fn by_policy(evidence: &Evidence) -> Answer {
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
        let is_zgc = java.jvm.collector == Some(model::Collector::Z);
        let place = java.place_of("-XX:+UseTransparentHugePages");
        under_never(&format!("the JVM of {}", java.path), place, is_zgc, "")
            .seen(&line.place, "transparent_hugepage", &line.value)
            .fix("transparent_hugepage=madvise")
            .fix_if(
                is_zgc,
                "or JDK 22 and later, in which shmem_enabled alone decides for ZGC",
            )
    });
    Ok(cases.collect())
}

pub(super) fn old_options(evidence: &Evidence) -> Answer {
    let is_spare = Room::of(evidence).is_ok_and(|room| room.filled().next().is_some());
    let all = evidence.files.java();
    let in_pods = evidence
        .files
        .containers()
        .filter_map(|container| container.java.as_ref());
    let cases = all.iter().chain(in_pods);
    Ok(cases
        .filter_map(|java| in_vain(&java.path, &java.arguments, &java.jvm, is_spare))
        .collect())
}
