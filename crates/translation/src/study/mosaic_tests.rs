//! A mosaic of base and huge pages lies between both, where its ranges say.

use model::Bytes;

use super::{Setting, engine};
use crate::Mode;
use crate::engine::Counts;
use crate::machine::Machine;
use crate::random::{Chance, mixed};
use crate::{Access, Scatter, Side};

const BASE: Bytes = Bytes::kib(4);
const LARGE: Bytes = Bytes::mib(2);
const PERCENT: u8 = 30;
/// Ranges of 2 MiB in the memory that is used.
const RANGES: u64 = 512;

fn is_huge(range: u64) -> bool {
    mixed(range) % 100 < PERCENT.into()
}

/// Accesses anywhere in some of the ranges.
fn accesses(is_in: impl Fn(u64) -> bool) -> Vec<Access> {
    let ranges: Vec<u64> = (0..RANGES).filter(|&range| is_in(range)).collect();
    let mut chance = Chance::new(1);
    let mut anywhere = || {
        let range = ranges[chance.below(ranges.len() as u64) as usize];
        let side = Side::ALL[chance.below(2) as usize];
        Access::new(range << 21 | chance.below(LARGE.0) & !63, side)
    };
    (0..40_000).map(|_| anywhere()).collect()
}

fn counted(setting: Setting, accesses: &[Access]) -> Counts {
    let mut machine = Machine::by_id("skylake-sp").expect("known");
    machine.scatter = Some(Scatter::even(4.0, Bytes::gib(1)));
    let mut engine = engine(&machine, setting);
    engine.run_stored(accesses);
    engine.counts()
}

#[test]
fn ranges_of_one_kind_alone_cost_what_a_run_on_such_pages_costs() {
    let (huge, base) = (accesses(is_huge), accesses(|range| !is_huge(range)));
    for mode in [Mode::Native, Mode::Nested, Mode::Shadow] {
        for host in [BASE, LARGE, Bytes::gib(1)] {
            let mosaic = Setting::new(mode, BASE, host).with_share(PERCENT);
            for (page, accesses) in [(LARGE, &huge), (BASE, &base)] {
                let alone = counted(Setting::new(mode, page, host), accesses);
                assert_eq!(counted(mosaic, accesses), alone, "{mosaic}: {page}");
            }
        }
    }
}

#[test]
fn far_above_reach_a_share_of_huge_pages_saves_that_share_of_the_walks() {
    let all = accesses(|_| true);
    let walks = |setting: Setting| counted(setting, &all).walkers[0].walks as f64;
    let base = Setting::new(Mode::Native, BASE, BASE);
    let large = Setting::new(Mode::Native, LARGE, LARGE);
    let huge = (0..RANGES).filter(|&range| is_huge(range)).count() as f64 / RANGES as f64;
    let (mosaic, base, large) = (walks(base.with_share(PERCENT)), walks(base), walks(large));
    assert!(
        base > 0.98 * all.len() as f64 && large < 0.02 * all.len() as f64,
        "{base} {large}"
    );
    let ratio = mosaic / base;
    assert!((ratio - (1.0 - huge)).abs() < 0.02, "{ratio} beside a share of {huge}");
}

#[test]
fn on_small_host_pages_a_share_saves_reads_of_the_guests_table_and_no_misses() {
    let all = accesses(|_| true);
    let nested = |page| Setting::new(Mode::Nested, page, BASE);
    let [base, mosaic, large] = [nested(BASE), nested(BASE).with_share(PERCENT), nested(LARGE)];
    let [base, mosaic, large] = [base, mosaic, large].map(|setting| counted(setting, &all));
    assert_eq!(mosaic.levels, base.levels, "the host's page splinters all");
    let reads = |counts: &Counts| counts.walkers[0].guest_references;
    assert!(reads(&large) < reads(&mosaic) && reads(&mosaic) < reads(&base));
}
