//! What commands of units that start at boot write to files of the kernel.

use host::Source;
use model::{Cause, Unread};

use super::Setting;
use super::files::{Line, grouped, said, whole};
use super::given::script::{self, Written};
use super::policy;

/// What the units of huge pages write, each by itself.
pub(super) fn of_units(source: &Source, refused: &mut Vec<Unread>) -> Result<Vec<Written>, Unread> {
    let units = policy::unit_files(source)?.into_iter();
    Ok(units.map(|(path, text)| of_unit(&path, &text, refused)).collect())
}

/// What the commands of a unit write when it starts.
pub(super) fn of_unit(path: &str, text: &str, refused: &mut Vec<Unread>) -> Written {
    let mut all = Written::default();
    let environment = environment(text);
    for command in started(path, text) {
        match command.written(path, &environment) {
            Ok(written) => all.add(written),
            Err(why) => refused.push(why),
        }
    }
    all
}

/// Variables of a unit as a shell assigns them, where no file may give them other values.
fn environment(text: &str) -> String {
    let mut all = String::new();
    for (key, value) in said("", text, &['#', ';']).filter_map(|line| line.pair()) {
        match key {
            "EnvironmentFile" => return String::new(),
            "Environment" if value.is_empty() => all.clear(),
            "Environment" => {
                let words = shlex::split(value).unwrap_or_default();
                all.extend(
                    words
                        .iter()
                        .filter(|word| is_plain(word))
                        .map(|word| format!("{word}; ")),
                );
            }
            _ => {}
        }
    }
    all
}

/// `NAME=VALUE` that means the same to systemd and to a shell.
fn is_plain(word: &str) -> bool {
    let is_name = |name: &str| {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && name.chars().all(is_part)
    };
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_./,:+-".contains(c);
    word.split_once('=')
        .is_some_and(|(name, value)| is_name(name) && value.chars().all(is_part))
}

/// A command of a unit. A capture may lack the lines around one.
struct Command<'a> {
    lines: Vec<Line<'a>>,
    text: String,
    is_part: bool,
}

