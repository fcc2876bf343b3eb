//! Which page sizes, in the guest and in the host, back memory.

use model::Bytes;

/// The page sizes of one mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backing {
    /// The page of the operating system that runs the program.
    pub guest: Bytes,
    /// The page of the hypervisor below; none natively.
    pub host: Option<Bytes>,
}

impl Backing {
    /// Pages of one size, without a hypervisor.
    pub fn native(page: Bytes) -> Self {
        Self {
            guest: page,
            host: None,
        }
    }

    /// A guest's pages on a host's.
    pub fn nested(guest: Bytes, host: Bytes) -> Self {
        let host = Some(host);
        Self { guest, host }
    }

    /// What a TLB entry covers: the smaller of both pages (splintering).
    pub fn entry(self) -> Bytes {
        self.host.map_or(self.guest, |host| host.min(self.guest))
    }
}

/// Address bits within a page.
pub(crate) fn shift(page: Bytes) -> u32 {
    page.0.trailing_zeros()
}

#[cfg(test)]
mod tests {
    use super::Backing;
    use model::Bytes;

    #[test]
    fn an_entry_covers_the_smaller_page() {
        let (base, large) = (Bytes::kib(4), Bytes::mib(2));
        assert_eq!(Backing::nested(large, base).entry(), base);
        assert_eq!(Backing::nested(large, Bytes::gib(1)).entry(), large);
        assert_eq!(Backing::native(large).entry(), large);
    }
}
