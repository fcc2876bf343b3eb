//! Lines of logs in which programs speak of huge pages, locked memory and nodes: what each means, and what helps.

#[cfg(test)]
mod tests;

use std::ptr;
use std::sync::LazyLock;

use model::Bytes;
use regex::{Captures, Regex, RegexSet};
use serde::Deserialize;

/// What writes a line of which only the words are known.
const UNKNOWN: &str = "a program";
/// So many different lines of one message are reported, the first ones; others are counted with the last.
const MOST: usize = 3;
/// A line so near to one that is known belongs to it.
const BESIDE: usize = 5;
/// Characters of a line that are shown.
const LONGEST_LINE: usize = 400;

/// What comes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// What was asked for does not start.
    Fails,
    /// It goes on with base pages, or without a lock.
    FallsBack,
    /// It goes on, and warns of a cost.
    Costs,
    /// It has what it asked for, or says what is harmless.
    Tells,
}

/// A line that a program writes, by its own source or documentation.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Message {
    /// What writes it.
    pub program: String,
    /// What it is known by, anywhere in a line. Groups that are amounts have names that end as [`AMOUNTS`].
    pattern: String,
    pub outcome: Outcome,
    /// Does another line of the program say it better, where there is one?
    #[serde(default)]
    is_general: bool,
    /// One sentence, with groups in braces.
    means: String,
    /// What to do, by lines.
    #[serde(default)]
    fix: String,
    /// Where the program says so.
    pub link: String,
    /// A line that has it.
    example: String,
}

/// What a line of a log says.
#[derive(Clone, Debug)]
pub struct Said {
    /// File and line.
    pub place: String,
    /// The line, from 1.
    number: usize,
    /// The line.
    pub text: String,
    pub message: &'static Message,
    /// What it means, with the values of the line.
    pub means: String,
    /// What to do.
    pub fix: Vec<String>,
    /// In how many lines the same is said.
    pub times: usize,
}

impl PartialEq for Said {
    fn eq(&self, other: &Self) -> bool {
        (&self.place, &self.text) == (&other.place, &other.text)
    }
}

impl Said {
    /// By what it differs from another of the same message: of an unknown program by its line.
    fn key(&self) -> &str {
        match &*self.message.program {
            UNKNOWN => &self.text,
            _ => &self.means,
        }
    }

    /// What it means, with the program in it.
    pub fn sentence(&self) -> String {
        let (program, means) = (&self.message.program, &self.means);
        let name = program.split([' ', ',']).next().unwrap_or_default();
        match program == UNKNOWN || means.contains(name) {
            true => means.clone(),
            false => format!("{program}: {means}"),
        }
    }
}

/// How names of groups end that are amounts, with their unit in bytes.
const AMOUNTS: [(&str, u64); 4] = [("bytes", 1), ("kib", 1 << 10), ("mib", 1 << 20), ("gib", 1 << 30)];

/// All messages, and what finds those in a line.
struct Table {
    messages: Vec<Message>,
    all: RegexSet,
    each: Vec<Regex>,
}

/// # Panics
/// If the table is not one of messages, or a pattern is none: every test of it would show it.
static TABLE: LazyLock<Table> = LazyLock::new(|| {
    #[derive(Deserialize)]
    struct File {
        message: Vec<Message>,
    }
    let File { message: messages } = toml::from_str(include_str!("messages.toml")).expect("a table of messages");
    let patterns = messages.iter().map(|message| message.pattern.as_str());
    let each = patterns
        .clone()
        .map(|pattern| Regex::new(pattern).expect(pattern))
        .collect();
    let all = RegexSet::new(patterns).expect("each alone is one");
    Table { messages, all, each }
});

/// What the lines of a log say, each once.
pub(crate) fn said(path: &str, text: &str) -> Vec<Said> {
    let mut all: Vec<Said> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        if let Some(said) = of_line(path, number, line.trim()) {
            add(&mut all, said);
        }
    }
    let needless: Vec<bool> = all.iter().map(|own| is_needless(own, &all)).collect();
    let all = all.into_iter().zip(needless);
    all.filter_map(|(said, is_needless)| (!is_needless).then_some(said))
        .collect()
}

