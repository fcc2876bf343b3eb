//! Gathers a capture: files that fit, refusals, and the list of what was left out.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use model::{Bytes, Cause, Reading, Unread};

use super::keep::Kept;
use super::{pattern, table};
use host::source::Reads;
use host::tree::{Node, Tree};
use host::{Source, spread};

/// Where a capture keeps the list of what was left out of it: a line `PATH: WHAT` each.
pub const LEFT_OUT: &str = "/hugewise/left_out";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// The machine; the caller writes it.
    pub tree: Tree,
    /// What was left out or cut, in the words of [`LEFT_OUT`], which is in the tree too.
    pub left_out: Vec<String>,
}

/// Files of the machine itself are small; `/proc/pagetypeinfo` of a large one is the largest.
pub(super) const LARGEST_FILE: Bytes = Bytes::mib(1);

/// The whole capture; what comes after it is recorded as left out.
const LARGEST_CAPTURE: Bytes = Bytes::mib(64);

/// A capture that is being made.
pub(super) struct Recorder<'a> {
    pub(super) source: &'a Source,
    pub(super) tree: Tree,
    /// Bytes that still fit, for all parts of the capture together.
    left: Arc<AtomicU64>,
    left_out: BTreeSet<String>,
}

impl<'a> Recorder<'a> {
    /// What a capture lost already stays lost when it is captured again.
    pub(super) fn new(source: &'a Source) -> Self {
        let before = source.text(LEFT_OUT).into_result().unwrap_or_default();
        Self {
            source,
            tree: Tree::new(),
            left: Arc::new(AtomicU64::new(LARGEST_CAPTURE.0)),
            left_out: before.lines().map(str::to_owned).collect(),
        }
    }

    /// Records something of each of the items, of several at once.
    pub(super) fn each<T: Sync>(&mut self, items: &[T], record: impl Fn(&mut Self, &T) + Sync) {
        let parts = spread::over(self.source, items, |item| {
            let mut part = Self {
                source: self.source,
                tree: Tree::new(),
                left: Arc::clone(&self.left),
                left_out: BTreeSet::new(),
            };
            record(&mut part, item);
            (part.tree, part.left_out)
        });
        for (tree, left_out) in parts {
            self.tree.extend(tree);
            self.left_out.extend(left_out);
        }
    }

    /// What a snapshot read. A directory without recorded files is recorded itself: its existence is a fact.
    pub(super) fn reads(&mut self, reads: Reads) {
        for (path, content) in reads.files {
            let too_large = |bytes: &Vec<u8>| bytes.len() as u64 > LARGEST_FILE.0;
            let content = match content {
                Reading::Known(bytes) if too_large(&bytes) => {
                    let why = format!("it is larger than {LARGEST_FILE}");
                    Reading::Unread(Unread::new(Cause::Failed, path.as_str(), why))
                }
                content => content,
            };
            self.put(&path, content.map(|bytes| table::of_snapshot(&path)(&bytes)));
        }
        for path in reads.directories.into_keys() {
            let below = format!("{path}/");
            if self.tree.iter().all(|(path, _)| !path.starts_with(&below)) {
                self.directory(&path);
            }
        }
    }

    /// Every file that fits. A directory on the way that may not be listed is recorded as that, unless something in it
    /// is known by another way.
    pub(super) fn pattern(&mut self, pattern: &str, limit: Bytes, keep: impl Fn(&[u8]) -> Kept + Copy) {
        let found = pattern::expand(self.source, pattern);
        for path in found.paths {
            self.file(&path, limit, keep);
        }
        for (directory, why) in found.refused {
            let below = format!("{directory}/");
            if self.tree.iter().all(|(path, _)| !path.starts_with(&below))
                && let Some(node) = self.refusal(&directory, why)
            {
                self.tree.insert(&directory, node);
            }
        }
    }

    pub(super) fn file(&mut self, path: &str, limit: Bytes, keep: impl Fn(&[u8]) -> Kept) {
        self.put(path, self.source.bytes_within(path, limit).map(|bytes| keep(&bytes)));
    }

    /// What is kept of a file that was read already.
    pub(super) fn put(&mut self, path: &str, read: Reading<Kept>) {
        let node = match read {
            Reading::Known(kept) => {
                if kept.is_idle {
                    return;
                }
                kept.left_out.into_iter().for_each(|what| self.leave_out(path, &what));
                self.within_budget(path, kept.bytes)
            }
            Reading::Unread(why) => match self.refusal(path, why) {
                Some(node) => node,
                None => return,
            },
        };
        self.tree.insert(path, node);
    }

    /// Its existence is a fact even if nothing is in it.
    pub(super) fn directory(&mut self, path: &str) {
        match self.source.list(path) {
            Reading::Known(_) => self.tree.insert(path, Node::Dir),
            Reading::Unread(why) if why.unread == Cause::Denied => self.tree.insert(path, Node::Denied),
            Reading::Unread(_) => {}
        }
    }

    pub(super) fn leave_out(&mut self, path: &str, what: &str) {
        self.left_out.insert(format!("{path}: {what}"));
    }

    fn within_budget(&mut self, path: &str, bytes: Vec<u8>) -> Node {
        let take = |left: u64| left.checked_sub(bytes.len() as u64);
        match self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take) {
            Ok(_) => Node::File(bytes),
            Err(_) => {
                self.leave_out(path, "all of it, because the capture is full");
                Node::Failed("left out: the capture is full".to_owned())
            }
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

    pub(super) fn finish(mut self) -> Capture {
        let left_out: Vec<String> = self.left_out.into_iter().collect();
        if !left_out.is_empty() {
            let list = left_out.iter().map(|line| format!("{line}\n")).collect::<String>();
            self.tree.insert(LEFT_OUT, Node::File(list.into_bytes()));
        }
        Capture {
            tree: self.tree,
            left_out,
        }
    }
}
