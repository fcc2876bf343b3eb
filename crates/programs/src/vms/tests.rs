//! Command lines as they are met, machines on made trees, and a real QEMU where there is one.
#![allow(clippy::print_stderr)]

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use model::vms::{KvmPages, Region};
use model::{Bytes, Cause, PageKind, Reading};

use super::configured::{Asked, Backing};
use super::{KVM, Vm, cloud_hypervisor, firecracker, holds_kvm, list, qemu, vm};
use host::{Source, Tree};

fn argv(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

fn memory(asked: &Asked) -> Vec<(u64, Backing)> {
    asked
        .memory
        .iter()
        .map(|(bytes, from)| (bytes.0 >> 20, from.clone()))
        .collect()
}

#[test]
fn qemu_takes_memory_from_m_or_from_backends() {
    let path = |text: &str| Backing::Path(text.to_owned());
    for (line, expected) in [
        ("q", vec![(128, Backing::Any)]),
        ("q -m 4096", vec![(4096, Backing::Any)]),
        ("q -m 4G,slots=2,maxmem=8G", vec![(4096, Backing::Any)]),
        ("q -m size=2048,maxmem=8G", vec![(2048, Backing::Any)]),
        (
            "q -m 1g -mem-path /dev/hugepages -mem-prealloc",
            vec![(1024, path("/dev/hugepages"))],
        ),
        (
            "q -m 2G -object memory-backend-memfd,id=m,hugetlb=on,hugetlbsize=1G,size=2G,share=off -machine memory-backend=m",
            vec![(2048, Backing::Hugetlb(Some(Bytes::gib(1))))],
        ),
        (
            "q -object memory-backend-ram,id=a,size=512M --object=memory-backend-file,id=b,size=512M,mem-path=/a,,b,share=on -numa node,memdev=a -numa node,memdev=b",
            vec![(512, Backing::Any), (512, path("/a,b"))],
        ),
        ("q -object rng-random,id=r -m 64", vec![(64, Backing::Any)]),
        (
            "q -m 1G -object memory-backend-file,id=b,size=1G,mem-path=/a -machine q35",
            vec![(1024, Backing::Any), (1024, path("/a"))],
        ),
        // autotest/tp-qemu#596: a DIMM is beside the memory of -m.
        (
            "q -m 2048,maxmem=32G -mem-path /huge -object memory-backend-file,id=d,size=1G,mem-path=/huge -device pc-dimm,memdev=d",
            vec![(2048, path("/huge")), (1024, path("/huge"))],
        ),
        (
            "q -m 2048 -object memory-backend-ram,id=m,size=2G -numa node,memdev=m -object memory-backend-ram,id=d,size=1G \
             -device pc-dimm,memdev=d",
            vec![(2048, Backing::Any), (1024, Backing::Any)],
        ),
        // virtio-mem takes what is requested of it, and what guests share among themselves is no memory of theirs.
        (
            "q -m 1G -object memory-backend-memfd,id=v,size=16G,hugetlb=on -device virtio-mem-pci,memdev=v,requested-size=0",
            vec![(1024, Backing::Any)],
        ),
        (
            "q -m 1G -object memory-backend-ram,id=v,size=16G -device virtio-mem-pci,memdev=v,requested-size=2G",
            vec![(1024, Backing::Any), (2048, Backing::Any)],
        ),
        (
            "q -m 1G -object memory-backend-file,id=i,size=1G,mem-path=/dev/shm/i,share=on -device ivshmem-plain,memdev=i",
            vec![(1024, Backing::Any)],
        ),
    ] {
        assert_eq!(memory(&qemu::parse(&argv(line))), expected, "{line}");
    }
}

#[test]
fn qemu_neither_uses_each_backend_nor_accepts_each_size() {
    let object = "-object memory-backend-memfd,id=m0,size=4G,hugetlb=on";
    for (line, unused, is_refused) in [
        ("-m 4G -machine q35", Some("m0"), false),
        ("-m 4G -machine q35,memory-backend=m0", None, false),
        ("-m 4G -numa node,memdev=m0", None, false),
        ("-m 4G -device nvdimm,id=d,memdev=m0", None, false),
        ("-m 4G -machine memory-backend=$ID", None, false),
        ("-m 8G -machine memory-backend=m0", None, true),
        ("-machine memory-backend=m0", None, false),
    ] {
        let words = argv(&format!("q {object} {line}"));
        assert_eq!(qemu::unused(&words).as_deref(), unused, "{line}");
        assert_eq!(qemu::refused(&words).is_some(), is_refused, "{line}");
    }
}

#[test]
fn libvirt_writes_json_and_names_the_guest() {
    let words = [
        "/usr/bin/qemu-system-x86_64",
        "-name",
        "guest=db01,debug-threads=on",
        "-m",
        "size=4194304k",
        "-object",
        r#"{"qom-type":"memory-backend-file","id":"pc.ram","mem-path":"/dev/hugepages/libvirt/qemu/1-db01","discard-data":true,"x-use-canonical-path-for-ramblock-id":false,"prealloc":true,"share":true,"size":4294967296}"#,
    ];
    let asked = qemu::parse(&words.map(str::to_owned));
    assert_eq!(asked.name.as_deref(), Some("db01"));
    assert!(asked.prealloc && asked.shared);
    assert_eq!(
        memory(&asked),
        [(4096, Backing::Path("/dev/hugepages/libvirt/qemu/1-db01".to_owned()))]
    );
    assert_eq!(qemu::parse(&argv("q -name web,process=x")).name.as_deref(), Some("web"));
}

#[test]
fn cloud_hypervisor_maps_memory_around_the_hole() {
    let asked = cloud_hypervisor::parse(&argv(
        "cloud-hypervisor --api-socket path=/run/a.sock --memory size=4G,hugepages=on,hugepage_size=2M,shared=on,prefault=on",
    ));
    let pages = Backing::Hugetlb(Some(Bytes::mib(2)));
    assert_eq!(memory(&asked), [(3072, pages.clone()), (1024, pages)]);
    assert!(asked.prealloc && asked.shared);
    assert_eq!(asked.name.as_deref(), Some("/run/a.sock"));
    let zones = cloud_hypervisor::parse(&argv(
        "cloud-hypervisor --memory size=0 --memory-zone id=a,size=512M,hugepages=on --memory-zone id=b,size=1G,thp=on",
    ));
    assert_eq!(memory(&zones), [(512, Backing::Hugetlb(None)), (1024, Backing::Thp)]);
    for list in [
        "--memory-zone id=a,size=1G id=b,size=2G --device path=/sys/x",
        "--memory-zone=id=a,size=1G --device path=/sys/x --memory-zone id=b,size=2G",
    ] {
        let zones = cloud_hypervisor::parse(&argv(&format!("cloud-hypervisor --memory size=0 {list}")));
        assert_eq!(memory(&zones), [(1024, Backing::Any), (2048, Backing::Any)], "{list}");
    }
}

#[test]
fn firecracker_is_configured_by_a_file_or_by_nobody_knows_what() {
    let asked = firecracker::parse(
        "f",
        r#"{"machine-config": {"vcpu_count": 2, "mem_size_mib": 256, "huge_pages": "2M"}}"#,
    );
    assert_eq!(
        memory(&asked.expect("parses")),
        [(256, Backing::Hugetlb(Some(Bytes::mib(2))))]
    );
    let script =
        r#"curl -X PUT http://localhost/machine-config -d '{ "mem_size_mib": 256, "track_dirty_pages": true }'"#;
    let machine = firecracker::machine("f", script).expect("parses");
    assert!(machine.is_tracked && machine.memory == (Bytes::mib(256), Backing::Any));
    let of = |pages: &str| {
        let text = format!("{{\"mem_size_mib\": 256,\n \"huge_pages\": {pages}}}");
        firecracker::parse("/config", &text).map(|asked| memory(&asked).remove(0).1)
    };
    assert_eq!(of("\"None\""), Ok(Backing::Any));
    assert_eq!(of("\"Transparent\""), Ok(Backing::Thp));
    for refused in ["\"1G\"", "\"2m\"", "true"] {
        let why = of(refused).expect_err(refused);
        assert_eq!(why.place, "/config:2");
        assert!(why.why.contains(refused), "{why:?}");
    }
    for text in ["", "{}", r#"{"machine-config": {"mem_size_mib": "many"}}"#] {
        let why = firecracker::parse("/config", text).expect_err(text);
        assert_eq!((why.unread, why.place.as_str()), (Cause::Garbled, "/config"));
    }
    let tree = Tree::new()
        .file(
            "/proc/7/cmdline",
            b"/usr/bin/firecracker\0--id\0abc\0--config-file\0/vm.json\0",
        )
        .file("/proc/7/root/vm.json", br#"{"machine-config": {"mem_size_mib": 64}}"#)
        .file("/proc/8/cmdline", b"firecracker\0--api-sock\0/run/8.sock\0");
    let source = Source::from_tree("made", tree);
    let (vms, _) = list(&source);
    let vms = vms.known().expect("listed");
    assert_eq!(
        (vms[0].name.as_deref(), vms[0].configured.known().map(|c| c.total())),
        (Some("abc"), Some(Bytes::mib(64)))
    );
    assert_eq!(vms[1].configured.unread().map(|why| why.unread), Some(Cause::Absent));
}

fn smaps(start: u64, mib: u64, perms: &str, name: &str, lines: &[(&str, u64)], flags: &str) -> String {
    let mut text = format!("{start:x}-{:x} {perms} 00000000 00:0f 0 {name}\n", start + (mib << 20));
    for (key, mib) in lines {
        text += &format!("{key}: {} kB\n", mib << 10);
    }
    text + &format!("VmFlags: {flags}\n")
}

/// A guest of 256 MiB on /dev/hugepages, with a larger translation buffer beside it.
fn qemu_on(ram: &str) -> Source {
    let heap = smaps(0x1000_0000, 8, "rw-p", "[heap]", &[("Rss", 4)], "rd wr");
    let code = smaps(0x7000_0000_0000, 1024, "rwxp", "", &[("Rss", 64)], "rd wr ex");
    let tree = Tree::new()
        .file("/proc/self/status", b"")
        .file("/proc/1/cmdline", b"/sbin/init\0")
        .file("/proc/2/cmdline", b"")
        .file(
            "/proc/40/cmdline",
            b"/usr/bin/qemu-system-x86_64\0-name\0guest=a\0-m\x00256\0-mem-path\0/dev/hugepages\0",
        )
        .file(
            "/proc/40/mounts",
            b"none / ext4 rw 0 0\nhugetlbfs /dev/hugepages hugetlbfs rw,pagesize=2M 0 0\n",
        )
        .file("/proc/40/smaps", heap + &code + ram)
        .link("/proc/40/fd/5", "anon_inode:kvm-vm")
        .file("/sys/kernel/debug/kvm/40-5/pages_4k", b"65536\n")
        .file("/sys/kernel/debug/kvm/40-5/pages_2m", b"0\n")
        .file("/sys/kernel/debug/kvm/40-5/pages_1g", b"0\n");
    Source::from_tree("made", tree)
}

fn only(source: &Source) -> Vm {
    let (vms, _) = list(source);
    let vms = vms.known().expect("listed");
    assert_eq!(vms.len(), 1, "{vms:?}");
    vms[0].clone()
}

#[test]
fn what_backs_a_guest_is_told_apart_from_the_rest_of_its_process() {
    let counts = [("Rss", 0), ("Private_Hugetlb", 256), ("KernelPageSize", 2)];
    let source = qemu_on(&smaps(
        0x7f00_0000_0000,
        256,
        "rw-s",
        "/dev/hugepages/x",
        &counts,
        "rd wr ht",
    ));
    let vm = only(&source);
    assert_eq!(
        (vm.pid, vm.program.as_str(), vm.name.as_deref()),
        (40, "qemu", Some("a"))
    );
    assert_eq!(vm.kvm, Reading::Known(true));
    let region = Region {
        size: Bytes::mib(256),
        kind: Some(PageKind::HUGETLB_2M),
    };
    assert_eq!(
        vm.configured.known().map(|configured| configured.memory.clone()),
        Some(vec![region])
    );
    assert_eq!(
        vm.backing.known().map(|backing| backing.of(PageKind::HUGETLB_2M)),
        Some(Bytes::mib(256))
    );
    assert_eq!((vm.mapped, vm.found.as_deref()), (Bytes::mib(256), Some("by size")));
    let pages = KvmPages {
        pages_4k: 65536,
        ..KvmPages::default()
    };
    assert_eq!(vm.kvm_pages, Reading::Known(pages));
    assert_eq!(vm.mismatches.len(), 1, "{:?}", vm.mismatches);
    assert!(vm.mismatches[0].contains("maps only 0 % of it"), "{:?}", vm.mismatches);
}

#[test]
fn a_guest_that_fell_back_to_base_pages_is_named() {
    let source = qemu_on(&smaps(
        0x7f00_0000_0000,
        256,
        "rw-p",
        "",
        &[("Rss", 200), ("AnonHugePages", 40)],
        "rd wr",
    ));
    let vm = only(&source);
    assert_eq!(vm.mismatches.len(), 1, "{:?}", vm.mismatches);
    let start = "configured for hugetlb-2M, but only 0 % of the 200M in use is: base 160M + thp 40M";
    assert_eq!(vm.mismatches[0], start);
}

/// One reason, and not a guess of three.
#[test]
fn why_a_guest_has_base_pages_is_the_kernel_s_reason() {
    let thp = "/sys/kernel/mm/transparent_hugepage";
    let guest = |perms: &str, name: &str, shmem: &str, thp_enabled: u32| {
        let ram = smaps(0x7f00_0000_0000, 256, perms, name, &[("Rss", 200)], "rd wr hg");
        let status = format!("Name:\tqemu\nVmRSS:\t 262144 kB\nHugetlbPages:\t0 kB\nTHP_enabled:\t{thp_enabled}\n");
        let tree = Tree::new()
            .file("/proc/40/cmdline", "/usr/bin/qemu-system-x86_64\0-m\x00256\0")
            .file("/proc/40/status", status)
            .file("/proc/40/smaps", ram)
            .line(&format!("{thp}/enabled"), "[always] madvise never")
            .line(&format!("{thp}/shmem_enabled"), shmem)
            .line(&format!("{thp}/hpage_pmd_size"), 2 << 20);
        only(&Source::from_tree("made", tree)).mismatches.remove(0)
    };
    let private = guest("rw-p", "", "always [never]", 0);
    assert!(private.contains("PR_SET_THP_DISABLE"), "{private}");
    let shared = guest(
        "rw-s",
        "/memfd:memory-backend-memfd (deleted)",
        "always within_size advise [never] deny force",
        1,
    );
    assert!(
        shared.contains("shmem_enabled") && shared.contains("`never`"),
        "{shared}"
    );
}

#[test]
fn memory_that_has_not_the_configured_size_is_the_largest_mapping_that_is_no_code() {
    let ram = smaps(0x7f00_0000_0000, 300, "rw-p", "", &[("Rss", 10)], "rd wr");
    let vm = only(&qemu_on(&ram));
    assert_eq!((vm.mapped, vm.found.as_deref()), (Bytes::mib(300), Some("largest")));
    let none = only(&qemu_on(""));
    assert_eq!(
        (none.found, none.backing.unread().map(|why| why.unread)),
        (None, Some(Cause::Absent))
    );
}

#[test]
fn a_process_that_holds_a_machine_of_kvm_is_one_whatever_its_name() {
    let tree = Tree::new()
        .file("/proc/9/cmdline", b"/opt/crosvm\0run\0")
        .link("/proc/9/fd/3", "anon_inode:kvm-vm");
    let vm = only(&Source::from_tree("made", tree));
    assert_eq!((vm.program.as_str(), vm.name), ("crosvm", None));
    assert_eq!(vm.configured.unread().map(|why| why.unread), Some(Cause::Absent));
}

/// Ends the process when the test does, however that ends.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_real_qemu_is_found_with_its_memory() {
    let started = Command::new("qemu-system-x86_64")
        .args([
            "-accel",
            "tcg",
            "-nodefaults",
            "-display",
            "none",
            "-S",
            "-name",
            "guest=hugewise-test",
            "-m",
            "64",
        ])
        .args([
            "-object",
            "memory-backend-ram,id=m,size=64M,prealloc=on",
            "-machine",
            "q35,memory-backend=m",
        ])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let running = match started {
        Ok(child) => Running(child),
        Err(why) => return testing::missing(&format!("qemu-system-x86_64 ({why})")),
    };
    let source = Source::live();
    let begun = Instant::now();
    // It takes a moment until the memory is there.
    let found = loop {
        let found = vm(&source, running.0.id()).filter(|vm| vm.found.as_deref() == Some("by size"));
        match found {
            Some(vm)
                if vm
                    .backing
                    .known()
                    .is_some_and(|backing| backing.total() >= Bytes::mib(64)) =>
            {
                break vm;
            }
            _ if begun.elapsed() > Duration::from_secs(60) => panic!("QEMU did not bring in its memory"),
            _ => std::thread::sleep(Duration::from_millis(50)),
        }
    };
    assert_eq!(
        (found.program.as_str(), found.name.as_deref()),
        ("qemu", Some("hugewise-test"))
    );
    assert_eq!(found.kvm, Reading::Known(false));
    assert_eq!(
        found
            .configured
            .known()
            .map(|configured| (configured.total(), configured.prealloc)),
        Some((Bytes::mib(64), true))
    );
    assert_eq!(found.mapped, Bytes::mib(64));
}

#[test]
fn a_capture_tells_of_mounts_by_the_machine_s_own_and_admits_what_was_left_out() {
    let tree = |words: &str| {
        Tree::new()
            .file("/proc/7/cmdline", format!("{}\0", words.replace(' ', "\0")))
            .line("/proc/self/mounts", "hugetlbfs /huge hugetlbfs rw,pagesize=2M 0 0")
    };
    let of = |words| {
        vm(&Source::from_tree("capture", tree(words)), 7)
            .expect("a machine")
            .configured
    };
    let whole = of("qemu-system-x86_64 -m 1G -mem-path /huge");
    let kind = whole.known().map(|asked| asked.memory[0].kind);
    assert_eq!(kind, Some(Some(PageKind::HUGETLB_2M)));
    let short = of("qemu-system-x86_64");
    assert_eq!(
        short.unread().map(|why| why.unread),
        Some(Cause::Absent),
        "not QEMU's default of 128M"
    );
}

#[test]
fn of_a_process_with_very_many_open_files_the_first_are_looked_at_and_the_rest_is_no_answer() {
    let with = |machine: u32| {
        let others = (0..5000).filter(|number| *number != machine);
        let tree = others.fold(Tree::new(), |tree, number| {
            tree.link(&format!("/proc/7/fd/{number}"), "socket:[1]")
        });
        Source::from_tree("made", tree.link(&format!("/proc/7/fd/{machine}"), KVM))
    };
    assert_eq!(holds_kvm(&with(4095), 7), Reading::Known(true));
    let why = holds_kvm(&with(4096), 7);
    let why = why.unread().expect("it was not looked at");
    assert_eq!(
        (why.unread, why.why.as_str()),
        (Cause::Failed, "904 of its open files were not read")
    );
    assert_eq!(why.place, "/proc/7/fd");
}
