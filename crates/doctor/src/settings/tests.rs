//! Each rule of `settings` where it fires and where it must not.

use host::Tree;
use model::findings::Confidence;

use crate::machines::*;

/// A machine with a file.
fn with(path: &str, text: &str) -> Tree {
    machine().file(path, text)
}

#[test]
fn i01_values_that_nothing_takes() {
    for (path, text, says) in [
        ("/etc/sysctl.d/60-x.conf", "vm.nr_hugepages = 8G\n", "`8G`"),
        ("/etc/security/limits.d/9.conf", "db soft memlock 8G\n", "`8G`"),
        (
            "/etc/tmpfiles.d/thp.conf",
            "w /sys/kernel/mm/transparent_hugepage/enabled - - - - off\n",
            "`off`",
        ),
        (
            "/etc/sysfs.conf",
            "kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages = 8G\n",
            "8G",
        ),
    ] {
        let finding = found("I01", with(path, text));
        assert!(finding.consequence.contains(says), "{finding:?}");
        assert!(finding.evidence[0].source.starts_with(path), "{finding:?}");
    }
    let tuned = with("/etc/tuned/active_profile", "own\n")
        .file("/etc/tuned/own/tuned.conf", "[sysctl]\nvm.nr_hugepages = 4096M\n");
    found("I01", tuned);
    let gone = "vm.hugepages_treat_as_movable = 1\nvm.nr_overcommit_hugepages = 8\n";
    found("I01", with("/etc/sysctl.d/60-x.conf", gone).without("/proc/meminfo"));
}

#[test]
fn i01_surplus_pages_of_a_size_that_has_none() {
    let lines = |kib: u64, pages: u64| {
        let line = format!("w /sys/kernel/mm/hugepages/hugepages-{kib}kB/nr_overcommit_hugepages - - - - {pages}\n");
        pool(machine(), "1048576kB", 4, 0, 0).file("/etc/tmpfiles.d/huge.conf", &line)
    };
    let finding = found("I01", lines(1 << 20, 2));
    assert!(finding.consequence.contains("EINVAL"), "{finding:?}");
    assert!(finding.fix[0].contains("echo 6 > "), "{finding:?}");
    for taken in [
        lines(2048, 2),
        lines(1 << 20, 0),
        lines(1 << 20, 2).line("/proc/sys/kernel/osrelease", "6.19.2"),
    ] {
        clear("I01", taken);
    }
}

#[test]
fn i01_names_that_linux_does_not_have() {
    for (line, fix) in [
        ("vm.transparent_hugepage = never\n", "transparent_hugepage=never"),
        ("vm/transparent_hugepage/enabled = 0\n", "transparent_hugepage=POLICY"),
        (
            "kernel.mm.transparent_hugepage.defrag = defer\n",
            "transparent_hugepage/defrag - - - - defer",
        ),
        ("vm.nr_hugepage = 64\n", "vm.nr_hugepages"),
        ("vm.hugepages_overcommit = 64\n", "vm.nr_overcommit_hugepages"),
        ("vm.hugepagesize = 1G\n", "default_hugepagesz="),
    ] {
        let finding = found("I01", with("/etc/sysctl.d/60-x.conf", line));
        let said = finding.fix.iter().any(|step| step.contains(fix));
        assert!(
            finding.consequence.contains("has no effect") && said,
            "{line}: {finding:?}"
        );
    }
    let own = "vm.hugetlb_shm_group = 1001\nvm.hugetlb_optimize_vmemmap = 1\nvm.nr_hugepages_mempolicy = 4\nkernel.shmmax = 4096\n";
    clear("I01", with("/etc/sysctl.d/60-x.conf", own));
}

/// What tuned works out or takes off, and what the kernel takes with a unit.
#[test]
fn i01_values_that_are_taken() {
    for own in [
        "[sysctl]\nvm.nr_hugepages = \"64\"\nkernel.shmmax = >4096\n",
        "[variables]\nn=64\n[sysfs]\n/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages=${n}\n",
        "[sysfs]\n/sys/kernel/mm/transparent_hugepage/enabled = \"never\"\n[vm]\ntransparent_hugepages=${thp}\n",
    ] {
        let tuned = with("/etc/tuned/active_profile", "own\n").file("/etc/tuned/own/tuned.conf", own);
        clear("I01", tuned);
    }
    let directory = "kernel/mm/hugepages/hugepages-1048576kB";
    let modes = format!("mode {directory}/nr_hugepages = 0660\nowner {directory}/nr_hugepages = root\n");
    let demoted = ["/demote_size = 2048kB", "/demote = 1"].map(|line| format!("{directory}{line}\n"));
    for accepted in demoted.iter().chain([&modes]) {
        clear("I01", with("/etc/sysfs.conf", accepted));
    }
    clear(
        "I01",
        with("/etc/sysctl.d/60-x.conf", "vm.nr_hugepages = 0x10 # pages\n"),
    );
}

