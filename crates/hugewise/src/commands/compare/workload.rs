//! Recipes: workloads that come with the program, built into the user's cache where they need it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use lab::compare::live::Server;
use lab::compare::program;
use serde::Deserialize;

use super::{PATIENCE, Task};

/// A recipe as it stands in `workloads/NAME/recipe.toml`. In its texts `{dir}` is the folder that holds the recipe's files.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Recipe {
    /// What it does, in a sentence.
    #[allow(dead_code)] // for the reader of the file
    about: String,
    /// Programs that must be on PATH, with what to install.
    needs: Vec<Need>,
    /// Commands of the shell that make what it runs, once.
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
            include_str!(concat!("../../../../../workloads/", $name, "/recipe.toml")),
            &[$(($file, include_str!(concat!("../../../../../workloads/", $name, "/", $file)))),*],
        )
    };
}

/// All recipes that come with the program.
const RECIPES: [Carried; 5] = [
    carried!("memtest", "memtest.c"),
    carried!("redis"),
    carried!("python", "graph.py"),
    carried!("sqlite", "join.sql"),
    carried!("compile", "generate.sh"),
];

/// Makes a recipe ready to run.
pub(super) fn prepare(name: &str) -> anyhow::Result<Task> {
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
    let folder = cache().join(format!("{name}-{}", env!("CARGO_PKG_VERSION")));
    build(&folder, &recipe, files).with_context(|| format!("--workload {name}: in {}", folder.display()))?;
    recipe.task(&folder)
}

impl Recipe {
    fn task(self, folder: &Path) -> anyhow::Result<Task> {
        let at = |text: &str| text.replace("{dir}", &folder.to_string_lossy());
        let asked: Result<Vec<_>, String> = self.metrics.iter().map(|metric| at(metric).parse()).collect();
        let server = self.server.map(|serve| Server {
            ready: serve.ready.as_deref().map(at),
            patience: PATIENCE,
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

/// Writes the files and builds; a marker says that this was done.
fn build(folder: &Path, recipe: &Recipe, files: &[(&str, &str)]) -> anyhow::Result<()> {
    let marker = folder.join("built");
    let made: String = files
        .iter()
        .map(|(_, text)| *text)
        .chain(recipe.build.iter().map(String::as_str))
        .collect();
    if std::fs::read_to_string(&marker).is_ok_and(|text| text == made) {
        return Ok(());
    }
    std::fs::create_dir_all(folder)?;
    for (name, text) in files {
        std::fs::write(folder.join(name), text)?;
    }
    for line in &recipe.build {
        let made = Command::new("/bin/sh")
            .args(["-c", line])
            .current_dir(folder)
            .output()?;
        if !made.status.success() {
            bail!(
                "`{line}` ended with {}: {}",
                made.status,
                String::from_utf8_lossy(&made.stderr).trim()
            );
        }
    }
    Ok(std::fs::write(marker, made)?)
}

fn cache() -> PathBuf {
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(home);
    cache.unwrap_or_else(std::env::temp_dir).join("hugewise/workloads")
}

#[cfg(test)]
mod tests {
    use super::{RECIPES, Recipe, prepare};
    use std::path::Path;

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
        let error = prepare("oracle").err().expect("unknown").to_string();
        assert!(error.contains("memtest, redis, python, sqlite, compile"), "{error}");
    }
}
