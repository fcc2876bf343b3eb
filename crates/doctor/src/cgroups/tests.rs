//! Each rule of `cgroups` where it fires and where it must not.

use host::Tree;
use model::findings::Severity;
use programs::Evidence;
use programs::config::Given;

use crate::judge;
use crate::machines::*;

const POD: &str = "/kubepods.slice/pod-db";

/// A pool in use, and a pod with limits of the 2M pool in bytes.
fn node(max: &str, reserved: &str, refused: u64) -> Tree {
    let at = format!("/sys/fs/cgroup{POD}");
    pool(machine(), "2048kB", 512, 256, 0)
        .line(&format!("{at}/hugetlb.2MB.max"), max)
        .line(&format!("{at}/hugetlb.2MB.rsvd.max"), reserved)
        .line(&format!("{at}/hugetlb.2MB.events"), format!("max {refused}"))
        .line("/sys/fs/cgroup/kubepods.slice/hugetlb.2MB.max", 1_u64 << 30)
        .line("/sys/fs/cgroup/kubepods.slice/hugetlb.2MB.rsvd.max", "max")
        .line("/sys/fs/cgroup/kubepods.slice/hugetlb.2MB.events", "max 0")
}

fn database(mib: u64) -> Process {
    process(70, "worker").cgroup(POD).area(hugetlb(mib, 2048))
}

#[test]
fn c01_a_group_that_may_have_less_than_it_maps() {
    found("C01", database(512).on(node("268435456", "268435456", 0)));
    let refused = found("C01", database(100).on(node("536870912", "536870912", 7)));
    assert!(refused.consequence.contains("7 times"), "{}", refused.consequence);
    clear("C01", database(512).on(node("536870912", "536870912", 0)));
    clear("C01", database(512).on(node("max", "max", 0)));
    not_judged(
        "C01",
        database(512).on(node("max", "max", 0)).denied("/proc/70/cgroup"),
        "denied",
    );
    let java = process(71, "java")
        .arg("-XX:+UseLargePages")
        .arg("-Xmx1g")
        .arg("Main")
        .cgroup(POD);
    found("C01", java.on(node("0", "0", 0)));
}

/// cgroup v1 keeps no sum of them, and counts at the group whose limit was hit.
#[test]
fn c01_a_pod_that_ended_before_it_was_looked_at() {
    let refused = |times: u64| {
        let group = "/sys/fs/cgroup/hugetlb/kubepods/besteffort/pod0a1b/hugetlb.2MB";
        process(70, "worker")
            .area(anonymous(100))
            .on(pool(machine(), "2048kB", 512, 512, 0))
            .file(
                "/proc/self/mounts",
                "cgroup /sys/fs/cgroup/hugetlb cgroup rw,hugetlb 0 0\n",
            )
            .line(&format!("{group}.limit_in_bytes"), 0)
            .line(&format!("{group}.failcnt"), times)
    };
    let finding = found("C01", refused(2));
    assert!(
        finding.consequence.contains("besteffort/pod0a1b was refused"),
        "{finding:?}"
    );
    clear("C01", refused(0));
}

#[test]
fn c02_reservations_without_a_limit() {
    let postgres = || process(72, "postgres").cgroup(POD);
    found("C02", postgres().on(node("0", "max", 0)));
    clear("C02", postgres().on(node("0", "0", 0)));
    clear(
        "C02",
        postgres().arg("-c").arg("huge_pages=off").on(node("0", "max", 0)),
    );
    clear(
        "C02",
        process(73, "nginx")
            .cgroup(POD)
            .area(anonymous(100))
            .on(node("0", "max", 0)),
    );
    clear("C02", postgres().on(machine()));
}

