//! Reads a plan, and refuses one that would write where no plan may write, or what no plan may write there, whatever its author.

use std::collections::BTreeSet;

use super::content::{self, Sort};
use super::error::{Flaw, PlanError};
use super::hugetlbfs::{MOUNTS, is_clean, is_mount_point, mount_options};
use super::settings;
use super::{Change, Mode, Owner, Plan, SCHEMA, Sum, Target, Value};
use crate::Envelope;

impl Plan {
    /// A plan from a result of `hugewise plan --json`, checked.
    ///
    /// # Errors
    /// When it is not JSON of that schema, or would write where, or what, no plan may write.
    pub fn from_json(text: &str) -> Result<Envelope<Self>, PlanError> {
        let garbled = |why: serde_json::Error| PlanError::Garbled(why.to_string());
        let whole: serde_json::Value = serde_json::from_str(text).map_err(garbled)?;
        let schema = whole.get("schema").and_then(serde_json::Value::as_str);
        if schema != Some(SCHEMA) {
            return Err(PlanError::Schema(schema.unwrap_or("none").to_owned()));
        }
        let envelope: Envelope<Self> = serde_json::from_value(whole).map_err(garbled)?;
        envelope.data.check()?;
        Ok(envelope)
    }

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
pub(super) fn check_place(target: &Target, goals: &[String]) -> Result<(), Flaw> {
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
        Target::Mount { .. } if !is_mount_point(path) => fail(MOUNTS),
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
        (Target::File { path, mode, owner }, Value::Edit(edit)) => {
            check_access(*mode, *owner)?;
            match change.before.known() {
                Some(Value::Sum(_)) | None => match Sort::of(path, goals) {
                    Some(sort) => content::check_edit(sort, path, edit),
                    None => Ok(()),
                },
                Some(_) => Err(value(
                    "",
                    "lines change in a file that is there, which `before` names by its checksum",
                )),
            }
        }
        (_, Value::Sum(_) | Value::Edit(_)) => Err(value("", "only files are changed line by line")),
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

impl Change {
    /// What a file becomes by this change of a plan for these goals, where `text` stands now: every line of it is held against what a plan may
    /// write. `None` if it is another file than the one that was planned for.
    ///
    /// # Errors
    /// Names the line that no plan may write.
    pub fn edited(&self, goals: &[String], text: &str) -> Result<Option<String>, PlanError> {
        let (Target::File { path, .. }, Value::Edit(edit)) = (&self.target, &self.after) else {
            return Ok(self.after.text());
        };
        let is_it = self.before.known() == Some(&Value::Sum(Sum::of(text)));
        let Some(after) = edit.applied_to(text).filter(|_| is_it) else {
            return Ok(None);
        };
        let sort = Sort::of(path, goals).ok_or_else(|| Flaw::new("path", path, "no plan writes there"));
        let checked = sort.and_then(|sort| content::check(sort, path, Some(text), &after));
        checked.map_err(|flaw| PlanError::refused(1, &self.id, &flaw))?;
        Ok(Some(after))
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
