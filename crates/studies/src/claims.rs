//! What the five publications claim, and the counterparts of each claim here: `workloads/claims.toml`, with verdicts by arithmetic.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use model::names;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

const TEXT: &str = include_str!("../../../workloads/claims.toml");

/// All claims.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Claims {
    /// In the order of the publications.
    pub claims: Vec<Claim>,
}

/// One claim of a publication.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Claim {
    /// Its name here, by which presets and experiments quote it.
    pub id: String,
    /// Where it is published.
    pub source: String,
    /// The place in that text.
    pub place: String,
    /// The machine.
    pub machine: String,
    /// What it says, in our words.
    pub what: String,
    /// The quantity, what it is held against, and the unit.
    pub measure: Measure,
    /// The figure as printed, or a trend.
    pub figure: String,
    /// Its counterparts here.
    pub here: Vec<Counterpart>,
}

/// What a figure is of. Two figures can be compared if this is the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Measure {
    /// What was measured.
    pub quantity: String,
    /// What is held against what.
    pub of: String,
    /// The unit.
    pub unit: String,
}

/// The counterpart of a claim.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Counterpart {
    /// How its value came about.
    pub how: How,
    /// What shows it: a command or the sum.
    pub by: String,
    /// The least and the greatest value; none if there is none.
    pub value: Option<[f64; 2]>,
    /// What the value is of.
    pub measure: Measure,
    /// What the value says of the claim.
    pub verdict: Verdict,
    /// Why it differs or cannot be compared, and what to keep in mind where it agrees.
    pub why: String,
}

names! {
    /// How a value came about.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum How {
        /// Measured, with a kept result.
        Measured = "measured",
        /// Predicted by a simulation.
        Simulated = "simulated",
        /// By arithmetic.
        Arithmetic = "arithmetic",
        /// A parameter was chosen so that it comes out.
        Fitted = "fitted",
        /// Put in.
        Input = "input",
        /// There is none.
        None = "none",
    }
}

names! {
    /// What a value says of a claim.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum Verdict {
        /// It could have come out otherwise, and did not.
        Agrees = "agrees",
        /// It came out otherwise.
        Differs = "differs",
        /// Of another quantity, put in, not decided, or not there.
        NotComparable = "cannot be compared",
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    sources: BTreeMap<String, String>,
    usual: Table,
    group: Vec<Table>,
}

/// All of them; none only if the data have a mistake, which a test finds.
pub static ALL: LazyLock<Claims> = LazyLock::new(|| read().unwrap_or(Claims { claims: Vec::new() }));

/// The claim of this name.
pub fn by_id(id: &str) -> Option<&'static Claim> {
    ALL.claims.iter().find(|claim| claim.id == id)
}

fn read() -> Result<Claims, toml::de::Error> {
    let File { sources, usual, group } = toml::from_str(TEXT)?;
    let mut claims = Vec::new();
    for group in &group {
        let group = within(&usual, group);
        for row in rows(&group, "claims") {
            let row = within(&group, row);
            let here = rows(&row, "here").map(|own| within(&row, own).try_into());
            let here: Vec<Counterpart> = here.collect::<Result<_, _>>()?;
            let mut claim: Claim = within(&row, &usual).try_into()?;
            claim.source = sources.get(&claim.source).cloned().unwrap_or_default();
            claim.here = here.into_iter().map(|here| here.judged(&claim)).collect();
            claims.push(claim);
        }
    }
    Ok(Claims { claims })
}

fn rows<'a>(table: &'a Table, name: &str) -> impl Iterator<Item = &'a Table> {
    let rows = table.get(name).and_then(Value::as_array);
    rows.into_iter().flatten().filter_map(Value::as_table)
}

/// A table with what is above it and not said otherwise; its measure is a table of its own, as in results.
fn within(above: &Table, own: &Table) -> Table {
    let mut all = above.clone();
    all.extend(own.clone());
    let known = |key: &&str| all.contains_key(*key);
    let measure = ["quantity", "of", "unit"].into_iter().filter(known);
    let measure = measure.map(|key| (key.to_owned(), all[key].clone())).collect();
    all.insert("measure".to_owned(), Value::Table(measure));
    all
}

impl Counterpart {
    fn judged(self, claim: &Claim) -> Self {
        let is_open = matches!(self.how, How::Fitted | How::Input | How::None);
        let value = self.value.filter(|_| !is_open && self.measure == claim.measure);
        Self {
            verdict: value.map_or(Verdict::NotComparable, |value| verdict(&claim.figure, value)),
            ..self
        }
    }
}

/// What a figure leaves open, from low to high, and whether it is a trend. None if there is no figure.
fn claimed(figure: &str) -> Option<([f64; 2], bool)> {
    let words: Vec<&str> = figure.split(' ').collect();
    let number = |text: &str| text.parse::<f64>().ok();
    Some(match words[..] {
        ["more"] => ([1.0 + f64::EPSILON, f64::INFINITY], true),
        ["less"] => ([f64::NEG_INFINITY, -1.0 - f64::EPSILON], true),
        ["no", "more"] => ([f64::NEG_INFINITY, 1.0], true),
        ["the", "same"] => ([-1.0, 1.0], true),
        ["over", least] => ([number(least)?, f64::INFINITY], false),
        ["about", middle] => {
            let middle = number(middle)?;
            let width = (middle / 10.0).abs();
            ([middle - width, middle + width], false)
        }
        [exact] | ["up", "to", exact] => {
            let digits = exact.split_once('.').map_or(0, |(_, digits)| digits.len());
            let (value, last) = (number(exact)?, 10_f64.powi(-(digits as i32)));
            ([value - last, value + last], false)
        }
        [low, "to", high] => ([number(low)?, number(high)?], false),
        _ => return None,
    })
}

/// A figure agrees if the ranges meet; a range wider than the figure is large would meet many others, and decides nothing. A trend agrees
/// only if all of the range has it, and is not decided if a part of it has.
fn verdict(figure: &str, [low, high]: [f64; 2]) -> Verdict {
    let Some(([least, most], is_trend)) = claimed(figure) else {
        return Verdict::NotComparable;
    };
    let (is_met, is_within) = (high >= least && low <= most, low >= least && high <= most);
    let is_decided = match is_trend {
        true => is_within,
        false => high - low <= least.abs().max(most.abs()),
    };
    match is_met {
        false => Verdict::Differs,
        true if is_decided => Verdict::Agrees,
        true => Verdict::NotComparable,
    }
}

impl Claim {
    /// The numbers of its figure; none of a trend.
    pub fn numbers(&self) -> Vec<f64> {
        self.figure.split(' ').filter_map(|word| word.parse().ok()).collect()
    }
}

#[cfg(test)]
#[path = "claims_tests.rs"]
mod tests;
