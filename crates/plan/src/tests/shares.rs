//! Plans beside each other: pages of the goal's own program count once, and those of others stay.

use host::{Source, Tree};
use model::Bytes;
use model::plan::{Plan, PoolNeed, Value};

use super::{TWO, after, change};
use crate::{Host, Need, Recorded, Wanted, plan};

const POOL: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
const SYSCTL_D: &str = "/etc/sysctl.d/60-hugewise.conf";

/// A machine whose pool has this many pages, of which so many are free and so many reserved.
fn machine(all: u64, free: u64, reserved: u64, files: &[(&str, &str)]) -> Source {
    let pool = "/sys/kernel/mm/hugepages/hugepages-2048kB";
    let tree = Tree::new()
        .line("/proc/sys/kernel/osrelease", "6.18.0")
        .file(
            "/proc/meminfo",
            "MemTotal: 16000000 kB\nMemAvailable: 12000000 kB\nHugepagesize: 2048 kB\n",
        )
        .line("/proc/sys/vm/hugetlb_shm_group", 70)
        .line("/proc/sys/kernel/shmmax", u64::MAX - (1 << 24))
        .line("/proc/sys/kernel/shmall", u64::MAX - (1 << 24))
        .line(&format!("{pool}/nr_hugepages"), all)
        .line(&format!("{pool}/free_hugepages"), free)
        .line(&format!("{pool}/resv_hugepages"), reserved)
        .line(&format!("{pool}/surplus_hugepages"), 0)
        .file("/etc/systemd/system.conf", "")
        .file("/etc/passwd", "dba:x:70:70::/:/bin/sh\noracle:x:71:71::/:/bin/sh\n")
        .file("/etc/group", "dba:x:70:\noracle:x:71:\n");
    let tree = files.iter().fold(tree, |tree, (path, text)| tree.file(path, *text));
    Source::from_tree("made", tree)
}

fn wanted(goal: &str, pages: u64, own: u64, asks: bool) -> Wanted {
    let need = Need {
        page: TWO,
        node: None,
        pages,
        how: format!("{goal}: {pages}"),
        own,
        asks,
    };
    Wanted::new(goal.parse().expect(goal), vec![need])
}

fn recorded(goal: &str, pages: u64, own: u64) -> Recorded {
    let need = PoolNeed {
        goal: goal.to_owned(),
        page: TWO,
        node: None,
        pages,
    };
    Recorded { need, own }
}

fn planned(source: &Source, recorded: &[Recorded], wanted: &[Wanted]) -> Plan {
    let host = Host::look(source).with_recorded(recorded.to_vec());
    plan(&host, wanted).expect("a plan")
}

/// The pool that a plan makes; `None` where it leaves it as it is.
fn pool(plan: &Plan) -> Option<u64> {
    let pool = plan.changes.iter().find(|change| change.target.path() == Some(POOL))?;
    match pool.after {
        Value::Pages(pages) => Some(pages),
        _ => None,
    }
}

#[test]
fn a_program_s_own_pages_are_not_others() {
    // (pages, free, reserved, needed, its own) as they were seen: PostgreSQL, a JVM, a guest, MariaDB.
    for (all, free, reserved, needs, own) in [
        (537, 512, 512, 537, 537),
        (1182, 0, 0, 1182, 1182),
        (256, 0, 0, 256, 256),
        (672, 152, 122, 672, 642),
    ] {
        let source = machine(all, free, reserved, &[]);
        let plan = planned(&source, &[], &[wanted("jvm:heap=1g", needs, own, true)]);
        assert_eq!(pool(&plan), None, "{all}: {plan:#?}");
    }
    // It fell back beside a pool that is too small: so many as it needs, be it that it has some of them.
    let source = machine(1100, 947, 0, &[]);
    let plan = planned(&source, &[], &[wanted("jvm:heap=1g", 1182, 153, true)]);
    assert_eq!(pool(&plan), Some(1182));
}

#[test]
fn pages_of_other_programs_stay_and_the_sum_in_the_text_adds_up() {
    let source = machine(700, 500, 100, &[]);
    let plan = planned(&source, &[], &[wanted("jvm:heap=1g", 600, 200, true)]);
    // 300 in use or reserved, 200 of them its own.
    assert_eq!(pool(&plan), None, "700 hold both");
    let plan = planned(&source, &[], &[wanted("jvm:heap=1g", 800, 200, true)]);
    assert_eq!(pool(&plan), Some(900));
    let why = &change(&plan, POOL).why;
    let sum =
        "jvm:heap=1g: 800 + 100 that other programs have now, touched or reserved = 900; 200 of these it has already";
    assert!(why.contains(sum), "{why}");
}

#[test]
fn a_second_plan_adds_to_what_the_first_on_record_needs() {
    let file = (SYSCTL_D, "vm.nr_hugepages = 537\n");
    let first = recorded("postgres:/srv/pg/postgresql.conf", 537, 0);
    // The first server is stopped, so that nothing shows its need but the record.
    let source = machine(537, 537, 0, &[file]);
    let second = [wanted("jvm:heap=2g", 1182, 0, false)];
    let plan = planned(&source, std::slice::from_ref(&first), &second);
    assert_eq!(pool(&plan), Some(1719));
    assert_eq!(after(&plan, SYSCTL_D), "vm.nr_hugepages = 1719\n");
    assert!(change(&plan, POOL).risk.losses.is_empty());
    let why = &change(&plan, POOL).why;
    assert!(
        why.contains("1182 + 537 for postgres:/srv/pg/postgresql.conf (a plan on record) = 1719"),
        "{why}"
    );
    // It runs, or asks itself: still the same sum.
    let running = recorded("postgres:/srv/pg/postgresql.conf", 537, 537);
    let source = machine(537, 512, 512, &[file]);
    assert_eq!(pool(&planned(&source, &[running], &second)), Some(1719));
    let asks = [wanted("jvm:heap=2g", 1182, 0, true)];
    let source = machine(537, 537, 0, &[file]);
    assert_eq!(pool(&planned(&source, &[first], &asks)), Some(1719));
}

