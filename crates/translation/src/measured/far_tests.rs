//! A machine whose curves the model made is found again from the curves; and real curves are reproduced.

use model::latency::{Frames, Latency};
use model::tlb::{Entries, Tlb};
use model::{Bytes, Estimate, PageKind};
use serde_json::{Value as Json, json};

use super::setting;
use crate::machine::{Machine, RowReading};
use crate::measured::fit::Costs;
use crate::measured::search::{Step, count};
use crate::measured::{Measured, here};
use crate::tlb::sets::Replacement;
use crate::walk::scatter::Scatter;

const GHZ: f64 = 4.0;
const CACHES: [(Bytes, u32); 3] = [(Bytes::kib(32), 8), (Bytes::mib(1), 16), (Bytes::mib(16), 16)];

fn measured(latency: &Latency, host_page: Option<Bytes>) -> Measured<'_> {
    Measured {
        name: "simulated",
        tlb: None,
        latency: Some((latency, "latency.json")),
        caches: CACHES.to_vec(),
        base_page: Bytes::kib(4),
        pmd_page: Bytes::mib(2),
        host_page,
    }
}

/// A result with those points: kind, working set, ns.
fn latency(points: &[(PageKind, Bytes, f64)]) -> Latency {
    let text = include_str!("../../../../fixtures/results/latency.json");
    let mut result = serde_json::from_str::<Json>(text).expect("JSON")["data"].take();
    let real = result["points"][0].clone();
    let estimate = |value: f64| json!({"median": value, "low": value, "high": value, "samples": 9});
    let point = |&(kind, bytes, ns): &(PageKind, Bytes, f64)| {
        let mut point = real.clone();
        (point["kind"], point["bytes"]) = (json!(kind), json!(bytes.0));
        point["ns"] = estimate(ns);
        point
    };
    result["points"] = points.iter().map(point).collect();
    result["core_ghz"] = estimate(GHZ);
    serde_json::from_value(result).expect("a result")
}

/// A CPU of the table with such costs, of whose last cache others take three quarters.
fn truth(walk_reads: f64) -> (Machine, Costs) {
    let empty = latency(&[]);
    let table = Machine::by_id("epyc-9655").expect("known");
    let mut machine = here(Some(table), &measured(&empty, None)).expect("a machine");
    machine.caches[2].sets /= 4;
    let costs = Costs {
        latencies: [4.0, 14.0, 60.0, 420.0],
        l2_tlb_hit: 7.0,
        walk: 0.0,
        walk_reads,
        error: 0.0,
    };
    (machine, costs)
}

/// The curves that `measure latency` would show on it.
fn curves(truth: &(Machine, Costs), host_page: Option<Bytes>, most: Bytes) -> Latency {
    let (machine, costs) = truth;
    let near = [(Bytes::kib(16), 4.0), (Bytes::kib(256), 14.0)];
    let near = near.map(|(bytes, cycles)| (PageKind::Thp, bytes, cycles / GHZ));
    let empty = latency(&[]);
    let asked = measured(&empty, host_page);
    let sizes = (0..)
        .map(|octave| 2_u64 << (20 + octave))
        .take_while(|&size| size <= most.0);
    let far = sizes.flat_map(|size| [PageKind::Base, PageKind::Thp].map(|kind| (kind, size)));
    let point = |(kind, working_set): (PageKind, u64)| {
        let setting = setting(kind, machine, &asked).expect("possible");
        let step = Step {
            setting,
            working_set,
            cycles: 0.0,
            scatter: machine.surroundings.scatter,
        };
        let counts = count(machine, &step);
        (kind, Bytes(working_set), costs.cycles(&counts) / GHZ)
    };
    latency(&near.into_iter().chain(far.map(point)).collect::<Vec<_>>())
}

fn close(one: f64, other: f64, share: f64) -> bool {
    (one - other).abs() <= share * other
}

#[test]
fn a_machine_is_found_again_from_its_curves_whatever_pages_its_host_has() {
    for (host_page, walk_reads) in [(None, 1.0), (Some(Bytes::kib(4)), 0.7), (Some(Bytes::mib(2)), 0.5)] {
        let truth = truth(walk_reads);
        let latency = curves(&truth, host_page, Bytes::mib(256));
        let table = Machine::by_id("epyc-9655").expect("known");
        let found = here(Some(table), &measured(&latency, host_page)).expect("a machine");
        let places = [2, 3].map(|place| found.latencies[place].expect("measured"));
        assert!(
            close(places[0], 60.0, 0.1) && close(places[1], 420.0, 0.05),
            "{host_page:?}: {places:?}"
        );
        let reads = found.walk_reads.expect("base pages beside huge ones");
        assert!(close(reads, walk_reads, 0.15), "{host_page:?}: {reads}");
        let sets = f64::from(found.caches[2].sets) / f64::from(truth.0.caches[2].sets);
        assert!((0.6..1.6).contains(&sets), "{host_page:?}: {sets} of the last cache");
    }
}

