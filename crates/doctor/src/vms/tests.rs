//! Each rule of `vms` where it fires and where it must not.

use host::Tree;
use programs::Evidence;
use programs::config::Given;

use crate::judge;
use crate::machines::*;

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
fn g02_each_manager_s_own_way() {
    let never = |tree| thp(tree, "shmem_enabled", "always within_size advise [never] deny force");
    let ram = || shared(2048, "/memfd:guest_mem (deleted)");
    let on = |name: &str, group: &str| {
        let guest = process(114, name).cgroup(group).area(ram());
        found("G02", guest.on(never(pool(machine(), "2048kB", 0, 0, 0))))
            .fix
            .join("\n")
    };
    let own = on("firecracker", "/system.slice/vm.service");
    assert!(
        own.contains("\"huge_pages\": \"2M\"") && own.contains("it needs 1024 pages of 2M"),
        "{own}"
    );
    assert!(!own.contains("advise"), "{own}");
    let own = on("cloud-hypervisor", "/system.slice/vm.service");
    assert!(own.contains("hugepages=on") && own.contains("advise"), "{own}");
    let own = on("qemu-system-x86_64", "/machine.slice/machine-qemu\\x2d1\\x2dvm.scope");
    assert!(own.contains("<hugepages/>") && !own.contains("memfd"), "{own}");
    let own = on("qemu-system-x86_64", "/qemu.slice/100.scope");
    assert!(own.contains("hugepages: 2"), "{own}");
    let own = on("qemu-system-x86_64", "/user.slice");
    assert!(own.contains("memory-backend-memfd"), "{own}");
}

#[test]
fn g03_a_guest_without_reservation() {
    let vm = |flags| process(112, "cloud-hypervisor").area(hugetlb(1024, 2048).resident(100).flags(flags));
    let with = |free| pool(machine(), "2048kB", 50 + free, free, 0);
    found("G03", vm("rd wr sh ht nr").on(with(100)));
    clear("G03", vm("rd wr sh ht nr").on(with(500)));
    clear("G03", vm("rd wr sh ht").on(with(100)));
}

#[test]
fn g08_a_guest_whose_private_memory_no_process_maps() {
    let vm = |option: &str| {
        process(113, "qemu-system-x86_64")
            .arg("-object")
            .arg(option)
            .area(anonymous(1024))
    };
    found("G08", vm("sev-snp-guest,id=sev0,cbitpos=51").on(machine()));
    clear("G02", vm("sev-snp-guest,id=sev0,cbitpos=51").on(machine()));
    clear("G08", vm("memory-backend-memfd,id=m,size=1G").on(machine()));
    let old = machine().line("/proc/sys/kernel/osrelease", "6.1.0");
    clear("G08", vm("sev-snp-guest,id=sev0").on(old));
}

#[test]
fn g04_devices_of_memory_and_pages_that_contradict_each_other() {
    let said = |pages: &str| {
        let mut given = Given::default();
        let xml = format!(
            "<domain type='kvm'><name>vm</name><memory unit='gib'>12</memory><memoryBacking><hugepages>{pages}</hugepages></memoryBacking>\
             <cpu><numa><cell id='0' memory='8' unit='GiB'/></numa></cpu><devices><memory model='dimm'><target>\
             <size unit='GiB'>4</size><node>0</node></target></memory></devices></domain>"
        );
        for (path, text) in [("vm.xml", xml.as_str()), ("sysctl.conf", "vm.nr_hugepages = 4096\n")] {
            given.add(path, text.as_bytes(), None).expect(path);
        }
        let diagnosis = judge(&Evidence::of_files(given));
        let found = diagnosis.of("G04").next().expect("a finding");
        format!("{}\n{}", found.consequence, found.fix.join("\n"))
    };
    let short = said("<page size='2048' unit='kib'/>");
    assert!(
        short.contains("needs at least 6144 pages of 2M, and the pool has 4096"),
        "{short}"
    );
    let refused = said("<page size='2' unit='m'/><page size='1' unit='g'/>");
    assert!(
        refused.contains("two master hugepages detected") && refused.contains("keep one <page> without nodeset"),
        "{refused}"
    );
}
