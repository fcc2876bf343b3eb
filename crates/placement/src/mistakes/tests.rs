//! Mistakes planted on made machines, and machines without any.

use host::{Snapshot, Source, Tree};
use model::placement::{Check, FixWith, Mispinned, Mistake};

use super::check;

/// Two nodes of two cores of two threads: CPU c is on core c / 2 and node c / 4.
fn machine() -> Tree {
    let mut tree = Tree::default().line("/sys/devices/system/cpu/online", "0-7");
    for cpu in 0..8 {
        let (core, node) = (cpu / 2, cpu / 4);
        let directory = format!("/sys/devices/system/cpu/cpu{cpu}");
        tree = tree
            .line(&format!("{directory}/topology/physical_package_id"), node)
            .line(&format!("{directory}/topology/core_id"), core)
            .line(
                &format!("{directory}/topology/thread_siblings_list"),
                format!("{}-{}", core * 2, core * 2 + 1),
            )
            .line(&format!("{directory}/cache/index3/level"), 3)
            .line(
                &format!("{directory}/cache/index3/shared_cpu_list"),
                format!("{}-{}", node * 4, node * 4 + 3),
            );
    }
    tree.line("/sys/devices/system/node/node0/cpulist", "0-3")
        .line("/sys/devices/system/node/node1/cpulist", "4-7")
}

/// A thread: number, name, state, CPU, allowed CPUs.
type Thread<'a> = (u32, &'a str, char, u32, &'a str);