#[test]
fn caches_that_replace_at_random_are_told_from_caches_under_lru() {
    for replacement in [Replacement::Lru, Replacement::Random] {
        let (mut machine, costs) = truth(1.0);
        machine.caches[1..]
            .iter_mut()
            .for_each(|cache| cache.replacement = replacement);
        let latency = curves(&(machine, costs), None, Bytes::mib(32));
        let table = Machine::by_id("epyc-9655").expect("known");
        let found = here(Some(table), &measured(&latency, None)).expect("a machine");
        assert!(
            found.caches[1..].iter().all(|cache| cache.replacement == replacement),
            "{replacement:?}: {:?}",
            found.caches
        );
        let says = found.readings.contains(&RowReading::RandomReplacement);
        assert_eq!(says, replacement == Replacement::Random);
    }
}

#[test]
fn a_guest_with_scattered_base_pages_is_found_again_where_its_frames_were_measured() {
    let host_page = Some(Bytes::kib(4));
    let frames = Frames {
        pages_by_run: [1000, 500, 0, 0, 0, 0, 0, 0, 0, 0],
        spread: Bytes::gib(4),
    };
    let mut truth = truth(1.0);
    truth.0.surroundings.scatter = Some(Scatter::of(&frames));
    let mut latency = curves(&truth, host_page, Bytes::mib(128));
    let of_base = latency.points.iter_mut().filter(|point| point.kind == PageKind::Base);
    of_base.for_each(|point| point.frames = Some(frames.clone()));
    let reads = |latency: &Latency| {
        let table = Machine::by_id("epyc-9655").expect("known");
        let found = here(Some(table), &measured(latency, host_page)).expect("a machine");
        let memory = found.latencies[3].expect("measured");
        assert!(close(memory, 420.0, 0.1), "{memory}");
        found.walk_reads.expect("base pages beside huge ones")
    };
    let known = reads(&latency);
    assert!(close(known, 1.0, 0.15), "{known}");
    // As if in order, each read has to cost more for the same time.
    latency.points.iter_mut().for_each(|point| point.frames = None);
    let assumed = reads(&latency);
    assert!(assumed > 1.2 * known, "{known} {assumed}");
}

#[test]
fn walks_show_beyond_what_others_leave_of_a_large_last_cache() {
    // No point lies beyond four times the cache that is reported, and many beyond what is left of it.
    let host_page = Some(Bytes::kib(4));
    let truth = truth(1.4);
    let latency = curves(&truth, host_page, Bytes::mib(32));
    let table = Machine::by_id("epyc-9655").expect("known");
    let found = here(Some(table), &measured(&latency, host_page)).expect("a machine");
    let reads = found.walk_reads.expect("fitted");
    assert!(close(reads, 1.4, 0.25), "{reads}");
}

#[test]
fn memory_costs_the_same_whether_or_not_a_host_translates() {
    // The curve of 2 MiB pages rises where the host has small ones; memory is what it was.
    let truth = truth(1.0);
    let [bare, guest] = [None, Some(Bytes::kib(4))].map(|host_page| {
        let latency = curves(&truth, host_page, Bytes::mib(128));
        let thp = latency
            .points
            .iter()
            .rev()
            .find(|point| point.kind == PageKind::Thp)
            .expect("a point");
        let last = thp.ns.expect("measured").median;
        let table = Machine::by_id("epyc-9655").expect("known");
        let found = here(Some(table), &measured(&latency, host_page)).expect("a machine");
        (last, found.latencies[3].expect("measured"))
    });
    assert!(guest.0 > 1.05 * bare.0, "{bare:?} {guest:?}");
    assert!(close(guest.1, bare.1, 0.05), "{bare:?} {guest:?}");
}

/// What a Zen 5 guest measured whose host backs it with 4 KiB pages: benches/results/here-zen5-guest.md, in which points that did not converge
/// have no time. MiB, ns on base pages, ns on 2 MiB pages.
const ZEN5_GUEST: [(u64, f64, f64); 19] = [
    (2, 124.6, 79.2),
    (3, 145.3, 148.4),
    (4, 148.6, 149.2),
    (6, 151.9, 149.4),
    (8, 153.1, 150.0),
    (12, 149.7, 149.2),
    (16, 153.0, 149.8),
    (24, 157.3, 152.6),
    (32, 159.4, 156.4),
    (48, 161.9, 159.3),
    (64, 168.0, 159.3),
    (96, 170.8, 161.3),
    (128, 176.4, 161.6),
    (192, 179.8, 0.0),
    (256, 258.4, 183.8),
    (384, 238.9, 185.5),
    (512, 346.5, 231.4),
    (768, 0.0, 234.2),
    (1024, 355.7, 251.7),
];

