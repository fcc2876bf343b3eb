//! A simulated schedule as tables: machines with their CPU time and waits, CPUs, where worlds ran, and a chart over time.

mod chart;
mod explained;

use studies::scheduler::{Costs, Denied, Idle, Reservation, Schedule, VmTime};

use crate::show::Show;
use draw::{Lines, Sheet, columns, counted, lines, number};

/// Virtual machines on a terminal.
const BRIEF: usize = 20;

impl Show for Schedule {
    fn title(&self) -> String {
        format!(
            "{} on {}, simulated: {}",
            self.policy.name(),
            counted(self.used.cpus() as usize, "logical CPU"),
            counted(self.vms.len(), "virtual machine")
        )
    }

    fn headlines(&self) -> Vec<String> {
        match &self.explained {
            Some(explained) => explained::headlines(explained),
            None => vec![headline(self)],
        }
    }

    fn sheets(&self) -> Vec<Sheet> {
        all(self, usize::MAX)
    }

    fn brief_sheets(&self) -> Vec<Sheet> {
        all(self, BRIEF)
    }

    fn csv(&self) -> Lines<'_> {
        let fields = columns![|vm| &VmTime;
            vm => vm.name, vcpus => vm.vcpus, shares => vm.shares, node => vm.node?, cpus => vm.cpus,
            entitled_cpus => vm.entitled_cpus, run_s => vm.run_s, ready_s => vm.ready_s,
            costopped_s => vm.costopped_s, asleep_s => vm.asleep_s, warming_s => vm.warming_s, work_s => vm.work_s,
            sibling_moves => vm.moves[0], core_moves => vm.moves[1], socket_moves => vm.moves[2],
            node_moves => vm.moves[3], wait_p50_us => vm.waits.p50_us, wait_p99_us => vm.waits.p99_us,
            wait_p999_us => vm.waits.p999_us, wait_longest_us => vm.waits.longest_us,
        ];
        lines(fields, self.vms.iter())
    }
}

fn all(schedule: &Schedule, most: usize) -> Vec<Sheet> {
    let explained = schedule.explained.iter().flat_map(explained::sheets);
    let mut sheets: Vec<Sheet> = explained.collect();
    sheets.push(machines(schedule, most));
    sheets.extend(reservations(&schedule.reservations).with_rows());
    sheets.extend(chart::residency(schedule));
    sheets.extend(chart::over_time(schedule));
    sheets
}

fn headline(schedule: &Schedule) -> String {
    let (fairness, waits) = (schedule.fairness, schedule.waits);
    format!(
        "{}: {} for each logical CPU. CPU time is {} % from what shares and load entitle to ({} % at most; Jain's index {:.3}). Waits for a CPU: \
         half are at most {}, 99 % {}, 99.9 % {}; the longest is {}.",
        schedule.policy.name(),
        counted_number(schedule.overcommit, "virtual CPU"),
        number(fairness.mean_error_pct),
        number(fairness.max_error_pct),
        fairness.jain,
        time(waits.p50_us),
        time(waits.p99_us),
        time(waits.p999_us),
        time(waits.longest_us)
    )
}

fn counted_number(value: f64, noun: &str) -> String {
    let s = if value == 1.0 { "" } else { "s" };
    format!("{} {noun}{s}", number(value))
}

/// Microseconds in the unit that is read best.
fn time(us: f64) -> String {
    match us {
        us if us >= 1e6 => format!("{} s", number(us / 1e6)),
        us if us >= 1e3 => format!("{} ms", number(us / 1e3)),
        us => format!("{} us", number(us)),
    }
}

fn machines(schedule: &Schedule, most: usize) -> Sheet {
    let title = match schedule.explained {
        Some(_) => "The last run of the table above with node 1 slow: CPU time, waits and moves".to_owned(),
        None => format!("CPU time, waits and moves in {} s", number(schedule.seconds)),
    };
    let seconds = schedule.seconds;
    let fields = columns![|vm| &VmTime;
        "machine" => vm.name, "~#vCPUs" => vm.vcpus, "~#shares" => vm.shares, "~#node" => vm.node?,
        "#CPUs" => number(vm.cpus), "#entitled" => number(vm.entitled_cpus),
        "#ready, %" => of_all(vm, vm.ready_s, seconds), "#co-stop, %" => of_all(vm, vm.costopped_s, seconds),
        "#work, CPUs" => number(vm.work_s / seconds), "#p99 wait" => time(vm.waits.p99_us),
        "#longest" => time(vm.waits.longest_us), "~#sibling/s" => number(vm.moves[0] as f64 / seconds),
        "~#core/s" => number(vm.moves[1] as f64 / seconds), "~#socket/s" => number(vm.moves[2] as f64 / seconds),
        "~#node/s" => number(vm.moves[3] as f64 / seconds),
    ];
    let mut sheet = Sheet::of(&title, fields, schedule.vms.iter().take(most));
    if schedule.vms.len() > most {
        sheet.note(format!("and {} more: --format csv has all", schedule.vms.len() - most));
    }
    sheet.note(
        "entitled: CPUs by shares, for no more than its load; ready, co-stop: of the time of its virtual CPUs, waiting for a CPU and for each other; \
         work: CPUs at full rate that would do the same; moves by kind a second",
    );
    sheet.note(costs(&schedule.costs));
    sheet
}

/// A part of the time of all its virtual CPUs, in per cent.
fn of_all(vm: &VmTime, part: f64, seconds: f64) -> String {
    number(part / (f64::from(vm.vcpus) * seconds) * 100.0)
}

fn costs(costs: &Costs) -> String {
    let [sibling, core, socket, node] = costs.warm_up_ns.map(|ns| time(ns as f64 / 1e3));
    let idle = match costs.idle {
        Idle::Halts => "idle siblings halt",
        Idle::Spins => "idle siblings spin, and take as much as busy ones",
    };
    let rates: Vec<String> = costs.node_rates.iter().map(|rate| format!("{rate:.3}")).collect();
    let rates = match rates.is_empty() {
        true => String::new(),
        false => format!("; rates of nodes {}", rates.join(", ")),
    };
    format!(
        "costs: a move to a sibling {sibling}, core {core}, socket {socket}, node {node}; {} % of the rate while siblings are busy; {} % while memory is on another \
         node; {idle}{rates}",
        number(costs.sibling_busy * 100.0),
        number(costs.remote_memory * 100.0)
    )
}

fn reservations(reservations: &[Reservation]) -> Sheet {
    let fields = columns![|row| &Reservation;
        "machine" => row.vm, "#needed, MHz" => row.needed_mhz, "#reserved, MHz" => row.reserved_mhz,
        "#cores free" => row.free_cores, "cores of its own" => granted(row.denied),
    ];
    let mut sheet = Sheet::of("Latency sensitivity high", fields, reservations.iter());
    sheet.note("needed: virtual CPUs x MHz of a core; cores free: those of the host, less what it keeps for itself, less those given before");
    sheet
}

fn granted(denied: Option<Denied>) -> &'static str {
    match denied {
        None => "yes",
        Some(Denied::NotFullyReserved) => "no: its reservation is too small",
        Some(Denied::TooFewCores) => "no: too few cores are free",
        Some(Denied::NoneLeftForOthers) => "no: none would be left for the others",
    }
}
