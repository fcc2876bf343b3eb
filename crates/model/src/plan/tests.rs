//! A plan comes back from JSON as it was, and one that would write elsewhere is refused by name.

use super::{Change, Layer, Mode, Owner, Plan, PlanError, Risk, Taken, Target, Value};
use crate::{Bytes, Cause, Reading, Unread};

const POOL: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";

fn change(target: Target, after: Value) -> Change {
    Change {
        id: "one".to_owned(),
        layer: Layer::Runtime,
        target,
        before: Reading::Known(Value::Absent),
        after,
        why: "because".to_owned(),
        risk: Risk::default(),
        also_written_by: Vec::new(),
        source: String::new(),
    }
}

fn setting(path: &str, after: &str) -> Change {
    let path = path.to_owned();
    change(Target::Setting { path }, Value::Text(after.to_owned()))
}

fn file(path: &str) -> Change {
    let target = Target::File {
        path: path.to_owned(),
        mode: Some(Mode(0o644)),
        owner: None,
    };
    let text = match path {
        "/srv/pg/postgresql.conf" => "shared_buffers = 1GB\nhuge_pages = on\n",
        _ => "# one\n# two\n",
    };
    let mut change = change(target, Value::Text(text.to_owned()));
    if path == "/srv/pg/postgresql.conf" {
        change.before = Reading::Known(Value::Text("shared_buffers = 1GB\n".to_owned()));
    }
    change
}

fn mount(at: &str, options: &str) -> Change {
    change(Target::Mount { at: at.to_owned() }, Value::Text(options.to_owned()))
}

fn checked(changes: Vec<Change>) -> Result<(), PlanError> {
    Plan {
        goals: vec!["postgres:/srv/pg/postgresql.conf".to_owned()],
        changes,
        ..Plan::default()
    }
    .check()
}

