//! Made measurements for the unit tests of this crate.

use model::guest::{FirstTouch, Guest, GuestPage, GuestPoint, Operation};
use model::latency::{Access, Backed, Dropped, Latency, Pattern, Point, Quiet, Stopped};
use model::process::ProcessPages;
use model::tlb::{CurvePoint, Entries, HostBacking, Level, Tlb, Verdict, Walk, Ways};
use model::{Backing, Bytes, Envelope, Estimate, Machine, PageKind, Reading, Tool};

/// One curve from 16K to 1G; `of` gives the median and the half width of its interval as a share.
pub(crate) fn curve(kind: PageKind, of: impl Fn(Bytes) -> (f64, f64)) -> Latency {
    let points = (14..=30).map(|power| measured(kind, Bytes(1 << power), of(Bytes(1 << power))));
    Latency {
        points: points.collect(),
        no_pmu: Some("the hypervisor shows no PMU".to_owned()),
        tsc_ghz: 2.0,
        core_ghz: None,
        cpu: 1,
        rounds: 3,
        seconds: 2.5,
    }
}

/// base, thp and hugetlb-2M with a gap that opens at 8M.
pub(crate) fn usual() -> Latency {
    let rise = |factor: f64| {
        move |bytes: Bytes| {
            let large = if bytes >= Bytes::mib(8) { factor } else { 1.0 };
            (large * (bytes.0 as f64).log2().powi(3) / 2_000.0, 0.01)
        }
    };
    let mut latency = curve(PageKind::Base, rise(1.8));
    latency.points.extend(curve(PageKind::Thp, rise(1.0)).points);
    latency.points.push(unmeasured(PageKind::HUGETLB_2M, Bytes::mib(1)));
    latency.points.push(unmeasured(PageKind::HUGETLB_2M, Bytes::mib(2)));
    latency
}

pub(crate) fn measured(kind: PageKind, bytes: Bytes, (median, half): (f64, f64)) -> Point {
    let estimate = Estimate {
        median,
        low: median * (1.0 - half),
        high: median * (1.0 + half),
        samples: 40,
    };
    Point {
        kind,
        bytes,
        pattern: Pattern::RandomLine,
        access: Access::Read,
        ns: Some(estimate),
        visits: visits(kind, median, half),
        bound: None,
        convergence: None,
        cycles: (bytes < Bytes::mib(1)).then_some(Estimate {
            median: 5.0,
            low: 4.9,
            high: 5.1,
            samples: 40,
        }),
        quiet: (bytes < Bytes::mib(1)).then_some(Quiet {
            ns: median,
            cycles: 5.0,
            share: 0.9,
        }),
        backing: Backed {
            asked: kind,
            got: [(kind, bytes)].into_iter().collect(),
            proof: "smaps".to_owned(),
        },
        not_measured: None,
        stopped: Some(Stopped::Interval),
        dropped: Dropped {
            switches: 1,
            migrations: 0,
            clock: 2,
        },
        counters: None,
    }
}

/// Six visits over the whole interval; those of huge pages in the other order, so that the two are not correlated.
fn visits(kind: PageKind, median: f64, half: f64) -> Vec<f64> {
    let turn = if kind.is_large() { -1.0 } else { 1.0 };
    [-1.0, 0.6, -0.2, 0.2, -0.6, 1.0]
        .map(|at| median * (1.0 + turn * half * at))
        .to_vec()
}

pub(crate) fn unmeasured(kind: PageKind, bytes: Bytes) -> Point {
    Point {
        ns: None,
        visits: Vec::new(),
        cycles: None,
        quiet: None,
        backing: Backed {
            asked: kind,
            got: Backing::new(),
            proof: "smaps".to_owned(),
        },
        not_measured: Some("the pool is empty; run without --no-pool".to_owned()),
        stopped: None,
        ..measured(kind, bytes, (1.0, 0.0))
    }
}

/// A result around the data, from an invented machine.
pub(crate) fn envelope<T: crate::show::Shape>(data: T) -> Envelope<T> {
    Envelope {
        schema: crate::show::schema_name::<T>(),
        tool: Tool {
            name: "hugewise".to_owned(),
            version: "0.0.0".to_owned(),
        },
        machine: Machine {
            cpu: Reading::Known("Example CPU 9000".to_owned()),
            kernel: Reading::Known("6.1.0".to_owned()),
            hypervisor: Reading::Known("none".to_owned()),
            cpus: Reading::Known(8),
            nodes: Reading::Known(1),
            memory: Reading::Known(Bytes::gib(16)),
            base_page: Reading::Known(Bytes::kib(4)),
        },
        command: vec!["hugewise".to_owned(), "measure".to_owned(), "latency".to_owned()],
        seed: 7,
        started: "2026-01-02T03:04:05Z".to_owned(),
        warnings: Vec::new(),
        data,
    }
}

