//! What would set the THP policy at boot, where nothing starts it, or where it may not have run.

use host::Source;
use model::Unread;

use super::files::{all_in, first, has_configuration, listed, said};
use super::{Setting, commands, policy, pool_lines, unit};

/// A line that writes the policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dormant {
    pub line: Setting,
    pub starter: Starter,
}

/// What is to start it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Starter {
    /// The init script of that name, which no runlevel has a link to.
    Init(String),
    /// The unit of that name, which no other wants.
    Unit(String),
    /// Whether it may be executed no capture shows.
    RcLocal,
    /// At boot, if cron runs.
    Cron,
}

/// All of them, whatever the policy is.
pub(super) fn read(source: &Source) -> Result<Vec<Dormant>, Unread> {
    has_configuration(source)?;
    let at_boot = policy::units_at_boot(source)?;
    let mut all = init_scripts(source, &at_boot)?;
    all.extend(units(source, &at_boot)?);
    let rc_local = first(source, pool_lines::RC_LOCAL.map(str::to_owned))?;
    let line = rc_local.and_then(|(path, text)| policy_line(&path, &text, ""));
    all.extend(line.map(|line| Dormant {
        line,
        starter: Starter::RcLocal,
    }));
    all.extend(cron(source)?);
    Ok(all)
}

/// The first line with that beginning that writes the policy. An init script does so in a branch.
fn policy_line(path: &str, text: &str, beginning: &str) -> Option<Setting> {
    const VALUES: [&str; 3] = ["always", "madvise", "never"];
    let is_of_policy = text.contains("transparent_hugepage");
    let mut lines = said(path, text, &['#']).filter(|line| is_of_policy && line.text.starts_with(beginning));
    lines.find_map(|line| {
        let mut words = line.text.split(|c: char| !c.is_ascii_alphanumeric());
        let value = words.rfind(|word| VALUES.contains(word))?;
        let is_write = line.text.contains("/enabled") && line.text.contains(['>', '|']);
        is_write.then(|| policy::set(line.place(), value))
    })
}

/// Where it is in both places, one is a link to the other.
const INIT: [&str; 2] = ["/etc/init.d", "/etc/rc.d/init.d"];
/// Directories of runlevels, without the level: Debian's, Red Hat's, SUSE's.
const RUNLEVELS: [&str; 3] = ["/etc/rc", "/etc/rc.d/rc", "/etc/init.d/rc"];

fn init_scripts(source: &Source, at_boot: &[String]) -> Result<Vec<Dormant>, Unread> {
    let is_wanted = |name: &str| policy::is_named(name) && !at_boot.contains(&format!("{name}.service"));
    for directory in INIT {
        let mut all = Vec::new();
        for (name, path, text) in all_in(source, directory, is_wanted)? {
            let line = policy_line(&path, &text, "");
            if let Some(line) = line.filter(|_| !is_linked(source, &name)) {
                let starter = Starter::Init(name);
                all.push(Dormant { line, starter });
            }
        }
        if !all.is_empty() {
            return Ok(all);
        }
    }
    Ok(Vec::new())
}

/// Has a runlevel a link such as `S01disable-thp`? One that cannot be listed may have.
fn is_linked(source: &Source, name: &str) -> bool {
    let is_it = |link: &String| {
        let rest = link.strip_prefix('S').unwrap_or_default();
        rest.trim_start_matches(|c: char| c.is_ascii_digit()) == name
    };
    let levels = RUNLEVELS
        .iter()
        .flat_map(|rc| ["2", "3", "4", "5", "S"].map(|level| format!("{rc}{level}.d")));
    levels
        .map(|directory| listed(source, &directory))
        .any(|links| links.map_or(true, |links| links.iter().any(is_it)))
}

/// Units of the administrator that are named for huge pages, could be enabled, and are not.
fn units(source: &Source, at_boot: &[String]) -> Result<Vec<Dormant>, Unread> {
    let is_wanted =
        |name: &str| name.ends_with(".service") && policy::is_named(name) && !at_boot.iter().any(|own| own == name);
    let mut all = Vec::new();
    for directory in unit::DIRECTORIES {
        for (name, path, text) in all_in(source, directory, is_wanted)? {
            let is_started = |line: &str| ["WantedBy=", "RequiredBy="].iter().any(|key| line.starts_with(key));
            let written = commands::of_unit(&[(path, text.clone())], &mut Vec::new()).settings;
            let line = written.iter().find_map(policy::of_file);
            if let Some(line) = line.filter(|_| text.lines().any(is_started)) {
                let starter = Starter::Unit(name);
                all.push(Dormant { line, starter });
            }
        }
    }
    Ok(all)
}

