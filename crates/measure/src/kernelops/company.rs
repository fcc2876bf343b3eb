//! How much processor time other processes used, by the kernel's counters.

use host::processes::Stat;

/// Processor time up to now, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Company {
    /// All time of all CPUs.
    total: u64,
    /// What was not idle, the time that the hypervisor gave to others included.
    busy: u64,
    /// What this process and the children it has waited for used of that.
    own: u64,
}

impl Company {
    /// Reads the accounts; `None` if they are not there or not of the known form.
    pub(super) fn now() -> Option<Self> {
        let stat = std::fs::read_to_string("/proc/stat").ok()?;
        let own = std::fs::read_to_string("/proc/self/stat").ok()?;
        Self::parse(&stat, &own)
    }

    fn parse(stat: &str, own: &str) -> Option<Self> {
        // user nice system idle iowait irq softirq steal (proc_stat(5)); guest time is contained in user and nice.
        let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let numbers = line.split_whitespace().take(8).map(|number| number.parse().ok());
        let all = numbers.collect::<Option<Vec<u64>>>().filter(|all| all.len() == 8)?;
        let total = all.iter().sum();
        Some(Self {
            total,
            busy: total - all[3] - all[4],
            own: Stat::parse(own)?.ticks()?.iter().sum(),
        })
    }

    /// The share of all processor time since then that others used, from 0 to 1.
    pub(super) fn others_until(self, later: Self) -> Option<f64> {
        let total = later.total.checked_sub(self.total).filter(|&total| total > 0)?;
        let busy = later.busy.saturating_sub(self.busy);
        let own = later.own.saturating_sub(self.own);
        Some(busy.saturating_sub(own) as f64 / total as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::Company;

    fn at(busy: u64, idle: u64, own: u64) -> Company {
        let stat = format!("cpu  {busy} 0 0 {idle} 0 0 0 0 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\n");
        let own = format!("42 (a ) b) S 1 1 1 0 -1 0 9 9 9 9 {own} 0 0 0 20 0 1\n");
        Company::parse(&stat, &own).expect("of the known form")
    }

    #[test]
    fn what_neither_was_idle_nor_ours_was_others() {
        let others = at(100, 100, 10).others_until(at(160, 140, 40));
        assert_eq!(others, Some(0.3));
        assert_eq!(at(1, 1, 0).others_until(at(1, 1, 0)), None, "no time has passed");
    }

    #[test]
    fn accounts_of_another_form_are_no_zero() {
        assert_eq!(Company::parse("cpu  1 2 3\n", "1 (a) S"), None);
        assert_eq!(Company::parse("", ""), None);
        assert!(Company::now().is_some(), "this kernel's are of the known form");
    }
}
