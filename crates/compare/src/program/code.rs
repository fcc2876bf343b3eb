//! Why code that a program mapped from files is not backed by huge pages: the reasons that the kernel does not name. Pure.

use host::processes::areas::Area;
use model::Bytes;

use crate::flip::aligned;

/// What is known of a program's code that was to be collapsed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Code {
    /// The largest mapping, and its file.
    largest: Option<(Bytes, String)>,
    /// Whole pages that fit into the mappings.
    pages: u64,
    /// Those whose place in the file fits, too.
    fitting: u64,
    /// The type of the file system of the largest mapping that fits.
    file_system: Option<String>,
}

impl Code {
    /// Of these mappings of code; `mountinfo` is that of the process.
    pub(crate) fn of(areas: &[&Area], page: Bytes, mountinfo: &str) -> Self {
        let whole = |area: &Area| aligned(area.range.clone(), page).count() as u64;
        let fits = |area: &Area| area.range.start % page.0 == area.offset % page.0;
        let largest =
            |areas: &mut dyn Iterator<Item = &Area>| areas.max_by_key(|area| (whole(area), area.size())).cloned();
        let fitting = || areas.iter().copied().filter(|area| fits(area));
        Self {
            largest: largest(&mut areas.iter().copied()).map(|area| (area.size(), area.name.to_string())),
            pages: areas.iter().map(|area| whole(area)).sum(),
            fitting: fitting().map(whole).sum(),
            file_system: largest(&mut fitting()).and_then(|area| file_system(mountinfo, &area.device)),
        }
    }

    /// Why none of it could be collapsed, by what the kernel answered last.
    pub(crate) fn why_not(&self, page: Bytes, errno: Option<i32>) -> String {
        let Some((size, file)) = &self.largest else {
            return "no code of it is mapped from files".to_owned();
        };
        if self.pages == 0 {
            return format!(
                "no whole aligned page of {page} fits into its code, of which the most is {size} of {file}"
            );
        }
        if self.fitting == 0 {
            return format!(
                "the code of {file} is mapped so that its place in the file and its address differ within a page of {page} \
                 (link it with -Wl,-z,max-page-size={})",
                page.0
            );
        }
        match errno {
            Some(libc::EINVAL) => self.refused_by_file_system(),
            Some(libc::ENOMEM) => format!("ENOMEM: no free memory in one piece of {page}"),
            Some(libc::EBUSY) => "EBUSY: the memory control group is at its limit".to_owned(),
            Some(libc::EAGAIN) => {
                "EAGAIN: its pages were in use each time (being written back, pinned or moved)".to_owned()
            }
            Some(libc::EPERM | libc::EACCES) => {
                "collapsing takes CAP_SYS_NICE and the right to trace it (root has both)".to_owned()
            }
            Some(errno) => std::io::Error::from_raw_os_error(errno).to_string(),
            None => "the program ended before it was tried".to_owned(),
        }
    }

    fn refused_by_file_system(&self) -> String {
        match self.file_system.as_deref() {
            Some("tmpfs") => "EINVAL: code on tmpfs takes huge= of its mount, or shmem_enabled".to_owned(),
            other => format!(
                "EINVAL: the kernel collapses code of files on {} only if it was built with CONFIG_READ_ONLY_THP_FOR_FS and \
                 nobody has the file open for writing; large folios, which some file systems make when a file is written or \
                 read anew, are the other way",
                other.unwrap_or("this file system")
            ),
        }
    }
}

/// The type of the file system on a device (`fe:00` in maps is `254:0` here; proc_pid_mountinfo(5): it stands behind ` - `).
fn file_system(mountinfo: &str, device: &str) -> Option<String> {
    let (major, minor) = device.split_once(':')?;
    let number = |hex: &str| u32::from_str_radix(hex, 16).ok();
    let device = format!("{}:{}", number(major)?, number(minor)?);
    let line = mountinfo
        .lines()
        .find(|line| line.split_whitespace().nth(2) == Some(device.as_str()))?;
    line.split_once(" - ")?.1.split_whitespace().next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use host::processes::areas::{Area, parse_maps};
    use model::Bytes;

    use super::Code;

    const MOUNTS: &str = "22 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n30 22 0:26 / /dev/shm rw - tmpfs tmpfs rw\n";
    const PAGE: Bytes = Bytes::mib(2);

    fn why(maps: &str, errno: Option<i32>) -> String {
        let areas = parse_maps("maps", maps.as_bytes()).expect("mappings");
        let areas: Vec<&Area> = areas.iter().collect();
        Code::of(&areas, PAGE, MOUNTS).why_not(PAGE, errno)
    }

    #[test]
    fn each_cause_is_told_with_what_would_change_it() {
        let small = "00401000-00482000 r-xp 00001000 fe:00 7 /usr/bin/small\n";
        assert!(
            why(small, None).contains("516K of /usr/bin/small"),
            "{}",
            why(small, None)
        );
        let shifted = "00401000-00a00000 r-xp 00000000 fe:00 7 /usr/bin/shifted\n";
        assert!(why(shifted, Some(libc::EINVAL)).contains("max-page-size=2097152"));
        let fits = "00401000-00a00000 r-xp 00001000 fe:00 7 /usr/bin/large\n";
        let refused = why(&format!("{small}{fits}"), Some(libc::EINVAL));
        assert!(
            refused.contains("on ext4 only if it was built with CONFIG_READ_ONLY_THP_FOR_FS"),
            "{refused}"
        );
        let in_memory = fits.replace("fe:00", "00:1a");
        assert!(why(&in_memory, Some(libc::EINVAL)).contains("shmem_enabled"));
        assert!(why(fits, Some(libc::EAGAIN)).contains("written back"));
        assert!(why(fits, Some(libc::ENOMEM)).contains("no free memory"));
        assert_eq!(why("", None), "no code of it is mapped from files");
    }
}
