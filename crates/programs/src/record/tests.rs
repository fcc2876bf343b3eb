//! What a capture keeps, and what it must not.

use model::{Cause, Reading};

use super::{CaptureOptions, capture};
use host::{Node, Snapshot, Source, Tree};

const PROCESSES: CaptureOptions = CaptureOptions { processes: true };

fn machine() -> Tree {
    Tree::new()
        .line(
            "/proc/cmdline",
            "root=UUID=1234 hugepages=8 ip=10.0.0.7 transparent_hugepage=never initrd=\\deadbeef\\initrd",
        )
        .file("/proc/cpuinfo", "processor\t: 0\nvendor_id\t: X\n\nprocessor\t: 1\n")
        .file(
            "/proc/self/mounts",
            "server:/home /home nfs rw 0 0\nnone /huge hugetlbfs rw,pagesize=2M 0 0\n",
        )
        .line("/proc/meminfo", "MemTotal: 1024 kB")
        .denied("/proc/buddyinfo")
        .dir("/sys/kernel/mm/hugepages")
        .file(
            "/proc/7/status",
            "Name:\tdb\nVmRSS:\t   1024 kB\nHugetlbPages:\t  65536 kB\n",
        )
        .file("/proc/7/cmdline", "/usr/bin/db\0--password=secret\0")
        .file("/proc/7/environ", "TOKEN=secret\0")
        .file("/proc/7/smaps", "")
        .file("/proc/8/smaps", "")
        .file("/proc/8/status", "Name:\tsmall\nVmRSS:\t   1024 kB\n")
}

fn node<'a>(tree: &'a Tree, path: &str) -> Option<&'a Node> {
    tree.iter().find(|(at, _)| *at == path).map(|(_, node)| node)
}

#[test]
fn hardware_and_memory_only_unless_processes_are_asked_for() {
    let source = Source::from_tree("test", machine());
    let tree = capture(&source, CaptureOptions::default()).tree;
    let names: Vec<&str> = tree.iter().map(|(path, _)| path).collect();
    let expected = [
        "/hugewise/left_out",
        "/proc/buddyinfo",
        "/proc/cmdline",
        "/proc/cpuinfo",
        "/proc/meminfo",
        "/proc/self/mounts",
        "/sys/kernel/mm/hugepages",
    ];
    assert_eq!(names, expected);
    assert_eq!(node(&tree, "/proc/buddyinfo"), Some(&Node::Denied));
}

/// What stands behind the CPUs of POWER stays, and no number of a board does.
#[test]
fn cpuinfo_keeps_one_cpu_and_the_platform() {
    let cpuinfo =
        "processor\t: 0\ncpu\t: POWER9\n\nprocessor\t: 1\n\nplatform\t: pSeries\nMMU\t\t: Hash\nSerial\t: 7\n";
    let source = Source::from_tree("test", machine().file("/proc/cpuinfo", cpuinfo));
    let text = capture(&source, PROCESSES).tree.to_text();
    assert!(text.contains("pSeries") && text.contains("Hash"), "{text}");
    assert!(!text.contains("processor\t: 1") && !text.contains("Serial"), "{text}");
}

#[test]
fn names_addresses_arguments_and_environments_stay_out() {
    let source = Source::from_tree("test", machine());
    let text = capture(&source, PROCESSES).tree.to_text();
    for secret in [
        "UUID",
        "10.0.0.7",
        "deadbeef",
        "server",
        "secret",
        "TOKEN",
        "processor\t: 1",
    ] {
        assert!(!text.contains(secret), "{secret} in\n{text}");
    }
    for kept in ["hugepages=8 transparent_hugepage=never initrd=", "/huge", "/usr/bin/db"] {
        assert!(text.contains(kept), "{kept} not in\n{text}");
    }
}

#[test]
fn only_processes_with_memory_show_their_mappings() {
    let source = Source::from_tree("test", machine());
    let tree = capture(&source, PROCESSES).tree;
    assert!(node(&tree, "/proc/7/smaps").is_some());
    assert!(node(&tree, "/proc/8/smaps").is_none());
}

#[test]
fn where_a_postgresql_server_takes_connections_is_kept() {
    let pid = "7\n/srv/pg\n1790000000\n5433\n/run/pg\nlocalhost\n  1 2\nready\n";
    let tree = machine()
        .file("/proc/7/status", "Name:\tpostgres\nVmRSS:\t   1024 kB\n")
        .file("/proc/7/cmdline", "/usr/bin/postgres\0-D\0/srv/pg\0")
        .link("/proc/7/cwd", "/srv/pg")
        .file("/proc/7/root/srv/pg/postmaster.pid", pid);
    let captured = capture(&Source::from_tree("test", tree), PROCESSES).tree;
    let source = Source::from_tree("captured", captured);
    let servers = crate::targets(&source, &Snapshot::take(&source), "postgres").expect("a server");
    let listens = servers[0].listens.as_ref().expect("where it listens");
    assert_eq!((listens.port, listens.socket.as_deref()), (Some(5433), Some("/run/pg")));
}

