//! The archive format `.tree`: a whole machine as text that reads and diffs well.
//!
//! ```text
//! hugewise tree 1
//! # A comment.
//! line /sys/kernel/mm/ksm/run 0
//! file /proc/buddyinfo
//! |Node 0, zone      DMA      0      1
//! |Node 0, zone   Normal    187     65
//! link /sys/class/x ../devices/x
//! dir /sys/kernel/mm/hugepages
//! denied /proc/1/smaps
//! failed /proc/2/smaps the process ended
//! end
//! ```
//!
//! `line` is a file of exactly one line. A content line starts with `|`; one that ends in `\` has no newline after it.
//! A backslash is written `\\`, a byte that is no printable text `\x1b`, likewise a space at the end of a line, so that
//! editors cannot lose it, and a space in a path. `end` proves that the archive is whole.

use std::fmt::Write as _;
use std::io::{self, Write};

use super::{Node, Tree, beside};

const HEADER: &str = "hugewise tree 1";
const LONGEST_PATH: usize = 4096;
/// A machine with 10,000 processes has a tenth of that.
const MOST_PATHS: usize = 1 << 20;

/// Why an archive cannot be read. The text is `garbled: FILE:LINE: why`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("garbled: {name}:{line}: {why} (record it again with `hugewise snapshot`, or mend that line)")]
pub struct TreeError {
    pub name: String,
    /// The line, counted from 1.
    pub line: usize,
    pub why: String,
}

impl Tree {
    /// Reads an archive, or what a terminal showed; `name` is only used in errors.
    ///
    /// # Errors
    /// A line that is not of the format, a path given twice, or an archive without its `end`.
    pub fn parse(name: &str, text: &[u8]) -> Result<Self, TreeError> {
        let garbled = |line, why| TreeError {
            name: name.to_owned(),
            line,
            why,
        };
        if !text.starts_with(HEADER.as_bytes())
            && let Some(tree) = Self::of_terminal(&String::from_utf8_lossy(text))
        {
            return Ok(tree);
        }
        let mut parser = Parser::default();
        let mut last = 0;
        for (index, line) in text.split(|&byte| byte == b'\n').enumerate() {
            last = index + 1;
            parser.line(last, line).map_err(|why| garbled(last, why))?;
        }
        if !parser.ended {
            return Err(garbled(last, "the archive stops before its `end` line".to_owned()));
        }
        Ok(parser.tree)
    }

    /// The archive as text; [`Tree::parse`] reads it back.
    pub fn to_text(&self) -> String {
        let mut text = Vec::new();
        // Writing to memory cannot fail, and what is no UTF-8 is escaped.
        let _ = self.write_to(&mut text);
        String::from_utf8(text).unwrap_or_default()
    }

    /// The same, written as it is made: the text of a large machine has tens of megabytes.
    ///
    /// # Errors
    /// What `out` answers.
    pub fn write_to(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{HEADER}")?;
        for (path, node) in self.iter() {
            let path = escape_path(path);
            match node {
                Node::File(bytes) => write_file(out, &path, bytes),
                Node::Link(target) => writeln!(out, "link {path} {}", escape(target.as_bytes())),
                Node::Dir => writeln!(out, "dir {path}"),
                Node::Denied => writeln!(out, "denied {path}"),
                Node::Failed(why) => writeln!(out, "failed {path} {}", escape(why.as_bytes())),
            }?;
        }
        writeln!(out, "end")
    }
}

#[derive(Default)]
struct Parser {
    tree: Tree,
    /// The file whose content lines are being read, and whether its last line ended without a newline.
    open: Option<(String, bool)>,
    ended: bool,
}

impl Parser {
    fn line(&mut self, number: usize, line: &[u8]) -> Result<(), String> {
        if number == 1 {
            return match line == HEADER.as_bytes() {
                true => Ok(()),
                false => Err(format!("an archive starts with the line `{HEADER}`")),
            };
        }
        if let Some(content) = line.strip_prefix(b"|") {
            return self.content(content);
        }
        if line.is_empty() || line.starts_with(b"#") {
            return Ok(());
        }
        if self.ended {
            return Err("something follows the `end` line".to_owned());
        }
        self.open = None;
        if line == b"end" {
            self.ended = true;
            return Ok(());
        }
        self.entry(std::str::from_utf8(line).map_err(|_| "this line is not UTF-8".to_owned())?)
    }

    fn content(&mut self, content: &[u8]) -> Result<(), String> {
        let Some((path, complete)) = &mut self.open else {
            return Err("a content line without a `file` line before it".to_owned());
        };
        if *complete {
            return Err("a content line after one that ends its file without a newline".to_owned());
        }
        let (mut bytes, newline) = unescape(content)?;
        if newline {
            bytes.push(b'\n');
        }
        *complete = !newline;
        if let Some(Node::File(file)) = self.tree.0.get_mut(path) {
            file.extend(bytes);
        }
        Ok(())
    }

