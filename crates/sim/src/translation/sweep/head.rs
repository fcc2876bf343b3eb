//! The head of a file of points: everything that decides what the points are.

use model::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::file::Sweep;
use super::parameters::Axes;
use super::shard::Shard;
use super::typed::Typed;
use crate::translation::machine::Machine;
use crate::translation::patterns::Pattern;
use crate::translation::study::Setting;

const SCHEMA: &str = "hugewise/sweep-points/1";
/// How every head begins.
pub(super) const SCHEMA_START: &[u8] = b"{\"schema\":\"hugewise/sweep-points/";

/// The first line: everything that decides what the points are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Head {
    /// The shape of the file.
    pub schema: String,
    /// The version of hugewise that simulates: another one may count differently.
    pub version: String,
    /// Seed of all patterns.
    pub seed: u64,
    /// Points of the whole sweep.
    pub points: u64,
    /// The machines.
    pub machines: Vec<Source>,
    /// The patterns.
    pub patterns: Vec<Pattern>,
    /// The traces.
    pub traces: Vec<Source>,
    /// Working sets of patterns, in bytes.
    pub working_sets: Vec<Bytes>,
    /// Modes with their pages.
    pub settings: Vec<Setting>,
    /// Values in place of the machines' own.
    pub parameters: Axes,
    /// Accesses of a pattern that each point counts.
    pub accesses: u64,
    /// Accesses before them.
    pub warm_up: u64,
    /// The part of the sweep that the file is for; none for all of it.
    pub shard: Option<Shard>,
}

/// A machine or trace by name and content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Source {
    /// As the sweep names it.
    pub name: String,
    /// A hash of all that it says.
    pub digest: String,
}

impl Head {
    pub(super) fn new(sweep: &Sweep, machines: &[Machine], traces: Vec<Source>, seed: u64, points: u64) -> Self {
        let machine = |(typed, machine): (&Typed<String>, &Machine)| {
            Source::new(&typed.value, Digest::default().with(format!("{machine:?}").as_bytes()))
        };
        Self {
            schema: SCHEMA.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            seed,
            points,
            machines: sweep.machines.iter().zip(machines).map(machine).collect(),
            patterns: sweep.patterns.clone(),
            traces,
            working_sets: sweep.working_sets.clone(),
            settings: sweep.settings.iter().map(|setting| setting.value).collect(),
            parameters: sweep.parameters.clone(),
            accesses: sweep.accesses,
            warm_up: sweep.warm_up,
            shard: None,
        }
    }

    /// What makes the other one another sweep.
    pub(super) fn difference(&self, other: &Self) -> Option<String> {
        let words = |head: &Self| {
            let sources = |all: &[Source]| {
                let all = all.iter().map(|source| format!("{} ({})", source.name, source.digest));
                all.collect::<Vec<_>>().join(", ")
            };
            let list = |all: Vec<String>| all.join(", ");
            [
                ("schema", head.schema.clone()),
                ("version of hugewise", head.version.clone()),
                ("seed", head.seed.to_string()),
                ("machines", sources(&head.machines)),
                (
                    "patterns",
                    list(head.patterns.iter().map(|one| one.name().to_owned()).collect()),
                ),
                ("traces", sources(&head.traces)),
                (
                    "working_sets",
                    list(head.working_sets.iter().map(|one| one.exact()).collect()),
                ),
                (
                    "modes and pages",
                    list(head.settings.iter().map(Setting::to_string).collect()),
                ),
                (
                    "parameters",
                    serde_json::to_string(&head.parameters).unwrap_or_default(),
                ),
                ("accesses", head.accesses.to_string()),
                ("warm_up", head.warm_up.to_string()),
                ("points", head.points.to_string()),
            ]
        };
        let pairs = words(self).into_iter().zip(words(other));
        let different = pairs.into_iter().find(|((_, one), (_, other))| one != other);
        different.map(|((name, one), (_, other))| format!("its {name}: `{other}`, expected `{one}`"))
    }
}

impl Source {
    pub(super) fn new(name: &str, Digest(digest): Digest) -> Self {
        Self {
            name: name.to_owned(),
            digest: format!("{digest:016x}"),
        }
    }
}

/// FNV-1a with 64 bits: it distinguishes contents, and is no protection.
#[derive(Clone, Copy, Debug)]
pub struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    /// With more bytes.
    #[must_use]
    pub fn with(self, bytes: &[u8]) -> Self {
        let step = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        Self(bytes.iter().fold(self.0, step))
    }
}
