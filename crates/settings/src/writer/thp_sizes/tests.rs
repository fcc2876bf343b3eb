//! THP sizes on loan on a made machine: what is turned, what is refused, and what is turned back after every kind of end.

use std::fs;
use std::io;

use model::Bytes;

use crate::error::{LeaseError, WriterError};
use crate::fake::Fault;
use crate::scene::{Scene, only};
use crate::thp_switch::{ALL_SIZES, ThpSwitch};

const K64: Bytes = Bytes::kib(64);
const FOUR: [(u64, &str); 4] = [
    (16, "always inherit madvise [never]\n"),
    (64, "always inherit madvise [never]\n"),
    (1024, "[always] inherit madvise never\n"),
    (2048, "always [inherit] madvise never\n"),
];

/// A machine of four sizes, of which all programs get the largest two.
fn scene() -> Scene {
    scene_of("[always] madvise never\n")
}

fn scene_of(all_sizes: &str) -> Scene {
    let scene = Scene::new(1, 0);
    scene.machine.set_file(ALL_SIZES, all_sizes);
    for (kib, text) in FOUR {
        scene.machine.set_file(&ThpSwitch(Bytes::kib(kib)).path(), text);
    }
    scene
}

fn chosen(scene: &Scene) -> Vec<String> {
    let process = scene.machine.process(0);
    let read = |(kib, _)| ThpSwitch(Bytes::kib(kib)).read(&process).expect("a word").to_string();
    FOUR.map(read).to_vec()
}

const BEFORE: [&str; 4] = ["never", "never", "always", "inherit"];

#[test]
fn one_size_is_lent_alone_and_all_are_as_before_afterwards() {
    let scene = scene();
    let (_, writer) = scene.run(1);
    let sizes = writer.claim_thp_sizes().expect("nobody else");
    let lease = sizes.lend(K64).expect("a lease");
    assert_eq!(
        lease.how(),
        "set THP of 64K never -> always, THP of 1M always -> madvise, THP of 2M inherit -> madvise"
    );
    assert_eq!(chosen(&scene), ["never", "always", "madvise", "madvise"]);
    let told = lease.give_back().expect("given back");
    assert_eq!(told[0].to_string(), "THP of 2M madvise -> inherit");
    assert!(
        told.len() == 3 && told.iter().all(crate::GaveBack::is_clean),
        "{told:?}"
    );
    assert_eq!(
        (chosen(&scene), scene.journals().len()),
        (BEFORE.map(str::to_owned).to_vec(), 0)
    );
    // Dropped without a word, and another size after it.
    for size in [Bytes::mib(2), Bytes::kib(16)] {
        drop(sizes.lend(size).expect("a lease"));
        assert_eq!(
            (chosen(&scene), scene.journals().len()),
            (BEFORE.map(str::to_owned).to_vec(), 0)
        );
    }
}

#[test]
fn what_only_advised_memory_gets_stays_as_it_is() {
    let scene = scene_of("always [madvise] never\n");
    let (_, writer) = scene.run(1);
    let sizes = writer.claim_thp_sizes().expect("nobody else");
    for (size, how) in [
        (K64, "set THP of 64K never -> always, THP of 1M always -> madvise"),
        (Bytes::mib(1), "changed no switch of a THP size: they were as it needs"),
        (
            Bytes::mib(2),
            "set THP of 1M always -> madvise, THP of 2M inherit -> always",
        ),
    ] {
        let lease = sizes.lend(size).expect("a lease");
        assert_eq!(lease.how(), how);
        drop(lease);
        assert_eq!(chosen(&scene), BEFORE.map(str::to_owned));
    }
    assert_eq!(scene.journals().len(), 0);
}

