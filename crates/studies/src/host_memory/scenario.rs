//! What is asked: a host, its virtual machines with the content of their memory, policies, and the kernel's settings.

use std::collections::BTreeSet;

use model::Bytes;

use super::kernel::{Khugepaged, Ksm};
use super::policy::Policy;
use super::states::States;
use super::{Ns, PAGE, REGION};
use translation::Mode;
use translation::machine::Machine;
use translation::patterns::Pattern;

/// The most machines.
pub(super) const MOST_VMS: usize = 10_000;
/// The most memory of all machines together: 64 TiB.
pub(super) const MOST_MEMORY: u64 = 1 << 46;
/// The longest time, in seconds: a week.
pub(super) const LONGEST: u64 = 604_800;
/// The most steps.
pub(super) const MOST_STEPS: u64 = 1_000_000;
/// Parts of one.
pub(super) const WHOLE: u32 = 1 << 16;

/// The host.
#[derive(Clone, Debug, PartialEq)]
pub struct Host {
    pub memory: Bytes,
    /// What it uses itself.
    pub used: Bytes,
    /// Does it back guests with huge pages (Mem.AllocGuestLargePage)?
    pub large_pages: bool,
    /// Of 65,536 parts of its free memory, those that lie in blocks that are not whole.
    pub fragmented: u32,
}

/// What the pages of a machine hold, in parts of 65,536.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content {
    pub zero: u32,
    /// What other machines with the same content hold, too.
    pub common: u32,
    /// What is written all the time.
    pub volatile: u32,
    /// How far zeros and common pages lie together: 0 spreads them evenly, all parts put them into regions of their own.
    pub clustered: u32,
}

/// The page size that a machine asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pages {
    /// What the host gives.
    #[default]
    Any,
    /// 1 GiB pages, with all memory reserved.
    Giant,
    /// 2 MiB pages of a pool (hugetlbfs), which are reserved: never broken, merged or swapped.
    Pool,
}

/// One virtual machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Vm {
    pub name: String,
    /// Its memory; a whole number of huge pages.
    pub memory: Bytes,
    /// Of 65,536 parts of its memory, those that it touches at all.
    pub used: u32,
    /// Pages of 4 KiB that it touches a second until then.
    pub touch: u64,
    /// Of 65,536 parts of what it touched, those that it goes on using all the time.
    pub active: u32,
    /// What its pages hold.
    pub content: Content,
    /// Machines with the same word have common pages in common.
    pub group: String,
    /// ESXi 6 and later share pages between machines with the same salt (`sched.mem.pshare.salt`); none is one of its own.
    pub salt: Option<String>,
    /// Of 65,536 shared pages, those that are written within an hour.
    pub rewritten: u32,
    /// Shares of memory.
    pub shares: u64,
    /// May it have huge pages (monitor_control.disable_mmu_largepages)?
    pub large_pages: bool,
    /// What it asks for.
    pub pages: Pages,
    /// Is all of its memory reserved? Then none of it is ballooned, compressed or swapped.
    pub is_reserved: bool,
    /// Virtual CPUs, all busy.
    pub vcpus: u32,
}

impl Vm {
    /// A machine that touches all of its memory within ten minutes, with usual content.
    pub fn new(name: &str, memory: Bytes) -> Self {
        Self {
            name: name.to_owned(),
            memory,
            used: WHOLE,
            touch: (memory.0 / PAGE / 600).max(1),
            active: WHOLE / 4,
            content: Content {
                zero: WHOLE / 20,
                common: WHOLE / 5,
                volatile: WHOLE / 10,
                clustered: WHOLE / 2,
            },
            group: name.to_owned(),
            salt: None,
            rewritten: 0,
            shares: (memory.0 >> 20) * 10,
            large_pages: true,
            pages: Pages::Any,
            is_reserved: false,
            vcpus: 1,
        }
    }

    pub(super) fn regions(&self) -> u32 {
        (self.memory.0 / REGION) as u32
    }
}

