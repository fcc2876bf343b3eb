//! Pools: how many pages each size shall have on each node, now and after the next boot.

use std::collections::BTreeMap;

use host::snapshot::hugetlb::path_in_pool;
use host::snapshot::{Feature, Pool};
use model::plan::{Layer, Taken, Value};
use model::{Bytes, Cause, Reading};
use programs::config::{Distribution, Setting};

use super::draft::{Draft, Drafts};
use super::files::{sets, with_line};
use super::host::persistent;
use super::share::{Account, Demand, Share, smaller};
use super::{Host, PlanningError, Wanted, boot};

/// Pages from this size on are rarely there once the machine has run for a while: they are asked for at boot.
const GIGANTIC: Bytes = Bytes::mib(256);
const SYSCTL_D: &str = "/etc/sysctl.d/60-hugewise.conf";
const SYSCTL_CONF: &str = "/etc/sysctl.conf";
const UNIT: &str = "/etc/systemd/system/hugewise-pools.service";
const WANTS: &str = "/etc/systemd/system/sysinit.target.d/60-hugewise.conf";
const HUGETLB: &str = "Linux Documentation/admin-guide/mm/hugetlbpage.rst";
/// Whom pool pages are taken from.
const FROM: &str = "all other programs: pages in a pool are neither reclaimed nor swapped";
const PROC: &str = "/proc/sys/vm/nr_hugepages";

/// A pool, or a node's part of it.
type Place = (Bytes, Option<u32>);

/// Drafts the pools of all goals together.
pub(super) fn draft(drafts: &mut Drafts<'_>, wanted: &[Wanted]) -> Result<(), PlanningError> {
    for (place, demand) in demands(wanted) {
        let Some(goal) = demand.goal else { continue };
        pool(drafts, place, &demand, wanted).map_err(|why| PlanningError::new(goal, why))?;
    }
    Ok(())
}

fn pool(drafts: &mut Drafts<'_>, (page, node): Place, demand: &Demand<'_>, wanted: &[Wanted]) -> Result<(), String> {
    let Some(pool) = drafts.host.snapshot.pool(page) else {
        return without_directory(drafts, page, node, demand);
    };
    let share = Account::of(drafts.host, pool, node, wanted).share(demand);
    let Share { pages, why, mut losses } = share.map_err(|unread| {
        format!(
            "how many pages of {} are in use could not be read: {unread}",
            page.exact()
        )
    })?;
    check_memory(drafts, page, pages)?;
    let parts = parts(pool, node, pages)?;
    for &part in &parts {
        runtime(drafts, pool, part, &why, std::mem::take(&mut losses));
    }
    persist(drafts, pool, node, &parts, &why);
    Ok(())
}

fn demands(wanted: &[Wanted]) -> BTreeMap<Place, Demand<'_>> {
    let mut demands: BTreeMap<Place, Demand<'_>> = BTreeMap::new();
    for Wanted { goal, needs, .. } in wanted {
        for need in goal.pools() {
            let demand = demands.entry((need.page, need.node)).or_default();
            demand.in_all(goal, need.page, need.pages);
        }
        for need in needs {
            demands.entry((need.page, need.node)).or_default().beside(goal, need);
        }
    }
    demands
}

fn check_memory(drafts: &mut Drafts<'_>, page: Bytes, pages: u64) -> Result<(), String> {
    let need = Bytes(page.0.saturating_mul(pages));
    let total = match &drafts.host.config.total {
        Reading::Known(total) => *total,
        Reading::Unread(why) => {
            if why.unread != Cause::Absent {
                drafts.note(format!("whether the machine has {need} is not known: {why}"));
            }
            return Ok(());
        }
    };
    if need >= total {
        return Err(format!(
            "it needs {need}, and this machine has {total} in all (request less)"
        ));
    }
    let available = drafts.host.snapshot.memory.get("MemAvailable");
    if let Some(available) = available.known().filter(|available| need > **available) {
        drafts.note(format!(
            "{need} in pages of {} is requested and {available} is available now: free memory first, \
             or expect fewer",
            page.exact()
        ));
    }
    Ok(())
}

