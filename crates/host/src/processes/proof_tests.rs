//! Proofs of what backs a range, on memory of our own.

use std::ffi::c_void;
use std::ops::Range;
use std::ptr::null_mut;

use model::{Backing, Bytes, PageKind, Reading};
use rustix::mm::{Advice, MapFlags, MprotectFlags, ProtFlags, madvise, mmap_anonymous, mprotect, munmap};

use super::{Proof, by_scan, by_smaps, clipped, huge_by_kind, own_range};
use crate::processes::smaps;

const MIB: usize = 1 << 20;
const HUGE: usize = 2 * MIB;

/// Anonymous memory aligned to 2 MiB, given back when dropped. It lies between guards, so that no adjacent mapping joins its
/// mapping.
struct Memory {
    base: *mut c_void,
    mapped: usize,
    start: usize,
    len: usize,
}

impl Memory {
    #[allow(unsafe_code)]
    fn new(len: usize) -> Self {
        let mapped = len + 2 * HUGE;
        // SAFETY: a new mapping at an address that the kernel chooses.
        let base = unsafe { mmap_anonymous(null_mut(), mapped, ProtFlags::empty(), MapFlags::PRIVATE) }
            .expect("address space");
        let start = (base.addr() + 1).next_multiple_of(HUGE);
        let memory = Self {
            base,
            mapped,
            start,
            len,
        };
        // SAFETY: inside our own mapping, to which nothing refers yet.
        unsafe { mprotect(base.with_addr(start), len, MprotectFlags::READ | MprotectFlags::WRITE) }.expect("memory");
        memory
    }

    #[allow(unsafe_code)]
    fn hugetlb(len: usize) -> rustix::io::Result<Self> {
        let flags = MapFlags::PRIVATE | MapFlags::HUGETLB | MapFlags::HUGE_2MB;
        // SAFETY: a new mapping at an address that the kernel chooses.
        let base = unsafe { mmap_anonymous(null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, flags) }?;
        Ok(Self {
            base,
            mapped: len,
            start: base.addr(),
            len,
        })
    }

    #[allow(unsafe_code)]
    fn advise(&self, part: Range<usize>, advice: Advice) -> rustix::io::Result<()> {
        // SAFETY: a part of our own mapping; these advices change page sizes and never contents.
        unsafe { madvise(self.base.with_addr(self.start + part.start), part.len(), advice) }
    }

    fn range(&self) -> Range<u64> {
        self.start as u64..(self.start + self.len) as u64
    }

    /// Writes to one byte per base page of a part.
    #[allow(unsafe_code)]
    fn touch(&self, part: Range<usize>) {
        for offset in part.step_by(4096) {
            // SAFETY: inside our own writable mapping, which no reference points to.
            unsafe { self.base.with_addr(self.start + offset).cast::<u8>().write_volatile(1) };
        }
    }

    /// Reads one byte per base page of a part.
    #[allow(unsafe_code)]
    fn read(&self, part: Range<usize>) {
        for offset in part.step_by(4096) {
            // SAFETY: inside our own readable mapping, which is zero where it was never written.
            unsafe { self.base.with_addr(self.start + offset).cast::<u8>().read_volatile() };
        }
    }
}

impl Drop for Memory {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: our own mapping, and nothing refers to it any more.
        let _ = unsafe { munmap(self.base, self.mapped) };
    }
}

#[allow(clippy::print_stderr)]
fn skipped(why: impl std::fmt::Display) {
    testing::skipped(&why.to_string());
}

fn proved(start: usize, len: usize) -> Proof {
    own_range(start, len).into_result().expect("a proof")
}

fn kinds(parts: &[(PageKind, usize)]) -> Backing {
    parts.iter().map(|&(kind, bytes)| (kind, Bytes(bytes as u64))).collect()
}

