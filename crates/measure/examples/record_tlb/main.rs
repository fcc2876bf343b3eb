//! Prints what this machine answers to all that discovery asks of its base pages, for `fixtures/tlb`:
//! `cargo run --release -p hugewise-measure --example record_tlb > fixtures/tlb/NAME.txt`, then add its levels by hand.

mod recorder;

use std::io::{self, Write};

use chase::clock::CoreClock;
use chase::thread::Pinned;
use measure::tlb::discover::{Effort, discover};
use measure::tlb::live::{Live, Pages};
use measure::tlb::probe::{Layout, Limits, Oracle, Probe, Sweep};
use model::{Bytes, PageKind};

fn main() -> io::Result<()> {
    let (base, pmd) = (Bytes::kib(4), Bytes::mib(2));
    let pages = |kind, size| Pages { kind, size };
    let clock = CoreClock::new();
    let _pinned = Pinned::to(None)?;
    let small = pages(PageKind::Base, base);
    let live = Live::new(small, base, pmd, pages(PageKind::Thp, pmd), &clock, Bytes::gib(2))?;
    io::stdout().write_all(recorder::record(live).as_bytes())
}
