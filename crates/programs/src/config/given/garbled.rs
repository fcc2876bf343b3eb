//! What is wrong with a file that was given: a line of it, or all.

use model::{Cause, Unread};

use super::FileKind;

/// The mark that some editors write before UTF-8.
pub(super) const BOM: char = '\u{feff}';

/// What the program of a file makes of a mark before its first line, if it does not skip it as readers of YAML, XML and units do.
pub(super) fn mark(path: &str, text: &str, kind: FileKind) -> Option<Unread> {
    let is_yaml = [".yml", ".yaml", ".json", ".wslconfig"]
        .iter()
        .any(|end| path.ends_with(end));
    let taken = match kind {
        FileKind::Postgres => "PostgreSQL takes it for a part of the first line and refuses the whole file",
        FileKind::Mysql => "the server takes it for a part of the first line and refuses the whole file",
        FileKind::Sysctl | FileKind::Limits if sets_nothing(text) => return None,
        FileKind::Sysctl => "it is taken for a part of the first line, which then sets nothing",
        FileKind::Cmdline => {
            "the shell takes it for a part of the first line, which is then neither a setting nor a comment"
        }
        FileKind::Limits => "pam_limits takes it for a part of the first line, which then limits nothing",
        _ => return None,
    };
    let why = format!("the file begins with a byte order mark: {taken} (save it as UTF-8 without BOM)");
    (!is_yaml).then(|| Unread::new(Cause::Garbled, format!("{path}:1"), why))
}

/// Does it begin with a line that sets nothing anyway, a comment or an empty one?
fn sets_nothing(text: &str) -> bool {
    let first = text.lines().next().unwrap_or_default().trim_start();
    first.is_empty() || first.starts_with(['#', ';'])
}

/// A line, counted from 1, is not what it should be.
pub(super) fn garbled(path: &str, number: usize, seen: &str, wanted: &str) -> Unread {
    host::parse::garbled(path, number.saturating_sub(1), "", wanted, seen)
}

/// What the program that reads a file refuses of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub unread: Unread,
    /// How it takes the file.
    pub fix: String,
    /// The program's own documentation.
    pub link: &'static str,
}

impl Refusal {
    pub(super) fn new(place: &str, why: impl Into<String>, fix: impl Into<String>, link: &'static str) -> Self {
        Self {
            unread: Unread::new(Cause::Garbled, place, why),
            fix: fix.into(),
            link,
        }
    }
}

/// Nothing of what the kind is for is in the file.
pub(super) fn empty(path: &str, what: &str) -> Unread {
    Unread::new(Cause::Garbled, path, what)
}
