//! Mapped files as smaps shows them on Linux 6.18 and older, with the reason that the kernel has (benches/files.py tries them).

use super::file_system;
use crate::processes::areas::counted;
use crate::processes::{Ground, Reason, one, why_base};
use crate::snapshot::MountTree;
use crate::{Snapshot, Source, Tree};

const MOUNTS: &str = "/dev/vda / ext4 rw 0 0\n/dev/vdb /xfs xfs rw 0 0\n/dev/vdc /btrfs btrfs rw 0 0\n\
    none /dev/shm tmpfs rw 0 0\nnone /always tmpfs rw,huge=always 0 0\nnone /advise tmpfs rw,huge=advise 0 0\n\
    overlay /over overlay rw,lowerdir=/xfs/l,upperdir=/xfs/u,workdir=/xfs/w 0 0\n\
    overlay /box overlay rw,lowerdir=/over/l,upperdir=/over/u 0 0\nserver:/ /nfs nfs4 rw 0 0\n";

/// How a file of 8 MiB is mapped, all of it there on base pages.
#[derive(Clone, Copy)]
struct Mapped {
    file: &'static str,
    release: &'static str,
    start: u64,
    perms: &'static str,
    flags: &'static str,
    eligible: bool,
    shmem: &'static str,
}

const PLAIN: Mapped = Mapped {
    file: "/data",
    release: "6.18.44",
    start: 0x7f00_0000_0000,
    perms: "r--s",
    flags: "rd mr me ms",
    eligible: false,
    shmem: "never",
};

fn why(mapped: Mapped) -> Option<Reason> {
    const THP: &str = "/sys/kernel/mm/transparent_hugepage";
    let Mapped { start, perms, .. } = mapped;
    let smaps = format!(
        "{start:x}-{:x} {perms} 00000000 fe:00 7 {}\nRss: 8192 kB\nTHPeligible: {}\nVmFlags: {} \n",
        start + (8 << 20),
        mapped.file,
        u8::from(mapped.eligible),
        mapped.flags
    );
    let tree = Tree::new()
        .line("/proc/sys/kernel/osrelease", mapped.release)
        .file("/proc/self/mounts", MOUNTS)
        .line(&format!("{THP}/enabled"), "always [madvise] never")
        .line(&format!("{THP}/shmem_enabled"), format!("[{}]", mapped.shmem))
        .line(&format!("{THP}/hpage_pmd_size"), 2 << 20)
        .file(
            "/proc/5/status",
            "Name:\ta\nVmRSS:\t9 kB\nVmPTE:\t9 kB\nTHP_enabled:\t1\n",
        )
        .file("/proc/5/smaps", smaps);
    let source = Source::from_tree("made", tree);
    let process = one(&source, 5).into_result().expect("a process");
    let mapping = counted(&source, 5)
        .into_result()
        .expect("mappings")
        .remove(0)
        .to_pages();
    let mounts = MountTree::of_process(&source, 5);
    why_base(&mapping, &process, &Ground::new(&Snapshot::take(&source), &mounts))
}

#[test]
fn the_file_system_and_the_kernel_decide_first() {
    let on = |file, release| why(Mapped { file, release, ..PLAIN });
    for (file, release, expected) in [
        ("/data", "6.18.44", Reason::FileNotAdvised),
        ("/data", "6.12.10", Reason::FileSystem),
        ("/xfs/data", "6.12.10", Reason::FileNotAdvised),
        ("/xfs/data", "5.14.0-427.el9", Reason::FileSystem),
        ("/btrfs/data", "6.18.44", Reason::FileSystem),
        ("/btrfs/data", "7.2.1", Reason::FileNotAdvised),
        ("/over/data", "6.1.0", Reason::FileNotAdvised),
        ("/box/data", "6.18.44", Reason::OfFile),
        ("/nfs/data", "6.18.44", Reason::OfFile),
        ("/data", "unknown", Reason::OfFile),
    ] {
        assert_eq!(on(file, release), Some(expected), "{file} on {release}");
    }
    // Code that khugepaged may collapse (CONFIG_READ_ONLY_THP_FOR_FS) and did not yet.
    let collapsible = Mapped {
        release: "6.8.0",
        perms: "r-xp",
        eligible: true,
        ..PLAIN
    };
    assert_eq!(why(collapsible), Some(Reason::NotGiven));
}

