//! Pools that files request which were given, on a machine of 16 GiB.

use model::findings::{Diagnosis, Severity};

use crate::files_tests::{given, judged};
use crate::judge;
use crate::machines::{evidence, machine, pool};

fn on_machine(files: &[(&str, &str)]) -> Diagnosis {
    let tree = pool(machine(), "2048kB", 100, 100, 0);
    judge(&evidence(tree).with_files(given(files)))
}

const GIGABYTES: &str = "/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages";
const PROFILE: &str = "apiVersion: performance.openshift.io/v2\nkind: PerformanceProfile\nspec:\n  hugepages:\n    \
                       defaultHugepagesSize: 1G\n    pages:\n";

#[test]
fn a_request_larger_than_the_machine_is_seen_in_files_of_every_kind() {
    let unit = format!("[Service]\nType=oneshot\nExecStart=/bin/sh -c 'echo 400 > {GIGABYTES}'\n");
    let script = format!("#!/bin/sh\necho 400 > {GIGABYTES}\n");
    let play = format!("- hosts: all\n  tasks:\n  - shell: echo 400 > {GIGABYTES}\n");
    let profile = format!("{PROFILE}    - {{size: 1G, count: 400}}\n");
    let of_node = format!("{PROFILE}    - {{size: 1G, count: 400, node: 0}}\n");
    let user_data = "#cloud-config\nwrite_files:\n- path: /etc/default/grub.d/60-hp.cfg\n  content: |\n    \
                     GRUB_CMDLINE_LINUX_DEFAULT=\"hugepagesz=1G hugepages=400\"\n";
    let too_large = [
        ("cmdline", "hugepagesz=1G hugepages=400\n"),
        ("cmdline", "hugepages=500000\n"),
        ("cmdline", "hugepages=512 default_hugepagesz=1G\n"),
        ("cmdline", "hugepagesz=1G hugepages=8 hugepagesz=2M hugepages=4000\n"),
        ("grub", "GRUB_CMDLINE_LINUX_DEFAULT=\"hugepagesz=1G hugepages=400\"\n"),
        (
            "tuned.conf",
            "[main]\ninclude=virtual-host\n[bootloader]\ncmdline_hp=+hugepagesz=1G hugepages=400\n",
        ),
        ("sysctl.conf", "vm.nr_hugepages = 500000\n"),
        ("tmpfiles.d/hp.conf", &format!("w {GIGABYTES} - - - - 400\n")),
        ("hp.service", &unit),
        ("fill.sh", &script),
        ("play.yml", &play),
        ("profile.yaml", &profile),
        ("profile.yaml", &of_node),
        ("user-data", user_data),
    ];
    for file in too_large {
        let diagnosis = on_machine(&[file]);
        let finding = diagnosis.of("A01").next().unwrap_or_else(|| panic!("{file:?}"));
        assert!(finding.consequence.contains("more than this machine"), "{finding:?}");
        assert!(finding.evidence[0].source.contains(file.0), "{finding:?}");
    }
    for file in [
        ("cmdline", "hugepagesz=1G hugepages=8\n"),
        ("sysctl.conf", "vm.nr_hugepages = 4000\n"),
    ] {
        assert_eq!(on_machine(&[file]).of("A01").count(), 0, "{file:?}");
    }
}

#[test]
fn a_program_waits_for_pages_that_the_files_themselves_request() {
    const GUEST: (&str, &str) = (
        "g.xml",
        "<domain type='kvm'><name>g</name><memory unit='GiB'>2</memory><memoryBacking><hugepages/></memoryBacking></domain>\n",
    );
    const QEMU: &str = "qemu-system-x86_64 -m 2G -object memory-backend-memfd,id=m,size=2G,hugetlb=on,prealloc=on -machine memory-backend=m\n";
    let counts = |files: &[(&str, &str)]| {
        let diagnosis = on_machine(files);
        ["A01", "G04"].map(|id| diagnosis.of(id).count())
    };
    let asks = ("sysctl.conf", "vm.nr_hugepages = 1024\n");
    let diagnosis = on_machine(&[asks, GUEST]);
    let waits = diagnosis.of("A01").next().expect("a finding");
    assert_eq!(waits.severity, Severity::Info);
    assert!(
        waits
            .consequence
            .contains("asks for 1024 pages of 2M, which g needs, and the machine has 100"),
        "{waits:?}"
    );
    assert_eq!(diagnosis.of("G04").count(), 0);
    assert_eq!(counts(&[("cmdline", "hugepages=1024\n"), GUEST]), [1, 0]);
    assert_eq!(counts(&[("sysctl.conf", "vm.nr_hugepages = 1023\n"), GUEST]), [0, 1]);
    let script = |pages: u64| format!("#!/bin/sh\necho {pages} > /proc/sys/vm/nr_hugepages\n{QEMU}");
    assert_eq!(counts(&[("start.sh", &script(1024))]), [0, 0]);
    assert_eq!(counts(&[("start.sh", &script(1023))]), [0, 1]);
}

