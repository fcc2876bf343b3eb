//! /proc/PID/cgroup: in which control group a process is, and which unit, service or container that stands for.

use model::{Cause, Reading, Unread};

use crate::Source;

/// Words in the path of a control group that only container runtimes put there.
const CONTAINERS: [&str; 8] = [
    "docker",
    "kubepods",
    "libpod",
    "lxc",
    "crio-",
    "cri-containerd",
    "machine.slice/machine-",
    "ecs/",
];
/// Letters of a container's id that its tools show.
const SHORT_ID: usize = 12;

/// The groups of one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    /// Path in the hierarchy that limits hugetlb pages, or else in the one hierarchy that there is.
    pub limits: String,
    /// Path in the hierarchy that systemd keeps, where it is another one.
    pub named: String,
}

impl Membership {
    /// The groups of a process; absent in a capture without processes.
    pub fn read(source: &Source, pid: u32) -> Reading<Self> {
        let path = format!("/proc/{pid}/cgroup");
        source.text(&path).and_then(|text| Self::parse(&path, &text))
    }

    /// Lines `N:CONTROLLERS:PATH`; `path` is named in the reasons only.
    pub fn parse(path: &str, text: &str) -> Result<Self, Unread> {
        let of = |controller: &str| group_of(text, controller);
        let (unified, systemd) = (of(""), of("name=systemd"));
        let any = of("hugetlb").or(unified).or(systemd);
        let any = any.or_else(|| lines(text).next().map(|(_, group)| group));
        let limits = any.ok_or_else(|| Unread::new(Cause::Absent, path, "no line of a known hierarchy"))?;
        Ok(Self {
            limits: limits.to_owned(),
            named: systemd.filter(|group| *group != "/").unwrap_or(limits).to_owned(),
        })
    }

    /// The innermost service of the system. Those of a user's own manager have their units elsewhere, and limits of a
    /// login.
    pub fn service(&self) -> Option<String> {
        let of_system = self.named.split('/').take_while(|part| !part.starts_with("user@"));
        of_system
            .filter(|part| part.ends_with(".service"))
            .last()
            .map(str::to_owned)
    }

    /// The innermost service or scope, a user's own included.
    pub fn unit(&self) -> Option<&str> {
        let mut parts = self.named.rsplit('/');
        parts.find(|part| part.ends_with(".service") || part.ends_with(".scope"))
    }

    /// Does the path look like a container's?
    pub fn is_container(&self) -> bool {
        CONTAINERS
            .iter()
            .any(|word| self.named.contains(word) || self.limits.contains(word))
    }

    /// The container's short id or name, if the path has one.
    pub fn container(&self) -> Option<String> {
        [&self.named, &self.limits].into_iter().find_map(|path| container(path))
    }

    /// The paths of the group and of all above it, from the root `/` down.
    pub fn with_parents(&self) -> Vec<String> {
        let named = |path: &str| match path {
            "" => "/".to_owned(),
            path => path.to_owned(),
        };
        let mut all: Vec<String> = with_ancestors(&self.limits).map(named).collect();
        all.reverse();
        all
    }
}

/// Lines `N:CONTROLLERS:PATH`.
fn lines(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        Some((fields.next()?, fields.next()?))
    })
}

/// The group in the hierarchy of a controller; v2 has none there.
pub fn group_of<'a>(text: &'a str, controller: &str) -> Option<&'a str> {
    let mut lines = lines(text);
    let (_, group) = lines.find(|(names, _)| names.split(',').any(|name| name == controller))?;
    Some(group)
}

/// A group or any other path, and all above it; the topmost one is empty.
pub fn with_ancestors<'a>(path: &'a str) -> impl Iterator<Item = &'a str> {
    let above = |path: &&'a str| path.rsplit_once('/').map(|(above, _)| above);
    std::iter::successors(Some(path.trim_end_matches('/')), above)
}

