//! Time lost to translation: what the simulation of translation says for each page size behind a working set.

use std::collections::BTreeSet;

use model::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::scenario::{Translation, Vm};
use translation::Mode;
use translation::machine::Machine;
use translation::study::{Case, Range, Setting, Study, run};

/// The least working set that is simulated.
const LEAST: u64 = 16 << 20;
/// The largest one.
const MOST: u64 = 64 << 30;

/// The part of the time that is lost to translation with a working set, by backing.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PatternCost {
    /// Memory that is accessed, in bytes.
    pub working_set: Bytes,
    /// On base pages, from 0 to 1.
    pub small: Range,
    /// On huge pages.
    pub large: Range,
    /// On 1 GiB pages.
    pub giant: Range,
}

impl PatternCost {
    pub(super) fn parts(&self) -> [Range; 3] {
        [self.small, self.large, self.giant]
    }
}

/// The working set of a machine that stands for it: the next power of two.
pub(super) fn working_set(vm: &Vm) -> Bytes {
    let active = ((u128::from(vm.memory.0) * u128::from(vm.used) * u128::from(vm.active)) >> 32) as u64;
    Bytes(active.clamp(LEAST, MOST).next_power_of_two().min(MOST))
}

/// The costs of each working set of the machines.
///
/// # Errors
/// What the CPU cannot do.
pub(super) fn costs(translation: &Translation, vms: &[Vm], seed: u64) -> Result<Vec<PatternCost>, String> {
    let Translation::Pattern {
        machine,
        mode,
        pattern,
        guest_page,
        other_cycles,
        accesses,
    } = translation
    else {
        return Ok(Vec::new());
    };
    let sets: BTreeSet<Bytes> = vms.iter().map(working_set).collect();
    let settings = settings(*mode, *guest_page, machine);
    let study = Study {
        machine: (**machine).clone(),
        pattern: *pattern,
        working_sets: sets.into_iter().collect(),
        settings: settings.to_vec(),
        baseline: settings[1],
        accesses: *accesses,
        warm_up: *accesses,
        seed,
    };
    let cases = run(&study, &|_, _| {}).map_err(|error| error.to_string())?.cases;
    let each = cases.chunks(settings.len()).zip(&study.working_sets);
    let cost = |(cases, &working_set): (&[Case], &Bytes)| {
        let [small, large, giant] = [0, 1, 2].map(|place| part(&cases[place], *other_cycles));
        PatternCost {
            working_set,
            small,
            large,
            giant,
        }
    };
    Ok(each.map(cost).collect())
}

/// Base pages, huge pages, 1 GiB pages behind the guest; a CPU without the latter has huge pages in their place.
fn settings(mode: Mode, guest_page: Bytes, machine: &Machine) -> [Setting; 3] {
    let giant = Bytes::gib(1);
    let giant = if machine.maps(giant) { giant } else { Bytes::mib(2) };
    [Bytes::kib(4), Bytes::mib(2), giant].map(|host| match mode {
        // One page table: an entry covers the smaller of both pages.
        Mode::Native | Mode::Shadow => Setting::new(mode, host.min(guest_page), host.min(guest_page)),
        Mode::Nested => Setting::new(mode, guest_page, host),
    })
}

/// The part of the time that is neither other work nor waiting for data. First touches are over, so exits are left out.
fn part(case: &Case, other: f64) -> Range {
    let (tlb, walks, data) = (case.cycles.tlb, case.cycles.walks, case.cycles.data);
    let of = |translation: f64, data: f64| match translation + data + other {
        all if all > 0.0 => translation / all,
        _ => 0.0,
    };
    Range::new(
        of(tlb.low + walks.low, data.high),
        of(tlb.middle + walks.middle, data.middle),
        of(tlb.high + walks.high, data.low),
    )
}
