//! Recipes for `compare --workload` and `suite`: real programs with the files that they need, carried in the program.

mod build;
pub(crate) mod experiments;
mod own;
mod recipe;
mod search;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use compare::Task;
use compare::metric::Asked;
use host::Input;
use process::rights::{ShutIn, User};

use self::build::{CarriedFile, build};
use self::own::Own;
use self::recipe::{Recipe, Selection};
pub(crate) use self::search::{Need, folders};
use crate::scratch::Scratch;
use crate::trusted::{Use, own_directory};

/// A recipe's name, and its files by name.
type Carried = (&'static str, &'static [(&'static str, &'static str)]);

/// All recipes that come with the program: the folders of `workloads/`, as the build script lists them.
const RECIPES: &[Carried] = include!(concat!(env!("OUT_DIR"), "/recipes.rs"));

/// A recipe with its variant and its parameters.
#[derive(Clone, Debug)]
pub(crate) struct Chosen {
    selection: Selection,
    recipe: Recipe,
    files: Files,
}

#[derive(Clone, Debug)]
enum Files {
    Carried(&'static [(&'static str, &'static str)]),
    /// Beside a recipe of the user's.
    Own(Own),
}

/// A recipe that is ready to run; what it leaves in files is gone with it.
#[derive(Debug)]
pub(crate) struct Workload {
    pub(crate) task: Task,
    scratch: Option<Scratch>,
}

/// Finds the recipe of `NAME[:VARIANT][,PARAMETER=VALUE,..]`, of which the name is a built-in one's, or a path from a folder on.
///
/// # Errors
/// If there is no such recipe, variant or parameter; says which there are.
pub(crate) fn choose(text: &str, folder: &Path) -> anyhow::Result<Chosen> {
    let chosen = || match Own::named(text, folder)? {
        Some((own, rest)) => own_recipe(own, rest),
        None => carried_recipe(text),
    };
    chosen().with_context(|| format!("--workload {text}"))
}

fn own_recipe(own: Own, rest: &str) -> anyhow::Result<Chosen> {
    let recipe = Recipe::parse(&own.file(), &own.text()?)?;
    Chosen::of(format!("{}:{rest}", own.name()).parse()?, recipe, Files::Own(own))
}

fn carried_recipe(text: &str) -> anyhow::Result<Chosen> {
    let selection: Selection = text.parse()?;
    let Some((name, files)) = RECIPES.iter().find(|(known, _)| *known == selection.name) else {
        bail!(
            "there is no such recipe (write {}, or the path of one of your own, as in ./mine)",
            env!("HUGEWISE_RECIPES")
        );
    };
    let written = files.iter().find(|(file, _)| *file == own::RECIPE);
    let recipe = Recipe::parse(
        &format!("workloads/{name}/{}", own::RECIPE),
        written.map_or("", |(_, text)| *text),
    )?;
    Chosen::of(selection, recipe, Files::Carried(files))
}

impl Files {
    fn all(&self) -> anyhow::Result<Vec<CarriedFile>> {
        let carried = |(name, text): &(&'static str, &'static str)| CarriedFile {
            name: name.into(),
            bytes: text.as_bytes().into(),
            is_executable: false,
        };
        match self {
            Self::Carried(files) => Ok(files.iter().map(carried).collect()),
            Self::Own(own) => own.files(),
        }
    }
}

impl Chosen {
    fn of(selection: Selection, recipe: Recipe, files: Files) -> anyhow::Result<Self> {
        Ok(Self {
            recipe: recipe.chosen(&selection)?,
            selection,
            files,
        })
    }

    /// What it does, in a sentence.
    pub(crate) fn about(&self) -> &str {
        &self.recipe.about
    }

    /// What must be said of its numbers.
    pub(crate) fn notice(&self) -> Option<&str> {
        self.recipe.notice.as_deref()
    }

