//! What must hold of memory at every step, and what each policy and each kernel thread does.

use proptest::prelude::*;

use super::engine::{Engine, SECOND};
use super::region::{Backing, CLASSES, Class, Place};
use super::scenario::WHOLE;
use super::states::Level;
use super::{
    Amounts, Content, Host, HostMemory, Khugepaged, Ksm, Outcome, PAGES, Pages, Policy, Rates, Scenario, States,
    Translation, Vm, simulate,
};
use model::Bytes;
use translation::Mode;
use translation::machine::Machine;
use translation::patterns::Pattern;

fn host(memory: Bytes) -> Host {
    Host {
        memory,
        used: Bytes::mib(64),
        large_pages: true,
        fragmented: 0,
    }
}

fn parts(part: f64) -> u32 {
    (part * f64::from(WHOLE)) as u32
}

fn content(zero: f64, common: f64, volatile: f64, clustered: f64) -> Content {
    Content {
        zero: parts(zero),
        common: parts(common),
        volatile: parts(volatile),
        clustered: parts(clustered),
    }
}

fn vm(name: &str, memory: Bytes) -> Vm {
    Vm {
        group: "all".to_owned(),
        salt: Some("all".to_owned()),
        ..Vm::new(name, memory)
    }
}

fn vms(count: usize, memory: Bytes) -> Vec<Vm> {
    (0..count).map(|number| vm(&format!("vm-{number}"), memory)).collect()
}

fn for_seconds(seconds: u64, host: Host, vms: Vec<Vm>, policies: &[Policy]) -> Scenario {
    Scenario {
        policies: policies.to_vec(),
        duration_ns: seconds * SECOND,
        ..Scenario::new(host, vms, 7)
    }
}

fn run(scenario: &Scenario) -> HostMemory {
    simulate(scenario).expect("a scenario that adds up")
}

fn only(scenario: &Scenario) -> Outcome {
    run(scenario).outcomes.pop().expect("a policy")
}

/// Every page of every machine is in one place, and memory is what all of them use.
fn check_pages(engine: &Engine<'_>) -> Result<(), TestCaseError> {
    let (mut small, mut large, mut zipped, mut zeros) = (0, 0, 0, 0);
    let mut copies: Vec<Vec<u32>> = engine.chunks.iter().map(|chunks| vec![0; chunks.len()]).collect();
    let mut sharers = copies.clone();
    for machine in &engine.machines {
        let mut places = [0_u64; 6];
        for (number, region) in machine.regions.iter().enumerate() {
            prop_assert_eq!(region.total(), PAGES);
            for (place, sum) in super::region::PLACES.iter().zip(&mut places) {
                *sum += u64::from(region.at(*place));
            }
            match region.backing {
                Backing::Large | Backing::Giant => {
                    large += 1;
                    prop_assert_eq!(region.at(Place::Own), PAGES, "a huge page is whole");
                }
                Backing::Small => small += u64::from(region.at(Place::Own)),
                Backing::None => {
                    let here = region.at(Place::Own) + region.at(Place::Shared);
                    prop_assert_eq!(here + region.at(Place::Swapped) + region.at(Place::Compressed), 0);
                }
            }
            prop_assert_eq!(region.count(Class::Unique, Place::Shared), 0);
            prop_assert_eq!(region.count(Class::Volatile, Place::Shared), 0);
            zeros += u64::from(region.count(Class::Zero, Place::Shared));
            zipped += u64::from(region.at(Place::Compressed));
            let has_common = CLASSES.contains(&Class::Common) && machine.has_common(number as u32);
            copies[machine.group][number] += u32::from(has_common && region.backing != Backing::None);
            let shared = region.count(Class::Common, Place::Shared);
            sharers[machine.group][number] = sharers[machine.group][number].max(shared);
        }
        prop_assert_eq!(places, machine.places);
    }
    let most = if engine.policy.is_linux() {
        engine.scenario.ksm.max_page_sharing
    } else {
        u32::MAX
    };
    let shared = check_chunks(engine, &copies, &sharers, most)?;
    let zero_frames = match engine.policy.is_linux() && engine.scenario.ksm.zeros_are_free() {
        true => 0,
        false => zeros.div_ceil(u64::from(most)),
    };
    prop_assert_eq!(engine.zeros, zeros);
    prop_assert_eq!(engine.zipped, zipped);
    prop_assert_eq!(engine.shared_frames, shared + zero_frames);
    let frames = &engine.frames;
    prop_assert!(frames.adds_up());
    prop_assert_eq!(frames.large, large);
    let background = engine.fragmented_pages();
    prop_assert_eq!(
        frames.small,
        small + engine.shared_frames + zipped.div_ceil(2) + background
    );
    let all = (frames.kernel + frames.large + frames.free_blocks) * 512 + frames.small + frames.free_small;
    prop_assert_eq!(all, frames.blocks * 512);
    Ok(())
}

