//! Facts of the running machine that are in no file, in the form of files so that archives can hold them.

use model::{Cause, Reading, Unread};
use rustix::fs::Access;
use rustix::io::Errno;

use crate::cpuid::Leaves;

/// CPUID leaves of one logical CPU: a line `LEAF.SUBLEAF EAX EBX ECX EDX` each, in hex.
pub const CPUID: &str = "/hugewise/cpuid";
/// The base page in bytes, as a decimal number.
pub const PAGE_SIZE: &str = "/hugewise/page_size";
/// `rw` if this user may open `/dev/kvm` for reading and writing; denied or absent if not.
pub const DEV_KVM: &str = "/hugewise/dev_kvm";

/// Files on hugetlbfs and hugetlb memfds: a line `KIND PAGE BYTES DEVICE INODE UID PID PATH` each.
pub const HUGETLB_FILES: &str = "/hugewise/hugetlb_files";

const DIRECTORY: &str = "/hugewise";

/// The content of a synthetic file; `None` for every other path. [`HUGETLB_FILES`] takes more than a call: the source finds them.
pub(super) fn read(path: &str) -> Option<Reading<Vec<u8>>> {
    let reading = match path {
        CPUID => cpuid(),
        PAGE_SIZE => Reading::Known(format!("{}\n", rustix::param::page_size())),
        DEV_KVM => dev_kvm(),
        other => {
            let ours = other.strip_prefix(DIRECTORY).is_some_and(|rest| rest.starts_with('/'));
            return ours.then(|| Reading::absent(other));
        }
    };
    Some(reading.map(String::into_bytes))
}

/// The names of the synthetic files, if their directory is asked for.
pub(super) fn list(path: &str) -> Option<Vec<String>> {
    let names = [CPUID, DEV_KVM, HUGETLB_FILES, PAGE_SIZE].map(|path| path[DIRECTORY.len() + 1..].to_owned());
    (path.trim_end_matches('/') == DIRECTORY).then(|| names.to_vec())
}

fn cpuid() -> Reading<String> {
    Reading::Known(Leaves::live().to_string())
}

fn dev_kvm() -> Reading<String> {
    let device = "/dev/kvm";
    match rustix::fs::access(device, Access::READ_OK | Access::WRITE_OK) {
        Ok(()) => Reading::Known("rw\n".to_owned()),
        Err(Errno::NOENT | Errno::NOTDIR) => Reading::absent(device),
        Err(Errno::ACCESS | Errno::PERM) => Reading::Unread(Unread::new(Cause::Denied, device, "")),
        Err(error) => Reading::Unread(Unread::new(Cause::Failed, device, error.to_string())),
    }
}
