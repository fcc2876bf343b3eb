//! Carries the recipes of `workloads/` along: each folder with a `recipe.toml` is one, with all its files.

// A build script speaks to Cargo by its standard output.
#![allow(clippy::print_stdout)]

use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let workloads = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads");
    println!("cargo::rerun-if-changed={}", workloads.display());
    let (mut names, mut table) = (Vec::new(), String::new());
    for (folder, files) in recipes(&workloads)? {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let files = files.iter().map(|path| {
            let below = path.strip_prefix(&folder).unwrap_or(path);
            format!("({below:?}, include_str!({path:?})),")
        });
        table += &format!("({name:?}, &[{}]),", files.collect::<String>());
        names.push(name);
    }
    println!("cargo::rustc-env=HUGEWISE_RECIPES={}", names.join(", "));
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    fs::write(out.join("recipes.rs"), format!("&[{table}]"))
}

/// The folders of all recipes, and the files of each.
pub(crate) fn recipes(workloads: &Path) -> io::Result<Vec<(PathBuf, Vec<PathBuf>)>> {
    let folders = entries(workloads)?.into_iter();
    let recipes = folders.filter(|folder| folder.join("recipe.toml").is_file());
    recipes
        .map(|folder| files(&folder).map(|files| (folder, files)))
        .collect()
}

/// All files below a folder but those that were built there.
fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    for path in entries(folder)? {
        if !path.is_dir() {
            all.push(path);
        } else if !path.ends_with("target") && !path.ends_with("__pycache__") {
            all.extend(files(&path)?);
        }
    }
    Ok(all)
}

/// What is in a folder, in order of names; no hidden files.
fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path()));
    let mut paths: Vec<PathBuf> = entries.collect::<io::Result<_>>()?;
    paths.retain(|path| {
        path.file_name()
            .is_some_and(|name| !name.to_string_lossy().starts_with('.'))
    });
    paths.sort();
    Ok(paths)
}