/// Each chunk counts its copies and who shares it. Returns the frames of what is shared.
fn check_chunks(
    engine: &Engine<'_>,
    copies: &[Vec<u32>],
    sharers: &[Vec<u32>],
    most: u32,
) -> Result<u64, TestCaseError> {
    let mut shared = 0;
    for ((chunks, copies), sharers) in engine.chunks.iter().zip(copies).zip(sharers) {
        for ((chunk, copies), most_shared) in chunks.iter().zip(copies).zip(sharers) {
            prop_assert_eq!(chunk.copies, *copies);
            prop_assert_eq!(chunk.frames(u32::MAX), u64::from(*most_shared));
            shared += chunk.frames(most);
        }
    }
    Ok(shared)
}

impl Engine<'_> {
    /// Pages of the host that keep blocks from being whole.
    fn fragmented_pages(&self) -> u64 {
        let blocks = self.frames.blocks - self.frames.kernel;
        (blocks * u64::from(self.scenario.host.fragmented)) >> 16
    }
}

prop_compose! {
    fn machines()(
        count in 1_usize..6,
        regions in 8_u64..80,
        (zero, common, volatile) in (0.0_f64..0.3, 0.0_f64..0.4, 0.0_f64..0.3),
        clustered in 0.0_f64..1.0,
        (used, active, rewritten) in (0.3_f64..1.0, 0.0_f64..1.0, 0.0_f64..1.0),
        has_large in any::<bool>(),
        shares in 1_u64..10_000,
        touch in 1000_u64..200_000,
    ) -> Vec<Vm> {
        (0..count).map(|number| Vm {
            content: content(zero, common, volatile, clustered),
            used: parts(used),
            active: parts(active),
            rewritten: parts(rewritten),
            large_pages: has_large || number % 2 == 0,
            shares: shares + number as u64,
            touch,
            ..vm(&format!("vm-{number}"), Bytes::mib(2 * (regions + number as u64)))
        }).collect()
    }
}

