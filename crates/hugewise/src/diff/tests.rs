//! What differs, what does not, and what is not known to.

use host::{Snapshot, Source, Tree};
use model::findings::{Confidence, Finding, NotJudged, Severity};
use model::latency::Latency;
use model::{Bytes, PageKind};
use programs::Evidence;
use programs::config::Given;

use super::{Material, Parts, diff, machine};
use crate::results::Doctor;
use crate::results::diff::{Change, Diff, Gap, Side};
use crate::results::ps::ProcessList;
use crate::samples::{curve, envelope, process_rows, unmeasured};

fn material(parts: Parts) -> Material {
    Material {
        side: Side {
            file: "a.json".to_owned(),
            what: "checkup".to_owned(),
            machine: envelope(crate::samples::usual()).machine,
            command: Vec::new(),
            started: None,
        },
        warnings: Vec::new(),
        parts,
    }
}

fn compared(a: Parts, b: Parts) -> Diff {
    diff(&material(a), &material(b), 0.05)
}

/// Ten visits to each point, `factor` times as long as usual.
fn latency(factor: f64) -> Parts {
    let mut latency = curve(PageKind::Thp, |_| (100.0 * factor, 0.01));
    for point in &mut latency.points {
        let visits = (0..10).map(|at| 100.0 * factor * (1.0 + f64::from(at) / 1000.0));
        point.visits = visits.collect();
    }
    Parts {
        latency: Some(latency),
        ..Parts::default()
    }
}

fn verdicts(diff: &Diff) -> Vec<Change> {
    let points = diff.points.iter().flat_map(|points| &points.points);
    points.map(|point| point.verdict).collect()
}

#[test]
fn points_are_worse_better_or_alike_by_more_than_is_allowed() {
    for (factor, verdict) in [
        (1.2, Change::Worse),
        (0.8, Change::Better),
        (1.03, Change::NoDifference),
        (1.05, Change::Inconclusive),
    ] {
        let diff = compared(latency(1.0), latency(factor));
        let all = verdicts(&diff);
        assert!(
            !all.is_empty() && all.iter().all(|one| *one == verdict),
            "{factor}: {all:?}"
        );
        let point = &diff.points.as_ref().expect("points").points[0];
        let (low, high) = point.low.zip(point.high).expect("an interval");
        assert!(low <= factor && factor <= high && (point.ratio.expect("ratio") - factor).abs() < 0.01);
    }
}

#[test]
fn what_one_side_lacks_has_a_reason_and_no_verdict() {
    let edit = |mut parts: Parts, edit: fn(&mut Latency)| {
        parts.latency.iter_mut().for_each(edit);
        parts
    };
    let few = edit(latency(2.0), |latency| {
        latency.points[0] = unmeasured(PageKind::Thp, latency.points[0].bytes);
        latency.points[1].visits.truncate(2);
        latency.points[2].visits.clear();
        latency.points[3].bytes = Bytes::gib(8);
    });
    let diff = compared(latency(1.0), few);
    let points = &diff.points.as_ref().expect("points").points;
    let told: Vec<_> = points.iter().map(|point| (point.verdict, point.gap)).collect();
    assert_eq!(told[0], (Change::NotCompared, Some(Gap::NotMeasured)));
    assert_eq!(
        told[1].0,
        Change::Inconclusive,
        "10 visits against 2 are too few among many points"
    );
    assert_eq!(told[2], (Change::Inconclusive, Some(Gap::NoInterval)));
    assert_eq!(told[3], (Change::NotCompared, Some(Gap::OnlyInA)));
    assert_eq!(told.last(), Some(&(Change::NotCompared, Some(Gap::OnlyInB))));
    assert!(
        told[4..told.len() - 1]
            .iter()
            .all(|told| *told == (Change::Worse, None)),
        "{told:?}"
    );
}

fn found(rules: &[(&str, Severity)], not_judged: &[&str]) -> Parts {
    let finding = |&(id, severity): &(&str, Severity)| Finding {
        id: id.to_owned(),
        name: format!("rule-{id}"),
        severity,
        confidence: Confidence::High,
        evidence: vec![],
        consequence: String::new(),
        fix: vec![],
        plan: None,
        link: String::new(),
    };
    let not_judged = not_judged.iter().map(|id| NotJudged {
        id: (*id).to_owned(),
        reason: "denied".to_owned(),
    });
    let diagnosis = model::findings::Diagnosis {
        findings: rules.iter().map(finding).collect(),
        not_judged: not_judged.collect(),
        partly: Vec::new(),
    };
    Parts {
        doctor: Some(Doctor {
            diagnosis,
            ..Doctor::of(&Evidence::of_files(Given::default()))
        }),
        ..Parts::default()
    }
}

#[test]
fn a_finding_is_gone_only_if_its_rule_could_be_judged() {
    use Severity::{Error, Info, Warning};
    let a = found(&[("A01", Warning), ("A02", Error), ("A02", Error), ("B01", Info)], &[]);
    let b = found(
        &[("A02", Error), ("C01", Info), ("C02", Warning), ("B01", Info)],
        &["A01"],
    );
    let changes = compared(a, b).findings.expect("findings");
    let told: Vec<_> = changes
        .iter()
        .map(|change| (change.id.as_str(), change.a, change.b, change.is_new()))
        .collect();
    let expected = [
        ("A02", Some(2), Some(1), false),
        ("A01", Some(1), None, false),
        ("C02", Some(0), Some(1), true),
        ("C01", Some(0), Some(1), false),
    ];
    assert_eq!(told, expected);
    assert_eq!(compared(found(&[], &[]), Parts::default()).findings, None);
}

