//! What was measured on the machine at hand, and what it says of itself.

use model::Bytes;
use model::latency::Latency;
use model::tlb::Tlb;

/// What is known of the machine at hand.
#[derive(Clone, Debug)]
pub struct Measured<'a> {
    pub name: &'a str,
    /// Its TLBs from timing, with the result's name.
    pub tlb: Option<(&'a Tlb, &'a str)>,
    /// Latency by working set, with the result's name.
    pub latency: Option<(&'a Latency, &'a str)>,
    /// Data caches from the first level on, as the machine reports them.
    pub caches: Vec<(Bytes, u32)>,
    pub base_page: Bytes,
    pub pmd_page: Bytes,
    /// The host's page behind a virtual machine's memory, where its TLBs show one.
    pub host_page: Option<Bytes>,
}

/// The clock at which times become cycles: that of the latency measurement, else that of the other one.
pub fn clock<'a>(measured: &Measured<'a>) -> Option<(f64, &'a str)> {
    let of_latency = measured
        .latency
        .and_then(|(latency, source)| Some((latency.core_ghz?.median, source)));
    let of_tlb = || {
        measured
            .tlb
            .and_then(|(tlb, source)| Some((tlb.core_ghz?.median, source)))
    };
    of_latency.or_else(of_tlb)
}