#[test]
fn base_pages_are_proved_to_the_byte() {
    let memory = Memory::new(8 * MIB);
    // A kernel without THP refuses the advice and uses base pages anyway.
    memory.advise(0..memory.len, Advice::LinuxNoHugepage).ok();
    assert_eq!(
        proved(memory.start, memory.len).backing,
        Backing::new(),
        "nothing touched yet"
    );
    memory.touch(0..5 * MIB);
    assert_eq!(
        proved(memory.start, memory.len).backing,
        kinds(&[(PageKind::Base, 5 * MIB)])
    );
    assert_eq!(
        proved(memory.start + 100, 5000).backing,
        kinds(&[(PageKind::Base, 5000)])
    );
    assert_eq!(
        proved(memory.start + 5 * MIB - 10, MIB).backing,
        kinds(&[(PageKind::Base, 10)])
    );
}

/// Advises a part and touches it, and reads from smaps how much of it is backed by THP. The part alone is advised: khugepaged leaves
/// the rest as it is.
fn touch_huge(memory: &Memory, part: Range<usize>) -> Result<(), String> {
    let wanted = part.len();
    let range = (memory.start + part.start) as u64..(memory.start + part.end) as u64;
    memory
        .advise(part.clone(), Advice::LinuxHugepage)
        .map_err(|error| format!("MADV_HUGEPAGE: {error}"))?;
    memory.touch(part);
    let text = std::fs::read("/proc/self/smaps").map_err(|error| error.to_string())?;
    let mappings = smaps::parse("smaps", &text).expect("own smaps");
    let own = mappings.iter().find(|mapping| mapping.range == range).expect("mapped");
    match own.backing().of(PageKind::Thp).0 as usize {
        thp if thp == wanted => Ok(()),
        thp => Err(format!(
            "no huge page to be had: {thp} of {wanted} bytes are backed by THP"
        )),
    }
}

#[test]
fn transparent_pages_are_proved_and_clipped() {
    let memory = Memory::new(8 * MIB);
    if let Err(why) = touch_huge(&memory, 0..memory.len) {
        return skipped(why);
    }
    assert_eq!(
        proved(memory.start, memory.len).backing,
        kinds(&[(PageKind::Thp, 8 * MIB)])
    );
    assert_eq!(
        proved(memory.start + HUGE + 4096, 3 * MIB).backing,
        kinds(&[(PageKind::Thp, 3 * MIB)])
    );
}

#[test]
fn mixed_memory_is_told_apart_by_a_scan_and_not_guessed_from_smaps() {
    let memory = Memory::new(2 * HUGE);
    // Touched as one mapping, so that its parts can become one again.
    memory.advise(0..memory.len, Advice::LinuxNoHugepage).ok();
    memory.touch(0..HUGE);
    if let Err(why) = touch_huge(&memory, HUGE..2 * HUGE) {
        return skipped(why);
    }
    // One mapping again.
    memory.advise(0..memory.len, Advice::LinuxNoHugepage).expect("advised");
    let whole = by_smaps(&memory.range()).expect("a whole mapping");
    assert_eq!(whole.backing, kinds(&[(PageKind::Base, HUGE), (PageKind::Thp, HUGE)]));
    let half = memory.start as u64..(memory.start + HUGE) as u64;
    let why = by_smaps(&half).expect_err("smaps knows the mapping only");
    assert!(why.why.contains("sticks out"), "{why}");
    match by_scan(&half) {
        Ok(proof) => assert_eq!(proof.backing, kinds(&[(PageKind::Base, HUGE)])),
        Err(why) => skipped(why),
    }
}

#[test]
fn both_accounts_agree() {
    let memory = Memory::new(6 * MIB);
    memory.advise(0..memory.len, Advice::LinuxNoHugepage).ok();
    memory.touch(0..6 * MIB);
    let smaps = by_smaps(&memory.range()).expect("a whole mapping");
    assert_eq!(smaps.backing, kinds(&[(PageKind::Base, 6 * MIB)]));
    assert_eq!(smaps.account, "/proc/self/smaps");
    match by_scan(&memory.range()) {
        Ok(scan) => {
            assert_eq!(scan.backing, smaps.backing);
            assert_eq!(own_range(memory.start, memory.len), Reading::Known(scan));
        }
        Err(why) => skipped(why),
    }
}

