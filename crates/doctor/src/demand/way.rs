//! How a pool is made larger: in the file that sets it, or as the machine is set up.

use model::Bytes;
use programs::Evidence;
use programs::config::{BootLine, Distribution};

use crate::facts::{by_unit, distribution, filled_from_cma};

pub(super) struct Way {
    /// Without a machine, the line that sets the pool.
    file: Option<FileLine>,
    /// How the machine is set up, if there is one.
    machine: Option<Distribution>,
    /// The file of the pool, where a unit fills it.
    by_unit: Option<String>,
    /// Does the pool come with the kernel's start?
    pub(super) is_at_boot: bool,
}

impl Way {
    pub(super) fn of(evidence: &Evidence, page: Bytes, default: Bytes) -> Self {
        let file = FileLine::of(evidence, page, default);
        // sysctl sets the pool of the default size only.
        let of_size = page >= Bytes::gib(1) || page != default;
        Self {
            is_at_boot: file.as_ref().map_or(of_size, |file| file.is_boot),
            machine: evidence.has_machine.then(|| distribution(evidence)),
            by_unit: filled_from_cma(evidence, page).filter(|_| evidence.has_machine),
            file,
        }
    }

    /// How so many pages are requested: where a file of those given sets the pool, in its place.
    pub(super) fn ask(&self, page: Bytes, pages: u64) -> String {
        let (name, is_boot) = ("vm.nr_hugepages", self.is_at_boot);
        let parameters = || format!("hugepagesz={} hugepages={pages}", page.exact());
        match (&self.file, self.machine) {
            (Some(file), _) => match file.old {
                Some(old) if is_boot => format!("{pages} in place of {old} in {}", file.place),
                Some(old) => format!("{name} = {pages} in place of {old} in {}", file.place),
                None => format!("{}, beside what {} sets", parameters(), file.place),
            },
            (None, Some(machine)) if is_boot => match &self.by_unit {
                Some(file) => by_unit(file, pages),
                None => machine.add_boot_parameters(&parameters()),
            },
            (None, Some(machine)) if machine.is_configured_whole() => machine.keep_setting(name, pages),
            (None, None) if is_boot => format!("{} on the boot command line", parameters()),
            (None, _) => format!("{name} = {pages} in /etc/sysctl.d"),
        }
    }
}

/// A line of a file that was given, for the size of a pool.
struct FileLine {
    place: String,
    /// The pages that it sets; `None` of a boot line that sets other pools.
    old: Option<u64>,
    is_boot: bool,
}

impl FileLine {
    /// The one that counts: sysctl's is applied after those of the boot command line. None where the machine shows its pools.
    fn of(evidence: &Evidence, page: Bytes, default: Bytes) -> Option<Self> {
        let given = Some(&evidence.files).filter(|_| !evidence.has_machine)?;
        let set = given.sysctl.number("vm.nr_hugepages").ok().flatten();
        if let Some((pages, line)) = set.filter(|_| page == default) {
            return Some(Self {
                place: line.place.clone(),
                old: Some(pages),
                is_boot: false,
            });
        }
        let lines = || given.boot.iter().rev();
        let pages = |line: &BootLine| line.boot.pages_of(page, Some(default));
        let line = lines().find(|line| pages(line).is_some());
        let line = line.or_else(|| lines().next().filter(|_| page != default))?;
        Some(Self {
            place: line.place.clone(),
            old: pages(line),
            is_boot: true,
        })
    }
}