/// A plan looks there for the file of a server that runs in no container.
#[test]
fn the_files_of_a_postgresql_server_are_kept_where_the_machine_has_them() {
    let captured = |group: &str| {
        let tree = machine()
            .file("/proc/7/status", "Name:\tpostgres\nVmRSS:\t   1024 kB\n")
            .file("/proc/7/cmdline", "/usr/bin/postgres\0-D\0/srv/pg\0")
            .line("/proc/7/cgroup", group);
        let at = "/proc/7/root/srv/pg";
        let tree = tree.file(&format!("{at}/postgresql.conf"), "include 'own.conf'\n");
        let tree = tree.file(&format!("{at}/own.conf"), "shared_buffers = 1GB\n");
        capture(&Source::from_tree("test", tree), PROCESSES).tree
    };
    let (host, container) = (
        captured("0::/system.slice/pg.service"),
        captured("0::/docker/0123456789abcdef"),
    );
    for file in ["/srv/pg/postgresql.conf", "/srv/pg/own.conf"] {
        assert!(node(&host, file).is_some(), "{file}");
        assert!(node(&host, &format!("/proc/7/root{file}")).is_some(), "{file}");
        assert!(node(&container, file).is_none(), "{file} is another one there");
    }
}

#[test]
fn the_limits_of_a_process_come_with_those_above_it() {
    let tree = machine()
        .file("/proc/self/mounts", "none /sys/fs/cgroup cgroup2 rw 0 0\n")
        .line("/proc/7/cgroup", "0::/pods/db")
        .line("/sys/fs/cgroup/pods/hugetlb.2MB.max", "max")
        .line("/sys/fs/cgroup/pods/db/hugetlb.2MB.max", 0)
        .line("/sys/fs/cgroup/pods/web/hugetlb.2MB.max", 0);
    let tree = capture(&Source::from_tree("test", tree), PROCESSES).tree;
    assert!(node(&tree, "/sys/fs/cgroup/pods/hugetlb.2MB.max").is_some());
    assert!(node(&tree, "/sys/fs/cgroup/pods/db/hugetlb.2MB.max").is_some());
    assert!(node(&tree, "/sys/fs/cgroup/pods/web/hugetlb.2MB.max").is_none());
}

#[test]
fn a_file_of_unlikely_size_is_left_out_and_says_so() {
    let tree = machine().file("/proc/meminfo", vec![b'x'; 2 << 20]);
    let tree = capture(&Source::from_tree("test", tree), CaptureOptions::default()).tree;
    assert!(matches!(node(&tree, "/proc/meminfo"), Some(Node::Failed(why)) if why.contains("larger")));
}

#[test]
fn the_running_machine_and_its_capture_tell_the_same() {
    let live = Source::live();
    let tree = capture(&live, CaptureOptions::default()).tree;
    let text = tree.to_text();
    let back = Source::from_tree("capture", Tree::parse("capture", text.as_bytes()).expect("an archive"));
    let (here, there) = (Snapshot::take(&live), Snapshot::take(&back));
    assert_eq!(here.machine(), there.machine());
    assert_eq!(here.cpu, there.cpu);
    assert_eq!(here.topology.cpus, there.topology.cpus);
    assert_eq!(here.page_kinds(), there.page_kinds());
    assert_eq!(
        here.sysctls.text("vm.overcommit_memory"),
        there.sysctls.text("vm.overcommit_memory")
    );
    match (&here.thp, &there.thp) {
        (Reading::Known(here), Reading::Known(there)) => assert_eq!(here.pmd_size, there.pmd_size),
        (here, there) => assert!(matches!(
            (
                here.unread().map(|why| why.unread),
                there.unread().map(|why| why.unread)
            ),
            (Some(Cause::Absent), Some(Cause::Absent)) | (Some(Cause::Denied), Some(Cause::Denied))
        )),
    }
}

#[test]
fn threads_of_a_capture_and_what_was_seen_of_them_stay_in_a_capture_of_it() {
    let seen = "looked 0.240\n7 7 0.500 1 0\n";
    let status = "Name:\tdb\nUmask:\t0022\nCpus_allowed_list:\t0-3\n";
    let tree = machine()
        .file("/hugewise/threads", seen)
        .line("/proc/7/task/7/stat", "7 (db) R 1 7 7")
        .file("/proc/7/task/7/status", status)
        .line("/sys/devices/system/cpu/isolated", "2-3");
    let tree = capture(&Source::from_tree("test", tree), PROCESSES).tree;
    let kept = |path: &str| node(&tree, path).cloned();
    let file = |text: &str| Some(Node::File(text.as_bytes().to_vec()));
    assert_eq!(kept("/hugewise/threads"), file(seen));
    assert_eq!(kept("/proc/7/task/7/stat"), file("7 (db) R 1 7 7\n"));
    assert_eq!(
        kept("/proc/7/task/7/status"),
        file("Name:\tdb\nCpus_allowed_list:\t0-3\n")
    );
    assert_eq!(kept("/sys/devices/system/cpu/isolated"), file("2-3\n"));
}

/// A thread of this process that is always busy, and all others that are not.
#[test]
fn threads_of_a_busy_process_are_in_the_capture_of_this_machine() {
    let mut child = std::process::Command::new("sh")
        .args(["-c", "while :; do :; done"])
        .spawn()
        .expect("a shell");
    let tree = capture(&Source::live(), PROCESSES).tree;
    child.kill().expect("ends");
    child.wait().expect("ends");
    let pid = child.id();
    let back = Source::from_tree("capture", tree);
    let look = host::threads::Look::read(&back).expect("a look");
    let Some(seen) = look.threads.iter().find(|seen| seen.pid == pid) else {
        return testing::skipped("others left the shell less than a quarter of a CPU");
    };
    assert!(
        look.seconds > 0.2 && seen.share.is_some_and(|share| share > 0.0),
        "{look:?}"
    );
    let status = back.text(&format!("/proc/{pid}/task/{pid}/status"));
    assert!(
        status
            .known()
            .is_some_and(|status| status.contains("Cpus_allowed_list:")),
        "{status:?}"
    );
    assert!(look.threads.len() <= 2000);
}
