//! The shape of a plan: changes in the order of their application, each with what was, what shall be, why, and the risk.

mod check;
mod content;
mod edit;
mod error;
mod hugetlbfs;
mod settings;
mod sha256;

#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Bytes, Reading};

pub use content::mount_unit;
pub use edit::{Edit, Hunk, Sum};
pub use error::PlanError;
pub use hugetlbfs::MountOptions;

/// The schema of a plan in its [`Envelope`](crate::Envelope).
pub const SCHEMA: &str = "hugewise/plan/3";

/// What to change so that goals are reached. A plan that was read from a file is checked: see [`Plan::from_json`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The goals, each as one can type it after `--for`.
    pub goals: Vec<String>,
    /// The changes, in the order of their application; undoing walks backwards.
    pub changes: Vec<Change>,
    /// What to know about the whole: arithmetic, traps, what is as wanted already.
    pub notes: Vec<String>,
    /// The pool pages that the goals take, so that a later plan adds to them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<PoolNeed>,
}

/// Pages of a pool that one goal of a plan takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PoolNeed {
    /// The goal.
    pub goal: String,
    /// Page size.
    pub page: Bytes,
    /// On this node; without, on all alike.
    pub node: Option<u32>,
    /// How many.
    pub pages: u64,
}

/// One change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// Its name, unique in the plan: lower-case letters, digits, `-`.
    pub id: String,
    /// Which layer of the set-up it belongs to.
    pub layer: Layer,
    /// What is changed.
    pub target: Target,
    /// The value now; where it could not be read, the change is not applied.
    pub before: Reading<Value>,
    /// What shall stand there.
    pub after: Value,
    /// What it is for, with the arithmetic.
    pub why: String,
    /// What it can cost.
    pub risk: Risk,
    /// Who else writes there, and may write over it.
    pub also_written_by: Vec<String>,
    /// The public document that says so.
    pub source: String,
}

/// Layers of a set-up in the order of application: what can fall short comes before what makes it last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Layer {
    /// Users and groups that may use the pools.
    Groups,
    /// How much memory users and services may lock.
    Limits,
    /// Settings of the running kernel; gone after a reboot.
    Runtime,
    /// hugetlbfs.
    Mount,
    /// Control groups.
    Cgroup,
    /// Files that set the running kernel again at each boot.
    Persistence,
    /// The kernel's command line.
    Boot,
    /// The application's own options and files.
    Application,
    /// The hypervisor's settings and a virtual machine's definition.
    Hypervisor,
    /// Nodes, pods and volumes.
    Kubernetes,
    /// Windows: of plans made by versions that had such a goal.
    Windows,
}

/// What a change writes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Target {
    /// A setting of the running kernel. Its value is the text one writes; of a list such as `always [madvise] never` it is
    /// the chosen word.
    Setting {
        /// Its file below `/proc/sys` or `/sys`, one of those that [`Plan::check`] knows.
        path: String,
    },
    /// A file. The value of a new one is its content; of one that is there a checksum before, and the lines that change after.
    File {
        /// One of those that [`Plan::check`] knows, or a server's file that a goal names.
        path: String,
        /// Permissions; without, those of the file that is there (0644 for a new one).
        mode: Option<Mode>,
        /// User and group; without, those of the file that is there (root for a new one).
        owner: Option<Owner>,
    },
    /// A hugetlbfs mount; its value is the options that were asked for, separated by commas: `pagesize=2M,uid=0,gid=0,mode=0770`.
    Mount {
        /// Where; the directory is made if it is not there.
        at: String,
    },
    /// Something that is not written here: its value is what to do, or the file to put there.
    Instruction {
        /// Who does it, or where: `this host`, `the ESX host`, `the virtual machine's .vmx file`.
        on: String,
    },
}

/// What stands in a target. In JSON: null, a number, or a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Value {
    /// Nothing: no such file, not mounted.
    Absent,
    /// Persistent pages of a hugetlb pool (surplus ones are not counted), or its limit of surplus pages.
    Pages(u64),
    /// Anything else, as text.
    Text(String),
    /// A file that is there, by its checksum.
    Sum(Sum),
    /// What changes in that file.
    Edit(Edit),
}

/// Permissions of a file; in JSON as one writes them: `"0644"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode(pub u32);

/// Who owns a file, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Owner {
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
}

/// What a change can cost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Risk {
    /// Does it take effect at the next boot only?
    pub reboot: bool,
    /// Memory that it takes from others.
    pub takes: Option<Taken>,
    /// What must be restarted before it takes effect.
    pub restart: Vec<String>,
    /// What others lose by it, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub losses: Vec<String>,
}

/// Memory that no other program can use any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Taken {
    /// How much.
    pub bytes: Bytes,
    /// From whom.
    pub from: String,
}

impl Plan {
    /// The changes that this host can carry out itself.
    pub fn applicable(&self) -> impl Iterator<Item = &Change> {
        self.changes.iter().filter(|change| change.target.is_applicable())
    }
}

/// The value of a setting by the text of its file: of a list such as `always [madvise] never` the chosen word, of others the words
/// apart by one blank.
pub fn chosen(text: &str) -> String {
    let chosen = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    let words = chosen.map_or(text, |(word, _)| word).split_whitespace();
    words.collect::<Vec<_>>().join(" ")
}

impl Change {
    /// Is everything as wanted already?
    pub fn is_there(&self) -> bool {
        self.before.known() == Some(&self.after)
    }
}

impl Target {
    /// Can it be written here, or is it an instruction for an administrator?
    pub fn is_applicable(&self) -> bool {
        !matches!(self, Self::Instruction { .. })
    }

    /// May a plan for these goals write there?
    pub fn is_allowed(&self, goals: &[String]) -> bool {
        check::check_place(self, goals).is_ok()
    }

    /// The path that is written, if one is.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::Setting { path } | Self::File { path, .. } | Self::Mount { at: path } => Some(path),
            Self::Instruction { .. } => None,
        }
    }
}

impl Value {
    /// The text that is written; nothing if there is none, or if it is known in part only.
    pub fn text(&self) -> Option<String> {
        match self {
            Self::Absent | Self::Sum(_) | Self::Edit(_) => None,
            Self::Pages(pages) => Some(pages.to_string()),
            Self::Text(text) => Some(text.clone()),
        }
    }
}

crate::shown_by_name!(Layer);

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Setting { path } | Self::File { path, .. } => f.pad(path),
            Self::Mount { at } => f.pad(&format!("hugetlbfs on {at}")),
            Self::Instruction { on } => f.pad(on),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => f.pad("(nothing)"),
            Self::Pages(pages) => f.pad(&pages.to_string()),
            Self::Text(text) => f.pad(text),
            Self::Sum(sum) => f.pad(&format!("a file with the SHA-256 {}", sum.sha256)),
            Self::Edit(edit) => f.pad(&edit.lines().join("\n")),
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04o}", self.0)
    }
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let octal = text.len() == 4 && text.bytes().all(|digit| matches!(digit, b'0'..=b'7'));
        let mode = u32::from_str_radix(text, 8).ok().filter(|_| octal);
        // No set-user-id, set-group-id or sticky bits: no file of a plan is a program.
        let mode = mode.filter(|&mode| mode <= 0o777).map(Self);
        mode.ok_or_else(|| format!("`{text}` is not a mode (write three octal digits after a 0, such as 0644)"))
    }
}

crate::as_text!(Mode, {"type": "string"});
