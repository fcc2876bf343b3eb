//! What huge pages would save a traced program, with what the trace and the CPU table leave open.

use model::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::calibration::{Calibration, Observed};
use crate::replay::{Replay, Replayed};
use crate::time::{Model, Row, SWEPT};
use crate::trace::own::Head;
use translation::Mode;
use translation::machine::Machine;
use translation::study::{MachineFacts, Setting, Sweep, Unknown};

/// The result: `hugewise predict`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Prediction {
    /// The machine that is predicted for.
    pub machine: MachineFacts,
    /// The trace: its file, or the program that was traced.
    pub input: String,
    /// How the trace was made, if it says so.
    pub capture: Option<Head>,
    /// Windows of the program's run; none of a trace without gaps.
    pub windows: u64,
    /// Loads and stores that were counted.
    pub accesses: u64,
    /// Instructions per load or store; none where the trace has no instructions.
    pub instructions_per_access: Option<f64>,
    /// What was swept.
    pub unknown: Vec<Sweep>,
    /// Runs that the waits were scaled by; absent where none were made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration: Option<Calibration>,
    /// For each mode and page size.
    pub rows: Vec<Row>,
}

/// Shares of 2 MiB ranges on huge pages, in percent, that are predicted where the program was run.
const SHARES: [u8; 3] = [30, 50, 70];
/// The pages that are predicted on a machine.
fn pages(machine: &Machine) -> impl Iterator<Item = Bytes> {
    let pages = [Bytes::kib(4), Bytes::mib(2), Bytes::gib(1)].into_iter();
    pages.filter(|&page| machine.maps(page))
}

/// The settings that are predicted on a machine: every page natively, and those pairs behind a hypervisor.
pub fn settings(machine: &Machine) -> Vec<Setting> {
    let pages: Vec<Bytes> = pages(machine).collect();
    let native = pages.iter().map(|&page| Setting::new(Mode::Native, page, page));
    let pairs = |mode: Mode| {
        let all = pages
            .iter()
            .flat_map(|&guest| pages.iter().map(move |&host| (guest, host)));
        let usual = all.filter(|(guest, host)| guest == host || guest.0.max(host.0) == Bytes::mib(2).0);
        usual.map(move |(guest, host)| Setting::new(mode, guest, host))
    };
    let nested = (machine.nested_paging != Some(false)).then(|| pairs(Mode::Nested));
    let shadow = pairs(Mode::Shadow).filter(|setting| Some(setting.guest_page) == setting.host_page);
    native.chain(nested.into_iter().flatten()).chain(shadow).collect()
}

/// What can be run here beside those, for a program on base pages in a setting: every larger page, and shares of its memory on huge ones.
pub fn settings_beside(machine: &Machine, base: Setting) -> Vec<Setting> {
    let on = |guest_page: Bytes| Setting { guest_page, ..base };
    let pages = pages(machine).map(on);
    let shares = SHARES.into_iter().map(|percent| base.with_share(percent));
    let known = settings(machine);
    pages.chain(shares).filter(|setting| !known.contains(setting)).collect()
}

impl Replay {
    /// What the parts of a trace say of each setting; scaled by runs of the program on base pages of a setting and on others, if there are any.
    pub fn prediction(
        &self,
        input: String,
        capture: Option<Head>,
        replayed: &Replayed,
        runs: Option<(Setting, Vec<Observed>)>,
    ) -> Prediction {
        let parts = &replayed.parts;
        let accesses: u64 = parts.iter().map(|part| part.kept[0].accesses).sum();
        let instructions: f64 = parts.iter().map(|part| part.instructions).sum();
        let mut model = Model::of(self, parts);
        let swept: &[Sweep] = if runs.is_none() { &SWEPT } else { &[] };
        let calibration = runs.map(|(base, observed)| model.calibrate(base, observed));
        Prediction {
            machine: MachineFacts::of(&self.machine),
            input,
            capture,
            windows: replayed.windows,
            accesses,
            instructions_per_access: (instructions > 0.0).then(|| instructions / accesses as f64),
            unknown: self
                .unknown()
                .into_iter()
                .filter(is_in_model)
                .chain(swept.iter().copied())
                .collect(),
            calibration,
            rows: (0..self.settings.len()).map(|place| model.row(place)).collect(),
        }
    }
}

/// First-level hits are part of an instruction, and exits are in no trace.
fn is_in_model(sweep: &Sweep) -> bool {
    sweep.unknown != Unknown::Exit
}

#[cfg(test)]
#[path = "prediction_tests.rs"]
mod tests;
