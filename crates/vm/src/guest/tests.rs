//! Real guests on this machine's KVM; without one, each test says why it was skipped.
#![allow(clippy::print_stderr)]

use std::ptr::NonNull;
use std::time::{Duration, Instant};

use model::guest::GuestPage;

use super::{Config, Guest, Job, Kernel};
use crate::churn::Op;
use crate::memory::Owned;
use crate::plan::Plan;
use crate::{Error, Hypervisor, Memory, Ring, payload};

/// `mov rdi, [rdi]; dec rsi; jnz -8; mov rax, rdi; ret`: one step per turn.
const WALK: [u8; 12] = [0x48, 0x8b, 0x3f, 0x48, 0xff, 0xce, 0x75, 0xf8, 0x48, 0x89, 0xf8, 0xc3];

fn hypervisor() -> Option<Hypervisor> {
    Hypervisor::open()
        .map_err(|error| testing::skipped(&error.to_string()))
        .ok()
}

fn lend(own: &Owned) -> Memory<'_> {
    let start = NonNull::new(own.start() as *mut u8).expect("mapped");
    // SAFETY: `own` is borrowed for as long as the memory is lent.
    unsafe { Memory::from_raw(start, own.len() as usize) }.expect("whole pages")
}

fn config<'m>(own: &'m Owned, page: GuestPage) -> Config<'m> {
    Config {
        memory: Some(lend(own)),
        page,
        fresh: own.len(),
        tables: None,
    }
}

fn guest<'m>(hypervisor: &Hypervisor, own: &'m Owned, page: GuestPage) -> Guest<'m> {
    Guest::new(hypervisor, &config(own, page)).expect("a guest")
}

fn job(kernel: Kernel, start: u64, turns: u64, blocks: u64) -> Job {
    Job {
        kernel,
        ring: Ring::User,
        start,
        turns,
        blocks,
        deadline: Duration::from_secs(30),
    }
}

/// Nodes 4160 bytes apart that lead through `own` in order, and back.
fn ring(own: &mut Owned) -> u64 {
    let count = own.len() / 4160;
    for node in 0..count {
        let next = own.start() + (node + 1) % count * 4160;
        own.write_words(node * 4160, &[next]);
    }
    count
}

#[test]
fn a_ring_is_walked_at_the_same_addresses_with_every_page_size_again_and_again() {
    let Some(hypervisor) = hypervisor() else { return };
    let mut own = Owned::new(8 << 20).expect("memory");
    let count = ring(&mut own);
    for page in hypervisor.guest_pages() {
        let mut guest = guest(&hypervisor, &own, page);
        let kernel = guest.load(&WALK).expect("room for code");
        for steps in [1, 7, count, count + 3] {
            let done = guest.run(&job(kernel, own.start(), steps, 1)).expect("runs");
            assert_eq!(done.next, own.start() + steps % count * 4160, "{page} {steps}");
            assert!(done.ticks.len() == 1 && done.ticks[0] > 0);
        }
        let done = guest.run(&job(kernel, own.start(), 5, 100)).expect("runs");
        assert_eq!(
            done.next,
            own.start() + 500 % count * 4160,
            "blocks go on where the last ended"
        );
        assert!(done.ticks.len() == 100 && done.ticks.iter().all(|&ticks| ticks > 0));
    }
}

