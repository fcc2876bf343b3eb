//! Captures a machine: reads every file that the rest of this crate asks for, and nothing that could hold a secret.

mod pattern;
mod process;
mod table;

#[cfg(test)]
mod tests;

use model::{Bytes, Cause, Reading, Unread};

use crate::snapshot::Cgroup;
use crate::tree::{Node, Tree};
use crate::{Source, snapshot};

/// What to capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CaptureOptions {
    /// Processes too: names, limits, memory accounts and mapped files, but neither arguments nor environments.
    pub processes: bool,
}

/// Files of the machine itself are small; `/proc/pagetypeinfo` of a large one is the largest.
const LARGEST_FILE: Bytes = Bytes::mib(1);
/// The whole capture; what comes after it is recorded as left out.
const LARGEST_CAPTURE: Bytes = Bytes::mib(64);

/// Reads a machine into a tree; the caller writes it. Refusals are recorded as such.
pub fn capture(source: &Source, options: CaptureOptions) -> Tree {
    let mut recorder = Recorder::new(source);
    for entry in table::MACHINE {
        for path in pattern::expand(source, entry.pattern) {
            recorder.file(&path, LARGEST_FILE, entry.keep);
        }
    }
    for directory in table::DIRECTORIES {
        recorder.directory(directory);
    }
    for name in snapshot::sysctl::SYSCTLS {
        recorder.file(&snapshot::sysctl::path(name), LARGEST_FILE, table::whole);
    }
    if let Reading::Known(root) = Cgroup::read(source).root {
        recorder.file(&format!("{root}/cgroup.controllers"), LARGEST_FILE, table::whole);
    }
    if options.processes {
        process::record(&mut recorder);
    }
    recorder.tree
}

/// What of a file's content is kept.
type Keep = fn(&[u8]) -> Vec<u8>;

struct Recorder<'a> {
    source: &'a Source,
    tree: Tree,
    left: u64,
}

impl<'a> Recorder<'a> {
    fn new(source: &'a Source) -> Self {
        Self {
            source,
            tree: Tree::new(),
            left: LARGEST_CAPTURE.0,
        }
    }

    fn file(&mut self, path: &str, limit: Bytes, keep: Keep) {
        let node = match self.source.bytes_within(path, limit) {
            Reading::Known(bytes) => self.within_budget(keep(&bytes)),
            Reading::Unread(why) => match self.refusal(path, why) {
                Some(node) => node,
                None => return,
            },
        };
        self.tree.insert(path, node);
    }

    /// Its existence tells something even if nothing is in it.
    fn directory(&mut self, path: &str) {
        match self.source.list(path) {
            Reading::Known(_) => self.tree.insert(path, Node::Dir),
            Reading::Unread(why) if why.unread == Cause::Denied => self.tree.insert(path, Node::Denied),
            Reading::Unread(_) => {}
        }
    }

    fn within_budget(&mut self, bytes: Vec<u8>) -> Node {
        match self.left.checked_sub(bytes.len() as u64) {
            Some(left) => {
                self.left = left;
                Node::File(bytes)
            }
            None => Node::Failed("left out: the capture is full".to_owned()),
        }
    }

    /// What is absent, and a directory among files, leaves no trace.
    fn refusal(&self, path: &str, why: Unread) -> Option<Node> {
        match why.unread {
            Cause::Absent => None,
            Cause::Denied => Some(Node::Denied),
            _ if self.source.list(path).known().is_some() => None,
            _ => Some(Node::Failed(why.why)),
        }
    }
}
