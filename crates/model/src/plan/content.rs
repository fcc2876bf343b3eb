//! What a plan may write into a file: lines that hugewise knows, with values in their range, beside lines that stay as they are.
//!
//! The place of a file decides what it is ([`Sort::of`]), and with that which lines are known. Every other line of the file
//! must stay what and where it was, and nothing that was set may be left out, so that a plan can neither bring in a line of
//! another kind nor take one away.

mod lines;
mod parsed;
mod server;
mod sort;
mod units;
mod words;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use super::edit::Edit;
use super::error::Flaw;
use parsed::{Line, Parsed};
use sort::is_own;

pub(super) use sort::Sort;
pub use units::mount_unit;

/// Longer files are no settings; the writer refuses them, too.
const LONGEST: usize = 1 << 20;
/// Longer lines are none that hugewise writes.
const LONGEST_LINE: usize = 4096;

impl Sort {
    /// What the file at a clean path is; `None` of one that no plan for these goals may write.
    pub(super) fn of(path: &str, goals: &[String]) -> Option<Self> {
        if let Some(server) = goals.iter().find_map(|goal| server::named(goal, path)) {
            return Some(server);
        }
        let (directory, name) = path.rsplit_once('/')?;
        match (directory, name) {
            ("/etc", "sysctl.conf") => Some(Self::Sysctl),
            ("/etc/security", "limits.conf") => Some(Self::Limits),
            ("/etc/kernel", "cmdline") => Some(Self::Cmdline),
            ("/etc/sysctl.d", name) => is_own(name, ".conf").then_some(Self::Sysctl),
            ("/etc/security/limits.d", name) => is_own(name, ".conf").then_some(Self::Limits),
            ("/etc/tmpfiles.d", name) => is_own(name, ".conf").then_some(Self::Tmpfiles),
            ("/etc/default/grub.d", name) => is_own(name, ".cfg").then_some(Self::Grub),
            _ => units::sort(path.strip_prefix("/etc/systemd/system/")?),
        }
    }
}

/// May these lines come into the file at `path`, as far as that is known without the file? All of it is checked once that is known.
pub(super) fn check_edit(sort: Sort, path: &str, edit: &Edit) -> Result<(), Flaw> {
    for hunk in &edit.edits {
        let flaw = |line: &str, why: &str| Err(Flaw::of_line(path, hunk.line.saturating_sub(1), line, why));
        let is_plain = |line: &&String| line.len() <= LONGEST && !line.chars().any(|c| c.is_control() && c != '\t');
        if let Some(line) = hunk.adds.iter().find(|line| !is_plain(line)) {
            return flaw(
                line,
                "a line of a plan has no control characters, and no file of settings more than 1 MiB",
            );
        }
        if sort == Sort::Cmdline {
            words::check(path, &hunk.removes.join(" "), &hunk.adds.join(" "))?;
            continue;
        }
        let text = format!(
            "{}\n{}",
            hunk.section.as_deref().unwrap_or_default(),
            hunk.adds.join("\n")
        );
        for line in lines::parse(sort, path, &text).iter().skip(1) {
            match &line.what {
                Line::Known { wrong: Some(why), .. } => return flaw(line.text, why),
                Line::Other if !hunk.removes.iter().any(|gone| gone == line.text) => {
                    return flaw(line.text, lines::ALLOWED);
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// May this text stand in the file at `path`, where `before` stands now?
pub(super) fn check(sort: Sort, path: &str, before: Option<&str>, after: &str) -> Result<(), Flaw> {
    let whole = |why: &str| Flaw::new("path", path, why);
    if after.len() > LONGEST {
        return Err(whole("no file of settings is longer than 1 MiB"));
    }
    if before.is_none() && !sort.may_be_new() {
        return Err(whole(
            "a plan changes this file where it is there, and makes no new one",
        ));
    }
    let before = before.unwrap_or_default();
    if let Some(server) = server::foreign(sort, before) {
        return Err(whole(server));
    }
    if sort == Sort::Cmdline {
        return words::check(path, before, after);
    }
    let [old, new] = [before, after].map(|text| lines::parse(sort, path, text));
    added_lines_are_plain(path, sort, &old, &new)?;
    known_lines_are_right(path, &old, &new)?;
    other_lines_stay(path, &old, &new)?;
    nothing_is_taken_away(path, &old, &new)
}

/// Lines that were not there hold no control characters and do not go on in the next one; neither does any line of a unit or a
/// script, where a known line behind it would be another's.
fn added_lines_are_plain(path: &str, sort: Sort, old: &[Parsed<'_>], new: &[Parsed<'_>]) -> Result<(), Flaw> {
    let goes_on = |line: &Parsed<'_>| line.text.ends_with('\\');
    let is_joined = matches!(
        sort,
        Sort::Grub | Sort::Service | Sort::Wants | Sort::Mount | Sort::Pools
    );
    if is_joined && let Some(line) = old.iter().find(|line| goes_on(line)) {
        let why = "it goes on in the next line, so hugewise leaves this file alone";
        return Err(line.flaw(path, why));
    }
    let known: BTreeSet<&str> = old.iter().map(|line| line.text).collect();
    for line in new.iter().filter(|line| !known.contains(line.text)) {
        let is_plain = !line.text.chars().any(|c| c.is_control() && c != '\t');
        if !is_plain || goes_on(line) || line.text.len() > LONGEST_LINE {
            let why = "a line of a plan has no control characters, no `\\` at its end, and at most 4096 bytes";
            return Err(line.flaw(path, why));
        }
    }
    Ok(())
}

/// Lines with known keys have a value in its range, or stood there before.
fn known_lines_are_right(path: &str, old: &[Parsed<'_>], new: &[Parsed<'_>]) -> Result<(), Flaw> {
    let stood: BTreeSet<(&str, &str)> = old.iter().map(|line| (line.section, line.text)).collect();
    for line in new {
        if let Line::Known { wrong: Some(why), .. } = &line.what
            && !stood.contains(&(line.section, line.text))
        {
            return Err(line.flaw(path, why));
        }
    }
    Ok(())
}

/// All other lines stay, in their order and sections; comments may be added.
fn other_lines_stay(path: &str, old: &[Parsed<'_>], new: &[Parsed<'_>]) -> Result<(), Flaw> {
    let mut left = old.iter().filter(|line| line.is_other()).peekable();
    for line in new.iter().filter(|line| line.is_other()) {
        let stood = left.next_if(|stood| (stood.section, stood.text) == (line.section, line.text));
        if stood.is_none() && line.what != Line::Comment {
            return Err(line.flaw(path, lines::ALLOWED));
        }
    }
    match left.find(|line| !line.text.trim().is_empty()) {
        Some(line) => Err(line.flaw(path, "the file has this line now, and a plan does not remove it")),
        None => Ok(()),
    }
}

/// What was set is still set, if to another value.
fn nothing_is_taken_away(path: &str, old: &[Parsed<'_>], new: &[Parsed<'_>]) -> Result<(), Flaw> {
    let keys: BTreeSet<(&str, &str)> = new.iter().filter_map(Parsed::key).collect();
    let gone = old
        .iter()
        .find(|line| line.key().is_some_and(|key| !keys.contains(&key)));
    let why = "it is set now, and a plan gives it another value or leaves it";
    gone.map_or(Ok(()), |line| Err(line.flaw(path, why)))
}
