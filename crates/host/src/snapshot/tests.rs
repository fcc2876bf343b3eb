//! The small parsers: what they read, and how they name what they cannot.

use model::{Bytes, Cause, PageKind, Reading};

use super::Snapshot;
use crate::{Source, Tree};

const THP: &str = "/sys/kernel/mm/transparent_hugepage";

fn take(tree: Tree) -> Snapshot {
    Snapshot::take(&Source::from_tree("test", tree))
}

fn words<T: Clone>(reading: &Reading<T>) -> String {
    reading.unread().map(ToString::to_string).unwrap_or_default()
}

#[test]
fn an_empty_machine_is_all_reasons() {
    let machine = take(Tree::new());
    assert_eq!(machine.page_kinds(), [PageKind::Base]);
    let json = serde_json::to_value(machine.machine()).expect("JSON");
    for (field, value) in json.as_object().expect("an object") {
        assert!(value["unread"] == "absent", "{field}: {value}");
    }
}

#[test]
fn what_is_garbled_is_named_by_path_line_item_and_wanted_type() {
    let machine = take(
        Tree::new()
            .file("/proc/meminfo", "MemTotal:  100 kB\nUnheard of\nMemFree:  lots kB\n")
            .file("/proc/vmstat", "unknown x\nthp_fault_alloc many\n")
            .file("/proc/buddyinfo", "Node 0, zone Normal 1 2 x\n")
            .file("/proc/pressure/memory", "some avg10=NaN avg60=0 avg300=0 total=1\n")
            .file("/proc/cpuinfo", "vendor_id : X\ncpu family : six\n\n")
            .line(&format!("{THP}/enabled"), "always madvise never")
            .line("/sys/devices/system/cpu/online", "0-x")
            .line("/proc/sys/vm/nr_hugepages", "-")
            .line("/hugewise/page_size", 5000),
    );
    let thp = machine.thp.known().expect("THP");
    for (seen, expected) in [
        (
            words(&machine.memory.meminfo),
            "garbled: /proc/meminfo:3: MemFree: `lots ` is not a number of kB",
        ),
        (
            words(&machine.memory.vmstat),
            "garbled: /proc/vmstat:2: thp_fault_alloc: `many` is not a count",
        ),
        (
            words(&machine.memory.free_blocks),
            "garbled: /proc/buddyinfo:1: Normal: `x` is not a count of blocks",
        ),
        (
            words(&machine.memory.pressure),
            "garbled: /proc/pressure/memory:1: avg10: `NaN` is not a share in per cent",
        ),
        (
            words(&machine.cpu.family),
            "garbled: /proc/cpuinfo:2: cpu family: `six` is not of the known form",
        ),
        (
            words(&thp.enabled),
            "garbled: /sys/kernel/mm/transparent_hugepage/enabled:1: `always madvise never` is not a list with one value in [brackets]",
        ),
        (
            words(&machine.topology.online),
            "garbled: /sys/devices/system/cpu/online:1: `0-x` is not a list of CPUs",
        ),
        (
            words(&machine.sysctls.number::<u64>("vm.nr_hugepages")),
            "garbled: /proc/sys/vm/nr_hugepages:1: `-` is not a whole number",
        ),
        (
            words(&machine.base_page()),
            "garbled: /hugewise/page_size:1: 5000 is not a page size",
        ),
    ] {
        assert_eq!(seen, expected);
    }
}

#[test]
fn a_kernel_of_x86_is_known_by_its_name() {
    let named = |release: &str| {
        let tree = Tree::new().line("/proc/sys/kernel/osrelease", release);
        take(tree.line(&format!("{THP}/enabled"), "always [madvise] never"))
    };
    for release in ["5.14.0-362.8.1.el9_3.x86_64", "6.1.0-18-amd64"] {
        let machine = named(release);
        assert_eq!(machine.base_page(), Reading::Known(Bytes::kib(4)), "{release}");
        assert_eq!(machine.pmd_page(), Reading::Known(Bytes::mib(2)), "{release}");
    }
    // A tree that a person made has no file of a capture.
    let why = words(&named("6.8.0-60-generic").base_page());
    assert!(why.starts_with("absent: the size of base pages"), "{why}");
}

#[test]
fn amounts_that_overflow_are_garbled_and_sums_saturate() {
    let machine = take(
        Tree::new()
            .line("/proc/meminfo", format!("MemTotal: {} kB", u64::MAX))
            .line("/proc/buddyinfo", format!("Node 0, zone Normal 0 {}", u64::MAX)),
    );
    assert_eq!(
        machine.memory.meminfo.unread().map(|why| why.unread),
        Some(Cause::Garbled)
    );
    assert_eq!(machine.memory.free_at_least(0), Reading::Known(u64::MAX));
}

