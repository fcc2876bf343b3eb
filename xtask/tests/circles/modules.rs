//! The modules of a crate, tests aside, and where each name is defined.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use syn::{Attribute, Item};

use super::names::{Taken, taken};

/// Names that lead from one `use` to the next: more would be a circle of them. A module's private ones can be used below it.
const DEPTH: u32 = 8;

/// One module.
pub(crate) struct Module {
    /// From the crate's root.
    pub(crate) path: Vec<String>,
    /// Its file, from the source folder.
    pub(crate) file: String,
    pub(crate) items: Vec<Item>,
}

/// Those of a crate.
#[derive(Default)]
pub(crate) struct Modules(BTreeMap<Vec<String>, Module>);

impl Modules {
    pub(crate) fn of_crate(source: &Path) -> Self {
        let mut modules = Self::default();
        let root = ["lib.rs", "main.rs"]
            .map(|name| source.join(name))
            .into_iter()
            .find(|root| root.exists());
        modules.read(source, &root.expect("a root"), Vec::new());
        modules
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Module> {
        self.0.values()
    }

    fn read(&mut self, source: &Path, file: &Path, path: Vec<String>) {
        let text = std::fs::read_to_string(file).expect("a source file");
        let items = syn::parse_file(&text).expect("Rust").items;
        let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let below = match stem.as_str() {
            "lib" | "main" | "mod" => file.parent().expect("a folder").to_owned(),
            _ => file.with_extension(""),
        };
        let name = file
            .strip_prefix(source)
            .expect("below it")
            .to_string_lossy()
            .into_owned();
        self.take(source, &below, name, path, items);
    }

    fn take(&mut self, source: &Path, below: &Path, file: String, path: Vec<String>, items: Vec<Item>) {
        for item in &items {
            let Item::Mod(module) = item else { continue };
            if is_of_tests(&module.attrs) {
                continue;
            }
            let name = module.ident.to_string();
            let path = [path.clone(), vec![name.clone()]].concat();
            match &module.content {
                Some((_, inside)) => self.take(source, &below.join(&name), file.clone(), path, inside.clone()),
                None => self.read(source, &found(below, &name), path),
            }
        }
        self.0.insert(path.clone(), Module { path, file, items });
    }

    /// Is there such a module?
    pub(crate) fn has(&self, path: &[String]) -> bool {
        self.0.contains_key(path)
    }

    /// The file that defines what a path from the root names, and the name; nothing for a module, or what is of another crate.
    pub(crate) fn definition(&self, path: &[String]) -> Option<(String, String)> {
        self.defined(path, DEPTH)
    }

    fn defined(&self, path: &[String], depth: u32) -> Option<(String, String)> {
        if depth == 0 || self.has(path) {
            return None;
        }
        // `Type::function` is found with its type.
        let long = (0..path.len()).rev().find(|&long| self.has(&path[..long]))?;
        let (module, name) = (&self.0[&path[..long]], &path[long]);
        if module.items.iter().any(|item| defined(item).as_deref() == Some(name)) {
            return Some((module.file.clone(), name.clone()));
        }
        let led = module.items.iter().filter_map(|item| match item {
            Item::Use(item) if !is_of_tests(&item.attrs) => Some(taken(&item.tree)),
            _ => None,
        });
        led.flatten().find_map(|Taken { name: given, path: of }| {
            let of = super::names::absolute(&of, &module.path, self)?;
            let rest = match given.as_str() {
                "*" => &path[long..],
                given if given == name => &path[long + 1..],
                _ => return None,
            };
            self.defined(&[&of, rest].concat(), depth - 1)
        })
    }
}

fn found(below: &Path, name: &str) -> PathBuf {
    let flat = below.join(format!("{name}.rs"));
    if flat.exists() {
        flat
    } else {
        below.join(name).join("mod.rs")
    }
}

pub(crate) fn is_of_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && matches!(&attribute.meta, syn::Meta::List(list) if list.tokens.to_string() == "test")
    })
}

fn defined(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::TraitAlias(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        _ => return None,
    };
    Some(name.to_string())
}
