//! How files of configuration are found and read: what is not there says nothing, what may not be read is an error.

use model::Unread;

use super::Setting;
use host::{Source, parse};

/// A machine without `/etc` is a capture without its configuration: then nothing can be said about it.
pub(crate) fn has_configuration(source: &Source) -> Result<(), Unread> {
    source.list("/etc").into_result().map(drop)
}

/// The names in a directory of configuration; one that is not there holds none.
pub(crate) fn listed(source: &Source, directory: &str) -> Result<Vec<String>, Unread> {
    Ok(source.list(directory).if_present()?.unwrap_or_default())
}

/// A file of configuration; one that is not there says nothing. Bytes that are not UTF-8 are in comments, if anywhere.
pub(crate) fn content(source: &Source, path: &str) -> Result<Option<String>, Unread> {
    let bytes = source.bytes(path).if_present()?;
    Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

/// The first of these files that is there, as path and text.
pub(crate) fn first(
    source: &Source,
    paths: impl IntoIterator<Item = String>,
) -> Result<Option<(String, String)>, Unread> {
    for path in paths {
        if let Some(text) = content(source, &path)? {
            return Ok(Some((path, text)));
        }
    }
    Ok(None)
}

/// The files of a directory with such names: name, path and text of each.
pub(crate) fn all_in(
    source: &Source,
    directory: &str,
    is_wanted: impl Fn(&str) -> bool,
) -> Result<Vec<(String, String, String)>, Unread> {
    let mut found = Vec::new();
    for name in listed(source, directory)?.into_iter().filter(|name| is_wanted(name)) {
        let path = format!("{directory}/{name}");
        let text = content(source, &path)?.unwrap_or_default();
        found.push((name, path, text));
    }
    Ok(found)
}

/// Files whose names end in `.conf`, as name and path; a file hides those of its name in later directories.
pub(crate) fn drop_ins(source: &Source, directories: &[impl AsRef<str>]) -> Result<Vec<(String, String)>, Unread> {
    let mut found: Vec<(String, String)> = Vec::new();
    for directory in directories.iter().map(AsRef::as_ref) {
        for name in listed(source, directory)? {
            if name.ends_with(".conf") && found.iter().all(|(known, _)| *known != name) {
                let path = format!("{directory}/{name}");
                found.push((name, path));
            }
        }
    }
    Ok(found)
}

/// What is taken of the lines of all files that are there, in their order.
pub(crate) fn taken<T>(
    source: &Source,
    paths: impl IntoIterator<Item = String>,
    comment: &'static [char],
    take: impl Fn(&Line<'_>) -> Option<T>,
) -> Result<Vec<T>, Unread> {
    let mut all = Vec::new();
    for path in paths {
        let text = content(source, &path)?.unwrap_or_default();
        all.extend(said(&path, &text, comment).filter_map(|line| take(&line)));
    }
    Ok(all)
}

/// A line that says something.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line<'a> {
    path: &'a str,
    /// Counted from 1.
    number: usize,
    /// Without the white space around it.
    pub(crate) text: &'a str,
}

/// The lines of a file that are neither empty nor comments.
pub(crate) fn said<'a>(
    path: &'a str,
    text: &'a str,
    comment: &'static [char],
) -> impl Iterator<Item = Line<'a>> + Clone {
    (1..)
        .zip(text.lines().map(str::trim))
        .filter(move |(_, text)| !text.is_empty() && !text.starts_with(comment))
        .map(move |(number, text)| Line { path, number, text })
}

/// The same, each with those that it goes on in behind a backslash. An empty line ends it, and a comment does not, as systemd has it.
pub(crate) fn grouped<'a>(path: &'a str, text: &'a str, comment: &'static [char]) -> Vec<Vec<Line<'a>>> {
    let mut all: Vec<Vec<Line<'a>>> = Vec::new();
    let mut goes_on = false;
    for (number, text) in (1..).zip(text.lines().map(str::trim)) {
        goes_on &= !text.is_empty();
        if text.is_empty() || text.starts_with(comment) {
            continue;
        }
        let line = Line { path, number, text };
        match all.last_mut().filter(|_| goes_on) {
            Some(group) => group.push(line),
            None => all.push(vec![line]),
        }
        goes_on = text.ends_with('\\');
    }
    all
}

/// The text of such lines.
pub(crate) fn whole(lines: &[Line<'_>]) -> String {
    let own = |line: &Line<'_>| line.text.strip_suffix('\\').unwrap_or(line.text).trim_end().to_owned();
    lines.iter().map(own).collect::<Vec<_>>().join(" ")
}

/// The first of such lines, with the text of all.
pub(crate) fn joined<'a>(path: &'a str, text: &'a str, comment: &'static [char]) -> Vec<(Line<'a>, String)> {
    let groups = grouped(path, text, comment);
    groups.iter().map(|lines| (lines[0], whole(lines))).collect()
}

/// The same below lines such as `[section]`, each with the one that it is below.
pub(crate) fn in_sections<'a>(
    path: &'a str,
    text: &'a str,
    comment: &'static [char],
) -> impl Iterator<Item = (&'a str, Line<'a>)> {
    let mut section = "";
    said(path, text, comment).filter_map(move |line| {
        if line.text.starts_with('[') {
            section = line.text;
            return None;
        }
        Some((section, line))
    })
}

impl<'a> Line<'a> {
    /// Counted from 1.
    pub(crate) fn number(&self) -> usize {
        self.number
    }

    /// `FILE:LINE`.
    pub(crate) fn place(&self) -> String {
        format!("{}:{}", self.path, self.number)
    }

    /// Name and value of `name = value`.
    pub(crate) fn pair(&self) -> Option<(&'a str, &'a str)> {
        let (name, value) = self.text.split_once('=')?;
        Some((name.trim(), value.trim()))
    }

    /// A setting that the line makes.
    pub(crate) fn setting(&self, name: impl Into<String>, value: impl Into<String>) -> Setting {
        Setting::new(self.place(), name, value)
    }

    /// The error that it is not of the form wanted.
    pub(crate) fn garbled(&self, wanted: &str) -> Unread {
        parse::garbled(self.path, self.number - 1, "", wanted, self.text)
    }
}

/// The quote that is open behind a line.
pub(crate) fn open_quote(mut quote: Option<char>, line: &str) -> Option<char> {
    let (mut chars, mut before) = (line.chars(), ' ');
    while let Some(c) = chars.next() {
        match (quote, c) {
            (None | Some('"'), '\\') => {
                chars.next();
            }
            (None, '#') if before.is_whitespace() => break,
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            _ => {}
        }
        before = c;
    }
    quote
}

pub(crate) fn file_name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or_default()
}
