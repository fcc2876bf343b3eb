//! "What if" on a captured host: each change simulated over many draws of what a capture does not show.

use model::Bytes;

use super::engine::SECOND;
use super::lost::costs;
use super::result::outcome;
use super::scenario::WHOLE;
pub use super::what_if::{Advice, Change, Drawn, Unknown, WhatIf};
use super::{
    Content, Host, HostMemory, Khugepaged, Ksm, PAGE, Pages, PatternCost, Policy, REGION, Scenario, Translation, Vm,
};
use translation::random::{Chance, mixed};
use translation::study::Range;

/// A running machine.
#[derive(Clone, Debug, PartialEq)]
pub struct CapturedVm {
    pub name: String,
    pub memory: Bytes,
    pub resident: Bytes,
    pub pages: Pages,
}

#[derive(Clone, Debug)]
pub struct Captured {
    pub name: String,
    pub host: Host,
    pub vms: Vec<CapturedVm>,
    /// Does KSM merge pages?
    pub is_merging: bool,
    /// Of the pages that KSM looked at, the part that is merged or volatile, if it has scanned all twice.
    pub merged: Option<[f64; 2]>,
    pub ksm: Ksm,
    pub khugepaged: Khugepaged,
    /// How time lost to translation is found.
    pub translation: Translation,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// Machines without huge pages in one of the answers; none for all.
    pub small: Vec<String>,
    /// The machine on 1 GiB pages; the largest if none is named.
    pub giant: Option<String>,
    /// So many per cent more machines.
    pub more: u32,
    /// In place of that: as many as it takes for the memory of all to be so many per cent above the host's.
    pub overcommit: Option<u32>,
    /// Draws of what is not known.
    pub draws: u32,
    pub seed: u64,
}

/// Machines, in turn, that bring memory of all so many per cent above the host's.
pub(super) fn missing(scenario: &Scenario, percent: u32) -> usize {
    let target = u128::from(scenario.host.memory.0) * u128::from(100 + percent) / 100;
    let mut all: u128 = scenario.vms.iter().map(|vm| u128::from(vm.memory.0)).sum();
    let is_short = |vm: &&Vm| {
        let is_short = all < target;
        all += u128::from(vm.memory.0);
        is_short
    };
    scenario.vms.iter().cycle().take_while(is_short).count()
}

/// One draw of all that is not known.
#[derive(Clone, Copy, Debug)]
struct Draw {
    content: Content,
    active: u32,
    growth: f64,
    seed: u64,
}

fn unknown(captured: &Captured) -> Vec<Drawn> {
    let drawn = |unknown, [low, high]: [f64; 2]| Drawn { unknown, low, high };
    let common = captured.merged.map_or([0.0, 0.4], |[merged, _]| [merged, merged]);
    let volatile = captured.merged.map_or([0.0, 0.3], |[_, volatile]| [volatile, volatile]);
    // Counters do not separate merged zeros from other merged pages.
    let zero = [0.0, if captured.merged.is_some() { 0.0 } else { 0.2 }];
    vec![
        drawn(Unknown::Zero, zero),
        drawn(Unknown::Common, common),
        drawn(Unknown::Volatile, volatile),
        drawn(Unknown::Clustered, [0.0, 1.0]),
        drawn(Unknown::Active, [0.1, 0.6]),
        drawn(Unknown::Growth, [0.0, 1.0]),
    ]
}

fn draw(unknown: &[Drawn], seed: u64, number: u32) -> Draw {
    let mut chance = Chance::new(mixed(seed ^ (u64::from(number) << 32)));
    let mut value = |place: usize| {
        let Drawn { low, high, .. } = unknown[place];
        low + (high - low) * chance.unit()
    };
    let parts = |value: f64| (value * f64::from(WHOLE)).round() as u32;
    let [zero, common, volatile, clustered, active] = [0, 1, 2, 3, 4].map(|place| parts(value(place)));
    let growth = value(5);
    Draw {
        content: Content {
            zero,
            common,
            volatile: volatile.min(WHOLE.saturating_sub(zero + common)),
            clustered,
        },
        active,
        growth,
        seed: chance.bits(),
    }
}