/// Of many different lines of one message the last that is kept counts the others.
fn add(all: &mut Vec<Said>, said: Said) {
    let is_same = |at: &usize| ptr::eq(all[*at].message, said.message);
    let same: Vec<usize> = (0..all.len()).filter(is_same).collect();
    let twin = same.iter().find(|at| all[**at].key() == said.key());
    match twin.or(same.get(MOST - 1)) {
        Some(at) => all[*at].times += 1,
        None => all.push(said),
    }
}

/// Does another line of the log say it better?
fn is_needless(own: &Said, all: &[Said]) -> bool {
    let program = &own.message.program;
    let mut others = all.iter().filter(|other| other.message.outcome != Outcome::Tells);
    match &**program {
        UNKNOWN => others.any(|other| other.message.program != UNKNOWN && own.number.abs_diff(other.number) <= BESIDE),
        _ => {
            own.message.is_general && others.any(|other| other.message.program == *program && !other.message.is_general)
        }
    }
}

/// A line of each message, and what it says.
pub fn examples() -> impl Iterator<Item = Said> {
    TABLE
        .messages
        .iter()
        .filter_map(|message| of_line("", 1, &message.example))
}

/// What a line means, if it is known.
pub(crate) fn meaning(line: &str) -> Option<String> {
    let known = of_line("", 1, line).filter(|said| said.message.program != UNKNOWN);
    known.map(|said| said.sentence())
}

/// Is there a line of a program that is known, and no comment of a configuration file?
pub(crate) fn is_known(text: &str) -> bool {
    let mut lines = text.lines().filter(|line| !line.trim_start().starts_with(['#', ';']));
    lines.any(|line| first(line).is_some_and(|at| TABLE.messages[at].program != UNKNOWN))
}

/// Is there a line of any program?
pub(crate) fn is_log(text: &str) -> bool {
    text.lines().any(|line| first(line).is_some())
}

/// The first message of the table counts: special ones stand before general ones. Who has less than was wanted does not have it.
fn first(line: &str) -> Option<usize> {
    let number = |groups: &Captures<'_>, name: &str| groups.name(name)?.as_str().parse::<u64>().ok();
    let is_short = |at: usize| {
        let groups = TABLE.each[at].captures(line);
        let both = groups.and_then(|groups| Some((number(&groups, "got")?, number(&groups, "pages")?)));
        both.is_some_and(|(got, wanted)| got < wanted)
    };
    let mut all = TABLE.all.matches(line).into_iter();
    all.find(|&at| TABLE.messages[at].outcome != Outcome::Tells || !is_short(at))
}

fn of_line(path: &str, number: usize, line: &str) -> Option<Said> {
    let at = first(line)?;
    let (message, groups) = (&TABLE.messages[at], TABLE.each[at].captures(line)?);
    let names: Vec<&str> = TABLE.each[at].capture_names().flatten().collect();
    // A command must not have what a log brings.
    let is_plain = |name: &&str| {
        let value = groups.name(name).map_or("", |group| group.as_str());
        value
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_./:+@%=,- ".contains(c))
    };
    let plain: Vec<&str> = names.iter().copied().filter(is_plain).collect();
    let fix = filled(&message.fix, &groups, &plain);
    Some(Said {
        place: format!("{path}:{number}"),
        number,
        text: line.chars().take(LONGEST_LINE).collect(),
        message,
        means: filled(&message.means, &groups, &names),
        fix: fix.lines().map(str::to_owned).collect(),
        times: 1,
    })
}

/// A text with the groups of a line in place of their names in braces, as the table says.
fn filled(text: &str, groups: &Captures<'_>, names: &[&str]) -> String {
    let amount = |name: &str| {
        let (_, unit) = AMOUNTS.into_iter().find(|(own, _)| name.ends_with(own))?;
        let number: u64 = groups.name(name)?.as_str().replace(',', "").parse().ok()?;
        Some(Bytes(number.saturating_mul(unit)))
    };
    let mut filled = text.to_owned();
    for name in names {
        let plain = groups.name(name).map_or("?", |group| group.as_str());
        let value = amount(name).map_or_else(|| plain.to_owned(), |bytes| bytes.to_string());
        filled = filled.replace(&format!("{{{name}}}"), &value);
        filled = filled.replace(&format!("{{={name}}}"), plain);
    }
    let wanted = AMOUNTS.into_iter().find_map(|(name, _)| amount(name));
    match wanted {
        Some(bytes) => filled.replace("{pages}", &bytes.0.div_ceil(Bytes::mib(2).0).to_string()),
        None => filled,
    }
}
