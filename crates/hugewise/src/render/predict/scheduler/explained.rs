//! IBM's tables beside what explanations make of them, with what was fitted to what.

use studies::scheduler::explain::{Explained, Explains, Explanation, Fit, Fitted, FittedOn, Parameter, Predicts};

use draw::{Sheet, columns, joined, number, or, or_empty};

/// Shares below this, in per cent of a CPU, are the hypervisor's own.
const SMALL: f64 = 0.5;

pub(super) fn headlines(explained: &Explained) -> Vec<String> {
    let best = explained
        .explanations
        .iter()
        .min_by(|one, other| one.mean_error_pct.total_cmp(&other.mean_error_pct));
    let last = explained.separating.last();
    let best = best.map(|best| {
        format!(
            "The explanation with the smallest error is \"{}\": {} % on average, {} % at most, over the {} published runs that it was fitted to.",
            name(best.explanation),
            number(best.mean_error_pct),
            number(best.max_error_pct),
            explained.runs.len()
        )
    });
    let ends = last.map(|last| {
        let of = |explanation| value(last, explained, explanation);
        format!(
            "The run that would separate the explanations is {} pinned to node {}: {} operations a second if moves between siblings are the cause, \
             {} if node 1 is slow.",
            last.policy.name(),
            last.node,
            of(Explanation::SiblingMoves),
            of(Explanation::SlowNode)
        )
    });
    best.into_iter().chain(ends).collect()
}

fn value(row: &Predicts, explained: &Explained, explanation: Explanation) -> String {
    let mut simulated = explained.explanations.iter().zip(&row.simulated);
    let simulated = simulated.find(|(known, _)| known.explanation == explanation);
    or_empty(simulated.map(|(_, value)| number(*value)))
}

pub(super) fn sheets(explained: &Explained) -> Vec<Sheet> {
    vec![
        fits(explained),
        runs(explained),
        shares(explained),
        separating(explained),
    ]
}

fn name(explanation: Explanation) -> &'static str {
    match explanation {
        Explanation::NoCosts => "CPU time alone",
        Explanation::SiblingMoves => "sibling moves",
        Explanation::SlowNode => "slow node 1",
        Explanation::SlowNodeAndUsualCosts => "slow node 1, usual costs",
    }
}

fn fit(fit: &Fit) -> String {
    let on = match fit.on {
        FittedOn::AllRuns => "all 12 runs",
        FittedOn::NodeZero => "the 9 runs on node 0",
        FittedOn::NodeOne => "the 3 runs on node 1 (tables 2 and 4)",
        FittedOn::RunOne => "run 1 of table 2, x3950 2x2",
        FittedOn::SharesOfRunOne => "the shares of run 1 of table 2, x3950 2x2",
    };
    let value = match fit.parameter {
        Parameter::Rate => format!("{:.2} operations a second for each % of a CPU", fit.value),
        Parameter::SiblingMoveUs => format!("{} ms for each move to a sibling", number(fit.value / 1e3)),
        Parameter::NodeRate => format!("rate of node 1 {:.3}", fit.value),
        Parameter::SiblingChance => format!("{} % of wake-ups go to the sibling", number(fit.value * 100.0)),
    };
    format!("{value} ({on})")
}

fn fits(explained: &Explained) -> Sheet {
    let fields = columns![|row| &Fitted;
        "explanation" => name(row.explanation),
        "fitted (to the throughput of)" => joined(row.fits.iter().map(fit), "; "),
        "#mean error, %" => number(row.mean_error_pct), "#largest, %" => number(row.max_error_pct),
    ];
    let title = "Explanations of the published tables, and what was fitted for them";
    let mut sheet = Sheet::of(title, fields, explained.explanations.iter());
    sheet.note("usual costs, not fitted: a move to a sibling 30 us, to a core 1 ms, to a socket 1.5 ms; 35 % of the rate while the sibling is busy");
    sheet.note(format!("source: {}", explained.source));
    sheet
}

