//! What a comparison in place has beyond one of whole runs: its slices in words, and its flips as a table.

use model::Bytes;
use model::compare::{Arm, Compare, Flip, InPlace, Restored, Slice};

use crate::render::measure::kernelops::time;
use draw::{Sheet, columns, or};

/// What the slices are: `slices of 2 s of process 4711, 0.25 s after each flip; counters are per CPU-second of all threads`.
pub(super) fn slices(how: &InPlace) -> String {
    let pid = how.pid;
    let whose = match how.started {
        true => ", started for this and ended with it",
        false => "",
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

/// What each flip did, and what the kernel's counts say of it.
pub(super) fn flips(compare: &Compare) -> Option<Sheet> {
    compare.design.in_place.as_ref()?;
    let fields = columns![|(arm, all)| (&Arm, Vec<&Slice>);
        "arm" => arm.name, "#flips" => all.len(), "#median time" => or(flip_time(all), "?"),
        "#PMD ranges flipped" => sum(all, |flip| Some(flip.turned))?,
        "#refused" => sum(all, |flip| Some(refused(flip)))?,
        "#thp_split_page" => or(sum(all, |flip| flip.splits), "?"),
        "#thp_collapse_alloc" => or(sum(all, |flip| flip.collapses), "?"),
        "#huge pages before the slice" => bytes(all, |slice| slice.large_before),
        "#huge pages after it" => bytes(all, |slice| slice.large_after),
    ];
    let rows = compare.arms.iter().map(|arm| (arm, slices_of(arm)));
    let mut sheet = Sheet::of("The flips, all of them outside of the slices", fields, rows);
    sheet
        .note("PMD ranges, and the machine's own counters in that time, are sums of all flips; huge pages are medians");
    if let Some(restored) = &compare.restored {
        sheet.note(left(restored));
    }
    Some(sheet)
}

fn slices_of(arm: &Arm) -> Vec<&Slice> {
    arm.runs.iter().filter_map(|run| run.slice.as_ref()).collect()
}

/// `None` where it is not known of one of them.
fn sum(slices: &[&Slice], of: fn(&Flip) -> Option<u64>) -> Option<u64> {
    slices.iter().map(|slice| of(&slice.flip)).sum()
}

fn refused(flip: &Flip) -> u64 {
    flip.refused.iter().map(|refused| refused.pieces).sum()
}

/// `None` where it is not known of one of them.
fn median(slices: &[&Slice], of: impl Fn(&Slice) -> Option<f64>) -> Option<f64> {
    let values: Option<Vec<f64>> = slices.iter().map(|slice| of(slice)).collect();
    stats::median(&values?)
}

fn flip_time(slices: &[&Slice]) -> Option<String> {
    let seconds = median(slices, |slice| Some(slice.flip.seconds))?;
    Some(time(seconds * 1e9))
}

fn bytes(slices: &[&Slice], of: fn(&Slice) -> Option<Bytes>) -> String {
    let median = median(slices, |slice| Some(of(slice)?.0 as f64));
    or(median.map(|bytes| Bytes(bytes as u64)), "?")
}

fn left(restored: &Restored) -> String {
    let pieces = match restored.wrong {
        0 => "every piece has the pages back that it had".to_owned(),
        wrong => format!("{wrong} pieces are not on the pages that they had"),
    };
    format!(
        "{pieces}, after {:.1} s: first {}, now {}",
        restored.seconds, restored.before, restored.after
    )
}
