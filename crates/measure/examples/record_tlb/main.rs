//! Prints what this machine answers to all that discovery asks of its base pages, for `fixtures/tlb`:
//! `cargo run --release -p hugewise-measure --example record_tlb > fixtures/tlb/NAME.txt`, then add its levels by hand.

mod recorder;

use std::io::{self, Write};

use chase::clock::CoreClock;
use chase::thread::Pinned;
use measure::tlb::discover::{Effort, Search};
use measure::tlb::live::Live;
use measure::tlb::probe::{Layout, Limits, Oracle, Probe, Sweep};
use model::{Bytes, PageKind};

fn main() -> io::Result<()> {
    let clock = CoreClock::new();
    let _pinned = Pinned::to(None)?;
    let live = Live::new(PageKind::Base, PageKind::Thp, &clock, Bytes::gib(2))?;
    io::stdout().write_all(recorder::record(live).as_bytes())
}
