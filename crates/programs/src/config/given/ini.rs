//! Files of `name = value` lines: postgresql.conf and my.cnf.

use model::{Bytes, Unread};

use crate::config::files::{Line, said};
use crate::config::mysql::{self, Options};
use crate::config::{Setting, Settings, memparse, postgres};
use host::parse::amount;

/// A server by its configuration file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// The file.
    pub path: String,
    /// What it says, the last one of a name holds.
    pub settings: Settings,
}

impl Server {
    fn new(path: &str, settings: Vec<Setting>) -> Self {
        Self {
            path: path.to_owned(),
            settings: Settings(settings),
        }
    }
    /// A size of PostgreSQL: `1GB`, `512 MB`, or a number of `blocks` (config-setting: memory units are kB, MB, GB, TB).
    ///
    /// # Errors
    /// Garbled if it is none.
    pub fn postgres_bytes(&self, name: &str, block: Bytes) -> Result<Option<Bytes>, Unread> {
        let Some(line) = self.settings.last(name) else {
            return Ok(None);
        };
        let digits = line.value.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let unit = match &line.value[digits.len()..] {
            "" => Some(block.0),
            "B" => Some(1),
            "kB" => Some(1 << 10),
            "MB" => Some(1 << 20),
            "GB" => Some(1 << 30),
            "TB" => Some(1 << 40),
            _ => None,
        };
        let bytes = amount(digits.trim())
            .zip(unit)
            .map(|(number, unit)| Bytes((number * unit as f64) as u64));
        bytes.map(Some).ok_or_else(|| line.garbled("a size such as 8GB"))
    }

    /// A size of MySQL: `8G`, `134217728`.
    ///
    /// # Errors
    /// Garbled if it is none.
    pub fn mysql_bytes(&self, name: &str) -> Result<Option<Bytes>, Unread> {
        let line = self.settings.last(name);
        let bytes = |line: &Setting| memparse(&line.value).ok_or_else(|| line.garbled("a size such as 8G"));
        line.map(bytes).transpose()
    }

    /// A switch of MySQL; off if nothing is said.
    pub fn mysql_is_on(&self, name: &str) -> bool {
        self.settings.last(name).is_some_and(|line| mysql::is_on(&line.value))
    }
}

/// postgresql.conf: `name = value` or `name value`, quotes and `# comments` taken off, names in small letters.
pub(super) fn postgres(path: &str, text: &str, bad: &mut Vec<Unread>) -> Server {
    let setting = |line: Line<'_>| {
        let found = postgres::pair(line.text);
        if found.is_none() {
            bad.push(line.garbled("`name = value`"));
        }
        found.map(|(name, value)| line.setting(name, value))
    };
    Server::new(path, said(path, text, &['#']).filter_map(setting).collect())
}

/// my.cnf: what the server's groups say.
pub(super) fn mysql(path: &str, text: &str, bad: &mut Vec<Unread>) -> Server {
    Server::new(path, Options::parse(path, text, bad).settings.0)
}
