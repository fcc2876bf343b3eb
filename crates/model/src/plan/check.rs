//! Refuses a plan that would write where no plan may write, whoever wrote it.

use std::collections::BTreeSet;

use super::settings;
use super::{Change, Plan, SCHEMA, Target, Value};

/// Why a plan is not one that can be applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Not JSON, or not of the shape.
    #[error("this is no plan: {0} (make one with `hugewise plan --for GOAL --json`)")]
    Garbled(String),
    /// Another result.
    #[error("this is a result of schema `{0}`, not `{SCHEMA}` (make a plan with `hugewise plan --for GOAL --json`)")]
    Schema(String),
    /// A change that no plan may hold.
    #[error("change `{id}` of the plan: {what} `{text}`: {why}")]
    Refused {
        /// The change.
        id: String,
        /// Which part of it: `path`, `value`, ...
        what: &'static str,
        /// What stands there, with control characters escaped.
        text: String,
        /// What is wrong with it, and what is allowed.
        why: &'static str,
    },
}

/// What a path or a value breaks; the change is named by the caller.
type Flaw = (&'static str, String, &'static str);

/// Directories of /etc whose files a plan may write, and single files in it.
const ETC: [&str; 14] = [
    "/etc/default/grub",
    "/etc/default/grub.d/",
    "/etc/kernel/cmdline",
    "/etc/kernel/cmdline.d/",
    "/etc/my.cnf",
    "/etc/my.cnf.d/",
    "/etc/mysql/",
    "/etc/postgresql/",
    "/etc/security/limits.d/",
    "/etc/security/limits.conf",
    "/etc/sysctl.conf",
    "/etc/sysctl.d/",
    "/etc/systemd/system/",
    "/etc/tmpfiles.d/",
];

/// Where a hugetlbfs may be mounted: nothing that anybody else needs is hidden there.
const MOUNTS: [&str; 6] = [
    "/dev/hugepages",
    "/dev/hugepages-",
    "/dev/hugepages1G",
    "/mnt/",
    "/run/",
    "/var/lib/hugetlbfs/",
];

/// Options of hugetlbfs.
const OPTIONS: [&str; 7] = ["pagesize", "size", "min_size", "nr_inodes", "uid", "gid", "mode"];

/// Longer ones are no settings.
const LONGEST_SETTING: usize = 4096;

impl PlanError {
    pub(super) fn garbled(why: &serde_json::Error) -> Self {
        Self::Garbled(why.to_string())
    }

    fn refused(id: &str, (what, text, why): Flaw) -> Self {
        let printable = |text: &str| text.escape_debug().take(200).collect();
        let (id, text) = (printable(id), printable(&text));
        Self::Refused { id, what, text, why }
    }
}

impl Plan {
    /// Could each change be applied as far as its words go? (What the machine says to it is another question.)
    ///
    /// # Errors
    /// Names the first change that could not, and what is wrong with it.
    pub fn check(&self) -> Result<(), PlanError> {
        let mut ids = BTreeSet::new();
        for change in &self.changes {
            let flaw = |flaw| PlanError::refused(&change.id, flaw);
            check_id(&change.id).map_err(flaw)?;
            if !ids.insert(&change.id) {
                return Err(flaw(("id", change.id.clone(), "there are two changes of that name")));
            }
            change.target.check(&self.goals).map_err(flaw)?;
            check_value(change).map_err(flaw)?;
        }
        Ok(())
    }
}

impl Target {
    /// Is it a place that a plan for these goals may write to? Settings are a closed set; files lie below `/etc` or are
    /// named by a goal; no path has `..`, empty parts or control characters.
    ///
    /// # Errors
    /// What part of it is wrong, its text, and why.
    pub fn check(&self, goals: &[String]) -> Result<(), (&'static str, String, &'static str)> {
        let fail = |path: &str, why| Err(("path", path.to_owned(), why));
        let Some(path) = self.path() else { return Ok(()) };
        if !is_clean(path) {
            return fail(
                path,
                "a path is absolute, without `..`, empty parts or control characters",
            );
        }
        match self {
            Self::Setting { .. } if !settings::is_known(path) => {
                fail(path, "it is not one of the settings that hugewise changes")
            }
            Self::File { .. } if !is_writable(path) && !goals.iter().any(|goal| names(goal, path)) => fail(
                path,
                "files of a plan are those below /etc that hugewise knows, and those that a goal names",
            ),
            Self::Mount { .. } if !is_mount_point(path) => fail(
                path,
                "hugetlbfs goes on /dev/hugepages*, or below /mnt, /run or /var/lib/hugetlbfs",
            ),
            _ => Ok(()),
        }
    }
}

/// Does the goal name this file (`postgres:PATH` or `innodb:PATH,...`)?
fn names(goal: &str, path: &str) -> bool {
    // No kernel interface or program is ever an application's file of settings.
    let foreign = ["/proc/", "/sys/", "/dev/", "/boot/", "/usr/", "/bin/", "/sbin/", "/lib"];
    let application = goal
        .split_once(':')
        .filter(|(kind, _)| matches!(*kind, "postgres" | "innodb"));
    let named = application.map(|(_, rest)| rest.split(',').next().unwrap_or_default());
    named == Some(path)
        && path.ends_with(".conf") | path.ends_with(".cnf")
        && !foreign.iter().any(|root| path.starts_with(root))
}

fn is_writable(path: &str) -> bool {
    let allowed = |place: &str| match place.strip_suffix('/') {
        Some(_) => path.starts_with(place),
        None => path == place,
    };
    ETC.into_iter().any(allowed)
}

fn is_mount_point(path: &str) -> bool {
    let below = |place: &str| place.ends_with(['/', '-']) && path.starts_with(place);
    MOUNTS.into_iter().any(|place| path == place || below(place))
}

fn is_clean(path: &str) -> bool {
    let parts = path.strip_prefix('/').unwrap_or("..").split('/');
    path.len() < LONGEST_SETTING
        && !path.chars().any(char::is_control)
        && parts.into_iter().all(|part| !matches!(part, "" | "." | ".."))
}

fn check_id(id: &str) -> Result<(), Flaw> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if !id.is_empty() && id.len() <= 120 && id.chars().all(plain) {
        return Ok(());
    }
    Err(("id", id.to_owned(), "an id has lower-case letters, digits and `-`"))
}

fn check_value(change: &Change) -> Result<(), Flaw> {
    let fail = |text: &str, why| Err(("value", text.to_owned(), why));
    match (&change.target, &change.after) {
        (Target::Setting { .. } | Target::Mount { .. }, Value::Absent) => fail("", "a setting cannot be taken away"),
        (Target::File { .. } | Target::Mount { .. }, Value::Pages(_)) => fail("", "only settings hold pages"),
        (Target::Setting { .. }, Value::Text(text)) if text.is_empty() || !is_line(text) => {
            fail(text, "a setting is one line of text without control characters")
        }
        (Target::Mount { .. }, Value::Text(text)) if !is_options(text) => fail(
            text,
            "hugetlbfs takes pagesize, size, min_size, nr_inodes, uid, gid and mode, each with a plain value",
        ),
        (Target::File { .. }, Value::Text(text)) if text.contains('\0') => fail("", "a text file holds no NUL"),
        _ => Ok(()),
    }
}

fn is_line(text: &str) -> bool {
    text.len() <= LONGEST_SETTING && !text.chars().any(char::is_control)
}

fn is_options(text: &str) -> bool {
    text.split(',').all(|option| {
        option.split_once('=').is_some_and(|(name, value)| {
            OPTIONS.contains(&name)
                && !value.is_empty()
                && value.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'%')
        })
    })
}