fn runs(explained: &Explained) -> Sheet {
    let input = columns![|run| &Explains;
        "table" => joined(&run.tables, ", "), "server" => run.server,
        "run" => run.run, "~ESX" => run.esx, "~SMT" => if run.hyperthreading { "on" } else { "off" }, "#node" => run.node,
        "#published" => number(run.published),
    ];
    let simulated = explained.explanations.iter().enumerate().flat_map(|(place, fitted)| {
        let how = |run: &Explains| match fitted.fits.iter().any(|fit| fit.on.has(run)) {
            true => "fitted",
            false => "predicted",
        };
        columns![|run| &Explains;
            (format!("#{}", name(fitted.explanation))) => format!("{} {}", number(*run.simulated.get(place)?), how(run)),
        ]
    });
    let title = "Explained: throughput in operations a second, published and simulated";
    let mut sheet = Sheet::of(title, input.into_iter().chain(simulated), explained.runs.iter());
    sheet.note("fitted: throughput of that run is among what a parameter was chosen by; predicted: it is not");
    sheet.note("input: where the virtual CPUs were seen, and their CPU time; x3950 4x2 has its siblings off by the limit of 16 logical CPUs");
    sheet
}

fn shares(explained: &Explained) -> Sheet {
    let fields = columns![|run| &Explains;
        "server" => run.server, "run" => run.run, "~ESX" => run.esx, "CPU: published / simulated %" => places(run),
        "#sibling moves/s" => number(run.moves_per_s[0]), "#other/s" => number(run.moves_per_s[1..].iter().sum()),
    ];
    let title = "Shares of CPUs: an input, as they come out again";
    let mut sheet = Sheet::of(title, fields, explained.runs.iter());
    sheet.note(format!(
        "CPUs with less than {SMALL} % are left out, which is the hypervisor's own work; mean distance over all CPUs {} % of a CPU",
        number(explained.share_error)
    ));
    let slow_node = explained
        .explanations
        .iter()
        .position(|fitted| fitted.explanation == Explanation::SlowNode);
    for (run, (left, all)) in explained.runs.iter().filter_map(|run| Some((run, left_out(run)?))) {
        sheet.note(format!(
            "{} {}: {} % on CPUs that are simulated with 0 is taken for work of others, and left out: two virtual CPUs cannot use the {} % of the table",
            run.server,
            run.run,
            number(left),
            number(all)
        ));
        if let Some(simulated) = slow_node.and_then(|place| run.simulated.get(place)) {
            let counted = simulated * all / (all - left);
            sheet.note(format!(
                "if the guest had used it, \"slow node 1\" would make {} operations a second of that run, {} % too many",
                number(counted),
                number((counted / run.published - 1.0) * 100.0)
            ));
        }
    }
    sheet
}

/// Shares that two virtual CPUs cannot have had beside the others, which the input leaves out, and the sum of all.
fn left_out(run: &Explains) -> Option<(f64, f64)> {
    let guests = || run.published_shares.iter().zip(&run.simulated_shares).skip(1);
    let left = guests().filter(|(published, simulated)| **published >= SMALL && **simulated < SMALL);
    let left: f64 = left.map(|(published, _)| published).sum();
    let all: f64 = guests().map(|(published, _)| published).sum();
    (left > 0.0 && all > 200.0).then_some((left, all))
}

fn places(run: &Explains) -> String {
    let pairs = run.published_shares.iter().zip(&run.simulated_shares).enumerate();
    let shown = pairs.filter(|(_, (published, simulated))| **published >= SMALL || **simulated >= SMALL);
    let texts =
        shown.map(|(cpu, (published, simulated))| format!("{cpu}: {} / {}", number(*published), number(*simulated)));
    joined(texts, ", ")
}

fn separating(explained: &Explained) -> Sheet {
    let input = columns![|row| &Predicts;
        "policy" => row.policy.name(), "#node" => row.node,
        "#published mean" => or(row.published.map(number), "not in the paper"),
    ];
    let simulated = explained.explanations.iter().enumerate().flat_map(|(place, fitted)| {
        let head = format!("#{}", name(fitted.explanation));
        columns![|row| &Predicts; (head) => number(*row.simulated.get(place)?)]
    });
    let title = "Predicted: x3950 2x2 pinned to one node, placed by the policy alone";
    let mut sheet = Sheet::of(title, input.into_iter().chain(simulated), explained.separating.iter());
    sheet.note(format!(
        "input: the mean CPU time of all runs, and for esx-2.5.2 {}; nothing was fitted to these rows, but the published means are of runs \
         that the explanations were fitted to",
        fit(&explained.sibling_chance)
    ));
    sheet
}
