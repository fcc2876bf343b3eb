//! A part of a file system as one value: what a captured or invented machine is made of.

mod terminal;
mod text;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use model::{Cause, Reading, Unread};

pub use text::TreeError;

/// Files, links and refusals by absolute path. It is also its own builder:
///
/// ```
/// use host::{Source, Tree};
/// let machine = Tree::new()
///     .file("/proc/meminfo", "MemTotal:  1024 kB\n")
///     .line("/proc/sys/kernel/osrelease", "6.1.0")
///     .denied("/proc/1/smaps");
/// let source = Source::from_tree("example", machine);
/// assert_eq!(source.line("/proc/sys/kernel/osrelease").known().map(String::as_str), Some("6.1.0"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree(BTreeMap<String, Node>);

/// What is found at one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// A regular file and its bytes.
    File(Vec<u8>),
    /// A symbolic link and where it points to.
    Link(String),
    /// A directory; only needed for an empty one, the others follow from their files.
    Dir,
    /// Something that the capturing user was not allowed to read.
    Denied,
    /// Something that could not be read for another reason, in words.
    Failed(String),
}

/// As many links as Linux follows before it gives up.
const MOST_LINKS: u32 = 40;

impl Tree {
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts a node at an absolute path, in place of what was there. The root itself is always a directory.
    pub fn insert(&mut self, path: &str, node: Node) {
        let path = beside("", path);
        if path != "/" {
            self.0.insert(path, node);
        }
    }

    /// Puts all nodes of another tree into this one.
    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// With a file of these bytes.
    #[must_use]
    pub fn file(mut self, path: &str, content: impl AsRef<[u8]>) -> Self {
        self.insert(path, Node::File(content.as_ref().to_vec()));
        self
    }

    /// With a file of one line, as most of sysfs is; the newline is added.
    #[must_use]
    pub fn line(self, path: &str, text: impl std::fmt::Display) -> Self {
        self.file(path, format!("{text}\n"))
    }

    #[must_use]
    pub fn link(mut self, path: &str, target: &str) -> Self {
        self.insert(path, Node::Link(target.to_owned()));
        self
    }

    /// With an empty directory.
    #[must_use]
    pub fn dir(mut self, path: &str) -> Self {
        self.insert(path, Node::Dir);
        self
    }

    /// With a file or directory that may not be read.
    #[must_use]
    pub fn denied(mut self, path: &str) -> Self {
        self.insert(path, Node::Denied);
        self
    }

    /// Without this path and everything below it.
    #[must_use]
    pub fn without(mut self, path: &str) -> Self {
        self.0.retain(|at, _| at != path && !is_below(at, path));
        self
    }

    /// Paths and nodes in order of path.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Node)> {
        self.0.iter().map(|(path, node)| (path.as_str(), node))
    }

    /// How many paths it names.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Does it name no path?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Is it a regular file itself, and not a link to one?
    pub fn is_file(&self, path: &str) -> bool {
        matches!(self.0.get(path), Some(Node::File(_)))
    }

    /// The bytes of a file; links are followed.
    pub fn bytes(&self, path: &str) -> Result<Vec<u8>, Unread> {
        self.content(path).map(<[u8]>::to_vec)
    }

    /// The same without a copy.
    pub(crate) fn content(&self, path: &str) -> Result<&[u8], Unread> {
        match self.follow(path)? {
            (_, Some(Node::File(bytes))) => Ok(bytes),
            (_, Some(Node::Dir)) => Err(Unread::new(Cause::Failed, path, "it is a directory")),
            (real, node) if node.is_some() || self.has_children(&real) => {
                Err(Unread::new(Cause::Failed, path, "it is not a file"))
            }
            _ => Err(Unread::new(Cause::Absent, path, "")),
        }
    }

    /// The names in a directory, in order; links are followed.
    pub(crate) fn list(&self, path: &str) -> Result<Vec<String>, Unread> {
        let (real, node) = self.follow(path)?;
        let prefix = format!("{}/", real.trim_end_matches('/'));
        let names: BTreeSet<String> = self
            .below(&prefix)
            .filter_map(|at| at[prefix.len()..].split('/').next())
            .map(str::to_owned)
            .collect();
        match node {
            // A file is no directory, as below a real root.
            Some(Node::File(_)) | None if names.is_empty() => Err(Unread::new(Cause::Absent, path, "")),
            _ => Ok(names.into_iter().collect()),
        }
    }

    /// Where a link points to, as written.
    pub(crate) fn target(&self, path: &str) -> Reading<String> {
        match self.0.get(path) {
            Some(Node::Link(target)) => Reading::Known(target.clone()),
            None if !self.has_children(path) => Reading::absent(path),
            Some(Node::Denied) => Reading::Unread(Unread::new(Cause::Denied, path, "")),
            _ => Reading::Unread(Unread::new(Cause::Failed, path, "it is not a link")),
        }
    }

    /// The node at a path behind all links, or the refusal that stands in the way.
    fn follow(&self, path: &str) -> Result<(String, Option<&Node>), Unread> {
        let refuse = |cause, why: &str| Err(Unread::new(cause, path, why));
        let mut real = beside("", path);
        for _ in 0..MOST_LINKS {
            match self.first_obstacle(&real) {
                None => return Ok((real, None)),
                Some((at, Node::Link(target))) => {
                    let rest = real[at.len()..].to_owned();
                    real = beside(parent(&at), &format!("{target}{rest}"));
                }
                Some((_, Node::Denied)) => return refuse(Cause::Denied, ""),
                Some((_, Node::Failed(why))) => return refuse(Cause::Failed, why),
                Some((at, node)) if at == real => return Ok((real, Some(node))),
                Some(_) => return Ok((real, None)),
            }
        }
        refuse(Cause::Failed, "too many links in a row")
    }

    /// The first path on the way to `path`, itself included, that is more than a plain directory.
    fn first_obstacle(&self, path: &str) -> Option<(String, &Node)> {
        let ends = path.match_indices('/').map(|(at, _)| at).skip(1).chain([path.len()]);
        ends.map(|end| &path[..end])
            .filter_map(|part| self.0.get(part).map(|node| (part, node)))
            .find(|(part, node)| part.len() == path.len() || !matches!(node, Node::Dir))
            .map(|(part, node)| (part.to_owned(), node))
    }

    fn below<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = &'a str> {
        self.0
            .range(prefix.to_owned()..)
            .map(|(at, _)| at.as_str())
            .take_while(move |at| at.starts_with(prefix))
    }

    fn has_children(&self, path: &str) -> bool {
        self.below(&format!("{path}/")).next().is_some()
    }
}

fn is_below(path: &str, directory: &str) -> bool {
    path.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'))
}

pub(crate) fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

/// A path as it is meant in a directory, without `.`, `..`, doubled or trailing slashes; `..` stops at the root.
pub fn beside(directory: &str, path: &str) -> String {
    let directory = if path.starts_with('/') { "" } else { directory };
    let mut names: Vec<&str> = directory.split('/').filter(|name| !name.is_empty()).collect();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." => drop(names.pop()),
            name => names.push(name),
        }
    }
    format!("/{}", names.join("/"))
}