#[test]
fn a_boot_line_is_judged_by_the_sizes_of_the_machine_that_is_given() {
    for words in ["hugepagesz=512M hugepages=8\n", "default_hugepagesz=4M\n"] {
        let file = [("cmdline", words)];
        let finding = on_machine(&file).of("A13").next().cloned().expect("a finding");
        assert!(
            finding.consequence.contains("this machine has no pages of that size"),
            "{finding:?}"
        );
        assert_eq!(judged(&file).of("A13").count(), 0, "another machine may have them");
    }
    assert_eq!(
        on_machine(&[("cmdline", "hugepagesz=1G hugepages=8\n")])
            .of("A13")
            .count(),
        0
    );
}

#[test]
fn a_line_that_the_kernel_refuses_is_no_writer_and_the_pool_s_second_file_is_one() {
    let writers = |text: &str| judged(&[("sysctl.conf", text)]).of("A12").count();
    for refused in ["4096M", "8G", "2_048"] {
        assert_eq!(
            writers(&format!("vm.nr_hugepages = 1024\nvm.nr_hugepages = {refused}\n")),
            0,
            "{refused}"
        );
    }
    assert_eq!(
        writers("vm.nr_hugepages = 1024\nvm.nr_hugepages = 8G\nvm.nr_hugepages = 20\n"),
        1
    );
    assert_eq!(writers("vm.nr_hugepages = 10\nvm.nr_hugepages_mempolicy = 20\n"), 1);
    let large = on_machine(&[("sysctl.conf", "vm.nr_hugepages_mempolicy = 500000\n")]);
    assert_eq!(large.of("A01").count(), 1);
}

#[test]
fn pages_of_a_node_in_a_profile_are_written_by_a_unit() {
    let guest = |gib: u64| {
        format!(
            "<domain type='kvm'><name>g</name><memory unit='GiB'>{gib}</memory><memoryBacking><hugepages><page size='1' unit='GiB'/>\
             </hugepages></memoryBacking></domain>\n"
        )
    };
    // The unit leaves 4 of the 8 pages of node 0.
    let mixed = format!("{PROFILE}    - {{size: 1G, count: 16}}\n    - {{size: 1G, count: 4, node: 0}}\n");
    for (gib, short) in [(12, 0), (13, 1)] {
        let (profile, guest) = (("p.yaml", &*mixed), guest(gib));
        assert_eq!(judged(&[profile, ("g.xml", &guest)]).of("G04").count(), short, "{gib}");
    }
    let by_node = format!("{PROFILE}    - {{size: 1G, count: 4, node: 0}}\n    - {{size: 1G, count: 4, node: 1}}\n");
    let short = judged(&[("p.yaml", &by_node), ("g.xml", &guest(9))]);
    let short = short.of("G04").next().expect("a finding");
    assert!(
        short.fix[0].contains("9 in all in place of 8 in all in p.yaml"),
        "{short:?}"
    );
    assert_eq!(
        on_machine(&[("p.yaml", &by_node)]).of("A14").count(),
        0,
        "no list on a boot line"
    );
}

#[test]
fn a_size_behind_its_count_is_named() {
    let line = [("cmdline", "hugepages=16 hugepagesz=1G\n")];
    let diagnosis = judged(&line);
    let finding = diagnosis.of("A14").next().expect("a finding");
    assert!(finding.fix[0].contains("hugepagesz=1G hugepages=16"), "{finding:?}");
    let large = on_machine(&line);
    let finding = large.of("A14").next().expect("a finding");
    assert!(
        finding.fix[0].starts_with("leave hugepagesz=1G out"),
        "16 GiB are all of this machine: {finding:?}"
    );
}
