//! A simulation as tables: cases with their misses and cycles, the machine, and what was swept because no source publishes it.

mod cells;
mod curve;

use translation::machine::RowReading;
use translation::study::{Case, MachineFacts, PageEntries, Published, Range, Simulation, Sweep};

use crate::show::Show;
pub(super) use cells::{bytes, name, number, percent};
use draw::{Field, Heat, Lines, Sheet, columns, joined, legend, lines, or, pairs};

impl Show for Simulation {
    fn title(&self) -> String {
        format!(
            "Address translation on {}, simulated: {}",
            self.machine.name, self.input
        )
    }

    fn sheets(&self) -> Vec<Sheet> {
        let results = [
            published(&self.published, exact),
            cases(self),
            curve::sheet(&self.curves),
        ];
        let all = results.into_iter().filter_map(Sheet::with_rows);
        let unknown = unknown(&self.unknown).with_rows();
        all.chain([machine(&self.machine)]).chain(unknown).collect()
    }

    fn tables(&self) -> Vec<(&'static str, Lines<'_>)> {
        match self.curves.is_empty() {
            true => vec![("", self.csv())],
            false => vec![("cases", self.csv()), ("curves", curve::csv(&self.curves))],
        }
    }

    fn csv(&self) -> Lines<'_> {
        let fields = columns![|case| &Case;
            working_set_bytes => bytes(case.working_set), mode => case.setting.mode.name(),
            guest_page_bytes => case.setting.guest_page.0, host_page_bytes => bytes(case.setting.host_page),
            entry_bytes => case.entry.0, reach_bytes => case.reach.0, accesses => case.accesses,
            l1_miss_rate => case.miss_rates.first()?, walk_rate => walked(&case.miss_rates),
            references_per_access => case.references.middle, references_per_access_low => case.references.low,
            references_per_access_high => case.references.high, data_cycles => case.cycles.data.middle,
            tlb_cycles => case.cycles.tlb.middle, walk_cycles => case.cycles.walks.middle,
            exit_cycles => case.cycles.exits.middle, shootdown_cycles => case.cycles.shootdowns.middle,
            relative_time => case.relative.middle, relative_time_low => case.relative.low,
            relative_time_high => case.relative.high, huge_share_percent => case.setting.share?,
        ];
        lines(fields, self.cases.iter())
    }
}

/// The share of accesses that miss in every TLB, which are all where there is none.
pub(super) fn walked(miss_rates: &[f64]) -> f64 {
    miss_rates.last().copied().unwrap_or(1.0)
}

/// The share that misses in the first one.
pub(super) fn missed(miss_rates: &[f64]) -> f64 {
    miss_rates.first().copied().unwrap_or(1.0)
}

fn cases(simulation: &Simulation) -> Sheet {
    let has = |of: fn(&Case) -> bool| simulation.cases.iter().any(of);
    let (has_exits, has_shootdowns) = (has(|case| case.exits.total() > 0), has(|case| case.shootdowns > 0));
    let fields = columns![|case| &Case;
        "memory" => or(case.working_set, "trace"), "setting" => case.setting, "#reach" => case.reach,
        "#L1 misses, %" => percent(missed(&case.miss_rates)), "#walks, %" => percent(walked(&case.miss_rates)),
        "#entries read" => number(case.references_per_walk.middle), "#data" => number(case.cycles.data.middle),
        "#TLB" => number(case.cycles.tlb.middle), "#walk" => number(case.cycles.walks.middle),
        "#exits" => number(case.cycles.exits.middle), "#shootdowns" => number(case.cycles.shootdowns.middle),
        "#time" => format!("{:.2}", case.relative.middle), "range" => range(case.relative, number),
    ];
    let is_shown = |field: &Field<'_, &Case>| match field.head.as_deref() {
        Some("#exits") => has_exits,
        Some("#shootdowns") => has_shootdowns,
        _ => true,
    };
    let fields: Vec<Field<'_, &Case>> = fields.into_iter().filter(is_shown).collect();
    let time = fields.iter().position(|field| field.head.as_deref() == Some("#time"));
    let mut sheet = Sheet::of(&simulation.title(), fields, simulation.cases.iter());
    for (row, case) in simulation.cases.iter().enumerate() {
        let shade = Heat::of(case.relative.middle);
        sheet.shades.extend(time.map(|column| ((row, column), shade)));
    }
    notes(simulation, &mut sheet);
    sheet
}