    /// Its metrics, by name: where they read from is settled only once it is set up.
    ///
    /// # Errors
    /// If a metric is none.
    pub(crate) fn metrics(&self) -> anyhow::Result<Vec<Asked>> {
        Ok(self.recipe.task(Path::new(""), Path::new(""), None)?.asked)
    }

    /// The programs that it needs and that are not here.
    pub(crate) fn lacking(&self) -> impl Iterator<Item = &Need> {
        self.recipe.needs.iter().filter(|need| need.found().is_none())
    }

    /// Builds what it runs, in the folder that is given back.
    ///
    /// # Errors
    /// If a program is missing, or the build fails.
    pub(crate) fn build(&self) -> anyhow::Result<PathBuf> {
        let name = &self.selection.name;
        if let Some(Need { program, install, .. }) = self.lacking().next() {
            bail!("--workload {name} needs `{program}` (Debian: apt-get install {install})");
        }
        let cache =
            own_directory(Use::Cache).with_context(|| format!("--workload {name}: it has to be built somewhere"))?;
        let (place, version) = (self.selection.place(), env!("CARGO_PKG_VERSION"));
        let folder = cache.join(format!("workloads/{place}-{version}"));
        let (lines, time) = (self.recipe.build_lines()?, self.recipe.build_time()?);
        build(&folder, &lines, &self.files.all()?, time)
            .with_context(|| format!("--workload {name}: in {}", folder.display()))?;
        Ok(folder)
    }

    /// Makes it ready to run from the folder where it was built. From here on the caller must end in order, as a directory stays
    /// otherwise until the next command.
    ///
    /// # Errors
    /// If it can have no directory for what it writes, or its texts name what there is not.
    pub(crate) fn set_up(&self, folder: &Path) -> anyhow::Result<Workload> {
        let Self { selection, recipe, .. } = self;
        let is_shut_in = recipe.unprivileged && rustix::process::geteuid().is_root();
        let scratch = (recipe.writes() || is_shut_in).then(|| Scratch::take(&selection.name, is_shut_in));
        let scratch = scratch.transpose()?;
        let place = scratch.as_ref().map_or(Path::new(""), |scratch| scratch.path.as_path());
        let task = match scratch.as_ref().and_then(|scratch| Some((scratch, scratch.user?))) {
            Some((scratch, user)) => {
                // What belongs to root can be read by another user there only.
                let folder = scratch.with_files(folder)?;
                recipe.task(&folder, place, Some(&Arc::new(shut_in(scratch, user))))?
            }
            None => recipe.task(folder, place, None)?,
        };
        Ok(Workload { task, scratch })
    }
}

/// All that a program of a recipe has that root must not run.
fn shut_in(scratch: &Scratch, user: User) -> ShutIn {
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
    let home = scratch.path.as_os_str();
    let variables = [
        ("PATH", path),
        ("HOME", home.into()),
        ("TMPDIR", home.into()),
        ("LANG", "C.UTF-8".into()),
    ];
    ShutIn {
        user: Some(user),
        directory: scratch.path.clone(),
        environment: variables.map(|(name, value)| (name.into(), value)).into(),
        accounts: Some(scratch.accounts()),
    }
}

impl Workload {
    /// The logs of garbage collectors that its runs of an arm have left so far.
    pub(crate) fn gc_logs(&self, arm: &str) -> Vec<String> {
        let Some(scratch) = &self.scratch else {
            return Vec::new();
        };
        let beginning = format!("gc-{arm}-");
        let files = std::fs::read_dir(&scratch.path).into_iter().flatten().flatten();
        let logs = files.filter(|entry| entry.file_name().to_string_lossy().starts_with(&beginning));
        let mut logs: Vec<PathBuf> = logs.map(|entry| entry.path()).collect();
        logs.sort();
        let text = |path: PathBuf| match scratch.user {
            Some(user) => Input::Metrics.text_of_user(&path, user.uid).ok(),
            None => Input::Metrics.text(&path).ok(),
        };
        logs.into_iter().filter_map(text).collect()
    }
}
