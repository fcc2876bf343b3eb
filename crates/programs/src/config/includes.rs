//! Files of settings that include others, read line by line in the order in which they hold.

use model::{Cause, Unread};

use super::files::{Line, content, listed, said};
use host::Source;
use host::tree::beside;

/// Files that include each other end here, as in MySQL (mysys/my_default.cc) and PostgreSQL (guc-file.l).
pub(crate) const DEEPEST: usize = 10;
/// More files and directories than this have no server; they may include each other many times, and name what is not there.
const MOST: usize = 200;

pub(crate) enum Include {
    /// This file. One that is not there holds nothing.
    File(String),
    /// The files of a directory with this ending, by name.
    Directory(String, &'static str),
}

/// Reads lines, and says what they include. A file within others has its depth, the first one 0.
pub(crate) trait Reader {
    /// Lines that begin so are comments.
    const COMMENT: &'static [char];
    fn begin(&mut self, depth: usize);
    /// A line that says something.
    fn line(&mut self, depth: usize, line: Line<'_>) -> Option<Include>;
}

/// The files below a root, as a server sees them.
pub(crate) struct Files<'a> {
    source: &'a Source,
    root: &'a str,
    /// How many more are looked for.
    left: usize,
    /// Those that were there, in their order.
    pub(crate) read: Vec<String>,
}

impl<'a> Files<'a> {
    pub(crate) fn below(source: &'a Source, root: &'a str) -> Self {
        Self {
            source,
            root,
            left: MOST,
            read: Vec::new(),
        }
    }

    /// Hands over a file with all that it includes. Is it there?
    ///
    /// # Errors
    /// If one of them may not be read, or there are too many.
    pub(crate) fn read(&mut self, path: &str, reader: &mut impl Reader) -> Result<bool, Unread> {
        self.at(path, 0, reader)
    }

    fn at<R: Reader>(&mut self, path: &str, depth: usize, reader: &mut R) -> Result<bool, Unread> {
        if depth > DEEPEST {
            return Ok(false);
        }
        self.count(path)?;
        let Some(text) = content(self.source, &format!("{}{path}", self.root))? else {
            return Ok(false);
        };
        self.lines(path, &text, depth, reader)?;
        Ok(true)
    }

    /// Hands over the text of a file with all that it includes.
    ///
    /// # Errors
    /// As for a file.
    pub(crate) fn text(&mut self, path: &str, text: &str, reader: &mut impl Reader) -> Result<(), Unread> {
        self.lines(path, text, 0, reader)
    }

    fn lines<R: Reader>(&mut self, path: &str, text: &str, depth: usize, reader: &mut R) -> Result<(), Unread> {
        self.read.push(path.to_owned());
        reader.begin(depth);
        let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
        for line in said(path, text, R::COMMENT) {
            match reader.line(depth, line) {
                Some(Include::File(file)) => {
                    self.at(&beside(directory, &file), depth + 1, reader)?;
                }
                Some(Include::Directory(inner, ending)) => {
                    let inner = beside(directory, &inner);
                    self.count(&inner)?;
                    let mut names = listed(self.source, &format!("{}{inner}", self.root))?;
                    names.retain(|name| name.ends_with(ending) && !name.starts_with('.'));
                    names.sort();
                    for name in names {
                        self.at(&format!("{inner}/{name}"), depth + 1, reader)?;
                    }
                }
                None => {}
            }
        }
        Ok(())
    }

    fn count(&mut self, path: &str) -> Result<(), Unread> {
        let too_many = || Unread::new(Cause::Failed, path, format!("more than {MOST} files are included"));
        self.left = self.left.checked_sub(1).ok_or_else(too_many)?;
        Ok(())
    }
}