#[test]
fn processes_that_could_not_be_read_are_no_change() {
    let parts = |unread: bool| {
        let mut rows = process_rows();
        if unread {
            rows[2].pages.backing =
                model::Reading::Unread(model::Unread::new(model::Cause::Denied, "/proc/30/smaps", ""));
        }
        Parts {
            processes: Some(ProcessList::new(rows, crate::cli::args::Sort::Pid, None)),
            ..Parts::default()
        }
    };
    let told = compared(parts(false), parts(true));
    assert_eq!(told.backing, Some(Vec::new()));
    let unread = |diff: &Diff| {
        let unseen = diff.unseen.as_ref().expect("processes");
        [&unseen.a, &unseen.b].map(|side| side.as_ref().map(|side| side.unread))
    };
    assert_eq!((told.left_out.len(), unread(&told)), (0, [Some(0), Some(1)]));
    let none = compared(parts(false), Parts::default());
    assert_eq!((&none.backing, unread(&none)), (&None, [Some(0), None]));
    assert_eq!(compared(Parts::default(), Parts::default()).unseen, None);
}

#[test]
fn programs_differ_by_their_share_on_huge_pages_and_not_by_their_size() {
    let list = |edit: fn(&mut Vec<crate::results::ps::ProcessRow>)| {
        let mut rows = process_rows();
        edit(&mut rows);
        Parts {
            processes: Some(ProcessList::new(rows, crate::cli::args::Sort::Pid, None)),
            ..Parts::default()
        }
    };
    let backing = |parts| compared(list(|_| {}), parts).backing.expect("processes");
    let same = backing(list(|rows| rows[0].pages.pid = 77));
    assert_eq!(same, []);
    let worse = backing(list(|rows| {
        let base = [(PageKind::Base, Bytes::mib(562))];
        rows[2].pages.backing = model::Reading::Known(base.into_iter().collect());
    }));
    let names: Vec<_> = worse.iter().map(|change| change.name.as_deref()).collect();
    assert_eq!(names, [None, Some("jvm")]);
    let (a, b) = worse[1].coverage().expect("both");
    assert!(a > 0.9 && b == 0.0);
    let gone = backing(list(|rows| drop(rows.remove(1))));
    assert!(
        gone.iter().any(|change| change.name.is_some() && change.b.is_none()),
        "{gone:?}"
    );
}

fn settings(edit: impl FnOnce(Tree) -> Tree) -> Parts {
    let thp = "/sys/kernel/mm/transparent_hugepage";
    let pool = "/sys/kernel/mm/hugepages/hugepages-2048kB";
    let tree = Tree::new()
        .file("/proc/meminfo", "MemTotal: 16777216 kB\nMemAvailable: 8388608 kB\n")
        .file("/proc/vmstat", "thp_fault_alloc 7\n")
        .line(&format!("{thp}/enabled"), "always [madvise] never")
        .line(&format!("{thp}/hpage_pmd_size"), "2097152")
        .line(&format!("{pool}/nr_hugepages"), "0")
        .line(&format!("{pool}/free_hugepages"), "0");
    Parts {
        snapshot: Some(Snapshot::take(&Source::from_tree("example", edit(tree)))),
        ..Parts::default()
    }
}

#[test]
fn settings_differ_and_counters_do_not() {
    let thp = "/sys/kernel/mm/transparent_hugepage/enabled";
    let pool = "/sys/kernel/mm/hugepages/hugepages-2048kB";
    let changed = settings(|tree| {
        tree.file("/proc/meminfo", "MemTotal: 8388608 kB\nMemAvailable: 77 kB\n")
            .file("/proc/vmstat", "thp_fault_alloc 99\n")
            .line(thp, "[always] madvise never")
            .line(&format!("{pool}/nr_hugepages"), "12")
            .line(&format!("{pool}/free_hugepages"), "3")
            .line("/proc/sys/vm/swappiness", "10")
    });
    let changes = compared(settings(|tree| tree), changed).settings;
    let told: Vec<String> = changes
        .iter()
        .map(|c| format!("{}: {} to {}", c.setting, c.a, c.b))
        .collect();
    let expected = [
        "memory.meminfo.MemTotal: 16G to 8G",
        "pools[2M].nr: 0 to 12",
        "sysctls.vm.swappiness: (absent: /proc/sys/vm/swappiness: No such file or directory (os error 2)) to 10",
        "thp.enabled: madvise to always",
    ];
    assert_eq!(told.len(), expected.len(), "{told:#?}");
    for (told, expected) in told.iter().zip(expected) {
        assert_eq!(told.split('(').next(), expected.split('(').next());
    }
    assert_eq!(compared(settings(|tree| tree), settings(|tree| tree)).settings, []);
}

#[test]
fn without_inventories_the_machines_are_compared() {
    let (a, mut b) = (material(latency(1.0)), material(latency(1.0)));
    b.side.machine.kernel = model::Reading::Known("6.2.0".to_owned());
    let changes = diff(&a, &b, 0.05).settings;
    assert_eq!(changes.len(), 1);
    assert_eq!(changes[0].setting, "machine.kernel");
    let both = machine(&a.side.machine, &b.side.machine);
    assert!(both.kernel.unread().is_some() && both.cpu == a.side.machine.cpu);
}
