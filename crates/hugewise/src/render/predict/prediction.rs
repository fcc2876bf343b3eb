//! A prediction as tables: what each page kind saves, how the program was seen, and what was swept.

use std::time::Duration;

use model::Bytes;
use predict::trace::own::{BlindSpot, Method, Window};
use predict::{Calibration, Observed, Prediction, Row};
use translation::Mode;
use translation::study::{Range, Sensitivity, Setting};

use super::simulate::{bytes, machine, missed, name, number, percent, unknown, walked};
use crate::show::Show;
use draw::{Lines, Sheet, columns, counted, joined, lines};

impl Show for Prediction {
    fn title(&self) -> String {
        format!("Predicted on {}: {}", self.machine.name, self.input)
    }

    fn sheets(&self) -> Vec<Sheet> {
        let mut sheets = vec![savings(self)];
        sheets.extend(self.calibration.as_ref().map(calibration));
        sheets.push(machine(&self.machine));
        sheets.extend(unknown(&self.unknown).with_rows());
        sheets
    }

    fn csv(&self) -> Lines<'_> {
        let fields = columns![|row| &Row;
            mode => row.setting.mode.name(), guest_page_bytes => row.setting.guest_page.0,
            host_page_bytes => bytes(row.setting.host_page), l1_miss_rate => row.miss_rates.first()?,
            walk_rate => walked(&row.miss_rates), saves => row.saves.middle, saves_low => row.saves.low,
            saves_high => row.saves.high, relative_time => row.relative.middle, relative_time_low => row.relative.low,
            relative_time_high => row.relative.high, huge_share_percent => row.setting.share?,
        ];
        lines(fields, self.rows.iter())
    }
}

/// What was measured, and how near the curve comes to it.
fn calibration(calibration: &Calibration) -> Sheet {
    let fields = columns![|(run, fitted)| (&Observed, &f64);
        "arm" => run.arm, "#on huge pages, %" => percent(run.coverage), "#saved, %" => percents(run.saves.middle),
        "95 % CI" => format!("{} to {}", percents(run.saves.low), percents(run.saves.high)), "#by the curve, %" => percents(**fitted),
    ];
    let runs = calibration.observed.iter().zip(&calibration.fitted);
    let title = format!("Measured here, against base pages ({})", calibration.base);
    let mut sheet = Sheet::of(&title, fields, runs);
    let Range { low, middle, high } = calibration.slope;
    let [low, middle, high] = [low, middle, high].map(number);
    sheet.note(format!(
        "the curve: time = a + b x simulated waits, and bent as far as a run on a part of the memory shows; b is {middle} times that of the model ({low} to {high})"
    ));
    sheet
}

fn savings(prediction: &Prediction) -> Sheet {
    let base = prediction.calibration.as_ref().map(|calibration| calibration.base);
    let base = base.unwrap_or(Setting::new(Mode::Native, Bytes::kib(4), Bytes::kib(4)));
    let rows = prediction.rows.iter().map(|row| (row, arm(base, row.setting)));
    let fields = columns![|(row, arm)| (&Row, &str);
        "setting" => row.setting, "arm of compare" => arm,
        "#L1 misses, %" => percent(missed(&row.miss_rates)), "#walks, %" => percent(walked(&row.miss_rates)),
        "#saves, %" => percents(saves(row)?.middle),
        "range" => saves(row).map(|Range { low, high, .. }| format!("{} to {}", percents(low), percents(high)))?,
        "#time" => format!("{:.2}", row.relative.middle),
        "range of time" => format!("{:.2} to {:.2}", row.relative.low, row.relative.high),
    ];
    let mut sheet = Sheet::of(&prediction.title(), fields, rows);
    notes(prediction, &mut sheet);
    sheet
}

/// Nothing of the row that others are held against.
fn saves(row: &Row) -> Option<Range> {
    Some(row.saves).filter(|saves| *saves != Range::default())
}

/// One digit behind the point, and no minus before a zero.
fn percents(share: f64) -> String {
    let text = format!("{:.1}", share * 100.0);
    if text == "-0.0" { "0.0".to_owned() } else { text }
}

