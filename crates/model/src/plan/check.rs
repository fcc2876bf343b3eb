//! Refuses a plan that would write where no plan may write, or what no plan may write there, whatever its author.

use std::collections::BTreeSet;

use super::content::{self, Sort};
use super::settings;
use super::{Change, Mode, Owner, Plan, SCHEMA, Target, Value};

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
    #[error("change `{id}` of the plan (number {nth}): {what} `{text}`: {why}")]
    Refused {
        /// The change.
        id: String,
        /// Its number in the plan, from 1.
        nth: usize,
        /// Which part of it: `path`, `value`, `line 2 of /etc/sysctl.d/60-hugewise.conf`, ...
        what: String,
        /// The offending text, with control characters escaped.
        text: String,
        /// What is wrong with it, and what is allowed.
        why: String,
    },
}

/// What is wrong with a part of a change; the change is named by the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Flaw {
    pub(super) what: String,
    pub(super) text: String,
    pub(super) why: String,
}

impl Flaw {
    pub(super) fn new(what: &str, text: &str, why: &str) -> Self {
        let [what, text, why] = [what, text, why].map(str::to_owned);
        Self { what, text, why }
    }
}

/// Where a hugetlbfs may be mounted: nothing that other programs need is hidden there.
const MOUNTS: [&str; 6] = [
    "/dev/hugepages",
    "/dev/hugepages-",
    "/dev/hugepages1G",
    "/mnt/",
    "/run/",
    "/var/lib/hugetlbfs/",
];

/// Longer ones are no settings.
const LONGEST_SETTING: usize = 4096;

impl PlanError {
    pub(super) fn garbled(why: &serde_json::Error) -> Self {
        Self::Garbled(why.to_string())
    }

    fn refused(nth: usize, id: &str, flaw: &Flaw) -> Self {
        let printable = |text: &str| text.escape_debug().take(200).collect();
        let [id, what, text] = [id, &flaw.what, &flaw.text].map(printable);
        let why = flaw.why.clone();
        Self::Refused {
            id,
            nth,
            what,
            text,
            why,
        }
    }
}

impl Plan {
    /// Could each change be applied as far as its words go? Every place is one of a closed set, and so is everything that is
    /// written there. (What the machine says to it is another question.)
    ///
    /// # Errors
    /// Names the first change that could not, and the part or line of it that is wrong.
    pub fn check(&self) -> Result<(), PlanError> {
        self.check_each(|change| check_value(change, &self.goals))
    }

    /// Is every place one that a plan may write to? For a plan that was checked in full when it was applied, and may be of an
    /// earlier version: what undoes it writes the previous value.
    ///
    /// # Errors
    /// Names the first change that is elsewhere.
    pub fn check_places(&self) -> Result<(), PlanError> {
        self.check_each(|_| Ok(()))
    }

    fn check_each(&self, value: impl Fn(&Change) -> Result<(), Flaw>) -> Result<(), PlanError> {
        let mut ids = BTreeSet::new();
        for (nth, change) in (1..).zip(&self.changes) {
            let refused = |flaw| PlanError::refused(nth, &change.id, &flaw);
            check_id(&change.id).map_err(refused)?;
            if !ids.insert(&change.id) {
                return Err(refused(Flaw::new(
                    "id",
                    &change.id,
                    "there are two changes of that name",
                )));
            }
            check_place(&change.target, &self.goals).map_err(refused)?;
            value(change).map_err(refused)?;
        }
        Ok(())
    }
}

/// Is it a place that a plan for these goals may write to? No path has `..`, empty parts or control characters.
fn check_place(target: &Target, goals: &[String]) -> Result<(), Flaw> {
    let Some(path) = target.path() else { return Ok(()) };
    let fail = |why| Err(Flaw::new("path", path, why));
    if !is_clean(path) {
        return fail("a path is absolute, without `..`, empty parts or control characters");
    }
    match target {
        Target::Setting { .. } if !settings::is_known(path) => {
            fail("it is not one of the settings that hugewise changes")
        }
        Target::File { .. } if Sort::of(path, goals).is_none() => fail(
            "files of a plan are those below /etc that hugewise knows, those in its directories that are named for it \
             (60-hugewise.conf), and a server's that a goal names",
        ),
        Target::Mount { .. } if !is_mount_point(path) => {
            fail("hugetlbfs goes on /dev/hugepages*, or below /mnt, /run or /var/lib/hugetlbfs")
        }
        _ => Ok(()),
    }
}

fn check_id(id: &str) -> Result<(), Flaw> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if !id.is_empty() && id.len() <= 120 && id.chars().all(plain) {
        return Ok(());
    }
    Err(Flaw::new("id", id, "an id has lower-case letters, digits and `-`"))
}

