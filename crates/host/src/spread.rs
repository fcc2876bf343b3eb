//! The same questions about many processes, asked by several threads: nearly all of the time is the kernel's.

use std::num::NonZeroUsize;
use std::thread::{self, Builder, ScopedJoinHandle};

use crate::Source;

/// The files of so few are read faster than a thread starts.
const FEWEST: usize = 64;
/// Other processes need the machine too.
const MOST_THREADS: usize = 4;

/// What `ask` answers for each of the items, in their order. A captured machine is asked by one thread: nothing waits there.
pub fn over<T: Sync, R: Send>(source: &Source, items: &[T], ask: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = match source.is_live() {
        true => thread::available_parallelism()
            .map_or(1, NonZeroUsize::get)
            .min(MOST_THREADS),
        false => 1,
    };
    in_parts(items, items.len().div_ceil(threads).max(FEWEST), &ask)
}

/// One part of the items a thread. Where none can be started, this one does its work.
fn in_parts<T: Sync, R: Send>(items: &[T], part: usize, ask: &(impl Fn(&T) -> R + Sync)) -> Vec<R> {
    let (own, others) = items.split_at(part.min(items.len()));
    thread::scope(|scope| {
        let helpers: Vec<_> = others
            .chunks(part)
            .map(|part| {
                let work = move || part.iter().map(ask).collect::<Vec<R>>();
                Builder::new().spawn_scoped(scope, work).map_err(|_| part)
            })
            .collect();
        let mut answers: Vec<R> = own.iter().map(ask).collect();
        for helper in helpers {
            match helper.map(ScopedJoinHandle::join) {
                Ok(Ok(theirs)) => answers.extend(theirs),
                Ok(Err(panic)) => std::panic::resume_unwind(panic),
                Err(part) => answers.extend(part.iter().map(ask)),
            }
        }
        answers
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::thread;

    use super::in_parts;

    #[test]
    fn answers_come_in_order_and_from_several_threads() {
        for count in [0, 1, 6, 7, 8, 100] {
            let items: Vec<usize> = (0..count).collect();
            let answers = in_parts(&items, 7, &|item| (*item, thread::current().id()));
            assert!(answers.iter().map(|(item, _)| item).eq(&items));
            let threads: BTreeSet<String> = answers.iter().map(|(_, thread)| format!("{thread:?}")).collect();
            assert_eq!(threads.len(), count.div_ceil(7));
        }
    }
}
