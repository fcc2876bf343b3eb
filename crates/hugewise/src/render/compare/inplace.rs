//! What a comparison in place has beyond one of whole runs: its slices in words, its control as a line, and its flips as a table.

use model::compare::{Arm, Compare, Control, Flip, InPlace, Restored, Slice};
use model::{Bytes, Reading};

use super::{gain, reference};
use crate::render::kernelops::time;
use crate::render::sheet::Sheet;

/// What the slices are: `slices of 2 s of process 4711, 0.25 s after each flip; counters are per CPU-second of all threads`.
pub(super) fn slices(how: &InPlace) -> String {
    let pid = how.pid;
    let whose = if how.started {
        ", started for this and ended with it"
    } else {
        ""
    };
    let length = match how.slice_seconds {
        Some(seconds) => format!("slices of {seconds} s of process {pid}{whose}"),
        None => format!("each slice is one load on process {pid}{whose}"),
    };
    let threads = match how.threads.as_str() {
        "all" => "all threads".to_owned(),
        names => format!("threads `{names}`"),
    };
    let settle = how.settle_seconds;
    format!(
        "{length}, {settle} s after each flip; counters are per CPU-second of {threads}; the verdict is about this process: another start \
         of the program may differ"
    )
}

/// The comparison's own noise, a line for each metric.
pub(super) fn controls(compare: &Compare) -> Vec<String> {
    let control = |control: &Control| {
        let noise = gain(control.ratio, control.low, control.high);
        format!("{} against itself in {}: {noise}.", reference(compare), control.metric)
    };
    let is_in_place = compare.design.in_place.is_some();
    compare.controls.iter().filter(|_| is_in_place).map(control).collect()
}

/// What each flip did, and what the kernel's counts say of it.
pub(super) fn flips(compare: &Compare) -> Option<Sheet> {
    compare.design.in_place.as_ref()?;
    let heads = [
        "arm",
        "#flips",
        "#median time",
        "#pieces turned",
        "#refused",
        "#thp_split_page",
        "#thp_collapse_alloc",
        "#large before the slice",
        "#large after it",
    ];
    let mut sheet = Sheet::new("The flips, all of them outside of the slices", heads);
    for arm in &compare.arms {
        sheet.row(row(arm));
    }
    sheet
        .note("PMD ranges, and the machine's own counters in that time, are sums of all flips; huge pages are medians");
    if let Some(restored) = &compare.restored {
        sheet.note(left(restored));
    }
    Some(sheet)
}

fn row(arm: &Arm) -> [String; 9] {
    let slices: Vec<&Slice> = arm.runs.iter().filter_map(|run| run.slice.as_ref()).collect();
    let sum = |of: &dyn Fn(&Flip) -> u64| slices.iter().map(|slice| of(&slice.flip)).sum::<u64>().to_string();
    let count = |of: &dyn Fn(&Flip) -> Option<u64>| {
        let sum: Option<u64> = slices.iter().map(|slice| of(&slice.flip)).sum();
        sum.map_or_else(|| "?".to_owned(), |sum| sum.to_string())
    };
    let median = |of: &dyn Fn(&Slice) -> Option<f64>| {
        let values: Option<Vec<f64>> = slices.iter().map(|slice| of(slice)).collect();
        stats::median(&values?)
    };
    let bytes = |of: &dyn Fn(&Slice) -> Option<Bytes>| {
        let bytes = median(&|slice| Some(of(slice)?.0 as f64));
        bytes.map_or_else(|| "?".to_owned(), |bytes| Bytes(bytes as u64).to_string())
    };
    let seconds = median(&|slice| Some(slice.flip.seconds));
    [
        arm.name.clone(),
        slices.len().to_string(),
        seconds.map_or_else(|| "?".to_owned(), |seconds| time(seconds * 1e9)),
        sum(&|flip| flip.turned),
        sum(&|flip| flip.refused.iter().map(|refused| refused.pieces).sum()),
        count(&|flip| flip.splits),
        count(&|flip| flip.collapses),
        bytes(&|slice| slice.large_before),
        bytes(&|slice| slice.large_after),
    ]
}

fn left(restored: &Restored) -> String {
    let Restored {
        before,
        after,
        wrong,
        seconds,
    } = restored;
    let after = match after {
        Reading::Known(backing) => backing.to_string(),
        Reading::Unread(why) => why.to_string(),
    };
    let pieces = match wrong {
        0 => "every piece has the pages back that it had".to_owned(),
        wrong => format!("{wrong} pieces are not on the pages that they had"),
    };
    format!("{pieces}, after {seconds:.1} s: first {before}, now {after}")
}