    fn entry(&mut self, line: &str) -> Result<(), String> {
        let (keyword, rest) = line.split_once(' ').unwrap_or((line, ""));
        let (path, value) = match rest.split_once(' ') {
            Some((path, value)) => (path, Some(value)),
            None => (rest, None),
        };
        let path = unescape_path(path)?;
        if path.len() > LONGEST_PATH {
            return Err(format!("a path has at most {LONGEST_PATH} bytes"));
        }
        if self.tree.len() >= MOST_PATHS {
            return Err(format!("an archive has at most {MOST_PATHS} paths"));
        }
        let node = match (keyword, value) {
            ("file", None) => {
                self.open = Some((path.clone(), false));
                Node::File(Vec::new())
            }
            ("line", Some(value)) => Node::File([unescape_whole(value)?, vec![b'\n']].concat()),
            ("link", Some(target)) => Node::Link(unescape_text(target)?),
            ("dir", None) => Node::Dir,
            ("denied", None) => Node::Denied,
            ("failed", Some(why)) => Node::Failed(unescape_text(why)?),
            ("file" | "dir" | "denied", Some(_)) => return Err(format!("`{keyword} PATH` has nothing after the path")),
            ("line" | "link" | "failed", None) => return Err(format!("`{keyword} PATH` needs text after the path")),
            _ => {
                return Err(format!(
                    "`{keyword}` is no kind of entry (file, line, link, dir, denied, failed, end)"
                ));
            }
        };
        match self.tree.0.insert(path.clone(), node) {
            None => Ok(()),
            Some(_) => Err(format!("{path} is given twice")),
        }
    }
}

fn write_file(text: &mut dyn Write, path: &str, bytes: &[u8]) -> io::Result<()> {
    let lines: Vec<&[u8]> = bytes.split(|&byte| byte == b'\n').collect();
    match lines.as_slice() {
        [line, []] if !line.is_empty() => return writeln!(text, "line {path} {}", escape(line)),
        [[]] => return writeln!(text, "file {path}"),
        _ => writeln!(text, "file {path}")?,
    }
    // `split` leaves one more piece than there are newlines: empty after the last newline.
    let (last, whole) = lines.split_last().unwrap_or((&bytes, &[]));
    for line in whole {
        writeln!(text, "|{}", escape(line))?;
    }
    match last.is_empty() {
        true => Ok(()),
        false => writeln!(text, "|{}\\", escape(last)),
    }
}

fn escape_path(path: &str) -> String {
    escape(path.as_bytes()).replace(' ', "\\x20")
}

/// Printable UTF-8 stays as it is; the rest becomes `\xNN`, a backslash `\\`.
fn escape(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\\' => text.push_str("\\\\"),
                '\t' => text.push('\t'),
                c if c.is_control() => c.to_string().bytes().for_each(|byte| push_hex(&mut text, byte)),
                c => text.push(c),
            }
        }
        chunk.invalid().iter().for_each(|&byte| push_hex(&mut text, byte));
    }
    if let Some(blank @ (' ' | '\t')) = text.chars().last() {
        text.pop();
        push_hex(&mut text, blank as u8);
    }
    text
}

fn push_hex(text: &mut String, byte: u8) {
    // Writing to a String cannot fail.
    let _ = write!(text, "\\x{byte:02x}");
}

/// The bytes, and whether a newline follows (a lone backslash at the end says no).
fn unescape(text: &[u8]) -> Result<(Vec<u8>, bool), String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, tail @ ..] = rest {
        rest = match (first, tail) {
            (b'\\', []) => return Ok((bytes, false)),
            (b'\\', [b'\\', tail @ ..]) => {
                bytes.push(b'\\');
                tail
            }
            (b'\\', [b'x', high, low, tail @ ..]) => {
                bytes.push(hex(*high, *low)?);
                tail
            }
            (b'\\', _) => return Err("after a backslash comes another one, or x and two hex digits".to_owned()),
            (byte, tail) => {
                bytes.push(*byte);
                tail
            }
        };
    }
    Ok((bytes, true))
}

fn hex(high: u8, low: u8) -> Result<u8, String> {
    let digit = |byte: u8| (byte as char).to_digit(16).map(|digit| digit as u8);
    digit(high)
        .zip(digit(low))
        .map(|(high, low)| high << 4 | low)
        .ok_or_else(|| "two hex digits belong after \\x".to_owned())
}

fn unescape_whole(text: &str) -> Result<Vec<u8>, String> {
    match unescape(text.as_bytes())? {
        (bytes, true) => Ok(bytes),
        (_, false) => Err("only a content line can end in a lone backslash".to_owned()),
    }
}

fn unescape_text(text: &str) -> Result<String, String> {
    String::from_utf8(unescape_whole(text)?).map_err(|_| "this text is not UTF-8".to_owned())
}

fn unescape_path(text: &str) -> Result<String, String> {
    let path = unescape_text(text)?;
    match path.starts_with('/') && beside("", &path) == path && path != "/" {
        true => Ok(path),
        false => Err(format!("`{path}` is not a plain absolute path")),
    }
}
