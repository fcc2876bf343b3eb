//! Holders of pages that no process maps, on made machines and, for a memfd of this process, on this one.

use std::fs::File;
use std::os::fd::AsRawFd;

use model::{Bytes, Cause, Reading};
use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, memfd_create};

use super::{Held, HolderKind, held_by_nobody};
use crate::processes::list;
use crate::source::HUGETLB_FILES;
use crate::{Snapshot, Source, Tree};

const POOL: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB";
const SHM: &str = "       key      shmid perms       size  cpid  lpid nattch   uid   gid  cuid  cgid      atime      dtime      ctime                   rss                  swap\n";

/// `used` pages of the pool are in use; process 5 maps one page of the file with inode 7.
fn machine(used: u64) -> Tree {
    Tree::new()
        .line(&format!("{POOL}/nr_hugepages"), 100)
        .line(&format!("{POOL}/free_hugepages"), 100 - used)
        .file(
            "/proc/5/status",
            "Name:\tdb\nVmRSS:\t9 kB\nVmPTE:\t9 kB\nHugetlbPages:\t2048 kB\n",
        )
        .file(
            "/proc/5/maps",
            "7f0000000000-7f0000200000 rw-s 00000000 00:2e 7 /dev/hugepages/mapped\n",
        )
        .file(
            HUGETLB_FILES,
            "file 2097152 2097152 00:2e 7 0 0 /dev/hugepages/mapped\n\
             file 2097152 8388608 00:2e 8 26 0 /dev/hugepages/left over\n\
             file 2097152 0 00:2e 9 0 0 /dev/hugepages/empty\n\
             memfd 2097152 4194304 00:10 1033 1000 5 /memfd:guest (deleted)\n\
             memfd 2097152 4194304 00:10 1033 1000 6 /memfd:guest (deleted)\n",
        )
}

fn look(tree: Tree) -> Reading<Held> {
    let source = Source::from_tree("made", tree);
    let rows = list(&source).into_result().expect("a list");
    held_by_nobody(&source, &Snapshot::take(&source), &rows)
}

fn segment(id: u32, mib: u64, attached: u32) -> String {
    let bytes = mib << 20;
    format!("0 {id} 1600 {bytes} 4711 4711 {attached} 26 26 26 26 0 0 0 {bytes} 0\n")
}

#[test]
fn files_and_memfds_that_no_process_maps_are_named_once() {
    let held = look(machine(7)).into_result().expect("known");
    let told: Vec<_> = held
        .holders
        .iter()
        .map(|holder| (holder.kind, holder.name.as_str(), holder.bytes, holder.uid, holder.pid))
        .collect();
    assert_eq!(
        told,
        [
            (HolderKind::File, "/dev/hugepages/left over", Bytes::mib(8), 26, None),
            (
                HolderKind::Memfd,
                "/memfd:guest (deleted)",
                Bytes::mib(4),
                1000,
                Some(5)
            ),
        ]
    );
    assert_eq!(
        (held.used, held.mapped, held.total()),
        (Bytes::mib(14), Bytes::mib(2), Bytes::mib(12))
    );
}

#[test]
fn a_segment_is_sure_only_if_the_pool_s_account_has_room_for_it() {
    let shm = format!("{SHM}{}{}", segment(3, 16, 0), segment(4, 16, 1));
    for (used, sure) in [(7 + 8, true), (7 + 7, false)] {
        let held = look(machine(used).file("/proc/sysvipc/shm", &shm))
            .into_result()
            .expect("known");
        let segments: Vec<_> = held
            .holders
            .iter()
            .filter(|holder| holder.kind == HolderKind::Segment)
            .map(|holder| (holder.name.as_str(), holder.bytes, holder.page, holder.sure))
            .collect();
        assert_eq!(segments, [("3", Bytes::mib(16), Some(Bytes::mib(2)), sure)]);
    }
}

#[test]
fn what_could_not_be_looked_at_is_said() {
    let held = look(machine(7).denied("/proc/5/maps")).into_result().expect("known");
    assert_eq!((held.denied, held.holders.len()), (1, 3));
    let cause = |tree: Tree| look(tree).unread().map(|why| (why.unread, why.place.clone()));
    assert_eq!(
        cause(machine(7).without(HUGETLB_FILES)),
        Some((Cause::Absent, HUGETLB_FILES.to_owned()))
    );
    assert_eq!(
        cause(machine(7).file(HUGETLB_FILES, "file 2M x\n")),
        Some((Cause::Garbled, format!("{HUGETLB_FILES}:1")))
    );
    let idle = look(machine(0).without(HUGETLB_FILES));
    assert_eq!(
        idle.known().map(|held| held.holders.len()),
        Some(0),
        "nothing is looked for"
    );
}

/// A page of the pool in a memfd of this process, without any mapping.
fn page_in_memfd() -> Option<File> {
    let flags = MemfdFlags::HUGETLB | MemfdFlags::HUGE_2MB | MemfdFlags::CLOEXEC;
    let file = File::from(memfd_create("hugewise-test", flags).ok()?);
    fallocate(&file, FallocateFlags::empty(), 0, 2 << 20).ok()?;
    Some(file)
}

#[test]
#[allow(clippy::print_stderr)]
fn a_memfd_of_this_very_process_is_found() {
    let Some(file) = page_in_memfd() else {
        return testing::skipped("there is no 2M page to be had (write vm.nr_overcommit_hugepages=1 to have one)");
    };
    let source = Source::live();
    let rows = list(&source).into_result().expect("a list");
    let held = held_by_nobody(&source, &Snapshot::take(&source), &rows)
        .into_result()
        .expect("known");
    let own = held.holders.iter().find(|holder| holder.name.contains("hugewise-test"));
    let own = own.unwrap_or_else(|| panic!("{held:#?}"));
    assert_eq!((own.pid, own.bytes), (Some(std::process::id()), Bytes::mib(2)));
    assert_eq!((own.page, own.kind), (Some(Bytes::mib(2)), HolderKind::Memfd));
    assert!(file.as_raw_fd() > 0);
}
