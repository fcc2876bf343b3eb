//! What was read of a machine: a recording source keeps the files and the directories that it was asked for.

use std::collections::BTreeMap;

use model::Reading;

/// Everything that was read, by path.
#[derive(Debug, Default)]
pub struct Reads {
    /// The content of files, whole or not read with the reason.
    pub files: BTreeMap<String, Reading<Vec<u8>>>,
    pub directories: BTreeMap<String, Reading<Vec<String>>>,
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
