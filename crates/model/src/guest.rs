//! The shape of what was measured inside a KVM guest: guest page size x host backing, faults, exits, counters.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::latency::Point;
use crate::{Bytes, Estimate, PageKind, Reading};

/// The page size a guest maps its own memory with (the leaf level of its page tables).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GuestPage {
    /// 4 KiB.
    Size4K,
    /// 2 MiB.
    Size2M,
    /// 1 GiB.
    Size1G,
}

impl GuestPage {
    /// All of them, smallest first.
    pub const ALL: [Self; 3] = [Self::Size4K, Self::Size2M, Self::Size1G];

    /// Its size.
    pub const fn size(self) -> Bytes {
        match self {
            Self::Size4K => Bytes::kib(4),
            Self::Size2M => Bytes::mib(2),
            Self::Size1G => Bytes::gib(1),
        }
    }
}

impl fmt::Display for GuestPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.size().exact())
    }
}

impl FromStr for GuestPage {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let size = text.parse::<Bytes>().ok();
        Self::ALL
            .into_iter()
            .find(|page| Some(page.size()) == size)
            .ok_or_else(|| format!("`{text}` is not a page size that a guest can map (write 4K, 2M or 1G)"))
    }
}

crate::as_text!(GuestPage, {"type": "string", "enum": ["4K", "2M", "1G"]});

/// The whole measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Guest {
    /// How guest addresses are translated: `ept`, `npt`, `shadow-vmx`, `shadow-svm` or `shadow-pvm`.
    pub mmu: Reading<String>,
    /// The same work natively and in the guest without any translation in play: are they comparable at all?
    pub sanity: Option<Sanity>,
    /// Latency for every guest page size on every backing, and natively (`guest_page` is `null`) on the same memory.
    pub points: Vec<GuestPoint>,
    /// What the first touch of a page costs on top, by guest page size and backing.
    pub fault_ns: Vec<FirstTouch>,
    /// What leaving the guest and coming back costs.
    pub exits: Vec<Operation>,
    /// What changes to guest page tables cost.
    pub churn: Vec<Operation>,
    /// What the hypervisor counted over all guests of this measurement, by its own names.
    pub kvm_stats: BTreeMap<String, i64>,
    /// What the numbers say, in sentences.
    pub readings: Vec<String>,
    /// Time stamp counter, in GHz: the clock behind every ns.
    pub tsc_ghz: f64,
    /// The CPU the timed thread was pinned to.
    pub cpu: u32,
    /// Seconds from start to end, set-up included.
    pub seconds: f64,
}

/// A ring that fits into the first-level cache: nothing but the core is measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sanity {
    /// Its size.
    pub bytes: Bytes,
    /// Natively, in ns a step.
    pub native_ns: f64,
    /// In the guest, in ns a step.
    pub guest_ns: f64,
    /// Guest / native: the median of pairs that were taken one right after the other.
    pub ratio: f64,
    /// `true` if they differ by more than 3 %: the guest does not run on the bare core, and none of its latencies means
    /// translation.
    pub emulated: bool,
}

/// A point of the matrix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GuestPoint {
    /// The page size of the guest's own tables; `null` is the native walk.
    pub guest_page: Option<GuestPage>,
    /// What was measured, as natively.
    #[serde(flatten)]
    pub point: Point,
    /// Guest / native over the same memory, by turns; `null` for the native walk and where nothing was measured.
    pub ratio: Option<Estimate>,
    /// What the hypervisor counted for this guest, from its creation until it was warm.
    pub warm_stats: BTreeMap<String, i64>,
    /// What it counted while the guest was timed: page faults here mean that it was not warm.
    pub timed_stats: BTreeMap<String, i64>,
}

/// First touches of pages that the guest has mapped and the host has populated, but the hypervisor has not yet translated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FirstTouch {
    /// The page size of the guest's own tables.
    pub guest_page: GuestPage,
    /// The page kind behind its memory.
    pub kind: PageKind,
    /// 4 KiB pages touched, one load each, in ascending order.
    pub touched: u64,
    /// Faults that the hypervisor says it has fixed for them.
    pub faults: Option<u64>,
    /// Time per touched page, in ns. Pages are new once only: the interval is that of the blocks of one pass, and does not
    /// know how far another guest would lie.
    pub touch_ns: Option<Estimate>,
    /// The same once everything is translated, in ns.
    pub warm_ns: Option<Estimate>,
    /// Time per fault, in ns: what the first pass took longer than the second in the blocks that had faults (median block);
    /// `null` if that is not more than nothing.
    pub ns: Option<f64>,
    /// What the hypervisor counted for this pass.
    pub kvm_stats: BTreeMap<String, i64>,
}

/// Something done many times in a row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Operation {
    /// A stable name.
    pub name: String,
    /// What one operation is, in words.
    pub what: String,
    /// Time of one, in ns; `null` if it could not be run.
    pub ns: Option<Estimate>,
    /// Does the hypervisor interpret the guest's instructions here instead of letting the CPU run them? Then `ns` says what its
    /// interpreter costs.
    pub emulated: bool,
    /// What the hypervisor counted, per operation.
    pub per_operation: BTreeMap<String, f64>,
    /// Why `ns` is `null`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_measured: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::GuestPage;

    #[test]
    fn page_sizes_read_what_they_print_and_nothing_else() {
        for page in GuestPage::ALL {
            assert_eq!(page.to_string().parse(), Ok(page));
        }
        assert_eq!("2MiB".parse(), Ok(GuestPage::Size2M));
        for text in ["", "4", "8K", "2", "huge"] {
            let error = text.parse::<GuestPage>().expect_err(text).to_string();
            assert!(error.contains("4K, 2M or 1G"), "{error}");
        }
    }
}
