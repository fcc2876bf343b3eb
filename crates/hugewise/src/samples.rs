//! Made measurements for the unit tests of this crate.

use model::latency::{Access, Backed, Dropped, Latency, Pattern, Point, Stopped};
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
        cycles: (bytes < Bytes::mib(1)).then_some(Estimate {
            median: 5.0,
            low: 4.9,
            high: 5.1,
            samples: 40,
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

pub(crate) fn unmeasured(kind: PageKind, bytes: Bytes) -> Point {
    Point {
        ns: None,
        cycles: None,
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

/// A result around the data, from a machine that never was.
pub(crate) fn envelope<T: crate::show::Show>(data: T) -> Envelope<T> {
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
        doubts: Vec::new(),
        data,
    }
}
