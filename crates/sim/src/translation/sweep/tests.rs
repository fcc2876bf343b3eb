//! Sweeps: files with their mistakes, numbers of points, shards, and files of points whole, torn and foreign.

use std::collections::BTreeMap;
use std::sync::Mutex;

use model::Bytes;
use proptest::prelude::*;

use super::{Found, LinesError, Plan, Point, Shard, Sweep, merged, read, run, text};
use crate::translation::engine::Mode;
use crate::translation::machine::Machine;
use crate::translation::patterns::Pattern;
use crate::translation::study;

const FILE: &str = "
machines = ['skylake-sp', 'opteron-885']
patterns = ['chase', 'zipf']
working_sets = ['1M', '16M']
modes = ['native', 'nested', 'shadow']
pages = ['4K', '2M']
accesses = 3000
seed = 7
[parameters]
nested_tlb = [4, 64]
mem_cycles = [200, 300]
";

fn plan(text: &str) -> Plan {
    Plan::of_table(Sweep::parse("s.toml", text).expect("a sweep"), 7).expect("a plan")
}

/// The points of a shard as a file, simulated on so many threads.
fn simulated(plan: &Plan, shard: Option<Shard>, threads: usize, done: &Found) -> String {
    let points = Mutex::new(done.points.clone());
    let keep = |new: Vec<Point>| -> Result<(), String> {
        let mut points = points.lock().expect("no panic");
        for point in new {
            let line = serde_json::to_string(&point).expect("JSON");
            assert!(
                points.insert(point.point, (point, line)).is_none(),
                "a point is simulated once"
            );
        }
        Ok(())
    };
    let open = |name: &str| -> Result<std::io::Empty, String> { Err(name.to_owned()) };
    assert!(run(plan, shard, &done.points, threads, &open, &keep).is_ok());
    let mut head = plan.head.clone();
    head.shard = shard;
    text(&head, &points.into_inner().expect("no panic")).expect("JSON")
}

fn shard(text: &str) -> Shard {
    text.parse().expect("a shard")
}

#[test]
fn points_are_the_same_on_any_number_of_threads_and_in_any_shards() {
    let plan = plan(FILE);
    // Skylake has all six settings, the Opteron no nested paging: (6 + 4) x 2 patterns x 2 sizes x 4 parameters.
    assert_eq!(plan.head.points, 160);
    let whole = simulated(&plan, None, 1, &Found::default());
    assert_eq!(whole, simulated(&plan, None, 7, &Found::default()));
    for of in [2, 3, 5] {
        let part = |index: u32| {
            let shard = shard(&format!("{index}/{of}"));
            let text = simulated(&plan, Some(shard), 2, &Found::default());
            (
                shard.to_string(),
                read("part", text.as_bytes(), &plan, Some(Some(shard))).expect("its points"),
            )
        };
        let all = merged(&plan, (1..=of).map(part).collect()).expect("all points");
        assert_eq!(text(&plan.head, &all).expect("JSON"), whole, "{of} shards");
    }
}

#[test]
fn a_point_is_what_the_same_study_gives() {
    let plan = plan(
        "machines = ['8452y']\npatterns = ['random']\nworking_sets = ['64M']\naccesses = 5000\npages = ['4K', '2M']\n",
    );
    let text = simulated(&plan, None, 2, &Found::default());
    let points = read("p", text.as_bytes(), &plan, Some(None)).expect("points").points;
    let study = study::Study {
        machine: Machine::by_id("8452y").expect("known"),
        pattern: Pattern::Random,
        working_sets: vec![model::Bytes::mib(64)],
        settings: plan.head.settings.clone(),
        baseline: plan.head.settings[0],
        accesses: 5000,
        warm_up: 5000,
        seed: 7,
    };
    let simulation = study::run(&study, &|_, _| {}).expect("possible");
    assert_eq!(points.len(), simulation.cases.len());
    for ((point, _), case) in points.values().zip(&simulation.cases) {
        assert_eq!((point.setting, &point.miss_rates), (case.setting, &case.miss_rates));
        assert_eq!((point.cycles, point.references), (case.cycles, case.references));
        assert!((point.total.middle - case.cycles.middle()).abs() < 1e-9);
        assert!(point.total.low <= point.total.middle && point.total.middle <= point.total.high);
    }
}

