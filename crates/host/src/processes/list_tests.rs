//! The list of processes on false machines, and on this one.

use model::process::ProcessPages;
use model::{Bytes, Cause, Reading};

use super::super::areas::counted;
use super::super::{Limits, one};
use super::{list, list_within};
use crate::{Source, Tree};

fn status(name: &str, rss_kib: u64, tables_kib: u64, hugetlb_kib: u64) -> String {
    format!(
        "Name:\t{name}\nUid:\t1\t1\t1\t1\nKthread:\t0\nVmRSS:\t{rss_kib} kB\nVmPTE:\t{tables_kib} kB\n\
         HugetlbPages:\t{hugetlb_kib} kB\nTHP_enabled:\t1\n"
    )
}

fn rollup(rss_kib: u64, thp_kib: u64, hugetlb_kib: u64) -> String {
    format!(
        "1000-2000 ---p 00000000 00:00 0    [rollup]\nRss: {rss_kib} kB\nAnonHugePages: {thp_kib} kB\nPrivate_Hugetlb: {hugetlb_kib} kB\n"
    )
}

fn pool(tree: Tree, kib: u64, pages: u64, free: u64) -> Tree {
    let dir = format!("/sys/kernel/mm/hugepages/hugepages-{kib}kB");
    tree.line(&format!("{dir}/nr_hugepages"), pages)
        .line(&format!("{dir}/free_hugepages"), free)
}

/// A database on hugetlb and THP, a small shell, a thread of the kernel, a process of another user, and one that has
/// just ended.
fn machine() -> Tree {
    let tree = Tree::new()
        .file("/proc/20/status", status("db", 8192, 100, 4096))
        .file("/proc/20/smaps_rollup", rollup(8192, 6144, 4096))
        .file("/proc/3/status", status("sh", 900, 40, 0))
        .file("/proc/2/status", "Name:\tkthreadd\nUid:\t0\t0\t0\t0\nKthread:\t1\n")
        .file("/proc/100/status", status("theirs", 5000, 40, 0))
        .denied("/proc/100/smaps_rollup")
        .dir("/proc/30")
        .line("/proc/meminfo", "MemTotal: 1 kB");
    pool(tree, 2048, 8, 6)
}

fn listed(tree: Tree) -> Vec<ProcessPages> {
    let source = Source::from_tree("made", tree);
    list(&source).into_result().expect("a list of processes")
}

#[test]
fn lists_by_pid_what_has_memory() {
    let processes = listed(machine());
    let rows: Vec<_> = processes.iter().map(|row| (row.pid, row.name.as_str())).collect();
    assert_eq!(rows, [(3, "sh"), (20, "db"), (100, "theirs")]);
    let db = &processes[1];
    assert_eq!(db.backing.to_string(), "base 2M + thp 6M + hugetlb-2M 4M");
    assert_eq!(db.resident, Reading::Known(Bytes::mib(12)));
    assert_eq!(db.rss, Reading::Known(Bytes::mib(8)));
    assert_eq!(db.page_tables, Reading::Known(Bytes::kib(100)));
}

#[test]
fn a_process_too_small_for_a_large_page_is_base_without_a_walk() {
    let processes = listed(machine());
    assert_eq!(processes[0].backing.to_string(), "base 900K");
}

/// Kernels before 4.14 have no smaps_rollup.
#[test]
fn what_backs_a_process_of_an_old_kernel_is_the_sum_of_its_mappings() {
    let mapping = |start: u64, rss: u64, thp: u64| {
        format!("{start:x}000-{start:x}fff000 rw-p 00000000 00:00 0 \nRss: {rss} kB\nAnonHugePages: {thp} kB\n")
    };
    let with = |smaps: String| {
        let tree = Tree::new()
            .file("/proc/20/status", status("db", 8192, 100, 0))
            .file("/proc/20/smaps", smaps)
            .line("/proc/meminfo", "MemTotal: 1 kB");
        listed(tree).remove(0)
    };
    let all = with(mapping(1, 6144, 6144) + &mapping(2, 2048, 0));
    assert_eq!(
        (all.backing.to_string().as_str(), all.shown_in),
        ("base 2M + thp 6M", "smaps")
    );
    // A capture with some of its mappings does not show the others.
    for some in [2048, 6144] {
        let some = with(mapping(1, some, some));
        assert!(some.backing.is_absent() && some.shown_in == "status");
    }
}

#[test]
fn a_machine_without_pmd_mapped_pages_answers_for_its_processes() {
    let vmstat = "nr_anon_transparent_hugepages 0\nnr_shmem_pmdmapped 0\nnr_file_pmdmapped 0\n";
    let quiet = |release| {
        machine()
            .file("/proc/vmstat", vmstat)
            .line("/proc/sys/kernel/osrelease", release)
    };
    let theirs = |tree| listed(tree)[2].backing.to_string();
    assert_eq!(
        theirs(quiet("6.12.0-1-amd64")),
        "base 4.9M",
        "not walked, so not denied"
    );
    assert!(
        theirs(quiet("5.10.0-30-amd64")).contains("denied"),
        "its counters may be behind"
    );
    let busy = quiet("6.12.0").file("/proc/vmstat", vmstat.replace("pmdmapped 0", "pmdmapped 3"));
    assert!(theirs(busy).contains("denied"));
}

