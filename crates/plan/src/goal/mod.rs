//! What a plan is for, as one types it after `--for` or writes it in a file of TOML.

mod error;
mod kinds;
mod names;
mod want;
mod words;

#[cfg(test)]
mod tests;

use std::str::FromStr;

use model::plan::PoolNeed;
use model::{Bytes, line_of};
use programs::Kind;
use words::Words;

pub use error::GoalError;
pub use want::{
    DatabaseGoal, Hypervisor, JvmGoal, JvmKind, JvmPages, OracleGoal, PlacedBy, PlacementGoal, PoolGoal, ThpGoal,
    VmGoal, Want,
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Goal {
    /// As one can type it.
    pub text: String,
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
        let table: toml::Table = text.parse().map_err(|why: toml::de::Error| {
            let line = why.span().map(|span| format!(", line {}", line_of(text, span.start)));
            let wrong = why.message().replace('\n', ", ");
            fail(format!("TOML{}: {wrong}", line.unwrap_or_default()))
        })?;
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

    /// The pools that it names, each with the pages that it shall have in all.
    pub(crate) fn pools(&self) -> Vec<PoolNeed> {
        let (Want::Pool(pool) | Want::Kubernetes(pool)) = &self.want else {
            return Vec::new();
        };
        let need = |&(page, pages): &(Bytes, u64)| PoolNeed {
            goal: self.text.clone(),
            page,
            node: pool.node,
            pages,
        };
        pool.pools.iter().map(need).collect()
    }

    /// Are both about the same program, so that the one replaces the other?
    pub fn is_same(&self, other: &Self) -> bool {
        let both = |one: &Option<String>, other: &Option<String>| one.is_some() && one == other;
        let is_same = match (&self.want, &other.want) {
            (Want::Database(one), Want::Database(other)) => (one.kind, &one.file) == (other.kind, &other.file),
            (Want::Jvm(one), Want::Jvm(other)) => match (&one.service, &other.service) {
                (None, None) => both(&one.user, &other.user),
                (one, other) => both(one, other),
            },
            (Want::Vm(one), Want::Vm(other)) => one.name == other.name && one.name != VmGoal::UNNAMED,
            (Want::Oracle(one), Want::Oracle(other)) => one.user == other.user,
            (Want::Pool(one), Want::Pool(other)) | (Want::Kubernetes(one), Want::Kubernetes(other)) => {
                let sizes = |goal: &PoolGoal| goal.pools.iter().map(|pool| pool.0).collect::<Vec<Bytes>>();
                (one.node, sizes(one)) == (other.node, sizes(other))
            }
            _ => false,
        };
        is_same || self.text == other.text
    }

    /// What both of one plan say differently: a machine has one pool of each size and one policy, a program one configuration.
    pub(crate) fn contradicts(&self, other: &Self) -> Option<String> {
        let about = match (&self.want, &other.want) {
            _ if self.text == other.text => return None,
            (Want::Thp(one), Want::Thp(other)) if one.service == other.service => {
                let mut same = one.settings.iter().filter_map(|(name, value)| {
                    let differs = |(known, own): &&(String, String)| known == name && own != value;
                    other.settings.iter().find(differs)
                });
                return same.next().map(|(name, _)| format!("transparent_hugepage/{name}"));
            }
            (Want::Placement(one), Want::Placement(other)) if one.service == other.service => "one service",
            (Want::Jvm(one), _) if one.service.is_some() && self.is_same(other) => "the JVM of one service",
            (Want::Database(_), _) if self.is_same(other) => "one server",
            (Want::Vm(_), _) if self.is_same(other) => "one guest",
            _ => return self.other_size(other),
        };
        Some(about.to_owned())
    }

    /// A pool of which both say how many pages it has in all. A part of it, of one node, is no other pool.
    fn other_size(&self, other: &Self) -> Option<String> {
        let others = other.pools();
        let is_other = |one: &PoolNeed| {
            let overlaps = |other: &&PoolNeed| one.node == other.node || one.node.is_none() || other.node.is_none();
            let mut others = others.iter().filter(|other| other.page == one.page).filter(overlaps);
            others.any(|other| (one.node, one.pages) != (other.node, other.pages))
        };
        let pool = self.pools().into_iter().find(is_other)?;
        Some(format!("the pool of {}", pool.page.exact()))
    }

    /// Who runs it, where the goal says so.
    pub(crate) fn user(&self) -> Option<&str> {
        match &self.want {
            Want::Jvm(jvm) => jvm.user.as_deref(),
            Want::Database(database) => Some(&database.user),
            Want::Oracle(oracle) => Some(&oracle.user),
            _ => None,
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
        let first = match words.kind.as_str() {
            word if Kind::of_server(word).is_some() => "file",
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