#[test]
fn parameters_take_the_place_of_the_machines_own() {
    let text = "
machines = ['skylake-sp']
patterns = ['random']
working_sets = ['32M']
modes = ['nested']
pages = ['4K']
accesses = 20000
[parameters]
walk_caches = [[4, 2, 1, 1], [64, 32, 16, 8]]
l2_tlb_size = [0.5, 2]
mem_cycles = [100, 400]
";
    let plan = plan(text);
    let lines = simulated(&plan, None, 2, &Found::default());
    let points = read("p", lines.as_bytes(), &plan, Some(None)).expect("points").points;
    let point = |number: u64| &points[&number].0;
    assert_eq!(points.len(), 8);
    assert_eq!(
        point(0).parameters.words(),
        "walk_caches 4/2/1/1, l2_tlb_size 0.5, mem_cycles 100"
    );
    // Order of the axes: walk caches, size, cycles.
    assert!(point(0).total.middle < point(1).total.middle, "slower memory");
    assert!(point(0).miss_rates[1] > point(2).miss_rates[1], "a larger second level");
    assert!(
        point(0).references.middle > point(4).references.middle,
        "larger walk caches"
    );
    assert_eq!(point(0).reach.0 * 4, point(2).reach.0);
}

#[test]
fn virtual_cpus_and_far_page_tables_are_axes() {
    let text = "
machines = ['skylake-sp']
patterns = ['churn']
working_sets = ['4M', '64M']
modes = ['nested', 'agile']
pages = ['4K']
accesses = 20000
[parameters]
vcpus = [1, 4]
agile_interval = [1000, 1000000]
ipi_cycles = [3000]
remote_tables = [0, 0.5]
remote_cost = [2]
";
    let plan = plan(text);
    let lines = simulated(&plan, None, 2, &Found::default());
    let points = read("p", lines.as_bytes(), &plan, Some(None)).expect("points").points;
    assert_eq!(points.len(), 32);
    let found = |words: &str, mode: Mode| {
        // Nested ones over all 64M; agile ones over two tables, so that each is used again.
        let size = Bytes::mib(if mode == Mode::Agile { 4 } else { 64 });
        let is_it = |point: &&Point| (point.working_set, point.setting.mode) == (Some(size), mode);
        let mut all = points.values().map(|(point, _)| point).filter(is_it);
        all.find(|point| point.parameters.words() == words).expect(words)
    };
    let near = "vcpus 4, agile_interval 1000, ipi_cycles 3000, remote_tables 0, remote_cost 2";
    let far = "vcpus 4, agile_interval 1000, ipi_cycles 3000, remote_tables 0.5, remote_cost 2";
    let one = "vcpus 1, agile_interval 1000, ipi_cycles 3000, remote_tables 0, remote_cost 2";
    assert!(found(near, Mode::Nested).cycles.walks.middle < found(far, Mode::Nested).cycles.walks.middle);
    assert!(found(near, Mode::Nested).shootdowns > 0 && found(one, Mode::Nested).shootdowns == 0);
    let long = "vcpus 1, agile_interval 1000000, ipi_cycles 3000, remote_tables 0, remote_cost 2";
    assert!(found(one, Mode::Agile).exits.total() > found(long, Mode::Agile).exits.total());
}

#[test]
fn a_torn_file_goes_on_from_its_whole_lines_wherever_it_was_cut() {
    let plan = plan(
        "machines = ['8452y']\npatterns = ['chase']\nworking_sets = ['1M', '2M']\nmodes = ['native']\naccesses = 1000\n",
    );
    let whole = simulated(&plan, None, 1, &Found::default());
    for end in 0..whole.len() {
        let found = read("p", &whole.as_bytes()[..end], &plan, Some(None)).expect("torn, not foreign");
        let kept = usize::try_from(found.kept).expect("a length");
        assert!(whole[..kept].is_empty() || whole[..kept].ends_with('\n'), "{end}");
        assert_eq!(found.is_torn, kept < end, "{end}");
        assert_eq!(
            found.points.len(),
            whole[..kept].lines().count().saturating_sub(1),
            "{end}"
        );
    }
    let cut = read("p", &whole.as_bytes()[..whole.len() - 30], &plan, Some(None)).expect("torn");
    assert_eq!((cut.points.len(), cut.is_torn), (5, true));
    assert_eq!(simulated(&plan, None, 2, &cut), whole, "the rest is simulated");
}

