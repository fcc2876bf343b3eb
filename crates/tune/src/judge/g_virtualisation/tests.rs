//! Group G, each rule where it fires and where it must not.

use host::Tree;

use crate::judge::Verdict;
use crate::judge::machines::*;

fn guest(policy: &str) -> Tree {
    let tree = machine()
        .file(
            "/proc/cpuinfo",
            "vendor_id\t: GenuineIntel\nflags\t\t: pae pdpe1gb hypervisor\n",
        )
        .line("/sys/class/dmi/id/sys_vendor", "QEMU");
    thp(tree, "enabled", policy)
}

#[test]
fn g01_a_guest_without_large_pages() {
    let never = "always madvise [never]";
    let solver = || process(110, "solver").area(anonymous(2048));
    found("G01", solver().on(guest(never)));
    clear("G01", solver().on(guest("always [madvise] never")));
    clear("G01", guest(never));
    clear("G01", solver().on(pool(guest(never), "2048kB", 10, 10, 0)));
    clear("G01", solver().on(thp(machine(), "enabled", never)));
}

#[test]
fn g02_a_guest_on_base_pages() {
    let vm = |area| process(111, "qemu-system-x86_64").area(area);
    found("G02", vm(anonymous(2048).thp(100)).on(machine()));
    clear("G02", vm(anonymous(2048).thp(2000)).on(machine()));
    clear("G02", vm(hugetlb(2048, 2048)).on(machine()));
    clear("G02", process(111, "solver").area(anonymous(2048)).on(machine()));
    not_judged(
        "G02",
        vm(anonymous(2048)).on(machine()).denied("/proc/111/smaps_rollup"),
        "denied",
    );
}

#[test]
fn g03_a_guest_without_reservation() {
    let vm = |flags| process(112, "cloud-hypervisor").area(hugetlb(1024, 2048).resident(100).flags(flags));
    let with = |free| pool(machine(), "2048kB", 50 + free, free, 0);
    found("G03", vm("rd wr sh ht nr").on(with(100)));
    clear("G03", vm("rd wr sh ht nr").on(with(500)));
    clear("G03", vm("rd wr sh ht").on(with(100)));
}

fn vmware(id: &str, text: &str) -> Verdict {
    let evidence = evidence(machine()).with_vmware("db.vmx", text);
    crate::judge::explain(id).expect(id).judge(&evidence)
}

#[test]
fn g06_pages_of_1g_without_full_reservation() {
    let vmx =
        |min: u32| format!("memSize = \"65536\"\nsched.mem.lpage.enable1GPage = \"TRUE\"\nsched.mem.min = \"{min}\"\n");
    assert!(matches!(vmware("G06", &vmx(1024)), Verdict::Found(_)));
    assert_eq!(vmware("G06", &vmx(65536)), Verdict::Clear);
    assert_eq!(vmware("G06", "memSize = \"4096\"\n"), Verdict::Clear);
    assert!(matches!(
        vmware("G06", "sched.mem.lpage.enable1GPage = \"TRUE\"\n"),
        Verdict::NotJudged(_)
    ));
    not_judged("G06", machine(), ".vmx");
}

#[test]
fn g07_large_pages_switched_off() {
    assert!(matches!(
        vmware("G07", "/Mem/AllocGuestLargePage = 0\n"),
        Verdict::Found(_)
    ));
    assert!(matches!(
        vmware("G07", "monitor_control.disable_mmu_largepages = \"TRUE\"\n"),
        Verdict::Found(_)
    ));
    assert_eq!(vmware("G07", "Mem.AllocGuestLargePage = 1\n"), Verdict::Clear);
}
