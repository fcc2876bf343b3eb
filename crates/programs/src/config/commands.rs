//! What commands of units that start at boot write to files of the kernel.

use host::Source;
use model::{Cause, Unread};

use super::Setting;
use super::files::{Line, file_name, grouped, said, whole};
use super::given::script::{self, Written};
use super::given::service::variables;
use super::policy;
use super::rights::Rights;

/// What the units of huge pages write, each by itself.
pub(super) fn of_units(source: &Source, refused: &mut Vec<Unread>) -> Result<Vec<Written>, Unread> {
    let units = policy::unit_files(source)?;
    Ok(units.iter().map(|files| of_unit(files, refused)).collect())
}

/// What the commands of a unit write when it starts, as far as they have the right to. Its files are paths and texts, drop-ins behind its own.
pub(super) fn of_unit(files: &[(String, String)], refused: &mut Vec<Unread>) -> Written {
    let mut all = Written::default();
    let (environment, rights) = (environment(files), Rights::of(files));
    for command in started(files) {
        match command.written(&environment, &rights) {
            Ok(written) => all.add(written),
            Err(why) => refused.push(why),
        }
    }
    all
}

/// Variables of a unit, where no file may give them other values.
fn environment(files: &[(String, String)]) -> Vec<Setting> {
    let mut all = Vec::new();
    for line in files.iter().flat_map(|(path, text)| said(path, text, &['#', ';'])) {
        match line.pair() {
            Some(("EnvironmentFile", _)) => return Vec::new(),
            Some(("Environment", "")) => all.clear(),
            Some((name @ "Environment", value)) => all.extend(variables(&line.setting(name, value))),
            _ => {}
        }
    }
    all
}

/// A command of a unit. A capture may lack the lines around one.
struct Command<'a> {
    path: &'a str,
    lines: Vec<Line<'a>>,
    /// `ExecStartPre`; empty where its line is not there.
    key: String,
    text: String,
    is_part: bool,
}

impl Command<'_> {
    /// systemd starts programs and no shell (systemd.service(5)): `>` and `|` are words of theirs.
    fn written(&self, environment: &[Setting], rights: &Rights) -> Result<Written, Unread> {
        let own = self.text.trim_start_matches(['@', '-', ':', '+', '!', '|']);
        let prefixes = &self.text[..self.text.len() - own.len()];
        let words = shlex::split(own).unwrap_or_default();
        let has_shell = self.is_part || prefixes.contains('|');
        let program = script::no_shell(&words).filter(|_| !has_shell);
        let prints = program.filter(|program| matches!(*program, "echo" | "printf"));
        if let Some(program) = program.filter(|_| needs_shell(&words)) {
            let does = prints.map_or(
                "takes what stands behind it as its own words",
                |_| "prints what stands behind it",
            );
            let why = format!(
                "systemd starts no shell, so {program} {does} and nothing is written: start `/bin/sh -c` with the command in quotes"
            );
            return Err(Unread::new(Cause::Garbled, self.lines[0].place(), why));
        }
        if prints.is_some() {
            return Ok(Written::default());
        }
        let text = if self.is_part { opened(&self.text) } else { own };
        // `%%` and `$$` are one sign (systemd.unit(5), systemd.service(5)); behind `:` variables are left to the shell.
        let text = text.replace("%%", "%");
        let text = match prefixes.contains(':') {
            true => text,
            false => text.replace("$$", "$"),
        };
        let mut written = script::written(self.path, environment, &text, self.lines[0].number() - 1);
        written.settings = written.settings.into_iter().map(|set| self.placed(set)).collect();
        let why = rights
            .why_not(&self.key, prefixes)
            .filter(|_| !script::changes_user(own));
        match (why, written.settings.iter().find(|set| is_of_root(&set.name))) {
            (None, _) => Ok(written),
            (Some(_), None) => Ok(Written::default()),
            (Some(why), Some(first)) => Err(self.refused(first, &why, prefixes)),
        }
    }

    /// systemd gives a start up when a command fails, unless `-` is in front of it.
    fn refused(&self, first: &Setting, why: &str, prefixes: &str) -> Unread {
        let effect = match !prefixes.contains('-') && ends_in_write(&self.text) {
            true => "so the service does not start",
            false => "so the write has no effect",
        };
        let why = format!(
            "{}: {why}, {effect}: write `+` in front of the command, or better, set it in a unit of root's or in tmpfiles.d",
            first.name
        );
        Unread::new(Cause::Garbled, &first.place, why)
    }

    /// With the line that it is written in, of several that the command goes on over.
    fn placed(&self, setting: Setting) -> Setting {
        let last = setting.name.rsplit(['/', '.']).next().unwrap_or_default();
        let names = |part: &str| self.lines.iter().rfind(|line| line.text.contains(part));
        match names(&setting.name).or_else(|| names(last)) {
            Some(line) => Setting {
                place: line.place(),
                ..setting
            },
            None => setting,
        }
    }
}

