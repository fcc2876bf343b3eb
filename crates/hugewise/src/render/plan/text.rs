//! A plan to be read from top to bottom: each change with what was, what shall be, why, and what it can cost.

use anstyle::Style;
use model::plan::{Change, Plan, Target};

use super::{difference, risks};
use crate::render::look::Look;
use crate::render::sheet::printable;
use crate::show::wrapped;

/// Columns before the text of an entry.
const INDENT: usize = 9;

/// All changes, then what to know about the whole.
pub(super) fn text(plan: &Plan, look: Look) -> String {
    let changes = (1..)
        .zip(&plan.changes)
        .map(|(number, change)| block(number, change, look));
    let mut parts: Vec<String> = changes.collect();
    let notes: Vec<String> = plan.notes.iter().map(|note| entry("note", note, look)).collect();
    if !notes.is_empty() {
        parts.push(notes.concat());
    }
    parts.push(wrapped(&totals(plan), look.width));
    parts.join("\n")
}

fn totals(plan: &Plan) -> String {
    let (all, here) = (plan.changes.len(), plan.applicable().count());
    let goals = plan.goals.join(" and ");
    if all == 0 {
        return format!("nothing to change for {goals}: everything is set as requested already");
    }
    let changes = if all == 1 { "change" } else { "changes" };
    format!(
        "{all} {changes} for {goals}: {here} that `hugewise apply` makes (save the plan with --json), {} for you to make",
        all - here
    )
}

fn block(number: usize, change: &Change, look: Look) -> String {
    let head = format!(
        "{number:>2} {}: {} [{}]",
        change.layer,
        printable(&change.target.to_string()),
        change.id
    );
    let head = if look.color {
        format!("{0}{head}{0:#}\n", Style::new().bold())
    } else {
        format!("{head}\n")
    };
    let others = change
        .also_written_by
        .iter()
        .map(|other| entry("also set", other, look));
    let risks = risks(&change.risk);
    let parts = [
        head,
        values(change, look),
        entry("why", &change.why, look),
        risks.iter().map(|risk| entry("risk", risk, look)).collect(),
        others.collect(),
        entry("source", &change.source, look),
    ];
    parts.concat()
}

/// Of a file what changes in it; of instructions the text; of settings before and after.
fn values(change: &Change, look: Look) -> String {
    match &change.target {
        Target::File { .. } => match change.before.unread() {
            Some(why) => entry("before", &why.to_string(), look) + &verbatim("after", lines(&change.after.to_string())),
            None => verbatim("change", difference(change.before.known(), &change.after)),
        },
        Target::Instruction { .. } => verbatim("do", lines(&change.after.to_string())),
        Target::Setting { .. } | Target::Mount { .. } => {
            entry("before", &change.before.to_string(), look) + &entry("after", &change.after.to_string(), look)
        }
    }
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

/// A sentence, broken at blanks.
fn entry(word: &str, text: &str, look: Look) -> String {
    let width = look.width.saturating_sub(INDENT as u16 + 3);
    let broken = wrapped(&printable(text), width);
    verbatim_lines(word, broken.lines().map(str::to_owned))
}

/// Lines as they are, so that they can be copied.
fn verbatim(word: &str, lines: Vec<String>) -> String {
    verbatim_lines(word, lines.into_iter().map(|line| printable(&line)))
}

fn verbatim_lines(word: &str, lines: impl Iterator<Item = String>) -> String {
    let words = std::iter::once(word).chain(std::iter::repeat(""));
    lines
        .zip(words)
        .map(|(line, word)| format!("   {word:<INDENT$}{line}\n"))
        .collect()
}
