//! The PAGEMAP_SCAN request of Linux 6.7 (Documentation/admin-guide/mm/pagemap.rst), which the libraries lack.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

const PRESENT: u64 = 1 << 3;
const HUGE: u64 = 1 << 6;
/// `_IOWR('f', 16, struct pm_scan_arg)`.
const PAGEMAP_SCAN: libc::c_ulong = 0xc060_6610;
const REGIONS: usize = 512;

#[repr(C)]
#[derive(Default)]
struct Request {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    regions: u64,
    regions_len: u64,
    most_pages: u64,
    inverted: u64,
    all_of: u64,
    any_of: u64,
    wanted: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Region {
    start: u64,
    end: u64,
    categories: u64,
}

pub(super) fn large_share(start: u64, len: u64) -> io::Result<f64> {
    let pagemap = File::open("/proc/self/pagemap")?;
    let end = start + len;
    let (mut at, mut present, mut large) = (start, 0u64, 0u64);
    while at < end {
        let mut regions = [Region::default(); REGIONS];
        let (found, next) = scan(&pagemap, at, end, &mut regions)?;
        for region in &regions[..found] {
            present += region.end - region.start;
            large += if region.categories & HUGE != 0 {
                region.end - region.start
            } else {
                0
            };
        }
        if next <= at {
            break;
        }
        at = next;
    }
    Ok(if present == 0 {
        0.0
    } else {
        large as f64 / present as f64
    })
}

fn scan(pagemap: &File, start: u64, end: u64, regions: &mut [Region]) -> io::Result<(usize, u64)> {
    let mut request = Request {
        size: size_of::<Request>() as u64,
        start,
        end,
        regions: regions.as_mut_ptr() as u64,
        regions_len: regions.len() as u64,
        all_of: PRESENT,
        wanted: PRESENT | HUGE,
        ..Request::default()
    };
    // SAFETY: the request is of the documented shape, and names a buffer of that many regions that outlives the call.
    let found = unsafe { libc::ioctl(pagemap.as_raw_fd(), PAGEMAP_SCAN, &raw mut request) };
    usize::try_from(found)
        .map(|found| (found.min(regions.len()), request.walk_end))
        .map_err(|_| io::Error::last_os_error())
}
