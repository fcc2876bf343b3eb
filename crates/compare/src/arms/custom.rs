//! An arm of one's own: one of a file, or a command that is compared with others.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::PathBuf;

use model::PageKind;
use serde::Deserialize;

use crate::{Error, program};

/// An arm of one's own.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Custom {
    /// The policy that it starts from.
    pub(crate) like: Option<String>,
    /// The page kind that shows whether it took effect.
    pub(crate) kind: Option<PageKind>,
    /// How it gets its pages, instead of what `like` chooses by the program.
    pub(crate) technique: Option<String>,
    /// Which pages which part of its own mappings gets from the LD_PRELOAD library, such as `base,0-512M=hugetlb-2M`.
    pub(crate) layout: Option<String>,
    /// This percent of the 2 MiB ranges of its private memory is collapsed from outside; which ones, chance decides in each run.
    pub(crate) share: Option<u8>,
    /// Instead of the program and its arguments.
    pub(crate) command: Vec<String>,
    /// Variables to set.
    pub(crate) env: BTreeMap<String, String>,
    /// Variables to leave out.
    pub(crate) unset: Vec<String>,
    /// A command of the shell before each run.
    pub(crate) before: Option<String>,
    /// A command of the shell after each run.
    pub(crate) after: Option<String>,
    #[serde(skip)]
    pub(crate) is_typed: bool,
}

impl Custom {
    /// A command in place of the program, and commands of the shell before and after each of its runs.
    pub fn of_command(command: Vec<String>, before: Option<String>, after: Option<String>) -> Self {
        Self {
            command,
            before,
            after,
            is_typed: true,
            ..Self::default()
        }
    }

    /// Its program and arguments, and what is run around it: what a log has to have been made with.
    pub(crate) fn identity(&self) -> String {
        format!("{:?}", (&self.command, &self.before, &self.after))
    }

    /// A program of its own that is not there is reported before any run, unless a command before its runs may make it.
    pub(super) fn must_be_there(&self) -> Result<(), Error> {
        let is_made = self.before.is_some() || self.unset.iter().any(|name| name == "PATH");
        let Some(name) = self.command.first().filter(|name| !is_made && !name.contains("{arm}")) else {
            return Ok(());
        };
        let own = self.env.get("PATH").map(Into::into);
        let path = own.or_else(|| std::env::var_os("PATH"));
        match program::look(OsStr::new(name), path.as_deref()) {
            Err(nowhere @ program::LookError::Nowhere(_)) => Err(nowhere.into()),
            _ => Ok(()),
        }
    }

    /// The file of its program; of a line of the shell that of its first word. None where a command before each run may make it.
    pub(crate) fn file(&self) -> Option<PathBuf> {
        let name = match &self.command[..] {
            [_, .., option, line] if option == "-c" => line.split_whitespace().next()?,
            words => words.first()?,
        };
        let path = std::env::var_os("PATH");
        let is_made = self.before.is_some();
        let found = (!is_made).then(|| program::find(OsStr::new(name), path.as_deref()).ok());
        found.flatten()
    }

    /// The program and its arguments.
    pub fn words(&self) -> &[String] {
        &self.command
    }
}
