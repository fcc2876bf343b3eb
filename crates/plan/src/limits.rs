//! Limits of locked memory and of System V shared memory on huge pages, and the group that may use it.

use model::plan::{Layer, Value};
use model::{Bytes, Reading};
use programs::Limit;
use programs::config::memlock_for;

use super::Host;
use super::draft::{Draft, Drafts};
use super::files::{sets, with_line, with_line_in};
use super::pools::sysctl;

const LIMITS_D: &str = "/etc/security/limits.d/60-hugewise.conf";
const LIMITS_CONF: &str = "/etc/security/limits.conf";
const HUGETLB: &str = "Linux Documentation/admin-guide/mm/hugetlbpage.rst, vm.hugetlb_shm_group";

/// A user of System V shared memory on huge pages, and how much it takes.
pub(super) struct Shared<'g> {
    pub(super) user: Option<&'g str>,
    pub(super) group: Option<&'g str>,
    pub(super) service: Option<&'g str>,
    /// In whole pages.
    pub(super) bytes: Bytes,
}

/// Everything that shmget(SHM_HUGETLB) asks for.
pub(super) fn shared(drafts: &mut Drafts<'_>, shared: &Shared<'_>) -> Result<(), String> {
    segments(drafts, shared.bytes);
    group(drafts, shared)?;
    memlock(drafts, shared);
    Ok(())
}

/// kernel.shmmax and kernel.shmall, raised if they are too small and never lowered.
fn segments(drafts: &mut Drafts<'_>, bytes: Bytes) {
    let largest = drafts.host.installed().unwrap_or(bytes).max(bytes);
    let (least, all) = (bytes.0, largest.0);
    let why = format!("one segment holds all of it: {least} B at least; set to all of memory, {all} B");
    raise(drafts, "kernel.shmmax", least, all, &why);
    let base = match drafts.host.snapshot.base_page() {
        Reading::Known(base) => base,
        Reading::Unread(why) => {
            return drafts.note(format!(
                "kernel.shmall counts base pages, and their size could not be read ({why}): see that it holds {} B",
                bytes.0
            ));
        }
    };
    let (least, pages) = (bytes.0.div_ceil(base.0), largest.0.div_ceil(base.0));
    let why = format!("all segments together, in pages of {}", base.exact());
    raise(drafts, "kernel.shmall", least, pages, &why);
}

fn raise(drafts: &mut Drafts<'_>, name: &str, least: u64, wanted: u64, why: &str) {
    let now = drafts.host.snapshot.sysctls.number::<u64>(name);
    if let Some(now) = now.known().filter(|now| **now >= least) {
        drafts.note(format!(
            "{name} is {now}, enough for {least}: it is not touched, and never lowered (since Linux \
             3.16 it has no practical limit)"
        ));
        return;
    }
    let path = format!("/proc/sys/{}", name.replace('.', "/"));
    let value = wanted.to_string();
    let draft = Draft::setting(Layer::Runtime, name, path, Value::Text(value.clone()));
    drafts.add(draft, why, "shmget(2)");
    sysctl(drafts, name, &value, why);
}

fn group(drafts: &mut Drafts<'_>, shared: &Shared<'_>) -> Result<(), String> {
    let host = drafts.host;
    let gid = match (shared.group, shared.user) {
        (Some(group), _) => gid_of(host, group)?,
        (None, Some(user)) => host.group_of(user).ok_or_else(|| unknown("user", user, "useradd -r"))?,
        (None, None) => {
            drafts.note("vm.hugetlb_shm_group is not set: say user=NAME or group=NAME (root needs neither)");
            return Ok(());
        }
    };
    if let (Some(group), Some(user)) = (shared.group, shared.user) {
        member(drafts, user, group, gid);
    }
    // One group can be named. Where others rely on another one the user joins that, unless the goal names a group itself.
    let joined = taken(drafts, gid).filter(|_| shared.group.is_none());
    let joined = joined.and_then(|taken| Some((taken, host.group_name(taken)?.to_owned())));
    if let (Some((taken, name)), Some(user)) = (joined, shared.user) {
        member(drafts, user, &name, taken);
        drafts.note(format!(
            "vm.hugetlb_shm_group stays {taken} ({name}), which others rely on: {user} has to be in that group"
        ));
        return Ok(());
    }
    shm_group(drafts, gid)
}

/// The group that others have in vm.hugetlb_shm_group, be it by this plan.
fn taken(drafts: &Drafts<'_>, gid: u32) -> Option<u32> {
    let now = drafts.host.snapshot.sysctls.number::<u32>("vm.hugetlb_shm_group");
    let now = now.known().copied().filter(|now| *now != 0);
    drafts.shm_group.or(now).filter(|taken| *taken != gid)
}

