//! Two plans on one machine: applied, verified, and undone one by one in both orders, killed at any write.

use model::plan::{Change, Plan, Target, Value};
use model::setup::RevertOutcome;

use super::scene::{LIMITS_D, SYSCTL_D, Scene, THP, change, file, nobody, pool, setting, text};
use super::{SetupError, Which};
use crate::fake::Fault;
use crate::place::{FileState, Place, State};

const LIMITS: &str = "old\njboss - memlock 49152\n";

fn edited(id: &str, path: &str, before: &str, after: &str) -> Change {
    let target = Target::File {
        path: path.to_owned(),
        mode: None,
        owner: None,
    };
    change(id, target, text(before), text(after))
}

fn plan(goal: &str, changes: Vec<Change>) -> Plan {
    Plan {
        goals: vec![goal.to_owned()],
        changes,
        ..Plan::default()
    }
}

/// 16 pages, and lines of its own.
fn first() -> Plan {
    plan(
        "pool:2M=16",
        vec![
            setting("pool", &pool(0), Value::Pages(5), Value::Pages(21)),
            setting("thp", &format!("{THP}/enabled"), text("madvise"), text("always")),
            file(
                "sysctl",
                SYSCTL_D,
                Value::Absent,
                "vm.nr_hugepages = 21\nvm.swappiness = 1\n",
            ),
            edited("limits", LIMITS_D, "old\n", LIMITS),
        ],
    )
}

/// 32 pages more, and lines beside those.
fn second() -> Plan {
    plan(
        "pool:2M=32",
        vec![
            setting("pool", &pool(0), Value::Pages(21), Value::Pages(53)),
            setting("group", "/proc/sys/vm/hugetlb_shm_group", text("0"), text("71")),
            edited(
                "sysctl",
                SYSCTL_D,
                "vm.nr_hugepages = 21\nvm.swappiness = 1\n",
                "vm.nr_hugepages = 53\nvm.swappiness = 1\nvm.hugetlb_shm_group = 71\n",
            ),
        ],
    )
}

fn pages(scene: &Scene) -> u64 {
    scene.machine.pool(super::scene::M2, |pool| pool.nodes[0].persistent)
}

fn content(scene: &Scene, path: &str) -> Option<String> {
    match scene.look(&Place::File(path.to_owned())) {
        State::File(FileState { text, .. }) => Some(text),
        _ => None,
    }
}

fn obtained(scene: &Scene) -> bool {
    let verified = scene.run().1.verify(None, &nobody(), &|_| None).expect("verified");
    verified.is_obtained()
}

#[test]
fn two_plans_are_undone_one_by_one_in_both_orders() {
    for order in [[first(), second()], [second(), first()]] {
        let scene = Scene::new();
        let before = scene.machine.world().set_up();
        scene.apply(&first()).expect("applied");
        scene.apply(&second()).expect("applied");
        assert!(obtained(&scene));
        let undone = scene.undo_plan(&order[0]);
        assert!(undone.is_settled(), "{undone:?}");
        let is_first = order[0] == first();
        assert_eq!(
            pages(&scene),
            if is_first { 37 } else { 21 },
            "what the other one needs"
        );
        let sysctl = match is_first {
            // The 5 pages that were there before are in no file.
            true => "vm.nr_hugepages = 32\nvm.hugetlb_shm_group = 71\n",
            false => "vm.nr_hugepages = 21\nvm.swappiness = 1\n",
        };
        assert_eq!(content(&scene, SYSCTL_D).as_deref(), Some(sysctl));
        assert_eq!(
            content(&scene, LIMITS_D).as_deref(),
            Some(if is_first { "old\n" } else { LIMITS })
        );
        assert_eq!(scene.journals().len(), 1);
        assert!(obtained(&scene), "what is left is as it is to be");
        let undone = scene.undo_plan(&order[1]);
        assert!(
            undone.steps.iter().all(|step| step.outcome == RevertOutcome::Restored),
            "{undone:?}"
        );
        assert_eq!(scene.machine.world().set_up(), before);
        assert_eq!(scene.journals().len(), 0);
    }
}

#[test]
fn an_undo_of_the_lower_plan_killed_at_any_write_is_finished_by_the_next() {
    let mut struck = 0;
    for fault in (0..12).flat_map(|n| [Fault::DieBefore(n), Fault::DieAfter(n)]) {
        let scene = Scene::new();
        let before = scene.machine.world().set_up();
        scene.apply(&first()).expect("applied");
        scene.apply(&second()).expect("applied");
        let (process, setup) = scene.run();
        process.expect(fault);
        let _ = setup.undo(Some(&Which::Plan(Box::new(first()))), false);
        struck += u32::from(process.is_dead());
        process.die();
        let undone = scene.undo();
        assert!(undone.is_settled(), "{fault:?}: {undone:?}");
        assert_eq!(scene.machine.world().set_up(), before, "{fault:?}");
        assert_eq!(scene.journals().len(), 0, "{fault:?}");
    }
    assert!(struck >= 6, "{struck}");
}

