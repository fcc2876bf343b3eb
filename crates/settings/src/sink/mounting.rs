//! Mounting hugetlbfs and taking it away again, at the very directory that was looked at.

use std::io;

use host::Source;
use rustix::fs::{Dir, OFlags};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, UnmountFlags, fsconfig_create, fsconfig_set_string,
    fsmount, fsopen, move_mount, unmount as unmount_at,
};

use super::rooted::Rooted;
use crate::place::State;

const HUGETLBFS: &str = "hugetlbfs";

/// What is mounted at a path; the last one is on top.
pub(super) fn look(at: &str) -> io::Result<State> {
    let mounts = host::snapshot::mounts::all(&Source::live()).into_result();
    let mounts = mounts.map_err(io::Error::other)?;
    let on_top = mounts.into_iter().rfind(|mount| mount.target == at);
    Ok(on_top.map_or(State::Absent, |mount| match mount.kind.as_str() {
        HUGETLBFS => State::Mounted(mount.options.join(",")),
        kind => State::Other(format!("a mount of {kind}")),
    }))
}

/// Mounts a hugetlbfs; nothing is there before all its options have been taken.
pub(super) fn mount(root: &Rooted, at: &str, options: &str) -> io::Result<()> {
    let target = root.find(at, OFlags::PATH | OFlags::DIRECTORY)?;
    if !is_empty(root, at)? {
        let why = "there are files in the directory, which the mount would hide";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    let system = fsopen(HUGETLBFS, FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(&system, "source", HUGETLBFS)?;
    for (name, value) in options.split(',').filter_map(|option| option.split_once('=')) {
        fsconfig_set_string(&system, name, value)?;
    }
    fsconfig_create(&system)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    let mount = fsmount(&system, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?;
    let paths = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(move_mount(&mount, "", &target, "", paths)?)
}

fn is_empty(root: &Rooted, at: &str) -> io::Result<bool> {
    let entries = Dir::new(root.find(at, OFlags::RDONLY | OFlags::DIRECTORY)?)?;
    for entry in entries {
        if !matches!(entry?.file_name().to_bytes(), b"." | b"..") {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Unmounts the topmost hugetlbfs, unless it is in use.
pub(super) fn unmount(root: &Rooted, at: &str) -> io::Result<()> {
    match look(at)? {
        State::Mounted(_) => {}
        State::Absent => return Ok(()),
        other => return Err(io::Error::new(io::ErrorKind::InvalidInput, other.to_string())),
    }
    // Refuses a path through a link before the call that would follow it.
    root.find(at, OFlags::PATH | OFlags::DIRECTORY)?;
    Ok(unmount_at(at, UnmountFlags::NOFOLLOW)?)
}
