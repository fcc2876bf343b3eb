//! What a plan is for, as one types it after `--for` or writes it in a file of TOML.

mod error;
mod kinds;
mod names;
mod want;
mod words;

#[cfg(test)]
mod tests;

use std::str::FromStr;

use words::Words;

pub use error::GoalError;
pub use want::{
    DatabaseGoal, Hypervisor, JvmGoal, JvmKind, JvmPages, OracleGoal, PlacedBy, PlacementGoal, PoolGoal, ThpGoal,
    VmGoal, Want,
};

/// One goal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Goal {
    /// As one can type it.
    pub text: String,
    /// What is wanted.
    pub want: Want,
}

impl FromStr for Goal {
    type Err = GoalError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::of(Words::parse(text)?)
    }
}

impl Goal {
    /// The goals in a file of TOML: `goals = ["pool:2M=16"]`, and tables `[[goal]]` with `for = "jvm"`, `heap = "6g"`, ...
    ///
    /// # Errors
    /// Names the file, the goal's number in it, its key, and what is wanted.
    pub fn from_toml(file: &str, text: &str) -> Result<Vec<Self>, GoalError> {
        let fail = |wanted: String| GoalError::new(file, "", "", &wanted);
        let table: toml::Table = text
            .parse()
            .map_err(|why: toml::de::Error| fail(format!("TOML: {}", why.message())))?;
        let mut goals = Vec::new();
        for (key, value) in &table {
            let list = value.as_array().filter(|_| matches!(key.as_str(), "goals" | "goal"));
            let list = list.ok_or_else(|| GoalError::new(file, key, "", "goals = [..] or tables [[goal]]"))?;
            for (nth, item) in (1..).zip(list) {
                goals.push(Self::of_item(format!("{file}: {key} {nth}"), item)?);
            }
        }
        match goals.is_empty() {
            true => Err(fail("at least one goal".to_owned())),
            false => Ok(goals),
        }
    }

    fn of_item(place: String, item: &toml::Value) -> Result<Self, GoalError> {
        match item {
            toml::Value::String(text) => text.parse().map_err(|error: GoalError| error.at(&place)),
            toml::Value::Table(table) => Self::of(Words::of_table(place, table)?),
            other => Err(GoalError::new(&place, "", other.type_str(), "a text or a table")),
        }
    }

    fn of(mut words: Words) -> Result<Self, GoalError> {
        let first = match words.kind() {
            "postgres" | "innodb" | "mysql" => "file",
            "vm" => "memory",
            "thp" => "enabled",
            "placement" => "service",
            _ => "",
        };
        if !first.is_empty() {
            words.name_first(first);
        }
        let text = words.text();
        let (want, keys) = kinds::want(&mut words)?;
        words.finish(keys)?;
        Ok(Self {
            text: text.replacen(&format!(":{first}="), ":", 1),
            want,
        })
    }
}
