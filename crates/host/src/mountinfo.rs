//! /proc/PID/mountinfo: what is mounted where, and which part of it.

use crate::Source;
use crate::membership::group_of;
use crate::snapshot::mounts::unescape;

pub(crate) const OWN: &str = "/proc/self/mountinfo";

/// A line `ID PARENT DEVICE TOP TARGET OPTIONS [TAGS...] - KIND SOURCE OWN`.
pub(crate) struct Mount<'t> {
    pub(crate) id: u64,
    /// `MAJOR:MINOR`.
    pub(crate) device: &'t str,
    /// What of the file system is its top; of control groups a group.
    top: String,
    pub(crate) target: String,
    pub(crate) kind: &'t str,
    /// The options of the file system itself.
    options: &'t str,
}

impl<'t> Mount<'t> {
    fn parse(line: &'t str) -> Option<Self> {
        let (own, system) = line.split_once(" - ")?;
        let (mut own, mut system) = (own.split(' '), system.split(' '));
        Some(Self {
            id: own.next()?.parse().ok()?,
            device: own.nth(1)?,
            top: unescape(own.next()?),
            target: unescape(own.next()?),
            kind: system.next()?,
            options: system.nth(1).unwrap_or_default(),
        })
    }

    pub(crate) fn options(&self) -> impl Iterator<Item = &'t str> {
        self.options.split(',')
    }

    /// The rest of a path below its top, without a slash at the end; `None` where it is outside of the mount.
    pub(crate) fn below<'p>(&self, path: &'p str) -> Option<&'p str> {
        let rest = path.strip_prefix(self.top.trim_end_matches('/'))?;
        (rest.is_empty() || rest.starts_with('/')).then(|| rest.trim_end_matches('/'))
    }
}

/// Those whose lines are whole.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = Mount<'_>> {
    text.lines().filter_map(Mount::parse)
}

/// The directory of this process's group in the unified hierarchy; `None` where there is none, or it is outside of what is mounted.
pub fn own_group(source: &Source) -> Option<String> {
    let mounts = source.text(OWN).into_result().ok()?;
    let groups = source.text("/proc/self/cgroup").into_result().ok()?;
    let mount = lines(&mounts).find(|mount| mount.kind == "cgroup2")?;
    let below = mount.below(group_of(&groups, "")?)?;
    Some(format!("{}{below}", mount.target))
}

#[cfg(test)]
mod tests {
    use super::own_group;
    use crate::{Source, Tree};

    fn at(mount: &str, group: &str) -> Option<String> {
        let mounts = format!("30 23 0:26 / /proc rw - proc proc rw\n{mount}\n");
        let machine = Tree::new().file("/proc/self/mountinfo", mounts);
        let groups = format!("4:memory:/docker/x\n{group}\n");
        own_group(&Source::from_tree("made", machine.file("/proc/self/cgroup", groups)))
    }

    #[test]
    fn the_own_group_is_below_the_mount_or_nowhere() {
        let whole = "31 23 0:27 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate";
        let of = |path: &str| Some(path.to_owned());
        assert_eq!(at(whole, "0::/user.slice/a"), of("/sys/fs/cgroup/user.slice/a"));
        assert_eq!(at(whole, "0::/"), of("/sys/fs/cgroup"));
        let part = "31 23 0:27 /docker/x /sys/fs/a\\040cgroup ro - cgroup2 cgroup rw";
        assert_eq!(at(part, "0::/docker/x/own"), of("/sys/fs/a cgroup/own"));
        assert_eq!(at(part, "0::/../y"), None, "it is outside of what is mounted");
        assert_eq!(at(part, "0::/docker/xy"), None, "a name that only begins alike");
        let v1 = "31 23 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory";
        assert_eq!(at(v1, "0::/"), None);
    }
}
