//! The file of points: a head that says which sweep it is of, then a line of JSON for each finished point.

use std::collections::BTreeMap;

use model::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Point;
use super::file::Sweep;
use super::parameters::Axes;
use super::plan::Plan;
use super::shard::Shard;
use crate::translation::machine::Machine;
use crate::translation::patterns::Pattern;
use crate::translation::study::Setting;

const SCHEMA: &str = "hugewise/sweep-points/1";

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

/// Why a file of points is not gone on with.
#[derive(Debug, thiserror::Error)]
pub enum LinesError {
    /// It is no such file.
    #[error("{0}: line 1: this is no file of points: expected the head of a sweep")]
    NoHead(String),
    /// It is of another sweep.
    #[error("{file}: it holds points of another sweep: {what} (name another file with --points, or remove it)")]
    OtherSweep {
        /// Its name.
        file: String,
        /// What differs.
        what: String,
    },
    /// A line is no point of it.
    #[error("{file}: line {line}: {why} (remove the line: its point is then simulated again)")]
    Line {
        /// Its name.
        file: String,
        /// From 1.
        line: usize,
        /// What is wrong.
        why: String,
    },
    /// Two files have one point in two ways.
    #[error("{file}: line {line}: point {point} is there already, with other values")]
    Differs {
        /// Its name.
        file: String,
        /// From 1.
        line: usize,
        /// Its number.
        point: u64,
    },
    /// Not all points are there.
    #[error("{missing} of {of} points are in none of the files, the first one is point {first}: {hint}")]
    Incomplete {
        /// How many.
        missing: u64,
        /// Of how many.
        of: u64,
        /// The first of them.
        first: u64,
        /// What to do.
        hint: String,
    },
}

/// What a file of points holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// Its finished points by number, with their lines as they stand there.
    pub points: BTreeMap<u64, (Point, String)>,
    /// The length of its whole lines: what is behind them was cut off while it was written.
    pub kept: u64,
    /// Was something cut off?
    pub is_torn: bool,
    /// Do the points stand in their order?
    pub is_in_order: bool,
}

impl Head {
    pub(super) fn new(sweep: &Sweep, machines: &[Machine], traces: Vec<Source>, seed: u64, points: u64) -> Self {
        let machine = |(typed, machine): (&super::Typed<String>, &Machine)| {
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
    fn difference(&self, other: &Self) -> Option<String> {
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

/// What a file of points holds that is for a shard or a whole sweep; `shard` is `None` for any of them (merging).
///
/// # Errors
/// If it is of another sweep or shard, or a line is no point of it.
pub fn read(file: &str, bytes: &[u8], plan: &Plan, shard: Option<Option<Shard>>) -> Result<Found, LinesError> {
    let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
    let mut found = Found {
        kept: whole as u64,
        is_torn: whole < bytes.len(),
        is_in_order: true,
        ..Found::default()
    };
    let mut lines = bytes[..whole].split(|&byte| byte == b'\n').enumerate();
    let Some((_, first)) = lines.next().filter(|(_, line)| !line.is_empty()) else {
        // Nothing of it was written: not even the head. Anything else that has no line is not ours to overwrite.
        let is_cut_head = whole == 0 && SCHEMA_START.starts_with(&bytes[..bytes.len().min(SCHEMA_START.len())]);
        return if is_cut_head {
            Ok(found)
        } else {
            Err(LinesError::NoHead(file.to_owned()))
        };
    };
    let head: Head = serde_json::from_slice(first).map_err(|_| LinesError::NoHead(file.to_owned()))?;
    matches(file, &head, plan, shard)?;
    for (number, line) in lines.filter(|(_, line)| !line.is_empty()) {
        add(file, number + 1, line, plan, &mut found)?;
    }
    Ok(found)
}

/// How every head begins.
const SCHEMA_START: &[u8] = b"{\"schema\":\"hugewise/sweep-points/";

fn matches(file: &str, head: &Head, plan: &Plan, shard: Option<Option<Shard>>) -> Result<(), LinesError> {
    let part = |shard: Option<Shard>| shard.map_or("the whole sweep".to_owned(), |shard| format!("shard {shard}"));
    let wrong_part = shard
        .filter(|&shard| shard != head.shard)
        .map(|shard| format!("it is for {}, expected {}", part(head.shard), part(shard)));
    match plan.head.difference(head).or(wrong_part) {
        Some(what) => Err(LinesError::OtherSweep {
            file: file.to_owned(),
            what,
        }),
        None => Ok(()),
    }
}

fn add(file: &str, line: usize, bytes: &[u8], plan: &Plan, found: &mut Found) -> Result<(), LinesError> {
    let wrong = |why: String| LinesError::Line {
        file: file.to_owned(),
        line,
        why,
    };
    let text = std::str::from_utf8(bytes).map_err(|_| wrong("it is not UTF-8 text".to_owned()))?;
    let point: Point = serde_json::from_str(text).map_err(|why| wrong(format!("it is no point: {why}")))?;
    if !plan.has(&point) {
        return Err(wrong(format!("point {} of this sweep has other inputs", point.point)));
    }
    let number = point.point;
    let last = found.points.last_key_value().map(|(&last, _)| last);
    found.is_in_order &= last.is_none_or(|last| last < number);
    match found.points.insert(number, (point, text.to_owned())) {
        Some((_, before)) if before != text => Err(LinesError::Differs {
            file: file.to_owned(),
            line,
            point: number,
        }),
        Some(_) => {
            found.is_in_order = false;
            Ok(())
        }
        None => Ok(()),
    }
}

/// The file of points with these, in their order.
///
/// # Errors
/// None in practice: its parts can be written as JSON.
pub fn text(head: &Head, points: &BTreeMap<u64, (Point, String)>) -> serde_json::Result<String> {
    let mut text = serde_json::to_string(head)?;
    text.push('\n');
    for (_, line) in points.values() {
        text.push_str(line);
        text.push('\n');
    }
    Ok(text)
}

/// All points of a sweep out of several files, of which each is named and read.
///
/// # Errors
/// If they contradict each other, or a point is in none of them.
pub fn merged(plan: &Plan, files: Vec<(String, Found)>) -> Result<BTreeMap<u64, (Point, String)>, LinesError> {
    let mut all: BTreeMap<u64, (Point, String)> = BTreeMap::new();
    for (file, read) in files {
        for (place, (number, (point, line))) in read.points.into_iter().enumerate() {
            match all.get(&number) {
                Some((_, before)) if *before != line => {
                    return Err(LinesError::Differs {
                        file,
                        line: place + 2,
                        point: number,
                    });
                }
                Some(_) => {}
                None => _ = all.insert(number, (point, line)),
            }
        }
    }
    let missing: Vec<u64> = plan.numbers(None).filter(|number| !all.contains_key(number)).collect();
    match missing.first() {
        None => Ok(all),
        Some(&first) => Err(LinesError::Incomplete {
            missing: missing.len() as u64,
            of: plan.head.points,
            first,
            hint: "give the files of all shards to --merge, and let each shard end".to_owned(),
        }),
    }
}
