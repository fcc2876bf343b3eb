//! The part of its container's memory that a Java virtual machine takes.

use model::Bytes;

use super::{Jvm, size_of};

impl Jvm {
    /// What it takes of its container's memory, beside a heap of a size.
    pub(super) fn take_part(&mut self, option: &str) {
        let value = |name: &str| option.strip_prefix(name);
        if let Some(percent) = value("-XX:MaxRAMPercentage=").and_then(|text| text.parse::<f64>().ok()) {
            self.part_of_ram = (0.0..=100.0).contains(&percent).then_some((percent * 100.0) as u64);
        } else if let Some(fraction) = value("-XX:MaxRAMFraction=").and_then(|text| text.parse::<u64>().ok()) {
            self.part_of_ram = self.part_of_ram.or(10_000_u64.checked_div(fraction));
        } else if let Some(size) = value("-XX:MaxDirectMemorySize=") {
            self.direct = size_of(size);
        } else if let Some(switch) = option.strip_suffix("UseContainerSupport") {
            self.sees_host = switch == "-XX:-";
        }
    }

    /// The most that its heap may grow to where its container may have so much memory. Below 252 MiB other parts count (MinRAMPercentage).
    pub fn heap_within(&self, memory: Bytes) -> Option<Bytes> {
        let part = self
            .part_of_ram
            .filter(|_| !self.sees_host && memory >= Bytes::mib(256));
        let of_part = part.map(|part| Bytes(memory.0.saturating_mul(part) / 10_000));
        self.heap_max.or(of_part)
    }
}
