//! How the arms of a comparison take turns.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

crate::names! {
    /// How arms take turns. What a block holds of each is a [`Run`] in every method.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum Method {
        /// The program is started anew for each run, and runs to its end.
        #[default]
        Runs = "runs",
        /// Each arm's program is alive all the time, and all but one are stopped: slices of time.
        Slices = "slices",
        /// One process whose memory changes between page kinds while it lives: slices of time.
        Flip = "flip",
    }
}

impl Method {
    /// What a block is made of, in words.
    pub fn title(self) -> &'static str {
        match self {
            Self::Runs => "whole runs",
            Self::Slices => "slices of programs that are alive at once",
            Self::Flip => "slices of one process whose pages change in place",
        }
    }

    /// What one turn of an arm is called.
    pub fn turn(self) -> &'static str {
        match self {
            Self::Runs => "run",
            Self::Slices | Self::Flip => "slice",
        }
    }
}
