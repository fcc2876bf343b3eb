//! What is said of costs of moves and of contention.

use model::latency::{Backed, Bound};
use model::migration::{Contention, Migration, Mix, Moves, Point};
use model::placement::Kind;
use model::{Backing, Bytes, Estimate, PageKind};

use crate::show::Show;
use draw::Look;

pub(super) fn migration() -> Migration {
    let estimate = |median: f64| Estimate {
        median,
        low: median * 0.9,
        high: median * 1.1,
        samples: 7,
    };
    let point = |bytes, cost_ns, bound, not_measured| Point {
        kind: Kind::SameLlc,
        bytes,
        stay_ns: Some(estimate(800.0)),
        moved_ns: Some(estimate(9000.0)),
        cost_ns,
        bound,
        not_measured,
        moves: 70,
        dropped: 1,
        backing: Backed {
            asked: PageKind::Base,
            got: Backing::new(),
            proof: "none".to_owned(),
        },
    };
    let bound = Bound {
        low: None,
        high: Some(7000.0),
    };
    Migration {
        cpus: vec![0, 1],
        kinds: vec![Moves {
            kind: Kind::SameLlc,
            pairs: vec![[0, 1]],
            call_ns: Some(estimate(4000.0)),
        }],
        absent: vec![Kind::SmtSibling, Kind::OtherNode],
        page: PageKind::Base,
        points: vec![
            point(Bytes::kib(16), Some(estimate(8200.0)), None, None),
            point(Bytes::kib(64), None, Some(bound), None),
            point(Bytes::mib(1), None, None, Some("one visit".to_owned())),
        ],
        contention: Vec::new(),
        rounds: 7,
        seconds: 1.0,
    }
}

#[test]
fn costs_bounds_reasons_and_absent_kinds_are_all_said() {
    let text = migration().text(Look::plain(200));
    for part in [
        "8.2",
        "7.38 to 9.02",
        "at most 7",
        "1M to a core at the same last-level cache: one visit",
        "no move to: the SMT sibling; another NUMA node",
        "0 and 1",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn the_chart_has_the_points_with_a_number_and_csv_all() {
    let migration = migration();
    assert_eq!(migration.figures()[0].series[0].dots.len(), 1);
    let (heads, rows) = migration.csv();
    assert_eq!((heads.len(), rows.count()), (12, 3));
}

#[test]
fn contention_is_a_matrix_on_a_terminal_and_a_list_with_intervals_in_a_report() {
    let mut migration = migration();
    let estimate = |median: f64| {
        Some(Estimate {
            median,
            low: median - 0.03,
            high: median + 0.02,
            samples: 9,
        })
    };
    let case = |mix, beside, share| Contention {
        kind: Kind::SameLlc,
        cpus: [0, 1],
        mix,
        beside,
        share,
        again: estimate(1.0),
    };
    migration.contention = vec![
        case(Mix::FpMultiply, Mix::FpMultiply, estimate(0.52)),
        case(Mix::FpMultiply, Mix::L1Load, None),
    ];
    let look = Look::plain(200);
    let text = migration.text(look);
    for part in ["CPU 0 beside CPU 1", "FP multiply", "0.52", "up to 0.03"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let list: Vec<_> = migration.sheets().into_iter().skip(2).collect();
    assert_eq!(list.len(), 1);
}
