//! What weakens a comparison in place: pages that change by themselves, and a process that is not left as it was. Pure.

use model::compare::{Arm, Restored, Slice};
use model::{Bytes, PageKind, Warning};

/// The share of its memory that changes its page kind within a slice before it is said.
const CHANGED: f64 = 0.01;
/// One part in so many more memory than before is worth saying.
const GREW: u64 = 50;

/// khugepaged collapses what was cut, or new memory comes on other pages.
pub(super) fn pages_changed(arm: &Arm) -> Option<Warning> {
    let gained = |slice: &Slice| Some(slice.large_after?.0 as f64 - slice.large_before?.0 as f64);
    let shares = arm.runs.iter().filter_map(|run| {
        let memory = run.backing.known()?.total().0 as f64;
        Some(gained(run.slice.as_ref()?)? / memory.max(1.0))
    });
    let change = stats::median(&shares.collect::<Vec<_>>())?;
    let is_base = arm.kind == Some(PageKind::Base);
    let text = format!(
        "within a slice of `{}` {:.0} % of the memory {}: the slices show less than the whole difference",
        arm.name,
        change.abs() * 100.0,
        if is_base {
            "was backed by huge pages (khugepaged, or faults under THP=always)"
        } else {
            "was no longer backed by huge pages (new memory, or pages that were given back)"
        }
    );
    let is_against = if is_base { change > CHANGED } else { change < -CHANGED };
    is_against.then(|| Warning::new("pages-changed", text))
}

/// What is to be said of a process after it was given its pages back.
pub(super) fn of_restored(restored: &Restored) -> Vec<Warning> {
    let wrong = (restored.wrong > 0).then(|| {
        let text = format!(
            "{} pieces of 2M could not be given the pages back that they had: `hugewise collapse PID` tries again",
            restored.wrong
        );
        Warning::new("not-restored", text)
    });
    let before = restored.before.total().0;
    // What could not be read has not grown; the result says that it could not.
    let after = restored.after.known().map(|backing| backing.total().0);
    let grown = after.filter(|after| *after > before + before / GREW);
    let grown = grown.map(|after| {
        let text = format!(
            "the process holds {} more than before: a huge page is allocated whole even where only a part was in use, or the process grew by itself",
            Bytes(after - before)
        );
        Warning::new("memory-grew", text)
    });
    wrong.into_iter().chain(grown).collect()
}

#[cfg(test)]
mod tests {
    use super::of_restored;
    use model::compare::Restored;
    use model::{Bytes, PageKind, Reading};

    #[test]
    fn a_process_that_could_not_be_left_as_it_was_is_told() {
        let left = |mib: u64, wrong: u64| {
            let restored = Restored {
                before: [(PageKind::Base, Bytes::mib(100))].into_iter().collect(),
                after: Reading::Known([(PageKind::Thp, Bytes::mib(mib))].into_iter().collect()),
                wrong,
                seconds: 1.0,
            };
            of_restored(&restored)
                .into_iter()
                .map(|warning| warning.code)
                .collect::<Vec<_>>()
        };
        assert_eq!(left(110, 3), ["not-restored", "memory-grew"]);
        assert!(left(101, 0).is_empty());
    }
}