#[test]
fn how_it_is_mapped_and_advised_decides_then() {
    let shifted = Mapped {
        start: PLAIN.start + 0x1000,
        ..PLAIN
    };
    assert_eq!(why(shifted), Some(Reason::FileUnaligned));
    // The kernel aligns no mapping on an overlay.
    let over = Mapped {
        file: "/over/data",
        ..shifted
    };
    assert_eq!(why(over), Some(Reason::FileUnaligned));
    let old = Mapped {
        release: "6.1.0",
        ..shifted
    };
    assert_eq!(why(old), Some(Reason::FileSystem), "alignment would not help");
    let flags = |flags| why(Mapped { flags, ..PLAIN });
    assert_eq!(flags("rd mr me ms hg"), Some(Reason::FileCached));
    assert_eq!(flags("rd mr me ms nh"), Some(Reason::AdvisedAgainst));
    assert_eq!(flags(""), Some(Reason::FlagsUnread));
    let copies = Mapped { perms: "rw-p", ..PLAIN };
    assert_eq!(why(copies), Some(Reason::FileCopies));
}

#[test]
fn a_tmpfs_decides_by_its_mount_and_the_machine_over_all_of_them() {
    let on = |file, flags, eligible, shmem| {
        why(Mapped {
            file,
            flags,
            eligible,
            shmem,
            ..PLAIN
        })
    };
    for (file, flags, eligible, shmem, expected) in [
        ("/dev/shm/a", "rd sh", false, "always", Reason::OfTmpfs),
        ("/dev/shm/a", "rd sh hg", false, "advise", Reason::OfTmpfs),
        ("/dev/shm/a", "rd sh", false, "deny", Reason::SharedNever),
        ("/dev/shm/a", "rd sh", true, "force", Reason::NotGiven),
        ("/always/a", "rd sh", true, "never", Reason::NotGiven),
        ("/always/a", "rd sh nh", false, "never", Reason::AdvisedAgainst),
        ("/advise/a", "rd sh", false, "never", Reason::TmpfsNotAdvised),
        ("/advise/a", "rd sh hg", true, "never", Reason::NotGiven),
        ("/advise/a", "rd sh nh", false, "never", Reason::AdvisedAgainst),
    ] {
        assert_eq!(
            on(file, flags, eligible, shmem),
            Some(expected),
            "{file} {flags} {shmem}"
        );
    }
    let shifted = Mapped {
        file: "/always/a",
        start: PLAIN.start + 0x1000,
        ..PLAIN
    };
    assert_eq!(why(shifted), Some(Reason::FileUnaligned));
}

#[test]
fn a_path_lies_on_the_innermost_mount_above_it() {
    let tree = Tree::new().file(
        "/proc/self/mounts",
        format!("{MOUNTS}none /xfs/in tmpfs rw 0 0\n/dev/vdd /xfs xfs ro 0 0\n"),
    );
    let mounts = MountTree::of_process(&Source::from_tree("made", tree), 5);
    let of = |path| {
        mounts
            .of(path)
            .map(|mount| (mount.target.as_str(), mount.kind.as_str()))
    };
    assert_eq!(of("/xfs/in/a"), Some(("/xfs/in", "tmpfs")));
    assert_eq!(of("/xfsa"), Some(("/", "ext4")));
    let later = mounts.of("/xfs/a").expect("a mount");
    assert_eq!(later.options, ["ro"]);
    assert_eq!(file_system(&mounts, "/over/a"), Some("xfs"));
    assert_eq!(
        file_system(&mounts, "/box/a"),
        Some("overlay"),
        "of what is below one nothing is known"
    );
    assert_eq!(file_system(&mounts, "/memfd:a (deleted)"), None);
    assert_eq!(file_system(&MountTree::default(), "/a"), None);
}
