//! What operations of the kernel cost: a table with a column for each number of workers, and lines of CSV.

use std::collections::BTreeSet;

use model::kernelops::{KernelOps, Op, Point};
use model::{Estimate, PageKind};

use super::latency::backing;
use crate::show::Show;
use draw::{Lines, NOT_CONVERGED, Sheet, columns, counted, joined, limits, lines, number, or};

impl Show for KernelOps {
    fn title(&self) -> String {
        "Cost of the kernel's memory and process operations".to_owned()
    }

    fn headlines(&self) -> Vec<String> {
        savings(self).into_iter().chain(crowding(self)).collect()
    }

    fn sheets(&self) -> Vec<Sheet> {
        let ops: BTreeSet<Op> = self.points.iter().map(|point| point.op).collect();
        let workers: BTreeSet<u32> = self.points.iter().map(|point| point.workers).collect();
        let measured = |op: Op| {
            let mut points = workers.iter().filter_map(|&workers| find(self, op, workers));
            points.find(|point| point.ns.is_some())
        };
        let measured = &measured;
        let names = columns![|op| Op; "operation" => op, "what it is" => op.what()];
        let times = workers.iter().flat_map(|&workers| {
            let head = format!("#{}", counted(workers as usize, "worker"));
            columns![|op| Op; (head) => cell(find(self, *op, workers)?)]
        });
        let counted = columns![|op| Op; "counted per operation" => counts(measured(*op)?)];
        let title = "Time of one operation, by workers at the same time: median ± half of its 95 % interval";
        let mut sheet = Sheet::of(title, names.into_iter().chain(times).chain(counted), ops.into_iter());
        notes(self).into_iter().for_each(|note| sheet.note(note));
        vec![sheet]
    }

    fn csv(&self) -> Lines<'_> {
        let fields = columns![|point| &Point;
            op => point.op.name(), variant => point.op.variant(), workers => point.workers,
            ns_median => point.ns?.median, ns_low => point.ns?.low, ns_high => point.ns?.high,
            bound_low => point.bound?.low?, bound_high => point.bound?.high?, samples => point.ns?.samples,
            settled => point.settled, operations => point.operations, faults => point.per_operation.get("faults")?,
            pages_per_fault => point.per_operation.get("pages-per-fault")?,
            signals => point.per_operation.get("signals")?, children => point.per_operation.get("children")?,
            switches => point.per_operation.get("switches")?, preemptions => point.per_operation.get("preemptions")?,
            dropped => point.dropped, kind => point.backing.as_ref()?.asked, backing => point.backing.as_ref()?.got,
            proof => point.backing.as_ref()?.proof, not_measured => point.not_measured.as_ref()?,
        ];
        lines(fields, self.points.iter())
    }
}

fn find(result: &KernelOps, op: Op, workers: u32) -> Option<&Point> {
    let mut points = result.points.iter();
    points.find(|point| (point.op, point.workers) == (op, workers))
}

fn cell(point: &Point) -> String {
    let bound = point.bound.map(|bound| limits(bound, time));
    or(point.ns.map(spread).or(bound), "-")
}

/// `1.63 µs ± 2 %`.
fn spread(ns: Estimate) -> String {
    format!("{} ± {:.0} %", time(ns.median), ns.relative_error() * 100.0)
}

/// A time in the unit that fits it.
pub(crate) fn time(ns: f64) -> String {
    let (value, unit) = match ns {
        ns if ns < 1e3 => (ns, "ns"),
        ns if ns < 1e6 => (ns / 1e3, "µs"),
        ns => (ns / 1e6, "ms"),
    };
    let decimals = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
    format!("{value:.decimals$} {unit}")
}

/// What shows that the operation did what its name says.
fn counts(point: &Point) -> String {
    let shown = ["faults", "pages-per-fault", "signals", "children"];
    let parts = shown.iter().filter_map(|&name| {
        let count = point.per_operation.get(name).copied().filter(|&count| count >= 0.005)?;
        Some(format!("{name} {}", number((count * 100.0).round() / 100.0)))
    });
    joined(parts, ", ")
}

fn notes(result: &KernelOps) -> Vec<String> {
    let missing = result.points.iter().filter_map(|point| {
        let why = point.not_measured.as_deref()?;
        Some(format!(
            "not measured: {} by {}: {why}",
            point.op,
            counted(point.workers as usize, "worker")
        ))
    });
    let open = result.points.iter().any(|point| point.bound.is_some());
    let open = open.then(|| NOT_CONVERGED.to_owned());
    // Reads of the page of zeros have no memory of their own.
    let measured = result.points.iter().filter(|point| point.ns.is_some());
    let backing = backing(measured.filter_map(|point| point.backing.as_ref()));
    let notes = missing.chain(open).chain(backing);
    notes.chain([how(result)]).collect()
}

fn how(result: &KernelOps) -> String {
    let measured: Vec<&Point> = result.points.iter().filter(|point| point.ns.is_some()).collect();
    let settled = measured.iter().filter(|point| point.settled).count();
    let dropped: u64 = result.points.iter().map(|point| point.dropped).sum();
    format!(
        "{} in {:.1} s and {}, workers pinned to CPUs {:?}; {settled} within 2 %, the others ended by their \
         time; {} dropped",
        counted(result.points.len(), "point"),
        result.seconds,
        counted(result.rounds as usize, "round"),
        result.cpus,
        counted(dropped as usize, "sample")
    )
}