/// Every second working set makes the machine, and the others are predicted.
#[test]
fn the_curves_of_a_guest_on_small_host_pages_are_predicted_from_half_of_their_points() {
    let points = |is_known: bool| {
        let half = ZEN5_GUEST
            .iter()
            .enumerate()
            .filter(move |(number, _)| (number % 2 == 0) == is_known);
        half.flat_map(|(_, &(mib, base, thp))| {
            [
                (PageKind::Base, Bytes::mib(mib), base),
                (PageKind::Thp, Bytes::mib(mib), thp),
            ]
        })
        .filter(|(_, _, ns)| *ns > 0.0)
        .collect::<Vec<_>>()
    };
    let latency = latency(&near_points().into_iter().chain(points(true)).collect::<Vec<_>>());
    let asked = zen5_guest(&latency);
    let machine = here(Machine::by_id("epyc-9655").ok(), &asked).expect("a machine");
    let off = |(kind, bytes, ns): (PageKind, Bytes, f64)| (predicted(&machine, &asked, kind, bytes) / ns - 1.0).abs();
    let off: Vec<f64> = points(false).into_iter().map(off).collect();
    let within = off.iter().filter(|&&off| off <= 0.15).count();
    // The curve is of a busy host: between 128M and 384M base pages rise, fall and rise again.
    assert!(
        within >= 14 && off.iter().all(|&off| off < 0.3),
        "{within} of {}: {off:?}",
        off.len()
    );
}

type TwoRuns = (u64, [f64; 2], [f64; 2]);

/// Two runs on another Zen 5 guest, minutes apart: MiB, then ns on base pages and on 2 MiB pages of the first run and of the second one. From
/// benches/results/here-zen5-guest.md; points that did not converge have no time.
const TWO_RUNS: [TwoRuns; 19] = [
    (2, [10.1, 10.7], [10.3, 9.2]),
    (3, [12.3, 11.2], [10.7, 11.2]),
    (4, [12.4, 12.6], [11.4, 11.4]),
    (6, [12.7, 12.5], [11.6, 11.9]),
    (8, [12.8, 12.9], [11.8, 11.8]),
    (12, [13.6, 13.1], [12.3, 12.2]),
    (16, [0.0, 18.6], [16.3, 0.0]),
    (24, [86.0, 81.9], [112.1, 83.6]),
    (32, [115.9, 108.7], [124.4, 115.2]),
    (48, [134.3, 129.2], [139.1, 127.5]),
    (64, [140.5, 129.4], [144.4, 136.0]),
    (96, [150.4, 137.1], [152.5, 141.5]),
    (128, [152.3, 140.8], [155.5, 143.6]),
    (192, [158.0, 143.3], [160.8, 147.3]),
    (256, [161.8, 145.3], [165.2, 150.3]),
    (384, [168.4, 147.8], [166.0, 150.7]),
    (512, [166.5, 148.4], [177.2, 153.8]),
    (768, [168.5, 150.3], [171.0, 154.1]),
    (1024, [173.2, 152.4], [182.3, 155.0]),
];

#[test]
fn a_second_run_is_predicted_from_the_first_one() {
    let points = |of: fn(&TwoRuns) -> [f64; 2]| {
        let each = TWO_RUNS.iter().flat_map(move |row| {
            let [base, thp] = of(row);
            [
                (PageKind::Base, Bytes::mib(row.0), base),
                (PageKind::Thp, Bytes::mib(row.0), thp),
            ]
        });
        each.filter(|(_, _, ns)| *ns > 0.0).collect::<Vec<_>>()
    };
    let first = near_points().into_iter().chain(points(|row| row.1));
    let latency = latency(&first.collect::<Vec<_>>());
    let asked = zen5_guest(&latency);
    let machine = here(Machine::by_id("epyc-9655").ok(), &asked).expect("a machine");
    let second = points(|row| row.2);
    let off = second.iter().map(|&(kind, bytes, ns)| {
        let share = predicted(&machine, &asked, kind, bytes) / ns - 1.0;
        (kind, bytes, share)
    });
    let (near, far): (Vec<_>, Vec<_>) = off.partition(|(_, _, share)| share.abs() <= 0.15);
    // The first run itself is within 15 % of the second at 34 of 36 points: 2M on huge pages and 24M on base pages differ.
    assert!(
        near.len() + 3 >= second.len(),
        "{} of {}: {far:?} with {:?}",
        near.len(),
        second.len(),
        machine.caches
    );
}