fn cron(source: &Source) -> Result<Vec<Dormant>, Unread> {
    let own = first(source, ["/etc/crontab".to_owned()])?;
    let more = all_in(source, "/etc/cron.d", policy::is_named)?.into_iter();
    let files = own.into_iter().chain(more.map(|(_, path, text)| (path, text)));
    let lines = files.filter_map(|(path, text)| policy_line(&path, &text, "@reboot"));
    let dormant = lines.map(|line| Dormant {
        line,
        starter: Starter::Cron,
    });
    Ok(dormant.collect())
}

#[cfg(test)]
mod tests {
    use host::{Source, Tree};

    use super::{Starter, read};

    const SCRIPT: &str = "#!/bin/sh\ncase $1 in\n  start)\n    thp=/sys/kernel/mm/transparent_hugepage\n    \
                          echo 'never' > ${thp}/enabled\n    ;;\nesac\n";
    const UNIT: &str = "[Service]\nType=oneshot\n\
                        ExecStart=/bin/sh -c 'echo never > /sys/kernel/mm/transparent_hugepage/enabled'\n\
                        [Install]\nWantedBy=multi-user.target\n";

    fn found(files: &[(&str, &str)]) -> Vec<(String, String, Starter)> {
        let tree = Tree::new().dir("/etc/sysctl.d");
        let tree = files.iter().fold(tree, |tree, (path, text)| tree.file(path, *text));
        let all = read(&Source::from_tree("test", tree)).expect("files");
        let parts = all.into_iter().map(|one| (one.line.place, one.line.value, one.starter));
        parts.collect()
    }

    #[test]
    fn an_init_script_without_a_link() {
        let script = ("/etc/init.d/disable-thp", SCRIPT);
        let starter = Starter::Init("disable-thp".to_owned());
        let expected = ("/etc/init.d/disable-thp:5".to_owned(), "never".to_owned(), starter);
        assert_eq!(found(&[script]), [expected]);
        for link in [
            "/etc/rc2.d/S01disable-thp",
            "/etc/rc.d/rc3.d/S20disable-thp",
            "/etc/rcS.d/S05disable-thp",
        ] {
            assert!(found(&[script, (link, SCRIPT)]).is_empty(), "{link}");
        }
        // It is stopped there, and of another script.
        for link in [
            "/etc/rc0.d/K01disable-thp",
            "/etc/rc2.d/K01disable-thp",
            "/etc/rc2.d/S01not-disable-thp",
        ] {
            assert_eq!(found(&[script, (link, SCRIPT)]).len(), 1, "{link}");
        }
        assert!(found(&[("/etc/init.d/hugepages", "echo 8 > /proc/sys/vm/nr_hugepages\n")]).is_empty());
    }

    #[test]
    fn a_unit_that_is_not_enabled() {
        let unit = ("/etc/systemd/system/disable-thp.service", UNIT);
        let other = ("/etc/systemd/system/multi-user.target.wants/cron.service", "");
        let starters = |files: &[(&str, &str)]| found(files).into_iter().map(|one| one.2).collect::<Vec<_>>();
        assert_eq!(
            starters(&[unit, other]),
            [Starter::Unit("disable-thp.service".to_owned())]
        );
        let link = ("/etc/systemd/system/multi-user.target.wants/disable-thp.service", UNIT);
        assert!(starters(&[unit, other, link]).is_empty());
        // Another unit may start it.
        let text = UNIT.replace("WantedBy=multi-user.target\n", "");
        assert!(starters(&[(unit.0, text.as_str()), other]).is_empty());
    }

    #[test]
    fn what_runs_at_boot_if_it_may() {
        let line = "echo never | tee /sys/kernel/mm/transparent_hugepage/enabled\n";
        let local = found(&[("/etc/rc.local", line)]);
        assert_eq!(local[0].2, Starter::RcLocal);
        let cron = format!("@reboot root {line}");
        let cron = found(&[("/etc/cron.d/disable-thp", cron.as_str())]);
        assert_eq!(
            (cron[0].0.as_str(), &cron[0].2),
            ("/etc/cron.d/disable-thp:1", &Starter::Cron)
        );
        // It reads the policy alone.
        let read = "grep -q never /sys/kernel/mm/transparent_hugepage/enabled\n";
        assert!(found(&[("/etc/rc.local", read)]).is_empty());
    }
}