impl Captured {
    /// Time until KSM has seen everything three times, at least an hour and at most a day.
    fn seconds(&self) -> u64 {
        let pages: u64 = self.vms.iter().map(|vm| vm.memory.0 / PAGE).sum();
        (3 * pages * self.ksm.each_page() / SECOND).clamp(3600, 86_400)
    }

    fn vm(&self, captured: &CapturedVm, draw: &Draw) -> Vm {
        let memory = captured.memory.round_up_to(Bytes(REGION));
        let resident = (captured.resident.0 as f64 / memory.0.max(1) as f64).min(1.0);
        let used = resident + (1.0 - resident) * draw.growth;
        Vm {
            used: (used * f64::from(WHOLE)).round() as u32,
            active: draw.active,
            content: draw.content,
            group: "all".to_owned(),
            pages: captured.pages,
            ..Vm::new(&captured.name, memory)
        }
    }

    fn scenario(&self, draw: &Draw) -> Scenario {
        let seconds = self.seconds();
        Scenario {
            policies: vec![if self.is_merging { Policy::Ksm } else { Policy::Linux }],
            ksm: self.ksm,
            khugepaged: self.khugepaged,
            duration_ns: seconds * SECOND,
            step_ns: SECOND * seconds.div_ceil(3600),
            ..Scenario::new(
                self.host.clone(),
                self.vms.iter().map(|vm| self.vm(vm, draw)).collect(),
                draw.seed,
            )
        }
    }

    /// The machine that 1 GiB pages are for.
    fn giant<'a>(&'a self, asked: &'a Asked) -> Option<&'a str> {
        let largest = self.vms.iter().max_by_key(|vm| vm.memory).map(|vm| vm.name.as_str());
        asked.giant.as_deref().or(largest)
    }
}

impl Change {
    pub const ALL: [Self; 5] = [
        Self::AsIs,
        Self::LargePagesOff,
        Self::KsmOn,
        Self::MoreVms,
        Self::GiantPages,
    ];

    fn apply(self, scenario: &mut Scenario, captured: &Captured, asked: &Asked) {
        match self {
            Self::AsIs => {}
            Self::LargePagesOff => {
                let is_asked = |vm: &&mut Vm| asked.small.is_empty() || asked.small.contains(&vm.name);
                for vm in scenario.vms.iter_mut().filter(is_asked) {
                    vm.large_pages = false;
                    vm.pages = Pages::Any;
                }
            }
            Self::KsmOn => scenario.policies = vec![Policy::Ksm],
            Self::MoreVms => {
                let more = match asked.overcommit {
                    None => (scenario.vms.len() * asked.more as usize).div_ceil(100),
                    Some(percent) => missing(scenario, percent),
                };
                let copies: Vec<Vm> = (0..more)
                    .map(|number| {
                        let vm = &scenario.vms[number % captured.vms.len()];
                        Vm {
                            name: format!("{}+{}", vm.name, number / captured.vms.len() + 1),
                            ..vm.clone()
                        }
                    })
                    .collect();
                scenario.vms.extend(copies);
            }
            Self::GiantPages => {
                let name = captured.giant(asked);
                for vm in scenario.vms.iter_mut().filter(|vm| Some(vm.name.as_str()) == name) {
                    vm.pages = Pages::Giant;
                    vm.memory = vm.memory.round_up_to(Bytes::gib(1));
                }
            }
        }
    }

    fn about(self, captured: &Captured, asked: &Asked) -> Vec<String> {
        match self {
            Self::LargePagesOff => asked.small.clone(),
            Self::GiantPages => captured.giant(asked).map(str::to_owned).into_iter().collect(),
            _ => Vec::new(),
        }
    }
}