/// Three processes: a small one, a large one backed by base pages, one backed by huge pages.
pub(crate) fn process_rows() -> Vec<crate::results::ps::ProcessRow> {
    vec![
        process(10, "init", &[(PageKind::Base, Bytes::mib(4))]),
        process(
            20,
            "db|\u{1b}[2J",
            &[(PageKind::Base, Bytes::mib(900)), (PageKind::Thp, Bytes::mib(100))],
        ),
        process(
            30,
            "jvm",
            &[
                (PageKind::Base, Bytes::mib(50)),
                (PageKind::HUGETLB_2M, Bytes::mib(512)),
            ],
        ),
    ]
    .into_iter()
    .map(crate::results::ps::ProcessRow::new)
    .collect()
}

fn process(pid: u32, name: &str, backing: &[(PageKind, Bytes)]) -> ProcessPages {
    let backing: Backing = backing.iter().copied().collect();
    let hugetlb = backing.of(PageKind::HUGETLB_2M);
    ProcessPages {
        pid,
        name: name.to_owned(),
        uid: Reading::Known(0),
        resident: Reading::Known(backing.total()),
        shared: Reading::Known(hugetlb),
        rss: Reading::Known(Bytes(backing.total().0 - hugetlb.0)),
        hugetlb: Reading::Known(hugetlb),
        page_tables: Reading::Known(Bytes::kib(400)),
        backing: Reading::Known(backing),
        thp_enabled: Reading::Known(pid != 10),
        segments: Vec::new(),
        shown_in: "smaps_rollup",
    }
}

/// A machine with THP on madvise and an empty 2M pool.
pub(crate) fn machine() -> host::Snapshot {
    let thp = "/sys/kernel/mm/transparent_hugepage";
    let pool = "/sys/kernel/mm/hugepages/hugepages-2048kB";
    let tree = host::Tree::new()
        .file(
            "/proc/meminfo",
            "MemTotal: 16777216 kB\nMemAvailable: 8388608 kB\nPageTables: 2048 kB\n",
        )
        .line("/proc/sys/kernel/osrelease", "6.1.0")
        .line(&format!("{thp}/enabled"), "always [madvise] never")
        .line(&format!("{thp}/hpage_pmd_size"), "2097152")
        .line(&format!("{pool}/nr_hugepages"), "0")
        .line(&format!("{pool}/free_hugepages"), "0");
    host::Snapshot::take(&host::Source::from_tree("example", tree))
}

/// A verdict of which only the sentences matter.
pub(crate) fn verdict() -> model::verdict::Verdict {
    let verdict = crate::verdict::verdict(&grounds(Err("it was skipped"), &machine()));
    model::verdict::Verdict {
        sentences: vec!["One sentence.".to_owned(); 3],
        ..verdict
    }
}

/// What a verdict rests on, beside a headline and a machine: nothing.
pub(crate) fn grounds<'a>(
    headline: Result<&'a model::headline::Headline, &'a str>,
    snapshot: &'a host::Snapshot,
) -> crate::verdict::Grounds<'a> {
    crate::verdict::Grounds {
        headline,
        tlb: None,
        snapshot,
        processes: None,
        doctor: None,
        servers: &[],
        root: None,
    }
}

/// A headline of these gains: working set, kind, the kind it is compared with, and the ends of the saving in percent.
pub(crate) fn headline(gains: &[(Bytes, PageKind, PageKind, [f64; 2])]) -> model::headline::Headline {
    let gain = |&(bytes, kind, against, [low, high]): &(Bytes, PageKind, PageKind, [f64; 2])| {
        let percent = f64::midpoint(low, high);
        model::headline::PairedGain {
            bytes,
            kind,
            against,
            saved: Some(model::headline::Percent { percent, low, high }),
            draws: vec![low, percent, percent, high],
            ns: Some(2.0 * (100.0 - percent)),
            against_ns: Some(200.0),
            backing: measured(kind, bytes, (1.0, 0.0)).backing,
            not_measured: None,
        }
    };
    model::headline::Headline {
        gains: gains.iter().map(gain).collect(),
        draws: 6,
        rounds: 4,
        host_lines: None,
        settled: false,
        cpu: 0,
        seconds: 27.0,
    }
}