fn notes(simulation: &Simulation, sheet: &mut Sheet) {
    sheet.note(legend("the baseline"));
    sheet.note("setting = MODE:GUEST PAGE/HOST PAGE; reach = what the TLBs cover; walks = accesses that miss in every TLB; entries read = page-table entries per walk");
    if simulation.cases.iter().any(|case| case.setting.share.is_some()) {
        sheet.note("4K+30% = 30 % of the aligned 2 MiB ranges on 2M pages, the rest on 4K pages; reach is that of 4K entries alone");
    }
    sheet.note("data, TLB, walk, exits: cycles per access by cause, if nothing overlaps (TLB = second-level hits)");
    if simulation.cases.iter().any(|case| case.shootdowns > 0) {
        sheet.note("shootdowns: interrupts of the other virtual CPUs for invalidations, with their exits in a guest");
    }
    let baseline = simulation.baseline;
    sheet.note(format!(
        "time = relative to {baseline} with the same memory; range = over everything that is not known (below)"
    ));
    let effects = effects(simulation);
    if !effects.is_empty() {
        sheet.note(format!(
            "largest effects on a time of what is not known: {}",
            effects.join("; ")
        ));
    }
    sheet.note(format!(
        "{} accesses each, after {} to warm up",
        simulation.accesses, simulation.warm_up
    ));
}

/// By how much each unknown alone moves any time, the largest first.
fn effects(simulation: &Simulation) -> Vec<String> {
    let all = || pairs(&simulation.cases, |case| &case.sensitivity);
    let mut largest: Vec<(f64, String)> = Vec::new();
    for sweep in &simulation.unknown {
        let most = all()
            .filter(|(_, alone)| alone.unknown == sweep.unknown)
            .max_by(|(_, one), (_, other)| (one.high - one.low).total_cmp(&(other.high - other.low)));
        if let Some((case, alone)) = most {
            let text = format!(
                "{} {:.2} to {:.2} ({})",
                name(sweep.unknown),
                alone.low,
                alone.high,
                case.setting
            );
            largest.push((alone.high - alone.low, text));
        }
    }
    largest.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    largest.into_iter().map(|(_, text)| text).take(3).collect()
}

pub(super) fn machine(facts: &MachineFacts) -> Sheet {
    let levels = facts.entries.iter().map(|row| row.entries.len()).max().unwrap_or(0);
    let page = columns![|row| &PageEntries; "page" => row.page.exact()];
    let levels = (0..levels).flat_map(|level| {
        columns![|row| &PageEntries; (format!("#L{} entries", level + 1)) => match row.entries.get(level)? {
            0 => "none".to_owned(),
            entries => entries.to_string(),
        }]
    });
    let title = format!("TLB entries for loads: {}", facts.id);
    let mut sheet = Sheet::of(&title, page.into_iter().chain(levels), facts.entries.iter());
    for reading in &facts.readings {
        sheet.note(format!("assumed: {}", assumption(*reading)));
    }
    sheet.note("assumed: LRU replacement, linear indexes, page tables and data in address order, no prefetching");
    sheet.note(format!("source: {}", facts.source.join("; ")));
    sheet
}

fn assumption(reading: RowReading) -> &'static str {
    match reading {
        RowReading::SharedArray => {
            "an array that holds several page sizes is open to each as a whole, with the ways of base pages"
        }
        RowReading::Halves => "base pages are spread over both second-level arrays by one bit of their number",
        RowReading::OddSets => "sets that are no power of two are chosen by the remainder",
        RowReading::FramesInOrder => {
            "base pages lie on frames in order, as their frame numbers were not read (as root): scattered ones cost more behind a hypervisor"
        }
    }
}

pub(super) fn unknown(swept: &[Sweep]) -> Sheet {
    let fields = columns![|sweep| &Sweep;
        "what" => name(sweep.unknown), "#low" => number(sweep.values.low), "#middle" => number(sweep.values.middle),
        "#high" => number(sweep.values.high),
    ];
    let title = "Not published for this machine, and therefore swept";
    let mut sheet = Sheet::of(title, fields, swept.iter());
    sheet.note("a TOML file for --machine sets what you know: see the how-to page on simulation");
    sheet
}

/// Published values beside simulated ones, each shown by `exact`.
pub(super) fn published(rows: &[Published], exact: fn(f64) -> String) -> Sheet {
    let fields = columns![|row| &Published;
        "what" => row.what, "unit" => row.unit,
        "#published" => joined(row.published.iter().copied().map(exact), " to "),
        "#simulated" => exact(row.simulated.middle), "range" => range(row.simulated, exact),
        "simulated value is" => if row.is_fitted { "fitted" } else { "predicted" },
    ];
    let mut sheet = Sheet::of("Published and simulated", fields, rows.iter());
    let mut sources: Vec<&str> = Vec::new();
    for source in rows.iter().map(|row| row.source.as_str()) {
        // A parameter that was chosen has no source.
        if !source.is_empty() && !sources.contains(&source) {
            sources.push(source);
        }
    }
    if !sources.is_empty() {
        sheet.note(format!("published by: {}", sources.join("; ")));
    }
    sheet
}

/// The same with more digits of what is very small.
fn exact(value: f64) -> String {
    match value.abs() {
        small if 0.0 < small && small < 0.01 => format!("{value:.6}").trim_end_matches('0').to_owned(),
        _ => number(value),
    }
}

fn range(range: Range, text: fn(f64) -> String) -> String {
    match range.is_exact() {
        true => String::new(),
        false => format!("{} to {}", text(range.low), text(range.high)),
    }
}
