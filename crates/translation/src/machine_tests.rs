//! Every CPU of the table can be simulated, and files say what is different.

use model::Bytes;

use super::{Machine, MachineError, RowReading, known};
use crate::{Cache, WalkCaches};

const SIZES: [Bytes; 3] = [Bytes::kib(4), Bytes::mib(2), Bytes::gib(1)];

#[test]
fn every_cpu_with_known_tlbs_is_a_machine() {
    assert_eq!(known().len(), 18);
    for id in known() {
        let machine = Machine::by_id(id).expect(id);
        assert!(machine.entries(SIZES[0])[0] > 0, "{id}");
        assert!(machine.walk_caches.is_none(), "{id}: no table has them");
        assert!(matches!(machine.page_levels, 4 | 5), "{id}");
    }
    for id in ["x5560", "8452Y", "gold-6330", "opteron-885"] {
        assert!(
            Machine::by_id(id).is_ok_and(|machine| machine.id.ends_with(&id.to_lowercase())),
            "{id}"
        );
    }
}

#[test]
fn entries_are_those_that_hardware_has_not_those_that_rows_add_up_to() {
    let entries = |id: &str| SIZES.map(|page| Machine::by_id(id).expect(id).entries(page));
    assert_eq!(entries("xeon-8452y"), [[64, 2048], [32, 1024], [8, 1024]]);
    assert_eq!(entries("epyc-9654"), [[72, 3072], [72, 3072], [72, 64]]);
    assert_eq!(entries("opteron-885"), [[32, 512], [8, 0], [0, 0]]);
    assert_eq!(entries("xeon-x5560"), [[64, 512], [32, 0], [0, 0]]);
    assert_eq!(entries("neoverse-n1")[0], [48, 1280]);
    let reach = |id: &str, page: usize| Machine::by_id(id).expect(id).reach(SIZES[page]);
    assert_eq!(
        (reach("opteron-885", 1), reach("xeon-x5560", 1)),
        (Bytes::mib(16), Bytes::mib(64))
    );
    let spr = Machine::by_id("8452y").expect("known");
    assert_eq!(spr.readings, [RowReading::Halves]);
    assert!(!spr.has_unknown_cache && spr.caches.len() == 3);
    assert_eq!((spr.page_levels, spr.host_page_levels), (5, 4));
    let turin = Machine::by_id("epyc-9655").expect("known");
    assert_eq!((turin.page_levels, turin.host_page_levels), (5, 5));
}

#[test]
fn a_file_says_what_differs_from_a_cpu() {
    let text = "like = 'xeon-8452y'\nwalk_caches = [32, 8, 4, 2]\nl2_tlb_hit_cycles = 7\n\
                [latency_cycles]\nl1 = 5\n[[cache]]\nlevel = 1\nkind = 'data'\nkib = 32\nways = 8\n";
    let machine = Machine::parse("mine.toml", text).expect("a machine");
    assert_eq!(machine.walk_caches, Some(WalkCaches([32, 8, 4, 2])));
    assert_eq!(
        (machine.latencies[0], machine.latencies[1], machine.l2_tlb_hit),
        (Some(5.0), None, Some(7.0))
    );
    assert_eq!(machine.caches, [Cache::new(64, 8)]);
    assert_eq!((machine.entries(SIZES[0]), machine.page_levels), (vec![64, 2048], 5));
    assert!(machine.name.contains("8452Y") && machine.source.last().is_some_and(|last| last == "mine.toml"));
}

