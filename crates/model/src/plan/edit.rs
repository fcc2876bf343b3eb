//! Changed lines of a file: what a plan holds of a file that is there, instead of all of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::sha256::sha256;
use super::{Plan, Target, Value};
use crate::Reading;

/// Lines of two texts whose pairs are compared one by one; of more, all between the first and the last change are changed.
const MOST_PAIRS: usize = 4 << 20;

/// A file that is there, by its checksum.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sum {
    /// SHA-256 of its content, in hex, as sha256sum(1) prints it.
    pub sha256: String,
}

/// Lines of a file that change; all others stay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    /// The changes, from the top down.
    pub edits: Vec<Hunk>,
}

/// Lines next to each other that change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hunk {
    /// The number of the first line that goes, or before which lines come, from 1.
    pub line: usize,
    /// The head of the section that it is in, such as `[mysqld]`.
    pub section: Option<String>,
    /// Lines that go.
    pub removes: Vec<String>,
    /// Lines that come.
    pub adds: Vec<String>,
}

impl Sum {
    /// That of a text.
    pub fn of(text: &str) -> Self {
        let sha256 = sha256(text.as_bytes());
        Self { sha256 }
    }
}

impl Edit {
    /// What makes the one text the other.
    pub fn between(old: &str, new: &str) -> Self {
        let [old, new] = [old, new].map(|text| text.split_inclusive('\n').collect::<Vec<&str>>());
        let start = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
        let backwards = old[start..].iter().rev().zip(new[start..].iter().rev());
        let end = backwards.take_while(|(old, new)| old == new).count();
        let (from, to) = (&old[start..old.len() - end], &new[start..new.len() - end]);
        let mut edits: Vec<Hunk> = Vec::new();
        let (mut at, mut came) = (start, start);
        let is_head = |line: &&&str| line.trim_start().starts_with('[');
        for step in steps(from, to) {
            if step == Step::Both {
                (at, came) = (at + 1, came + 1);
                continue;
            }
            let is_next = |hunk: &Hunk| hunk.line + hunk.removes.len() == at + 1;
            if !edits.last().is_some_and(is_next) {
                let section = new[..came].iter().rfind(is_head).map(|head| head.trim().to_owned());
                edits.push(Hunk {
                    line: at + 1,
                    section,
                    removes: Vec::new(),
                    adds: Vec::new(),
                });
            }
            let Some(hunk) = edits.last_mut() else { continue };
            let plain = |line: &str| line.strip_suffix('\n').unwrap_or(line).to_owned();
            if step == Step::Old {
                hunk.removes.push(plain(old[at]));
                at += 1;
            } else {
                hunk.adds.push(plain(new[came]));
                came += 1;
            }
        }
        Self { edits }
    }

    /// The text with the changes made; `None` if other lines stand where lines are to go.
    pub fn applied_to(&self, text: &str) -> Option<String> {
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let (mut made, mut at) = (String::new(), 0);
        for hunk in &self.edits {
            let start = hunk.line.checked_sub(1)?;
            made.extend(lines.get(at..start)?.iter().copied());
            at = start.checked_add(hunk.removes.len())?;
            let going = lines
                .get(start..at)?
                .iter()
                .map(|line| line.strip_suffix('\n').unwrap_or(line));
            if !going.eq(hunk.removes.iter().map(String::as_str)) {
                return None;
            }
            hunk.adds.iter().for_each(|line| made.extend([line, "\n"]));
        }
        made.extend(lines.get(at..)?.iter().copied());
        Some(made)
    }

    /// Are the changes made in a text, whatever else stands there? A line that moves is there before and after.
    pub fn is_made_in(&self, text: &str) -> bool {
        let lines: Vec<&str> = text.lines().collect();
        let has = |line: &String| line.trim().is_empty() || lines.contains(&line.as_str());
        let adds = || self.edits.iter().flat_map(|hunk| &hunk.adds);
        let gone = self.edits.iter().flat_map(|hunk| &hunk.removes);
        let mut gone = gone.filter(|line| !line.trim().is_empty() && !adds().any(|new| new == *line));
        adds().all(has) && !gone.any(has)
    }

