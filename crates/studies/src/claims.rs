//! What the five publications claim, and what stands beside each claim here: `workloads/claims.toml`, with verdicts by arithmetic.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use model::names;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    /// What stands beside it here.
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

/// What stands beside a claim.
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

/// How a value came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum How {
    /// Measured, with a kept result.
    Measured,
    /// Predicted by a simulation.
    Simulated,
    /// By arithmetic.
    Arithmetic,
    /// A parameter was chosen so that it comes out.
    Fitted,
    /// Put in.
    Input,
    /// There is none.
    None,
}

names!(How, {
    Measured => "measured", Simulated => "simulated", Arithmetic => "arithmetic", Fitted => "fitted", Input => "input", None => "none",
});

/// What a value says of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It could have come out otherwise, and did not.
    Agrees,
    /// It came out otherwise.
    Differs,
    /// Of another quantity, put in, not decided, or not there.
    NotComparable,
}

names!(Verdict, { Agrees => "agrees", Differs => "differs", NotComparable => "cannot be compared" });

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    sources: BTreeMap<String, String>,
    group: Vec<Group>,
}

/// Claims with what they have in common.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    source: String,
    place: String,
    machine: String,
    quantity: String,
    of: String,
    unit: String,
    how: Option<How>,
    by: Option<String>,
    why: Option<String>,
    claims: Vec<Row>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    id: String,
    what: String,
    figure: String,
    place: Option<String>,
    machine: Option<String>,
    quantity: Option<String>,
    of: Option<String>,
    unit: Option<String>,
    here: Vec<Here>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Here {
    how: Option<How>,
    by: Option<String>,
    value: Option<Vec<f64>>,
    quantity: Option<String>,
    of: Option<String>,
    unit: Option<String>,
    why: Option<String>,
}

/// All of them; none only if the data have a mistake, which a test finds.
pub static ALL: LazyLock<Claims> = LazyLock::new(|| read().unwrap_or(Claims { claims: Vec::new() }));

/// The claim of this name.
pub fn by_id(id: &str) -> Option<&'static Claim> {
    ALL.claims.iter().find(|claim| claim.id == id)
}

fn read() -> Result<Claims, toml::de::Error> {
    let File { sources, group } = toml::from_str(TEXT)?;
    let source = |group: &Group| sources.get(&group.source).cloned().unwrap_or_default();
    let of_group = |group: &Group| -> Vec<Claim> {
        let source = source(group);
        group.claims.iter().map(|row| group.claim(row, &source)).collect()
    };
    Ok(Claims {
        claims: group.iter().flat_map(of_group).collect(),
    })
}

fn or<'a>(own: Option<&'a String>, shared: &'a str) -> String {
    own.map_or(shared, String::as_str).to_owned()
}

impl Group {
    fn claim(&self, row: &Row, source: &str) -> Claim {
        let measure = Measure {
            quantity: or(row.quantity.as_ref(), &self.quantity),
            of: or(row.of.as_ref(), &self.of),
            unit: or(row.unit.as_ref(), &self.unit),
        };
        let here = row
            .here
            .iter()
            .map(|here| self.counterpart(here, &measure, &row.figure));
        Claim {
            id: row.id.clone(),
            source: source.to_owned(),
            place: or(row.place.as_ref(), &self.place),
            machine: or(row.machine.as_ref(), &self.machine),
            what: row.what.clone(),
            figure: row.figure.clone(),
            here: here.collect(),
            measure,
        }
    }

    fn counterpart(&self, here: &Here, claimed: &Measure, figure: &str) -> Counterpart {
        let measure = Measure {
            quantity: or(here.quantity.as_ref(), &claimed.quantity),
            of: or(here.of.as_ref(), &claimed.of),
            unit: or(here.unit.as_ref(), &claimed.unit),
        };
        let shared = |text: &Option<String>| text.clone().unwrap_or_default();
        let how = here.how.or(self.how).unwrap_or(How::None);
        let value = here.value.as_deref().and_then(ends);
        let verdict = match value {
            Some(value) if measure == *claimed && !matches!(how, How::Fitted | How::Input | How::None) => {
                verdict(figure, value)
            }
            _ => Verdict::NotComparable,
        };
        Counterpart {
            by: or(here.by.as_ref(), &shared(&self.by)),
            why: or(here.why.as_ref(), &shared(&self.why)),
            how,
            value,
            measure,
            verdict,
        }
    }
}

fn ends(value: &[f64]) -> Option<[f64; 2]> {
    Some([*value.first()?, *value.last()?])
}

/// What a figure leaves open, from low to high, and whether it is a trend. None if there is no figure.
fn claimed(figure: &str) -> Option<([f64; 2], bool)> {
    let words: Vec<&str> = figure.split(' ').collect();
    let number = |text: &str| text.parse::<f64>().ok();
    Some(match words[..] {
        ["more"] => ([f64::MIN_POSITIVE, f64::INFINITY], true),
        ["less"] => ([f64::NEG_INFINITY, -f64::MIN_POSITIVE], true),
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

/// A figure agrees if the ranges meet; a trend only if all of the range has it, and is not decided if a part of it has.
fn verdict(figure: &str, [low, high]: [f64; 2]) -> Verdict {
    let Some(([least, most], is_trend)) = claimed(figure) else {
        return Verdict::NotComparable;
    };
    let (is_met, is_within) = (high >= least && low <= most, low >= least && high <= most);
    match is_met {
        false => Verdict::Differs,
        true if is_trend && !is_within => Verdict::NotComparable,
        true => Verdict::Agrees,
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