/// Guest pages of 4K and 2M on base, thp, and a pool that is empty, at three working sets.
pub(crate) fn guest() -> Guest {
    let cells = [
        (None, [210.0, 140.0]),
        (Some(GuestPage::Size4K), [220.0, 160.0]),
        (Some(GuestPage::Size2M), [204.0, 141.0]),
    ];
    let mut points = Vec::new();
    for bytes in [16, 128, 1024].map(Bytes::mib) {
        for (page, medians) in cells {
            let all = [PageKind::Base, PageKind::Thp].into_iter().zip(medians);
            points.extend(all.map(|(kind, ns)| guest_point(page, measured(kind, bytes, (ns, 0.01)))));
            points.push(guest_point(page, unmeasured(PageKind::HUGETLB_2M, bytes)));
        }
    }
    let counts = |pairs: &[(&str, i64)]| pairs.iter().map(|&(name, count)| (name.to_owned(), count)).collect();
    Guest {
        mmu: Reading::Known("shadow-pvm".to_owned()),
        sanity: None,
        points,
        fault_ns: vec![FirstTouch {
            guest_page: GuestPage::Size4K,
            kind: PageKind::Base,
            touched: 16384,
            faults: Some(16384),
            touch_ns: None,
            warm_ns: None,
            ns: Some(9950.0),
            kvm_stats: counts(&[("pf_fixed", 16384), ("tlb_flush", 0)]),
        }],
        exits: Vec::new(),
        churn: vec![operation("segv", true), operation("fw", false)],
        kvm_stats: counts(&[("exits", 70_000)]),
        readings: vec!["guest 2M on host base keeps only 20 % of the gain".to_owned()],
        tsc_ghz: 2.0,
        cpu: 1,
        seconds: 12.5,
    }
}

fn guest_point(guest_page: Option<GuestPage>, point: Point) -> GuestPoint {
    let native = if point.kind == PageKind::Base { 210.0 } else { 140.0 };
    let ratio = |ns: Estimate| Estimate {
        median: ns.median / native,
        ..ns
    };
    GuestPoint {
        guest_page,
        ratio: point.ns.filter(|_| guest_page.is_some()).map(ratio),
        point,
        warm_stats: Default::default(),
        timed_stats: Default::default(),
    }
}

/// An operation that the hypervisor interprets, or that it could not do.
fn operation(name: &str, done: bool) -> Operation {
    Operation {
        name: name.to_owned(),
        what: "what it is".to_owned(),
        ns: done.then_some(Estimate {
            median: 54_321.0,
            low: 54_000.0,
            high: 55_000.0,
            samples: 40,
        }),
        emulated: true,
        per_operation: [("exits".to_owned(), 3.0)].into(),
        not_measured: (!done).then(|| "the guest faulted".to_owned()),
    }
}

/// A first level that is known exactly and a second one that is not, on a host with 4 KiB pages.
pub(crate) fn tlb() -> Tlb {
    let estimate = |median: f64| Estimate {
        median,
        low: 0.9 * median,
        high: 1.1 * median,
        samples: 12,
    };
    let level = |level, [low, high]: [u32; 2], cycles: f64, not_told: Option<&str>| Level {
        kind: PageKind::Base,
        level,
        entries: Some(Entries { low, high }),
        ways: not_told.is_none().then_some(Ways::Full),
        index: None,
        miss_ns: Some(estimate(cycles / 3.7)),
        miss_cycles: Some(estimate(cycles)),
        not_told: not_told.map(str::to_owned),
    };
    let point = |power: u32| CurvePoint {
        kind: PageKind::Base,
        stride: 1,
        drawn_from: None,
        block: 1,
        pages: 1 << power,
        cycles: estimate(4.0 + f64::from(power)),
    };
    Tlb {
        levels: vec![
            level(1, [72; 2], 7.0, None),
            level(2, [2370, 4010], 34.0, Some("the knee is soft")),
        ],
        walks: vec![Walk {
            kind: PageKind::Base,
            pages: 512,
            entry_bytes: Bytes::kib(32),
            cycles: estimate(30.0),
            ns: estimate(8.0),
            converged: true,
        }],
        sharing: Vec::new(),
        host_backing: HostBacking {
            verdict: Verdict::Small,
            confidence: 0.96,
            splintered: Some(1.0),
            evidence: vec!["of 32 pages of 2M, 32 cost as much as 4K pages".to_owned()],
        },
        known: Vec::new(),
        memory: Vec::new(),
        curves: (0..14).map(point).collect(),
        core_ghz: Some(estimate(3.7)),
        cpu: 0,
        dropped: 0,
        seconds: 4.0,
    }
}
