//! What may be written into each sort of file, and what may not, with the line named.

use super::{Sort, check, mount_unit};

const SYSCTL: &str = "/etc/sysctl.d/60-hugewise.conf";
const DROP_IN: &str = "/etc/systemd/system/app.service.d/60-hugewise.conf";
const POSTGRES: &str = "/srv/pg/postgresql.conf";
const MYSQL: &str = "/etc/my.cnf";

fn goals() -> Vec<String> {
    let foreign = ["postgres:/etc/ssh/sshd_config.d/x.conf", "postgres:/root/.ssh/y.conf"].map(str::to_owned);
    [format!("postgres:{POSTGRES}"), format!("innodb:{MYSQL},service=db")]
        .into_iter()
        .chain(foreign)
        .collect()
}

/// The error of a text that may not be written, none of one that may.
fn refused(path: &str, before: Option<&str>, after: &str) -> Option<String> {
    let sort = Sort::of(path, &goals()).unwrap_or_else(|| panic!("{path} may be written"));
    let flaw = check(sort, path, before, after).err()?;
    Some(format!("{} `{}`: {}", flaw.what, flaw.text, flaw.why))
}

#[test]
fn a_path_says_what_a_file_is_and_own_files_are_named_for_hugewise() {
    for (path, sort) in [
        (SYSCTL, Some(Sort::Sysctl)),
        ("/etc/sysctl.d/hugewise-a.conf", Some(Sort::Sysctl)),
        ("/etc/sysctl.d/50-coredump.conf", None),
        ("/etc/sysctl.d/60-hugewise.conf.d/x.conf", None),
        ("/etc/sysctl.conf", Some(Sort::Sysctl)),
        ("/etc/modprobe.d/60-hugewise.conf", None),
        ("/root/.ssh/x.conf", None),
        ("/etc/tmpfiles.d/tmp.conf", None),
        ("/etc/default/grub", None),
        ("/etc/default/grub.d/60-hugewise.cfg", Some(Sort::Grub)),
        ("/etc/systemd/system/sshd.service", None),
        ("/etc/systemd/system/hugewise-pools.service", Some(Sort::Pools)),
        ("/etc/systemd/system/mnt-huge.mount", Some(Sort::Mount)),
        (r"/etc/systemd/system/mnt-huge\x2d2M.mount", Some(Sort::Mount)),
        ("/etc/systemd/system/home.mount", None),
        ("/etc/systemd/system/mnt-..-etc.mount", None),
        (DROP_IN, Some(Sort::Service)),
        ("/etc/systemd/system/app.service.d/override.conf", None),
        ("/etc/systemd/system/app.socket.d/60-hugewise.conf", None),
        (
            "/etc/systemd/system/local-fs.target.d/60-hugewise.conf",
            Some(Sort::Wants),
        ),
        (POSTGRES, Some(Sort::Postgres)),
        ("/etc/postgresql/15/main/postgresql.conf", None),
        ("/etc/ssh/sshd_config.d/x.conf", None),
        ("/root/.ssh/y.conf", None),
    ] {
        assert_eq!(Sort::of(path, &goals()), sort, "{path}");
    }
}

/// A file, and its text before and after.
const WRITTEN: &[(&str, Option<&str>, &str)] = &[
    (
        SYSCTL,
        None,
        "# pages\nvm.nr_hugepages = 16\nkernel.shmmax=8589934592\n",
    ),
    (
        SYSCTL,
        Some("vm.nr_hugepages = 4 # old\nnet.x = 1\n"),
        "vm.nr_hugepages = 16\nnet.x = 1\n",
    ),
    (
        "/etc/security/limits.d/60-hugewise.conf",
        None,
        "oracle soft memlock 1024\n@dba - memlock unlimited\n",
    ),
    (
        "/etc/tmpfiles.d/60-hugewise.conf",
        None,
        "w /sys/kernel/mm/transparent_hugepage/enabled - - - - never\n",
    ),
    (
        "/etc/default/grub.d/60-hugewise.cfg",
        None,
        "GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX hugepagesz=1G hugepages=4\"\n",
    ),
    (
        "/etc/kernel/cmdline",
        Some("root=/dev/sda hugepagesz=1G hugepages=1 quiet"),
        "root=/dev/sda quiet hugepagesz=1G hugepages=0:2,1:2\n",
    ),
    (
        "/etc/systemd/system/sysinit.target.d/60-hugewise.conf",
        None,
        "[Unit]\nWants=hugewise-pools.service\n",
    ),
    (
        "/etc/systemd/system/local-fs.target.d/60-hugewise.conf",
        None,
        "[Unit]\nWants=mnt-huge.mount\n",
    ),
    (DROP_IN, None, "[Service]\nLimitMEMLOCK=64M\nMemoryTHP=disable\n"),
    (
        DROP_IN,
        None,
        "[Service]\nCPUAffinity=0-3,8\nNUMAPolicy=bind\nNUMAMask=0\nAllowedCPUs=1\n",
    ),
    (
        DROP_IN,
        Some("[Unit]\nAfter=x\n[Service]\nUser=a\n"),
        "[Unit]\nAfter=x\n[Service]\nUser=a\nLimitMEMLOCK=infinity\n",
    ),
    (
        POSTGRES,
        Some("shared_buffers = 1GB\nhuge_pages = try # x\n"),
        "shared_buffers = 1GB\nhuge_pages = on\nhuge_page_size = 2048kB\nshared_memory_type = mmap\n",
    ),
    (
        MYSQL,
        Some("[client]\na\n[mysqld]\nport=1\n"),
        "[client]\na\n[mysqld]\nport=1\nlarge-pages\n",
    ),
    (
        MYSQL,
        Some("!includedir /etc/my.cnf.d\n"),
        "!includedir /etc/my.cnf.d\n[mysqld]\nlarge-pages\n",
    ),
];

