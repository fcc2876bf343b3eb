//! A plan as a shell script that stops at the first value that is not what the plan found.

use model::plan::{Change, Edit, Mode, Owner, Plan, Sum, Target, Value};

use draw::joined;

/// What the script does with each kind of target.
const FUNCTIONS: &str = include_str!("functions.sh");

pub(crate) fn script(plan: &Plan) -> String {
    let (head, changes) = (head(plan), joined(plan.changes.iter().map(step), "\n"));
    format!("#!/bin/sh\n{head}{FUNCTIONS}\nsteps() {{\n:\n{changes}}}\n\nphase=look; steps\nphase=write; steps\n")
}

/// Who made it, and what for.
pub(super) fn head(plan: &Plan) -> String {
    let (version, goals) = (env!("CARGO_PKG_VERSION"), plan.goals.join(" and "));
    comment(&format!("Made by hugewise {version} for {goals}"))
}

fn step(change: &Change) -> String {
    let why = comment(&format!("{}: {}", change.id, change.why));
    format!("{why}{}", command(change))
}

fn command(change: &Change) -> String {
    let after = change.after.text().unwrap_or_default();
    let before = change.before.known();
    match (&change.target, before) {
        (Target::Instruction { on }, _) => comment(&format!("Not done here, but on {on}:\n{after}")),
        (target, None) => {
            let why = format!("{target} was not read when this was planned: {}", change.before);
            call("stop", &[&why])
        }
        (Target::Setting { path }, Some(before)) => {
            let function = if matches!(before, Value::Pages(_)) {
                "pool"
            } else {
                "setting"
            };
            call(function, &[path, &before.text().unwrap_or_default(), &after])
        }
        (Target::File { path, mode, owner }, Some(Value::Absent)) => {
            let mode = mode.unwrap_or(Mode(0o644)).to_string();
            let Owner { uid, gid } = owner.unwrap_or(Owner { uid: 0, gid: 0 });
            call("new", &[path, &mode, &format!("{uid}:{gid}"), &after])
        }
        (Target::File { path, .. }, Some(before)) => edit(path, before, &change.after),
        (Target::Mount { at }, _) => call("hugetlbfs", &[at, &after]),
    }
}

/// The file's checksum, and of each place the first line, how many lines go, and what comes.
fn edit(path: &str, before: &Value, after: &Value) -> String {
    let text = before.text().unwrap_or_default();
    let whole = || Edit::between(&text, &after.text().unwrap_or_default());
    let (sum, edit) = match (before, after) {
        (Value::Sum(sum), Value::Edit(edit)) => (sum.clone(), edit.clone()),
        _ => (Sum::of(&text), whole()),
    };
    let mut words = vec![path.to_owned(), sum.sha256];
    for hunk in &edit.edits {
        let adds = hunk.adds.iter().map(|line| format!("{line}\n")).collect();
        words.extend([hunk.line.to_string(), hunk.removes.len().to_string(), adds]);
    }
    call("edit", &words.iter().map(String::as_str).collect::<Vec<_>>())
}

fn call(function: &str, words: &[&str]) -> String {
    format!("{function} {}\n", joined(words.iter().map(|word| quoted(word)), " "))
}

/// A word that no shell looks into.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// As a shell takes it: in quotes only where it needs them.
pub(crate) fn word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-=:,+@".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => quoted(text),
    }
}

/// Lines that are not run: only plain characters, because YAML ends lines at more of the others than shells do.
pub(crate) fn comment(text: &str) -> String {
    let plain = |line: &str| -> String {
        let escaped = line.chars().map(|c| match c {
            ' '..='~' => c.to_string(),
            other => other.escape_default().to_string(),
        });
        escaped.collect()
    };
    text.lines().map(|line| format!("# {}\n", plain(line))).collect()
}
