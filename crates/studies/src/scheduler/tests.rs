//! What must hold of every schedule, and what each policy does.

use proptest::prelude::*;

use super::engine::Engine;
use super::result::{VmTime, of};
use super::world::State;
use super::{Costs, Demand, Denied, Idle, Load, Ns, Policy, Scenario, Schedule, Topology, Vm, simulate};

const MS: Ns = 1_000_000;
const X3950: Topology = Topology {
    nodes: 2,
    sockets: 4,
    cores_per_socket: 2,
    threads_per_core: 2,
};

fn load(burst_ms: u64, sleep_ms: u64) -> Load {
    Load {
        burst_ns: burst_ms * MS,
        sleep_ns: sleep_ms * MS,
        demand: Demand::Work,
    }
}

fn busy() -> Load {
    load(20, 0)
}

fn vms(count: usize, vcpus: u32, load: Load) -> Vec<Vm> {
    (0..count)
        .map(|number| Vm::new(&format!("vm-{number}"), vcpus, load))
        .collect()
}

fn run(scenario: &Scenario) -> Schedule {
    simulate(scenario).expect("a scenario that adds up")
}

fn for_seconds(seconds: u64, policy: Policy, vms: Vec<Vm>) -> Scenario {
    Scenario {
        duration_ns: seconds * 1000 * MS,
        ..Scenario::new(X3950, policy, vms, 7)
    }
}

prop_compose! {
    fn machines()(
        count in 1_usize..12,
        vcpus in 1_u32..5,
        shares in 1_u64..4000,
        burst in 100_000_u64..20_000_000,
        sleep in prop_oneof![Just(0), 100_000_u64..20_000_000],
        is_time in any::<bool>(),
        is_latency_sensitive in any::<bool>(),
    ) -> Vec<Vm> {
        let demand = if is_time { Demand::Time } else { Demand::Work };
        let load = Load { burst_ns: burst, sleep_ns: sleep, demand };
        (0..count).map(|number| Vm {
            shares: (shares + number as u64 * 100) * u64::from(vcpus),
            is_latency_sensitive: is_latency_sensitive && number % 2 == 0,
            ..Vm::new(&format!("vm-{number}"), vcpus, load)
        }).collect()
    }
}

prop_compose! {
    fn scenarios()(
        (nodes, per_node, cores, threads) in (1_u32..3, 1_u32..3, 1_u32..3, 1_u32..3),
        policy in 0_usize..5,
        first in machines(),
        second in machines(),
        warm_up in 0_u64..3_000_000,
        sibling_busy in 0.0_f64..0.9,
        remote_memory in 0.0_f64..0.9,
        spins in any::<bool>(),
        console in any::<bool>(),
        skew in proptest::option::of(10_000_u64..5_000_000),
        quantum in 100_000_u64..60_000_000,
        seed in any::<u64>(),
    ) -> Scenario {
        let topology = Topology { nodes, sockets: nodes * per_node, cores_per_socket: cores, threads_per_core: threads };
        let all = first.into_iter().chain(second);
        let vms = all.map(|vm| Vm { vcpus: vm.vcpus.min(topology.cpus()), ..vm }).collect();
        let costs = Costs {
            warm_up_ns: [warm_up / 100, warm_up, warm_up, 2 * warm_up],
            displaced_ns: warm_up / 10,
            sibling_busy,
            remote_memory,
            node_rates: vec![0.9],
            idle: if spins { Idle::Spins } else { Idle::Halts },
        };
        Scenario {
            costs,
            console: console.then_some(load(1, 20)),
            duration_ns: 1_000 * MS,
            quantum_ns: quantum,
            skew_limit_ns: skew,
            chart_ns: [0, 1_000 * MS],
            ..Scenario::new(topology, Policy::ALL[policy], vms, seed)
        }
    }
}

/// Every world is in exactly one state at all times, and on one CPU at most.
fn check_time(engine: &Engine<'_>, all: Ns) -> Result<(), TestCaseError> {
    for world in &engine.worlds {
        let totals = &world.totals;
        prop_assert_eq!(totals.run + totals.ready + totals.asleep + totals.costopped, all);
        prop_assert!(totals.warming <= totals.run);
    }
    for cpu in &engine.cpus {
        prop_assert!(cpu.busy <= all);
    }
    let run: Ns = engine.worlds.iter().map(|world| world.totals.run).sum();
    prop_assert_eq!(run, engine.cpus.iter().map(|cpu| cpu.busy).sum::<Ns>());
    let running = engine.worlds.iter().filter(|world| world.state == State::Running);
    prop_assert_eq!(
        running.count(),
        engine
            .cpus
            .iter()
            .filter(|cpu| (cpu.world as usize) < engine.worlds.len())
            .count()
    );
    let ready = engine.worlds.iter().filter(|world| world.state == State::Ready).count();
    prop_assert_eq!(ready, engine.waiting);
    Ok(())
}