#[test]
fn only_the_sorts_of_memory_that_have_pmd_mapped_pages_are_looked_into() {
    let vmstat = "nr_anon_transparent_hugepages 7\nnr_shmem_pmdmapped 0\nnr_file_pmdmapped 0\n";
    let tree = machine()
        .file("/proc/vmstat", vmstat)
        .line("/proc/sys/kernel/osrelease", "6.12.0");
    let parts = |anon: u32, file: u32| {
        format!(
            "{}RssAnon: {anon} kB\nRssFile: {file} kB\n",
            status("theirs", 5000, 40, 0)
        )
    };
    let theirs = |text: String| {
        listed(tree.clone().file("/proc/100/status", text))[2]
            .backing
            .known()
            .is_some()
    };
    assert!(theirs(parts(900, 4100)), "too little anonymous memory for a huge page");
    assert!(!theirs(parts(4100, 900)));
}

#[test]
fn a_denied_process_keeps_its_status() {
    let processes = listed(machine());
    let theirs = &processes[2];
    assert_eq!(theirs.resident, Reading::Known(Bytes::kib(5000)));
    assert_eq!(theirs.backing.unread().expect("denied").unread, Cause::Denied);
}

#[test]
fn a_denied_status_is_a_row_of_reasons() {
    let processes = listed(Tree::new().denied("/proc/9/status").denied("/proc/9/smaps_rollup"));
    let row = &processes[0];
    assert_eq!(row.uid.unread().expect("denied").unread, Cause::Denied);
    assert_eq!(row.backing.unread().expect("denied").unread, Cause::Denied);
}

#[test]
fn two_pools_in_use_are_told_apart_by_the_mappings_or_not_at_all() {
    let two = pool(machine(), 1_048_576, 1, 0);
    let smaps = "7f0000000000-7f0000400000 rw-p 00000000 00:00 0 \nKernelPageSize: 2048 kB\nRss: 0 kB\n\
                 Private_Hugetlb: 4096 kB\nVmFlags: rd wr ht \n";
    let told = listed(two.clone().file("/proc/20/smaps", smaps));
    assert_eq!(told[1].backing.to_string(), "base 2M + thp 6M + hugetlb-2M 4M");
    let denied = listed(two.clone().denied("/proc/20/smaps"));
    assert_eq!(denied[1].backing.unread().expect("denied").unread, Cause::Denied);
    assert_eq!(
        denied[1].hugetlb,
        Reading::Known(Bytes::mib(4)),
        "the sum is still known"
    );
}

#[test]
fn a_capture_has_no_lock_to_be_held() {
    let processes = listed(machine().file("/proc/20/status", status("db", 8192, 900 * 1024, 0)));
    assert_eq!(processes[1].backing.to_string(), "base 2M + thp 6M");
}

#[test]
fn a_live_process_with_many_page_tables_is_walked_in_steps_or_left_out_with_the_reason() {
    let (source, pid) = (Source::live(), std::process::id());
    let limits = Limits {
        page_tables_max: Bytes(0),
        ..Limits::default()
    };
    let processes = list_within(&source, limits, Bytes(0)).into_result().expect("a list");
    let row = processes.into_iter().find(|row| row.pid == pid).expect("this process");
    match row.backing.into_result() {
        Ok(backing) => assert_eq!(Reading::Known(backing.total()), row.resident),
        Err(why) => assert!(why.why.contains("page tables") && why.why.contains("left out"), "{why}"),
    }
}

#[test]
fn one_process_may_be_absent_or_without_memory() {
    let source = Source::from_tree("made", machine());
    for pid in [2, 77] {
        let why = one(&source, pid);
        assert_eq!(why.unread().expect("no memory").unread, Cause::Absent, "{why:?}");
    }
    assert_eq!(
        counted(&source, 20).unread().expect("not captured").unread,
        Cause::Absent
    );
    assert_eq!(
        list(&Source::from_tree("bare", Tree::new()))
            .unread()
            .expect("no /proc")
            .unread,
        Cause::Absent
    );
}

#[test]
fn this_very_process_is_found_by_every_way() {
    let (source, pid) = (Source::live(), std::process::id());
    let processes = list(&source).into_result().expect("a list");
    let row = processes.iter().find(|row| row.pid == pid).expect("this process");
    let alone = one(&source, pid).into_result().expect("this process");
    assert_eq!((&row.name, &row.uid), (&alone.name, &alone.uid));
    for row in [row, &alone] {
        assert!(
            row.backing.known().expect("own memory").total() > Bytes::mib(1),
            "{row:?}"
        );
    }
    let here = std::ptr::from_ref(&pid).addr() as u64;
    let own = counted(&source, pid).into_result().expect("own mappings");
    let mut around = own.iter().filter(|area| area.range.contains(&here));
    let stack = around.next().expect("a mapping around a variable");
    assert!(
        stack.resident() > Some(Bytes(0)) && stack.perms.starts_with("rw"),
        "{stack:?}"
    );
}