/// The nodes' parts: all nodes with memory alike, the first ones with what does not divide.
fn parts(pool: &Pool, node: Option<u32>, pages: u64) -> Result<Vec<(Option<u32>, u64)>, String> {
    let parts = match (&pool.nodes, node) {
        (Reading::Known(parts), _) => &parts[..],
        (Reading::Unread(why), Some(node)) => {
            return Err(format!(
                "whether there is a node {node} with memory could not be read: {why}"
            ));
        }
        // The kernel spreads the pages itself.
        (Reading::Unread(_), None) => &[],
    };
    let nodes: Vec<u32> = parts.iter().map(|part| part.node).collect();
    if let Some(node) = node {
        let known: Vec<String> = nodes.iter().map(ToString::to_string).collect();
        return match nodes.contains(&node) {
            true => Ok(vec![(Some(node), pages)]),
            false => Err(format!(
                "there is no node {node} with memory (there is {})",
                known.join(", ")
            )),
        };
    }
    let count = nodes.len() as u64;
    if count < 2 {
        return Ok(vec![(None, pages)]);
    }
    let part = |(nth, node): (u64, &u32)| (Some(*node), pages / count + u64::from(nth < pages % count));
    Ok((0..).zip(&nodes).map(part).collect())
}

/// The part of a node, or all of it.
fn runtime(drafts: &mut Drafts<'_>, pool: &Pool, (node, pages): (Option<u32>, u64), why: &str, losses: Vec<String>) {
    let path = setting(pool.size, node);
    let on = node.map_or_else(String::new, |node| format!("-node{node}"));
    let id = format!("pool-{}{on}", pool.size.exact());
    let mut parts = pool.nodes.known().into_iter().flatten();
    let part = parts.find(|part| Some(part.node) == node);
    let (all, surplus) = part.map_or((&pool.nr, &pool.surplus), |part| (&part.nr, &part.surplus));
    let now = persistent(all, surplus);
    // Pages that are there already cost nothing; where they could not be counted, all are taken to be new.
    let from = match &now {
        Ok(_) => FROM.to_owned(),
        Err(why) => format!("{FROM}; less if there are pages already, which could not be read: {why}"),
    };
    let more = now.map_or(pages, |now| pages.saturating_sub(now));
    let takes = (more > 0).then(|| Taken {
        bytes: Bytes(pool.size.0.saturating_mul(more)),
        from,
    });
    let why = match pool.size >= GIGANTIC {
        true => {
            format!("{why}; pages of this size are available early after boot or not at all: fewer may be obtained")
        }
        false => why.to_owned(),
    };
    let others = others(drafts, pool.size);
    let draft = Draft::setting(Layer::Runtime, &id, path, Value::Pages(pages));
    drafts.add(draft.takes(takes).also(others).loses(losses), why, HUGETLB);
}

fn setting(page: Bytes, node: Option<u32>) -> String {
    path_in_pool(page, node, "nr_hugepages")
}

/// Who else sets this pool.
fn others(drafts: &Drafts<'_>, page: Bytes) -> Vec<String> {
    let (config, default) = (&drafts.host.config, drafts.host.default_page());
    let boot = config.boot.known().and_then(|boot| boot.pages_of(page, Some(default)));
    let boot = boot.map(|pages| format!("/proc/cmdline: hugepages={pages}"));
    let files = (page == default).then(|| also_set(drafts, "vm.nr_hugepages"));
    boot.into_iter().chain(files.into_iter().flatten()).collect()
}

/// A kernel without such a pool in its directories. One before 2.6.27 has a single one, of the default size, and no directories. Later ones make a
/// pool of each size that the boot line names.
fn without_directory(
    drafts: &mut Drafts<'_>,
    page: Bytes,
    node: Option<u32>,
    demand: &Demand<'_>,
) -> Result<(), String> {
    let host = drafts.host;
    let snapshot = &host.snapshot;
    let has_one = snapshot.sysctls.number::<u64>("vm.nr_hugepages").known().is_some();
    let is_old = snapshot.pools.known().is_none_or(Vec::is_empty);
    let is_only = has_one && is_old && page == host.default_page() && node.is_none();
    if !is_only && (is_old || !snapshot.is_made_at_boot(page)) {
        let sizes = host.pool_sizes();
        let why = format!(
            "this kernel has no pool of pages of {} that could be changed (it has {sizes})",
            page.exact()
        );
        return Err(why);
    }
    let pages = demand.total.max(demand.more);
    check_memory(drafts, page, pages)?;
    let why = demand.how.join("; ");
    if is_only {
        only_pool(drafts, page, pages, &why);
        return Ok(());
    }
    if node.is_some() && snapshot.kernel.has(Feature::NodePages) != Some(true) {
        return Err(format!(
            "this kernel has a pool of pages of {} only if the boot line names it, where Linux before 5.16 knows no nodes (leave node= out)",
            page.exact()
        ));
    }
    boot::pool(drafts, page, &[(node, pages)], &why);
    Ok(())
}

