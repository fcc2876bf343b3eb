//! Recipes and experiments in the user's own files: where they are, who could change them, and the files beside a recipe.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use host::Input;
use model::Bytes;

use super::build::CarriedFile;
use crate::trusted::to_be_run;

/// The name of a recipe's file in its directory.
pub(super) const RECIPE: &str = "recipe.toml";
/// The files of a recipe are copied before they are built; large data stay where they are, under their absolute path.
const MOST_FILES: usize = 1000;
const MOST_BYTES: Bytes = Bytes::mib(64);

/// A recipe's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Own {
    file: PathBuf,
}

/// What `--workload` names before its variant and parameters, if that is a path: `./mine:heap=2g` is `./mine`. A word without a slash is
/// a built-in recipe.
fn path(text: &str) -> Option<(&str, &str)> {
    let is_path = |name: &str| name.contains('/') || name.ends_with(".toml") || name == "." || name == "..";
    let (name, _) = text.split_once(':').unwrap_or((text, ""));
    if !is_path(name) {
        return None;
    }
    if Path::new(text).exists() {
        return Some((text, ""));
    }
    Some(text.rsplit_once(':').unwrap_or((text, "")))
}

impl Own {
    /// The one that `--workload` names by its path from a folder on, and its variant and parameters; none if it names a built-in one.
    ///
    /// # Errors
    /// If there is none, or others could change it.
    pub(super) fn named<'t>(text: &'t str, folder: &Path) -> anyhow::Result<Option<(Self, &'t str)>> {
        let named = path(text).map(|(path, rest)| Ok((Self::at(&folder.join(path))?, rest)));
        named.transpose()
    }

    /// The recipe in a directory, or in a file.
    fn at(path: &Path) -> anyhow::Result<Self> {
        let file = match path.is_dir() {
            true => path.join(RECIPE),
            false => path.to_owned(),
        };
        ensure!(
            file.exists(),
            "{}: there is no such file (expected a directory with {RECIPE}, or a file such as mine.toml)",
            file.display()
        );
        Ok(Self {
            file: to_be_run(&file)?,
        })
    }

    /// What errors call it.
    pub(super) fn file(&self) -> String {
        self.file.display().to_string()
    }

    pub(super) fn text(&self) -> anyhow::Result<String> {
        Input::Recipe.text(&self.file).with_context(|| self.file())
    }

    /// A name for its directories, the same each time: two recipes may be called alike.
    pub(super) fn name(&self) -> String {
        let is_recipe = self.file.file_name().is_some_and(|name| name == RECIPE);
        let named = if is_recipe { self.folder() } else { &self.file };
        let name = named.file_stem().unwrap_or_default().to_string_lossy();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
        let plain = name.chars().map(|c| if is_plain(c) { c } else { '-' });
        let plain: String = plain.take(40).collect();
        let mut hasher = DefaultHasher::new();
        self.file.hash(&mut hasher);
        format!("own-{plain}-{:08x}", hasher.finish() as u32)
    }

    /// All that is beside it, but for hidden files.
    ///
    /// # Errors
    /// If it is too much, or others could change any of it.
    pub(super) fn files(&self) -> anyhow::Result<Vec<CarriedFile>> {
        let mut found = Found::default();
        found.collect(self.folder(), Path::new(""))?;
        Ok(found.files)
    }

    fn folder(&self) -> &Path {
        self.file.parent().unwrap_or(&self.file)
    }
}

#[derive(Default)]
struct Found {
    files: Vec<CarriedFile>,
    bytes: u64,
}

impl Found {
    fn collect(&mut self, folder: &Path, below: &Path) -> anyhow::Result<()> {
        let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
        for entry in entries {
            let entry = entry?;
            let (path, name) = (entry.path(), below.join(entry.file_name()));
            if entry.file_name().to_string_lossy().starts_with('.') {
                continue;
            }
            let kind = entry.file_type()?;
            if kind.is_dir() {
                self.collect(&to_be_run(&path)?, &name)?;
            } else if kind.is_file() {
                self.add(&to_be_run(&path)?, name)?;
            } else {
                bail!(
                    "{}: expected a file or a directory (links are not followed)",
                    path.display()
                );
            }
        }
        Ok(())
    }

    fn add(&mut self, path: &Path, name: PathBuf) -> anyhow::Result<()> {
        let metadata = fs::symlink_metadata(path)?;
        self.bytes += metadata.len();
        ensure!(
            self.files.len() < MOST_FILES && self.bytes <= MOST_BYTES.0,
            "{}: a recipe's directory has at most {MOST_FILES} files of {MOST_BYTES} in all (name large files by their absolute path)",
            path.display()
        );
        let bytes = Input::RecipeFile
            .read(path)
            .with_context(|| path.display().to_string())?;
        self.files.push(CarriedFile {
            name,
            bytes: bytes.into(),
            is_executable: metadata.permissions().mode() & 0o100 != 0,
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Own, path};

    #[test]
    fn a_word_is_a_built_in_recipe_and_a_path_is_one_of_one_s_own() {
        for word in ["jbb", "jbb:heap=1g", "compile:httpd,source=/usr/src/httpd", "oltp:tpcb"] {
            assert_eq!(path(word), None, "{word}");
        }
        for (typed, named, rest) in [
            ("./mine", "./mine", ""),
            ("./mine:heap=2g", "./mine", "heap=2g"),
            ("mine/recipe.toml:large,heap=2g", "mine/recipe.toml", "large,heap=2g"),
            ("load.toml", "load.toml", ""),
            (".", ".", ""),
        ] {
            assert_eq!(path(typed), Some((named, rest)), "{typed}");
        }
    }

    #[test]
    fn recipes_that_are_called_alike_have_directories_of_their_own() {
        let temp = tempfile::tempdir().expect("a directory");
        let name = |below: &str| {
            let folder = temp.path().join(below);
            std::fs::create_dir_all(&folder).expect("a directory");
            std::fs::write(folder.join("recipe.toml"), "").expect("a file");
            Own::at(&folder).expect("trusted").name()
        };
        let (one, two) = (name("a/my load"), name("b/my load"));
        assert!(
            one.starts_with("own-my-load-") && two.starts_with("own-my-load-"),
            "{one}"
        );
        assert_ne!(one, two);
        assert_eq!(one, name("a/my load"));
        let error = Own::at(Path::new("/nonexistent/mine")).expect_err("none").to_string();
        assert!(error.contains("expected a directory with recipe.toml"), "{error}");
    }

    #[test]
    fn files_beside_a_recipe_are_carried_and_links_are_refused() {
        let temp = tempfile::tempdir().expect("a directory");
        let folder = temp.path().join("mine");
        std::fs::create_dir_all(folder.join("src/.git")).expect("a directory");
        for name in ["recipe.toml", "src/a.c", "src/.git/b", ".hidden"] {
            std::fs::write(folder.join(name), name).expect("a file");
        }
        let own = Own::at(&folder).expect("trusted");
        let mut names: Vec<_> = own.files().expect("files").into_iter().map(|file| file.name).collect();
        names.sort();
        assert_eq!(names, [Path::new("recipe.toml"), Path::new("src/a.c")]);
        std::os::unix::fs::symlink("/etc/passwd", folder.join("link")).expect("a link");
        let error = own.files().expect_err("refused").to_string();
        assert!(error.contains("links are not followed"), "{error}");
    }
}