#[test]
fn the_journal_is_there_before_the_write() {
    let scene = scene();
    let (process, writer) = scene.run(1);
    let sizes = writer.claim_thp_sizes().expect("nobody else");
    process.expect(Fault::DieBefore(0));
    sizes.lend(K64).err().expect("died");
    let text = fs::read_to_string(only(scene.journals())).expect("journal");
    let path = "/sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled";
    let line = format!(r#"{{"turn":{{"path":"{path}","before":"never","after":"always"}}}}"#);
    assert_eq!(text.lines().nth(1), Some(line.as_str()));
    assert_eq!(scene.machine.world().written, []);
}

#[test]
fn wherever_a_run_dies_the_next_one_puts_the_switches_back() {
    // Three writes to lend, three to put back.
    for n in 0..6 {
        for fault in [Fault::DieBefore(n), Fault::DieAfter(n)] {
            let scene = scene();
            let (process, writer) = scene.run(1);
            let sizes = writer.claim_thp_sizes().expect("nobody else");
            process.expect(fault);
            drop(sizes.lend(K64));
            assert!(process.is_dead(), "{fault:?}");
            for told in scene.recover() {
                assert!(told.contains("THP of "), "{told}");
            }
            assert_eq!(
                (chosen(&scene), scene.journals().len()),
                (BEFORE.map(str::to_owned).to_vec(), 0),
                "{fault:?}"
            );
            assert_eq!(scene.recover(), Vec::<String>::new(), "{fault:?}");
        }
    }
}

#[test]
fn wherever_a_recovery_dies_the_next_one_goes_on() {
    for n in 0..3 {
        for fault in [Fault::DieBefore(n), Fault::DieAfter(n)] {
            let scene = scene();
            let (process, writer) = scene.run(1);
            let sizes = writer.claim_thp_sizes().expect("nobody else");
            let lease = sizes.lend(K64).expect("a lease");
            process.die();
            drop(lease);
            let (second, writer) = scene.run(2);
            second.expect(fault);
            let _ = writer.recover();
            scene.recover();
            assert_eq!(
                (chosen(&scene), scene.journals().len()),
                (BEFORE.map(str::to_owned).to_vec(), 0),
                "{fault:?}"
            );
        }
    }
}

#[test]
fn what_others_set_meanwhile_stays_and_is_told() {
    let scene = scene();
    let (_, writer) = scene.run(1);
    let sizes = writer.claim_thp_sizes().expect("nobody else");
    let lease = sizes.lend(K64).expect("a lease");
    let set = |kib, text: &str| scene.machine.set_file(&ThpSwitch(Bytes::kib(kib)).path(), text);
    set(64, "always inherit [madvise] never\n");
    set(2048, "always [inherit] madvise never\n");
    let told = lease.give_back().expect("given back");
    let told: Vec<(String, bool)> = told.iter().map(|told| (told.to_string(), told.is_clean())).collect();
    let expected = [
        ("THP of 2M is inherit as before, someone else put it back", true),
        ("THP of 1M madvise -> always", true),
        ("THP of 64K is madvise, set by others; left as it is", false),
    ];
    assert_eq!(told, expected.map(|(text, clean)| (text.to_owned(), clean)));
    assert_eq!(chosen(&scene), ["never", "madvise", "always", "inherit"]);
    assert_eq!(scene.journals().len(), 0);
}

#[test]
fn one_run_at_a_time_lends_sizes() {
    let scene = scene();
    let ((_, one), (_, two)) = (scene.run(1), scene.run(2));
    let first = one.claim_thp_sizes().expect("nobody else");
    let error = two.claim_thp_sizes().err().expect("refused");
    assert!(matches!(error, LeaseError::Writer(WriterError::Busy { .. })), "{error}");
    drop(first);
    two.claim_thp_sizes().expect("it is free again");
}

#[test]
fn no_such_size_and_no_permission_say_what_to_do_and_change_nothing() {
    let scene = scene();
    let (process, writer) = scene.run(1);
    let sizes = writer.claim_thp_sizes().expect("nobody else");
    let error = sizes.lend(Bytes::kib(32)).err().expect("no size");
    assert!(matches!(error, LeaseError::NoSize { .. }), "{error}");
    for (n, kind) in [
        (0, io::ErrorKind::PermissionDenied),
        (1, io::ErrorKind::ReadOnlyFilesystem),
    ] {
        process.expect(Fault::Fail(n, kind));
        let error = sizes.lend(K64).err().expect("denied").to_string();
        assert!(
            error.starts_with("setting the switch of a THP size needs root (sudo)"),
            "{error}"
        );
        assert_eq!(
            (chosen(&scene), scene.journals().len()),
            (BEFORE.map(str::to_owned).to_vec(), 0)
        );
    }
}

#[test]
fn a_state_directory_that_a_user_cannot_make_is_no_permission_for_sizes() {
    let denied = crate::error::WriterError::State {
        doing: "create",
        path: "/run/hugewise".into(),
        source: io::ErrorKind::PermissionDenied.into(),
    };
    let error = super::not_permitted(denied).to_string();
    assert!(
        error.starts_with("setting the switch of a THP size needs root (sudo)"),
        "{error}"
    );
}

#[test]
fn a_switch_that_could_not_be_put_back_is_not_taken_for_what_was_there_before() {
    let scene = scene();
    let (process, writer) = scene.run(1);
    let sizes = writer.claim_thp_sizes().expect("nobody else");
    let lease = sizes.lend(K64).expect("a lease");
    process.expect(Fault::Fail(0, io::ErrorKind::Other));
    // Dropping tries again, and succeeds but for the one that fails.
    drop(lease);
    drop(sizes.lend(Bytes::mib(2)));
    process.die();
    scene.recover();
    assert_eq!(
        (chosen(&scene), scene.journals().len()),
        (BEFORE.map(str::to_owned).to_vec(), 0)
    );
}

#[test]
fn after_a_reboot_the_journal_goes_and_no_switch_is_touched() {
    let scene = scene();
    let (process, writer) = scene.run(1);
    let sizes = writer.claim_thp_sizes().expect("nobody else");
    let lease = sizes.lend(K64).expect("a lease");
    process.die();
    drop(lease);
    scene
        .machine
        .set_file("/proc/sys/kernel/random/boot_id", "second-boot\n");
    assert!(scene.recover()[0].contains("restarted"));
    assert_eq!(scene.journals().len(), 0);
    assert_eq!(chosen(&scene), ["never", "always", "madvise", "madvise"]);
}

#[test]
fn a_planted_turn_of_another_file_or_to_another_word_makes_nobody_write() {
    let path = ThpSwitch(K64).path();
    for (path, before) in [
        ("/etc/passwd", "never"),
        ("/sys/kernel/mm/transparent_hugepage/enabled", "never"),
        ("/sys/kernel/mm/transparent_hugepage/hugepages-064kB/enabled", "never"),
        (&path, "advise"),
    ] {
        let scene = scene();
        let run = r#"{"run":{"format":1,"boot":"first-boot","pid":1,"start":10,"version":"0.1.0","time":"2026-01-01T00:00:00Z"}}"#;
        let line = format!(r#"{{"turn":{{"path":"{path}","before":"{before}","after":"never"}}}}"#);
        scene.plant("run-1-10-0.jsonl", &format!("{run}\n{line}\n"));
        assert!(only(scene.recover()).contains("run-1-10-0.jsonl:2"));
        assert_eq!(scene.machine.world().written, []);
    }
}

/// The kernel raises its reserve when khugepaged starts, and leaves it raised where an administrator had set it.
#[test]
fn the_kernel_s_reserve_is_as_before_unless_others_set_it_meanwhile() {
    let reserve = "/proc/sys/vm/min_free_kbytes";
    let scene = || {
        let scene = scene_of("always madvise [never]\n");
        scene
            .machine
            .set_file(&ThpSwitch(Bytes::mib(2)).path(), "always inherit madvise [never]\n");
        scene.machine.set_file(reserve, "30000\n");
        scene
    };
    let now = |scene: &Scene| crate::sink::text(&scene.machine.process(0), reserve).expect("a number");
    let lent = scene();
    let (_, writer) = lent.run(1);
    let sizes = writer.claim_thp_sizes().expect("nobody else");
    let lease = sizes.lend(Bytes::mib(2)).expect("a lease");
    assert_eq!(now(&lent), "67584\n");
    lease.give_back().expect("given back");
    assert_eq!(now(&lent), "30000\n");
    let lease = sizes.lend(Bytes::mib(2)).expect("a lease");
    lent.machine.set_file(reserve, "90000\n");
    lease.give_back().expect("given back");
    assert_eq!(now(&lent), "90000\n", "theirs stays");
    // Wherever a run dies: of its writes the first turns the switch, the second turns it back, the third lowers the reserve.
    for fault in [Fault::DieAfter(1), Fault::DieBefore(2), Fault::DieAfter(2)] {
        let lent = scene();
        let (process, writer) = lent.run(1);
        let sizes = writer.claim_thp_sizes().expect("nobody else");
        let lease = sizes.lend(Bytes::mib(2)).expect("a lease");
        process.expect(fault);
        drop(lease);
        lent.recover();
        assert_eq!(
            (now(&lent).as_str(), lent.journals().len()),
            ("30000\n", 0),
            "{fault:?}"
        );
    }
    let lent = scene();
    let (process, writer) = lent.run(1);
    let sizes = writer.claim_thp_sizes().expect("nobody else");
    let lease = sizes.lend(Bytes::mib(2)).expect("a lease");
    process.die();
    drop(lease);
    lent.recover();
    assert_eq!(now(&lent), "30000\n");
}