fn process(mut tree: Tree, pid: u32, cmdline: &str, threads: &[Thread<'_>]) -> Tree {
    tree = tree.file(&format!("/proc/{pid}/cmdline"), cmdline);
    tree = tree.file(
        &format!("/proc/{pid}/status"),
        "Name:\ta\nVmRSS:\t 204800 kB\nVmPTE:\t 400 kB\n",
    );
    for (tid, name, state, cpu, allowed) in threads {
        let zeros = "0 ".repeat(35);
        tree = tree
            .line(
                &format!("/proc/{pid}/task/{tid}/stat"),
                format!("{tid} ({name}) {state} {zeros}{cpu} 0 0"),
            )
            .line(
                &format!("/proc/{pid}/task/{tid}/status"),
                format!("Cpus_allowed_list:\t{allowed}"),
            );
    }
    tree
}

fn checked(tree: Tree) -> Check {
    let source = Source::from_tree("made", tree);
    check(&source, &Snapshot::take(&source), None)
}

/// The only mistake of a machine.
fn only(tree: Tree) -> Mispinned {
    let mut found = checked(tree).mistakes;
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

fn first_line(mistake: &Mispinned) -> (FixWith, &str) {
    (mistake.fixes[0].with, &mistake.fixes[0].line)
}

#[test]
fn two_busy_threads_on_one_core_while_another_is_idle() {
    let busy = |second| [(10, "a", 'R', 0, "0-7"), (11, "b", 'R', second, "0-7")];
    let found = only(process(machine(), 10, "a\0", &busy(1)));
    assert_eq!(
        (found.mistake, &found.cpus[..], &found.better[..]),
        (Mistake::SharedCore, &[0, 1][..], &[2][..])
    );
    assert_eq!(first_line(&found), (FixWith::Shell, "taskset -cp 2 11"));
    assert!(checked(process(machine(), 10, "a\0", &busy(2))).mistakes.is_empty());
}

/// Each has half of the CPU, so neither is busy.
#[test]
fn the_cpu_that_threads_share_is_no_idle_place_for_one_of_them() {
    let looked = "looked 0.240\n10 10 0.499 1 4\n10 11 0.498 1 4\n";
    let pinned = [(10, "a", 'R', 4, "4"), (11, "b", 'R', 4, "4")];
    let check = checked(process(machine(), 10, "a\0", &pinned).file("/hugewise/threads", looked));
    let [found] = check.mistakes.as_slice() else {
        panic!("{check:?}")
    };
    assert_eq!((found.mistake, &found.better[..]), (Mistake::SharedCpu, &[4, 6][..]));
    assert_eq!(check.busy, 2, "those that take turns");
}

/// What ran by chance when it was captured is not busy, if the looks beside say otherwise.
#[test]
fn the_looks_of_a_capture_decide_which_threads_are_busy() {
    let threads = [(10, "a", 'R', 0, "0-7"), (11, "b", 'R', 1, "0-7")];
    let with = |shares: [&str; 2]| {
        let looked = format!("looked 0.240\n10 10 {} 1 0\n10 11 {} 1 1\n", shares[0], shares[1]);
        checked(process(machine(), 10, "a\0", &threads).file("/hugewise/threads", looked))
    };
    let [busy, idle] = [with(["0.998", "0.997"]), with(["0.998", "0.012"])];
    assert_eq!((busy.busy, busy.mistakes.len(), busy.seconds), (2, 1, 0.24));
    assert_eq!((idle.busy, idle.mistakes.len()), (1, 0));
    assert_eq!(with(["-", "-"]).busy, 0);
}

/// A captured machine of `fixtures/machines`.
fn fixture(name: &str) -> Check {
    let path = format!("{}/../../fixtures/machines/{name}.tree", env!("CARGO_MANIFEST_DIR"));
    let source = Source::open(path.as_ref()).expect("a machine");
    check(&source, &Snapshot::take(&source), None)
}

#[test]
fn a_capture_with_all_mistakes_has_each_once_and_the_same_processes_in_their_places_none() {
    let found = fixture("pinned-wrongly");
    let pids: Vec<(Mistake, u32)> = found.mistakes.iter().map(|found| (found.mistake, found.pid)).collect();
    let expected = [
        (Mistake::SharedCore, 3001),
        (Mistake::SharedCpu, 3100),
        (Mistake::FirstThreadOnly, 3200),
        (Mistake::VcpusOnSiblings, 3300),
        (Mistake::VcpusOnNodes, 3400),
        (Mistake::RemoteMemory, 3500),
        (Mistake::CpusetCut, 3600),
        (Mistake::IsolatedTogether, 3700),
    ];
    assert_eq!(pids, expected);
    assert_eq!(expected.map(|(mistake, _)| mistake), Mistake::ALL);
    assert!(found.mistakes.iter().all(|found| !found.fixes.is_empty()));
    let well = fixture("pinned-well");
    assert_eq!((well.mistakes, well.threads), (Vec::new(), found.threads));
}

#[test]
fn a_full_machine_has_no_better_place() {
    let threads: Vec<Thread<'_>> = (0..8).map(|cpu| (10 + cpu, "a", 'R', cpu, "0-7")).collect();
    let check = checked(process(machine(), 10, "a\0", &threads));
    assert_eq!((check.mistakes, check.busy, check.threads), (Vec::new(), 8, 8));
}

#[test]
fn busy_threads_pinned_to_one_cpu() {
    let pinned = |second| [(10, "a", 'R', 4, "4"), (11, "b", 'R', 4, second)];
    let found = only(process(machine(), 10, "/bin/a\0", &pinned("4")));
    assert_eq!((found.mistake, &found.better[..]), (Mistake::SharedCpu, &[4, 6][..]));
    assert_eq!(first_line(&found), (FixWith::Shell, "taskset -acp 4,6 10"));
    assert_eq!(found.fixes[1].line, "numactl --physcpubind=4,6 /bin/a");
    assert!(checked(process(machine(), 10, "a\0", &pinned("6"))).mistakes.is_empty());
}

#[test]
fn busy_processes_pinned_to_one_cpu() {
    let one = |tree: Tree, pid, cpu: u32| process(tree, pid, "a\0", &[(pid, "a", 'R', cpu, &cpu.to_string())]);
    let ranks = |third| one(one(one(machine(), 10, 4), 11, 4), 12, third);
    let found = only(ranks(4));
    assert_eq!(
        (found.mistake, &found.threads[..]),
        (Mistake::SharedCpu, &[10, 11, 12][..])
    );
    assert_eq!(found.better, [0, 4, 6]);
    let lines: Vec<&str> = found.fixes.iter().map(|fix| fix.line.as_str()).collect();
    assert_eq!(lines, ["taskset -cp 6 12", "taskset -cp 0 11"]);
    assert_eq!(only(ranks(6)).better, [0, 4]);
    let source = Source::from_tree("made", ranks(4));
    for pid in [10, 12] {
        let found = check(&source, &Snapshot::take(&source), Some(pid)).mistakes;
        assert_eq!((found.len(), found[0].pid), (1, pid));
        assert_eq!(first_line(&found[0]).1, format!("taskset -cp 6 {pid}"));
    }
}

/// The kernel refuses what the cpuset does not have.
#[test]
fn a_cpuset_of_one_cpu_is_no_mistake_of_its_threads() {
    let with = |cpus: &str| {
        let group = "/sys/fs/cgroup/a.slice";
        process(machine(), 10, "a\0", &[(10, "a", 'R', 4, "4"), (11, "b", 'R', 4, "4")])
            .line("/proc/10/cgroup", "0::/a.slice")
            .line(&format!("{group}/cpuset.cpus"), cpus)
            .line(&format!("{group}/cpuset.cpus.effective"), cpus)
    };
    assert!(checked(with("4")).mistakes.is_empty());
    assert_eq!(only(with("0-4")).better, [0, 4]);
}

#[test]
fn pinning_that_only_the_first_thread_has() {
    let threads = |other| [(10, "a", 'S', 0, "0-1"), (11, "b", 'R', 6, other)];
    let found = only(process(machine(), 10, "a\0", &threads("0-7")));
    assert_eq!(
        (found.mistake, &found.threads[..]),
        (Mistake::FirstThreadOnly, &[11][..])
    );
    assert_eq!(first_line(&found), (FixWith::Shell, "taskset -acp 0-1 10"));
    assert!(
        checked(process(machine(), 10, "a\0", &threads("0-1")))
            .mistakes
            .is_empty()
    );
}

const LIBVIRT: &str = "qemu-system-x86_64\0-name\0guest=db,debug-threads=on\0-smp\0\x32\0";

fn vcpus<'a>(first: &'a str, second: &'a str) -> [Thread<'a>; 3] {
    [
        (20, "qemu-system-x86", 'S', 0, "0-7"),
        (21, "CPU 0/KVM", 'S', 0, first),
        (22, "CPU 1/KVM", 'S', 1, second),
    ]
}

#[test]
fn vcpus_pinned_to_siblings_of_a_guest_that_takes_them_for_cores() {
    let found = only(process(machine(), 20, LIBVIRT, &vcpus("0", "1")));
    assert_eq!(
        (found.mistake, &found.better[..]),
        (Mistake::VcpusOnSiblings, &[0, 2][..])
    );
    assert_eq!(found.fixes[1].line, "<vcpupin vcpu='1' cpuset='2'/>");
    assert!(
        checked(process(machine(), 20, LIBVIRT, &vcpus("0", "2")))
            .mistakes
            .is_empty()
    );
    let knows = LIBVIRT.replace("-smp\0\x32", "-smp\0\x32,sockets=1,cores=1,threads=2");
    assert!(
        checked(process(machine(), 20, &knows, &vcpus("0", "1")))
            .mistakes
            .is_empty()
    );
}

#[test]
fn vcpus_pinned_to_two_nodes() {
    let found = only(process(machine(), 20, LIBVIRT, &vcpus("0", "4")));
    assert_eq!((found.mistake, &found.nodes[..]), (Mistake::VcpusOnNodes, &[0, 1][..]));
    assert_eq!(first_line(&found).0, FixWith::Libvirt);
    let vmx = [
        (20, "vmware-vmx", 'S', 0, "0-7"),
        (21, "vmx-vcpu-0", 'S', 0, "0"),
        (22, "vmx-vcpu-1", 'S', 4, "4"),
    ];
    let found = only(process(machine(), 20, "/usr/lib/vmware/bin/vmware-vmx\0", &vmx));
    assert_eq!(first_line(&found), (FixWith::Vmx, "sched.cpu.affinity = \"0,1\""));
}

#[test]
fn memory_on_another_node_than_all_cpus() {
    let with = |maps: &str| {
        let tree = process(machine(), 10, "a\0", &[(10, "a", 'R', 0, "0-3")]);
        tree.file("/proc/10/numa_maps", maps)
            .line("/proc/10/cgroup", "0::/system.slice/a.service")
    };
    let found = only(with(
        "7f0000000000 default anon=51200 N0=1200 N1=50000 kernelpagesize_kB=4\n",
    ));
    assert_eq!((found.mistake, &found.nodes[..]), (Mistake::RemoteMemory, &[0, 1][..]));
    assert!(found.percent.is_some_and(|percent| (97.0..98.0).contains(&percent)));
    assert_eq!(first_line(&found), (FixWith::Shell, "migratepages 10 1 0"));
    assert_eq!(found.fixes[1].line, "NUMAPolicy=bind\nNUMAMask=0");
    assert!(
        checked(with(
            "7f0000000000 default anon=51200 N0=50000 N1=1200 kernelpagesize_kB=4\n"
        ))
        .mistakes
        .is_empty()
    );
}

#[test]
fn a_cpuset_that_asks_for_cpus_that_it_does_not_get() {
    let with = |effective: &str| {
        process(machine(), 10, "a\0", &[(10, "a", 'R', 0, "0-1")])
            .line("/proc/10/cgroup", "0::/system.slice/a.service")
            .line("/sys/fs/cgroup/system.slice/a.service/cpuset.cpus", "0-3")
            .line("/sys/fs/cgroup/system.slice/a.service/cpuset.cpus.effective", effective)
    };
    let found = only(with("0-1"));
    assert_eq!(
        (found.mistake, &found.cpus[..]),
        (Mistake::CpusetCut, &[0, 1, 2, 3][..])
    );
    let line = "echo 0-1 > /sys/fs/cgroup/system.slice/a.service/cpuset.cpus";
    assert_eq!(first_line(&found), (FixWith::Cpuset, line));
    assert!(checked(with("0-3")).mistakes.is_empty());
}

#[test]
fn threads_that_pile_up_on_isolated_cpus() {
    let isolated = machine().line("/sys/devices/system/cpu/isolated", "4-7");
    let threads = |second, first_may, second_may| [(10, "a", 'R', 4, first_may), (11, "b", 'R', second, second_may)];
    let found = only(process(isolated.clone(), 10, "a\0", &threads(4, "4-7", "4-7")));
    assert_eq!(found.mistake, Mistake::IsolatedTogether);
    let lines: Vec<&str> = found.fixes.iter().map(|fix| fix.line.as_str()).collect();
    assert_eq!(lines, ["taskset -cp 4 10", "taskset -cp 5 11"]);
    assert!(
        checked(process(isolated, 10, "a\0", &threads(6, "4", "6")))
            .mistakes
            .is_empty()
    );
}

#[test]
fn one_process_is_checked_with_its_children_and_no_other() {
    let tree = process(machine(), 10, "a\0", &[(10, "a", 'R', 4, "4"), (11, "b", 'R', 4, "4")]);
    let source = Source::from_tree("made", process(tree, 12, "c\0", &[(12, "c", 'S', 0, "0-7")]));
    let found = |pid| check(&source, &Snapshot::take(&source), Some(pid)).mistakes.len();
    assert_eq!([found(10), found(12)], [1, 0]);
}
