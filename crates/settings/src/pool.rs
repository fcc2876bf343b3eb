//! What a hugetlb pool has to give, and whether memory has room for more.

use host::snapshot::Meminfo;
use host::snapshot::hugetlb::path_in_pool;
use model::{Bytes, Cause, Unread};

use crate::error::LeaseError;
use crate::sink::{self, Sink};

const MEMINFO: &str = "/proc/meminfo";
/// Memory that is always left to other programs, as the larger of a share of memory and a fixed size: below it, reclaim starts
/// to push out other programs' pages, which disturbs them and the measurement.
const LEFT_SHARE: u64 = 10;
const LEFT_LEAST: Bytes = Bytes::mib(512);

/// Pages of a pool that a new mapping can have without growing it: free ones without a reservation.
pub(crate) fn unclaimed(sink: &dyn Sink, page: Bytes) -> Result<u64, LeaseError> {
    let number = |file: &str| {
        sink::number(sink, path_in_pool(page, None, file)).map_err(|unread| match unread.unread {
            Cause::Absent => LeaseError::NoPool { page, unread },
            _ => LeaseError::Writer(unread.into()),
        })
    };
    Ok(number("free_hugepages")?.saturating_sub(number("resv_hugepages")?))
}

/// Refuses when `pages` more pages would leave the machine short of memory.
pub(crate) fn check_memory(sink: &dyn Sink, page: Bytes, pages: u64) -> Result<(), LeaseError> {
    let Memory { available, left, .. } = Memory::read(sink)?;
    let need = Bytes(page.0.saturating_mul(pages));
    if need.0.saturating_add(left.0) <= available.0 {
        return Ok(());
    }
    Err(LeaseError::Memory {
        page,
        pages,
        need,
        available,
        left,
    })
}

/// Memory as a pool that is to grow finds it.
pub(crate) struct Memory {
    /// What can be had without pushing out other programs' pages.
    pub(crate) available: Bytes,
    /// What of it is always left to them, where nothing else was asked for.
    pub(crate) left: Bytes,
    /// Page cache that can be dropped: without shared memory.
    pub(crate) cache: Option<Bytes>,
}

impl Memory {
    pub(crate) fn read(sink: &dyn Sink) -> Result<Self, crate::WriterError> {
        let meminfo = meminfo(sink)?;
        let bytes = |name| meminfo.get(name).into_result();
        let cache = bytes("Cached").ok().zip(bytes("Shmem").ok());
        Ok(Self {
            available: bytes("MemAvailable")?,
            left: left_of(bytes("MemTotal")?),
            cache: cache.map(|(cached, shared)| Bytes(cached.0.saturating_sub(shared.0))),
        })
    }

    /// How many more pages it has room for, when `leave` (or, without, the usual share) is left to other programs.
    pub(crate) fn room(&self, page: Bytes, leave: Option<Bytes>) -> u64 {
        self.available.0.saturating_sub(leave.unwrap_or(self.left).0) / page.0.max(1)
    }
}

/// All memory. Also kernels that do not say what of it is available (before 3.14) say this.
pub(crate) fn total(sink: &dyn Sink) -> Result<Bytes, crate::WriterError> {
    Ok(meminfo(sink)?.get("MemTotal").into_result()?)
}

/// What of all memory is always left to other programs, where nothing else was asked for.
pub(crate) fn left_of(total: Bytes) -> Bytes {
    LEFT_LEAST.max(Bytes(total.0 / LEFT_SHARE))
}

/// The page size of the pool that `/proc/sys/vm/nr_hugepages` is about.
pub(crate) fn usual_page(sink: &dyn Sink) -> Result<Bytes, crate::WriterError> {
    Ok(meminfo(sink)?.get("Hugepagesize").into_result()?)
}

fn meminfo(sink: &dyn Sink) -> Result<Meminfo, Unread> {
    Meminfo::parse(MEMINFO, &sink::text(sink, MEMINFO)?)
}