#[test]
fn i01_values_in_files_of_programs() {
    let unit = |limit: &str| {
        process(60, "db")
            .cgroup("/system.slice/db.service")
            .area(anonymous(100))
            .on(machine())
            .file(
                "/etc/systemd/system/db.service",
                format!("[Service]\nLimitMEMLOCK={limit}\n"),
            )
    };
    found("I01", unit("128GB"));
    clear("I01", unit("128G"));
    let postgres = |text: &str| {
        process(61, "postgres")
            .arg("-D")
            .arg("/data")
            .area(shared(256, "/dev/zero (deleted)"))
            .on(machine())
            .file("/proc/61/root/data/postgresql.conf", text)
    };
    let finding = found("I01", postgres("shared_buffers = 8gb\n"));
    assert!(finding.consequence.contains("shared_buffers"), "{finding:?}");
    clear("I01", postgres("shared_buffers = 8GB\n"));
    let mysql = |text: &str| {
        process(62, "mysqld")
            .arg("--port=1")
            .area(anonymous(512))
            .on(machine())
            .file("/etc/my.cnf", text)
    };
    found("I01", mysql("[mysqld]\nlarge-pages = maybe\n"));
    clear("I01", mysql("[mysqld]\nlarge-pages = ON\n"));
}

#[test]
fn i02_settings_of_a_newer_kernel() {
    let finding = found("I02", thp(machine(), "anon_beside_full", 1));
    assert!(finding.consequence.contains("anon_beside_full"), "{finding:?}");
    clear("I02", machine());
    clear("I02", thp(machine(), "debug_cow", 0));
}

#[test]
fn i01_boot_lines_that_are_right_and_come_to_nothing() {
    let grub = |text: &str| machine().file("/etc/default/grub", text);
    let pages = "GRUB_CMDLINE_LINUX_DEFAULT=\"quiet hugepagesz=1G hugepages=8\"\n";
    // hetzneronline/installimage#39: a file of the image's maker is read later.
    let maker = |text: &str| grub(pages).file("/etc/default/grub.d/hetzner.cfg", text);
    let finding = found("I01", maker("GRUB_CMDLINE_LINUX_DEFAULT=\"consoleblank=0\"\n"));
    assert!(
        finding
            .consequence
            .starts_with("`hugepagesz=1G hugepages=8` has no effect: /etc/default/grub.d/hetzner.cfg:1"),
        "{finding:?}"
    );
    assert!(
        finding.fix[0].contains("=\"$GRUB_CMDLINE_LINUX_DEFAULT hugepagesz=1G"),
        "{finding:?}"
    );
    clear(
        "I01",
        maker("GRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT consoleblank=0\"\n"),
    );
    clear("I01", maker("GRUB_CMDLINE_LINUX=\"consoleblank=0\"\n"));
    let running = machine().line("/proc/cmdline", "quiet hugepagesz=1G hugepages=8");
    clear(
        "I01",
        running
            .file("/etc/default/grub", pages)
            .file("/etc/default/grub.d/a.cfg", "GRUB_CMDLINE_LINUX_DEFAULT=\n"),
    );
    // canonical/cloud-init#2120: the kernel had ds=nocloud of it, and nothing behind that.
    let seed = |seed: &str| {
        grub(&format!(
            "GRUB_CMDLINE_LINUX=\"quiet ds=nocloud{seed}s=/seed/ hugepagesz=1G hugepages=8\"\n"
        ))
    };
    let finding = found("I01", seed(";"));
    assert!(
        finding
            .consequence
            .starts_with("`hugepagesz=1G hugepages=8` has no effect: GRUB ends the command line at a `;`")
            && finding.fix[0].starts_with("write `\\;` for that `;`"),
        "{finding:?}"
    );
    clear("I01", seed("\\;"));
    // sap_install#148: kernels are started by entries of their own.
    let entry = |options: &str| {
        grub("GRUB_CMDLINE_LINUX=\"transparent_hugepage=never\"\n")
            .file("/etc/os-release", "ID=\"rhel\"\nVERSION_ID=\"8.1\"\n")
            .file("/boot/loader/entries/1.conf", format!("title x\noptions {options}\n"))
    };
    let finding = found("I01", entry("root=/dev/sda ro $tuned_params"));
    assert!(
        finding.fix[0].starts_with("grubby --update-kernel=ALL --args=\"transparent_hugepage=never\""),
        "{finding:?}"
    );
    clear("I01", entry("root=/dev/sda transparent_hugepage=never"));
    clear("I01", entry("$kernelopts"));
    let variables = |text: &str| entry("$kernelopts").file("/boot/grub2/grubenv", text);
    found("I01", variables("kernelopts=root=/dev/sda ro\n"));
    clear(
        "I01",
        variables("kernelopts=root=/dev/sda transparent_hugepage=never\n"),
    );
}

