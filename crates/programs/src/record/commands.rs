//! Lines of scripts, units and crontabs: of each, what a capture keeps. A command that decides nothing about pages may hold a secret.

use super::words::{
    LEFT_OUT, SHELLS, assigned, assigns, clean, each_word, is_harmless, is_harmless_command, is_name, names_memory,
    prints, with_values,
};
use crate::config::files::open_quote;

/// Words with a command behind them.
const OPENERS: [&str; 11] = [
    "if", "then", "elif", "else", "while", "until", "do", "!", "{", "(", "time",
];
const CLOSERS: [&str; 6] = ["fi", "done", "esac", "}", ")", ";;"];
/// Words with values behind them, or with nothing.
const WITH_VALUES: [&str; 7] = ["for", "select", "case", "in", "exit", "return", "function"];
/// What init scripts are asked for.
const ACTIONS: &str = "start stop restart reload force-reload status try-restart condrestart boot";

/// Of each line: is it a part of a command that goes on over lines, and writes to a file of pages?
fn in_commands(text: &str) -> Vec<bool> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let groups = lines.chunk_by(|before, _| before.ends_with('\\') && !is_comment(before));
    groups.flat_map(|group| vec![writes(group); group.len()]).collect()
}

fn writes(group: &[&str]) -> bool {
    let names = |line: &&str| line.contains("/sys/kernel/mm/") || line.contains("nr_hugepages");
    group.iter().any(names) && !is_comment(group[0])
}

fn is_comment(line: &str) -> bool {
    line.starts_with(['#', ';']) && !line.starts_with(";;")
}

/// Does it decide whether others run, or close what they open? (sh(1))
pub(super) fn encloses(line: &str) -> bool {
    let line = line.trim();
    let first = line.split([' ', '\t', ';']).next().unwrap_or_default();
    let is_word = [&OPENERS[..], &CLOSERS, &WITH_VALUES].concat().contains(&first);
    is_word || line == ";;" || is_pattern(first) || function(line).is_some()
}

/// `start)`, `*)`
fn is_pattern(word: &str) -> bool {
    word.len() > 1 && word.ends_with(')') && !word.contains(['(', '"', '\'', '='])
}

/// `set_up()`, `set_up ()`: how long it is.
fn function(text: &str) -> Option<usize> {
    let (name, _) = text.split_once('(')?;
    let behind = text[name.len()..].strip_prefix("()")?;
    is_name(name.trim_end()).then(|| text.len() - behind.len())
}

/// The lines of one file, in their order.
pub(super) struct Shell {
    of_commands: std::vec::IntoIter<bool>,
    /// Which is open here.
    quote: Option<char>,
    goes_on: bool,
    /// Words that end texts which begin in lines that are kept.
    ends: Vec<String>,
}

impl Shell {
    pub(super) fn new(text: &str) -> Self {
        Self {
            of_commands: in_commands(text).into_iter(),
            quote: None,
            goes_on: false,
            ends: Vec::new(),
        }
    }

    /// What is kept of the next line: of one that is wanted, that names memory, or that is a part of a command which does.
    pub(super) fn part(&mut self, line: &str, is_wanted: bool) -> Option<String> {
        let is_part = self.of_commands.next() == Some(true);
        if !self.goes_on {
            self.quote = None;
        }
        let end = self.ends.iter().position(|end| end == line.trim());
        let is_comment = is_comment(line.trim_start());
        let is_kept = end.is_some() || (!is_comment && (is_part || is_wanted || names_memory(line)));
        if !is_comment {
            self.goes_on = is_kept && line.ends_with('\\');
        }
        if let Some(end) = end {
            self.ends.remove(end);
            return Some(line.to_owned());
        }
        is_kept.then(|| self.kept(line))
    }

    fn kept(&mut self, line: &str) -> String {
        let body = line.strip_suffix('\\').unwrap_or(line);
        let commands = split(without_comment(body, self.quote));
        let mut kept = String::new();
        for pipeline in commands.split_inclusive(|(_, sign)| *sign != "|") {
            let is_named = pipeline.iter().any(|(text, _)| names_memory(text));
            for (text, sign) in pipeline {
                kept += &self.command(text, is_named);
                kept.push_str(sign);
            }
        }
        let texts = kept.match_indices("<<").map(|(at, sign)| &kept[at + sign.len()..]);
        let ends = texts.filter(|text| !text.starts_with('<')).map(end_of_text);
        self.ends.extend(ends.filter(|end| !end.is_empty()));
        if body.len() < line.len() {
            kept.push('\\');
        }
        kept
    }

