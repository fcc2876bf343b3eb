//! What was read of a machine: a recording source keeps the files and the directories that it was asked for.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use model::Reading;

/// Everything that was read, by path.
#[derive(Debug, Default)]
pub struct Reads {
    /// The content of files, whole or not read with the reason.
    pub files: BTreeMap<String, Reading<Vec<u8>>>,
    pub directories: BTreeMap<String, Reading<Vec<String>>>,
}

/// Where reads are noted, from several threads.
#[derive(Debug, Default)]
pub(super) struct Log(Mutex<Reads>);

impl Log {
    pub(super) fn file(&self, path: &str, content: &Reading<Vec<u8>>) {
        self.note(|reads| reads.files.insert(path.to_owned(), content.clone()));
    }

    pub(super) fn directory(&self, path: &str, names: &Reading<Vec<String>>) {
        self.note(|reads| reads.directories.insert(path.to_owned(), names.clone()));
    }

    pub(super) fn take(&self) -> Reads {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn note<T>(&self, note: impl FnOnce(&mut Reads) -> T) {
        note(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

#[cfg(test)]
mod tests {
    use crate::{Source, Tree};

    #[test]
    fn what_is_read_is_kept_and_nothing_else() {
        let tree = Tree::new().line("/sys/a", 1).line("/sys/b", 2).denied("/sys/c");
        let source = Source::from_tree("made", tree);
        let reads = source.recorded(|source| {
            let _ = (source.number("/sys/a"), source.text("/sys/c"), source.list("/sys"));
            let _ = source.line("/none");
        });
        let files: Vec<&str> = reads.files.keys().map(String::as_str).collect();
        assert_eq!(files, ["/none", "/sys/a", "/sys/c"]);
        assert_eq!(reads.files["/sys/a"].known().map(Vec::as_slice), Some(&b"1\n"[..]));
        assert!(reads.directories["/sys"].known().is_some());
    }
}
