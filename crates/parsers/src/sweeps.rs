//! Files of sweeps, and of their points.

use std::sync::LazyLock;

use sim::translation::sweep::{self, MOST_POINTS, Plan, Sweep};

const SWEEP: &str = include_str!("../seeds/sweep/modes.toml");

static PLAN: LazyLock<Plan> = LazyLock::new(|| plan(SWEEP).expect("a plan"));

fn plan(text: &str) -> Option<Plan> {
    let sweep = Sweep::parse("sweep.toml", text).ok()?;
    Plan::of_table(sweep, 7).ok()
}

/// Any text is a sweep of numbered points, or an error that names the file.
pub(crate) fn sweep(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match Sweep::parse("sweep.toml", &text).and_then(|sweep| Plan::of_table(sweep, 7)) {
        Ok(plan) => {
            let points = plan.head.points;
            assert!((1..=MOST_POINTS).contains(&points));
            assert!(plan.numbers(None).eq(0..points));
        }
        Err(error) => assert!(error.to_string().starts_with("sweep.toml: "), "{error}"),
    }
}

/// Any bytes are points of a sweep, of which whole lines are kept, or an error that names the file.
pub(crate) fn points(bytes: &[u8]) {
    match sweep::read("points.jsonl", bytes, &PLAN, None) {
        Ok(found) => {
            let kept = &bytes[..usize::try_from(found.kept).expect("a length")];
            assert!(kept.is_empty() || kept.ends_with(b"\n"));
            assert_eq!(found.is_torn, kept.len() < bytes.len());
            assert!(found.points.keys().all(|&number| number < PLAN.head.points));
            let text = sweep::text(&PLAN.head, &found.points).expect("JSON");
            let again = sweep::read("points.jsonl", text.as_bytes(), &PLAN, Some(None)).expect("what was written");
            assert_eq!(again.points, found.points);
        }
        Err(error) => assert!(error.to_string().contains("points.jsonl: "), "{error}"),
    }
}

/// A file with one point, whole and cut.
pub(crate) fn files() -> Vec<Vec<u8>> {
    let point = serde_json::json!({
        "point": 0, "seed": 7, "machine": "8452y", "input": "chase", "working_set": 1 << 20,
        "setting": {"mode": "native", "guest_page": 4096, "host_page": null}, "parameters": {"mem_cycles": 200.0},
        "accesses": 100, "warm_up": 100, "entry": 4096, "reach": 4096, "miss_rates": [0.5, 0.25],
        "references_per_walk": {"low": 1.0, "middle": 1.0, "high": 1.5}, "references": {"low": 1.0, "middle": 1.0, "high": 1.5},
        "exits": {"hidden_faults": 0, "table_writes": 0, "invalidations": 0, "switches": 0},
        "cycles": {
            "data": {"low": 1.0, "middle": 1.0, "high": 1.5}, "tlb": {"low": 1.0, "middle": 1.0, "high": 1.5},
            "walks": {"low": 1.0, "middle": 1.0, "high": 1.5}, "exits": {"low": 0.0, "middle": 0.0, "high": 0.0},
        },
        "total": {"low": 3.0, "middle": 3.0, "high": 4.5},
    });
    let head = sweep::text(&PLAN.head, &std::collections::BTreeMap::new()).expect("JSON");
    let whole = format!("{head}{point}\n");
    vec![
        whole.as_bytes().to_vec(),
        whole.as_bytes()[..whole.len() - 9].to_vec(),
        head.into_bytes(),
    ]
}