#[test]
fn a_whole_machine_can_be_in_a_file() {
    let text = "[[tlb]]\nlevel = 1\nkind = 'data'\npages = ['4K']\nentries = 64\nways = 4\n\
                [[tlb]]\nlevel = 2\nkind = 'unified'\npages = ['4K', '2M']\nentries = 1536\nways = 12\n\
                [[cache]]\nlevel = 1\nkind = 'data'\nkib = 32\nways = 8\n";
    let machine = Machine::parse("own.toml", text).expect("a machine");
    assert_eq!(
        (machine.entries(SIZES[0]), machine.entries(SIZES[1])),
        (vec![64, 1536], vec![0, 1536])
    );
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    for (text, words) in [
        ("page_levls = 4\n", &["bad.toml", "line 1", "page_levls"][..]),
        ("like = 'xeon-9999'\n", &["xeon-9999", "xeon-8452y"]),
        (
            "page_levels = 7\nlike = 'skylake-sp'\n",
            &["bad.toml", "page_levels is 7"],
        ),
        ("name = 'none'\n", &["bad.toml", "TLB"]),
        (
            "[[tlb]]\nlevel = 1\nkind = 'data'\npages = ['4']\nentries = 64\nways = 4\n",
            &["bad.toml", "line 4", "unit"],
        ),
        (
            "[[tlb]]\nlevel = 1\nkind = 'data'\npages = ['4K']\nentries = 64\nways = 5\n",
            &["bad.toml", "64", "5 ways"],
        ),
        (
            "[[tlb]]\nlevel = 1\nkind = 'data'\npages = ['4K']\nentries = 0\nways = 0\n",
            &["bad.toml", "0 entries"],
        ),
        (
            "[[tlb]]\nlevel = 1\nkind = 'data'\npages = ['4K']\nentries = 1000000000\nways = 'full'\n",
            &["bad.toml", "1000000000 entries", "at most 65,536 entries"],
        ),
        (
            "[[tlb]]\nlevel = 1\nkind = 'data'\npages = ['4K']\nentries = 64\nways = 4\n",
            &["bad.toml", "no data cache", "[[cache]]"],
        ),
        (
            "like = 'skylake-sp'\n[latency_cycles]\nl2 = -4\n",
            &["bad.toml", "latency_cycles.l2 is -4", "to 10000"],
        ),
        (
            "like = 'skylake-sp'\n[latency_cycles]\nmem = nan\n",
            &["bad.toml", "latency_cycles.mem is NaN"],
        ),
        (
            "like = 'skylake-sp'\n[latency_cycles]\nmem = 40\n",
            &["bad.toml", "latency_cycles.mem is 40", "expected 75"],
        ),
        (
            "like = 'skylake-sp'\nwalk_cycles = inf\n",
            &["bad.toml", "walk_cycles is inf"],
        ),
        (
            "like = 'skylake-sp'\nwalk_caches = [1000000000, 1, 1, 1]\n",
            &["bad.toml", "walk_caches is 1000000000"],
        ),
    ] {
        let error = Machine::parse("bad.toml", text).expect_err(text).to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    }
    assert!(matches!(Machine::by_id("neoverse-v1"), Err(MachineError::NoTlb(_))));
}

#[test]
fn other_cpus_and_nodes_are_within_bounds() {
    let parse = |line: &str| Machine::parse("a.toml", &format!("like = \"skylake-sp\"\n{line}"));
    for (line, why) in [
        ("vcpus = 0", "vcpus is 0, expected 1 to 1024"),
        ("vcpus = 1025", "vcpus is 1025, expected 1 to 1024"),
        ("ipi_exits = 3", "ipi_exits is 3, expected 0 to 2"),
        ("ipi_cycles = -1", "ipi_cycles is -1, expected 0 to"),
        (
            "remote_tables = 1.5\nremote_cost = 2",
            "remote_tables is 1.5, expected 0 to 1",
        ),
        ("remote_tables = 0.5", "remote_tables needs remote_cost"),
        ("remote_cost = 0.5", "remote_cost is 0.5, expected 1 to 1000"),
        ("frame_run = 2", "frame_run and frame_spread: give both or none"),
        ("frame_spread = \"1G\"", "frame_run and frame_spread: give both or none"),
        (
            "frame_run = 0.5\nframe_spread = \"1G\"",
            "frame_run is 0.5, expected 1 to 512",
        ),
    ] {
        let error = parse(line).expect_err(line).to_string();
        assert!(error.starts_with("a.toml: ") && error.contains(why), "{error}");
    }
    let machine = parse("vcpus = 4\nremote_tables = 0.25\nremote_cost = 2").expect("a machine");
    assert_eq!((machine.vcpus, machine.table_memory), (4, 1.25));
}