/// What huge pages save, by one worker.
fn savings(result: &KernelOps) -> Vec<String> {
    let alone = |point: &Point| point.ns.filter(|_| point.workers == 1);
    let same = |a: Op, b: Op| match (a, b) {
        (Op::FwResident { bytes: a, .. }, Op::FwResident { bytes: b, .. })
        | (Op::MmapTouch { bytes: a, .. }, Op::MmapTouch { bytes: b, .. }) => a == b,
        _ => false,
    };
    let against = |large: &Point| {
        let kind = large.op.kind().filter(|kind| kind.is_large())?;
        let points = result.points.iter();
        let mut bases = points.filter(|base| base.op.kind() == Some(PageKind::Base));
        let base = bases.find(|base| same(base.op, large.op) && base.workers == large.workers)?;
        let (slow, fast) = (alone(base)?, alone(large)?);
        let verdict = ratio(slow, fast);
        let what = large.op.what();
        Some(format!(
            "{what} ({}): {} on base pages, {} on {kind}: {verdict}.",
            large.op.variant().split(' ').next().unwrap_or_default(),
            time(slow.median),
            time(fast.median),
        ))
    };
    result.points.iter().filter_map(against).collect()
}

/// `29.5x to 31.2x less`, as far as the two intervals bear it out.
fn ratio(slow: Estimate, fast: Estimate) -> String {
    let (low, high) = (slow.low / fast.high, slow.high / fast.low);
    let is_known = low > 0.0 && high.is_finite();
    let times = |times: f64| {
        if times < 1.1 {
            format!("{times:.2}x")
        } else {
            format!("{times:.1}x")
        }
    };
    match () {
        () if is_known && low > 1.0 => format!("{} to {} less (by both 95 % intervals)", times(low), times(high)),
        () if is_known && high < 1.0 => {
            format!(
                "{} to {} more (by both 95 % intervals)",
                times(1.0 / high),
                times(1.0 / low)
            )
        }
        () => "inconclusive (the 95 % intervals overlap or reach 0; give it more time with --budget)".to_owned(),
    }
}

/// How much longer operations take when all do them at the same time.
fn crowding(result: &KernelOps) -> Option<String> {
    let measured = result.points.iter().filter(|point| point.ns.is_some());
    let most = measured.map(|point| point.workers).max()?;
    let ratio = |point: &Point| {
        let alone = find(result, point.op, 1)?.ns?.median;
        let crowded = point.ns.filter(|_| point.workers == most && most > 1)?.median;
        Some((point.op, crowded / alone))
    };
    let ratios: Vec<(Op, f64)> = result.points.iter().filter_map(ratio).collect();
    let (worst, ratio) = ratios.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let middle = stats::median(&ratios.iter().map(|&(_, ratio)| ratio).collect::<Vec<f64>>())?;
    Some(format!(
        "By {} at the same time an operation takes {middle:.2}x as long as by one (median of {} operations; most: {worst}, \
         {ratio:.2}x).",
        counted(most as usize, "worker"),
        ratios.len()
    ))
}

#[cfg(test)]
mod tests {
    use model::kernelops::{KernelOps, Op, Point};
    use model::{Bytes, Estimate, PageKind};

    use super::time;
    use crate::show::Show;
    use draw::Look;

    fn point(op: Op, workers: u32, ns: Option<f64>) -> Point {
        let estimate = |median: f64| Estimate {
            median,
            low: median * 0.98,
            high: median * 1.02,
            samples: 100,
        };
        Point {
            op,
            workers,
            ns: ns.map(estimate),
            bound: None,
            settled: true,
            operations: 1000,
            per_operation: [("faults".to_owned(), 1.0)].into(),
            backing: None,
            dropped: 0,
            not_measured: ns.is_none().then(|| "needs 4 CPUs, and 2 may be used".to_owned()),
        }
    }

    fn result() -> KernelOps {
        let fork = |kind| Op::FwResident {
            kind,
            bytes: Bytes::mib(256),
        };
        KernelOps {
            points: vec![
                point(Op::Segv, 1, Some(2800.0)),
                point(Op::Segv, 2, Some(5600.0)),
                point(Op::Migrate, 1, Some(9000.0)),
                point(Op::Migrate, 2, None),
                point(fork(PageKind::Base), 1, Some(5e6)),
                point(fork(PageKind::Thp), 1, Some(2e5)),
            ],
            tsc_ghz: 2.0,
            cpus: vec![0, 1],
            rounds: 3,
            seconds: 12.0,
        }
    }

    #[test]
    fn a_table_has_a_row_for_each_operation_and_a_column_for_each_number_of_workers() {
        let sheet = &result().sheets()[0];
        assert_eq!(sheet.rows.len(), 4);
        let text = sheet.text(Look::plain(160));
        for part in [
            "2.80 µs ± 2 %",
            "5.60 µs ± 2 %",
            "1 worker",
            "2 workers",
            "not measured: migrate by 2 workers: needs 4",
        ] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
    }

    #[test]
    fn headlines_say_what_large_pages_save_and_what_company_costs() {
        let headlines = result().headlines();
        assert!(
            headlines[0].contains("5.00 ms on base pages, 200 µs on thp: 24.0x to 26.0x less"),
            "{headlines:?}"
        );
        assert!(headlines[1].contains("takes 2.00x as long"), "{headlines:?}");
        assert_eq!(headlines.len(), 2);
        let mut wide = result();
        wide.points[4].ns = wide.points[4].ns.map(|ns| Estimate {
            low: 1e5,
            high: 5e8,
            ..ns
        });
        assert!(wide.headlines()[0].contains("inconclusive"), "{:?}", wide.headlines());
    }

    #[test]
    fn csv_has_as_many_fields_as_heads_and_times_have_units() {
        let result = result();
        let (head, lines) = result.csv();
        let lines: Vec<_> = lines.collect();
        assert!(lines.iter().all(|line| line.len() == head.len()));
        assert_eq!(
            [812.0, 1634.0, 12_345.0, 5.04e6].map(time),
            ["812 ns", "1.63 µs", "12.3 µs", "5.04 ms"]
        );
    }
}