    /// One command; another one of its pipeline may be what names memory.
    fn command(&mut self, text: &str, is_named: bool) -> String {
        let before = self.quote;
        self.quote = open_quote(before, text);
        self.whole(text, before, is_named)
    }

    fn whole(&self, text: &str, quote: Option<char>, is_named: bool) -> String {
        let (lead, rest) = text.split_at(lead(text));
        let quote = open_quote(quote, lead);
        clean(lead) + &self.behind_lead(rest, quote, is_named)
    }

    fn behind_lead(&self, text: &str, quote: Option<char>, is_named: bool) -> String {
        let rest = text.trim();
        let blanks = text.len() - text.trim_start().len();
        let (blank, tail) = (&text[..blanks], &text[text.trim_end().len().max(blanks)..]);
        let first = rest.split_whitespace().next().unwrap_or_default();
        let word = first.trim_end_matches(['"', '\'']);
        let kept = if is_pattern(first) {
            let own = &first[..first.len() - 1];
            let is_known = ACTIONS.split(' ').any(|known| known == own) || is_harmless(own);
            let own = if is_known { own } else { LEFT_OUT };
            format!("{own}){}", self.whole(&rest[first.len()..], quote, is_named))
        } else if let Some(length) = function(rest) {
            let (name, body) = rest.split_at(length);
            name.to_owned() + &self.whole(body, quote, is_named)
        } else if names_memory(rest) {
            clean(rest)
        } else if CLOSERS.contains(&word) {
            self.closed(rest, word, quote)
        } else if WITH_VALUES.contains(&word) {
            with_values(rest, first)
        } else if assigns(rest) {
            each_word(rest, assigned)
        } else if is_harmless_command(rest) || (is_named && prints(rest)) {
            clean(rest)
        } else {
            self.left_out(rest, quote)
        };
        format!("{blank}{kept}{tail}")
    }

    /// `done <<EOF`, without other files that it reads.
    fn closed(&self, text: &str, first: &str, quote: Option<char>) -> String {
        let here = text.find("<<").filter(|at| !text[*at..].starts_with("<<<"));
        let here = here.map_or_else(String::new, |at| format!(" <<{}", end_of_text(&text[at + 2..])));
        let sign = quote.or(self.quote).filter(|_| quote != self.quote);
        format!("{first}{here}{}", sign.map_or_else(String::new, String::from))
    }

    /// With the quotes and parentheses that it opens or closes for others.
    fn left_out(&self, text: &str, quote: Option<char>) -> String {
        if text.is_empty() {
            return String::new();
        }
        let (opens, closes) = (text.matches('(').count(), text.matches(')').count());
        let open = "(".repeat(opens.saturating_sub(closes));
        let close = ")".repeat(closes.saturating_sub(opens));
        let (old, new) = match quote == self.quote {
            true => (None, None),
            false => (quote, self.quote),
        };
        let old = old.map_or_else(String::new, String::from);
        let new = new.map_or_else(String::new, |new| format!(" {new}{LEFT_OUT}"));
        format!("{open}{LEFT_OUT}{close}{old}{new}")
    }
}

/// The word behind `<<`.
fn end_of_text(text: &str) -> String {
    let text = text.trim_start_matches(['-', ' ', '"', '\'', '\\']);
    text.chars()
        .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
        .collect()
}

fn without_comment(line: &str, mut quote: Option<char>) -> &str {
    let mut from = 0;
    for (at, _) in line.match_indices('#') {
        quote = open_quote(quote, &line[from..at]);
        if quote.is_none() && line[..at].ends_with([' ', '\t']) {
            return &line[..at];
        }
        from = at;
    }
    line
}