#[test]
fn pages_that_were_only_read_are_nobodys_memory() {
    let memory = Memory::new(4 * MIB);
    memory.advise(0..memory.len, Advice::LinuxNoHugepage).ok();
    memory.read(0..4 * MIB);
    assert_eq!(proved(memory.start, memory.len).backing, Backing::new());
    memory.touch(0..8192);
    assert_eq!(
        proved(memory.start, memory.len).backing,
        kinds(&[(PageKind::Base, 8192)])
    );
}

#[test]
fn scattered_pages_take_several_calls_and_none_is_lost() {
    let memory = Memory::new(16 * MIB);
    memory.advise(0..memory.len, Advice::LinuxNoHugepage).ok();
    let page = rustix::param::page_size();
    let touched: Vec<usize> = (0..memory.len / page).step_by(2).collect();
    for index in &touched {
        memory.touch(index * page..(index + 1) * page);
    }
    assert_eq!(
        proved(memory.start, memory.len).backing,
        kinds(&[(PageKind::Base, touched.len() * page)])
    );
}

#[test]
fn hugetlb_pages_are_proved_with_their_size() {
    let memory = match Memory::hugetlb(2 * HUGE) {
        Ok(memory) => memory,
        Err(error) => return skipped(format!("no 2 MiB pool pages: {error}")),
    };
    memory.touch(0..HUGE);
    assert_eq!(
        proved(memory.start, memory.len).backing,
        kinds(&[(PageKind::HUGETLB_2M, HUGE)])
    );
    assert_eq!(
        proved(memory.start + MIB, HUGE).backing,
        kinds(&[(PageKind::HUGETLB_2M, MIB)])
    );
}

#[test]
fn an_empty_range_and_an_unmapped_one_hold_nothing() {
    assert_eq!(proved(0x1000, 0).backing, Backing::new());
    assert_eq!(proved(0, 4096).backing, Backing::new());
    assert!(matches!(
        own_range(usize::MAX - 10, usize::MAX),
        Reading::Known(_) | Reading::Unread(_)
    ));
}

const SMAPS: &[u8] = b"1000000-1400000 rw-p 00000000 00:00 0 \nKernelPageSize: 4 kB\nRss: 4096 kB\nAnonHugePages: 4096 kB\nVmFlags: rd hg \n\
1400000-1800000 rw-p 00000000 00:00 0 \nKernelPageSize: 2048 kB\nRss: 0 kB\nPrivate_Hugetlb: 4096 kB\nVmFlags: rd ht \n\
1800000-1c00000 rw-p 00000000 00:00 0 \nKernelPageSize: 4 kB\nRss: 3072 kB\nAnonHugePages: 2048 kB\nVmFlags: rd \n";

#[test]
fn smaps_is_clipped_where_one_kind_fills_a_mapping_and_refuses_to_guess_elsewhere() {
    let mappings = smaps::parse("smaps", SMAPS).expect("good text");
    let backing = clipped(&(0x100_1000..0x160_0000), &mappings).expect("both parts are of one kind");
    assert_eq!(
        backing,
        kinds(&[(PageKind::Thp, 4 * MIB - 4096), (PageKind::HUGETLB_2M, HUGE)])
    );
    let whole = clipped(&(0x180_0000..0x1c0_0000), &mappings).expect("a whole mapping");
    assert_eq!(whole.to_string(), "base 1M + thp 2M");
    let why = clipped(&(0x180_0000..0x1b0_0000), &mappings).expect_err("mixed");
    assert!(why.why.contains("1800000-1c00000") && why.why.contains("6.7"), "{why}");
}

#[test]
fn large_entries_are_hugetlb_only_inside_hugetlb_mappings() {
    let mappings = smaps::parse("smaps", SMAPS).expect("good text");
    let backing = huge_by_kind(&[0x120_0000..0x160_0000, 0x180_0000..0x1a0_0000], &mappings);
    assert_eq!(
        backing,
        kinds(&[(PageKind::Thp, 2 * HUGE), (PageKind::HUGETLB_2M, HUGE)])
    );
}
