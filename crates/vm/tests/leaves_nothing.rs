//! What a guest took is given back: descriptors, mappings, the signal handler. A test of its own, because it counts for the
//! whole process.
#![allow(clippy::print_stderr)]

use std::fs;
use std::time::Duration;

use model::guest::GuestPage;
use vm::{Config, Error, Guest, Hypervisor, Job, Ring, payload};

/// Open descriptors, mappings of virtual CPUs, and the signals that have handlers.
fn held() -> (usize, usize, String) {
    let descriptors = fs::read_dir("/proc/self/fd").expect("descriptors").count();
    let maps = fs::read_to_string("/proc/self/maps").expect("mappings");
    let status = fs::read_to_string("/proc/self/status").expect("status");
    let caught = status
        .lines()
        .find(|line| line.starts_with("SigCgt"))
        .expect("a line on caught signals");
    (descriptors, maps.matches("kvm-vcpu").count(), caught.to_owned())
}

fn use_one(hypervisor: &Hypervisor) {
    let config = Config {
        memory: None,
        page: GuestPage::Size4K,
        fresh: 0,
        tables: None,
    };
    let mut guest = Guest::new(hypervisor, &config).expect("a guest");
    let ping = guest.load(payload::ping()).expect("room for code");
    let hang = guest.load(&[0xeb, 0xfe]).expect("room for code"); // jmp to itself
    let job = Job {
        kernel: ping,
        ring: Ring::User,
        start: 0,
        turns: 3,
        blocks: 2,
        deadline: Duration::from_secs(30),
    };
    assert_eq!(guest.run(&job).expect("runs").ticks.len(), 2);
    let stuck = Job {
        kernel: hang,
        deadline: Duration::from_millis(10),
        ..job
    };
    assert!(matches!(guest.run(&stuck), Err(Error::Stuck(_))));
}

#[test]
fn a_guest_that_is_gone_holds_nothing() {
    let hypervisor = match Hypervisor::open() {
        Ok(hypervisor) => hypervisor,
        Err(why) => return testing::skipped(&why.to_string()),
    };
    // The handler of alarms stays for the life of the process, so that none that is still on its way can end it.
    use_one(&hypervisor);
    let before = held();
    for _ in 0..5 {
        use_one(&hypervisor);
    }
    assert_eq!(held(), before);
}