/// Simulates each change over the same draws.
///
/// # Errors
/// Where there is no machine, a name is not one of theirs, or the host itself does not add up.
pub fn advise(captured: &Captured, asked: &Asked) -> Result<HostMemory, String> {
    if captured.vms.is_empty() {
        return Err("no virtual machine runs there: expected at least one".to_owned());
    }
    let known: Vec<&str> = captured.vms.iter().map(|vm| vm.name.as_str()).collect();
    if let Some(name) = asked
        .small
        .iter()
        .chain(&asked.giant)
        .find(|name| !known.contains(&name.as_str()))
    {
        return Err(format!(
            "no virtual machine is called {name}: expected one of {}",
            known.join(", ")
        ));
    }
    let unknown = unknown(captured);
    let draws: Vec<Draw> = (0..asked.draws)
        .map(|number| draw(&unknown, asked.seed, number))
        .collect();
    let bases: Vec<Scenario> = draws.iter().map(|draw| captured.scenario(draw)).collect();
    bases.iter().try_for_each(Scenario::check)?;
    let runs = Change::ALL.len() as u64 * u64::from(asked.draws);
    bases.iter().take(1).try_for_each(|base| base.check_cost(runs))?;
    let all: Vec<Vm> = bases.iter().flat_map(|scenario| scenario.vms.clone()).collect();
    let translation = costs(&captured.translation, &all, asked.seed)?;
    let rows = Change::ALL.map(|change| what_if(change, captured, asked, &bases, &translation));
    let vm_memory = captured.vms.iter().map(|vm| vm.memory.0).sum();
    Ok(HostMemory {
        input: captured.name.clone(),
        memory: captured.host.memory,
        vm_memory: Bytes(vm_memory),
        vms: captured.vms.len(),
        seconds: captured.seconds() as f64,
        step_s: captured.seconds().div_ceil(3600) as f64,
        translation,
        advice: Some(Advice {
            draws: asked.draws,
            unknown,
            rows: rows.into(),
        }),
        ..HostMemory::default()
    })
}

fn what_if(
    change: Change,
    captured: &Captured,
    asked: &Asked,
    bases: &[Scenario],
    translation: &[PatternCost],
) -> WhatIf {
    let mut row = WhatIf {
        change,
        vms: change.about(captured, asked),
        count: captured.vms.len(),
        ..WhatIf::default()
    };
    let mut values: [Vec<f64>; 6] = Default::default();
    let mut short = 0;
    for base in bases {
        let mut scenario = base.clone();
        change.apply(&mut scenario, captured, asked);
        row.count = scenario.vms.len();
        if let Err(error) = scenario.check() {
            row.refused = Some(error);
            return row;
        }
        let policy = scenario.policies[0];
        let outcome = outcome(&scenario, policy, translation);
        let Some(end) = outcome.samples.last() else {
            continue;
        };
        let totals = &outcome.totals;
        let swapped = totals.swapped_out.0 + totals.swapped_in.0;
        short += u32::from(swapped > 0 || totals.waited > 0);
        let each = [
            end.free.0 as f64,
            end.amounts.large_part().unwrap_or(0.0),
            end.saved.0 as f64,
            (totals.broken + totals.broken_to_swap) as f64,
            swapped as f64,
            end.lost.middle,
        ];
        values
            .iter_mut()
            .zip(each)
            .for_each(|(values, value)| values.push(value));
    }
    [row.free, row.large, row.saved, row.broken, row.swapped, row.lost] = values.map(spread);
    row.short = f64::from(short) / bases.len().max(1) as f64;
    row
}

/// The least, the median and the most.
fn spread(mut values: Vec<f64>) -> Range {
    values.sort_by(f64::total_cmp);
    match (values.first(), values.last()) {
        (Some(&low), Some(&high)) => Range::new(low, values[values.len() / 2], high),
        _ => Range::default(),
    }
}