fn only_pool(drafts: &mut Drafts<'_>, page: Bytes, pages: u64, why: &str) {
    let now = drafts.host.snapshot.sysctls.number::<u64>("vm.nr_hugepages");
    let now = now.known().copied();
    // Of a pool that could not be read all of its pages may be new.
    let more = now.map_or(pages, |now| pages.saturating_sub(now));
    let takes = (more > 0).then(|| Taken {
        bytes: Bytes(page.0.saturating_mul(more)),
        from: FROM.to_owned(),
    });
    let losses = now.and_then(|now| smaller(now, pages, "the pool now"));
    let (id, others) = (format!("pool-{}", page.exact()), others(drafts, page));
    let draft = Draft::setting(Layer::Runtime, &id, PROC, Value::Pages(pages));
    drafts.add(draft.takes(takes).also(others).loses(losses), why, HUGETLB);
    sysctl(drafts, "vm.nr_hugepages", &pages.to_string(), why);
}

fn persist(drafts: &mut Drafts<'_>, pool: &Pool, node: Option<u32>, parts: &[(Option<u32>, u64)], why: &str) {
    let is_gigantic = pool.size >= GIGANTIC;
    let is_whole = matches!(parts, [(None, _)]);
    // An older kernel takes `0:4` for 0, and spreads a plain number over all nodes alike.
    let takes_nodes = drafts.host.snapshot.kernel.has(Feature::NodePages) == Some(true);
    let has_systemd = drafts.host.has_systemd();
    let is_by_cma = is_gigantic && fills_from_cma(drafts.host, pool.size);
    let is_at_run_time = !is_gigantic || is_by_cma || (node.is_some() && !takes_nodes);
    let files = parts
        .iter()
        .map(|&(node, pages)| (setting(pool.size, node), pages.to_string()));
    let files: Vec<(String, String)> = files.collect();
    if is_whole && pool.size == drafts.host.default_page() && !is_gigantic {
        let pages = parts.iter().map(|(_, pages)| pages.to_string()).collect::<String>();
        sysctl(drafts, "vm.nr_hugepages", &pages, why);
    } else if is_at_run_time && let Some(how) = drafts.host.keeps(&files) {
        let draft = Draft::instruction(Layer::Persistence, "pools-kept", "this host", how);
        drafts.add(draft, why, HUGETLB);
    } else if has_systemd && is_at_run_time {
        unit(drafts, pool.size, parts, why);
    } else if !is_by_cma && (takes_nodes || is_whole) {
        boot::pool(drafts, pool.size, parts, why);
    } else if !is_by_cma && node.is_none() {
        let pages = parts.iter().map(|(_, pages)| pages).sum();
        boot::pool(drafts, pool.size, &[(None, pages)], why);
    } else {
        let lines = files.iter().map(|(path, pages)| format!("echo {pages} > {path}"));
        let text = lines.collect::<Vec<_>>().join("\n");
        let draft = Draft::instruction(Layer::Persistence, "rc-local", "this host: /etc/rc.local", text);
        let cause = match is_by_cma {
            true => "beside hugetlb_cma= the kernel makes no such pages at boot",
            false => "before Linux 5.16 the command line cannot name a node",
        };
        drafts.add(draft, format!("{cause}; {why}"), HUGETLB);
    }
}

/// Does the boot line set memory aside for pages of this size, from which they are taken at run time alone?
fn fills_from_cma(host: &Host<'_>, page: Bytes) -> bool {
    let boot = host.config.boot.known();
    page >= Bytes::gib(1) && boot.is_some_and(|boot| boot.cma_at_run_time().is_some())
}

