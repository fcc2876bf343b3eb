//! What a capture shows of a host and its machines.

use model::Bytes;

use super::{Host, Khugepaged, Ksm, Pages, Translation};

/// A running machine.
#[derive(Clone, Debug, PartialEq)]
pub struct CapturedVm {
    pub name: String,
    pub memory: Bytes,
    pub resident: Bytes,
    pub pages: Pages,
}

#[derive(Clone, Debug)]
pub struct Captured {
    pub name: String,
    pub host: Host,
    pub vms: Vec<CapturedVm>,
    /// Does KSM merge pages?
    pub is_merging: bool,
    /// Of the pages that KSM looked at, the part that is merged or volatile, if it has scanned all twice.
    pub merged: Option<[f64; 2]>,
    pub ksm: Ksm,
    pub khugepaged: Khugepaged,
    /// How time lost to translation is found.
    pub translation: Translation,
}