    /// Lines that go with `-`, and that come with `+`.
    pub fn lines(&self) -> Vec<String> {
        let of = |hunk: &Hunk| {
            let gone = hunk.removes.iter().map(|line| format!("- {line}"));
            gone.chain(hunk.adds.iter().map(|line| format!("+ {line}")))
                .collect::<Vec<_>>()
        };
        self.edits.iter().flat_map(of).collect()
    }
}

impl Plan {
    /// The same plan without whole files: of those that are there it holds a checksum and the lines that change.
    #[must_use]
    pub fn with_edits(mut self) -> Self {
        for change in &mut self.changes {
            let (Target::File { .. }, Reading::Known(Value::Text(before)), Value::Text(after)) =
                (&change.target, &change.before, &change.after)
            else {
                continue;
            };
            let edit = Edit::between(before, after);
            // What is added ends its lines; a text that does not is none of ours.
            if edit.applied_to(before).as_ref() != Some(after) {
                continue;
            }
            change.before = Reading::Known(Value::Sum(Sum::of(before)));
            change.after = Value::Edit(edit);
        }
        self
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Both,
    Old,
    New,
}

/// By the longest common subsequence, so that as few lines as possible change.
fn steps(old: &[&str], new: &[&str]) -> Vec<Step> {
    let width = new.len() + 1;
    let pairs = (old.len() + 1).saturating_mul(width);
    if pairs > MOST_PAIRS {
        let gone = old.iter().map(|_| Step::Old);
        return gone.chain(new.iter().map(|_| Step::New)).collect();
    }
    // Of each pair of ends, how many lines are common from there on.
    let mut common = vec![0_u32; pairs];
    for at in (0..old.len()).rev() {
        for to in (0..new.len()).rev() {
            let [skip_old, skip_new] = [common[(at + 1) * width + to], common[at * width + to + 1]];
            common[at * width + to] = match old[at] == new[to] {
                true => common[(at + 1) * width + to + 1] + 1,
                false => skip_old.max(skip_new),
            };
        }
    }
    let rest = |at: usize, to: usize| common[at * width + to];
    let (mut at, mut to, mut steps) = (0, 0, Vec::new());
    while at < old.len() || to < new.len() {
        let is_both = at < old.len() && to < new.len();
        steps.push(if is_both && old[at] == new[to] {
            (at, to) = (at + 1, to + 1);
            Step::Both
        } else if at < old.len() && (!is_both || rest(at + 1, to) >= rest(at, to + 1)) {
            at += 1;
            Step::Old
        } else {
            to += 1;
            Step::New
        });
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::{Edit, Sum};

    #[test]
    fn an_edit_makes_the_one_text_the_other() {
        for (old, new) in [
            ("", "a\n"),
            ("a", "a\nb\n"),
            ("a\nb = 1\nc\n", "a\nb = 2\nc\nd\n"),
            ("a\nb\n", "b\na\n"),
            ("a\nb\n", "a\nb\na\n"),
            ("x\na\ny\nb\nz\n", "x\nc\ny\nd\nz\n"),
            ("\n\n\r\n", "\n\nq\n\r\n"),
        ] {
            let edit = Edit::between(old, new);
            assert_eq!(edit.applied_to(old).as_deref(), Some(new), "{edit:?}");
            assert!(edit.is_made_in(new), "{edit:?}");
        }
        let text = |from: u32| (from..from + 3000).map(|line| format!("{line}\n")).collect::<String>();
        assert_eq!(Edit::between(&text(0), &text(9000)).lines().len(), 6000);
    }

    #[test]
    fn it_holds_no_other_line_and_is_refused_by_another_text() {
        let (old, new) = (
            "password = 1\n[mysqld]\na = 1\nb\n",
            "password = 1\n[mysqld]\na = 2\nb\n",
        );
        let edit = Edit::between(old, new);
        assert_eq!(edit.lines(), ["- a = 1", "+ a = 2"]);
        assert_eq!(
            (edit.edits[0].line, edit.edits[0].section.as_deref()),
            (3, Some("[mysqld]"))
        );
        assert_eq!(edit.applied_to("password = 1\n[mysqld]\na = 3\nb\n"), None);
        assert_eq!(edit.applied_to(""), None);
        assert!(!edit.is_made_in(old));
        assert_ne!(Sum::of(old), Sum::of(new));
    }
}