/// What a kubelet writes for each size that a pod does not request is 0, and no fault of one that holds another size.
#[test]
fn c02_a_program_of_another_size() {
    let at = format!("/sys/fs/cgroup{POD}");
    let huge = |limit: u64| {
        let tree = pool(node("0", "max", 0), "1048576kB", 8, 4, 0);
        tree.line(&format!("{at}/hugetlb.1GB.max"), limit)
    };
    let switch = |page| {
        let switch = process(74, "testpmd").cgroup(POD).arg("--socket-mem=4096,0");
        switch.area(hugetlb(4096, page).named("/dev/hugepages/rtemap_0").perms("rw-s"))
    };
    clear("C02", switch(1 << 20).on(huge(4 << 30)));
    // Before Linux 5.7 nothing limits reservations: more than the limit is mapped.
    let finding = found("C02", switch(1 << 20).on(huge(2 << 30)));
    assert!(finding.consequence.contains("pages of 1G than the 2G"), "{finding:?}");
    found("C02", switch(2048).on(huge(4 << 30)));
}

#[test]
fn c03_containers_beside_a_pool_without_the_controller() {
    let without = |tree: Tree| tree.line("/sys/fs/cgroup/cgroup.controllers", "cpu memory");
    let container = || process(74, "app").cgroup("/docker/0123").area(anonymous(100));
    found("C03", container().on(without(pool(machine(), "2048kB", 10, 1, 0))));
    clear("C03", container().on(pool(machine(), "2048kB", 10, 1, 0)));
    clear("C03", container().on(without(machine())));
}

#[test]
fn c04_a_container_that_looks_for_a_mount() {
    let dpdk = || process(75, "dpdk-testpmd").cgroup("/docker/0123");
    found("C04", dpdk().on(machine()));
    let mounted = dpdk()
        .on(machine())
        .file("/proc/75/mounts", "none /dev/hugepages hugetlbfs rw,pagesize=2M 0 0\n");
    clear("C04", mounted);
    clear("C04", process(75, "dpdk-testpmd").on(machine()));
    clear("C04", dpdk().arg("--in-memory").on(machine()));
}

#[test]
fn a_pool_that_a_program_is_kept_from_is_not_to_be_freed() {
    let is_freed = |tree: Tree| {
        let diagnosis = judge(&evidence(pool(tree, "2048kB", 512, 512, 0)));
        let idle = diagnosis.of("A02").next().expect("an idle pool");
        idle.fix.iter().any(|step| step.contains("free it"))
    };
    let dpdk = || process(75, "dpdk-testpmd");
    let kept = [
        database(512).on(node("268435456", "268435456", 0)),
        dpdk().cgroup("/docker/0123").on(machine()),
        dpdk().on(machine().file("/proc/self/mounts", "")),
    ];
    assert!(is_freed(machine()));
    assert_eq!(kept.map(is_freed), [false; 3]);
}

