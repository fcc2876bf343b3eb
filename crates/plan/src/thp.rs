//! Transparent huge pages: the policy now, at each boot, and for one service.

use host::snapshot::hugetlb::directory_name;
use host::snapshot::thp::THP;
use model::plan::{Layer, Value};
use model::{Cause, Reading};

use super::draft::{Draft, Drafts};
use super::files::with_line;
use super::goal::ThpGoal;
use super::limits;

const TMPFILES: &str = "/etc/tmpfiles.d/60-hugewise.conf";
const SOURCE: &str = "Linux Documentation/admin-guide/mm/transhuge.rst";

pub(super) fn draft(drafts: &mut Drafts<'_>, thp: &ThpGoal) -> Result<(), String> {
    if let Some(service) = &thp.service {
        return for_service(drafts, thp, service);
    }
    for (name, value) in &thp.settings {
        one(drafts, name, value, "as the goal says")?;
    }
    for (name, value) in &thp.settings {
        follow(drafts, name, value, &[])?;
    }
    Ok(())
}

/// The general policy as a goal of this plan sets it, or as it is.
pub(super) fn policy(drafts: &Drafts<'_>) -> Option<String> {
    let now = || Some(drafts.host.snapshot.thp.known()?.enabled.known()?.chosen.clone());
    let drafted = drafts.drafted(&format!("{THP}/enabled"));
    drafted.and_then(Value::text).or_else(now)
}

/// One file of the policy, if this kernel has it and offers that value, and what else keeps it from being in effect: a switch of a size that says
/// none of what is fine. A goal that says so itself may set it to what is fine, too.
pub(super) fn set(drafts: &mut Drafts<'_>, name: &str, value: &str, fine: &[&str], why: &str) -> Result<(), String> {
    match drafts.drafted(&format!("{THP}/{name}")).and_then(Value::text) {
        Some(other) if fine.contains(&other.as_str()) => return Ok(()),
        Some(other) if other != value => {
            return Err(format!(
                "it needs {name}={value}, and another goal of this plan is thp:{name}={other} (leave one of them out)"
            ));
        }
        _ => one(drafts, name, value, why)?,
    }
    follow(drafts, name, value, fine)
}

fn follow(drafts: &mut Drafts<'_>, name: &str, value: &str, fine: &[&str]) -> Result<(), String> {
    match overruled(drafts, name, value, fine) {
        Some(own) => one(drafts, &own, "inherit", OVERRULED),
        None => Ok(()),
    }
}

const OVERRULED: &str = "this size has a policy of its own, as after thp_anon= or thp_shmem= on the boot command line, and does not follow the general one";

/// The switch of the PMD size, where it has another value than the general one is to have, or than those that are fine, and does not follow it, nor a
/// goal sets it.
pub(super) fn overruled(drafts: &Drafts<'_>, name: &str, value: &str, fine: &[&str]) -> Option<String> {
    let thp = drafts.host.snapshot.thp.known()?;
    let of_pmd = thp.size(*thp.pmd_size.known()?)?;
    let own = match (name, value) {
        ("enabled", _) => &of_pmd.enabled,
        // It holds for every size, whatever its own switch says.
        ("shmem_enabled", "deny") => return None,
        ("shmem_enabled", _) => &of_pmd.shmem_enabled,
        _ => return None,
    };
    let chosen = own.known()?.chosen.as_str();
    let name = format!("{}/{name}", directory_name(of_pmd.size));
    let is_fine = chosen == "inherit" || chosen == value || fine.contains(&chosen);
    (!is_fine && drafts.drafted(&format!("{THP}/{name}")).is_none()).then_some(name)
}

fn one(drafts: &mut Drafts<'_>, name: &str, value: &str, why: &str) -> Result<(), String> {
    let path = format!("{THP}/{name}");
    let line = drafts.host.source.line(&path);
    check(&path, value, &line)?;
    let id = format!("thp-{name}");
    let others = others(drafts, name);
    let draft = Draft::setting(Layer::Runtime, &id, path.clone(), Value::Text(value.to_owned()));
    let why = format!("{why}; it holds for new mappings and faults; what is mapped already stays as it is");
    drafts.add(draft.also(others), why, SOURCE);
    persist(drafts, &path, value);
    Ok(())
}

fn check(path: &str, value: &str, line: &Reading<String>) -> Result<(), String> {
    match line {
        Reading::Unread(why) if why.unread == Cause::Absent => Err(format!(
            "this kernel has no {path} (see `hugewise doctor` for what it has)"
        )),
        Reading::Known(line) if line.contains('[') => {
            let offered = line.split_whitespace().map(|word| word.trim_matches(['[', ']']));
            let offered: Vec<&str> = offered.collect();
            match offered.contains(&value) {
                true => Ok(()),
                false => Err(format!("{path} does not take `{value}` (write {})", offered.join(", "))),
            }
        }
        _ => Ok(()),
    }
}

/// Everybody else who sets the general policy.
fn others(drafts: &Drafts<'_>, name: &str) -> Vec<String> {
    let lines = drafts.host.config.thp_policy.known().filter(|_| name == "enabled");
    let lines = lines.into_iter().flatten();
    let lines = lines.filter(|line| !line.place.starts_with(TMPFILES));
    lines.map(|line| format!("{}: {}", line.place, line.value)).collect()
}

fn persist(drafts: &mut Drafts<'_>, path: &str, value: &str) {
    let kept = drafts.host.keeps(&[(path.to_owned(), value.to_owned())]);
    if kept.is_some() || !drafts.host.has_systemd() {
        let (id, on, text) = match kept {
            Some(how) => ("thp-kept", "this host", how),
            None => ("rc-local", "this host: /etc/rc.local", format!("echo {value} > {path}")),
        };
        let draft = Draft::instruction(Layer::Persistence, id, on, text);
        drafts.add(draft, "the policy is gone after a reboot", SOURCE);
        return;
    }
    let line = format!("w {path} - - - - {value}");
    let draft = drafts.edit(Layer::Persistence, "thp-tmpfiles", TMPFILES, |text| {
        with_line(text, &line, |found| found.split_whitespace().nth(1) == Some(path))
    });
    drafts.add(draft, "systemd-tmpfiles writes it early at each boot", "tmpfiles.d(5)");
}

/// `MemoryTHP=` of systemd 260 and later; older ones ignore the line with a warning.
fn for_service(drafts: &mut Drafts<'_>, thp: &ThpGoal, service: &str) -> Result<(), String> {
    let [(name, value)] = &thp.settings[..] else {
        return Err("a service has one policy of its own (write thp=madvise,service=NAME alone)".to_owned());
    };
    let word = match (name.as_str(), value.as_str()) {
        ("enabled", "never") => "disable",
        ("enabled", "madvise") => "madvise",
        ("enabled", "always") => "system",
        _ => return Err("a service takes thp=never, madvise or always".to_owned()),
    };
    let line = format!("MemoryTHP={word}");
    let why = "a policy for this service only; systemd before 260 does not know it and says so in its log";
    limits::drop_in(drafts, Layer::Persistence, "thp", service, &line, why);
    Ok(())
}
