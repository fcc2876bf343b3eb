//! Memory that an arm costs is said from a tenth on, and not before.

use model::compare::{Arm, Method, Metric, Run, Start, Verdict};
use model::{Backing, Bytes, PageKind};

use super::{Bloat, bloat, memory_bloat, more_than_pages, system_varies};
use crate::proof::effect;
use crate::simulated::{Simulated, spec};
use crate::{Wanted, run};

/// An arm whose runs take so many MiB.
fn arm(name: &str, mib: &[u64]) -> Arm {
    let backing: Backing = [(PageKind::Thp, Bytes::mib(64))].into_iter().collect();
    let run = |&mib: &u64| {
        let memory = (Metric::Memory.name().to_owned(), Bytes::mib(mib).0 as f64);
        Run::bare([memory], Ok(backing.clone()))
    };
    let mut runs: Vec<_> = mib.iter().map(run).collect();
    let (coverage, took_effect) = effect(Some(PageKind::Thp), &mut runs, 0.5);
    Arm {
        name: name.to_owned(),
        technique: String::new(),
        kind: Some(PageKind::Thp),
        place: None,
        took_effect,
        coverage,
        runs,
    }
}

#[test]
fn a_tenth_more_memory_is_no_bloat_and_more_is_said_with_both_sizes() {
    let base = arm("base", &[100, 101, 99]);
    assert_eq!(bloat(&base, &arm("thp", &[110, 110, 400])), None);
    assert_eq!(bloat(&base, &arm("thp", &[90])), None);
    // Short runs that were seen at another moment each time.
    let seen = arm("base", &[70, 90, 130, 100]);
    assert_eq!(bloat(&seen, &arm("base (2)", &[120, 80, 100, 140])), None);
    // Of a few pages a loader and a moment are a large part.
    assert_eq!(bloat(&arm("base", &[2, 2]), &arm("again", &[4, 4])), None);
    let [before, after] = [100, 150].map(Bytes::mib);
    assert_eq!(
        bloat(&base, &arm("thp", &[150, 150, 100])),
        Some(Bloat { before, after })
    );
    let warning = memory_bloat(&base, &arm("thp", &[150])).expect("a warning");
    assert_eq!(
        (warning.code.as_str(), warning.text.as_str()),
        (
            "memory-bloat",
            "`thp` takes 1.50 times the memory, 150M instead of 100M of `base`: a gain in time has this price (said of more \
             than 10 %); a huge page counts whole from its first byte on, so memory that the program goes on to fill is no price"
        )
    );
}

#[test]
fn memory_that_is_not_known_is_no_bloat() {
    assert_eq!(bloat(&arm("base", &[]), &arm("thp", &[100])), None);
    assert_eq!(bloat(&arm("base", &[0]), &arm("thp", &[100])), None);
}

/// As live runs of 0.27 s, of which the kernel took 0.04 s, and 0.71 s of the first after pages were reported.
#[test]
fn system_time_that_varies_is_reported_with_its_range() {
    let of = |system: &[f64]| {
        let mut arm = arm("thp", &vec![256; system.len()]);
        for (run, system) in arm.runs.iter_mut().zip(system) {
            run.metrics
                .extend([("system".to_owned(), *system), ("cpu".to_owned(), 0.23 + system)]);
        }
        system_varies(&[arm, self::arm("base", &[256])])
    };
    assert_eq!(of(&[0.04, 0.05, 0.03, 0.05]), None);
    assert_eq!(of(&[]), None);
    // 0.25 times a CPU time of 0.4 s.
    assert_eq!(of(&[0.12, 0.17, 0.17, 0.21]), None);
    let warning = of(&[0.71, 0.04, 0.03, 0.05]).expect("a warning");
    assert_eq!(warning.code, "free-page-reporting");
    assert!(
        warning
            .text
            .starts_with("system time of `thp` varies from 0.03 to 0.71 s between runs"),
        "{}",
        warning.text
    );
}

#[test]
fn a_technique_that_changes_more_than_pages_is_reported_where_that_can_decide() {
    let kinds = [PageKind::Base, PageKind::Thp];
    let wanted = Wanted {
        name: Metric::Wall.name().to_owned(),
        higher: false,
    };
    let mut executor = Simulated::new(&[1.0, 1.0], &kinds, 7);
    let spec = spec(Method::Runs, &kinds, wanted);
    let (mut compare, _) = run(&spec, Vec::new(), &mut executor, &mut (), &()).expect("simulated");
    let mut said = |technique: [Option<&str>; 2], interval: Option<(f64, f64)>, verdict| {
        let start = |(arm, technique): (&PageKind, Option<&str>)| Start {
            arm: arm.to_string(),
            technique: technique.map(str::to_owned),
            ..Start::default()
        };
        compare.starts = kinds.iter().zip(technique).map(start).collect();
        let judged = &mut compare.verdicts[0];
        (judged.low, judged.high) = interval.unzip();
        judged.verdict = verdict;
        let warning = more_than_pages(&compare, &compare.starts[1]);
        warning.map(|warning| warning.text).unwrap_or_default()
    };
    // A matrix product, which pages alone made 1.4 % faster, and other addresses 1.7 % slower.
    let (near, far) = (Some((0.972, 0.9999)), Some((1.08, 1.20)));
    let by = |technique| [None, Some(technique)];
    let text = said(by("tunables"), near, Verdict::Worse);
    assert!(
        text.starts_with("memory of `thp` may have other addresses than that of `base`"),
        "{text}"
    );
    assert!(
        text.ends_with("; under the THP mode `always`, arms can differ in pages alone"),
        "{text}"
    );
    for (technique, interval) in [("tunables", far), ("tunables", None), ("jvm", near), ("switch", near)] {
        assert_eq!(said(by(technique), interval, Verdict::Inconclusive), "", "{technique}");
    }
    assert!(said(by("collapse"), far, Verdict::Better).contains("after the first touch"));
    assert_eq!(said(by("collapse"), near, Verdict::NotInEffect), "");
    assert_eq!(said([Some("tunables"); 2], near, Verdict::Worse), "");
    compare.starts[0].technique = None;
    compare.arms[1].technique = "as the machine's mode gives them: 3.1 %; this: 97.0 %".to_owned();
    let tried = more_than_pages(&compare, &compare.starts[1]).expect("a warning").text;
    assert!(tried.ends_with("by a few percent"), "{tried}");
}
