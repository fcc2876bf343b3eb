//! Scenario files: what is left out has a usual value, and mistakes have a line.

use model::Bytes;

use super::parse;
use crate::host_memory::{Pages, Policy, States};

const WHOLE: &str = "seconds = 600
step_ms = 500
policies = ['break-all', 'ksm']
states = 'esx-5'

[host]
memory = '64G'
used = '2G'
fragmented = 0.25

[rates]
swap_mb_s = 100

[ksm]
pages_to_scan = 1000

[khugepaged]
max_ptes_shared = 100

[[vm]]
name = 'web'
count = 3
memory = '4G'
common = 0.3
content = 'linux'

[[vm]]
name = 'db'
memory = '16G'
pages = '1G'
reservation = 'full'
shares = 5000
";

fn error(from: &str, to: &str) -> String {
    assert!(WHOLE.contains(from), "{from}");
    parse("mine.toml", &WHOLE.replace(from, to), &[], 1)
        .expect_err(to)
        .to_string()
}

#[test]
fn a_file_says_it_all() {
    let scenario = parse("mine.toml", WHOLE, &[], 9).expect("a scenario");
    assert_eq!((scenario.duration_ns, scenario.step_ns), (600_000_000_000, 500_000_000));
    assert_eq!(scenario.policies, [Policy::BreakAll, Policy::Ksm]);
    assert_eq!((scenario.states, scenario.seed), (States::Esx5, 9));
    assert_eq!(
        (scenario.host.memory, scenario.host.fragmented),
        (Bytes::gib(64), 1 << 14)
    );
    assert_eq!((scenario.rates.swap, scenario.rates.balloon), (25_600, 65_536));
    assert_eq!((scenario.ksm.pages_to_scan, scenario.ksm.sleep_millisecs), (1000, 20));
    assert_eq!(scenario.khugepaged.max_ptes_shared, 100);
    let names: Vec<&str> = scenario.vms.iter().map(|vm| vm.name.as_str()).collect();
    assert_eq!(names, ["web-1", "web-2", "web-3", "db"]);
    assert_eq!(
        (scenario.vms[1].group.as_str(), scenario.vms[3].pages),
        ("linux", Pages::Giant)
    );
    assert_eq!((scenario.vms[3].shares, scenario.vms[0].shares), (5000, 40_960));
    let other = parse("mine.toml", WHOLE, &[Policy::Linux], 9).expect("a scenario");
    assert_eq!(other.policies, [Policy::Linux]);
}

#[test]
fn mistakes_have_a_file_a_line_and_what_is_expected() {
    for (from, to, parts) in [
        ("memory = '64G'", "memory = '64'", ["line 7", "the unit is missing"]),
        ("used = '2G'", "used = '64G'", ["line 7", "expected less"]),
        ("'ksm']", "'kms']", ["line 3", "write never-break"]),
        ("'esx-5'", "'esx-7'", ["line 4", "write esx-2002"]),
        ("seconds = 600", "seconds = 0", ["line 1", "expected 0.001"]),
        ("fragmented = 0.25", "fragmented = 1.5", ["line 9", "expected 0 to 1"]),
        ("swap_mb_s = 100", "swap_mb_s = -1", ["line 12", "expected 0"]),
        (
            "pages_to_scan = 1000",
            "pages_to_scan = 0",
            ["line 15", "expected a whole number from 1"],
        ),
        (
            "max_ptes_shared = 100",
            "max_ptes_shared = 512",
            ["line 18", "from 0 to 511"],
        ),
        ("memory = '4G'", "memory = '3M'", ["line 20", "whole number of 2M"]),
        ("common = 0.3", "common = 1.3", ["line 24", "expected 0 to 1"]),
        ("common = 0.3", "common = 1.0", ["line 20", "expected at most 1"]),
        (
            "shares = 5000",
            "shares = -1",
            ["line 32", "expected a whole number from 1"],
        ),
        (
            "reservation = 'full'",
            "reservation = 'half'",
            ["line 31", "expected full or none"],
        ),
        (
            "reservation = 'full'\n",
            "",
            ["line 30", "expected reservation = \"full\""],
        ),
        ("memory = '16G'", "memory = '66G'", ["line 6", "expected at most 62G"]),
        ("count = 3", "counts = 3", ["line 22", "expected"]),
    ] {
        let error = error(from, to);
        assert!(error.starts_with("mine.toml"), "{error}");
        for part in parts {
            assert!(error.contains(part), "{to}: {error}");
        }
    }
}

#[test]
fn a_cpu_that_is_not_known_is_named_with_its_line() {
    let text = format!("{WHOLE}\n[translation]\nmachine = 'pentium'\n");
    let error = parse("mine.toml", &text, &[], 1).expect_err("no such CPU").to_string();
    assert!(error.contains("line 35") && error.contains("xeon-8452y"), "{error}");
    let usual = parse("mine.toml", &text.replace("machine = 'pentium'", ""), &[], 1);
    assert!(usual.is_ok(), "{usual:?}");
}

proptest::proptest! {
    #[test]
    fn no_text_makes_it_panic(text in ".{0,200}", cut in 0_usize..500) {
        let _ = parse("any", &text, &[], 1);
        let _ = parse("cut", WHOLE.get(..cut.min(WHOLE.len())).unwrap_or_default(), &[], 1);
    }
}
