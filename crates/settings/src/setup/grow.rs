//! Taking a pool to a number of pages: again and again while that helps, and never at the cost of other programs' memory.

use std::io;
use std::path::PathBuf;

use model::Bytes;

use crate::error::WriterError;
use crate::pool;
use crate::pool_setting::{PoolSetting, Which};
use crate::sink::Sink;

/// Takes a pool to `wanted` persistent pages beside `on_loan`, or as near as memory allows.
///
/// The kernel stops at the first page that it cannot have; a second try often gets more, because the first has moved
/// memory about. When a try gets nothing the machine is asked to compact its memory, once for each bit of progress.
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
    let mut compacted = false;
    loop {
        let aim = wanted.min(now.saturating_add(pool::room(sink, setting.page, leave)?));
        if aim <= now {
            return Ok(());
        }
        setting.write(sink, aim.saturating_add(on_loan))?;
        let got = own()?;
        if got >= wanted || (got <= now && compacted) {
            return Ok(());
        }
        compacted = got <= now;
        if compacted {
            compact(sink, setting);
        }
        now = got;
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
