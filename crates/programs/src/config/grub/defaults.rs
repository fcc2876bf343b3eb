//! The variables among the defaults of GRUB, as the shell that reads them and GRUB's own script leave them.

use std::collections::BTreeMap;

use super::GRUB;
use crate::config::files::{Line, open_quote, said};

/// What GRUB's scripts hand to the kernel, without words about huge pages that only a run of them shows.
pub(in crate::config) fn in_grub<'a>(lines: &[Line<'a>]) -> Option<(Line<'a>, String)> {
    let (line, words) = values(lines)?;
    let known: Vec<&str> = words.split(' ').filter(|word| !is_open(word)).collect();
    Some((line, cut(&known.join(" ")).0))
}

/// What they lose of it at a `;`, with its place.
pub(in crate::config) fn cut_off<'a>(lines: &[Line<'a>]) -> Option<(Line<'a>, String)> {
    let (line, words) = values(lines)?;
    Some((line, cut(&words).1?))
}

/// A command line as GRUB runs the script that it is in: it ends at the first `;` outside of quotes that has no `\` before it. Beside it the words about huge pages
/// that are lost.
pub(super) fn cut(words: &str) -> (String, Option<String>) {
    let (mut quote, mut is_escaped) = (None, false);
    let end = words.find(|c| {
        let is_end = c == ';' && quote.is_none() && !is_escaped;
        match quote {
            None if !is_escaped && matches!(c, '"' | '\'') => quote = Some(c),
            Some(open) if !is_escaped && c == open => quote = None,
            _ => {}
        }
        is_escaped = c == '\\' && !is_escaped && quote != Some('\'');
        is_end
    });
    let heard = &words[..end.unwrap_or(words.len())];
    let plain = |word: &str| match word.contains(';') {
        true => word.replace("\\;", ";").replace(['"', '\''], ""),
        false => word.to_owned(),
    };
    let rest = end.map_or("", |end| &words[end + 1..]);
    // A word that goes on behind it is lost in part.
    let parted = match rest.starts_with(|c: char| !c.is_whitespace()) {
        true => &words[heard.rfind(' ').map_or(0, |at| at + 1)..],
        false => rest,
    };
    let lost: Vec<&str> = parted.split_whitespace().filter(|word| is_of_pages(word)).collect();
    let heard: Vec<String> = heard.split(' ').map(plain).collect();
    (heard.join(" "), (!lost.is_empty()).then(|| lost.join(" ")))
}

pub(in crate::config) fn is_of_pages(word: &str) -> bool {
    word.contains("huge") || word.contains("thp_")
}

/// Those words, with their place.
pub(in crate::config) fn unresolved(path: &str, text: &str) -> Option<String> {
    let lines: Vec<Line<'_>> = said(path, text, &['#']).collect();
    let (line, words) = values(&lines)?;
    let open: Vec<&str> = words.split_whitespace().filter(|word| is_open(word)).collect();
    let place = line.place();
    (!open.is_empty()).then(|| format!("{place}: only a run of GRUB's scripts shows `{}`", open.join(" ")))
}

/// Is it about huge pages, with a variable that is not known?
pub(super) fn is_open(word: &str) -> bool {
    word.contains('$') && word.contains("huge")
}

/// Both variables of GRUB, each as the shell that reads the file leaves it, with the first line of theirs that is about pages, or else the first.
pub(super) fn values<'a>(lines: &[Line<'a>]) -> Option<(Line<'a>, String)> {
    let mut known: BTreeMap<&str, String> = GRUB.map(|name| (name, String::new())).into();
    let mut place: Option<(Line<'a>, bool)> = None;
    for (line, set) in assignments(lines) {
        let value = expanded(&set.value, &known);
        let says = is_of_pages(&value);
        if GRUB.contains(&set.name) && place.is_none_or(|(_, had)| says && !had) {
            place = Some((line, says));
        }
        let before = known.entry(set.name).or_default();
        *before = if set.adds { format!("{before}{value}") } else { value };
    }
    let words = GRUB.map(|name| known.remove(name).unwrap_or_default());
    place.map(|(line, _)| (line, words.join(" ")))
}

/// Longer than any command line that a kernel takes.
const MOST: usize = 4096;

/// A value with the variables in it that are known.
fn expanded(value: &str, known: &BTreeMap<&str, String>) -> String {
    let mut parts = value.split('$');
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        // `${NAME:+$NAME }`, as tuned writes it.
        let rest = part.strip_prefix('{').and_then(|rest| rest.split_once(":+"));
        if let Some((_, after)) = rest.filter(|(_, after)| !after.contains('}')) {
            whole += after;
            continue;
        }
        let (name, after) = part
            .strip_prefix('{')
            .and_then(|rest| rest.split_once('}'))
            .unwrap_or_else(|| part.split_at(part.find(|c: char| !is_of_name(c)).unwrap_or(part.len())));
        match known.get(name).filter(|value| whole.len() + value.len() < MOST) {
            Some(value) => whole += &format!("{value}{after}"),
            None => whole += &format!("${part}"),
        }
    }
    whole
}