/// Proxmox VE on ZFS: systemd-boot starts it, and nothing reads GRUB's file.
#[test]
fn i01_grub_s_defaults_where_efi_starts_another_loader() {
    let efi = |release: &str| {
        machine()
            .line("/proc/sys/kernel/osrelease", release)
            .line(
                "/proc/cmdline",
                "initrd=\\EFI\\proxmox\\initrd.img root=ZFS=rpool/ROOT/pve-1 boot=zfs",
            )
            .line("/etc/kernel/cmdline", "root=ZFS=rpool/ROOT/pve-1 boot=zfs")
            .file(
                "/etc/default/grub",
                "GRUB_CMDLINE_LINUX_DEFAULT=\"quiet hugepagesz=1G hugepages=8\"\n",
            )
    };
    let finding = found("I01", efi("6.8.12-4-pve"));
    assert_eq!(finding.evidence[0].source, "/etc/default/grub:1", "{finding:?}");
    let fix = &finding.fix[0];
    assert!(
        fix.starts_with("add `hugepagesz=1G hugepages=8` to /etc/kernel/cmdline"),
        "{fix}"
    );
    assert!(fix.ends_with("then: proxmox-boot-tool refresh && reboot"), "{fix}");
    clear("A01", efi("6.8.12-4-pve"));
    assert!(found("I01", efi("6.8.12")).fix[0].contains("the boot loader that EFI starts"));
    // There, and not booted with yet.
    let there = efi("6.8.12-4-pve").line("/etc/kernel/cmdline", "boot=zfs hugepagesz=1G hugepages=8");
    clear("I01", there.clone());
    let short = found("A01", there);
    assert_eq!(short.evidence[0].source, "/etc/kernel/cmdline:1", "{short:?}");
    let fixes = short.fix.join("\n");
    assert!(
        fixes.contains("started without it: proxmox-boot-tool refresh && reboot"),
        "{fixes}"
    );
}

/// What else starts machines: its own tool or file, and nothing of GRUB's.
#[test]
fn i01_defaults_of_grub_beside_another_starter() {
    let words = "hugepagesz=1G hugepages=8";
    let fix = |os: &str, line: &str, file: (&str, &str)| {
        let tree = machine()
            .file("/etc/os-release", os)
            .line("/proc/cmdline", line)
            .line(file.0, file.1)
            .file(
                "/etc/default/grub",
                format!("GRUB_CMDLINE_LINUX_DEFAULT=\"quiet {words}\"\n"),
            );
        clear("A01", tree.clone());
        let finding = found("I01", tree);
        let is_of_efi = finding.consequence.contains("started by EFI");
        assert_eq!(is_of_efi, os.contains("pop"), "{finding:?}");
        let sure = ["suse", "pop"].iter().any(|own| os.contains(own));
        assert_eq!(finding.confidence == Confidence::High, sure, "{finding:?}");
        let by = match file.0 {
            path if path.starts_with("/boot/") => "U-Boot starts this machine",
            "/etc/kernel/install.conf" => "kernel-install makes unified kernel images here",
            _ => "defaults of GRUB",
        };
        assert!(is_of_efi || finding.consequence.contains(by), "{finding:?}");
        finding.fix.join("\n")
    };
    let suse = "ID=\"opensuse-tumbleweed\"\nID_LIKE=\"opensuse suse\"\n";
    let cmdline = ("/etc/kernel/cmdline", "quiet");
    let loader = ("/etc/sysconfig/bootloader", "LOADER_TYPE=\"grub2-bls\"");
    for own in [
        fix(suse, "initrd=\\opensuse\\initrd quiet", cmdline),
        fix(suse, "BOOT_IMAGE=/x/linux quiet", loader),
    ] {
        assert_eq!(
            own,
            format!("add `{words}` to /etc/kernel/cmdline, then: sdbootutil update-all-entries && reboot")
        );
    }
    let pop = fix(
        "ID=pop\nID_LIKE=\"ubuntu debian\"\n",
        "initrd=\\EFI\\Pop\\initrd quiet",
        cmdline,
    );
    assert_eq!(pop, format!("kernelstub -a \"{words}\" && reboot"));
    let debian = |path, text| fix("ID=debian\n", "quiet", (path, text));
    assert!(debian("/etc/kernel/install.conf", "layout=uki").contains("kernel-install add-all"));
    assert!(debian("/boot/armbianEnv.txt", "rootfstype=ext4").contains("extraargs= in /boot/armbianEnv.txt"));
    assert!(
        debian("/boot/extlinux/extlinux.conf", "timeout 30").contains("append line of /boot/extlinux/extlinux.conf")
    );
}

