//! The accounts part of a capture: names of the users that run something, and of the groups that may use huge pages.

use std::collections::BTreeSet;

use host::accounts::{GROUP, Group, PASSWD, User, groups, users};
use model::Bytes;

use super::keep::Kept;
use super::recorder::Recorder;
use crate::Program;

const LARGEST_FILE: Bytes = Bytes::mib(4);

/// Users of processes, their groups, and the group of `vm.hugetlb_shm_group`.
pub(super) fn record(recorder: &mut Recorder<'_>, programs: &[Program]) {
    let uids: BTreeSet<u32> = programs
        .iter()
        .filter_map(|program| program.pages.uid.known().copied())
        .collect();
    let mut gids: BTreeSet<u32> = programs
        .iter()
        .filter_map(|program| program.groups.known())
        .flatten()
        .copied()
        .collect();
    let source = recorder.source;
    let shm = source.number("/proc/sys/vm/hugetlb_shm_group");
    gids.extend(shm.known().and_then(|&group| u32::try_from(group).ok()));
    let text = |path| {
        let bytes = source.bytes_within(path, LARGEST_FILE);
        bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    };
    let (passwd, group) = (text(PASSWD), text(GROUP));
    let all = users(passwd.known().map_or("", String::as_str));
    let running: Vec<User> = all.filter(|user| uids.contains(&user.uid)).collect();
    let named = |name: &String| running.iter().any(|user| user.name == *name);
    let group_line = |mut group: Group| {
        group.members.retain(named);
        let is_kept = !group.members.is_empty() || gids.contains(&group.gid);
        is_kept.then(|| format!("{}:x:{}:{}\n", group.name, group.gid, group.members.join(",")))
    };
    let of_users = passwd.map(|text| kept(&text, &running.iter().map(user_line).collect::<Vec<_>>()));
    let of_groups = group.map(|text| kept(&text, &groups(&text).filter_map(group_line).collect::<Vec<_>>()));
    recorder.put(PASSWD, of_users);
    recorder.put(GROUP, of_groups);
}

/// Without what is personal.
fn user_line(user: &User) -> String {
    let gid = user.gid.map_or_else(String::new, |gid| gid.to_string());
    format!("{}:x:{}:{gid}:::\n", user.name, user.uid)
}

fn kept(text: &str, lines: &[String]) -> Kept {
    let left_out = text.lines().count() - lines.len();
    Kept::part(lines.concat().into_bytes(), left_out, "accounts that run nothing")
}
