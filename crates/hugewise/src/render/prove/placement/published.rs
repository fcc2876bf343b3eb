//! A published study of placement: its tables, and what follows from them.

use model::placement::{Published, PublishedRun};

use crate::show::Show;
use draw::{Lines, Sheet, columns, joined, lines, number, or_empty};

impl Show for Published {
    fn title(&self) -> String {
        self.source.clone()
    }

    fn headlines(&self) -> Vec<String> {
        let ([low, high], [least, most]) = (self.fast, self.slow);
        vec![format!(
            "Runs with their time on node 0 make {low:.1} to {high:.1} operations a second for each percent of a CPU, those on node 1 {least:.1} \
             to {most:.1}. The node explains R² = {:.3} of that, the time on both siblings of a core {:.2}.",
            self.node_r2, self.sibling_r2
        )]
    }

    fn sheets(&self) -> Vec<Sheet> {
        vec![tables(self), analysis(self)]
    }

    fn csv(&self) -> Lines<'_> {
        let fields = columns![|(run, cpu, share)| (&PublishedRun, usize, f64);
            server => run.server, run => run.run, esx => run.esx, hyperthreading => run.hyperthreading,
            throughput => run.throughput, cpu => cpu, percent => share,
        ];
        lines(fields, self.runs.iter().flat_map(shares))
    }
}

/// A run with each of its CPUs.
fn shares(run: &PublishedRun) -> impl Iterator<Item = (&PublishedRun, usize, f64)> {
    let shares = run.shares.iter().enumerate();
    shares.map(move |(cpu, &share)| (run, cpu, share))
}

fn name(run: &PublishedRun) -> String {
    let ht = if run.hyperthreading { "" } else { " no HT" };
    format!("{} {} {}{ht}", run.server, run.esx, run.run)
}

/// CPUs down, runs across, as published.
fn tables(published: &Published) -> Sheet {
    let title = "Throughput and share of time on each CPU, %";
    let heads = published.runs.iter().map(|run| format!("#{}", name(run)));
    let mut sheet = Sheet::new(title, ["".to_owned()].into_iter().chain(heads));
    let mut row = |name: String, of: &dyn Fn(&PublishedRun) -> String| {
        sheet.row([name].into_iter().chain(published.runs.iter().map(of)));
    };
    row("in table".to_owned(), &|run| joined(&run.tables, ", "));
    row("operations a second".to_owned(), &|run| number(run.throughput));
    let cpus = published.runs.iter().map(|run| run.shares.len()).max().unwrap_or(0);
    for cpu in 0..cpus {
        row(format!("CPU {cpu}"), &|run| or_empty(run.shares.get(cpu)));
    }
    sheet.note(format!("source: {}", published.source));
    sheet
}

fn analysis(published: &Published) -> Sheet {
    let fields = columns![|run| &PublishedRun;
        "run" => name(run), "#node" => run.node, "#CPU % of the guest" => number(run.cpu_pct),
        "#operations for each %" => format!("{:.1}", run.per_cpu_pct),
        "#% on both siblings" => format!("{:.1}", run.sibling_pct),
    ];
    let mut sheet = Sheet::of("Efficiency apart from residency", fields, published.runs.iter());
    NOTES.iter().for_each(|note| sheet.note(note));
    sheet
}

const NOTES: [&str; 7] = [
    "CPU % of the guest: the half of the CPUs with most of the time, without CPU 0, where ESX runs its console; other background load stays in it",
    "% on both siblings: for each core the smaller share of its two CPUs, which is the most that both can have been busy",
    "this leaves 30.7 points of CPU time of the x3850 out; with all CPUs R² is 0.66 for the node and 0.25 for the siblings",
    "with the two busiest CPUs alone it is 0.03 for the node and 0.87 for the siblings: what is subtracted decides the order",
    "node 1 occurs only with ESX 2.5.2, Hyper-Threading and NUMA together: the tables cannot separate node, siblings and moves",
    "the run that would separate them, ESX 2.5.3 pinned to node 1, is not in the paper",
    "these figures explain the 12 runs; they predict nothing",
];