#[test]
fn a_plan_that_is_not_on_record_is_named_and_nothing_is_undone() {
    let scene = Scene::new();
    scene.apply(&first()).expect("applied");
    let error = scene.run().1.undo(Some(&Which::Goal("redis".to_owned())), false);
    assert!(matches!(error, Err(SetupError::NotOnRecord(_))), "{error:?}");
    assert_eq!(pages(&scene), 21);
    let by_goal = scene.run().1.undo(Some(&Which::Goal("pool:2M=16".to_owned())), false);
    assert!(by_goal.expect("undone").is_settled());
    assert_eq!(pages(&scene), 5);
}

#[test]
fn a_clock_that_goes_back_between_two_plans_changes_nothing_of_their_order() {
    let scene = Scene::new();
    let before = scene.machine.world().set_up();
    scene.apply(&first()).expect("applied");
    // As it was named by a machine whose clock is ahead.
    let journal = scene.journals().remove(0);
    std::fs::rename(&journal, journal.with_file_name("plan-09999999999999999999-7.jsonl")).expect("renamed");
    scene.apply(&second()).expect("applied");
    let undone = scene.undo();
    assert!(
        undone.steps.iter().all(|step| step.outcome == RevertOutcome::Restored),
        "{undone:?}"
    );
    assert_eq!(scene.machine.world().set_up(), before);
}

#[test]
fn a_line_that_a_full_disk_tore_does_not_hide_the_whole_ones_behind_it() {
    let scene = Scene::new();
    let before = scene.machine.world().set_up();
    scene.apply(&first()).expect("applied");
    let journal = scene.journals().remove(0);
    let text = std::fs::read_to_string(&journal).expect("read");
    let lines: Vec<&str> = text.lines().collect();
    let torn = &lines[1][..lines[1].len() / 2];
    for between in [torn.to_owned(), format!("{torn}\n")] {
        let mut whole = lines.clone();
        let last = format!("{between}{}", whole.remove(2));
        whole.insert(2, &last);
        std::fs::write(&journal, whole.join("\n") + "\n").expect("torn");
        assert!(scene.run().1.status().expect("read").runs[0].complete);
    }
    assert!(scene.undo().is_settled());
    assert_eq!(scene.machine.world().set_up(), before);
}

#[test]
fn a_reader_needs_no_lock() {
    let scene = Scene::new();
    scene.apply(&first()).expect("applied");
    let home = crate::state_dir::StateDir(scene.home());
    let _lock = home.try_lock().expect("a run at work");
    assert_eq!(scene.run().1.status().expect("read").runs.len(), 1);
    assert!(obtained(&scene));
}

#[test]
fn what_the_machine_would_not_survive_is_refused_before_anything_is_changed() {
    let cases = [
        file("a", SYSCTL_D, Value::Absent, "vm.nr_hugepages = 17179869184\n"),
        file("b", SYSCTL_D, Value::Absent, "vm.min_free_kbytes = 4194304\n"),
        setting("c", super::scene::OVERCOMMIT, Value::Pages(2), Value::Pages(1 << 34)),
        file(
            "d",
            "/etc/default/grub.d/60-hugewise.cfg",
            Value::Absent,
            "GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX hugepagesz=1G hugepages=64\"\n",
        ),
    ];
    for hostile in cases {
        let scene = Scene::new();
        let error = scene.apply(&plan("x", vec![hostile])).expect_err("refused");
        assert!(matches!(error, SetupError::TooMuch { .. }), "{error}");
        assert_eq!((scene.machine.world().written.len(), scene.journals().len()), (0, 0));
    }
}

#[test]
fn a_pool_that_a_later_plan_made_smaller_is_short_for_the_earlier_one() {
    let scene = Scene::new();
    scene.apply(&first()).expect("applied");
    let smaller = setting("pool", &pool(0), Value::Pages(21), Value::Pages(8));
    scene.apply(&plan("pool:2M=8", vec![smaller])).expect("applied");
    let verified = scene.run().1.verify(None, &nobody(), &|_| None).expect("verified");
    assert!(!verified.is_obtained(), "{verified:?}");
    let check = &verified.plans[0].checks[0];
    assert_eq!(check.verdict, model::setup::Verdict::Short, "{check:?}");
    assert_eq!(check.note, "changed further for pool:2M=8");
}