/// Is it a file that is root's alone, or a setting of sysctl? Control groups and files of processes may be another user's.
fn is_of_root(name: &str) -> bool {
    const BELOW: [&str; 3] = ["/proc/sys/", "/sys/kernel/", "/sys/devices/system/"];
    !name.starts_with('/') || BELOW.iter().any(|below| name.starts_with(below))
}

/// Is a write to a file of the kernel what a command ends in, so that it fails with it?
fn ends_in_write(command: &str) -> bool {
    let command = command.replace("&&", " ").replace(">&", ">").replace('>', " > ");
    let whole = command.trim_end_matches([' ', ';', '"', '\'']);
    let last = whole.rsplit([';', '|']).next().unwrap_or_default();
    let words: Vec<&str> = last
        .split_whitespace()
        .map(|word| word.trim_matches(['"', '\'']))
        .collect();
    let is_file = |word: &&str| word.starts_with('/') && is_of_root(word);
    let behind = |name: &'static str| words.iter().skip_while(move |word| file_name(word) != name).skip(1);
    let sets = |word: &&str| matches!(*word, "-w" | "--write") || (word.contains('=') && !word.starts_with('-'));
    let is_write = words.windows(2).any(|pair| pair[0] == ">" && is_file(&pair[1]))
        || behind("tee").any(is_file)
        || behind("sysctl").any(sets);
    is_write && !whole.contains("||") && !whole.contains('&')
}

/// A command that lacks its beginning, without the option and the quote of its shell.
fn opened(text: &str) -> &str {
    let text = text.strip_prefix("-c").unwrap_or(text).trim_start();
    text.strip_prefix(['"', '\'']).unwrap_or(text)
}

/// What starts a unit: an empty setting takes those of its name back, also those of other files.
fn started(files: &[(String, String)]) -> Vec<Command<'_>> {
    let mut all: Vec<Command<'_>> = Vec::new();
    for command in files.iter().flat_map(|(path, text)| started_by(path, text)) {
        match command.text.is_empty() && !command.is_part {
            true => all.retain(|own| own.key != command.key),
            false => all.push(command),
        }
    }
    all
}

/// What it does when it stops, or reads its settings again, is no request.
fn started_by<'a>(path: &'a str, text: &'a str) -> Vec<Command<'a>> {
    let mut is_stop = false;
    let command = |lines: Vec<Line<'a>>| {
        let text = whole(&lines);
        let pair = text.split_once('=').filter(|(key, _)| is_key(key.trim_end()));
        if let Some((key, _)) = pair {
            is_stop = key.starts_with("ExecStop") || key.starts_with("ExecReload");
        }
        let is_start = pair.map_or(!is_stop, |(key, _)| key.starts_with("ExecStart"));
        is_start.then(|| Command {
            path,
            key: pair.map_or("", |(key, _)| key.trim_end()).to_owned(),
            text: pair.map_or(&*text, |(_, value)| value.trim()).to_owned(),
            is_part: pair.is_none(),
            lines,
        })
    };
    let groups = grouped(path, text, &['#', ';']);
    groups.into_iter().filter_map(command).collect()
}

/// `ExecStart`, `UMask`; variables of a shell are of letters of one case.
fn is_key(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-';
    text.starts_with(|c: char| c.is_ascii_uppercase())
        && text.contains(|c: char| c.is_ascii_lowercase())
        && text.chars().all(is_part)
}

/// Do these words write to a file of the kernel by `>` or a pipe, which outside of quotes are a shell's alone?
fn needs_shell(words: &[String]) -> bool {
    const FILES: [&str; 3] = ["/sys/kernel/mm/", "/sys/devices/system/node/", "/proc/sys/"];
    let is_file = |word: &str| FILES.iter().any(|file| word.starts_with(file));
    let is_piped = words.iter().any(|word| word == "|");
    let into = |word: &str| matches!(word, ">" | ">>") || (is_piped && word == "tee");
    let is_glued = |word: &String| is_file(word.trim_start_matches('>')) && word.starts_with('>');
    words.windows(2).any(|pair| into(&pair[0]) && is_file(&pair[1])) || words.iter().any(is_glued)
}

#[cfg(test)]
mod tests;