/// A kernel setting that is set again at each boot.
pub(super) fn sysctl(drafts: &mut Drafts<'_>, name: &str, value: &str, why: &str) {
    let own = drafts.host.distribution();
    if own.is_configured_whole() || drafts.host.config.is_sysctl_unread {
        let how = own.keep_setting(name, value);
        let draft = Draft::instruction(Layer::Persistence, "sysctl", "this host", how);
        let (draft, cause) = match own {
            Distribution::NixOs => (draft, "of two files of sysctl.d the one of NixOS may come last"),
            _ => (draft.reboot(), "nothing here reads files of sysctl.d at boot"),
        };
        drafts.add(draft, format!("{cause}; {why}"), "sysctl.d(5)");
        return;
    }
    let has_directory = drafts.host.has_directory("/etc/sysctl.d") || drafts.host.has_systemd();
    let path = if has_directory { SYSCTL_D } else { SYSCTL_CONF };
    let line = format!("{name} = {value}");
    let others = also_set(drafts, name);
    if let Some(last) = winner(drafts, path, name).filter(|last| last.value != value) {
        let (place, old) = (&last.place, &last.value);
        let note =
            format!("{place} is read after {path}: change its {name} = {old} too, which the next boot brings back");
        drafts.note(note);
    }
    let draft = drafts.edit(Layer::Persistence, "sysctl", path, |text| {
        with_line(text, &line, |found| sets(found, name))
    });
    drafts.add(draft.also(others), format!("{line} at each boot: {why}"), "sysctl.d(5)");
}

/// What is read after our file and sets the same.
fn winner(drafts: &Drafts<'_>, path: &str, name: &str) -> Option<Setting> {
    let file_name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let last = drafts.host.config.sysctl.known()?.last(name)?;
    let is_later = !last.place.starts_with(path) && file_name(&last.place) > file_name(path);
    is_later.then(|| last.clone())
}

/// Other files that set the same.
fn also_set(drafts: &Drafts<'_>, name: &str) -> Vec<String> {
    let files = drafts.host.config.sysctl.known();
    let lines = files.into_iter().flat_map(|files| files.all(name));
    let lines = lines.filter(|line| !line.place.starts_with(SYSCTL_D));
    lines
        .map(|line| format!("{}: {name} = {}", line.place, line.value))
        .collect()
}

/// Pools that sysctl cannot name: a unit that runs before every service, and fails visibly when it falls short.
fn unit(drafts: &mut Drafts<'_>, page: Bytes, parts: &[(Option<u32>, u64)], why: &str) {
    for &(node, pages) in parts {
        let path = setting(page, node);
        let line = format!("ExecStart=/bin/sh -c 'echo {pages} > {path} && test \"$(cat {path})\" -ge {pages}'");
        let draft = drafts.edit(Layer::Persistence, "pools-unit", UNIT, |text| {
            let text = if text.is_empty() { HEAD } else { text };
            with_line(text, &line, |found| found.contains(&path))
        });
        let why = format!("fills pools before any service starts: {why}");
        drafts.add(draft, why, "systemd.service(5)");
    }
    let why = "sysinit.target starts it, without a link to be made";
    wants(drafts, WANTS, "hugewise-pools.service", why);
}

const HEAD: &str = "[Unit]\n\
                    Description=Huge pages, before anything that takes them\n\
                    DefaultDependencies=no\n\
                    Before=sysinit.target\n\
                    \n\
                    [Service]\n\
                    Type=oneshot\n\
                    RemainAfterExit=yes\n";

/// A drop-in through which a target wants a unit.
pub(super) fn wants(drafts: &mut Drafts<'_>, path: &str, unit: &str, why: &str) {
    let line = format!("Wants={unit}");
    let draft = drafts.edit(Layer::Persistence, "unit-wanted", path, |text| {
        let text = if text.is_empty() { "[Unit]\n" } else { text };
        with_line(text, &line, |found| found == line)
    });
    drafts.add(draft.restart("systemctl daemon-reload"), why, "systemd.unit(5)");
}
