//! Files on hugetlbfs and memfds on large pages, which no file of the kernel lists: found by their names and asked.

use std::fmt::Write as _;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use model::Reading;
use rustix::fs::{major, minor, statfs};

use super::Source;
use crate::snapshot::mounts;

/// f_type of hugetlbfs (linux/magic.h).
const HUGETLBFS: i64 = 0x9584_58f6;
/// Directories below a mount that are looked into.
const DEPTH: u32 = 4;
/// Lines, and so entries of a directory tree that are visited: a mount with more holds something else than pages.
const MOST: usize = 4096;

/// What this user may see, root everything: a line `KIND PAGE BYTES DEVICE INODE UID PID PATH` for each; `PID` is 0 for a file that was found in its mount.
pub(super) fn read() -> Reading<String> {
    let mounts = mounts::all(&Source::live());
    mounts.map(|mounts| {
        let mut found = Found::default();
        let mounts: Vec<String> = mounts
            .into_iter()
            .filter(|mount| mount.kind == "hugetlbfs")
            .map(|mount| mount.target)
            .collect();
        for mount in &mounts {
            found.directory(Path::new(mount), DEPTH);
        }
        found.open_files(&mounts);
        found.lines
    })
}

#[derive(Default)]
struct Found {
    lines: String,
    visited: usize,
}

impl Found {
    /// Refusals leave their part out: what is not allowed to be seen is not known to be there.
    fn directory(&mut self, path: &Path, depth: u32) {
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            self.visited += 1;
            let Ok(metadata) = entry.metadata() else { continue };
            let path = entry.path();
            if self.visited > MOST {
                return;
            } else if metadata.is_file() {
                self.line("file", &metadata, 0, &path.to_string_lossy());
            } else if metadata.is_dir() && depth > 0 {
                self.directory(&path, depth - 1);
            }
        }
    }

    /// What processes hold open: memfds, and files of the mounts whose names are gone.
    fn open_files(&mut self, mounts: &[String]) {
        let processes = Source::live().list("/proc").into_result().unwrap_or_default();
        for pid in processes.iter().filter_map(|name| name.parse::<u32>().ok()) {
            for entry in fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten() {
                let path = entry.path();
                let Ok(target) = fs::read_link(&path) else { continue };
                let target = target.to_string_lossy();
                let is_memfd = target.starts_with("/memfd:");
                let is_gone =
                    target.ends_with(" (deleted)") && mounts.iter().any(|mount| target.starts_with(mount.as_str()));
                if (is_memfd || is_gone) && is_on_hugetlbfs(&path) {
                    let kind = if is_memfd { "memfd" } else { "file" };
                    let metadata = fs::metadata(&path);
                    metadata
                        .iter()
                        .for_each(|metadata| self.line(kind, metadata, pid, &target));
                }
            }
        }
    }

    /// A block of `st_blksize` is one page of the pool there, and `st_blocks` counts the pages that are in the file.
    fn line(&mut self, kind: &str, metadata: &Metadata, pid: u32, path: &str) {
        let (page, bytes) = (metadata.blksize(), metadata.blocks().saturating_mul(512));
        let (device, inode, uid) = (metadata.dev(), metadata.ino(), metadata.uid());
        let path = path.replace('\n', "\\n");
        // Writing to a String cannot fail.
        let _ = writeln!(
            self.lines,
            "{kind} {page} {bytes} {:02x}:{:02x} {inode} {uid} {pid} {path}",
            major(device),
            minor(device)
        );
    }
}

fn is_on_hugetlbfs(path: &Path) -> bool {
    statfs(path).is_ok_and(|stat| stat.f_type == HUGETLBFS)
}
