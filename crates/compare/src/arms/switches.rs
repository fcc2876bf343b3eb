//! Programs whose own switches decide about huge pages: found in a command, behind `su` and shells too, and set for an arm. Pure.

use std::ffi::OsString;

use model::Bytes;

use crate::memory::{Database, Memory};

/// A program with switches of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// A Java virtual machine; it is set by a variable.
    Jvm,
    Postgres,
    /// What starts PostgreSQL.
    PgCtl,
    /// MySQL or MariaDB, or what starts them.
    Mysql,
}

/// The setting of such a program for huge pages in an arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Own {
    /// To take none.
    Off,
    /// To take pages of a pool, or not to start.
    Pool(Bytes),
}

const NAMES: [(&str, Known); 10] = [
    ("java", Known::Jvm),
    ("postgres", Known::Postgres),
    ("postmaster", Known::Postgres),
    ("edb-postgres", Known::Postgres),
    ("pg_ctl", Known::PgCtl),
    ("mysqld", Known::Mysql),
    ("mysqld_safe", Known::Mysql),
    ("mariadbd", Known::Mysql),
    ("mariadbd-safe", Known::Mysql),
    ("mysqld-debug", Known::Mysql),
];
/// Programs that run the command in their arguments.
const LAUNCHERS: &str = "busybox catatonit chrt chroot doas dumb-init env exec gosu ionice nice nohup numactl prlimit runuser setpriv setsid \
                         stdbuf su-exec sudo taskset time timeout tini";
/// Options of those that take no value.
const FLAGS: &str = "-E -H -n -w --clear-groups --init-groups --keep-groups --nnp --no-new-privs --reset-env";
/// Names of programs that users have, too.
const USERS: [&str; 2] = ["java", "postgres"];
/// Programs that run a line of the shell behind an option that ends with a `c`.
const SHELLS: [&str; 7] = ["sh", "bash", "dash", "ksh", "zsh", "su", "runuser"];
/// The size of pages that databases take without a setting.
const USUAL: Bytes = Bytes::mib(2);

/// Where a known program is in a command.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    /// It is this word, and its arguments follow.
    Word(usize),
    /// It is in this word, which is a line of the shell.
    Line(usize),
}

impl Known {
    fn of(word: &str) -> Option<Self> {
        let name = file_name(word);
        let known = NAMES.into_iter().find(|(known, _)| *known == name);
        known.map(|(_, known)| known)
    }

    pub(crate) fn memory(self) -> Memory {
        match self {
            Self::Jvm => Memory::Jvm,
            Self::Postgres | Self::PgCtl => Memory::Database(Database::Postgres),
            Self::Mysql => Memory::Database(Database::Mysql),
        }
    }

    /// The arguments that set it, free of blanks and quotes so that they may stand in any line. The last one of a kind counts.
    fn arguments(self, own: Own) -> Vec<String> {
        match (self, own) {
            (Self::Jvm, _) => Vec::new(),
            (Self::Postgres, Own::Off) => vec!["--huge_pages=off".to_owned()],
            (Self::Postgres, Own::Pool(USUAL)) => vec!["--huge_pages=on".to_owned()],
            (Self::Postgres, Own::Pool(size)) => vec![
                "--huge_pages=on".to_owned(),
                format!("--huge_page_size={}kB", size.0 >> 10),
            ],
            (Self::PgCtl, own) => {
                let passed = |argument| ["-o".to_owned(), argument];
                let arguments = Self::Postgres.arguments(own).into_iter();
                arguments.flat_map(passed).collect()
            }
            (Self::Mysql, Own::Off) => vec!["--large-pages=0".to_owned()],
            (Self::Mysql, Own::Pool(_)) => vec!["--large-pages=1".to_owned()],
        }
    }
}

/// Is it one of those that run the command in their arguments?
pub(crate) fn is_launcher(word: &str) -> bool {
    is_in(LAUNCHERS, file_name(word))
}

fn is_in(words: &str, wanted: &str) -> bool {
    words.split(' ').any(|word| word == wanted)
}

fn file_name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// The known program that a command starts, with the word that names it.
pub(crate) fn known(words: &[OsString]) -> Option<(Known, OsString)> {
    let words = texts(words);
    match place(&words)? {
        Place::Word(at) => Some((Known::of(words[at])?, words[at].into())),
        Place::Line(at) => known_in_line(words[at]),
    }
}