/// How fast the host works, in pages of 4 KiB a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rates {
    /// The scan for equal pages of ESX; none for all memory in an hour (Mem.ShareScanTime 60).
    pub scan: Option<u64>,
    /// The same when memory is short.
    pub rush: u64,
    /// Swapping in and out together.
    pub swap: u64,
    pub balloon: u64,
    /// Pages moved to make whole blocks.
    pub compact: u64,
}

impl Default for Rates {
    /// 1 GiB/s, 200 MiB/s, 256 MiB/s and 100 MiB/s: none has a public source.
    fn default() -> Self {
        let mib = |count: u64| (count << 20) / PAGE;
        Self {
            scan: None,
            rush: mib(1024),
            swap: mib(200),
            balloon: mib(256),
            compact: mib(100),
        }
    }
}

/// How the time lost to translation is found.
#[derive(Clone, Debug)]
pub enum Translation {
    None,
    /// From a pattern of accesses on a CPU.
    Pattern {
        machine: Box<Machine>,
        mode: Mode,
        /// How the active memory is accessed.
        pattern: Pattern,
        guest_page: Bytes,
        /// Cycles of other work for each access.
        other_cycles: f64,
        /// Accesses simulated for each page size and working set.
        accesses: u64,
    },
}

/// A content, and where salt counts a salt, or the number of a machine without one.
pub(super) type Sharers<'a> = (&'a str, Option<Result<&'a str, usize>>);

/// What is asked.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub host: Host,
    /// Its machines.
    pub vms: Vec<Vm>,
    /// Policies, each simulated by itself.
    pub policies: Vec<Policy>,
    /// States of free memory under ESX's policies; those of Linux have their own.
    pub states: States,
    /// How fast the host works.
    pub rates: Rates,
    /// Of 100 parts, those that idle memory costs more by: 75 in ESX.
    pub idle_tax: u32,
    /// Of 65,536 pages, those that compress to half of their size.
    pub compressible: u32,
    /// Of 65,536 pages of a huge page, those that have to be shareable for it to be broken by shareability.
    pub least_share: u32,
    /// Minutes until each cold region is touched once.
    pub cold_minutes: u32,
    /// Same-page merging.
    pub ksm: Ksm,
    /// Collapsing.
    pub khugepaged: Khugepaged,
    /// What translation costs.
    pub translation: Translation,
    /// Time simulated.
    pub duration_ns: Ns,
    /// Time of a step.
    pub step_ns: Ns,
    /// Seed of all chance.
    pub seed: u64,
}

impl Scenario {
    /// An hour in steps of a second under all policies that differ, ESXi 6 and Linux as they come.
    pub fn new(host: Host, vms: Vec<Vm>, seed: u64) -> Self {
        Self {
            host,
            vms,
            policies: vec![Policy::NeverBreak, Policy::BreakAll, Policy::Shareability, Policy::Ksm],
            states: States::Esx6,
            rates: Rates::default(),
            idle_tax: 75,
            compressible: WHOLE / 2,
            least_share: WHOLE / 8,
            cold_minutes: 60,
            ksm: Ksm::default(),
            khugepaged: Khugepaged::default(),
            translation: Translation::None,
            duration_ns: 3600 * 1_000_000_000,
            step_ns: 1_000_000_000,
            seed,
        }
    }

    /// Does it add up?
    ///
    /// # Errors
    /// What is wrong, with what is expected.
    pub fn check(&self) -> Result<(), String> {
        check_host(&self.host)?;
        if self.vms.is_empty() || self.vms.len() > MOST_VMS {
            return Err(format!("{} virtual machines: expected 1 to {MOST_VMS}", self.vms.len()));
        }
        if self.policies.is_empty() {
            return Err("no policy: expected at least one".to_owned());
        }
        let all: u64 = self.vms.iter().map(|vm| vm.memory.0).sum();
        if all > MOST_MEMORY {
            return Err(format!(
                "virtual machines of {}: expected at most {}",
                Bytes(all),
                Bytes(MOST_MEMORY)
            ));
        }
        if self.step_ns == 0 || !(1..=MOST_STEPS).contains(&(self.duration_ns / self.step_ns)) {
            return Err(format!("expected 1 to {MOST_STEPS} steps within the time simulated"));
        }
        self.vms.iter().try_for_each(check_vm)?;
        check_reserved(&self.host, &self.vms)?;
        self.check_cost(1)
    }

