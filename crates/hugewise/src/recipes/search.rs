//! Where the programs of a recipe are: on PATH, or in folders that distributions keep off it.

use std::path::{Path, PathBuf};

use compare::program;
use serde::Deserialize;

/// A program that must be there.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Need {
    pub(crate) program: String,
    /// The package of Debian that brings it.
    pub(crate) install: String,
    /// A folder to look in first; one of its parts may end in `*`, of which the last in order of numbers is taken.
    search: Option<String>,
}

impl Need {
    /// Its path; of one that is on PATH its name.
    pub(super) fn found(&self) -> Option<PathBuf> {
        let folders = self.search.iter().flat_map(|search| folders(search));
        let mut kept_off = folders.map(|folder| folder.join(&self.program));
        kept_off.find(|path| path.is_file()).or_else(|| {
            let found = program::look(self.program.as_ref(), std::env::var_os("PATH").as_deref());
            found.is_ok().then(|| PathBuf::from(&self.program))
        })
    }

    /// Is its place looked for, so that texts may name it?
    pub(super) fn is_named(&self) -> bool {
        self.search.is_some()
    }
}

/// The folders that a pattern stands for, the newest version first.
pub(crate) fn folders(pattern: &str) -> Vec<PathBuf> {
    let Some((above, below)) = pattern.split_once('*') else {
        return vec![PathBuf::from(pattern)];
    };
    let (above, before) = above.rsplit_once('/').unwrap_or((".", above));
    let entries = std::fs::read_dir(above).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| Some(entry.file_name().to_str()?.strip_prefix(before)?.to_owned()));
    let mut names: Vec<String> = names.collect();
    names.sort_by_key(|name| std::cmp::Reverse(name.parse::<f64>().map_or(0, |version| (version * 1000.0) as u64)));
    let below = below.trim_start_matches('/');
    let folders = names.iter();
    let folders = folders.map(|name| Path::new(above).join(format!("{before}{name}")).join(below));
    folders.collect()
}

#[cfg(test)]
mod tests {
    use super::folders;

    #[test]
    fn the_newest_version_comes_first() {
        let temp = tempfile::tempdir().expect("a directory");
        for name in ["9.6", "15", "17", "other"] {
            std::fs::create_dir_all(temp.path().join(name).join("bin")).expect("a directory");
        }
        let found = folders(&format!("{}/*/bin", temp.path().display()));
        let names: Vec<_> = found
            .iter()
            .map(|path| path.strip_prefix(temp.path()).expect("below"))
            .collect();
        assert_eq!(
            names[..3]
                .iter()
                .map(|path| path.display().to_string())
                .collect::<Vec<_>>(),
            ["17/bin", "15/bin", "9.6/bin"]
        );
        assert!(folders("/nonexistent/*/bin").is_empty());
    }
}
