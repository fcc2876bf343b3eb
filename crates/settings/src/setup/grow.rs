//! Taking a pool to a number of pages: again and again while that helps, and never at the cost of other programs' memory.

use std::io;
use std::path::PathBuf;

use model::Bytes;

use crate::error::WriterError;
use crate::pool::Memory;
use crate::pool_setting::{PoolSetting, Which};
use crate::sink::Sink;

/// So many tries in a row that get nothing show that there is nothing to get: compaction goes on from where it stopped.
const FRUITLESS: u32 = 3;

/// Takes a pool to `wanted` persistent pages beside `on_loan`, or as near as memory allows.
///
/// The kernel stops at the first page that it cannot have; a second try often gets more, because the first has moved
/// memory about. When a try gets nothing the machine is asked to compact its memory, and tried again.
pub(super) fn to(
    sink: &dyn Sink,
    setting: PoolSetting,
    wanted: u64,
    on_loan: u64,
    leave: Option<Bytes>,
) -> Result<(), WriterError> {
    let own = || Ok::<u64, WriterError>(setting.read(sink)?.saturating_sub(on_loan));
    let mut now = own()?;
    if wanted <= now {
        return setting.write(sink, wanted.saturating_add(on_loan));
    }
    let mut fruitless = 0;
    loop {
        let aim = wanted.min(now.saturating_add(Memory::read(sink)?.room(setting.page, leave)));
        if aim <= now {
            return Ok(());
        }
        setting.write(sink, aim.saturating_add(on_loan))?;
        let got = own()?;
        fruitless = if got <= now { fruitless + 1 } else { 0 };
        if got >= wanted || fruitless > FRUITLESS {
            return Ok(());
        }
        if fruitless > 0 {
            compact(sink, setting);
        }
        now = got;
    }
}

/// Why a pool has fewer pages than asked for, and what helps.
pub(super) fn shortfall(sink: &dyn Sink, page: Bytes, missing: u64, leave: Option<Bytes>) -> String {
    let Ok(memory) = Memory::read(sink) else {
        return "free memory, ask for less, or have the pages from boot on".to_owned();
    };
    let left = leave.unwrap_or(memory.left);
    if memory.room(page, leave) == 0 {
        return format!(
            "{} of memory is available, and {left} is left to programs: free memory, ask for less, or leave less (--leave SIZE)",
            memory.available
        );
    }
    let size = page.exact();
    let tried = match page < Bytes::gib(1) {
        true => "the kernel was asked to compact memory, and ",
        false => "",
    };
    let text = format!(
        "{tried}{} is available, but no further page of {size} in one piece",
        memory.available
    );
    let cache = memory.cache.filter(|cache| cache.0 >= page.0.saturating_mul(missing));
    match cache {
        Some(cache) if page < Bytes::gib(1) => format!(
            "{text}: {cache} of it is page cache, which `sync; echo 3 > /proc/sys/vm/drop_caches` frees (files are then read from disk \
             again, and programs are slower until they are); apply the plan again after it, or have the pages from boot on"
        ),
        _ => format!("{text}: free memory, ask for less, or have the pages from boot on"),
    }
}

/// Asks the kernel to move pages together. This is no setting: it leaves no state behind, so no journal knows of it, and
/// a kernel that cannot do it is no reason to fail.
fn compact(sink: &dyn Sink, setting: PoolSetting) {
    let everywhere = PathBuf::from("/proc/sys/vm/compact_memory");
    let asked: io::Result<()> = match setting.which {
        Which::NodePages(node) => {
            let node = PathBuf::from(format!("/sys/devices/system/node/node{node}/compact"));
            sink.write(&node, "1").or_else(|_| sink.write(&everywhere, "1"))
        }
        Which::Pages | Which::Overcommit => sink.write(&everywhere, "1"),
    };
    drop(asked);
}
