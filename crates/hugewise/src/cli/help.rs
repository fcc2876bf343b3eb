//! What help shows beside the options: examples of each command, and a page of the options that every command takes.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, Command as CommandLine, CommandFactory, FromArgMatches};

use super::args::{Cli, Global};

/// Stands for the options that every command takes.
const COMMON: &str = "Options of every command, such as --root, --json and --output: hugewise help options";

/// The command line with its help pages. What every command takes has a page of its own.
pub fn command() -> CommandLine {
    let command = Cli::command().mut_args(|option| option.hide_short_help(true).hide_long_help(true));
    with_examples(command, "").subcommand(options_page())
}

/// Parses the arguments of this process.
pub fn parse() -> Result<Cli, clap::Error> {
    let mut command = command();
    let matches = command.try_get_matches_from_mut(std::env::args_os());
    let mut matches = matches.map_err(|error| meant(&mut command, error))?;
    Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
}

/// Words for what a command does, and the command.
const MEANT: [(&str, &[&str]); 9] = [
    ("checkup", &["check"]),
    ("compare", &["run", "test"]),
    ("doctor", &["diagnose"]),
    ("explain", &["huge", "hugepages", "why"]),
    ("measure latency", &["bench", "benchmark"]),
    ("plan", &["fix"]),
    ("ps", &["list", "processes"]),
    ("ps --watch", &["top"]),
    ("undo", &["restore", "revert", "rollback"]),
];

/// For a word that is no command but means one, or is one below another command: an error that names what to write.
fn meant(command: &mut CommandLine, error: clap::Error) -> clap::Error {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else {
        return error;
    };
    let below = command.get_subcommands().find_map(|top| {
        let has = top.get_subcommands().any(|below| below.get_name() == word);
        has.then(|| format!("{} {word}", top.get_name()))
    });
    let known = MEANT.iter().find(|(_, said)| said.contains(&word.as_str()));
    match known.map(|(meant, _)| (*meant).to_owned()).or(below) {
        Some(meant) => {
            let text = format!("there is no command `{word}` (write: hugewise {meant}; hugewise --help lists all)");
            command.error(ErrorKind::InvalidSubcommand, text)
        }
        None => error,
    }
}

/// Adds its examples to a command and to those below it. `path` is empty for the program itself.
fn with_examples(command: CommandLine, path: &str) -> CommandLine {
    let command = command.mut_subcommands(|below| {
        let path = format!("{path} {}", below.get_name());
        with_examples(below, path.trim_start())
    });
    let lines = examples(path);
    let long = match lines.is_empty() {
        true => COMMON.to_owned(),
        false => format!("Examples:\n  {}\n\n{COMMON}", lines.join("\n  ")),
    };
    command.after_help(COMMON).after_long_help(long)
}

/// `hugewise help options`: the options of every command, which the other pages leave out.
fn options_page() -> CommandLine {
    Global::augment_args(CommandLine::new("options"))
        .about("Show the options that every command takes")
        .mut_args(|option| option.global(false))
        .hide(true)
        .arg_required_else_help(true)
        .override_usage("hugewise [OPTIONS] <COMMAND>\n       hugewise <COMMAND> [OPTIONS]")
}

/// Examples by command. A line that ends with `\` continues.
const EXAMPLES: &str = include_str!("examples.txt");

/// Those of a command: the lines up to the next heading. `path` is empty for the program itself.
fn examples(path: &str) -> Vec<&'static str> {
    let heading = format!("# {path}");
    let lines = EXAMPLES.lines().skip_while(|line| *line != heading.trim_end()).skip(1);
    lines.take_while(|line| !line.is_empty()).collect()
}

#[cfg(test)]
#[path = "help_tests.rs"]
mod tests;