/// A variable that a line assigns, or adds to.
pub(super) struct Assignment<'a> {
    pub(super) name: &'a str,
    adds: bool,
    /// Without quotes.
    pub(super) value: String,
}

/// All of them. A value goes on behind a backslash, and up to the end of its quotes.
pub(super) fn assignments<'a>(lines: &[Line<'a>]) -> Vec<(Line<'a>, Assignment<'a>)> {
    let mut texts: Vec<(Line<'a>, String)> = Vec::new();
    let (mut quote, mut goes_on): (Option<char>, bool) = (None, false);
    for line in lines {
        // A quote that is never closed leaves the later ones.
        goes_on &= !line.text.starts_with("GRUB_");
        let text = line.text.strip_suffix('\\').unwrap_or(line.text);
        match texts.last_mut().filter(|_| goes_on) {
            Some((_, whole)) => *whole += &format!(" {text}"),
            None => texts.push((*line, text.to_owned())),
        }
        quote = open_quote(quote.filter(|_| goes_on), line.text);
        goes_on = quote.is_some() || text.len() < line.text.len();
    }
    let set = |(line, text): (Line<'a>, String)| {
        let first = assignment(line.text)?;
        let value = assignment(&text)?.value;
        Some((line, Assignment { value, ..first }))
    };
    texts.into_iter().filter_map(set).collect()
}

/// `export GRUB_CMDLINE_LINUX="quiet hugepages=4" # why`, or `+=`.
pub(super) fn assignment(text: &str) -> Option<Assignment<'_>> {
    let text = text.strip_prefix("export ").unwrap_or(text).trim_start();
    let (name, value) = text.split_once('=')?;
    let (name, adds) = name.strip_suffix('+').map_or((name, false), |name| (name, true));
    let unclosed = || vec![value.trim_matches(['"', '\'']).to_owned()];
    let words = if value.starts_with([' ', '\t']) {
        Vec::new()
    } else {
        shlex::split(value).unwrap_or_else(unclosed)
    };
    let value = words.into_iter().next().unwrap_or_default();
    let is_name = !name.is_empty() && name.chars().all(is_of_name);
    is_name.then_some(Assignment { name, adds, value })
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Parameters of the boot line that people write on lines of their own.
const PARAMETERS: [&str; 4] = ["transparent_hugepage", "hugepages", "hugepagesz", "default_hugepagesz"];

/// The name of such a parameter that a word assigns.
pub(in crate::config) fn parameter(word: &str) -> Option<&str> {
    let (name, _) = word.split_once('=')?;
    PARAMETERS.contains(&name).then_some(name)
}

/// Lines of the defaults of GRUB that assign variables named like parameters, with these words. The shell that reads the file keeps them to itself.
pub(in crate::config) fn stray<'a>(lines: &[Line<'a>]) -> Vec<(Line<'a>, String)> {
    let (mut quote, mut last) = (None, 0);
    let is_used = |name: &str| {
        let forms = [format!("${name}"), format!("${{{name}")];
        lines
            .iter()
            .any(|line| forms.iter().any(|form| line.text.contains(form)))
    };
    let unused = PARAMETERS.map(|name| (name, !is_used(name)));
    let is_parameter = |word: &String| parameter(word).is_some_and(|name| unused.contains(&(name, true)));
    let mut stray: Vec<(Line<'a>, String)> = Vec::new();
    for line in lines {
        // A value in quotes may go on over several lines.
        let is_inside = quote.is_some();
        quote = open_quote(quote, line.text);
        let Some(words) = shlex::split(line.text).filter(|_| !is_inside && quote.is_none()) else {
            continue;
        };
        let own = line
            .text
            .strip_prefix("export ")
            .map_or(words.as_slice(), |_| words.get(1..).unwrap_or_default());
        if own.is_empty() || !own.iter().all(is_parameter) {
            continue;
        }
        // A size and its count may be on lines of their own.
        match stray.last_mut().filter(|_| line.number() == last + 1) {
            Some((_, words)) => *words += &format!(" {}", own.join(" ")),
            None => stray.push((*line, own.join(" "))),
        }
        last = line.number();
    }
    stray
}

#[cfg(test)]
mod tests {
    use super::{cut_off, in_grub, open_quote, said, stray, unresolved};

    #[test]
    fn values_go_on_over_lines_and_have_variables_of_the_file() {
        for (text, words, open) in [
            (
                "=\"quiet \\\n hugepagesz=2M \\\n hugepages=5\"",
                "quiet hugepagesz=2M hugepages=5",
                None,
            ),
            ("=\"quiet\nhugepages=5\"\nX='\n", "quiet hugepages=5", None),
            ("=\"hugepages=$HP\"", "hugepages=5", None),
            ("=\"quiet hugepages=$((HP * 2))\"", "quiet", Some("hugepages=$((HP")),
            ("=\"hugepages=${N} quiet $X\"", "quiet $X", Some("hugepages=${N}")),
            (
                "=\"hugepages=5\"\nGRUB_CMDLINE_LINUX=\"${GRUB_CMDLINE_LINUX:+$GRUB_CMDLINE_LINUX }\\$x\"",
                "hugepages=5 }$x",
                None,
            ),
        ] {
            let text = format!("HP=5\nGRUB_CMDLINE_LINUX{text}\nGRUB_DEFAULT=0\n");
            let lines: Vec<_> = said("grub", &text, &['#']).collect();
            let (line, found) = in_grub(&lines).expect("words");
            let found: Vec<&str> = found.split_whitespace().filter(|word| !"*2))".contains(word)).collect();
            assert_eq!(
                (line.place().as_str(), found.join(" ").as_str()),
                ("grub:2", words),
                "{text}"
            );
            let open = open.map(|word| format!("grub:2: only a run of GRUB's scripts shows `{word}`"));
            assert_eq!(unresolved("grub", &text), open, "{text}");
        }
    }

    /// As of `ds=nocloud;s=..`, of which /proc/cmdline has `ds=nocloud` (canonical/cloud-init#2120).
    #[test]
    fn a_semicolon_ends_the_command_of_grub() {
        for (value, heard, lost) in [
            (
                "quiet thp_anon=64K:always;2M:inherit hugepages=4 ro",
                "quiet thp_anon=64K:always",
                Some("thp_anon=64K:always;2M:inherit hugepages=4"),
            ),
            ("ds=nocloud;s=/a/ quiet", "ds=nocloud", None),
            ("ds=nocloud;s=/a/ hugepages=4", "ds=nocloud", Some("hugepages=4")),
            (
                "thp_anon=64K:always\\;2M:inherit hugepages=4",
                "thp_anon=64K:always;2M:inherit hugepages=4",
                None,
            ),
            (
                "thp_anon='64K:always;2M:inherit' hugepages=4",
                "thp_anon=64K:always;2M:inherit hugepages=4",
                None,
            ),
            ("hugepages=4; x", "hugepages=4", None),
        ] {
            let text = format!("GRUB_CMDLINE_LINUX=\"{value}\"\n");
            let lines: Vec<_> = said("grub", &text, &['#']).collect();
            assert_eq!(
                in_grub(&lines).map(|(_, words)| words.trim_end().to_owned()).as_deref(),
                Some(heard),
                "{value}"
            );
            assert_eq!(cut_off(&lines).map(|(_, words)| words).as_deref(), lost, "{value}");
        }
    }

    #[test]
    fn values_of_several_lines_are_no_lines_of_their_own() {
        let found = |text: &str| -> Vec<String> {
            let lines: Vec<_> = said("grub", text, &['#']).collect();
            stray(&lines).into_iter().map(|(_, words)| words).collect()
        };
        assert_eq!(
            found("A='x\nhugepages=5\n'\nhugepagesz=1G\nhugepages=4\n"),
            ["hugepagesz=1G hugepages=4"]
        );
        assert_eq!(found("A=\"it's\" # isn't\nhugepages=4\n"), ["hugepages=4"]);
        assert_eq!(found("hugepages=4\nB=\"$hugepages\"\n"), Vec::<String>::new());
        assert_eq!(open_quote(None, "A=\\\"b 'c"), Some('\''));
        let open = format!("A='x\n{}", "hugepages=5\n".repeat(100_000));
        assert_eq!(found(&open), Vec::<String>::new());
    }
}