#[test]
fn a_plan_comes_back_from_json_as_it_was() {
    let mut pool = change(Target::Setting { path: POOL.to_owned() }, Value::Pages(3072));
    pool.before = Reading::Known(Value::Pages(0));
    pool.risk.takes = Some(Taken {
        bytes: Bytes::gib(6),
        from: "everybody".to_owned(),
    });
    let mut unseen = file("/etc/sysctl.d/60-hugewise.conf");
    unseen.id = "two".to_owned();
    unseen.before = Reading::Unread(Unread::new(Cause::Denied, "/etc/sysctl.d", ""));
    let plan = Plan {
        goals: vec!["pool:2M=3072".to_owned()],
        changes: vec![pool, unseen],
        ..Plan::default()
    };
    plan.check().expect("a good plan");
    let text = serde_json::to_string(&plan).expect("JSON");
    for part in [
        r#""kind":"setting""#,
        r#""after":3072"#,
        r#""mode":"0644""#,
        r##""after":"# one\n# two\n""##,
        r#""unread":"denied""#,
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(serde_json::from_str::<Plan>(&text).expect("read again"), plan);
}

#[test]
fn only_known_settings_are_written() {
    for (path, good, bad) in [
        (POOL, "16", "-1"),
        (
            "/sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled",
            "inherit",
            "1",
        ),
        ("/sys/kernel/mm/transparent_hugepage/enabled", "madvise", "inherit"),
        (
            "/sys/kernel/mm/transparent_hugepage/khugepaged/max_ptes_none",
            "0",
            "9000",
        ),
        (
            "/sys/devices/system/node/node12/hugepages/hugepages-1048576kB/nr_hugepages",
            "4",
            "99999999999",
        ),
        ("/sys/fs/cgroup/a/b.slice/hugetlb.2MB.max", "max", "all"),
        (
            "/sys/fs/cgroup/hugetlb/x/hugetlb.1GB.rsvd.limit_in_bytes",
            "1073741824",
            "1G",
        ),
        ("/proc/sys/kernel/shmmax", "18446744073692774399", "0x10"),
        ("/proc/sys/vm/min_free_kbytes", "67584", "999999999"),
    ] {
        assert_eq!(checked(vec![setting(path, good)]), Ok(()), "{path}");
        let error = checked(vec![setting(path, bad)]).expect_err(path).to_string();
        assert!(
            error.contains(&format!("value `{bad}`")) && error.contains(path),
            "{error}"
        );
    }
    for path in [
        "/proc/sys/kernel/core_pattern",
        "/proc/sys/kernel/../kernel/shmmax",
        "/proc/sys//kernel/shmmax",
        "/proc/sysrq-trigger",
        "/sys/kernel/mm/hugepages/hugepages-02048kB/nr_hugepages",
        "/sys/kernel/mm/hugepages/SIZE/nr_hugepages",
        "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages\n",
        "/sys/devices/system/node/node1x/hugepages/hugepages-2048kB/nr_hugepages",
        "/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_overcommit_hugepages",
        "/sys/fs/cgroup/a/../../../kernel/mm/ksm/hugetlb.2MB.max",
        "/sys/fs/cgroup/a/cgroup.procs",
        "/sys/fs/cgroup/a/hugetlb.MMB.max",
        "sys/kernel/mm/ksm/run",
        "/etc/passwd",
        "",
    ] {
        let error = checked(vec![setting(path, "1")]).expect_err(path).to_string();
        assert!(error.contains("`one`") && !error.contains('\n'), "{error}");
    }
}

#[test]
fn only_known_files_and_those_a_goal_names_are_written() {
    for path in [
        "/etc/sysctl.d/60-hugewise.conf",
        "/etc/sysctl.conf",
        "/etc/systemd/system/a.service.d/60-hugewise.conf",
        "/srv/pg/postgresql.conf",
    ] {
        assert_eq!(checked(vec![file(path)]), Ok(()), "{path}");
    }
    for path in [
        "/etc/shadow",
        "/etc/default/grub",
        "/etc/modprobe.d/60-hugewise.conf",
        "/etc/sysctl.d/10-network-security.conf",
        "/etc/sysctl.d/../shadow",
        "/etc/sysctl.d/a\nb",
        "/etc/sysctl.d/",
        "/srv/pg/other.conf",
        "/root/.bashrc",
    ] {
        assert!(checked(vec![file(path)]).is_err(), "{path}");
    }
    let goals = ["postgres:/usr/lib/x.conf", "innodb:/sys/a.cnf", "postgres:/srv/run.sh"]
        .map(str::to_owned)
        .to_vec();
    for path in ["/usr/lib/x.conf", "/sys/a.cnf", "/srv/run.sh"] {
        let plan = Plan {
            goals: goals.clone(),
            changes: vec![file(path)],
            ..Plan::default()
        };
        assert!(plan.check().is_err(), "{path}");
    }
}

#[test]
fn values_and_names_are_plain() {
    for at in [
        "/dev/hugepages-1G",
        "/mnt/huge/jboss",
        "/hugepages1G",
        "/run/hugepages/kvm",
        "/var/lib/hugetlbfs/a",
    ] {
        assert_eq!(
            checked(vec![mount(at, "pagesize=1G,gid=501,mode=0770")]),
            Ok(()),
            "{at}"
        );
    }
    for (at, options) in [
        ("/", "pagesize=2M"),
        ("/dev", "pagesize=2M"),
        ("/mnt/a", "pagesize=2M"),
        ("/run/udev/rules.d", "pagesize=2M,uid=61001,mode=0775"),
        ("/run/systemd/system", "pagesize=2M"),
        ("/run/modprobe.d", "pagesize=2M"),
        ("/var/lib/hugetlbfs", "pagesize=2M"),
        ("/mnt/hugepages/a b", "pagesize=2M"),
        ("/mnt/huge", "suid"),
        ("/mnt/huge", "mode=07 70"),
        ("/mnt/huge", "x=y"),
        ("/mnt/../etc", "uid=0"),
        ("/mnt/huge", "pagesize=3M"),
        ("/mnt/huge", "mode=0777"),
        ("/mnt/huge", "uid=+1"),
    ] {
        assert!(checked(vec![mount(at, options)]).is_err(), "{at} {options}");
    }
    for (path, value) in [
        ("/proc/sys/kernel/shmmax", "0"),
        ("/proc/sys/kernel/shmall", "1"),
        ("/proc/sys/kernel/shmmni", "1"),
    ] {
        assert!(
            checked(vec![setting(path, value)]).is_err(),
            "{path} = {value}: programs could not start"
        );
    }
    for value in ["", "1\n2", "a\u{1b}[0m"] {
        assert!(checked(vec![setting(POOL, value)]).is_err(), "{value:?}");
    }
    assert!(
        checked(vec![setting(POOL, "1"), setting(POOL, "2")]).is_err(),
        "two of one name"
    );
    let mut named = setting(POOL, "1");
    named.id = "../x".to_owned();
    assert!(checked(vec![named]).is_err());
}

#[test]
fn another_result_is_not_taken_for_a_plan() {
    for (text, part) in [
        ("{", "no plan"),
        (r#"{"schema":"hugewise/ps/2"}"#, "hugewise/ps/2"),
        ("[]", "none"),
        (r#"{"schema":"hugewise/plan/3"}"#, "no plan"),
    ] {
        let error = Plan::from_json(text).expect_err(text).to_string();
        assert!(error.contains(part) && error.contains("--for"), "{error}");
    }
    let set_uid = r#"{"kind":"file","path":"/etc/sysctl.d/a.conf","mode":"4755","owner":null}"#;
    let error = serde_json::from_str::<Target>(set_uid)
        .expect_err("set-user-id")
        .to_string();
    assert!(error.contains("0644"), "{error}");
}

#[test]
fn files_are_root_s_and_no_programs_and_none_is_taken_away() {
    let access = |mode: Option<u32>, owner: Option<(u32, u32)>| {
        let mut change = file("/etc/sysctl.d/60-hugewise.conf");
        change.target = Target::File {
            path: "/etc/sysctl.d/60-hugewise.conf".to_owned(),
            mode: mode.map(Mode),
            owner: owner.map(|(uid, gid)| Owner { uid, gid }),
        };
        checked(vec![change])
    };
    assert_eq!(access(None, None), Ok(()));
    assert_eq!(access(Some(0o640), Some((0, 0))), Ok(()));
    for (mode, owner) in [(Some(0o666), None), (Some(0o755), None), (None, Some((1000, 0)))] {
        assert!(access(mode, owner).is_err(), "{mode:?} {owner:?}");
    }
    let mut gone = file("/etc/sysctl.d/60-hugewise.conf");
    gone.after = Value::Absent;
    let error = checked(vec![gone]).expect_err("gone").to_string();
    assert!(error.contains("takes none away"), "{error}");
}

#[test]
fn an_error_names_the_change_its_number_the_file_and_the_line() {
    let mut hostile = file("/etc/sysctl.d/60-hugewise.conf");
    hostile.id = "two".to_owned();
    hostile.after = Value::Text("vm.nr_hugepages = 1\nkernel.core_pattern=|/tmp/x\n".to_owned());
    let error = checked(vec![setting(POOL, "1"), hostile]).expect_err("hostile");
    let expected =
        "change `two` of the plan (number 2): line 2 of /etc/sysctl.d/60-hugewise.conf `kernel.core_pattern=|/tmp/x`: ";
    assert!(error.to_string().starts_with(expected), "{error}");
}

#[test]
fn an_applied_plan_of_an_earlier_version_is_still_undone() {
    let mut old = file("/etc/sysctl.d/60-hugewise.conf");
    old.after = Value::Text("vm.overcommit_memory = 1\n".to_owned());
    let plan = Plan {
        changes: vec![old],
        ..Plan::default()
    };
    assert!(plan.check().is_err());
    assert_eq!(plan.check_places(), Ok(()));
}