    /// Machines with equal answers share what their pages have in common: all with the same content, and of ESXi 6 and later
    /// (`Mem.ShareForceSalting` 2) those of them with the same salt.
    pub(super) fn shares_with(&self, number: usize, policy: Policy) -> Sharers<'_> {
        let vm = &self.vms[number];
        let salt = self.is_salted(policy).then(|| vm.salt.as_deref().ok_or(number));
        (&vm.group, salt)
    }

    /// A content that several machines have, and do not share under a policy for their salts.
    pub fn unshared(&self) -> Option<&str> {
        let salted = *self.policies.iter().find(|policy| self.is_salted(**policy))?;
        let all: BTreeSet<Sharers<'_>> = (0..self.vms.len())
            .map(|number| self.shares_with(number, salted))
            .collect();
        let mut contents = all.into_iter().map(|(content, _)| content);
        let mut before = contents.next()?;
        contents.find(|content| std::mem::replace(&mut before, content) == *content)
    }

    /// The states of free memory under a policy: Linux has its own.
    pub(super) fn states_under(&self, policy: Policy) -> States {
        match policy.is_linux() {
            true => States::Linux,
            false => self.states,
        }
    }

    fn is_salted(&self, policy: Policy) -> bool {
        !policy.is_linux() && self.states == States::Esx6
    }

    /// Memory of all machines, in pages.
    pub(super) fn pages(&self) -> u64 {
        self.vms.iter().map(|vm| vm.memory.0 / PAGE).sum()
    }
}

pub(super) fn check_host(host: &Host) -> Result<(), String> {
    if host.memory.0 < 1 << 28 || host.memory.0 > MOST_MEMORY {
        return Err(format!(
            "memory of {}: expected 256M to {}",
            host.memory,
            Bytes(MOST_MEMORY)
        ));
    }
    if host.used >= host.memory {
        return Err(format!("the host uses {} of {}: expected less", host.used, host.memory));
    }
    Ok(())
}

pub(super) fn check_vm(vm: &Vm) -> Result<(), String> {
    let fail = |what: String| Err(format!("virtual machine {}: {what}", vm.name));
    if vm.memory.0 < REGION || !vm.memory.0.is_multiple_of(REGION) {
        return fail(format!(
            "memory of {}: expected a whole number of 2M, at least one",
            vm.memory
        ));
    }
    if vm.pages == Pages::Giant && !vm.memory.0.is_multiple_of(1 << 30) {
        return fail(format!(
            "memory of {} on 1G pages: expected a whole number of 1G",
            vm.memory
        ));
    }
    let content = vm.content;
    let parts = u64::from(content.zero) + u64::from(content.common) + u64::from(content.volatile);
    // Each part is rounded by itself.
    if parts > u64::from(WHOLE) + 2 {
        let part = |parts: u64| parts as f64 / f64::from(WHOLE);
        return fail(format!(
            "zero, common and volatile are {:.3} together: expected at most 1",
            part(parts)
        ));
    }
    if !(1..=1_000_000_000).contains(&vm.shares) {
        return fail(format!("{} shares: expected 1 to 1000000000", vm.shares));
    }
    Ok(())
}

/// Reserved memory cannot be overcommitted.
fn check_reserved(host: &Host, vms: &[Vm]) -> Result<(), String> {
    let reserved: u64 = vms
        .iter()
        .filter(|vm| vm.is_reserved || vm.pages != Pages::Any)
        .map(|vm| vm.memory.0)
        .sum();
    let free = host.memory.0 - host.used.0;
    if reserved > free {
        return Err(format!(
            "virtual machines with reserved memory need {}: expected at most {}, which the host has left",
            Bytes(reserved),
            Bytes(free)
        ));
    }
    Ok(())
}
