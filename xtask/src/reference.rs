//! The reference pages of `docs/` that follow from the program: its commands, and the rules of `doctor`.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use clap::Command;
use hugewise::show::Show;
use studies::claims;

/// A generated page: its name in `docs/reference`, and its text.
pub(crate) type Page = (&'static str, String);

/// All generated pages.
pub(crate) fn pages() -> [Page; 4] {
    [
        ("commands.md", commands()),
        ("rules.md", rules()),
        ("messages.md", messages()),
        ("publications.md", publications()),
    ]
}

const GENERATED: &str = "<!-- Made by `cargo run -p xtask -- reference`: change the program, not this page. -->";

/// What each command's `--help` prints.
fn commands() -> String {
    let mut command = hugewise::cli::help::command().term_width(100);
    command.build();
    let mut page = format!(
        "# Commands\n\n{GENERATED}\n\nThe help of each command. `-h` is its short form. [Exit codes](exit-codes.md) and \
         [output](output.md) have pages of their own.\n\n## hugewise\n\n"
    );
    block(&mut page, &mut command.clone());
    if let Some(options) = command.find_subcommand("options") {
        page.push_str("## Options of every command\n\n");
        block(&mut page, &mut options.clone());
    }
    each(&mut page, &command, "hugewise");
    page.trim_end().to_owned() + "\n"
}

fn each(page: &mut String, command: &Command, path: &str) {
    for below in command.get_subcommands() {
        if below.get_name() == "help" || below.is_hide_set() {
            continue;
        }
        let path = format!("{path} {}", below.get_name());
        let _ = write!(page, "## {path}\n\n");
        block(page, &mut below.clone());
        each(page, below, &path);
    }
}

fn block(page: &mut String, command: &mut Command) {
    let help = command.render_long_help().to_string();
    page.push_str("```text\n");
    for line in help.trim_end().lines() {
        page.push_str(line.trim_end());
        page.push('\n');
    }
    page.push_str("```\n\n");
}

/// What the publications claim, as `suite --claims` prints it.
fn publications() -> String {
    let claims = &*claims::ALL;
    let mut page = format!(
        "# Where hugewise comes from: five publications\n\n{GENERATED}\n\nhugewise grew out of five publications. Each claim of theirs that can be \
         measured is a row, with its own figure and its counterpart\nhere. `hugewise suite --claims` prints the same; \
         [the suite](../how-to/suite.md) and [the simulator](../how-to/simulate.md)\nshow the values.\n"
    );
    for line in claims.headlines() {
        let _ = write!(page, "\n- {line}");
    }
    page.push('\n');
    for sheet in claims.sheets() {
        let _ = write!(page, "\n{}", sheet.markdown());
    }
    page
}

/// The first letter of an id is its topic.
const TOPICS: [(char, &str); 10] = [
    ('A', "Huge page pools"),
    ('B', "Permissions and limits"),
    ('C', "Control groups and Kubernetes"),
    ('D', "THP"),
    ('E', "Java"),
    ('F', "Databases"),
    ('G', "Virtual machines"),
    ('H', "Tools"),
    ('I', "Settings"),
    ('L', "Logs"),
];

/// What each rule looks for, and on what evidence.
fn rules() -> String {
    let mut page = format!(
        "# Rules\n\n{GENERATED}\n\nThe rules of `hugewise doctor`, each with its severity, the versions that it holds for, what goes \
         wrong, and what it reads.\n`hugewise doctor --explain ID` prints the same.\n"
    );
    for (letter, topic) in TOPICS {
        let _ = write!(page, "\n## {letter}: {topic}\n");
        for rule in doctor::rules().filter(|rule| rule.id.starts_with(letter)) {
            let (id, name, severity) = (rule.id, rule.name, rule.severity);
            let _ = write!(
                page,
                "\n### {id} {name}\n\n*{severity}; {}*\n\n{}\n\n[More]({})\n",
                rule.holds,
                escaped(rule.text),
                rule.link
            );
        }
    }
    page
}

/// What lines of logs mean, by program.
fn messages() -> String {
    let mut page = format!(
        "# Messages\n\n{GENERATED}\n\nLines of logs that `hugewise doctor --file LOG` knows, with an example of each, what it means and what to do.\n"
    );
    let all: Vec<_> = programs::messages::examples().collect();
    let names: BTreeSet<&str> = all.iter().map(|said| said.message.program.as_str()).collect();
    for name in names {
        let _ = write!(page, "\n## {name}\n");
        for said in all.iter().filter(|said| said.message.program == name) {
            let fix = said.fix.iter().map(|step| format!("- {}\n", escaped(step)));
            let (line, means, link) = (said.text.replace('`', "'"), escaped(&said.means), &said.message.link);
            let _ = write!(
                page,
                "\n```text\n{line}\n```\n\n{means} ([source]({link})).\n\n{}",
                fix.collect::<String>()
            );
        }
    }
    page
}

/// Markdown that shows the text as it is, but for code between backquotes.
fn escaped(text: &str) -> String {
    let parts = text.split('`').enumerate().map(|(number, part)| match number % 2 {
        0 => part.replace('<', "\\<").replace('*', "\\*"),
        _ => part.to_owned(),
    });
    parts.collect::<Vec<_>>().join("`")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{TOPICS, pages};

    #[test]
    fn generated_pages_are_up_to_date() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference");
        for (name, text) in pages() {
            let found = std::fs::read_to_string(directory.join(name)).unwrap_or_default();
            assert!(
                found == text,
                "docs/reference/{name} is stale: run `cargo run -p xtask -- reference`"
            );
        }
    }

    #[test]
    fn every_rule_has_a_topic() {
        for rule in doctor::rules() {
            assert!(
                TOPICS.iter().any(|(letter, _)| rule.id.starts_with(*letter)),
                "{}",
                rule.id
            );
        }
    }
}
