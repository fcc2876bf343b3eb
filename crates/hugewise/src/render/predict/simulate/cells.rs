//! Numbers, sizes and what is not known, as cells of tables about simulations.

use model::Bytes;
use translation::study::Unknown;

use draw::{or_empty, without_zeros};

pub(crate) fn name(unknown: Unknown) -> &'static str {
    match unknown {
        Unknown::WalkCaches => "page-walk caches, entries for page tables",
        Unknown::L2TlbHit => "second-level TLB hit, cycles",
        Unknown::Walk => "page walk besides its reads, cycles",
        Unknown::L1Latency => "first-level cache, cycles",
        Unknown::L2Latency => "second-level cache, cycles",
        Unknown::L3Latency => "third-level cache, cycles",
        Unknown::MemoryLatency => "memory (and caches of unknown size), cycles",
        Unknown::Exit => "exit and its handler, cycles",
        Unknown::Ipi => "interrupt of another CPU and its handler, cycles",
        Unknown::IpiExits => "exits for each such interrupt of a guest",
        Unknown::Instruction => "instruction that does not wait for memory, cycles",
        Unknown::Overlap => "misses that are waited for at a time",
        Unknown::HeldBefore => "what the TLBs held before each window",
    }
}

/// A size as CSV has it; nothing of what has none.
pub(crate) fn bytes(size: Option<Bytes>) -> String {
    or_empty(size.map(|size| size.0))
}

pub(crate) fn percent(share: f64) -> String {
    number(share * 100.0)
}

/// Three significant digits, and at most three after the point.
pub(crate) fn number(value: f64) -> String {
    let digits = match value.abs() {
        0.0 => 0,
        small if small < 1.0 => 3,
        small if small < 10.0 => 2,
        small if small < 100.0 => 1,
        _ => 0,
    };
    without_zeros(&format!("{value:.digits$}")).to_owned()
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn numbers_have_three_digits() {
        for (value, text) in [
            (0.0, "0"),
            (0.12345, "0.123"),
            (1.5, "1.5"),
            (24.04, "24"),
            (19.46, "19.5"),
            (1234.5, "1234"),
            (0.0001, "0"),
        ] {
            assert_eq!(number(value), text);
        }
    }
}
