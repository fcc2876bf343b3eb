//! Files on hugetlbfs and hugetlb memfds, which no file of the kernel lists: found by their names.

use std::fmt::Write as _;
use std::fs::{self, Metadata};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use model::{Bytes, Cause, Unread};
use rustix::fs::{AtFlags, CWD, MemfdFlags, StatxFlags, major, memfd_create, minor, statx};

use super::open::LARGEST_FILE;
use super::synthetic::HUGETLB_FILES;
use crate::snapshot::hugetlb::size_in_name;

/// Where `memfd_create` takes the page size (linux/memfd.h).
const MFD_HUGE_SHIFT: u32 = 26;
/// Directories below a mount that are looked into.
const DEPTH: u32 = 4;
/// Entries of those directories: as many files of one 2M page each fill 128 GiB.
const MOST_ENTRIES: u64 = 1 << 16;
/// Descriptors of all processes: as many as one process may have open by default (`fs.nr_open`).
const MOST_DESCRIPTORS: u64 = 1 << 20;
/// The text in all, as of any other file that is read whole.
const LONGEST: Bytes = LARGEST_FILE;

/// What this user may see of these mounts and processes, root everything: a line `KIND PAGE BYTES DEVICE INODE UID PID PATH` for each; `PID` is 0 for a file that was found in its mount.
/// Sums over a part would be wrong, so where there is more than a bound it is nothing but the reason.
pub(super) fn read(mounts: &[String], pids: &[u32]) -> Result<String, Unread> {
    Found::default()
        .all(mounts, pids)
        .map_err(|why| Unread::new(Cause::Failed, HUGETLB_FILES, why))
}

/// What was found, and how much more may be looked at.
struct Found {
    lines: String,
    entries: u64,
    descriptors: u64,
    longest: Bytes,
}

impl Default for Found {
    fn default() -> Self {
        Self {
            lines: String::new(),
            entries: MOST_ENTRIES,
            descriptors: MOST_DESCRIPTORS,
            longest: LONGEST,
        }
    }
}

impl Found {
    fn all(mut self, mounts: &[String], pids: &[u32]) -> Result<String, String> {
        for mount in mounts {
            self.directory(Path::new(mount), DEPTH)?;
        }
        let devices = devices(mounts);
        for &pid in pids {
            self.open_files(pid, mounts, &devices)?;
        }
        Ok(self.lines)
    }

    /// Refusals leave their part out: what is not allowed to be seen is not known to be there.
    fn directory(&mut self, path: &Path, depth: u32) -> Result<(), String> {
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            let why = || format!("directories on hugetlbfs have more than {MOST_ENTRIES} entries");
            self.entries = self.entries.checked_sub(1).ok_or_else(why)?;
            let Ok(metadata) = entry.metadata() else { continue };
            let path = entry.path();
            if metadata.is_file() {
                self.line("file", &metadata, 0, &path.to_string_lossy())?;
            } else if metadata.is_dir() && depth > 0 {
                self.directory(&path, depth - 1)?;
            }
        }
        Ok(())
    }

    /// What a process holds open: memfds, and files of the mounts whose names are gone.
    fn open_files(&mut self, pid: u32, mounts: &[String], devices: &[(u32, u32)]) -> Result<(), String> {
        for entry in fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten() {
            let why = || format!("processes have more than {MOST_DESCRIPTORS} files open");
            self.descriptors = self.descriptors.checked_sub(1).ok_or_else(why)?;
            let path = entry.path();
            let Ok(target) = fs::read_link(&path) else { continue };
            let target = target.to_string_lossy();
            let is_memfd = target.starts_with("/memfd:");
            let is_gone =
                target.ends_with(" (deleted)") && mounts.iter().any(|mount| target.starts_with(mount.as_str()));
            if (is_memfd || is_gone)
                && is_on(&path, devices)
                && let Ok(metadata) = fs::metadata(&path)
            {
                let kind = if is_memfd { "memfd" } else { "file" };
                self.line(kind, &metadata, pid, &target)?;
            }
        }
        Ok(())
    }

    /// A block of `st_blksize` is one page of the pool there, and `st_blocks` counts the pages that are in the file.
    fn line(&mut self, kind: &str, metadata: &Metadata, pid: u32, path: &str) -> Result<(), String> {
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
        match self.lines.len() as u64 <= self.longest.0 {
            true => Ok(()),
            false => Err(format!("the names of files on hugetlbfs have more than {LONGEST}")),
        }
    }
}

/// The devices of these mounts and of the kernel's own, one for each page size, which memfds are on.
fn devices(mounts: &[String]) -> Vec<(u32, u32)> {
    let mounted = mounts.iter().filter_map(|mount| device(Path::new(mount)));
    let sizes = fs::read_dir("/sys/kernel/mm/hugepages").into_iter().flatten().flatten();
    let own = sizes.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let size = MemfdFlags::from_bits_retain(size_in_name(&name)?.0.checked_ilog2()? << MFD_HUGE_SHIFT);
        // Empty: it takes no page.
        let file = memfd_create("hugewise", MemfdFlags::CLOEXEC | MemfdFlags::HUGETLB | size).ok()?;
        device(Path::new(&format!("/proc/self/fd/{}", file.as_raw_fd())))
    });
    own.chain(mounted).collect()
}

/// The kernel's own answer: a file system in user space, which may have a name like that of a memfd, is not asked.
fn device(path: &Path) -> Option<(u32, u32)> {
    let stat = statx(CWD, path, AtFlags::STATX_DONT_SYNC, StatxFlags::TYPE).ok()?;
    Some((stat.stx_dev_major, stat.stx_dev_minor))
}

fn is_on(path: &Path, devices: &[(u32, u32)]) -> bool {
    device(path).is_some_and(|device| devices.contains(&device))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn within(found: Found) -> Result<usize, String> {
        let folder = tempfile::tempdir().expect("a directory");
        fs::create_dir(folder.path().join("below")).expect("a directory");
        for name in ["a", "b", "below/c"] {
            fs::write(folder.path().join(name), "x").expect("a file");
        }
        let mounts = [folder.path().display().to_string()];
        let count = |lines: String| lines.lines().filter(|line| line.contains(mounts[0].as_str())).count();
        found.all(&mounts, &[std::process::id()]).map(count)
    }

    #[test]
    fn what_is_more_than_a_bound_is_a_reason_and_no_part() {
        assert_eq!(within(Found::default()), Ok(3));
        let entries = Found {
            entries: 3,
            ..Found::default()
        };
        let text = Found {
            longest: Bytes(100),
            ..Found::default()
        };
        // The test itself has that many files open.
        let descriptors = Found {
            descriptors: 2,
            ..Found::default()
        };
        let reasons = [
            (entries, "directories on hugetlbfs have more than 65536 entries"),
            (text, "the names of files on hugetlbfs have more than 16M"),
            (descriptors, "processes have more than 1048576 files open"),
        ];
        for (found, why) in reasons {
            assert_eq!(within(found), Err(why.to_owned()));
        }
    }
}
