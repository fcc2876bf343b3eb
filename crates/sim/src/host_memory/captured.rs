//! What a capture shows of a host and its machines.

use model::Bytes;

use super::{Host, Khugepaged, Ksm, Pages, Translation};

/// A running machine.
#[derive(Clone, Debug, PartialEq)]
pub struct CapturedVm {
    /// Its name.
    pub name: String,
    /// Its memory.
    pub memory: Bytes,
    /// What of it is resident.
    pub resident: Bytes,
    /// Which pages it asked for.
    pub pages: Pages,
}

/// What a capture shows.
#[derive(Clone, Debug)]
pub struct Captured {
    /// The file.
    pub name: String,
    /// The host.
    pub host: Host,
    /// Its machines.
    pub vms: Vec<CapturedVm>,
    /// Does KSM merge pages?
    pub is_merging: bool,
    /// Of the pages that KSM looked at, the part that is merged or volatile, if it has scanned all twice.
    pub merged: Option<[f64; 2]>,
    /// Settings of KSM.
    pub ksm: Ksm,
    /// Settings of khugepaged.
    pub khugepaged: Khugepaged,
    /// How time lost to translation is found.
    pub translation: Translation,
}
