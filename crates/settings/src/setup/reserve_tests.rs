//! The kernel's own reserve is as before once a THP policy is undone, whatever ended the runs in between.

use model::plan::{Plan, Value};

use super::scene::{SYSCTL_D, Scene, THP, file, how, only, setting, text};
use crate::fake::Fault;
use crate::place::{Place, State};
use crate::reserve::{Moved, wanted};

const RESERVE: &str = "/proc/sys/vm/min_free_kbytes";

/// A machine whose administrator set the reserve by hand, so that the kernel does not lower it.
fn scene(policy: &str) -> Scene {
    let scene = Scene::new();
    scene.machine.set_file(&format!("{THP}/enabled"), policy);
    scene.machine.set_file(RESERVE, "30000\n");
    scene
}

fn policy(goal: &str, from: &str, to: &str) -> Plan {
    let change = setting("thp", &format!("{THP}/enabled"), text(from), text(to));
    Plan {
        goals: vec![goal.to_owned()],
        ..only(change)
    }
}

fn kept(scene: &Scene) -> String {
    crate::sink::text(&scene.machine.process(0), RESERVE).expect("a number")
}

const NEVER: &str = "always madvise [never]\n";

#[test]
fn the_reserve_that_khugepaged_raised_is_undone_unless_others_set_it_meanwhile() {
    let plan = policy("thp=always", "never", "always");
    let own = scene(NEVER);
    own.apply(&plan).expect("applied");
    assert_eq!(kept(&own), "67584\n");
    assert!(own.undo().is_settled());
    assert_eq!(kept(&own), "30000\n");

    let others = scene(NEVER);
    others.apply(&plan).expect("applied");
    others.machine.set_file(RESERVE, "90000\n");
    others.undo();
    assert_eq!(kept(&others), "90000\n");

    // A restart has made the reserve anew.
    let later = scene(NEVER);
    later.apply(&plan).expect("applied");
    later
        .machine
        .set_file("/proc/sys/kernel/random/boot_id", "second-boot\n");
    later.undo();
    assert_eq!(kept(&later), "67584\n");
}

#[test]
fn the_reserve_that_undo_itself_raises_is_lowered_again() {
    let scene = scene("[always] madvise never\n");
    scene.apply(&policy("thp=never", "always", "never")).expect("applied");
    assert_eq!(kept(&scene), "30000\n");
    scene.undo();
    assert_eq!(kept(&scene), "30000\n");
}

/// A kernel without an administrator's value lowers its reserve itself when khugepaged ends.
#[test]
fn what_the_kernel_lowered_is_not_raised_again() {
    let ours = |before, after| Some(Moved { before, after });
    for (ours, kept, now, expected) in [
        (None, 67_584, 11_000, 11_000),
        (None, 30_000, 67_584, 30_000),
        (ours(11_000, 67_584), 67_584, 11_000, 11_000),
        (ours(30_000, 67_584), 67_584, 67_584, 30_000),
        // Memory has been plugged in, or an administrator has set it.
        (ours(11_000, 67_584), 70_000, 12_000, 12_000),
        (ours(11_000, 67_584), 90_000, 90_000, 90_000),
        (ours(67_584, 11_000), 20_000, 67_584, 20_000),
    ] {
        assert_eq!(
            wanted(ours, Some(kept), Some(now)),
            Some(expected),
            "{ours:?} {kept} {now}"
        );
    }
}

#[test]
fn after_a_restart_undo_leaves_the_reserve_to_the_kernel() {
    let scene = scene("[always] madvise never\n");
    let mut plan = policy("thp=never", "always", "never");
    // What makes the policy hold after a restart.
    plan.changes
        .push(file("sysctl", SYSCTL_D, Value::Absent, "vm.swappiness = 1\n"));
    scene.apply(&plan).expect("applied");
    scene
        .machine
        .set_file("/proc/sys/kernel/random/boot_id", "second-boot\n");
    assert!(scene.undo().is_settled());
    let policy = scene.look(&Place::Setting(format!("{THP}/enabled")));
    assert_eq!(policy, State::Text("always".to_owned()));
    assert_eq!(kept(&scene), "67584\n");
}

#[test]
fn a_plan_that_is_undone_below_another_leaves_it_the_reserve() {
    let (lower, upper) = (
        policy("thp=madvise", "never", "madvise"),
        policy("thp=always", "madvise", "always"),
    );
    for order in [[&lower, &upper], [&upper, &lower]] {
        let scene = scene(NEVER);
        scene.apply(&lower).expect("applied");
        scene.apply(&upper).expect("applied");
        for plan in order {
            assert!(scene.undo_plan(plan).is_settled());
        }
        assert_eq!((kept(&scene).as_str(), scene.journals().len()), ("30000\n", 0));
    }
}

#[test]
fn runs_that_are_killed_leave_it_to_the_next() {
    let plan = policy("thp=always", "never", "always");
    for fault in [
        Fault::DieBefore(0),
        Fault::DieAfter(0),
        Fault::DieBefore(1),
        Fault::DieAfter(1),
    ] {
        let scene = scene(NEVER);
        scene.apply(&plan).expect("applied");
        let (process, setup) = scene.run();
        process.expect(fault);
        let _ = setup.undo(None, false);
        process.die();
        assert!(scene.undo().is_settled(), "{fault:?}");
        assert_eq!(
            (kept(&scene).as_str(), scene.journals().len()),
            ("30000\n", 0),
            "{fault:?}"
        );
    }
    // A plan that goes back by itself, since its second change fails.
    let two = Plan {
        changes: vec![
            plan.changes[0].clone(),
            setting("group", "/proc/sys/vm/hugetlb_shm_group", text("0"), text("71")),
        ],
        ..plan
    };
    let scene = scene(NEVER);
    let (process, setup) = scene.run();
    process.expect(Fault::Fail(1, std::io::ErrorKind::InvalidInput));
    setup.apply(&two, &how()).expect_err("rolled back");
    assert_eq!((kept(&scene).as_str(), scene.journals().len()), ("30000\n", 0));
}