/// Likewise of a line of the shell; of several commands the first that is known.
pub(crate) fn known_in_line(line: &str) -> Option<(Known, OsString)> {
    let found = |part: &str| known(&shlex::split(part)?.into_iter().map(OsString::from).collect::<Vec<_>>());
    commands(line).into_iter().find_map(|(from, to)| found(&line[from..to]))
}

/// A command with the arguments that set its program; any other as it is.
pub(crate) fn set(words: &[OsString], own: Own) -> Vec<OsString> {
    let mut all = words.to_vec();
    let texts = texts(words);
    match place(&texts) {
        Some(Place::Word(at)) => {
            let arguments = Known::of(texts[at]).map(|known| known.arguments(own));
            all.extend(arguments.into_iter().flatten().map(OsString::from));
        }
        Some(Place::Line(at)) => all[at] = set_in_line(texts[at], own).into(),
        None => {}
    }
    all
}

/// A line of the shell likewise.
pub(crate) fn set_in_line(line: &str, own: Own) -> String {
    let mut all = String::new();
    let mut done = 0;
    for (from, to) in commands(line) {
        all += &line[done..from];
        all += &set_in_command(&line[from..to], own);
        done = to;
    }
    all + &line[done..]
}

fn set_in_command(command: &str, own: Own) -> String {
    let words = shlex::split(command).unwrap_or_default();
    let texts: Vec<&str> = words.iter().map(String::as_str).collect();
    match place(&texts) {
        Some(Place::Word(at)) => {
            let arguments = Known::of(texts[at]).map(|known| known.arguments(own));
            let end = command.trim_end().len();
            let arguments: String = arguments.into_iter().flatten().map(|word| format!(" {word}")).collect();
            format!("{}{arguments}{}", &command[..end], &command[end..])
        }
        // The quoted line stands in the command as it is, but for its quotes.
        Some(Place::Line(at)) => command.replacen(texts[at], &set_in_line(texts[at], own), 1),
        None => command.to_owned(),
    }
}

fn texts(words: &[OsString]) -> Vec<&str> {
    words.iter().map(|word| word.to_str().unwrap_or_default()).collect()
}

/// Where a known program that starts stands in a command.
fn place(words: &[&str]) -> Option<Place> {
    for (at, word) in words.iter().enumerate() {
        let is_option = word.starts_with('-') || word.contains('=');
        // A name without a folder behind an option is its value, such as a user, unless it is no user's name or the option has no value.
        let before = at.checked_sub(1).map(|before| words[before]);
        let takes_value = |option: &str| option.starts_with('-') && option != "--" && !is_in(FLAGS, option);
        let may_be_value = !word.contains('/') && (Known::of(word).is_none() || USERS.contains(word));
        let is_value = may_be_value && before.is_some_and(takes_value);
        if is_option || is_value {
            continue;
        }
        let rest = &words[at + 1..];
        match Known::of(word) {
            Some(Known::PgCtl) if !rest.iter().any(|word| ["start", "restart"].contains(word)) => return None,
            Some(_) => return Some(Place::Word(at)),
            None => {}
        }
        if SHELLS.contains(&file_name(word))
            && let Some(line) = line_of_shell(rest)
        {
            return known_in_line(rest[line]).map(|_| Place::Line(at + 1 + line));
        }
        if !words[..=at].iter().any(|word| is_launcher(word)) {
            return None;
        }
    }
    None
}

/// Which argument of a shell is the line that it runs.
fn line_of_shell(arguments: &[&str]) -> Option<usize> {
    let is_command =
        |word: &&str| *word == "--command" || (word.starts_with('-') && !word.starts_with("--") && word.ends_with('c'));
    let option = arguments.iter().position(is_command)?;
    (option + 1 < arguments.len()).then_some(option + 1)
}

/// Where the commands of a line begin and end: between `;`, `&`, `|` and line ends outside of quotes.
fn commands(line: &str) -> Vec<(usize, usize)> {
    let (mut commands, mut from, mut quote, mut before) = (Vec::new(), 0, None, ' ');
    for (at, letter) in line.char_indices() {
        match quote {
            Some(open) if letter == open => quote = None,
            None if letter == '\'' || letter == '"' => quote = Some(letter),
            // `2>&1` and `&>` redirect.
            None if letter == '&' && (before == '>' || line[at + 1..].starts_with('>')) => {}
            None if matches!(letter, ';' | '&' | '|' | '\n') => {
                commands.push((from, at));
                from = at + 1;
            }
            _ => {}
        }
        before = letter;
    }
    commands.push((from, line.len()));
    commands
}

#[cfg(test)]
#[path = "switches_tests.rs"]
mod tests;