/// Commands, each with the sign behind it. Those within quotes are commands of a shell, or nothing that is kept.
fn split(line: &str) -> Vec<(&str, &'static str)> {
    const SIGNS: [&str; 6] = ["&&", "||", ";;", ";", "|", "&"];
    let (mut all, mut start, mut at, mut depth) = (Vec::new(), 0, 0, 0_u32);
    while let Some(c) = line[at..].chars().next() {
        let before = line[..at].chars().next_back();
        let is_redirection = (matches!(before, Some('>' | '<')) && c != ';') || line[at..].starts_with("&>");
        let sign = SIGNS.into_iter().find(|sign| line[at..].starts_with(sign));
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        match sign.filter(|_| depth == 0 && !is_redirection && before != Some('\\')) {
            Some(sign) => {
                all.push((&line[start..at], sign));
                at += sign.len();
                start = at;
            }
            None => at += c.len_utf8(),
        }
    }
    all.push((&line[start..], ""));
    all
}

/// How long what is in front of a command is: the key of a unit, the times of a crontab, a shell with its quote, words such as `if`.
fn lead(text: &str) -> usize {
    let mut at = times(text).or_else(|| key(text)).unwrap_or(0);
    loop {
        let rest = text[at..].trim_start();
        let word = rest.split_whitespace().next().unwrap_or_default();
        let begin = text.len() - rest.len();
        at = match shell(rest) {
            _ if OPENERS.contains(&word) => begin + word.len(),
            Some(length) => begin + length,
            None => return at,
        };
    }
}

/// `ExecStart=-`
fn key(text: &str) -> Option<usize> {
    let (name, value) = text.split_once('=')?;
    let is_key = name.trim_start().starts_with(|c: char| c.is_ascii_uppercase())
        && name.contains(|c: char| c.is_ascii_lowercase())
        && name.trim().chars().all(|c| c.is_ascii_alphanumeric());
    let value = value.trim_start_matches(['@', '-', ':', '+', '!', '|', ' ']);
    is_key.then(|| text.len() - value.len())
}

/// `@reboot root`, `0 4 * * * root`
fn times(text: &str) -> Option<usize> {
    let first = text.split_whitespace().next()?;
    let is_time = |word: &str| word.chars().all(|c| c.is_ascii_digit() || "*/,-".contains(c));
    let fields = if first.starts_with('@') { 1 } else { 5 };
    let is_times = fields == 1 || text.split_whitespace().take(5).filter(|word| is_time(word)).count() == 5;
    let user = text
        .split_whitespace()
        .nth(fields)
        .filter(|user| is_times && is_name(user))?;
    let at = text.split_inclusive([' ', '\t']).take_while(|word| word.trim() != user);
    Some(at.map(str::len).sum::<usize>() + user.len())
}

/// `/bin/sh -c '`
fn shell(text: &str) -> Option<usize> {
    let (mut at, mut has_shell) = (0, text.starts_with('-'));
    text.split_inclusive([' ', '\t']).find_map(|piece| {
        at += piece.len();
        let word = piece.trim();
        has_shell |= SHELLS.contains(&word.rsplit('/').next().unwrap_or_default());
        let letters = word.strip_prefix('-').filter(|letters| letters.len() < 6)?;
        let is_text = letters.ends_with('c') && letters.chars().all(|c| c.is_ascii_alphabetic());
        let rest = text[at..].trim_start();
        let is_open = rest.is_empty() || rest.starts_with(['"', '\'']);
        (has_shell && is_text && is_open).then(|| text.len() - rest.len() + usize::from(!rest.is_empty()))
    })
}

#[cfg(test)]
mod tests {
    use super::super::words::names_memory;
    use super::{Shell, encloses, in_commands};

    fn kept(text: &str) -> Vec<String> {
        let mut shell = Shell::new(text);
        let lines = text.lines().map(|line| shell.part(line, encloses(line)));
        lines.map(Option::unwrap_or_default).collect()
    }

    #[test]
    fn commands_over_several_lines_are_whole_where_they_write_to_a_pool() {
        let unit = "ExecStart=/bin/sh -c \\\n  'echo 8 > /sys/kernel/mm/x; \\\n true'\nExecStart=/bin/db \\\n --password x\n# nr_hugepages\n";
        assert_eq!(in_commands(unit), [true, true, true, false, false, false]);
        assert_eq!(kept(unit)[..3], unit.lines().take(3).collect::<Vec<_>>()[..]);
    }

