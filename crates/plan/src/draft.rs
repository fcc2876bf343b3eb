//! Changes as they are drafted: each target once, in the order of application, without what is in place already.

use std::collections::BTreeMap;

use model::plan::{Change, Layer, Mode, Owner, Plan, Risk, Taken, Target, Value};
use model::{Bytes, Reading};
use programs::config::Distribution;

use super::{Host, Wanted};

pub(super) struct Drafts<'h> {
    pub(super) host: &'h Host<'h>,
    drafts: Vec<Change>,
    notes: Vec<String>,
    /// Texts of files as earlier drafts leave them.
    files: BTreeMap<String, String>,
    /// Bytes that plans on record for other goals may lock, by user.
    others_lock: BTreeMap<String, u64>,
    /// Bytes that goals of this plan lock, by user or service.
    locked: BTreeMap<String, u64>,
    /// The group that a goal of this plan has put into vm.hugetlb_shm_group.
    pub(super) shm_group: Option<u32>,
}

/// A change whose current value has not been looked up yet.
pub(super) struct Draft(Change);

/// Files that hugewise makes.
const NEW_FILE: (Mode, Owner) = (Mode(0o644), Owner { uid: 0, gid: 0 });

impl Draft {
    fn new(layer: Layer, id: &str, target: Target, after: Value) -> Self {
        Self(Change {
            id: slug(id),
            layer,
            before: Reading::Known(Value::Absent),
            target,
            after,
            why: String::new(),
            risk: Risk::default(),
            also_written_by: Vec::new(),
            source: String::new(),
        })
    }

    /// A setting of the running kernel.
    pub(super) fn setting(layer: Layer, id: &str, path: impl Into<String>, after: Value) -> Self {
        Self::new(layer, id, Target::Setting { path: path.into() }, after)
    }

    pub(super) fn instruction(layer: Layer, id: &str, on: &str, text: impl Into<String>) -> Self {
        let target = Target::Instruction { on: on.to_owned() };
        Self::new(layer, id, target, Value::Text(text.into()))
    }

    pub(super) fn mount(id: &str, at: &str, options: impl Into<String>) -> Self {
        let target = Target::Mount { at: at.to_owned() };
        Self::new(Layer::Mount, id, target, Value::Text(options.into()))
    }

    pub(super) fn takes(mut self, takes: Option<Taken>) -> Self {
        self.0.risk.takes = takes;
        self
    }

    pub(super) fn reboot(mut self) -> Self {
        self.0.risk.reboot = true;
        self
    }

    pub(super) fn restart(mut self, what: impl Into<String>) -> Self {
        self.0.risk.restart.push(what.into());
        self
    }

    pub(super) fn loses(mut self, losses: impl IntoIterator<Item = String>) -> Self {
        self.0.risk.losses.extend(losses);
        self
    }

    pub(super) fn also(mut self, others: impl IntoIterator<Item = String>) -> Self {
        self.0.also_written_by.extend(others);
        self
    }
}

impl<'h> Drafts<'h> {
    pub(super) fn new(host: &'h Host<'h>, wanted: &[Wanted]) -> Self {
        let mut others_lock = BTreeMap::new();
        for (goal, recorded) in host.others(wanted) {
            let bytes = recorded.need.page.0.saturating_mul(recorded.need.pages);
            if let Some(user) = goal.user() {
                let sum: &mut u64 = others_lock.entry(user.to_owned()).or_default();
                *sum = sum.saturating_add(bytes);
            }
        }
        Self {
            host,
            drafts: Vec::new(),
            notes: Vec::new(),
            files: BTreeMap::new(),
            others_lock,
            locked: BTreeMap::new(),
            shm_group: None,
        }
    }

    /// What a user or service may lock in all, with so much more: for all goals of this plan, and of those on record.
    pub(super) fn lock(&mut self, who: &str, more: Bytes) -> Bytes {
        let own = self.locked.entry(who.to_owned()).or_default();
        *own = own.saturating_add(more.0);
        Bytes(own.saturating_add(self.others_lock.get(who).copied().unwrap_or(0)))
    }

    /// Adds a draft, with what it is for and the document that says so. A later one for the same target replaces the value and adds its reasons.
    pub(super) fn add(&mut self, Draft(mut draft): Draft, why: impl Into<String>, source: &str) {
        (draft.why, draft.source) = (why.into(), source.to_owned());
        let same = |known: &&mut Change| known.target.is_applicable() && known.target == draft.target;
        let Some(known) = self.drafts.iter_mut().find(same) else {
            self.drafts.push(draft);
            return;
        };
        known.after = draft.after;
        if !known.why.contains(&draft.why) {
            known.why = format!("{}; {}", known.why, draft.why);
        }
        known.risk.reboot |= draft.risk.reboot;
        let restart = &mut known.risk.restart;
        let new = draft.risk.restart.into_iter().filter(|what| !restart.contains(what));
        let new: Vec<_> = new.collect();
        restart.extend(new);
        known.also_written_by.extend(draft.also_written_by);
        known.risk.losses.extend(draft.risk.losses);
    }

