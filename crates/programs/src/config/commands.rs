//! What commands that run at boot write to files of the kernel: those of units, and scripts.

use model::{Cause, Unread};

use super::Setting;
use super::files::{Line, joined};
use super::given::script;

/// A command of a unit. A capture may lack the lines around one.
struct Command<'a> {
    line: Line<'a>,
    text: String,
    is_part: bool,
}

/// What the commands of a unit write when it starts. systemd starts programs and no shell (systemd.service(5)): `>` and `|` are words of theirs.
pub(super) fn of_unit(path: &str, text: &str, refused: &mut Vec<Unread>) -> Vec<Setting> {
    let mut written = Vec::new();
    for Command { line, text, is_part } in started(path, text) {
        let text = text.trim_start_matches(['@', '-', ':', '+', '!']);
        let program = text.split_whitespace().next();
        match program.and_then(|program| program.rsplit('/').next()) {
            Some(program @ ("echo" | "printf")) if !is_part => {
                let why = format!(
                    "systemd starts no shell, so {program} prints what stands behind it and nothing is written: start `/bin/sh -c` with the command in quotes"
                );
                let lost = needs_shell(text).then(|| Unread::new(Cause::Garbled, line.place(), why));
                refused.extend(lost);
            }
            _ => written.extend(script::written(path, text, line.number() - 1)),
        }
    }
    written
}

/// What it does when it stops, or reads its settings again, is no request.
fn started<'a>(path: &'a str, text: &'a str) -> Vec<Command<'a>> {
    let mut is_stop = false;
    let command = |(line, text): (Line<'a>, String)| {
        let pair = text.split_once('=').filter(|(key, _)| !key.trim_end().contains(' '));
        if let Some((key, _)) = pair {
            is_stop = key.starts_with("ExecStop") || key.starts_with("ExecReload");
        }
        let is_start = pair.map_or(!is_stop, |(key, _)| key.starts_with("ExecStart"));
        is_start.then(|| Command {
            line,
            text: pair.map_or(&*text, |(_, value)| value.trim()).to_owned(),
            is_part: pair.is_none(),
        })
    };
    let lines = joined(path, text, &['#', ';']);
    lines.into_iter().filter_map(command).collect()
}

/// Does it write to a file of the kernel by `>` or a pipe, which outside of quotes are a shell's alone?
fn needs_shell(command: &str) -> bool {
    const FILES: [&str; 3] = ["/sys/kernel/mm/", "/sys/devices/system/node/", "/proc/sys/"];
    let words = shlex::split(command).unwrap_or_default();
    let is_file = |word: &str| FILES.iter().any(|file| word.starts_with(file));
    let is_piped = words.iter().any(|word| word == "|");
    let into = |word: &str| matches!(word, ">" | ">>") || (is_piped && word == "tee");
    let is_glued = |word: &String| is_file(word.trim_start_matches('>')) && word.starts_with('>');
    words.windows(2).any(|pair| into(&pair[0]) && is_file(&pair[1])) || words.iter().any(is_glued)
}