#[test]
fn inherit_means_the_general_setting() {
    let size = |kib: u64, policy: &str| (format!("{THP}/hugepages-{kib}kB/enabled"), policy.to_owned());
    let mut tree = Tree::new()
        .line(&format!("{THP}/enabled"), "[always] madvise never")
        .line(&format!("{THP}/hpage_pmd_size"), 2 << 20);
    for (path, policy) in [
        size(2048, "always [inherit] madvise never"),
        size(64, "always inherit [madvise] never"),
        size(32, "always inherit madvise [never]"),
    ] {
        tree = tree.line(&path, policy);
    }
    let machine = take(tree);
    let thp = machine.thp.known().expect("THP");
    for (kib, policy) in [(2048, "always"), (64, "madvise"), (32, "never")] {
        assert_eq!(thp.policy(Bytes::kib(kib)), Reading::Known(policy.to_owned()), "{kib}");
    }
    assert!(
        thp.policy(Bytes::kib(16)).is_absent(),
        "a size that this kernel does not list"
    );
    let kinds: Vec<String> = machine.page_kinds().iter().map(ToString::to_string).collect();
    assert_eq!(kinds, ["base", "mthp-32K", "mthp-64K", "thp"]);
}

#[test]
fn mounts_that_hand_out_large_pages() {
    let machine = take(Tree::new().file(
        "/proc/self/mounts",
        "none /dev/huge\\040pages hugetlbfs rw,pagesize=1024M,gid=7 0 0\ntmpfs /fast tmpfs rw,huge=within_size 0 0\n\
         tmpfs /tmp tmpfs rw 0 0\ntmpfs /off tmpfs rw,huge=never 0 0\ngarbage\n\
         none /written hugetlbfs rw,pagesize=1073741824 0 0\nnone /old hugetlbfs rw,pagesize=2MB 0 0\n",
    ));
    let mounts = machine.mounts.known().expect("mounts");
    let targets: Vec<&str> = mounts.iter().map(|mount| mount.target.as_str()).collect();
    assert_eq!(targets, ["/dev/huge pages", "/fast", "/written", "/old"]);
    assert_eq!(mounts[0].page_size(), Some(Bytes::gib(1)));
    assert_eq!(mounts[2].page_size(), Some(Bytes::gib(1)), "libhugetlbfs#79");
    assert_eq!(mounts[3].page_size(), Some(Bytes::mib(2)));
    assert_eq!(
        (mounts[0].option("gid"), mounts[1].option("huge")),
        (Some("7"), Some("within_size"))
    );
}

#[test]
fn every_way_kvm_can_be_served() {
    for (module, parameter, value, mmu) in [
        ("kvm_intel", "ept", "Y", "ept"),
        ("kvm_intel", "ept", "N", "shadow-vmx"),
        ("kvm_amd", "npt", "1", "npt"),
        ("kvm_amd", "npt", "0", "shadow-svm"),
        ("kvm_pvm", "pvm_native", "N", "shadow-pvm"),
    ] {
        let machine = take(Tree::new().line(&format!("/sys/module/{module}/parameters/{parameter}"), value));
        assert_eq!(machine.kvm.mmu.to_string(), mmu);
        assert_eq!(machine.kvm.module, Reading::Known(module.to_owned()));
        assert_eq!(serde_json::to_value(&machine.kvm.mmu).expect("JSON"), mmu);
    }
}

#[test]
fn hypervisors_are_named_from_what_is_there() {
    let flags = |flags: &str| Tree::new().file("/proc/cpuinfo", format!("vendor_id : X\nflags : {flags}\n"));
    let leaves = "1.0 0 0 80000000 0\n40000000.0 40000001 7263694d 666f736f 76482074\n";
    for (tree, name) in [
        (flags("pae nx"), "none"),
        (flags("pae hypervisor").file("/hugewise/cpuid", leaves), "Hyper-V"),
        (flags("pae hypervisor").line("/sys/hypervisor/type", "xen"), "Xen"),
        (
            flags("pae hypervisor").line("/sys/class/dmi/id/product_name", "VMware Virtual Platform"),
            "VMware",
        ),
    ] {
        assert_eq!(take(tree).cpu.hypervisor, Reading::Known(name.to_owned()));
    }
    let silent = take(flags("pae hypervisor")).cpu.hypervisor;
    assert_eq!(silent.unread().map(|why| why.unread), Some(Cause::Masked));
}

#[test]
fn directories_of_numbers_skip_choices_and_name_what_is_garbled() {
    let ksm = "/sys/kernel/mm/ksm";
    let machine = take(
        Tree::new()
            .line(&format!("{ksm}/advisor_mode"), "[none] scan-time")
            .line(&format!("{ksm}/general_profit"), -4096)
            .line(&format!("{ksm}/run"), "often"),
    );
    let ksm = machine.ksm.known().expect("KSM");
    let names: Vec<&str> = ksm.iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["general_profit", "run"]);
    assert_eq!(ksm.get("general_profit"), Reading::Known(-4096));
    assert_eq!(
        words(&ksm.get("run")),
        "garbled: /sys/kernel/mm/ksm/run:1: `often` is not a whole number"
    );
}
