//! What to do next about a program, as data.

use model::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Something to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "step")]
pub enum Step {
    /// Plan for a goal, and apply it.
    Plan {
        /// The goal, for `--for`.
        goal: String,
    },
    /// Set this in the program's own configuration.
    Set {
        /// The line or option.
        setting: String,
        /// Where.
        place: String,
    },
    /// Leave this out of the program's own configuration.
    LeaveOut {
        /// The line or option.
        setting: String,
        /// Where.
        place: String,
    },
    /// Raise the limit of hugetlb pages of a control group.
    Raise {
        /// The limit's file.
        file: String,
        /// To this.
        bytes: Bytes,
        /// Page size.
        page: Bytes,
    },
    /// Start it anew.
    Restart {
        /// Its systemd service, if it runs as one.
        unit: Option<String>,
    },
    /// Look again.
    Explain,
    /// Look with the rights to read its mappings.
    ExplainAsRoot,
    /// Compare base and huge pages in the running process.
    CompareLive {
        /// The port at which a load reaches it, where that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        port: Option<u16>,
        /// The socket, or the directory of it, likewise.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        socket: Option<String>,
    },
    /// Give the running process huge pages.
    Collapse,
    /// See whether it helped.
    Compare {
        /// How a comparison starts and reaches it anew, of a database that takes its pages at its start.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        server: Option<Server>,
        /// How any other program that does so was started.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        command: Option<Command>,
    },
    /// See what the page sizes of a virtual machine and its host cost there, on this machine.
    MeasureGuest,
}

/// How a program was started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Command {
    /// Its arguments, the program first.
    pub arguments: Vec<String>,
    /// Whose rights it has: user and group.
    pub ids: (u32, u32),
}

/// A running database server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Server {
    /// Which, by the word of its goal: `postgres` or `mysql`.
    pub database: String,
    /// Its arguments, the program first.
    pub arguments: Vec<String>,
    /// Whose rights it has: user and group.
    pub ids: (u32, u32),
    /// Its port, where that is known.
    pub port: Option<u16>,
    /// Its socket, or the directory of it, where that is known.
    pub socket: Option<String>,
}