#[test]
fn first_touch_faults_once_per_page_and_the_second_pass_not_at_all() {
    let Some(hypervisor) = hypervisor() else { return };
    let mut own = Owned::new(16 << 20).expect("memory");
    ring(&mut own);
    let pages = own.len() / 4096;
    let mut guest = guest(&hypervisor, &own, GuestPage::Size4K);
    let touch = guest.load(payload::touch()).expect("room for code");
    let pass = |guest: &mut Guest<'_>| {
        let before = guest.stats().expect("stats");
        let done = guest.run(&job(touch, own.start(), pages, 1)).expect("runs");
        assert_eq!(done.next, own.start() + own.len());
        let fixed = guest
            .stats()
            .expect("stats")
            .since(&before)
            .get("pf_fixed")
            .copied()
            .unwrap_or(0);
        (fixed as u64, done.ticks[0])
    };
    let (first, slow) = pass(&mut guest);
    let (second, fast) = pass(&mut guest);
    // A few more for code, stack, results and tables.
    assert!((pages..=pages + 100).contains(&first), "{first} of {pages}");
    assert!(second < pages / 100, "{second} of {pages} again");
    eprintln!("{pages} pages: {first} faults, {slow} ticks; then {second} faults, {fast} ticks");
}

#[test]
fn pages_that_look_used_are_filled_in_with_their_neighbours_under_shadow_paging_and_never_cost_more() {
    let Some(hypervisor) = hypervisor() else { return };
    let mut own = Owned::new(16 << 20).expect("memory");
    ring(&mut own);
    let pages = own.len() / 4096;
    let used = Config {
        fresh: 0,
        ..config(&own, GuestPage::Size4K)
    };
    let mut guest = Guest::new(&hypervisor, &used).expect("a guest");
    let touch = guest.load(payload::touch()).expect("room for code");
    let before = guest.stats().expect("stats");
    guest.run(&job(touch, own.start(), pages, 1)).expect("runs");
    let fixed = guest
        .stats()
        .expect("stats")
        .since(&before)
        .get("pf_fixed")
        .copied()
        .unwrap_or(0);
    assert!((1..=pages as i64 + 100).contains(&fixed), "{fixed} of {pages}");
}

#[test]
fn a_guest_that_hangs_is_stopped_and_can_be_used_again() {
    let Some(hypervisor) = hypervisor() else { return };
    let own = Owned::new(4096).expect("memory");
    let mut guest = guest(&hypervisor, &own, GuestPage::Size4K);
    let hang = guest.load(&[0xeb, 0xfe]).expect("room for code"); // jmp to itself
    let back = guest.load(&[0x48, 0x89, 0xf8, 0xc3]).expect("room for code"); // mov rax, rdi; ret
    let start = Instant::now();
    let deadline = Duration::from_millis(100);
    let stuck = guest.run(&Job {
        deadline,
        ..job(hang, 0, 1, 1)
    });
    assert!(
        matches!(stuck, Err(Error::Stuck(limit)) if limit == deadline),
        "{stuck:?}"
    );
    assert!(start.elapsed() < Duration::from_secs(20));
    let done = guest.run(&job(back, 42, 1, 3)).expect("runs again");
    assert_eq!((done.next, done.ticks.len()), (42, 3));
}

#[test]
fn a_guest_that_faults_says_where_and_can_be_used_again() {
    let Some(hypervisor) = hypervisor() else { return };
    let own = Owned::new(4096).expect("memory");
    let mut guest = guest(&hypervisor, &own, GuestPage::Size4K);
    let walk = guest.load(&WALK).expect("room for code");
    let nowhere = own.start() + (1 << 30);
    match guest.run(&job(walk, nowhere, 1, 1)) {
        Err(Error::Faulted { rip, cr2 }) => assert_eq!((rip, cr2), (walk.entry, nowhere)),
        other => panic!("{other:?}"),
    }
    let privileged = guest.load(&[0x0f, 0x20, 0xd8, 0xc3]).expect("room for code"); // mov rax, cr3; ret
    let refused = guest.run(&job(privileged, 0, 1, 1));
    assert!(
        matches!(refused, Err(Error::Faulted { .. })),
        "CPL 3 may not read CR3: {refused:?}"
    );
    let back = guest.load(&[0x48, 0x89, 0xf8, 0xc3]).expect("room for code");
    assert_eq!(guest.run(&job(back, 7, 1, 1)).expect("runs again").next, 7);
}