/// The release from which nothing reads /etc/sysctl.conf at boot.
#[test]
fn i01_a_sysctl_file_that_debian_13_reads_no_more() {
    let debian = |release: &str| {
        machine()
            .file("/etc/sysctl.conf", "vm.swappiness = 1\nvm.nr_hugepages = 1024\n")
            .file("/etc/os-release", format!("ID=debian\nVERSION_ID=\"{release}\"\n"))
    };
    let finding = found("I01", debian("13"));
    assert!(
        finding
            .consequence
            .starts_with("`vm.nr_hugepages = 1024` has no effect"),
        "{finding:?}"
    );
    assert_eq!(finding.evidence[0].source, "/etc/sysctl.conf:2", "{finding:?}");
    clear("A01", debian("13"));
    // Where the file is linked it is read, whatever the release, as on a machine that was upgraded, and on those of other distributions.
    let linked = |tree: Tree| tree.link("/etc/sysctl.d/99-sysctl.conf", "../sysctl.conf");
    for tree in [
        linked(debian("13")),
        linked(debian("12")),
        linked(machine().file("/etc/sysctl.conf", "vm.nr_hugepages = 1024\n")),
    ] {
        clear("I01", tree.clone());
        found("A01", tree);
    }
    clear("I01", debian("12"));
    found("A01", debian("12"));
}

/// Two findings name one file: what the second one writes there leaves the line of the first.
#[test]
fn settings_of_one_report_go_into_one_file() {
    let group = machine()
        .file("/etc/sysctl.conf", "vm.hugetlb_shm_group = 1001\n")
        .file("/etc/os-release", "ID=debian\nVERSION_ID=\"13\"\n");
    let diagnosis = crate::judge(&evidence(pool(group, "2048kB", 64, 0, 0)));
    let fixes = |id| {
        diagnosis
            .of(id)
            .flat_map(|finding| finding.fix.clone())
            .collect::<Vec<_>>()
            .join("\n")
    };
    for (id, line) in [("I01", "'vm.hugetlb_shm_group = 1001'"), ("D23", "vm.nr_hugepages=64")] {
        let command = format!("echo {line} >> /etc/sysctl.d/60-hugepages.conf");
        assert!(fixes(id).contains(&command), "{id}: {diagnosis:#?}");
    }
}

/// A file of sysctl.d whose name lacks its end: renaming it destroys no other file, and applying it takes no pages off a pool.
#[test]
fn i01_a_misnamed_file_of_sysctl_is_one_finding() {
    let named = |pages| {
        let text = "vm.nr_hugepages = 64\nvm.hugetlb_shm_group = 1001\n";
        pool(with("/etc/sysctl.d/99-huge", text), "2048kB", pages, 0, 0)
    };
    let diagnosis = crate::judge(&evidence(named(0)));
    assert_eq!(diagnosis.of("I01").count(), 1, "{diagnosis:#?}");
    let one = found("I01", named(0));
    assert!(
        one.fix[0].starts_with("mv -n /etc/sysctl.d/99-huge /etc/sysctl.d/99-huge.conf "),
        "{one:?}"
    );
    assert_eq!(one.fix[1], "sysctl -p /etc/sysctl.d/99-huge.conf");
    let larger = found("I01", named(1024)).fix.join("\n");
    assert!(
        larger.contains("the pool has 1024 pages now") && !larger.contains("sysctl -p /"),
        "{larger}"
    );
    let beside = named(0).file("/etc/sysctl.d/99-huge.conf", "vm.swappiness = 1\n");
    let merged = found("I01", beside).fix.join("\n");
    assert!(
        merged.starts_with("add its lines to /etc/sysctl.d/99-huge.conf"),
        "{merged}"
    );
    assert!(!merged.contains("mv "), "{merged}");
}

/// The same of Debian's file: one line of the pool is enough, whichever line the finding is about.
#[test]
fn i01_what_debian_13_reads_no_more_is_not_applied_to_a_larger_pool() {
    let text = "vm.nr_hugepages = 64\nvm.hugetlb_shm_group = 1001\n";
    let tree = with("/etc/sysctl.conf", text).file("/etc/os-release", "ID=debian\nVERSION_ID=\"13\"\n");
    let fixes = |pages| {
        let diagnosis = crate::judge(&evidence(pool(tree.clone(), "2048kB", pages, 0, 0)));
        let all = diagnosis.of("I01").flat_map(|finding| finding.fix.clone());
        all.collect::<Vec<_>>().join("\n")
    };
    assert!(fixes(0).contains("sysctl -p /"), "{}", fixes(0));
    assert!(!fixes(1024).contains("sysctl -p /"), "{}", fixes(1024));
}
