//! Answers to "what if" on a captured host.

use model::Bytes;
use studies::host_memory::HostMemory;
use studies::host_memory::advice::{Advice, Change, Unknown, WhatIf};
use translation::study::Range;

use super::{percent, spread};
use draw::{Lines, Sheet, columns, counted, joined, lines, number, or};

pub(super) fn headline(result: &HostMemory, advice: &Advice) -> String {
    let draws = counted(advice.draws as usize, "draw");
    let short = |row: &WhatIf| format!("{} {} %", change(row), number(row.short * 100.0));
    let possible = advice.rows.iter().filter(|row| row.refused.is_none());
    format!(
        "{}, {} s, {draws} of what a capture does not show. Draws in which memory runs short: {}.",
        result.input,
        number(result.seconds),
        joined(possible.map(short), ", ")
    )
}

fn change(row: &WhatIf) -> String {
    let of = |rest: &str| match row.vms.is_empty() {
        true => format!("{rest} of all machines"),
        false => format!("{rest} of {}", row.vms.join(", ")),
    };
    match row.change {
        Change::AsIs => "as it is".to_owned(),
        Change::LargePagesOff => of("huge pages off"),
        Change::KsmOn => "KSM on".to_owned(),
        Change::MoreVms => counted(row.count, "machine"),
        Change::GiantPages => of("1 GiB pages"),
    }
}

fn sizes(range: Range) -> String {
    spread(range, |value| Bytes(value as u64).to_string())
}

pub(super) fn sheets(advice: &Advice, result: &HostMemory) -> Vec<Sheet> {
    let has_lost = !result.translation.is_empty();
    let fields = columns![|row| &WhatIf;
        "what if" => change(row), "#short, % of draws" => or(kept(row).map(|row| number(row.short * 100.0)), "not possible"),
        "#free" => sizes(kept(row)?.free), "#backed by huge pages, %" => percent(kept(row)?.large),
        "#sharing saves" => sizes(kept(row)?.saved), "~#broken" => spread(kept(row)?.broken, number),
        "#swapped out and in" => sizes(kept(row)?.swapped),
        "#lost, %" => percent(kept(row).filter(|_| has_lost)?.lost),
    ];
    let mut sheet = Sheet::of("What if", fields, advice.rows.iter());
    for row in &advice.rows {
        if let Some(why) = &row.refused {
            sheet.note(format!("{}: not possible: {why}", change(row)));
        }
    }
    sheet.note(
        "median (least to most) of all draws at the end; the same draws for each row; short: memory is swapped, or machines wait for it; lost: \
         part of the CPU time that translation takes",
    );
    vec![sheet, unknown(advice)]
}

/// The row, if it is possible at all.
fn kept(row: &WhatIf) -> Option<&WhatIf> {
    row.refused.is_none().then_some(row)
}

fn unknown(advice: &Advice) -> Sheet {
    let mut sheet = Sheet::new("Not in the capture, and therefore drawn", ["what", "#from", "#to"]);
    for drawn in &advice.unknown {
        let what = match drawn.unknown {
            Unknown::Zero => "pages of zeros, % of memory",
            Unknown::Common => "pages that other machines hold, too, %",
            Unknown::Volatile => "pages written all the time, %",
            Unknown::Clustered => "how far equal pages lie together, %",
            Unknown::Active => "memory in use all the time, %",
            Unknown::Growth => "of the memory that is not resident, touched within the time, %",
        };
        sheet.row([what.to_owned(), number(drawn.low * 100.0), number(drawn.high * 100.0)]);
    }
    sheet.note("evenly between both; equal ends are counters of KSM in the capture; the ranges have no source: they are wide on purpose");
    sheet
}

pub(super) fn csv(advice: &Advice) -> Lines<'_> {
    let fields = columns![|row| &WhatIf;
        what_if => change(row), machines => row.count, refused => row.refused.as_ref()?, short => row.short,
        free_bytes => row.free.middle, free_bytes_low => row.free.low, free_bytes_high => row.free.high,
        large => row.large.middle, large_low => row.large.low, large_high => row.large.high,
        saved_bytes => row.saved.middle, saved_bytes_low => row.saved.low, saved_bytes_high => row.saved.high,
        broken => row.broken.middle, swapped_bytes => row.swapped.middle, swapped_bytes_low => row.swapped.low,
        swapped_bytes_high => row.swapped.high, lost => row.lost.middle, lost_low => row.lost.low,
        lost_high => row.lost.high,
    ];
    lines(fields, advice.rows.iter())
}