    #[test]
    fn what_opens_and_closes_stays_and_its_commands_do_not() {
        for (line, expected) in [
            ("while ! mysqladmin -uroot -phunter2A ping; do", "while ! left_out; do"),
            (
                "until curl -u admin:hunter2B http://x/; do sleep 1; done",
                "until left_out; do sleep 1; done",
            ),
            ("if sshpass -p hunter2C ssh root@x true; then", "if left_out; then"),
            (
                "for pw in hunter2D hunter2E; do login $pw; done",
                "for pw in $(left_out) $(left_out); do left_out; done",
            ),
            ("if [ \"$X\" = hunter2F ]; then", "if left_out; then"),
            ("hunter2G)", "left_out)"),
            ("hunter2G) login hunter2H ;;", "left_out) left_out ;;"),
            ("case hunter2 in", "case $(left_out) in"),
            ("do_it --password hunter2H", ""),
            ("done < hunter2I", "done"),
            ("HUNTERTWO_J", ""),
            (
                "if mysql -e 'hunter2; x'; then",
                "if left_out 'left_out; left_out'; then",
            ),
        ] {
            assert_eq!(kept(line), [expected], "{line}");
        }
    }

    #[test]
    fn what_decides_about_pages_stays_as_it_is() {
        for line in [
            "if grep -q huge /proc/cmdline; then",
            "if [ -f /sys/kernel/mm/transparent_hugepage/enabled ]; then",
            "if test -f $f; then echo never > $f; fi",
            "for i in 0 1; do echo 8 > /sys/devices/system/node/node$i/hugepages/hugepages-2048kB/nr_hugepages; done",
            "N=4096; echo $N > /proc/sys/vm/nr_hugepages",
            "echo never | tee /sys/kernel/mm/transparent_hugepage/enabled",
            "ExecStart=/bin/sh -c 'for i in 0 1; do echo 8 > /x/node$$i/nr_hugepages; done'",
            "fi",
            "start)",
            "*)",
            ";;",
            "set_up() {",
            "}",
            "exit 0",
        ] {
            assert_eq!(kept(line), [line]);
        }
    }

    #[test]
    fn commands_beside_one_that_writes_are_left_out() {
        for (text, expected) in [
            (
                "@reboot root mysql -uroot -phunterA -e 'x'; echo never > /sys/kernel/mm/transparent_hugepage/enabled",
                "@reboot root left_out; echo never > /sys/kernel/mm/transparent_hugepage/enabled",
            ),
            (
                "*/5 * * * * root mysqldump -phunterB huge_db",
                "*/5 * * * * root mysqldump -pleft_out huge_db",
            ),
            ("mysql -phunterC huge", "mysql -pleft_out huge"),
            (
                "ExecStart=/bin/sh -c 'mysql -uroot -phunter2K -e x; \\\n  curl -u a:hunter2L http://x; \\\n --password hunter2M; \\\n  echo 8 > /proc/sys/vm/nr_hugepages'",
                "ExecStart=/bin/sh -c 'left_out; \\\n  left_out; \\\n left_out; \\\n  echo 8 > /proc/sys/vm/nr_hugepages'",
            ),
            (
                "ExecStart=/bin/sh -c 'docker run -e DBPASS=hunterG -e PW=hunterH \\\n -v x img; \\\n echo 8 > /proc/sys/vm/nr_hugepages'",
                "ExecStart=/bin/sh -c 'left_out \\\n left_out; \\\n echo 8 > /proc/sys/vm/nr_hugepages'",
            ),
            (
                "PW=hunter2 sysctl vm.nr_hugepages=8",
                "PW=$(left_out) sysctl vm.nr_hugepages=8",
            ),
        ] {
            assert_eq!(kept(text).join("\n"), expected);
        }
    }

    #[test]
    fn the_end_of_a_text_is_kept_with_its_beginning() {
        let script = "cat > /etc/sysctl.d/huge.conf <<EOF\nvm.nr_hugepages=8\nEOF\ncat > /etc/motd <<END\nx\nEND\n";
        let expected = [
            "cat > /etc/sysctl.d/huge.conf <<EOF",
            "vm.nr_hugepages=8",
            "EOF",
            "",
            "",
            "",
        ];
        assert_eq!(kept(script), expected);
        assert!(!names_memory("# huge"));
    }
}
