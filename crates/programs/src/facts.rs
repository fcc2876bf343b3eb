//! Small files of one process: status lines, limits, arguments, environment, start time.

use std::collections::BTreeMap;

use model::{Bytes, Cause, Reading, Unread};

use super::locks::Lock;
use super::tunables::is_tunable;
use super::{Limit, Setting};
use crate::config::Settings;
use crate::size::mysql::Innodb;
use host::processes::Stat;
use host::{CpuList, Source, parse};

/// What the own files and the arguments of a database say.
pub(super) struct Own {
    /// The setting that switches huge pages on, if it is written anywhere.
    pub(super) setting: Reading<Option<Setting>>,
    /// What its files set, as far as they could be read, and over them its arguments.
    pub(super) settings: Settings,
    /// A line of its files by which it is to lock its memory.
    pub(super) lock: Option<Lock>,
    /// The option file that is read first.
    pub(super) option_file: Option<String>,
    /// What decides the pages of MySQL; `None` where its files could not be read.
    pub(super) innodb: Option<Innodb>,
    /// What the program refuses or ignores.
    pub(super) refused: Vec<Unread>,
}

impl Default for Own {
    fn default() -> Self {
        Self {
            setting: Reading::Known(None),
            settings: Settings::default(),
            lock: None,
            option_file: None,
            innodb: None,
            refused: Vec::new(),
        }
    }
}

/// /proc/PID/status: lines that the accounts of pages do not need.
pub(super) struct Status {
    path: String,
    text: Reading<String>,
}

impl Status {
    pub(super) fn read(source: &Source, pid: u32) -> Self {
        let path = format!("/proc/{pid}/status");
        let bytes = source.bytes(&path);
        let text = bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        Self { path, text }
    }

    /// A value with the number of its line, counted from 0.
    fn field(&self, key: &str) -> Result<(usize, &str), Unread> {
        let text = self.text.as_ref().into_result()?;
        let found = text.lines().enumerate().find_map(|(index, line)| {
            let (name, value) = line.split_once(':')?;
            (name == key).then(|| (index, value.trim()))
        });
        found.ok_or_else(|| Unread::new(Cause::Absent, self.path.clone(), format!("no {key} line")))
    }

    pub(super) fn number(&self, key: &str) -> Result<u64, Unread> {
        let (index, value) = self.field(key)?;
        parse::value(&self.path, index, key, "a whole number", value)
    }

    pub(super) fn size(&self, key: &str) -> Result<Bytes, Unread> {
        let (index, size) = self.field(key)?;
        parse::kib(&self.path, index, key, size.trim_end_matches("kB"))
    }

    pub(super) fn list(&self, key: &str, wanted: &'static str) -> Result<CpuList, Unread> {
        let (index, list) = self.field(key)?;
        parse::value(&self.path, index, key, wanted, list)
    }

    pub(super) fn capabilities(&self) -> Result<u64, Unread> {
        let (index, hex) = self.field("CapEff")?;
        let garbled = |_| parse::garbled(&self.path, index, "CapEff", "a set of bits in hex", hex);
        u64::from_str_radix(hex, 16).map_err(garbled)
    }

    /// The effective group is the second number of `Gid`.
    pub(super) fn groups(&self) -> Result<Vec<u32>, Unread> {
        let (_, gid) = self.field("Gid")?;
        let (_, more) = self.field("Groups")?;
        let all = gid.split_whitespace().skip(1).take(1).chain(more.split_whitespace());
        Ok(all.filter_map(|gid| gid.parse().ok()).collect())
    }
}

/// The soft limit of locked memory, from /proc/PID/limits.
pub(super) fn memlock(source: &Source, pid: u32) -> Reading<Limit> {
    let path = format!("/proc/{pid}/limits");
    source.text(&path).and_then(|text| {
        let absent = || Unread::new(Cause::Absent, path.clone(), "no `Max locked memory` line");
        let mut lines = text.lines().enumerate();
        let (index, line) = lines
            .find(|(_, line)| line.starts_with("Max locked memory"))
            .ok_or_else(absent)?;
        let soft = line.split_whitespace().nth(3).unwrap_or_default();
        match soft {
            "unlimited" => Ok(Limit::Unlimited),
            bytes => parse::value(&path, index, "Max locked memory", "bytes or `unlimited`", bytes).map(Limit::Bytes),
        }
    })
}

/// The arguments, as the process shows them.
pub(super) fn arguments(source: &Source, pid: u32) -> Reading<Vec<String>> {
    source
        .bytes(&format!("/proc/{pid}/cmdline"))
        .map(|bytes| zero_ended(&bytes))
}

/// The known tunables of its environment.
pub(super) fn tunables(source: &Source, pid: u32) -> Reading<BTreeMap<String, String>> {
    source.bytes(&format!("/proc/{pid}/environ")).map(|bytes| {
        let pair = |entry: String| {
            let (name, value) = entry.split_once('=')?;
            is_tunable(name).then(|| (name.to_owned(), value.to_owned()))
        };
        zero_ended(&bytes).into_iter().filter_map(pair).collect()
    })
}

/// Texts that are separated and ended by zero bytes, as `cmdline` and `environ` have them.
pub(crate) fn zero_ended(bytes: &[u8]) -> Vec<String> {
    let whole = bytes.strip_suffix(b"\0").unwrap_or(bytes);
    if whole.is_empty() {
        return Vec::new();
    }
    whole
        .split(|&byte| byte == 0)
        .map(|text| String::from_utf8_lossy(text).into_owned())
        .collect()
}

/// Ticks per second of times that the kernel reports to programs; 100 on every architecture but alpha and ia64.
pub(super) const TICKS: f64 = 100.0;

/// Seconds from boot to its start.
pub(super) fn started(source: &Source, pid: u32) -> Reading<f64> {
    let ticks = Stat::of(source, pid).and_then(|stat| {
        stat.and_then(|stat| stat.started()).ok_or_else(|| {
            let place = format!("/proc/{pid}/stat:1");
            Unread::new(Cause::Garbled, place, "field 22 is not clock ticks since boot")
        })
    });
    ticks.map(|ticks| ticks as f64 / TICKS)
}