#[test]
fn foreign_files_are_refused_with_what_differs() {
    let sweep =
        "machines = ['8452y']\npatterns = ['chase']\nworking_sets = ['1M']\nmodes = ['native']\naccesses = 1000\n";
    let mine = plan(sweep);
    let refused = |bytes: &[u8], part: Option<Option<Shard>>| {
        read("p.jsonl", bytes, &mine, part).expect_err("refused").to_string()
    };
    let other = simulated(&plan(&sweep.replace("1M", "2M")), None, 1, &Found::default());
    let why = refused(other.as_bytes(), Some(None));
    assert!(
        why.contains("p.jsonl") && why.contains("its working_sets: `2M`, expected `1M`"),
        "{why}"
    );
    let text = simulated(&mine, Some(shard("1/2")), 1, &Found::default());
    let why = refused(text.as_bytes(), Some(None));
    assert!(why.contains("it is for shard 1/2, expected the whole sweep"), "{why}");
    assert!(refused(b"hello\n", Some(None)).contains("line 1"));
    assert!(
        refused(b"hello", Some(None)).contains("line 1"),
        "another's file is not cut"
    );
    let whole = simulated(&mine, None, 1, &Found::default());
    let why = refused(
        whole
            .replace("\"working_set\":1048576", "\"working_set\":1048577")
            .as_bytes(),
        Some(None),
    );
    assert!(why.contains("line 2") && why.contains("other inputs"), "{why}");
    let garbled = whole.replacen("\"point\":1,", "\"point\":x,", 1);
    assert!(refused(garbled.as_bytes(), Some(None)).contains("line 3"));
}

#[test]
fn merging_says_what_is_missing_or_contradicts() {
    let plan = plan(
        "machines = ['8452y']\npatterns = ['chase']\nworking_sets = ['1M']\nmodes = ['native']\naccesses = 1000\n",
    );
    let of = |index: &str| {
        let text = simulated(&plan, Some(shard(index)), 1, &Found::default());
        (
            index.to_owned(),
            read(index, text.as_bytes(), &plan, None).expect("points"),
        )
    };
    let (first, second) = (of("1/2"), of("2/2"));
    let why = merged(&plan, vec![first.clone()]).expect_err("incomplete").to_string();
    assert!(why.contains("1 of 3 points") && why.contains("point 1"), "{why}");
    assert!(
        merged(&plan, vec![first.clone(), second.clone(), first.clone()]).is_ok(),
        "the same twice is the same"
    );
    let mut other = first.clone();
    other.1.points.values_mut().for_each(|(_, line)| line.push(' '));
    assert!(matches!(
        merged(&plan, vec![first, second, other]),
        Err(LinesError::Differs { line: 2, point: 0, .. })
    ));
}

const GOOD: &str = "machines = ['8452y']\npatterns = ['chase']\nworking_sets = ['1M']\n";

/// Why a file is not taken.
fn refused(text: &str) -> String {
    match Sweep::parse("s.toml", text).and_then(|sweep| Plan::of_table(sweep, 1)) {
        Ok(_) => panic!("{text}: taken"),
        Err(why) => why.to_string(),
    }
}