/// Likewise on an Intel Xeon guest, whose base pages lay on single frames: two runs of `measure latency --budget 60s`, 7 minutes apart on 2026-11-25. Others had
/// most of its last cache.
const XEON_GUEST: [TwoRuns; 10] = [
    (8, [41.8, 0.0], [0.0, 0.0]),
    (16, [0.0, 77.8], [84.4, 92.8]),
    (24, [161.4, 130.6], [149.5, 140.4]),
    (32, [170.7, 0.0], [168.4, 115.8]),
    (64, [193.3, 158.1], [197.2, 154.1]),
    (128, [247.9, 160.0], [235.9, 162.0]),
    (256, [295.2, 168.4], [289.2, 167.9]),
    (512, [315.9, 184.8], [326.5, 184.3]),
    (1024, [370.0, 210.9], [321.6, 0.0]),
    (2048, [0.0, 255.3], [351.1, 254.1]),
];

/// What others leave of a cache of 480 MiB is found from a tenth of it as well, and sooner.
#[test]
fn a_walk_takes_no_longer_than_was_measured_so_that_two_runs_show_one_memory() {
    let tlb = tlb(96, Entries { low: 1792, high: 2048 }, 20.4);
    let machines = [0, 1].map(|run| {
        let points = XEON_GUEST.iter().flat_map(|row| {
            let [base, thp] = [row.1, row.2][run];
            [
                (PageKind::Base, Bytes::mib(row.0), base),
                (PageKind::Thp, Bytes::mib(row.0), thp),
            ]
        });
        let near = [(Bytes::kib(16), 1.25), (Bytes::kib(512), 4.5)].map(|(bytes, ns)| (PageKind::Thp, bytes, ns));
        let points = near.into_iter().chain(points.filter(|(_, _, ns)| *ns > 0.0));
        let mut latency = latency(&points.collect::<Vec<_>>());
        for point in latency.points.iter_mut().filter(|point| point.kind == PageKind::Base) {
            let mut pages_by_run = [0; _];
            pages_by_run[0] = point.bytes.0 >> 12;
            let spread = Bytes::gib(8);
            point.frames = Some(Frames { pages_by_run, spread });
        }
        let asked = Measured {
            tlb: Some((&tlb, "tlb.json")),
            caches: vec![(Bytes::kib(48), 12), (Bytes::mib(2), 16), (Bytes::mib(48), 16)],
            ..measured(&latency, Some(Bytes::kib(4)))
        };
        here(None, &asked).expect("a machine")
    });
    let [one, other] = machines
        .each_ref()
        .map(|machine| machine.latencies[3].expect("measured"));
    assert!(close(one, other, 0.15), "{one} and {other}");
    assert!(
        machines
            .iter()
            .all(|machine| machine.walk.is_some_and(|walk| walk <= 20.4))
    );
}

/// TLBs for base pages: entries of the first level, and of the second one with the cycles of its misses.
fn tlb(first: u32, second: Entries, short_walk: f64) -> Tlb {
    let text = include_str!("../../../../fixtures/results/tlb.json");
    let mut result = serde_json::from_str::<Json>(text).expect("JSON")["data"].take();
    let mut tlb: Tlb = serde_json::from_value(result.take()).expect("a result");
    tlb.levels
        .retain(|level| level.kind == PageKind::Base && level.level == 1);
    tlb.levels[0].entries = Some(Entries::exactly(first));
    let mut behind = tlb.levels[0].clone();
    (behind.level, behind.entries, behind.ways) = (2, Some(second), None);
    behind.miss_cycles = behind.miss_cycles.map(|cycles| Estimate {
        high: short_walk,
        ..cycles
    });
    tlb.levels.push(behind);
    tlb
}

/// Working sets in the near caches of such a guest.
fn near_points() -> [(PageKind, Bytes, f64); 2] {
    [
        (PageKind::Thp, Bytes::kib(16), 4.0368 / GHZ),
        (PageKind::Thp, Bytes::kib(256), 15.885 / GHZ),
    ]
}

fn zen5_guest(latency: &Latency) -> Measured<'_> {
    Measured {
        caches: vec![(Bytes::kib(48), 12), (Bytes::mib(1), 16), (Bytes::mib(32), 16)],
        ..measured(latency, Some(Bytes::kib(4)))
    }
}

/// ns of a step.
fn predicted(machine: &Machine, asked: &Measured<'_>, kind: PageKind, bytes: Bytes) -> f64 {
    let costs = Costs {
        latencies: machine.latencies.map(|latency| latency.expect("measured")),
        l2_tlb_hit: machine.l2_tlb_hit.unwrap_or(7.0),
        walk: machine.walk.expect("two page sizes"),
        walk_reads: machine.walk_reads.expect("two page sizes"),
        error: 0.0,
    };
    let step = Step {
        setting: setting(kind, machine, asked).expect("possible"),
        working_set: bytes.0,
        cycles: 0.0,
        scatter: None,
    };
    costs.cycles(&count(machine, &step)) / GHZ
}