    /// What an earlier draft sets this file to.
    pub(super) fn drafted(&self, path: &str) -> Option<&Value> {
        let mut drafts = self.drafts.iter();
        drafts
            .find(|change| change.target.path() == Some(path))
            .map(|change| &change.after)
    }

    /// Says something about the whole.
    pub(super) fn note(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }

    /// A file with its text changed; several drafts can change one file.
    pub(super) fn edit(&mut self, layer: Layer, id: &str, path: &str, change: impl Fn(&str) -> String) -> Draft {
        let now = self.files.get(path).cloned().unwrap_or_else(|| self.host.text(path));
        let text = change(&now);
        self.files.insert(path.to_owned(), text.clone());
        let is_new = matches!(self.host.file(path), Reading::Known(Value::Absent));
        let (mode, owner) = is_new.then_some(NEW_FILE).unzip();
        let path = path.to_owned();
        Draft::new(layer, id, Target::File { path, mode, owner }, Value::Text(text))
    }

    /// The plan: what is in place already becomes a note.
    pub(super) fn finish(mut self, wanted: &[Wanted]) -> Plan {
        self.drafts.sort_by_key(|draft| draft.layer);
        let mut changes: Vec<Change> = Vec::new();
        for mut change in std::mem::take(&mut self.drafts) {
            let own = self.host.distribution();
            if own.is_configured_whole() {
                by_configuration(own, &mut change);
            }
            change.before = self.host.before(&change.target);
            change.also_written_by.sort();
            change.also_written_by.dedup();
            if change.is_there() {
                let value = change.after.text().filter(|text| !text.contains('\n'));
                let value = value.map_or_else(String::new, |value| format!(" ({value})"));
                self.note(format!("{} is set as requested already{value}", change.target));
                continue;
            }
            change.id = unused(&change.id, &changes);
            changes.push(change);
        }
        Plan {
            goals: wanted.iter().map(|wanted| wanted.goal.text.clone()).collect(),
            changes,
            notes: self.notes,
            needs: wanted.iter().flat_map(Wanted::pool_needs).collect(),
        }
    }
}

/// Where one configuration makes the files of /etc, it has to make this one.
fn by_configuration(own: Distribution, change: &mut Change) {
    let path = match &change.target {
        Target::File { path, .. } => path.as_str(),
        Target::Instruction { on } => on.strip_prefix("this host: ").unwrap_or_default(),
        _ => return,
    };
    if !path.starts_with("/etc/") {
        return;
    }
    let Some(text) = change.after.text() else { return };
    let how = match own {
        Distribution::NixOs => by_nix(path, &text),
        _ => format!(
            "no file below /etc lasts here, and the machine's configuration has no setting for this: do after each boot what {path} would do:\n{text}"
        ),
    };
    change.after = Value::Text(how);
    change.target = Target::Instruction {
        on: "this host".to_owned(),
    };
}

/// NixOS makes links of these files, and has pam_limits read another one.
fn by_nix(path: &str, text: &str) -> String {
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    let list = |option: &str, items: Vec<String>| {
        let items = items.join(" ");
        format!("{option} = [ {items} ]; in the machine's configuration, then: nixos-rebuild switch")
    };
    if path.starts_with("/etc/tmpfiles.d/") {
        return list(
            "systemd.tmpfiles.rules",
            lines.map(|line| format!("\"{line}\"")).collect(),
        );
    }
    if path.starts_with("/etc/security/") {
        return list("security.pam.loginLimits", lines.filter_map(login_limit).collect());
    }
    let name = path.strip_prefix("/etc/systemd/system/").unwrap_or(path);
    format!("have the machine's configuration make {name}:\n{text}")
}

/// A line of limits.conf(5) for NixOS.
fn login_limit(line: &str) -> Option<String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [domain, kind, item, value] = words[..] else {
        return None;
    };
    Some(format!(
        "{{ domain = \"{domain}\"; type = \"{kind}\"; item = \"{item}\"; value = \"{value}\"; }}"
    ))
}

/// The id, with a number if another change has it.
fn unused(id: &str, changes: &[Change]) -> String {
    let is_free = |id: &String| changes.iter().all(|change| change.id != *id);
    let numbered = (2..).map(|nth| format!("{id}-{nth}"));
    let mut ids = std::iter::once(id.to_owned()).chain(numbered);
    ids.find(is_free).unwrap_or_default()
}

/// Lower-case letters, digits and `-`.
fn slug(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    text.to_ascii_lowercase().chars().map(plain).take(100).collect()
}

#[cfg(test)]
mod tests {
    use super::by_nix;

    #[test]
    fn lines_of_limits_are_options_of_nixos() {
        let text = "# of hugewise\ndb soft memlock 2048\ndb hard memlock 2048\n";
        let limit =
            |kind: &str| format!("{{ domain = \"db\"; type = \"{kind}\"; item = \"memlock\"; value = \"2048\"; }}");
        assert_eq!(
            by_nix("/etc/security/limits.d/60-hugewise.conf", text),
            format!(
                "security.pam.loginLimits = [ {} {} ]; in the machine's configuration, then: nixos-rebuild switch",
                limit("soft"),
                limit("hard")
            )
        );
    }
}