#[test]
fn known_lines_with_good_values_are_written() {
    let unit = "[Unit]\nDescription=Pages\nDefaultDependencies=no\n\n[Mount]\nWhat=hugetlbfs\nWhere=/mnt/huge\nType=hugetlbfs\n\
                Options=pagesize=2M,uid=0,gid=36,mode=0770\n";
    let pool = "/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages";
    let pools =
        format!("[Service]\nType=oneshot\nExecStart=/bin/sh -c 'echo 8 > {pool} && test \"$(cat {pool})\" -ge 8'\n");
    let units = [
        ("/etc/systemd/system/mnt-huge.mount", None, unit),
        ("/etc/systemd/system/hugewise-pools.service", None, &*pools),
    ];
    for (path, before, after) in WRITTEN.iter().copied().chain(units) {
        assert_eq!(refused(path, before, after), None, "{path}: {after}");
    }
}

/// A file, its text before and after, and a part of the refusal.
const REFUSED: &[(&str, Option<&str>, &str, &str)] = &[
    (
        SYSCTL,
        None,
        "vm.nr_hugepages = 1\nkernel.core_pattern = |/tmp/x\n",
        "line 2 of /etc/sysctl.d/60-hugewise.conf `kernel.core_pattern",
    ),
    (SYSCTL, None, "vm.nr_hugepages && x = 8\n", "write NAME = VALUE"),
    (
        POSTGRES,
        Some("work_mem = 1\n"),
        "work_mem = 1\nhuge_pages == on\n",
        "write on",
    ),
    (SYSCTL, None, "vm.nr_hugepages = many\n", "takes a whole number from 0"),
    (SYSCTL, None, "vm.max_map_count = 1\n", "from 65530"),
    (SYSCTL, None, "# a\rkernel.core_pattern=x\n", "control characters"),
    (
        SYSCTL,
        Some("net.x = 1\n"),
        "vm.nr_hugepages = 1\n",
        "line 1 of /etc/sysctl.d/60-hugewise.conf `net.x = 1`: the file has this line",
    ),
    (
        SYSCTL,
        Some("net.x = 1\nnet.y = 1\n"),
        "net.y = 1\nnet.x = 1\n",
        "a plan adds only",
    ),
    (
        SYSCTL,
        Some("vm.swappiness = 1\n"),
        "vm.nr_hugepages = 1\n",
        "it is set now",
    ),
    (
        "/etc/security/limits.d/60-hugewise.conf",
        None,
        "a soft nofile 1\n",
        "a plan adds only",
    ),
    (
        "/etc/security/limits.d/60-hugewise.conf",
        None,
        "* soft memlock 1\n",
        "write USER",
    ),
    (
        "/etc/tmpfiles.d/60-hugewise.conf",
        None,
        "w /etc/passwd - - - - x\n",
        "a plan adds only",
    ),
    (
        "/etc/tmpfiles.d/60-hugewise.conf",
        None,
        "f /etc/x 4755 root root - x\n",
        "a plan adds only",
    ),
    (
        "/etc/default/grub.d/60-hugewise.cfg",
        None,
        "GRUB_CMDLINE_LINUX=\"$(reboot) hugepagesz=1G hugepages=4\"\n",
        "a plan adds only",
    ),
    (
        "/etc/default/grub.d/60-hugewise.cfg",
        None,
        "GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX hugepagesz=1G hugepages=4\" x\n",
        "a plan adds only",
    ),
    (
        "/etc/kernel/cmdline",
        Some("quiet"),
        "quiet init=/tmp/x",
        "`init=/tmp/x`",
    ),
    (
        "/etc/kernel/cmdline",
        Some("lockdown=integrity quiet"),
        "quiet hugepagesz=1G hugepages=1",
        "a plan adds only",
    ),
    (
        "/etc/kernel/cmdline",
        None,
        "hugepagesz=1G hugepages=1",
        "makes no new one",
    ),
    ("/etc/kernel/cmdline", Some("quiet"), "quiet hugepages=all", "NUMBER"),
    (DROP_IN, None, "[Service]\nExecStartPre=/tmp/x\n", "line 2 of"),
    (DROP_IN, None, "[Service]\nLimitMEMLOCK=64M\\\nExecStart=/x\n", "`\\`"),
    (
        DROP_IN,
        Some("[Service]\nA=b \\\n"),
        "[Service]\nA=b \\\nLimitMEMLOCK=64M\n",
        "leaves this file alone",
    ),
    (DROP_IN, None, "[Install]\nLimitMEMLOCK=64M\n", "a plan adds only"),
    (DROP_IN, None, "[Service]\nCPUAffinity=\n", "CPUs such as"),
    (DROP_IN, None, "[Service]\nAllowedCPUs=0 1\n", "CPUs such as"),
    (DROP_IN, None, "[Service]\nNUMAPolicy=local\n", "write bind"),
    (DROP_IN, None, "[Service]\nNUMAMask=all\n", "nodes such as"),
    (
        DROP_IN,
        Some("[Service]\nUser=a\n"),
        "[Service]\n[Unit]\nUser=a\n",
        "a plan adds only",
    ),
    (
        "/etc/systemd/system/mnt-huge.mount",
        None,
        "[Mount]\nWhere=/mnt/other\n",
        "named for its mount point",
    ),
    (
        "/etc/systemd/system/mnt-huge.mount",
        None,
        "[Mount]\nWhat=/dev/sda1\n",
        "write hugetlbfs",
    ),
    (
        "/etc/systemd/system/mnt-huge.mount",
        None,
        "[Mount]\nOptions=suid\n",
        "hugetlbfs takes",
    ),
    (
        "/etc/systemd/system/hugewise-pools.service",
        None,
        "[Service]\nExecStart=/bin/sh -c 'reboot'\n",
        "a plan adds only",
    ),
    (
        "/etc/systemd/system/sysinit.target.d/60-hugewise.conf",
        None,
        "[Unit]\nWants=evil.service\n",
        "a plan adds only",
    ),
    (
        "/etc/systemd/system/local-fs.target.d/60-hugewise.conf",
        None,
        "[Unit]\nWants=home.mount\n",
        "a plan adds only",
    ),
    (POSTGRES, None, "huge_pages = on\n", "makes no new one"),
    (
        POSTGRES,
        Some("Host *\n  ProxyCommand x\n"),
        "Host *\n  ProxyCommand x\nhuge_pages = on\n",
        "not a configuration file of PostgreSQL",
    ),
    (
        POSTGRES,
        Some("shared_buffers = 1\n"),
        "shared_buffers = 1\narchive_command = 'x'\n",
        "a plan adds only",
    ),
    (
        POSTGRES,
        Some("shared_buffers = 1\n"),
        "shared_buffers = 1\nhuge_pages = yes\n",
        "write on, off or try",
    ),
    (
        MYSQL,
        Some("[global]\na=b\n"),
        "[global]\na=b\n[mysqld]\nlarge-pages\n",
        "not a my.cnf",
    ),
    (
        MYSQL,
        Some("[mysqld]\nuser=mysql\n"),
        "[mysqld]\nuser=mysql\nplugin-load=x.so\n",
        "a plan adds only",
    ),
    (
        MYSQL,
        Some("[mysqld]\n[client]\nx\n"),
        "[client]\n[mysqld]\nx\n",
        "a plan adds only",
    ),
];

#[test]
fn anything_else_is_refused_with_its_line() {
    for &(path, before, after, part) in REFUSED {
        let error = refused(path, before, after).unwrap_or_else(|| panic!("{path}: {after} passes"));
        assert!(error.contains(part), "{path}: no `{part}` in {error}");
    }
}

#[test]
fn a_path_becomes_a_unit_s_name_as_systemd_escape_has_it() {
    for (path, name) in [
        ("/dev/hugepages1G", "dev-hugepages1G.mount"),
        ("/dev/hugepages-1G", r"dev-hugepages\x2d1G.mount"),
        ("/mnt/a.b_c", "mnt-a.b_c.mount"),
        ("/.x", r"\x2ex.mount"),
    ] {
        assert_eq!(mount_unit(path), name);
    }
}
