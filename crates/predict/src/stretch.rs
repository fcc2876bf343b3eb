//! Stretches of a trace, decoded on a thread of their own while the one before is simulated.

use std::io::Read;
use std::sync::mpsc;
use std::thread;

use crate::trace::own::Told;
use crate::trace::{Trace, TraceError};
use translation::{Access, Accesses};

/// Stretches that are decoded before they are needed.
const AHEAD: usize = 2;

/// Accesses up to a gap or a number of them, and what the trace said of them.
#[derive(Default)]
pub(super) struct Stretch {
    accesses: Vec<Access>,
    /// Where those begin that count, and where they end.
    counted: (usize, usize),
    /// Bytes of the trace up to its end.
    pub(super) offset: u64,
    instructions: u64,
    /// What the trace says of it, where it is a window.
    pub(super) window: Told,
}

impl Stretch {
    /// Those that warm up.
    pub(super) fn before(&self) -> &[Access] {
        &self.accesses[..self.counted.0]
    }

    pub(super) fn counted(&self) -> &[Access] {
        &self.accesses[self.counted.0..self.counted.1]
    }

    /// The instructions of those that count.
    pub(super) fn instructions(&self) -> f64 {
        self.instructions as f64 * self.counted().len() as f64 / self.accesses.len() as f64
    }

    fn fill<R: Read>(&mut self, trace: &mut Trace<R>, long: usize) -> Result<bool, TraceError> {
        let all = &mut self.accesses;
        all.clear();
        let has_windows = trace.head.is_some();
        loop {
            let before = all.len();
            match trace.fill(all)? {
                Some(_) if all.is_empty() => {}
                Some(_) => return Ok(true),
                None if all.len() == before => return Ok(!all.is_empty()),
                None if all.len() >= long && !has_windows => return Ok(true),
                None => {}
            }
        }
    }
}

/// A trace, and how much of it is still wanted.
struct Wanted<'a, R> {
    trace: &'a mut Trace<R>,
    warm_up: u64,
    left: u64,
    /// Accesses of a stretch, where the trace has no windows.
    long: usize,
}

impl<R: Read> Wanted<'_, R> {
    /// The next stretch takes the place of an old one; is there any? Not a block is read beyond what counts: a pipe may have no more.
    fn next(&mut self, stretch: &mut Stretch) -> Result<bool, TraceError> {
        let before = self.trace.told.instructions;
        let wanted = self.warm_up.saturating_add(self.left).try_into().unwrap_or(usize::MAX);
        if self.left == 0 || !stretch.fill(self.trace, self.long.min(wanted))? {
            return Ok(false);
        }
        stretch.window = *self.trace.finished_window();
        let has_windows = self.trace.head.is_some();
        stretch.offset = self.trace.offset();
        stretch.instructions = if has_windows {
            stretch.window.instructions
        } else {
            self.trace.told.instructions - before
        };
        // Half of a window always warms up.
        let all = stretch.accesses.len() as u64;
        let half = if has_windows { all / 2 } else { 0 };
        let from = half.max(self.warm_up).min(all);
        let counted = (all - from).min(self.left);
        stretch.counted = (from as usize, (from + counted) as usize);
        self.warm_up = self.warm_up.saturating_sub(all);
        self.left -= counted;
        Ok(true)
    }
}

/// Calls with each stretch in order, until so many accesses behind those that warm up were there. Stretches end with windows, or are `long`.
pub(super) fn each_stretch<R: Read + Send>(
    trace: &mut Trace<R>,
    (warm_up, left): (u64, u64),
    long: usize,
    mut run: impl FnMut(&Stretch),
) -> Result<(), TraceError> {
    let mut wanted = Wanted {
        trace,
        warm_up,
        left,
        long,
    };
    let (full, next) = mpsc::sync_channel(AHEAD);
    let (empty, used) = mpsc::channel::<Stretch>();
    thread::scope(|scope| {
        scope.spawn(move || {
            loop {
                let mut stretch = used.try_recv().unwrap_or_default();
                let read = wanted.next(&mut stretch);
                let is_last = !matches!(read, Ok(true));
                if matches!(read, Ok(false)) || full.send(read.map(|_| stretch)).is_err() || is_last {
                    return;
                }
            }
        });
        for stretch in next {
            let stretch = stretch?;
            run(&stretch);
            // The decoder may have ended.
            let _ = empty.send(stretch);
        }
        Ok(())
    })
}
