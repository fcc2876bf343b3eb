//! Published tables of placement, and what follows from them by arithmetic alone.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Tables 2 to 4 of IBM's study of the scheduler of ESX Server 2.5, with their source: `placement diff` and the simulator read them.
const IBM_2006: &str = include_str!("../../data/ibm-2006.json");

/// A published study: its runs and what follows from them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Published {
    /// Where it was published.
    pub source: String,
    /// Its runs.
    pub runs: Vec<PublishedRun>,
    /// The least and the most operations a second for each percent of a CPU, of the runs on the fast node.
    pub fast: [f64; 2],
    /// The same of the runs on the other node.
    pub slow: [f64; 2],
    /// How much of the variance of that the node explains (R squared).
    pub node_r2: f64,
    /// How much the share of time on both siblings of a core explains.
    pub sibling_r2: f64,
}

/// One run of a published study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PublishedRun {
    /// The tables that have it.
    pub tables: Vec<u32>,
    /// The server.
    pub server: String,
    /// Its name there.
    pub run: String,
    /// The version of the hypervisor.
    pub esx: String,
    /// Was Hyper-Threading on?
    pub hyperthreading: bool,
    /// Is the server one of several nodes?
    pub numa: bool,
    /// Threads of a core that the hypervisor used: consecutive CPUs.
    pub threads_per_core: u32,
    /// Operations a second.
    pub throughput: f64,
    /// Share of time on each CPU in percent.
    pub shares: Vec<f64>,
    /// The half of the CPUs with more of the time: 0 or 1.
    #[serde(default)]
    pub node: u32,
    /// CPU percent of the virtual machine: that half, without CPU 0, where the hypervisor's console runs.
    #[serde(default)]
    pub cpu_pct: f64,
    /// Operations a second for each of these percent.
    #[serde(default)]
    pub per_cpu_pct: f64,
    /// The share of these percent in which both siblings of a core may have been busy, in percent.
    #[serde(default)]
    pub sibling_pct: f64,
}

#[derive(Deserialize)]
struct Data {
    source: String,
    runs: Vec<PublishedRun>,
}

/// IBM's study of the scheduler of VMware ESX Server 2.5.2 and 2.5.3.
///
/// # Errors
/// None but a mistake in the data that this crate carries.
pub fn ibm_2006() -> Result<Published, serde_json::Error> {
    let Data { source, runs } = serde_json::from_str(IBM_2006)?;
    let runs: Vec<PublishedRun> = runs.into_iter().map(worked_out).collect();
    let values = |of: fn(&PublishedRun) -> f64| runs.iter().map(of).collect::<Vec<f64>>();
    let efficiency = values(|run| run.per_cpu_pct);
    Ok(Published {
        source,
        fast: ends(runs.iter().filter(|run| run.node == 0)),
        slow: ends(runs.iter().filter(|run| run.node == 1)),
        node_r2: r_squared(&values(|run| f64::from(run.node)), &efficiency),
        sibling_r2: r_squared(&values(|run| run.sibling_pct), &efficiency),
        runs,
    })
}

/// A run with what its shares say. CPU 0 runs the hypervisor's console, whatever the guest does.
fn worked_out(run: PublishedRun) -> PublishedRun {
    let mut guest = run.shares.clone();
    if let Some(console) = guest.first_mut() {
        *console = 0.0;
    }
    let (first, second) = guest.split_at(guest.len() / 2);
    let sum = |shares: &[f64]| shares.iter().sum::<f64>();
    let is_second = sum(second) > sum(first);
    let home = if is_second { second } else { first };
    let cpu_pct = sum(home);
    let both: f64 = match run.threads_per_core {
        2 => home
            .chunks(2)
            .map(|core| core.iter().copied().fold(f64::INFINITY, f64::min))
            .sum(),
        _ => 0.0,
    };
    PublishedRun {
        node: u32::from(is_second),
        cpu_pct,
        per_cpu_pct: run.throughput / cpu_pct,
        sibling_pct: both / cpu_pct * 100.0,
        ..run
    }
}

fn ends<'a>(runs: impl Iterator<Item = &'a PublishedRun>) -> [f64; 2] {
    runs.fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], run| {
        [low.min(run.per_cpu_pct), high.max(run.per_cpu_pct)]
    })
}

/// The share of the variance of `y` that a straight line over `x` explains.
fn r_squared(x: &[f64], y: &[f64]) -> f64 {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (x_mean, y_mean) = (mean(x), mean(y));
    let sum = |of: &dyn Fn(f64, f64) -> f64| x.iter().zip(y).map(|(x, y)| of(x - x_mean, y - y_mean)).sum::<f64>();
    sum(&|x, y| x * y).powi(2) / (sum(&|x, _| x * x) * sum(&|_, y| y * y))
}

#[cfg(test)]
mod tests {
    use super::ibm_2006;

    fn rounded(value: f64, digits: i32) -> f64 {
        (value * 10_f64.powi(digits)).round() / 10_f64.powi(digits)
    }

    #[test]
    fn what_is_subtracted_decides_what_explains_efficiency() {
        let runs = ibm_2006().expect("the data").runs;
        let nodes: Vec<f64> = runs.iter().map(|run| f64::from(run.node)).collect();
        let both = |run: &super::PublishedRun| run.sibling_pct * run.cpu_pct;
        let of = |time: &dyn Fn(&[f64]) -> f64| {
            let times: Vec<f64> = runs.iter().map(|run| time(&run.shares)).collect();
            let efficiency: Vec<f64> = runs
                .iter()
                .zip(&times)
                .map(|(run, time)| run.throughput / time)
                .collect();
            let siblings: Vec<f64> = runs.iter().zip(&times).map(|(run, time)| both(run) / time).collect();
            [&nodes, &siblings].map(|x| rounded(super::r_squared(x, &efficiency), 2))
        };
        let busiest = |shares: &[f64]| {
            let mut sorted = shares.to_vec();
            sorted.sort_by(|one, other| other.total_cmp(one));
            sorted[..2].iter().sum()
        };
        let [all, two] = [of(&|shares| shares.iter().sum()), of(&busiest)];
        assert!(all[0] < 0.7 && all[0] > all[1], "{all:?}");
        assert!(two[0] < 0.1 && two[1] > 0.8, "{two:?}");
        let x3850 = runs.iter().find(|run| run.server == "x3850").expect("a run");
        let left_out = x3850.shares.iter().skip(1).sum::<f64>() - x3850.cpu_pct;
        assert_eq!(rounded(left_out, 1), 30.7);
    }

    #[test]
    fn the_slow_runs_of_ibm_are_those_on_node_1_and_only_one_of_them_shares_cores() {
        let published = ibm_2006().expect("the data");
        assert_eq!(published.runs.len(), 12);
        assert_eq!(published.fast.map(|value| rounded(value, 1)), [56.0, 57.1]);
        assert_eq!(published.slow.map(|value| rounded(value, 1)), [46.4, 48.4]);
        assert_eq!(
            (rounded(published.node_r2, 2), rounded(published.sibling_r2, 2)),
            (0.98, 0.21)
        );
        let slow: Vec<f64> = published
            .runs
            .iter()
            .filter(|run| run.node == 1)
            .map(|run| rounded(run.sibling_pct, 1))
            .collect();
        assert_eq!(slow, [28.7, 0.7, 0.2]);
        let cpu = |run: &super::PublishedRun| (173.0..181.0).contains(&run.cpu_pct);
        assert!(published.runs.iter().all(cpu));
    }
}
