//! The JVM's recipe as it was published in 2008, its modern counterpart, and the one that still takes shared memory.

use host::Source;
use model::plan::Value;

use super::tests::{TWO, after, change, failed, fixture, planned, small, wanted};

#[test]
fn the_jboss_recipe_of_2008() {
    let plan = planned(
        &fixture("rhel5-jboss"),
        &[wanted("jvm:heap=6g,user=jboss", &[(TWO, 3072)])],
    );
    assert_eq!(after(&plan, "/proc/sys/kernel/shmmax"), "8589934592");
    assert_eq!(change(&plan, "/proc/sys/vm/nr_hugepages").after, Value::Pages(3072));
    assert_eq!(after(&plan, "/proc/sys/vm/hugetlb_shm_group"), "501");
    let limits = after(&plan, "/etc/security/limits.conf");
    assert!(
        limits.contains("\njboss soft memlock 6291456\njboss hard memlock 6291456\n"),
        "{limits}"
    );
    assert!(
        limits.starts_with("# /etc/security/limits.conf\n"),
        "what was there stays: {limits}"
    );
    let sysctl = after(&plan, "/etc/sysctl.conf");
    for line in [
        "kernel.shmmax = 8589934592",
        "vm.nr_hugepages = 3072",
        "vm.hugetlb_shm_group = 501",
        "kernel.sysrq = 0",
    ] {
        assert!(sysctl.lines().any(|found| found == line), "{line} in {sysctl}");
    }
    assert_eq!(after(&plan, "jvm-options"), "-XX:+UseLargePages -Xms6g -Xmx6g");
    assert!(
        plan.notes
            .iter()
            .any(|note| note.starts_with("kernel.shmall is 2097152, enough")),
        "{:?}",
        plan.notes
    );
}

#[test]
fn its_modern_counterpart_says_why_it_differs() {
    let plan = planned(
        &fixture("jvm-madvise"),
        &[wanted("jvm:heap=6g,user=jboss", &[(TWO, 3252)])],
    );
    let places: Vec<String> = plan.changes.iter().map(|change| change.target.to_string()).collect();
    assert!(
        places
            .iter()
            .any(|place| place.ends_with("hugepages-2048kB/nr_hugepages")),
        "{places:?}"
    );
    for old in ["shmmax", "hugetlb_shm_group", "limits"] {
        assert!(places.iter().all(|place| !place.contains(old)), "{places:?}");
    }
    for reason in ["MAP_HUGETLB", "SHM_HUGETLB", "code cache", "6660096 KiB"] {
        assert!(
            plan.notes.iter().any(|note| note.contains(reason)),
            "{reason}: {:?}",
            plan.notes
        );
    }
}

#[test]
fn openj9_still_takes_shared_memory_and_all_that_this_asks_for() {
    let source = Source::from_tree(
        "test",
        small()
            .file("/etc/passwd", "app:x:70:71::/:/bin/sh\n")
            .file("/etc/group", "app:x:71:\n"),
    );
    let plan = planned(
        &source,
        &[wanted("jvm:heap=1g,user=app,kind=openj9,service=app", &[(TWO, 512)])],
    );
    assert_eq!(after(&plan, "/proc/sys/vm/hugetlb_shm_group"), "71");
    let drop_in = after(&plan, "/etc/systemd/system/app.service.d/60-hugewise.conf");
    assert_eq!(drop_in, "[Service]\nLimitMEMLOCK=1073741824\n");
    assert!(after(&plan, "jvm-options").contains("-Xlp:objectheap:pagesize=2m"));
    let unknown = failed(
        &source,
        &[wanted("jvm:heap=1g,user=nobody1,kind=openj9", &[(TWO, 512)])],
    );
    assert!(
        unknown.contains("no user nobody1") && unknown.contains("useradd"),
        "{unknown}"
    );
}