/// The number of a group by its name.
pub(super) fn gid_of(host: &Host<'_>, group: &str) -> Result<u32, String> {
    host.group(group).ok_or_else(|| unknown("group", group, "groupadd -r"))
}

fn unknown(what: &str, name: &str, command: &str) -> String {
    format!("there is no {what} {name} in /etc of this machine (first: {command} {name})")
}

fn member(drafts: &mut Drafts<'_>, user: &str, group: &str, gid: u32) {
    let listed = drafts.host.groups_of(user).iter().any(|name| name == group);
    if !listed && drafts.host.group_of(user) != Some(gid) {
        let text = format!("usermod -aG {group} {user}");
        let draft = Draft::instruction(Layer::Groups, &format!("member-{user}"), "this host", text);
        let why = format!("{user} must be in the group that may use the pool");
        drafts.add(draft.restart(format!("sessions of {user}")), why, "usermod(8)");
    }
}

/// The one group that may use SHM_HUGETLB.
pub(super) fn shm_group(drafts: &mut Drafts<'_>, gid: u32) -> Result<(), String> {
    if let Some(other) = drafts.shm_group.filter(|other| *other != gid) {
        return Err(format!(
            "vm.hugetlb_shm_group holds one group, and another goal of this plan wants {other} (name one group for both)"
        ));
    }
    let loss = taken(drafts, gid).map(|other| {
        let name = drafts.host.group_name(other);
        let name = name.map_or_else(String::new, |name| format!(" ({name})"));
        format!("group {other}{name} may use SHM_HUGETLB now, and not any more: one group can be named")
    });
    drafts.shm_group = Some(gid);
    let why = "shmget(SHM_HUGETLB) needs this group or CAP_IPC_LOCK";
    let path = "/proc/sys/vm/hugetlb_shm_group";
    let draft = Draft::setting(Layer::Runtime, "shm-group", path, Value::Text(gid.to_string()));
    drafts.add(draft.loses(loss), why, HUGETLB);
    sysctl(drafts, "vm.hugetlb_shm_group", &gid.to_string(), why);
    Ok(())
}

/// The memlock limit of a user's logins and of a service.
pub(super) fn memlock(drafts: &mut Drafts<'_>, shared: &Shared<'_>) {
    if let Some(user) = shared.user {
        let bytes = drafts.lock(user, shared.bytes);
        login(drafts, user, bytes);
    }
    if let Some(service) = shared.service {
        let bytes = drafts.lock(service, shared.bytes).0;
        let line = format!("LimitMEMLOCK={bytes}");
        let why = format!("a service does not read limits.conf: {bytes} B may be locked");
        drop_in(drafts, Layer::Limits, "memlock", service, &line, &why);
    }
}

fn login(drafts: &mut Drafts<'_>, user: &str, bytes: Bytes) {
    let kib = bytes.0 >> 10;
    let groups = drafts.host.groups_of(user);
    let lines = drafts.host.config.limits.known();
    let promised = lines.and_then(|lines| memlock_for(lines, user, &groups));
    if let Some((_, line)) = promised.filter(|(limit, _)| *limit >= Limit::Bytes(bytes.0)) {
        drafts.note(format!(
            "{} lets {user} lock {} already, enough for {kib} KiB",
            line.place, line.value
        ));
        return;
    }
    let has_directory = drafts.host.has_directory("/etc/security/limits.d") || drafts.host.has_systemd();
    let path = if has_directory { LIMITS_D } else { LIMITS_CONF };
    let others = promised.map(|(_, line)| format!("{}: memlock {}", line.place, line.value));
    let with_limit = |text: &str, kind: &str| {
        let is_it = |found: &str| found.split_whitespace().take(3).eq([user, kind, "memlock"]);
        with_line(text, &format!("{user} {kind} memlock {kib}"), is_it)
    };
    let draft = drafts.edit(Layer::Limits, &format!("memlock-{user}"), path, |text| {
        with_limit(&with_limit(text, "soft"), "hard")
    });
    let draft = draft.restart(format!("sessions of {user}")).also(others);
    let why = format!("{} B / 1024: the unit of limits.conf is KiB", bytes.0);
    drafts.add(draft, why, "limits.conf(5)");
}

/// One line of `[Service]` in a drop-in of ours.
pub(super) fn drop_in(drafts: &mut Drafts<'_>, layer: Layer, id: &str, service: &str, line: &str, why: &str) {
    let path = format!("/etc/systemd/system/{service}.d/60-hugewise.conf");
    let name = line.split('=').next().unwrap_or_default();
    let id = format!("{id}-{service}");
    let draft = drafts.edit(layer, &id, &path, |text| {
        with_line_in(text, "[Service]", line, |found| sets(found, name))
    });
    let restart = format!("systemctl daemon-reload && systemctl restart {service}");
    drafts.add(draft.restart(restart), why, "systemd.exec(5)");
}