#[test]
fn the_same_goal_again_replaces_what_is_on_record_for_it() {
    let postgres = "postgres:/srv/pg/postgresql.conf";
    let files = [
        (SYSCTL_D, "vm.nr_hugepages = 1719\n"),
        ("/srv/pg/postgresql.conf", "huge_pages = on\n"),
    ];
    let source = machine(1719, 1719, 0, &files);
    let records = [recorded(postgres, 537, 0), recorded("jvm:heap=2g", 1182, 0)];
    let same = planned(&source, &records, &[wanted(postgres, 537, 0, true)]);
    assert_eq!(pool(&same), None, "{same:#?}");
    let smaller = planned(&source, &records, &[wanted(postgres, 300, 0, true)]);
    assert_eq!(pool(&smaller), Some(1482));
    let losses = &change(&smaller, POOL).risk.losses;
    assert_eq!(
        losses,
        &["the pool gets smaller: 1719 pages (the pool now) become 1482"]
    );
}

#[test]
fn a_pool_that_a_file_asks_for_is_never_lowered_without_a_line() {
    let own = (SYSCTL_D, "vm.nr_hugepages = 928\n");
    let source = machine(0, 0, 0, &[own]);
    let plan = planned(&source, &[], &[wanted("jvm:heap=400m", 250, 0, false)]);
    assert_eq!(after(&plan, SYSCTL_D), "vm.nr_hugepages = 1178\n", "928 are another's");
    let plan = planned(&source, &[], &[wanted("jvm:heap=400m", 250, 0, true)]);
    assert_eq!(pool(&plan), Some(928), "a program that asks has them");
    let source = machine(300, 300, 0, &[]);
    let plan = planned(&source, &[], &[wanted("jvm:heap=1g", 140, 0, true)]);
    assert_eq!(pool(&plan), None);
    let by_number = Wanted::new("pool:2M=16".parse().expect("a goal"), Vec::new());
    let records = [recorded("jvm:heap=400m", 250, 0)];
    let plan = planned(&source, &records, &[by_number]);
    let losses = change(&plan, POOL).risk.losses.join("; ");
    assert!(
        losses.contains("300 pages (the pool now) become 16")
            && losses.contains("250 pages are on record for jvm:heap=400m"),
        "{losses}"
    );
}

#[test]
fn a_pool_that_was_planned_by_its_size_has_the_pages_of_a_program_that_asks() {
    let source = machine(64, 64, 0, &[]);
    let records = [recorded("pool:2M=64", 64, 0)];
    let of = |own, asks| pool(&planned(&source, &records, &[wanted("vm:128M,name=a", 64, own, asks)]));
    assert_eq!((of(64, true), of(0, true)), (None, None), "there already");
    assert_eq!(of(0, false), Some(128), "whoever that pool is for");
    let both = [recorded("pool:2M=64", 64, 0), recorded("jvm:heap=40m", 20, 0)];
    let plan = planned(&source, &both, &[wanted("vm:128M,name=a", 64, 0, true)]);
    assert_eq!(pool(&plan), Some(84), "beside a program on record");
}

#[test]
fn pages_that_memory_cannot_hold_twice_are_not_added() {
    let source = machine(0, 0, 0, &[("/etc/sysctl.d/50-a.conf", "vm.nr_hugepages = 5000\n")]);
    let plan = planned(&source, &[], &[wanted("jvm:heap=6g", 4000, 0, false)]);
    assert_eq!(pool(&plan), Some(5000));
    let source = machine(
        0,
        0,
        0,
        &[("/etc/sysctl.d/50-a.conf", "vm.nr_hugepages = 8589934592\n")],
    );
    let plan = planned(&source, &[], &[wanted("jvm:heap=6g", 4000, 0, false)]);
    assert_eq!(pool(&plan), Some(4000), "a mistake is nobody's need");
}

#[test]
fn two_goals_of_one_user_lock_the_sum_and_two_groups_do_not_replace_each_other() {
    let source = machine(0, 0, 0, &[]);
    let oracle = |pages| wanted("oracle:sga=1G,user=oracle", pages, 0, false);
    let java = wanted("jvm:heap=1g,user=oracle,kind=sun", 512, 0, false);
    let limits = "/etc/security/limits.d/60-hugewise.conf";
    let kib = |pages: u64| (Bytes::mib(2).0 * pages) >> 10;
    let lines = |pages| format!("oracle soft memlock {0}\noracle hard memlock {0}\n", kib(pages));
    let plan = planned(&source, &[], &[oracle(600), java]);
    assert_eq!(after(&plan, limits), lines(1112));
    let record = recorded("jvm:heap=1g,user=oracle,kind=sun", 512, 0);
    let plan = planned(&source, &[record], &[oracle(600)]);
    assert_eq!(after(&plan, limits), lines(1112), "beside a plan on record");

    // Group 70 is in vm.hugetlb_shm_group: oracle joins it.
    assert_eq!(after(&plan, "member-oracle"), "usermod -aG dba oracle");
    let group = "/proc/sys/vm/hugetlb_shm_group";
    assert!(plan.changes.iter().all(|change| change.target.path() != Some(group)));
    let named = wanted("jvm:heap=1g,user=oracle,group=oracle,kind=sun", 512, 0, false);
    let plan = planned(&source, &[], &[named]);
    let losses = change(&plan, group).risk.losses.join("; ");
    assert!(losses.contains("group 70 (dba) may use SHM_HUGETLB now"), "{losses}");
}