/// What a rule says of a pod beside a pool of 512 pages of 2M, and what to do.
fn of_pod(id: &str, spec: &str) -> String {
    let mut given = Given::default();
    let pod = format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\nspec:\n{spec}");
    for (path, text) in [("p.yaml", pod.as_str()), ("sysctl.conf", "vm.nr_hugepages = 512\n")] {
        given.add(path, text.as_bytes(), None).expect(path);
    }
    let diagnosis = judge(&Evidence::of_files(given));
    let lines = diagnosis
        .of(id)
        .flat_map(|found| [vec![found.consequence.clone()], found.fix.clone()].concat());
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn c06_containers_that_run_first() {
    let list = |name: &str, sizes: &[&str]| {
        let own =
            |size: &&str| format!("  - {{name: c, resources: {{limits: {{memory: 1Gi, hugepages-2Mi: {size}}}}}}}\n");
        format!("  {name}:\n{}", sizes.iter().map(own).collect::<String>())
    };
    let said =
        |first: &[&str], others: &[&str]| of_pod("C06", &(list("initContainers", first) + &list("containers", others)));
    assert_eq!(said(&["1Gi", "1Gi"], &["512Mi", "512Mi"]), "");
    let short = said(&["2Gi"], &["512Mi", "512Mi"]);
    assert!(
        short.contains("needs at least 1024 pages of 2M, and the pool has 512"),
        "{short}"
    );
    assert!(!said(&[], &["1Gi", "2Mi"]).is_empty());
}

#[test]
fn c06_page_sizes_by_another_name() {
    let pod = |resource: &str, medium: &str| {
        format!(
            "  containers:\n  - name: c\n    volumeMounts: [{{name: h}}]\n    resources: {{limits: {{memory: 1Gi, {resource}}}}}\n  \
             volumes: [{{name: h, emptyDir: {{medium: {medium}}}}}]\n"
        )
    };
    for (resource, medium, fix) in [
        (
            "hugepages-1G: 2G",
            "HugePages-1G",
            "hugepages-1Gi: 2Gi in its limits and requests, and the medium HugePages-1Gi",
        ),
        ("hugepages-2M: 512M", "HugePages", "hugepages-2Mi: 490Mi in"),
        ("hugepages-2048Ki: 512Mi", "HugePages-2Mi", "hugepages-2Mi: 512Mi in"),
        ("Hugepages-2Mi: 4Gi", "HugePages-2Mi", "hugepages-2Mi: 4Gi in"),
        (
            "hugepages-2Mi: 512Mi",
            "Hugepages-2Mi",
            "name the size in the medium (HugePages-2Mi)",
        ),
        (
            "hugepages-1Gi: 1Gi",
            "HugePages-2Mi",
            "name the size in the medium (HugePages-1Gi)",
        ),
    ] {
        let said = of_pod("C06", &pod(resource, medium));
        assert!(said.contains(fix), "{resource}, {medium}: {said}");
        assert_eq!(
            said.contains("needs at least"),
            resource.starts_with("hugepages-1Gi"),
            "{said}"
        );
    }
    let none = "  containers:\n  - {name: c, resources: {limits: {memory: 1Gi, hugepages-1Gi: 1Gi}}}\n";
    assert!(of_pod("C04", none).contains("medium: HugePages-1Gi"));
}

#[test]
fn c05_a_kubelet_that_counted_before_the_pool_changed() {
    let with = |max: u64| {
        let tree = process(80, "kubelet").on(database(100).on(node("max", "max", 0)));
        tree.line("/sys/fs/cgroup/kubepods.slice/hugetlb.2MB.max", max)
    };
    found("C05", with(512 << 20));
    clear("C05", with(1 << 30));
    clear(
        "C05",
        database(100)
            .on(node("max", "max", 0))
            .line("/sys/fs/cgroup/kubepods.slice/hugetlb.2MB.max", 5),
    );
}

#[test]
fn c09_limits_without_room_for_a_large_page() {
    let refused = || {
        vmstat(
            machine(),
            &[("thp_fault_alloc", 10_000), ("thp_fault_fallback_charge", 2_000)],
        )
    };
    assert_eq!(found("C09", refused()).severity, Severity::Info);
    let full = database(100)
        .on(refused())
        .line(&format!("/sys/fs/cgroup{POD}/memory.max"), 1000)
        .line(&format!("/sys/fs/cgroup{POD}/memory.current"), 990);
    let finding = found("C09", full);
    assert_eq!(finding.severity, Severity::Warning);
    assert!(
        finding.evidence.iter().any(|proof| proof.source.contains("pod-db")),
        "{finding:?}"
    );
    clear("C09", machine());
    not_judged("C09", machine().denied("/proc/vmstat"), "denied");
}

#[test]
fn c10_hugetlb_pages_that_count_as_memory() {
    let with = |options: &str, max: u64| {
        let at = format!("/sys/fs/cgroup{POD}");
        process(90, "db")
            .cgroup(POD)
            .area(hugetlb(1024, 2048).resident(100))
            .on(pool(machine(), "2048kB", 512, 400, 400))
            .file(
                "/proc/self/mounts",
                format!("cgroup2 /sys/fs/cgroup cgroup2 {options} 0 0\n"),
            )
            .line(&format!("{at}/memory.max"), max << 20)
            .line(&format!("{at}/memory.current"), 300_u64 << 20)
    };
    let finding = found("C10", with("rw,memory_hugetlb_accounting", 1000));
    assert!(finding.consequence.contains("924M of hugetlb pages"), "{finding:?}");
    clear("C10", with("rw,memory_hugetlb_accounting", 2000));
    clear("C10", with("rw", 1000));
}
