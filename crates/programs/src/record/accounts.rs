//! The accounts part of a capture: names of the users that run something, and of the groups that may use huge pages.

use std::collections::BTreeSet;

use model::Bytes;

use super::keep::Kept;
use super::recorder::Recorder;
use crate::Program;

const LARGEST_FILE: Bytes = Bytes::mib(4);

/// Users of processes, their groups, and the group of `vm.hugetlb_shm_group`.
pub(super) fn record(recorder: &mut Recorder<'_>, programs: &[Program]) {
    let users: BTreeSet<u32> = programs
        .iter()
        .filter_map(|program| program.pages.uid.known().copied())
        .collect();
    let mut groups: BTreeSet<u32> = programs
        .iter()
        .filter_map(|program| program.groups.known())
        .flatten()
        .copied()
        .collect();
    let shm = recorder.source.number("/proc/sys/vm/hugetlb_shm_group");
    groups.extend(shm.known().and_then(|&group| u32::try_from(group).ok()));
    let passwd = recorder.source.text("/etc/passwd").into_result().unwrap_or_default();
    let names: BTreeSet<&str> = passwd
        .lines()
        .filter(|line| has_id(line, &users))
        .filter_map(|line| line.split(':').next())
        .collect();
    recorder.file("/etc/passwd", LARGEST_FILE, |bytes| {
        accounts(bytes, |line| user(line).filter(|_| has_id(line, &users)))
    });
    recorder.file("/etc/group", LARGEST_FILE, |bytes| {
        accounts(bytes, |line| {
            group(line, &names)
                .filter(|(_, ours)| *ours || has_id(line, &groups))
                .map(|(line, _)| line)
        })
    });
}

fn has_id(line: &str, ids: &BTreeSet<u32>) -> bool {
    let id = line.split(':').nth(2).and_then(|id| id.parse().ok());
    id.is_some_and(|id| ids.contains(&id))
}

fn accounts(bytes: &[u8], keep: impl Fn(&str) -> Option<String>) -> Kept {
    let text = String::from_utf8_lossy(bytes);
    let kept: Vec<String> = text.lines().filter_map(keep).collect();
    let left_out = text.lines().count() - kept.len();
    let lines: String = kept.iter().map(|line| format!("{line}\n")).collect();
    Kept::part(lines.into_bytes(), left_out, "accounts that run nothing")
}

/// `NAME:PASSWORD:UID:GID:FULL NAME:HOME:SHELL` without what is personal.
fn user(line: &str) -> Option<String> {
    let mut fields = line.split(':');
    let (name, uid, gid) = (fields.next()?, fields.nth(1)?, fields.next()?);
    Some(format!("{name}:x:{uid}:{gid}:::"))
}

/// `NAME:PASSWORD:GID:MEMBERS` with those members that run something, and whether there are any.
fn group(line: &str, names: &BTreeSet<&str>) -> Option<(String, bool)> {
    let mut fields = line.split(':');
    let (name, gid) = (fields.next()?, fields.nth(1)?);
    let members = fields.next().unwrap_or_default().split(',');
    let members: Vec<&str> = members.filter(|member| names.contains(member)).collect();
    Some((format!("{name}:x:{gid}:{}", members.join(",")), !members.is_empty()))
}
