//! /proc/PID/status: the cheap account of a process, readable without its memory lock.
//!
//! An own parser, because process names may hold colons and bytes that are not UTF-8, and because a missing or a
//! garbled line must cost that line only.

use model::{Bytes, Cause, Reading, Unread};

use super::lines::{Line, decimal, lines};
use crate::Source;

/// What `status` says about a process. A line that is missing is absent, one that cannot be read is garbled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// `Name`, with the kernel's escapes undone: it may hold newlines and other control characters.
    pub name: Reading<String>,
    /// `Uid`, the second number: the effective user, as ps shows it.
    pub uid: Reading<u32>,
    /// `Kthread` (Linux 6.8 and later): is this a thread of the kernel?
    pub kernel_thread: Reading<bool>,
    /// `VmRSS`: resident memory without hugetlb pages.
    pub rss: Reading<Bytes>,
    /// `RssAnon`: the anonymous part of `VmRSS`.
    pub rss_anon: Reading<Bytes>,
    /// `RssFile`: the file part of `VmRSS`.
    pub rss_file: Reading<Bytes>,
    /// `RssShmem`: the shared memory part of `VmRSS`.
    pub rss_shmem: Reading<Bytes>,
    /// `VmPTE`: page tables.
    pub page_tables: Reading<Bytes>,
    /// `HugetlbPages`: hugetlb pages of all sizes.
    pub hugetlb: Reading<Bytes>,
    /// `THP_enabled`: `false` when THP was switched off by prctl, here or in an ancestor.
    pub thp_enabled: Reading<bool>,
}

impl Status {
    /// That of a process that has memory of its own.
    pub(super) fn read(source: &Source, pid: u32) -> Result<Self, Unread> {
        let path = format!("/proc/{pid}/status");
        let status = Self::parse(&path, &source.bytes(&path).into_result()?);
        if !status.has_memory() {
            let why = "a thread of the kernel or a zombie has no memory of its own";
            return Err(Unread::new(Cause::Absent, path, why));
        }
        Ok(status)
    }

    /// Reads the text of a status file; `path` is named in the reasons only.
    pub fn parse(path: &str, bytes: &[u8]) -> Self {
        let values = lines(path, bytes).filter_map(|line| line.key_value().map(|(key, value)| (line, key, value)));
        let values: Vec<(Line<'_>, &[u8], &[u8])> = values.collect();
        Self::of(|wanted| {
            let found = values.iter().rfind(|(_, key, _)| *key == wanted.as_bytes());
            let absent = || Unread::new(Cause::Absent, path, format!("no {wanted} line"));
            found.map(|&(line, _, value)| (line, value)).ok_or_else(absent)
        })
    }

    /// A status of which nothing could be read; `why` is asked for each line by its key.
    pub(super) fn unread(why: impl Fn(&str) -> Unread) -> Self {
        Self::of(|key| Err(why(key)))
    }

    /// From its lines by their keys.
    fn of<'a>(value: impl Fn(&str) -> Result<(Line<'a>, &'a [u8]), Unread>) -> Self {
        let kib = |key| {
            value(key)
                .and_then(|(line, value)| line.kib(key.as_bytes(), value))
                .into()
        };
        let flag = |key| value(key).and_then(|(line, value)| line.flag(key, value)).into();
        let name = |value: &[u8]| unescape(value.strip_prefix(b"\t").unwrap_or(value));
        Self {
            name: value("Name").map(|(_, value)| name(value)).into(),
            uid: value("Uid")
                .and_then(|(line, value)| effective_uid(&line, value))
                .into(),
            kernel_thread: flag("Kthread"),
            rss: kib("VmRSS"),
            rss_anon: kib("RssAnon"),
            rss_file: kib("RssFile"),
            rss_shmem: kib("RssShmem"),
            page_tables: kib("VmPTE"),
            hugetlb: kib("HugetlbPages"),
            thp_enabled: flag("THP_enabled"),
        }
    }

    /// Has it memory of its own? Threads of the kernel and zombies have none: their status ends without the Vm lines.
    pub fn has_memory(&self) -> bool {
        self.kernel_thread.known() != Some(&true) && !(self.rss.is_absent() && self.page_tables.is_absent())
    }
}

fn effective_uid(line: &Line<'_>, value: &[u8]) -> Result<u32, Unread> {
    value
        .trim_ascii()
        .split(u8::is_ascii_whitespace)
        .nth(1)
        .and_then(decimal)
        .and_then(|uid| u32::try_from(uid).ok())
        .ok_or_else(|| line.garbled("Uid", value, "four user ids"))
}

/// Undoes the two escapes of the Name line (`\n` for a newline, `\\` for a backslash); other bytes are as the process
/// chose them.
fn unescape(value: &[u8]) -> String {
    let mut name = Vec::with_capacity(value.len());
    let mut rest = value;
    while let [first, more @ ..] = rest {
        let (byte, after) = match rest {
            [b'\\', b'n', after @ ..] => (b'\n', after),
            [b'\\', b'\\', after @ ..] => (b'\\', after),
            _ => (*first, more),
        };
        name.push(byte);
        rest = after;
    }
    String::from_utf8_lossy(&name).into_owned()
}

#[cfg(test)]
#[path = "status_tests.rs"]
mod tests;