#[test]
fn mistakes_name_file_and_line_and_what_is_expected() {
    let good = GOOD;
    for (text, parts) in [
        (
            good.replace("8452y", "8452x"),
            ["s.toml: line 1", "`8452x` is neither a CPU"],
        ),
        (good.replace("1M", "64"), ["s.toml: line 3", "the unit is missing"]),
        (good.replace("1M", "4K"), ["line 3", "expected at least 64K"]),
        (good.replace("chase", "chaise"), ["line 2", "`chaise` is no pattern"]),
        (
            good.replace("'1M'", ""),
            ["line 3", "working_sets is empty: expected at least one value"],
        ),
        (
            good.replace("'1M'", "'1M', '1024K'"),
            ["line 3", "stands there twice (line 3)"],
        ),
        (
            format!("{good}\nmodes = ['native',\n'nestled']"),
            ["line 6", "`nestled` is no mode"],
        ),
        (format!("{good}pages = ['3K']"), ["line 4", "is no page size"]),
        (format!("{good}pages = ['8K']"), ["line 4", "has no pages of 8K"]),
        (
            format!("{good}guest_pages = ['4K']"),
            ["s.toml", "host_pages go together"],
        ),
        (
            format!("{good}baseline = 'shadow:4K/4K'"),
            ["line 4", "is none of the modes"],
        ),
        (format!("{good}accesses = 0"), ["line 4", "expected at least 1"]),
        (
            format!("{good}[parameters]\nmem_cycles = [0]"),
            ["line 5", "expected a number above 0"],
        ),
        (
            format!("{good}[parameters]\nmem_cycle = [3]"),
            ["line 5", "unknown field"],
        ),
        (
            format!("{good}[parameters]\nl2_tlb_size = [0.001]"),
            ["s.toml", "l2_tlb_size"],
        ),
        (good.replace("machines", "#"), ["s.toml", "no machines"]),
        (good.replace("patterns", "#"), ["s.toml", "no input"]),
        (
            good.replace("working_sets", "#"),
            ["s.toml", "patterns need working sets"],
        ),
        (
            good.replace("['8452y']", "['opteron-885']\nmodes = ['nested']"),
            ["line 2", "no nested paging"],
        ),
    ] {
        let why = refused(&text);
        assert!(parts.iter().all(|part| why.contains(part)), "{text}: {why}");
    }
}

#[test]
fn too_many_combinations_are_refused() {
    let many: Vec<String> = (1..=900).map(|size| format!("'{size}M'")).collect();
    let numbers: Vec<String> = (1..=100).map(|number| number.to_string()).collect();
    let text = format!(
        "{}[parameters]\nmem_cycles = [{}]",
        GOOD.replace("'1M'", &many.join(",")),
        numbers.join(",")
    );
    assert!(refused(&text).contains("more than 100000 combinations"));
}

#[test]
fn guest_and_host_pages_are_crossed_but_not_natively() {
    let text = "machines = ['8452y']\npatterns = ['chase']\nworking_sets = ['1M']\nguest_pages = ['4K', '2M']\nhost_pages = ['4K', '1G']\nbaseline = 'nested:4K/1G'\n";
    let sweep = Sweep::parse("s.toml", text).expect("a sweep");
    let settings: Vec<String> = sweep.settings.iter().map(|setting| setting.value.to_string()).collect();
    assert_eq!(
        settings,
        [
            "native:4K",
            "native:2M",
            "nested:4K/4K",
            "nested:4K/1G",
            "nested:2M/4K",
            "nested:2M/1G"
        ]
    );
    assert_eq!(sweep.baseline.mode, Mode::Nested);
}

#[test]
fn shards_are_read_as_they_are_written() {
    for text in ["1/1", "1/4", "4/4"] {
        assert_eq!(shard(text).to_string(), text);
    }
    for text in ["3/2", "0/2", "1/0", "1", "/", "a/b", "-1/2", "1/2/3"] {
        let why = text.parse::<Shard>().expect_err("no shard");
        assert!(why.contains(text) && why.contains("1/4"), "{why}");
    }
}

proptest! {
    #[test]
    fn no_bytes_bring_down_a_reader(text in ".{0,300}") {
        let _ = Sweep::parse("any", &text);
        let plan = plan("machines = ['8452y']\npatterns = ['chase']\nworking_sets = ['1M']\n");
        let _ = read("any", text.as_bytes(), &plan, None);
    }

    #[test]
    fn every_point_is_in_one_shard(of in 1_u32..9) {
        let plan = plan(FILE);
        let mut counts: BTreeMap<u64, u32> = BTreeMap::new();
        for index in 1..=of {
            plan.numbers(Some(Shard { index, of })).for_each(|number| *counts.entry(number).or_default() += 1);
        }
        prop_assert_eq!(counts.len() as u64, plan.head.points);
        prop_assert!(counts.values().all(|&count| count == 1));
    }
}
