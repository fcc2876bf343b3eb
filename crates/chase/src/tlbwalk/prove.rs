//! Proof of the page size behind a span: by the kernel's page-table categories, or by which pages are there beside those visited.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// What proves a page size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Proof {
    /// Share of what is present that huge page-table entries map, 0 to 1.
    pub share: f64,
    /// Which of the kernel's interfaces says so.
    pub by: &'static str,
}

/// `/proc/self/pagemap` has a word for each base page, whose highest bit says that it is present. Everyone may read that bit.
const WORD: u64 = 8;
const PRESENT: u8 = 0x80;

/// Share of the present part of a range that large entries map, by PAGEMAP_SCAN.
pub(super) fn scanned(start: u64, len: u64) -> io::Result<f64> {
    host::processes::large_share(start..start + len)
}

/// Base pages of a range that are present, and how many base pages it has.
pub(super) fn present(start: u64, len: u64) -> io::Result<(u64, u64)> {
    let page = rustix::param::page_size() as u64;
    let mut words = vec![0; (len / page * WORD) as usize];
    File::open("/proc/self/pagemap")?.read_exact_at(&mut words, start / page * WORD)?;
    let words = words.chunks_exact(WORD as usize);
    let all = words.len() as u64;
    Ok((words.filter(|word| word[7] & PRESENT != 0).count() as u64, all))
}

/// Proves what maps the regions of `region` bytes at these addresses, in each of which one word was visited and nothing else, by
/// [`scanned`] or [`present`].
///
/// A kernel with PAGEMAP_SCAN (Linux 6.7) says it. Before that, pages that were never visited give it away: a large entry makes all
/// base pages of its region present at once. Where only some are, neither size is proved, which counts as not large.
pub(super) fn prove(
    regions: &[u64],
    region: u64,
    scanned: impl Fn(u64, u64) -> io::Result<f64>,
    present: impl Fn(u64, u64) -> io::Result<(u64, u64)>,
) -> io::Result<Proof> {
    let mean = |shares: io::Result<Vec<f64>>, by| -> io::Result<Proof> {
        let shares = shares?;
        let share = shares.iter().sum::<f64>() / shares.len().max(1) as f64;
        Ok(Proof { share, by })
    };
    let by_scan = regions.iter().map(|&at| scanned(at, region)).collect();
    mean(by_scan, "PAGEMAP_SCAN").or_else(|scan: io::Error| {
        let whole = |&at: &u64| present(at, region).map(|(present, all)| f64::from(present == all));
        let by = "pages that are present in /proc/self/pagemap";
        mean(regions.iter().map(whole).collect(), by).map_err(|error| {
            io::Error::new(
                error.kind(),
                format!("PAGEMAP_SCAN: {scan}; /proc/self/pagemap: {error}"),
            )
        })
    })
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::{Proof, prove};

    const REGION: u64 = 2 << 20;

    /// On a kernel that knows PAGEMAP_SCAN or not, and says what is present of a region.
    fn proved(scan: Option<f64>, present: Option<u64>) -> io::Result<Proof> {
        // ENOTTY, as Linux 5.14 and 6.1 answer.
        let scanned = |_: u64, _: u64| scan.ok_or_else(|| io::Error::from_raw_os_error(25));
        let present = |_: u64, len: u64| -> io::Result<(u64, u64)> {
            let present = present.ok_or(io::ErrorKind::PermissionDenied)?;
            Ok((present, len / 4096))
        };
        prove(&[0, REGION], REGION, scanned, present)
    }

    fn share(scan: Option<f64>, present: Option<u64>) -> io::Result<f64> {
        proved(scan, present).map(|proof| proof.share)
    }

    #[test]
    fn without_pagemap_scan_pages_that_were_never_visited_give_a_large_entry_away() {
        assert_eq!(share(Some(1.0), None).ok(), Some(1.0));
        assert_eq!(share(Some(0.0), Some(512)).ok(), Some(0.0), "a scan comes first");
        for (present, large) in [(512, 1.0), (1, 0.0), (16, 0.0), (511, 0.0)] {
            assert_eq!(share(None, Some(present)).ok(), Some(large), "{present}");
        }
        let proof = proved(None, Some(512)).expect("a proof");
        assert!(proof.by.contains("/proc/self/pagemap"));
    }

    #[test]
    fn a_kernel_that_says_nothing_proves_nothing() {
        let why = share(None, None).expect_err("no proof").to_string();
        assert!(
            why.contains("PAGEMAP_SCAN") && why.contains("permission denied"),
            "{why}"
        );
    }
}
