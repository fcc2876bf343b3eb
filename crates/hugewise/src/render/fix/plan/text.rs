//! A plan to be read from top to bottom: each change with what was, what shall be, why, and what it can cost.

use anstyle::Style;
use model::plan::{Change, Plan, Target};

use super::difference;
use super::risks::risks;
use crate::render::export::word;
use crate::show::wrapped;
use draw::layout::{behind, folded};
use draw::{Look, counted, printable};

/// Columns before the text of an entry.
const INDENT: usize = 9;

/// All changes, then what to know about the whole.
pub(super) fn text(plan: &Plan, look: Look) -> String {
    let changes = (1..).zip(&plan.changes);
    let mut parts: Vec<String> = changes.map(|(number, change)| block(number, change, look)).collect();
    let notes: Vec<String> = plan.notes.iter().map(|note| entry("note", note, look)).collect();
    if !notes.is_empty() {
        parts.push(notes.concat());
    }
    parts.push(wrapped(&totals(plan), look.width));
    parts.extend(next(plan));
    parts.join("\n")
}

/// The commands that follow, with the goals as they were typed.
fn next(plan: &Plan) -> Option<String> {
    let goals: String = plan.goals.iter().map(|goal| format!(" --for {}", word(goal))).collect();
    let is_any = plan.applicable().count() > 0;
    is_any.then(|| format!("Next\n  hugewise plan{goals} --output plan.json\n  sudo hugewise apply plan.json\n"))
}

fn totals(plan: &Plan) -> String {
    let (all, here) = (plan.changes.len(), plan.applicable().count());
    let goals = plan.goals.join(" and ");
    if all == 0 {
        return format!("nothing to change for {goals}: everything is set as requested already");
    }
    let changes = counted(all, "change");
    let yours = match all - here {
        0 => String::new(),
        yours => format!(", {yours} for you to make"),
    };
    format!("{changes} for {goals}: {here} that `hugewise apply` makes{yours}")
}

fn block(number: usize, change: &Change, look: Look) -> String {
    let target = printable(&change.target.to_string());
    let head = format!("{}: {target} [{}]", change.layer, change.id);
    let head = folded(&head, usize::from(look.width).saturating_sub(3));
    let head = behind(&format!("{number:>2}"), 3, head);
    let head = look.painted(head.trim_end(), Style::new().bold()) + "\n";
    let others = change.also_written_by.iter();
    let others = others.map(|other| entry("also set", other, look));
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
    verbatim(word, lines(&wrapped(&printable(text), width)))
}

/// Lines as they are, so that they can be copied.
fn verbatim(word: &str, lines: Vec<String>) -> String {
    let lines = lines.into_iter().map(|line| printable(&line));
    behind(&format!("   {word}"), INDENT + 3, lines)
}