fn check_value(change: &Change, goals: &[String]) -> Result<(), Flaw> {
    let value = |text: &str, why: &str| Flaw::new("value", text, why);
    match (&change.target, &change.after) {
        (Target::Instruction { .. }, _) => Ok(()),
        (_, Value::Absent) => Err(value("", "a plan sets things, it takes none away")),
        (Target::Setting { path }, Value::Pages(pages)) => {
            let pages = pages.to_string();
            settings::check(path, &pages).map_err(|why| value(&pages, &why))
        }
        (Target::Setting { path }, Value::Text(text)) => settings::check(path, text).map_err(|why| value(text, &why)),
        (_, Value::Pages(pages)) => Err(value(&pages.to_string(), "only settings hold pages")),
        (Target::Mount { .. }, Value::Text(options)) => mount_options(options).map_err(|why| value(options, &why)),
        (Target::File { path, mode, owner }, Value::Text(text)) => {
            check_access(*mode, *owner)?;
            let Some(sort) = Sort::of(path, goals) else {
                return Ok(());
            };
            let before = change.before.known().and_then(Value::text);
            content::check(sort, path, before.as_deref(), text)
        }
    }
}

/// What others may do with a file that root's programs read: nothing but read it.
fn check_access(mode: Option<Mode>, owner: Option<Owner>) -> Result<(), Flaw> {
    if let Some(mode) = mode.filter(|mode| mode.0 & !0o644 != 0) {
        let why = "only root writes to a file of a plan, and it is no program (0644 at most)";
        return Err(Flaw::new("mode", &mode.to_string(), why));
    }
    match owner {
        Some(Owner { uid, gid }) if (uid, gid) != (0, 0) => Err(Flaw::new(
            "owner",
            &format!("{uid}:{gid}"),
            "a file of a plan is root's, or stays whose it is",
        )),
        _ => Ok(()),
    }
}

/// hugetlbfs takes these options, each with a value of its type.
pub(super) fn mount_options(text: &str) -> Result<(), String> {
    let fail = |option: &str, why: &str| Err(format!("`{option}`: {why}"));
    for option in text.split(',') {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        let is_right = match name {
            "pagesize" => is_size(value),
            "size" | "min_size" => is_amount(value),
            "nr_inodes" => settings::number(value).is_some() && !value.is_empty(),
            "uid" | "gid" => value.parse::<u32>().is_ok_and(|id| id < u32::MAX) && settings::number(value).is_some(),
            "mode" => {
                u32::from_str_radix(value, 8).is_ok_and(|mode| mode & !0o775 == 0) && settings::number(value).is_some()
            }
            _ => {
                return fail(
                    option,
                    "hugetlbfs takes pagesize, size, min_size, nr_inodes, uid, gid and mode",
                );
            }
        };
        if !is_right {
            return fail(
                option,
                "it wants a plain value of its kind, and a mode that lets not everybody write (0775 at most)",
            );
        }
    }
    Ok(())
}

/// A page size: a power of two, as the kernel takes it.
pub(super) fn is_size(text: &str) -> bool {
    let (digits, shift) = suffixed(text);
    let bytes = settings::number(digits).and_then(|number| number.checked_mul(1 << shift));
    !digits.is_empty() && bytes.is_some_and(|bytes| bytes.is_power_of_two() && bytes >= 4096)
}

/// A number of bytes, or a share of the pool.
fn is_amount(text: &str) -> bool {
    let (digits, _) = suffixed(text.strip_suffix('%').unwrap_or(text));
    !digits.is_empty() && settings::number(digits).is_some()
}

/// Digits, and by how many bits the letter behind them shifts.
fn suffixed(text: &str) -> (&str, u32) {
    for (letter, shift) in [('K', 10), ('M', 20), ('G', 30)] {
        if let Some(digits) = text.strip_suffix(letter) {
            return (digits, shift);
        }
    }
    (text, 0)
}

/// A user's or group's name, as useradd(8) takes it.
pub(super) fn is_account(name: &str) -> bool {
    name.len() <= 32
        && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b))
}

/// May a hugetlbfs be mounted there?
pub(super) fn is_mount_point(path: &str) -> bool {
    let below = |place: &str| place.ends_with(['/', '-']) && path.starts_with(place) && path.len() > place.len();
    is_clean(path) && MOUNTS.into_iter().any(|place| path == place || below(place)) && !path.contains('%')
}

fn is_clean(path: &str) -> bool {
    let parts = path.strip_prefix('/').unwrap_or("..").split('/');
    path.len() < LONGEST_SETTING
        && !path.chars().any(char::is_control)
        && parts.into_iter().all(|part| !matches!(part, "" | "." | ".."))
}
