//! The kernel's own reserve, `vm.min_free_kbytes`: starting khugepaged raises it, and where an administrator once set it, it stays so when
//! khugepaged ends. What a write of ours did to it goes with that write.

use serde::{Deserialize, Serialize};

use crate::error::WriterError;
use crate::sink::{self, Sink};

const RESERVE: &str = "/proc/sys/vm/min_free_kbytes";

/// It before and after a write of ours, in kB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Moved {
    pub(crate) before: u64,
    pub(crate) after: u64,
}

/// May a write to this file start khugepaged, or end it?
pub(crate) fn moves_with(path: &str) -> bool {
    path.contains("/transparent_hugepage/") && path.ends_with("enabled")
}

/// The reserve, if it can be read.
pub(crate) fn now(sink: &dyn Sink) -> Option<u64> {
    sink::number(sink, RESERVE).ok()
}

/// What it was at `before`, if it is another now.
pub(crate) fn moved(sink: &dyn Sink, before: Option<u64>) -> Option<Moved> {
    let (before, after) = before.zip(now(sink))?;
    (before != after).then_some(Moved { before, after })
}

/// What it is to be, where it is `now`, once a write is taken back before which it was `kept`: what it was before ours, unless others have set
/// it since. Then only a raise by that write is undone. What the kernel lowered with it had been khugepaged's: written again, it would stay
/// as if an administrator had set it.
pub(crate) fn wanted(ours: Option<Moved>, kept: Option<u64>, now: Option<u64>) -> Option<u64> {
    match ours {
        Some(Moved { before, after }) if kept == Some(after) => Some(before),
        _ => kept.zip(now).map(|(kept, now)| kept.min(now)),
    }
}

/// Makes it that, unless the kernel has done so itself.
pub(crate) fn restore(sink: &dyn Sink, wanted: Option<u64>) -> Result<(), WriterError> {
    match wanted.filter(|kib| now(sink).is_some_and(|now| now != *kib)) {
        Some(kib) => sink::write(sink, RESERVE, kib.to_string()),
        None => Ok(()),
    }
}
