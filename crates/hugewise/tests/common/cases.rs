//! Public cases in fixtures/cases: the inputs of each, and the diagnosis of a machine, of files, or of both.

use std::path::{Path, PathBuf};

use host::{Source, Tree};
use hugewise::commands::diagnosis::diagnose;
use hugewise::results::Doctor;
use programs::Evidence;
use programs::config::Given;
use serde::Deserialize;

/// One way in which a case's inputs are judged, and what is right.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    pub name: String,
    pub root: Option<String>,
    #[serde(default)]
    pub files: Vec<String>,
    /// Rules that find something.
    #[serde(default)]
    pub found: Vec<String>,
    /// Rules that find nothing.
    #[serde(default)]
    pub absent: Vec<String>,
    /// Rules that say that they could not be judged.
    #[serde(default)]
    pub unjudged: Vec<String>,
    /// What findings and fixes say somewhere.
    #[serde(default)]
    pub says: Vec<String>,
    /// What they say nowhere.
    #[serde(default)]
    pub silent: Vec<String>,
    /// Why the right answer is not reached yet.
    pub open: Option<String>,
    #[serde(skip)]
    pub directory: PathBuf,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    run: Vec<Expected>,
}

pub fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}

/// Every run of every case, in order of name.
pub fn all() -> Vec<Expected> {
    let root = fixtures().join("cases");
    let entries = std::fs::read_dir(&root).expect("fixtures/cases");
    let mut cases: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    cases.sort();
    let runs = |directory: &PathBuf| {
        let file = directory.join("expect.toml");
        let text = std::fs::read_to_string(&file).unwrap_or_else(|why| panic!("{}: {why}", file.display()));
        let case: Case = toml::from_str(&text).unwrap_or_else(|why| panic!("{}: {why}", file.display()));
        let placed = |run: Expected| Expected {
            directory: directory.clone(),
            ..run
        };
        case.run.into_iter().map(placed).collect::<Vec<_>>()
    };
    cases.iter().flat_map(runs).collect()
}

/// What is judged: a machine, files, or both.
#[derive(Clone)]
pub struct Inputs {
    pub name: String,
    pub tree: Option<Tree>,
    /// Names and contents.
    pub files: Vec<(String, Vec<u8>)>,
}

impl Expected {
    /// `07-kubevirt-numa-bind: qemu`.
    pub fn title(&self) -> String {
        let case = self.directory.file_name().expect("a name").to_string_lossy();
        format!("{case}: {}", self.name)
    }

    pub fn inputs(&self) -> Inputs {
        let read = |name: &String| {
            let path = self.directory.join(name);
            std::fs::read(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
        };
        Inputs {
            name: self.title(),
            tree: self.root.as_ref().map(|root| tree(root, &read(root))),
            files: self.files.iter().map(|name| (name.clone(), read(name))).collect(),
        }
    }
}

/// A captured machine.
pub fn tree(name: &str, bytes: &[u8]) -> Tree {
    Tree::parse(name, bytes).unwrap_or_else(|why| panic!("{name}: {why}"))
}

impl Inputs {
    /// The machine; an empty one for files alone.
    pub fn source(&self) -> Source {
        Source::from_tree(&self.name, self.tree.clone().unwrap_or_default())
    }

    /// What `hugewise doctor` says.
    pub fn diagnosis(&self) -> Doctor {
        let mut given = Given::default();
        for (name, bytes) in &self.files {
            // A file whose form is wrong as a whole is refused by name, before any rule.
            drop(given.add(name, bytes, None));
        }
        match self.tree {
            None => Doctor::of(&Evidence::of_files(given)),
            Some(_) => {
                let source = self.source();
                let evidence = Evidence::gather(&source).with_files(given);
                diagnose(&source, &evidence)
            }
        }
    }
}