/// What `compare` measures of it here: natively, unless runs here are known to be in a virtual machine.
fn arm(base: Setting, setting: Setting) -> &'static str {
    if (setting.mode, setting.host_page) != (base.mode, base.host_page) || setting.share.is_some() {
        return "";
    }
    match setting.guest_page {
        Bytes(4096) => "base",
        Bytes(0x20_0000) => "thp, hugetlb-2M",
        Bytes(0x4000_0000) => "hugetlb-1G",
        _ => "",
    }
}

fn notes(prediction: &Prediction, sheet: &mut Sheet) {
    sheet.note("saves = user time against base pages in the same mode, if all data of the program is on such pages; time = relative to native base pages");
    sheet.note(match prediction.calibration {
        None => "range = what each unknown (below), the windows, and errors of the model (9 points) do to each side: the root of the sum of their squares",
        Some(_) => "range = what each unknown (below), the windows, the measured runs, what no waits explain of them, and errors of the model (2 points of pages that it ran on or between, 9 of others) do to each side: the root of the sum of their squares",
    });
    if prediction.calibration.is_some() {
        sheet.note("rows with an arm, and shares: against base pages as they are here; +30%: this share of the memory is on 2M pages, the rest on base pages");
    }
    sheet.note("shadow: page walks alone; the exits that page-table writes cause are in no trace");
    let instructions = prediction.instructions_per_access.map_or_else(
        || "3 instructions each, assumed: the trace has none".to_owned(),
        |each| format!("{} instructions each", number(each)),
    );
    let windows = match prediction.windows {
        0 => String::new(),
        windows => format!(" in the second halves of {}", counted(windows as usize, "window")),
    };
    sheet.note(format!(
        "{} loads and stores{windows}, {instructions}",
        prediction.accesses
    ));
    if let Some(capture) = &prediction.capture {
        let Method::Steps = capture.method;
        sheet.note("method: one thread at a time is stepped (ptrace), in windows; each stands for the processor time around it");
        let spots = capture.blind_spots.iter().copied().map(blind_spot);
        sheet.note(format!("not seen: {}", joined(spots, "; ")));
        if let Some(frames) = &capture.frames {
            let run = number(frames.mean_run());
            sheet.note(format!("in a guest, base pages lie as they did during the capture: {run} on frames beside each other, on average"));
        }
    }
    if let Some(effects) = effects(prediction) {
        sheet.note(effects);
    }
    sheet.note("measure it: hugewise compare --arms base,thp --metric user -- COMMAND (no arm changes the pages of mapped files, which are data here)");
}

fn blind_spot(spot: BlindSpot) -> &'static str {
    match spot {
        BlindSpot::Kernel => "what the kernel accesses for the program",
        BlindSpot::OtherThreads => "what other threads did during a window",
        BlindSpot::BetweenWindows => "what lies between windows",
        BlindSpot::SpecialInstructions => "addresses of gathers and scatters",
        BlindSpot::AfterBudget => "the run behind the last window, as the time for capturing was up",
    }
}

/// The largest effects on the first huge page kind.
fn effects(prediction: &Prediction) -> Option<String> {
    let row = prediction.rows.iter().find(|row| !row.sensitivity.is_empty())?;
    let mut all = row.sensitivity.clone();
    all.sort_by(|one, other| (other.high - other.low).total_cmp(&(one.high - one.low)));
    let effect = |alone: &Sensitivity| {
        format!(
            "{} {} to {}",
            name(alone.unknown),
            percents(alone.low),
            percents(alone.high)
        )
    };
    let (setting, largest) = (row.setting, joined(all.iter().take(3).map(effect), "; "));
    Some(format!(
        "largest effects on what {setting} saves (%), each alone: {largest}"
    ))
}

/// What was captured, in a line.
pub(crate) fn captured_in(windows: &[Window], cpu: Duration) -> String {
    let accesses: usize = windows.iter().map(|window| window.accesses.len()).sum();
    format!(
        "captured {} of {:.2} s of processor time: {} loads and stores",
        counted(windows.len(), "window"),
        cpu.as_secs_f64(),
        accesses
    )
}