#[test]
fn round_trips_are_counted_as_exits() {
    let Some(hypervisor) = hypervisor() else { return };
    let own = Owned::new(4096).expect("memory");
    let mut guest = guest(&hypervisor, &own, GuestPage::Size4K);
    for (name, code) in [("store", payload::ping()), ("cpuid", payload::cpuid())] {
        let kernel = guest.load(code).expect("room for code");
        let before = guest.stats().expect("stats");
        let done = guest.run(&job(kernel, 9, 100, 10)).expect("runs");
        assert_eq!(done.next, 9);
        let delta = guest.stats().expect("stats").since(&before);
        eprintln!("{name}: {} ticks each, {delta:?}", done.ticks[5] / 100);
    }
}

#[test]
fn tables_can_lie_in_lent_memory_and_too_small_memory_is_refused() {
    let Some(hypervisor) = hypervisor() else { return };
    let mut own = Owned::new(4 << 20).expect("memory");
    ring(&mut own);
    for (len, fine) in [(4096, false), (1 << 20, true)] {
        let tables = Owned::new(len).expect("memory");
        let config = Config {
            tables: Some(lend(&tables)),
            fresh: 0,
            ..config(&own, GuestPage::Size4K)
        };
        match Guest::new(&hypervisor, &config) {
            Ok(mut guest) => {
                let walk = guest.load(&WALK).expect("room for code");
                let done = guest.run(&job(walk, own.start(), 2, 1)).expect("runs");
                assert_eq!((fine, done.next), (true, own.start() + 2 * 4160));
            }
            Err(error) => assert!(!fine && matches!(error, Error::TooMuch { .. }), "{error}"),
        }
    }
}

#[test]
fn jobs_that_cannot_be_are_refused() {
    let Some(hypervisor) = hypervisor() else { return };
    let own = Owned::new(4096).expect("memory");
    let mut guest = guest(&hypervisor, &own, GuestPage::Size4K);
    let back = guest.load(&[0x48, 0x89, 0xf8, 0xc3]).expect("room for code");
    for (turns, blocks) in [(1, 0), (0, 1), (1, crate::MOST_BLOCKS + 1)] {
        assert!(guest.run(&job(back, 0, turns, blocks)).is_err());
    }
    assert!(guest.run(&job(back, 0, 1, crate::MOST_BLOCKS)).is_ok());
    let large = vec![0x90; 1 << 16];
    assert!(matches!(guest.load(&large), Err(Error::TooMuch { .. })));
}

#[test]
fn page_table_operations_come_to_their_end_and_leave_the_tables_as_they_were() {
    let Some(hypervisor) = hypervisor() else { return };
    let own = Owned::new(4096).expect("memory");
    let mut guest = guest(&hypervisor, &own, GuestPage::Size4K);
    // Where the leaf table is, the guest's tables say; flags that the CPU sets by itself may change.
    let work = crate::layout::work(hypervisor.levels());
    let mut plan = Plan::new(&hypervisor, &config(&own, GuestPage::Size4K)).expect("a plan");
    let place = plan.entry(work).expect("small pages");
    let leaves =
        |guest: &Guest<'_>| -> Vec<u64> { guest.own.words(place, 64).iter().map(|entry| entry & !0x60).collect() };
    let before = leaves(&guest);
    assert!(before.iter().all(|entry| entry & 0b111 == 0b111), "{before:x?}");
    for op in Op::ALL {
        let kernel = guest.load_churn(op).expect("room for code");
        let start = op.start(hypervisor.levels());
        let counted = guest.stats().expect("stats");
        let done = guest.run(&Job {
            ring: op.ring(),
            ..job(kernel, start, 10, 3)
        });
        let done = done.expect("runs");
        eprintln!(
            "{op:?}: {:?} {:?}",
            done.ticks,
            guest.stats().expect("stats").since(&counted)
        );
        assert_eq!(done.next, start);
        assert!(done.ticks.iter().all(|&ticks| ticks > 0));
        assert_eq!(leaves(&guest), before, "{op:?}");
    }
}