/// `docker-ID.scope`, `kubepods/burstable/podX/ID`, `lxc.payload.NAME`, `machine-NAME.scope`: the innermost that fits.
/// A machine of libvirt (`machine-qemu...`) is no container.
fn container(path: &str) -> Option<String> {
    let parts: Vec<&str> = path.split('/').collect();
    let after_lxc = || {
        let mut parts = parts.iter().skip_while(|part| **part != "lxc");
        parts.nth(1).map(|name| (*name).to_owned())
    };
    parts.iter().rev().find_map(|part| name(part)).or_else(after_lxc)
}

fn name(part: &str) -> Option<String> {
    let bare = part.strip_suffix(".scope").unwrap_or(part);
    if let Some(name) = bare.strip_prefix("lxc.payload.") {
        return Some(name.to_owned());
    }
    if let Some(name) = bare.strip_prefix("machine-").filter(|name| !name.starts_with("qemu")) {
        return Some(name.replace("\\x2d", "-"));
    }
    let id = bare.rsplit(['-', ':']).next().unwrap_or(bare);
    let is_id = id.len() == 64 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_id.then(|| id[..SHORT_ID].to_owned())
}

#[cfg(test)]
mod tests {
    use super::Membership;

    fn of(text: &str) -> Membership {
        Membership::parse("/proc/5/cgroup", text).expect("a line")
    }

    #[test]
    fn the_hierarchy_of_hugetlb_holds_for_limits_and_systemd_s_for_names() {
        let hybrid = "12:hugetlb:/docker/x\n1:name=systemd:/system.slice/db.service\n0::/other\n";
        let groups = of(hybrid);
        assert_eq!(
            (groups.limits.as_str(), groups.named.as_str()),
            ("/docker/x", "/system.slice/db.service")
        );
        assert_eq!(groups.service().as_deref(), Some("db.service"));
        assert_eq!(of("0::/a/b\n").with_parents(), ["/", "/a", "/a/b"]);
        assert_eq!(of("0::/\n").with_parents(), ["/"]);
        assert!(Membership::parse("/proc/5/cgroup", "nothing\n").is_err());
    }

    #[test]
    fn containers_are_known_by_id_or_name_and_virtual_machines_are_none() {
        let id = "0123456789abcdef".repeat(4);
        for path in [
            format!("/docker/{id}"),
            format!("/system.slice/docker-{id}.scope"),
            format!("/kubepods.slice/kubepods-pod1.slice/cri-containerd-{id}.scope"),
            format!("/kubepods/burstable/pod1-2/{id}"),
            format!("/machine.slice/libpod-{id}.scope/container"),
        ] {
            let groups = of(&format!("0::{path}"));
            assert_eq!(groups.container().as_deref(), Some("0123456789ab"), "{path}");
            assert!(groups.is_container(), "{path}");
        }
        let named = |path: &str| of(&format!("0::{path}")).container();
        assert_eq!(named("/lxc.payload.web/system.slice/x.service").as_deref(), Some("web"));
        assert_eq!(named("/lxc/web/init.scope").as_deref(), Some("web"));
        assert_eq!(
            named("/machine.slice/machine-my\\x2dbox.scope").as_deref(),
            Some("my-box")
        );
        assert_eq!(named("/machine.slice/machine-qemu\\x2d1\\x2dvm.scope"), None);
        assert_eq!(named("/system.slice/postgresql.service"), None);
    }

    #[test]
    fn a_user_s_own_unit_is_a_unit_but_no_service_of_the_system() {
        let groups = of("0::/user.slice/user-1000.slice/user@1000.service/app.slice/app-shell.scope");
        assert_eq!(groups.unit(), Some("app-shell.scope"));
        assert_eq!(groups.service(), None);
        assert_eq!(of("0::/init.scope").unit(), Some("init.scope"));
        assert_eq!(of("0::/").unit(), None);
    }
}