prop_compose! {
    fn scenarios()(
        first in machines(),
        second in machines(),
        memory in 256_u64..700,
        policy in 0_usize..5,
        states in 0_usize..4,
        fragmented in 0.0_f64..0.9,
        (use_zero_pages, split_frees_zeros, max_page_sharing) in (any::<bool>(), any::<bool>(), 2_u32..20),
        max_ptes_shared in 0_u32..512,
        (swap, balloon, compact) in (0_u64..100_000, 0_u64..100_000, 0_u64..50_000),
        giant in any::<bool>(),
        seed in any::<u64>(),
    ) -> Scenario {
        let mut vms: Vec<Vm> = first.into_iter().chain(second).collect();
        if giant {
            vms[0].pages = Pages::Pool;
            vms[1].is_reserved = true;
        }
        let host = Host { fragmented: parts(fragmented), ..host(Bytes::mib(memory)) };
        Scenario {
            states: States::ALL[states],
            rates: Rates { scan: Some(100_000), rush: 200_000, swap, balloon, compact },
            cold_minutes: 10,
            ksm: Ksm { pages_to_scan: 5000, sleep_millisecs: 10, use_zero_pages, split_frees_zeros, max_page_sharing, page_ns: 1000 },
            khugepaged: Khugepaged { pages_to_scan: 65_536, scan_sleep_millisecs: 1000, max_ptes_shared, ..Khugepaged::default() },
            seed,
            ..for_seconds(90, host, vms, &[Policy::ALL[policy]])
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn no_page_is_lost_or_counted_twice_at_any_step(scenario in scenarios()) {
        prop_assume!(scenario.check().is_ok());
        let mut engine = Engine::new(&scenario, scenario.policies[0]);
        for _ in 0..scenario.duration_ns / scenario.step_ns {
            engine.step();
            check_pages(&engine)?;
        }
    }

    #[test]
    fn a_seed_gives_one_result(scenario in scenarios()) {
        prop_assume!(scenario.check().is_ok());
        let shorter = Scenario { duration_ns: 20 * SECOND, ..scenario };
        prop_assert_eq!(run(&shorter), run(&shorter));
    }
}

#[test]
fn the_same_seed_gives_the_same_pages_on_any_machine() {
    let scenario = for_seconds(1200, host(Bytes::gib(4)), vms(6, Bytes::gib(1)), &Policy::ALL);
    let sums: Vec<u64> = run(&scenario)
        .outcomes
        .iter()
        .map(|outcome| {
            outcome.totals.events * 1_000_003 + outcome.totals.broken * 1009 + outcome.totals.swapped_out.0 / 4096
        })
        .collect();
    assert_eq!(sums, SUMS);
}

/// Of a run on x86-64; any other machine has to give the same.
const SUMS: [u64; 5] = [
    5_272_015_816,
    428_653_903_464,
    428_063_744_290,
    6_585_604_422,
    18_196_215_510,
];

#[test]
fn amounts_of_every_sample_are_all_guest_memory() {
    let scenario = for_seconds(900, host(Bytes::gib(2)), vms(4, Bytes::gib(1)), &Policy::ALL);
    for outcome in run(&scenario).outcomes {
        for sample in &outcome.samples {
            let Amounts {
                giant,
                large,
                small,
                shared,
                ..
            } = sample.amounts;
            let Amounts {
                ballooned,
                compressed,
                swapped,
                untouched,
                ..
            } = sample.amounts;
            let parts = [giant, large, small, shared, ballooned, compressed, swapped, untouched];
            assert_eq!(parts.into_iter().sum::<Bytes>(), Bytes::gib(4), "{:?}", outcome.policy);
        }
        assert!((outcome.totals.levels.iter().sum::<f64>() - 1.0).abs() < 1e-9);
    }
}

#[test]
fn without_overcommit_large_pages_stay_and_nothing_is_taken() {
    let scenario = for_seconds(
        1200,
        host(Bytes::gib(8)),
        vms(4, Bytes::gib(1)),
        &[Policy::NeverBreak, Policy::BreakAll, Policy::Linux],
    );
    for outcome in run(&scenario).outcomes {
        let end = outcome.samples.last().expect("samples");
        assert_eq!(end.amounts.large_part(), Some(1.0), "{:?}", outcome.policy);
        assert_eq!((outcome.totals.broken, outcome.totals.swapped_out), (0, Bytes(0)));
        assert_eq!(end.level, Level::High);
    }
}

#[test]
fn breaking_large_pages_saves_memory_that_others_swap() {
    let mut vms = vms(10, Bytes::gib(1));
    for vm in &mut vms {
        vm.content = content(0.05, 0.4, 0.05, 0.5);
        vm.active = parts(0.9);
    }
    let policies = [Policy::NeverBreak, Policy::BreakAll, Policy::Shareability];
    let scenario = for_seconds(3600, host(Bytes::gib(8)), vms, &policies);
    let outcomes = run(&scenario).outcomes;
    let [never, all, some] = [0, 1, 2].map(|place| &outcomes[place]);
    assert_eq!(never.totals.broken, 0);
    assert!(
        all.totals.broken > 0 && all.totals.most_saved > Bytes::gib(1),
        "{:?}",
        all.totals
    );
    assert!(all.totals.swapped_out < never.totals.swapped_out, "{:?}", all.totals);
    assert!(
        some.totals.broken > 0 && some.totals.broken < all.totals.broken,
        "{:?}",
        some.totals
    );
}

#[test]
fn machines_share_with_others_of_their_salt_from_esxi_6_on() {
    let saved = |salts: [Option<&str>; 2], states: States| {
        let mut vms = vms(2, Bytes::gib(1));
        for (vm, salt) in vms.iter_mut().zip(salts) {
            (vm.content, vm.salt) = (content(0.0, 0.4, 0.0, 0.0), salt.map(str::to_owned));
            vm.large_pages = false;
        }
        let mut scenario = for_seconds(3600, host(Bytes::gib(4)), vms, &[Policy::NeverBreak]);
        (scenario.states, scenario.rates.scan) = (states, Some(10_000));
        only(&scenario).totals.most_saved
    };
    assert_eq!(saved([None, None], States::Esx6), Bytes(0));
    assert_eq!(saved([Some("one"), Some("other")], States::Esx6), Bytes(0));
    let shared = saved([Some("one"); 2], States::Esx6);
    assert!(shared > Bytes::mib(300), "{shared}");
    assert_eq!(saved([None, None], States::Esx5), shared, "older ones know no salt");
    let said = |vms: Vec<Vm>, policy| {
        for_seconds(1, host(Bytes::gib(4)), vms, &[policy])
            .unshared()
            .map(str::to_owned)
    };
    let unsalted = |vm: Vm| Vm { salt: None, ..vm };
    let own: Vec<Vm> = vms(2, Bytes::gib(1)).into_iter().map(unsalted).collect();
    assert_eq!(said(own.clone(), Policy::BreakAll).as_deref(), Some("all"));
    assert_eq!(
        (said(own, Policy::Ksm), said(vms(2, Bytes::gib(1)), Policy::BreakAll)),
        (None, None)
    );
}

#[test]
fn idle_machines_pay_first_and_are_ballooned_before_anything_is_swapped() {
    let mut vms = vms(2, Bytes::gib(1));
    (vms[0].name, vms[0].active) = ("busy".to_owned(), WHOLE);
    (vms[1].name, vms[1].active) = ("idle".to_owned(), parts(0.1));
    for vm in &mut vms {
        vm.content = content(0.0, 0.0, 0.1, 0.0);
    }
    let mut scenario = for_seconds(1200, host(Bytes::mib(1800)), vms, &[Policy::NeverBreak]);
    scenario.states = States::Esx5;
    let outcome = only(&scenario);
    let [busy, idle] = [0, 1].map(|place| outcome.vms[place].amounts);
    assert_eq!((busy.ballooned, busy.swapped), (Bytes(0), Bytes(0)));
    assert!(idle.ballooned > Bytes::mib(128), "{idle:?}");
    assert_eq!(outcome.totals.swapped_out, Bytes(0));
}

#[test]
fn large_pages_are_emulated_where_no_whole_block_is_free_and_switches_are_obeyed() {
    let part = |host: Host, has_large: bool| {
        let vm = Vm {
            large_pages: has_large,
            ..vm("vm", Bytes::gib(1))
        };
        let mut scenario = for_seconds(900, host, vec![vm], &[Policy::NeverBreak]);
        scenario.rates.compact = 0;
        let outcome = only(&scenario);
        (
            outcome.vms[0].amounts.large_part().expect("memory"),
            outcome.totals.emulated,
        )
    };
    let whole = host(Bytes::gib(2));
    assert_eq!(part(whole.clone(), true), (1.0, 0));
    assert_eq!(part(whole.clone(), false), (0.0, 0));
    assert_eq!(
        part(
            Host {
                large_pages: false,
                ..whole.clone()
            },
            true
        ),
        (0.0, 0)
    );
    let (large, emulated) = part(
        Host {
            fragmented: parts(0.75),
            ..whole
        },
        true,
    );
    assert!(
        (0.4..0.6).contains(&large) && (200..300).contains(&emulated),
        "{large} {emulated}"
    );
}

#[test]
fn reserved_memory_is_on_one_gib_pages_and_stays() {
    let mut all = vms(4, Bytes::gib(1));
    all[0] = Vm {
        pages: Pages::Giant,
        ..vm("reserved", Bytes::gib(2))
    };
    let scenario = for_seconds(1200, host(Bytes::gib(4)), all, &[Policy::BreakAll, Policy::Ksm]);
    for outcome in run(&scenario).outcomes {
        assert_eq!(outcome.vms[0].amounts.giant, Bytes::gib(2), "{:?}", outcome.policy);
        assert!(outcome.vms.iter().skip(1).all(|vm| vm.amounts.giant == Bytes(0)));
    }
    let too_much = for_seconds(
        60,
        host(Bytes::gib(2)),
        vec![Vm {
            pages: Pages::Giant,
            ..vm("vm", Bytes::gib(2))
        }],
        &[Policy::Linux],
    );
    assert!(too_much.check().expect_err("64M are used").contains("expected at most"));
}

/// One machine twice, with so many equal pages in each region of 32 MiB.
fn equal(pages: u32, use_zero_pages: bool, khugepaged: bool) -> Scenario {
    let mut vms = vms(2, Bytes::mib(32));
    for vm in &mut vms {
        vm.content = Content {
            zero: 0,
            common: pages * (WHOLE / 512),
            volatile: 0,
            clustered: 0,
        };
        vm.touch = 1 << 20;
    }
    Scenario {
        ksm: Ksm {
            pages_to_scan: 5000,
            sleep_millisecs: 10,
            use_zero_pages,
            ..Ksm::default()
        },
        khugepaged: Khugepaged {
            pages_to_scan: if khugepaged { 65_536 } else { 0 },
            ..Khugepaged::default()
        },
        ..for_seconds(60, host(Bytes::mib(512)), vms, &[Policy::Ksm])
    }
}

#[test]
fn ksm_splits_each_huge_page_with_one_match_and_khugepaged_collapses_up_to_max_ptes_shared() {
    for pages in [1, 51, 256, 257, 512] {
        let without = only(&equal(pages, false, false)).totals;
        assert_eq!(without.broken, 32, "{pages}");
        assert_eq!(without.most_saved, Bytes(16 * 4096 * u64::from(pages)), "{pages}");
        let with = only(&equal(pages, false, true)).totals;
        let is_below = pages <= 256;
        assert_eq!(with.collapsed > 32, is_below, "{pages}: {with:?}");
        assert_eq!(with.broken > 32, is_below, "{pages}: {with:?}");
    }
}

#[test]
fn no_page_is_merged_before_it_was_seen_twice() {
    let mut scenario = equal(512, false, false);
    let pass = scenario.ksm.each_page() * 512 * 32;
    scenario.step_ns = pass / 8;
    scenario.duration_ns = pass + scenario.step_ns / 2;
    assert_eq!(only(&scenario).totals.broken, 0);
    scenario.duration_ns = 2 * pass + 2 * scenario.step_ns;
    assert_eq!(only(&scenario).totals.broken, 32);
}

#[test]
fn pages_of_zeros_are_freed_with_use_zero_pages_and_hardly_any_without_it() {
    let zeros = |use_zero_pages, split_frees_zeros| {
        let mut scenario = equal(0, use_zero_pages, false);
        scenario.ksm.split_frees_zeros = split_frees_zeros;
        scenario.duration_ns = 2 * SECOND;
        scenario.vms.truncate(1);
        scenario.vms[0].content = content(1.0, 0.0, 0.0, 0.0);
        only(&scenario).totals.most_saved
    };
    assert_eq!(zeros(true, true), Bytes::mib(32));
    // A scan takes 33 ms, and splits one huge page.
    let mut slow = equal(0, false, false);
    slow.vms.truncate(1);
    slow.vms[0].content = content(1.0, 0.0, 0.0, 0.0);
    slow.ksm.pages_to_scan = 100;
    slow.duration_ns = 10 * SECOND;
    let totals = only(&slow).totals;
    assert!(
        totals.broken > 0 && totals.broken <= totals.scans + 1 && totals.broken < 16,
        "{totals:?}"
    );
    assert_eq!(
        zeros(false, false),
        Bytes((8192 - 8192 / 256) * 4096),
        "before Linux 6.12"
    );
}

/// So many machines of 256 MiB that want a third more than there is.
fn crowd(machines: usize, seconds: u64, policy: Policy) -> u64 {
    let memory = Bytes::mib(256 * machines as u64 * 3 / 4);
    let host = Host {
        used: Bytes(0),
        ..host(memory)
    };
    only(&for_seconds(seconds, host, vms(machines, Bytes::mib(256)), &[policy]))
        .totals
        .events
}

#[test]
fn events_grow_with_machines_and_with_time_and_no_faster() {
    for policy in [Policy::BreakAll, Policy::Ksm] {
        let (ten, hundred, thousand) = (
            crowd(10, 1200, policy),
            crowd(100, 1200, policy),
            crowd(1000, 1200, policy),
        );
        let grows = |few: u64, many: u64| many as f64 / few as f64;
        assert!(
            grows(ten, hundred) < 12.0 && grows(hundred, thousand) < 12.0,
            "{policy:?}: {ten} {hundred} {thousand}"
        );
        let (one, four) = (crowd(50, 3600, policy), crowd(50, 14_400, policy));
        assert!(grows(one, four) < 4.8, "{policy:?}: {one} {four}");
    }
}

#[test]
fn time_lost_is_that_of_the_pages_behind_active_memory() {
    let mut scenario = for_seconds(900, host(Bytes::gib(4)), vms(2, Bytes::gib(1)), &[Policy::NeverBreak]);
    scenario.translation = Translation::Pattern {
        machine: Box::new(Machine::by_id("xeon-8452y").expect("in the table")),
        mode: Mode::Nested,
        pattern: Pattern::Zipf,
        guest_page: Bytes::mib(2),
        other_cycles: 0.0,
        accesses: 20_000,
    };
    scenario.vms[1].large_pages = false;
    let result = run(&scenario);
    let (cost, outcome) = (&result.translation[0], &result.outcomes[0]);
    let [large, small] = [cost.large.middle, cost.small.middle];
    assert!(large < small, "{cost:?}");
    let lost = [0, 1].map(|vm| outcome.vms[vm].lost.middle);
    assert!(
        (lost[0] - large).abs() < 1e-9 && (lost[1] - small).abs() < 1e-9,
        "{lost:?} {cost:?}"
    );
    let end = outcome.samples.last().expect("samples").lost.middle;
    assert!((end - (large + small) / 2.0).abs() < 1e-9, "{end}");
}

#[test]
fn reserved_memory_is_never_taken_back_and_never_more_than_the_host_has() {
    let mut machines = vms(3, Bytes::gib(2));
    machines[0].is_reserved = true;
    let scenario = for_seconds(900, host(Bytes::gib(4)), machines.clone(), &Policy::ALL);
    for policy in Policy::ALL {
        let mut engine = Engine::new(&scenario, policy);
        for _ in 0..900 {
            engine.step();
        }
        let taken = [Place::Ballooned, Place::Compressed, Place::Swapped];
        let of = |number: usize| -> u64 { taken.iter().map(|place| engine.machines[number].at(*place)).sum() };
        assert_eq!(of(0), 0, "{policy:?}");
        assert!(of(1) + of(2) > 0, "{policy:?}: memory is short");
    }
    machines.iter_mut().for_each(|vm| vm.is_reserved = true);
    let error = for_seconds(900, host(Bytes::gib(4)), machines, &Policy::ALL)
        .check()
        .expect_err("6 of 4 GiB");
    assert!(error.contains("need 6G"), "{error}");
}

#[test]
fn parts_that_add_up_to_one_are_taken_however_they_are_rounded() {
    let mut machine = vm("vm", Bytes::gib(1));
    let third = (f64::from(WHOLE) / 3.0).round() as u32 + 1;
    machine.content = Content {
        zero: third,
        common: third,
        volatile: WHOLE - 2 * third + 1,
        clustered: 0,
    };
    let scenario = for_seconds(60, host(Bytes::gib(2)), vec![machine], &[Policy::BreakAll]);
    let mut engine = Engine::new(&scenario, Policy::BreakAll);
    scenario.check().expect("within rounding");
    for _ in 0..60 {
        engine.step();
    }
    check_pages(&engine).expect("pages add up");
}

#[test]
fn overcommit_is_a_percentage_of_the_host_s_memory() {
    let scenario = for_seconds(60, host(Bytes::gib(10)), vms(4, Bytes::gib(2)), &[Policy::Ksm]);
    let missing = |percent| super::advice::missing(&scenario, percent);
    assert_eq!([missing(0), missing(20), missing(25), missing(100)], [1, 2, 3, 6]);
}
