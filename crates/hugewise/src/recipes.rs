//! Recipes: workloads that come with the program, built in the user's own cache before each use.

use std::ffi::OsString;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use compare::live::Server;
use compare::{START_TIMEOUT, Task, program};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use serde::Deserialize;

use crate::helper::{self, Place};
use crate::trusted::{Use, own_directory};

/// The recipes compile one small file at most; a busy machine may take seconds for it.
const BUILD_TIMEOUT: Duration = Duration::from_secs(120);

/// A recipe as it stands in `workloads/NAME/recipe.toml`. In its texts `{dir}` is the folder that holds the recipe's files.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Recipe {
    /// What it does, in a sentence.
    #[allow(dead_code)] // for the reader of the file
    about: String,
    /// Programs that must be on PATH, with what to install.
    needs: Vec<Need>,
    /// Commands of the shell that make what it runs.
    #[serde(default)]
    build: Vec<String>,
    /// The program and its arguments.
    command: Vec<String>,
    /// What is judged.
    #[serde(default)]
    metrics: Vec<String>,
    /// How to use the program if it is a server.
    server: Option<Serve>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Need {
    program: String,
    hint: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Serve {
    ready: Option<String>,
    load: String,
    stop: Option<String>,
}

/// A recipe's name, its text, and its files by name.
type Carried = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

macro_rules! carried {
    ($name:literal $(, $file:literal)*) => {
        (
            $name,
            include_str!(concat!("../../../workloads/", $name, "/recipe.toml")),
            &[$(($file, include_str!(concat!("../../../workloads/", $name, "/", $file)))),*],
        )
    };
}

/// All recipes that come with the program.
const RECIPES: [Carried; 7] = [
    carried!("memtest", "memtest.c"),
    carried!("redis"),
    carried!("python", "graph.py"),
    carried!("sqlite", "join.sql"),
    carried!("compile", "generate.sh"),
    carried!("jbb", "Jbb.java"),
    carried!("hash-join", "join.cpp"),
];

/// Makes a recipe ready to run.
pub(crate) fn prepare(name: &str) -> anyhow::Result<Task> {
    let Some((_, text, files)) = RECIPES.iter().find(|(known, ..)| *known == name) else {
        let names: Vec<&str> = RECIPES.iter().map(|(name, ..)| *name).collect();
        bail!(
            "--workload {name}: there is no such recipe (write {})",
            names.join(", ")
        );
    };
    let recipe: Recipe = toml::from_str(text).with_context(|| format!("workloads/{name}/recipe.toml"))?;
    for need in &recipe.needs {
        let found = program::look(need.program.as_ref(), std::env::var_os("PATH").as_deref());
        found.with_context(|| format!("--workload {name} needs `{}` ({})", need.program, need.hint))?;
    }
    let cache =
        own_directory(Use::Cache).with_context(|| format!("--workload {name}: it has to be built somewhere"))?;
    let folder = cache.join(format!("workloads/{name}-{}", env!("CARGO_PKG_VERSION")));
    build(&folder, &recipe, files).with_context(|| format!("--workload {name}: in {}", folder.display()))?;
    recipe.task(&folder)
}

impl Recipe {
    fn task(self, folder: &Path) -> anyhow::Result<Task> {
        let at = |text: &str| text.replace("{dir}", &folder.to_string_lossy());
        let asked: Result<Vec<_>, String> = self.metrics.iter().map(|metric| at(metric).parse()).collect();
        let server = self.server.map(|serve| Server {
            ready: serve.ready.as_deref().map(at),
            is_daemon: false,
            patience: START_TIMEOUT,
            warm_up: 1,
            loads: 1,
            load: at(&serve.load),
            stop: serve.stop.as_deref().map(at),
        });
        Ok(Task {
            command: self.command.iter().map(|word| OsString::from(at(word))).collect(),
            asked: asked.map_err(anyhow::Error::msg)?,
            server,
        })
    }
}

/// Builds from the files that this program carries, into a fresh directory which then takes its place: nothing that was there
/// before is run.
fn build(folder: &Path, recipe: &Recipe, files: &[(&str, &str)]) -> anyhow::Result<()> {
    let fresh = Fresh::beside(folder)?;
    for (name, text) in files {
        std::fs::write(fresh.0.join(name), text)?;
    }
    for line in &recipe.build {
        let place = Place {
            directory: &fresh.0,
            environment: environment(&fresh.0),
            user: None,
            timeout: BUILD_TIMEOUT,
        };
        let made = helper::run(Path::new("/bin/sh"), &["-c".into(), line.into()], &place);
        let made = made.map_err(anyhow::Error::msg)?;
        if !made.status.success() {
            let complaint = String::from_utf8_lossy(&made.stderr);
            bail!("`{line}` ended with {}: {}", made.status, complaint.trim());
        }
    }
    fresh.takes_the_place_of(folder)
}

/// All that a compiler needs of its user.
fn environment(folder: &Path) -> Vec<(&'static str, OsString)> {
    let own = ["PATH", "HOME"].into_iter();
    let own = own.filter_map(|name| Some((name, std::env::var_os(name)?)));
    own.chain([("TMPDIR", folder.into())]).collect()
}

/// A new directory, removed when it is dropped.
struct Fresh(PathBuf);

impl Fresh {
    fn beside(folder: &Path) -> anyhow::Result<Self> {
        let name = format!("{}.new-{}", folder.display(), std::process::id());
        let fresh = Self(PathBuf::from(name));
        // One that a killed run left under the same number.
        fresh.remove();
        let mut directory = DirBuilder::new();
        directory
            .recursive(true)
            .mode(0o700)
            .create(folder.parent().unwrap_or(folder))?;
        directory.recursive(false).create(&fresh.0)?;
        Ok(fresh)
    }

    /// At once, so that another comparison that uses the directory always finds it. What was there goes with this.
    fn takes_the_place_of(self, folder: &Path) -> anyhow::Result<()> {
        let exchanged = renameat_with(CWD, &self.0, CWD, folder, RenameFlags::EXCHANGE);
        match exchanged {
            Ok(()) => {}
            Err(Errno::NOENT) => std::fs::rename(&self.0, folder)?,
            // A file system that cannot exchange.
            Err(_) => {
                std::fs::remove_dir_all(folder)?;
                std::fs::rename(&self.0, folder)?;
            }
        }
        Ok(())
    }

    fn remove(&self) {
        // What cannot be removed does no harm: the next one has another name.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        self.remove();
    }
}

#[cfg(test)]
mod tests {
    use super::{RECIPES, Recipe, build, prepare};
    use std::path::Path;

    #[test]
    fn what_was_built_before_is_never_run() {
        let temp = tempfile::tempdir().expect("a directory");
        let folder = temp.path().join("workloads/planted-1");
        std::fs::create_dir_all(&folder).expect("a directory");
        for planted in ["built", "program", "source", "other"] {
            std::fs::write(folder.join(planted), "planted").expect("a file");
        }
        let recipe: Recipe = toml::from_str("about = ''\nneeds = []\nbuild = ['cp source program']\ncommand = ['x']\n")
            .expect("a recipe");
        for _ in 0..2 {
            build(&folder, &recipe, &[("source", "carried")]).expect("built");
            assert_eq!(
                std::fs::read_to_string(folder.join("program")).expect("there"),
                "carried"
            );
            let names = std::fs::read_dir(&folder).expect("a list").count();
            assert_eq!(names, 2, "nothing else is left in it");
            let beside = std::fs::read_dir(temp.path().join("workloads"))
                .expect("a list")
                .count();
            assert_eq!(beside, 1, "nothing is left beside it");
        }
    }

    #[test]
    fn every_recipe_is_well_formed_and_refers_to_files_that_it_brings() {
        for (name, text, _) in RECIPES {
            let recipe: Recipe = toml::from_str(text).unwrap_or_else(|error| panic!("{name}: {error}"));
            let task = recipe
                .task(Path::new("/cache/x"))
                .unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(
                task.command.iter().all(|word| !word.to_string_lossy().contains('{')),
                "{name}"
            );
        }
    }

    #[test]
    fn an_unknown_recipe_is_told_which_there_are() {
        let error = prepare("oracle").expect_err("unknown").to_string();
        assert!(
            error.contains("memtest, redis, python, sqlite, compile, jbb, hash-join"),
            "{error}"
        );
    }
}