impl Command<'_> {
    /// systemd starts programs and no shell (systemd.service(5)): `>` and `|` are words of theirs.
    fn written(&self, path: &str, environment: &str) -> Result<Written, Unread> {
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
        let mut written = script::written(path, &(environment.to_owned() + &text), self.lines[0].number() - 1);
        written.settings = written.settings.into_iter().map(|set| self.placed(set)).collect();
        Ok(written)
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

/// A command that lacks its beginning, without the option and the quote of its shell.
fn opened(text: &str) -> &str {
    let text = text.strip_prefix("-c").unwrap_or(text).trim_start();
    text.strip_prefix(['"', '\'']).unwrap_or(text)
}

/// What it does when it stops, or reads its settings again, is no request.
fn started<'a>(path: &'a str, text: &'a str) -> Vec<Command<'a>> {
    let mut is_stop = false;
    let command = |lines: Vec<Line<'a>>| {
        let text = whole(&lines);
        let pair = text.split_once('=').filter(|(key, _)| is_key(key.trim_end()));
        if let Some((key, _)) = pair {
            is_stop = key.starts_with("ExecStop") || key.starts_with("ExecReload");
        }
        let is_start = pair.map_or(!is_stop, |(key, _)| key.starts_with("ExecStart"));
        is_start.then(|| Command {
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
mod tests {
    use host::{Snapshot, Source, Tree};

    use super::of_unit;
    use crate::config::Config;

    #[test]
    fn what_is_in_doubt_or_refused_is_said_of_a_machine() {
        let pool = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
        let script = format!("#!/bin/sh\necho 0 > {pool}\n[ $1 ] && echo 8 > {pool}\n");
        let tree = Tree::new()
            .line("/etc/hostname", "a")
            .file(
                "/etc/systemd/system/hugepages.service",
                format!("ExecStart=/bin/echo 8 > {pool}\n"),
            )
            .file("/etc/rc.local", script);
        let source = Source::from_tree("made", tree);
        let config = Config::read(&source, &Snapshot::take(&source));
        let place = config.pool_lines.unread().map(|why| why.place.as_str());
        assert_eq!(place, Some("/etc/rc.local:3"));
        assert_eq!(config.refused.len(), 1, "{:?}", config.refused);
    }

    /// Values with their lines, and how much is refused.
    fn read(text: &str) -> (String, usize) {
        let text = text
            .replace("POOL", "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages")
            .replace("LARGE", "/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages");
        let mut refused = Vec::new();
        let written = of_unit("a", &text, &mut refused);
        assert_eq!(written.unresolved, [], "{text}");
        let all = written
            .settings
            .iter()
            .map(|set| format!("{} {}", set.place, set.value));
        (all.collect::<Vec<_>>().join(", "), refused.len())
    }

    #[test]
    fn commands_of_a_capture_count_without_their_first_line() {
        for text in [
            "[Service]\n\n'echo 16 > POOL'\n",
            "[Service]\n\n-c \"echo 16 > POOL\"\n",
            "[Service]\n\n\"echo 16 > POOL\"\n",
            "[Service]\n\nN=1; echo 16 > POOL'\n",
            "[Service]\nExecStart=/bin/sh -c \\\n  'echo 16 > POOL'\n",
        ] {
            assert_eq!(read(text), ("a:3 16".to_owned(), 0), "{text}");
        }
    }

    #[test]
    fn a_blank_line_ends_a_command_and_a_comment_does_not() {
        let blank = "ExecStart=/bin/sh -c 'echo 8 > POOL; \\\n\nExecStartPost=/bin/sh -c 'echo 16 > LARGE'\n";
        assert_eq!(read(blank).0, "a:1 8, a:3 16");
        let comment = "ExecStart=/bin/sh -c 'true; \\\n# text\n  echo 16 > POOL'\n";
        assert_eq!(read(comment).0, "a:3 16");
    }

    #[test]
    fn a_write_is_in_the_line_that_names_its_file() {
        let text = "[Service]\nExecStart=/bin/sh -c 'echo 8 > POOL; \\\n  echo 16 > LARGE'\n";
        assert_eq!(read(text).0, "a:2 8, a:3 16");
    }

    #[test]
    fn doubled_signs_and_variables_of_a_unit_are_read_as_systemd_does() {
        for text in [
            "ExecStart=/bin/bash -c 'N=2; echo 8 > /sys/kernel/mm/hugepages/hugepages-$${N}048kB/nr_hugepages'\n",
            "ExecStart=/bin/sh -c 'N=8; echo $$N > POOL'\n",
            "ExecStart=/bin/sh -c 'N=8; echo $${N} > POOL'\n",
            "ExecStart=/bin/sh -c 'printf %%s 8 > POOL'\n",
            "ExecStart=/bin/sh -c 'printf \"%%s\" 8 > POOL'\n",
        ] {
            assert_eq!(read(text), ("a:1 8".to_owned(), 0), "{text}");
        }
        let variable = "Environment=\"N=8\" M=2\nExecStart=/bin/sh -c 'echo ${N} > POOL'\n";
        assert_eq!(read(variable), ("a:2 8".to_owned(), 0));
    }

    #[test]
    fn without_a_shell_nothing_is_written_behind_launchers_either() {
        for program in ["/bin/echo", "/usr/bin/env echo", "nice -n 5 echo", "sudo echo"] {
            assert_eq!(
                read(&format!("ExecStart={program} 8 > POOL\n")),
                (String::new(), 1),
                "{program}"
            );
        }
        for start in [
            "/usr/bin/env sh -c 'echo 8 > POOL'",
            "|echo 8 > POOL",
            "@/bin/sh sh -c 'echo 8 > POOL'",
        ] {
            assert_eq!(
                read(&format!("ExecStart={start}\n")),
                ("a:1 8".to_owned(), 0),
                "{start}"
            );
        }
    }
}
