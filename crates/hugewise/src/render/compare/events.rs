//! What happens in a comparison, as sentences.

use compare::Event;

/// Follows what is said of a program that may never end.
const WAITS: &str = "and whole runs wait for that (Ctrl-C stops them; or give it an end, or write --design slices)";

/// A sentence about an event.
pub(crate) fn sentence(event: &Event<'_>) -> String {
    match event {
        Event::Program { path, memory } => format!("{} is {}", path.display(), memory.title()),
        Event::Design { method, reason } => format!("by {}: {reason}", method.title()),
        Event::Needed { is_start: true } => "a first start shows how many pages of the pool are needed".to_owned(),
        Event::Needed { is_start: false } => "a first run shows how many pages of the pool are needed".to_owned(),
        Event::StartingOnce => "starting the program, once".to_owned(),
        Event::Starting(name) => format!("starting {name}"),
        Event::Technique { arm, words } => format!("arm {arm}: {words}"),
        Event::StillRuns(time) => format!("the program has not ended after {} s, {WAITS}", time.as_secs()),
        Event::NeverEnded => format!("it had not ended by itself, {WAITS}"),
        Event::UnknownHeap(why) => format!(
            "the heap that a Java virtual machine takes by default could not be read, so no huge pages are borrowed for it: {why} \
             (write -Xmx, or --pool)"
        ),
        Event::NotStopped(error) => error.to_string(),
        Event::Left { pid, restored } => match restored {
            None => format!("process {pid} has ended by itself"),
            Some(Err(error)) => format!("process {pid} did not get the pages back that it had: {error}"),
            Some(Ok(restored)) => match restored.wrong {
                0 => format!("process {pid} has the pages back that it had: {}", restored.before),
                wrong => format!(
                    "{wrong} PMD ranges of process {pid} are not on the pages that they had; at first it had {}",
                    restored.before
                ),
            },
        },
    }
}
