//! Pages for bytes, and the two limits that follow from them: memlock and shmmax.

use model::Bytes;

use super::{SizeError, Sizing};
use model::sizing::{memlock_kib, pages_for};

const JBOSS: &str = "JBoss community post on large pages for the JVM (RHEL 5.1, vm.nr_hugepages = 3072)";

/// `size pages`: pages for bytes, and what is lost by rounding.
///
/// # Errors
/// When the page is none.
pub fn pages(bytes: Bytes, page: Bytes) -> Result<Sizing, SizeError> {
    let pages = pages_for(bytes, page)?;
    let pool = pages.checked_mul(page.0).ok_or(SizeError::TooLarge("the pool"))?;
    let about = format!("Pages of {} for {bytes}", page.exact());
    Ok(Sizing::new(about, JBOSS)
        .rounded_up("pages", bytes, page, pages)
        .step("pool", format!("{pages} x {}", page.exact()), pool, "B")
        .step("unused", format!("{pool} - {}", bytes.0), pool - bytes.0, "B")
        .trap(
            "rounding down leaves the last page missing: mapping then fails as a whole, or ends in \
             SIGBUS at the first touch",
        )
        .trap("an application needs more than its main area: use `size jvm`, `size postgres` and the like")
        .trap("a pool page is taken from everybody else, whether it is used or not"))
}

/// `size memlock`: the memlock limit for bytes in pages of one size.
///
/// # Errors
/// When the page is none, or the limit is beyond 64 bits.
pub fn memlock(bytes: Bytes, page: Bytes) -> Result<Sizing, SizeError> {
    let pages = pages_for(bytes, page)?;
    let kib = memlock_kib(pages, page)?;
    let about = format!("memlock for {bytes} in pages of {}", page.exact());
    let in_file = format!("{pages} x {} KiB, the unit of limits.conf", page.0 >> 10);
    let in_unit = format!("{kib} x 1024, for LimitMEMLOCK= of systemd");
    Ok(Sizing::new(about, JBOSS)
        .rounded_up("pages", bytes, page, pages)
        .step("memlock", in_file, kib, "KiB")
        .step("limit_memlock", in_unit, Bytes(kib.saturating_mul(1024)), "B")
        .trap("limits.conf counts KiB, LimitMEMLOCK= bytes, and a unit does not read limits.conf at all")
        .trap(
            "mmap(MAP_HUGETLB) needs no memlock; System V shared memory with SHM_HUGETLB did until \
             Linux 5.16, and needs the group of vm.hugetlb_shm_group",
        ))
}

/// `size shmmax`: the limits of System V shared memory for one segment.
///
/// # Errors
/// When the base page is none.
pub fn shmmax(segment: Bytes, base: Bytes) -> Result<Sizing, SizeError> {
    let shmall = pages_for(segment, base)?;
    let about = format!("kernel.shmmax and kernel.shmall for a segment of {segment}");
    let largest = "bytes of the largest segment (the post sets all of RAM)";
    let how = format!("{} B / {} B, rounded up: pages, not bytes", segment.0, base.0);
    Ok(Sizing::new(about, JBOSS)
        .step("shmmax", largest, segment, "B")
        .step("shmall", how, shmall, "pages")
        .trap("since Linux 3.16 both are practically unlimited: never lower them")
        .trap("shmall counts base pages of all segments together"))
}

#[cfg(test)]
mod tests {
    use super::{SizeError, memlock, memlock_kib, pages, pages_for, shmmax};
    use model::Bytes;

    #[test]
    fn nothing_overflows_and_no_page_of_no_size_is_divided_by() {
        assert_eq!(pages_for(Bytes(0), Bytes::mib(2)), Ok(0));
        assert_eq!(pages_for(Bytes(u64::MAX), Bytes::kib(4)), Ok(1 << 52));
        for page in [0, 1, 4095, 3 << 20] {
            assert_eq!(
                pages_for(Bytes::gib(1), Bytes(page)),
                Err(SizeError::NotAPage(Bytes(page)))
            );
        }
        assert!(memlock_kib(u64::MAX, Bytes::gib(1)).is_err());
        assert!(pages(Bytes(u64::MAX), Bytes::gib(1)).is_err());
    }

    #[test]
    fn jboss_post_esx_paper_and_postgresql_manual_pages_for_bytes() {
        let two = Bytes::mib(2);
        for (bytes, expected) in [
            (Bytes(6_442_450_944), 3072),
            (Bytes(2_147_483_648), 1024),
            (Bytes::kib(6_490_428), 3170),
            (Bytes(3_758_096_384), 1792),
        ] {
            assert_eq!(pages_for(bytes, two), Ok(expected), "{bytes}");
        }
    }

    #[test]
    fn jboss_post_memlock_and_shmmax() {
        assert_eq!(memlock_kib(3072, Bytes::mib(2)), Ok(6_291_456));
        assert_eq!(
            memlock(Bytes::gib(6), Bytes::mib(2)).expect("a size").whole("memlock"),
            Some(6_291_456)
        );
        assert_eq!(
            shmmax(Bytes::gib(8), Bytes::kib(4)).expect("a size").whole("shmmax"),
            Some(8_589_934_592)
        );
    }
}