/// Slices of one CPU do not overlap, and neither do those of one world.
fn check_places(engine: &Engine<'_>) -> Result<(), TestCaseError> {
    let mut slices = engine.accounts.slices.clone();
    for key in [
        |slice: &super::accounts::Stretch| slice.world,
        |slice: &super::accounts::Stretch| slice.cpu,
    ] {
        slices.sort_by_key(|slice| (key(slice), slice.from));
        for pair in slices.windows(2).filter(|pair| key(&pair[0]) == key(&pair[1])) {
            prop_assert!(pair[0].until <= pair[1].from, "{pair:?}");
        }
    }
    Ok(())
}

/// What bursts asked for is what was done and what is left.
fn check_work(engine: &Engine<'_>) -> Result<(), TestCaseError> {
    for world in &engine.worlds {
        let totals = &world.totals;
        match world.load.demand {
            Demand::Work => prop_assert_eq!(totals.issued, totals.work + world.left),
            Demand::Time => prop_assert_eq!(totals.issued, totals.run + world.left),
        }
    }
    Ok(())
}

/// No CPU is idle while a world waits that may run there.
fn check_no_waste(engine: &Engine<'_>) -> Result<(), TestCaseError> {
    for world in engine.worlds.iter().filter(|world| world.state == State::Ready) {
        let lane = world.lane as usize;
        let usable = |cpu: &u32| match engine.scenario.policy {
            Policy::LinuxLike => true,
            _ => *cpu as usize == lane || engine.cpus[*cpu as usize].is_open && engine.shared_lane(*cpu) == lane,
        };
        let idle = (0..engine.cpus.len() as u32)
            .filter(usable)
            .find(|cpu| engine.idle.contains(cpu));
        prop_assert_eq!(idle, None, "world of machine {} waits", world.vm);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn no_time_and_no_work_is_lost_and_no_world_is_in_two_places(scenario in scenarios()) {
        let mut engine = Engine::new(&scenario).map_err(TestCaseError::fail)?;
        engine.run(scenario.duration_ns);
        check_time(&engine, scenario.duration_ns)?;
        check_places(&engine)?;
        check_work(&engine)?;
        check_no_waste(&engine)?;
        let schedule = of(&engine);
        for cpu in &schedule.cpus {
            prop_assert!((cpu.guests + cpu.console + cpu.idle - 1.0).abs() < 1e-9, "{cpu:?}");
        }
        for row in &schedule.residency {
            let on_cpus: f64 = row.shares.iter().sum();
            prop_assert!(on_cpus <= 1.0 + 1e-9, "{row:?}");
        }
    }

    #[test]
    fn a_seed_gives_one_result(scenario in scenarios()) {
        prop_assert_eq!(run(&scenario), run(&scenario));
    }
}

/// Every number of these is whole, so that a machine on which they differ breaks the promise.
#[test]
fn the_same_seed_gives_the_same_events_on_any_machine() {
    let found = Policy::ALL.map(|policy| {
        let scenario = Scenario {
            console: Some(load(1, 20)),
            ..for_seconds(10, policy, vms(12, 2, load(8, 2)))
        };
        let mut engine = Engine::new(&scenario).expect("a scenario");
        engine.run(scenario.duration_ns);
        let run = engine.worlds.iter().map(|world| world.totals.run);
        let mixed = run.fold(0_u64, |mixed, time| mixed.wrapping_mul(31).wrapping_add(time));
        (engine.events, mixed)
    });
    assert_eq!(found, GOLDEN);
}

const GOLDEN: [(u64, u64); 5] = [
    (37_345, 763_903_656_881_690_463),
    (37_538, 16_785_585_383_111_877_408),
    (24_714, 16_102_008_584_549_869_631),
    (24_728, 12_969_836_365_489_763_059),
    (37_538, 16_785_585_383_111_877_408),
];

#[test]
fn cpu_time_follows_shares_under_overcommit() {
    let mut machines = vms(12, 4, busy());
    machines.iter_mut().step_by(2).for_each(|vm| vm.shares *= 3);
    let topology = Topology { nodes: 1, ..X3950 };
    let schedule = run(&Scenario {
        topology,
        ..for_seconds(30, Policy::Esx253, machines)
    });
    assert!(schedule.fairness.max_error_pct < 5.0, "{:?}", schedule.fairness);
    assert!(schedule.fairness.jain > 0.99);
    let many = schedule.vms[0].cpus / schedule.vms[1].cpus;
    assert!((2.8..3.2).contains(&many), "{many}");
}

#[test]
fn a_free_move_to_the_sibling_is_made_and_a_priced_one_is_not() {
    let moves = |policy| {
        let schedule = run(&for_seconds(10, policy, vms(1, 2, load(8, 1))));
        schedule.vms[0].moves
    };
    let [free, priced] = [moves(Policy::Esx252), moves(Policy::Esx253)];
    assert!(free[0] > 500 && free[1..] == [0; 3], "{free:?}");
    assert_eq!(priced, [0; 4]);
}

#[test]
fn virtual_cpus_get_whole_cores_while_there_are_any() {
    for policy in Policy::ALL {
        let schedule = run(&for_seconds(5, policy, vms(2, 2, busy())));
        let cores: Vec<f64> = schedule
            .cpus
            .chunks(2)
            .map(|core| core[0].guests + core[1].guests)
            .collect();
        assert!(cores.iter().all(|busy| *busy < 1.01), "{policy:?}: {cores:?}");
        let work: f64 = schedule.vms.iter().map(|vm| vm.work_s).sum();
        assert!(work > 19.8, "{policy:?}: {work}");
    }
}

#[test]
fn idle_siblings_that_spin_take_their_part() {
    let work = |idle| {
        let scenario = for_seconds(5, Policy::Esx253, vms(1, 1, busy()));
        let costs = Costs {
            idle,
            ..Costs::default()
        };
        run(&Scenario { costs, ..scenario }).vms[0].work_s
    };
    assert!((work(Idle::Halts) - 5.0).abs() < 0.01);
    assert!((work(Idle::Spins) - 3.0).abs() < 0.01);
}

#[test]
fn a_home_node_moves_where_one_is_overloaded() {
    let mut machines = vms(8, 2, busy());
    // The even ones come first to node 0, and hardly run.
    machines.iter_mut().step_by(2).for_each(|vm| vm.load = load(1, 99));
    let schedule = run(&for_seconds(60, Policy::Esx253, machines));
    let busy: Vec<Option<u32>> = schedule.vms.iter().skip(1).step_by(2).map(|vm| vm.node).collect();
    let on_first = busy.iter().filter(|node| **node == Some(0)).count();
    assert_eq!(on_first, 2, "{busy:?}");
}

#[test]
fn co_scheduling_keeps_virtual_cpus_together() {
    let scenario = for_seconds(20, Policy::Esx253, vms(6, 5, load(7, 3)));
    let apart = |skew_limit_ns| {
        let scenario = Scenario {
            skew_limit_ns,
            ..scenario.clone()
        };
        let mut engine = Engine::new(&scenario).expect("a scenario");
        engine.run(scenario.duration_ns);
        let delays = |vm: usize| {
            engine.machines[vm]
                .clone()
                .map(|id| engine.worlds[id as usize].delay(engine.now))
                .collect::<Vec<_>>()
        };
        let stopped: Ns = engine.worlds.iter().map(|world| world.totals.costopped).sum();
        let spread = (0..6)
            .map(|vm| delays(vm).iter().max().unwrap_or(&0) - delays(vm).iter().min().unwrap_or(&0))
            .max();
        (stopped, spread.unwrap_or(0))
    };
    let [(no_stop, far), (stopped, near)] = [apart(None), apart(Some(3 * MS))];
    assert!(no_stop == 0 && stopped > 0, "{stopped}");
    assert!(near < far, "{near} of {far}");
}

#[test]
fn latency_sensitive_machines_have_cores_of_their_own_if_their_reservation_is_whole() {
    let mut machines = vms(8, 2, load(5, 5));
    machines[0].is_latency_sensitive = true;
    machines[1].is_latency_sensitive = true;
    machines[1].reservation_mhz = Some(5999);
    machines[2] = Vm {
        is_latency_sensitive: true,
        ..Vm::new("large", 7, busy())
    };
    let schedule = run(&for_seconds(20, Policy::LatencySensitive, machines));
    let denied: Vec<Option<Denied>> = schedule.reservations.iter().map(|row| row.denied).collect();
    assert_eq!(
        denied,
        [None, Some(Denied::NotFullyReserved), Some(Denied::TooFewCores)]
    );
    let own = &schedule.vms[0];
    assert_eq!((own.moves, own.waits.longest_us, own.ready_s), ([0; 4], 0.0, 0.0));
    assert!(schedule.vms[3].ready_s > 0.0, "others share what is left");
    let used: Vec<usize> = (0..16).filter(|cpu| schedule.residency[0].shares[*cpu] > 0.0).collect();
    let shared = schedule.residency.iter().filter(|row| row.vm != 0);
    let taken = shared.flat_map(|row| used.iter().map(|cpu| row.shares[*cpu] + row.shares[*cpu ^ 1]));
    assert_eq!(taken.sum::<f64>(), 0.0);
}

#[test]
fn pinned_worlds_never_move() {
    let mut machines = vms(3, 2, load(5, 1));
    machines[2].cpus = vec![0, 0];
    let schedule = run(&for_seconds(5, Policy::Pinned, machines));
    assert!(schedule.vms.iter().all(|vm| vm.moves == [0; 4]));
    assert!(schedule.vms[2].ready_s > 1.0, "both of its virtual CPUs share CPU 0");
}

#[test]
fn idle_cpus_of_a_linux_like_host_take_waiting_worlds() {
    let schedule = run(&for_seconds(10, Policy::LinuxLike, vms(16, 1, busy())));
    assert!(schedule.vms.iter().all(|vm| vm.cpus > 0.95), "{:?}", schedule.fairness);
}

#[test]
fn equal_hogs_of_a_linux_like_host_have_equal_parts_of_it() {
    const TWO: Topology = Topology {
        nodes: 1,
        sockets: 1,
        cores_per_socket: 2,
        threads_per_core: 1,
    };
    for (count, seed) in [(3, 1), (3, 2), (5, 3)] {
        let scenario = Scenario {
            topology: TWO,
            seed,
            ..for_seconds(60, Policy::LinuxLike, vms(count, 1, busy()))
        };
        let schedule = run(&scenario);
        let part = 2.0 / count as f64;
        let is_near = |vm: &VmTime| (vm.cpus / part - 1.0).abs() < 0.1;
        assert!(schedule.vms.iter().all(is_near), "{count}: {:?}", schedule.vms);
    }
}

#[test]
fn who_never_waits_is_served_fairly_also_beside_a_busy_sibling() {
    let scenario = Scenario {
        costs: Costs {
            sibling_busy: 0.4,
            ..Costs::none()
        },
        ..for_seconds(60, Policy::Pinned, pinned_pairs())
    };
    let schedule = run(&scenario);
    let (slow, alone) = (&schedule.vms[0], &schedule.vms[2]);
    assert!(slow.cpus > 1.05 * alone.cpus, "{} {}", slow.cpus, alone.cpus);
    assert!(schedule.fairness.max_error_pct < 1.0, "{:?}", schedule.fairness);
}

/// Two machines on one core, and one on another.
fn pinned_pairs() -> Vec<Vm> {
    let mut vms = vms(3, 1, load(5, 5));
    vms.iter_mut().zip([0, 1, 2]).for_each(|(vm, cpu)| vm.cpus = vec![cpu]);
    vms
}

#[test]
fn events_grow_with_machines_and_with_time_and_no_faster() {
    let events = |count, seconds| run(&for_seconds(seconds, Policy::Esx253, vms(count, 1, load(1, 999)))).events as f64;
    let few = events(20, 40);
    for (more, times) in [
        (events(200, 40), 10.0),
        (events(2000, 40), 100.0),
        (events(20, 400), 10.0),
    ] {
        assert!((0.8..1.25).contains(&(more / few / times)), "{times}: {more} of {few}");
    }
}

#[test]
fn worlds_that_take_turns_warm_their_caches_at_each_turn() {
    let turns = |cpus: [u32; 2]| {
        let mut vms = vms(2, 1, busy());
        vms.iter_mut().zip(cpus).for_each(|(vm, cpu)| vm.cpus = vec![cpu]);
        let scenario = Scenario {
            quantum_ns: 3 * MS,
            costs: Costs {
                displaced_ns: MS / 10,
                ..Costs::none()
            },
            ..for_seconds(60, Policy::Pinned, vms)
        };
        let done = run(&scenario);
        done.vms.iter().map(|vm| vm.work_s).sum::<f64>() / 60.0
    };
    assert!((turns([0, 0]) - 2.9 / 3.0).abs() < 0.001, "{}", turns([0, 0]));
    assert!((turns([0, 2]) - 2.0).abs() < 1e-6, "{}", turns([0, 2]));
}

#[test]
fn esx_starts_no_machine_that_is_larger_than_the_host() {
    let wide = |policy| for_seconds(1, policy, vms(1, 17, busy())).check();
    assert!(wide(Policy::Esx253).expect_err("16 CPUs").contains("which ESX refuses"));
    assert!(wide(Policy::LinuxLike).is_ok());
    let mut machines = vms(1, 2, busy());
    machines[0].reservation_mhz = Some(8 * 3000 + 1);
    let error = for_seconds(1, Policy::Esx253, machines.clone())
        .check()
        .expect_err("8 cores");
    assert!(error.contains("24001") && error.contains("24000"), "{error}");
    machines[0].reservation_mhz = Some(8 * 3000);
    assert!(for_seconds(1, Policy::Esx253, machines).check().is_ok());
}
