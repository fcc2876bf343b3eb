//! The names that a module takes from elsewhere in its crate.

use std::collections::BTreeMap;

use syn::visit::{self, Visit};
use syn::{ItemFn, ItemImpl, ItemMod, ItemUse, UseTree, Visibility};

use super::modules::{Module, Modules, is_of_tests};

/// A name, and the path that it stands for.
pub(crate) struct Taken {
    pub(crate) name: String,
    pub(crate) path: Vec<String>,
}

/// What a `use` takes; `*` for all of a module.
pub(crate) fn taken(tree: &UseTree) -> Vec<Taken> {
    let mut all = Vec::new();
    spread(tree, &mut Vec::new(), &mut all);
    all
}

fn spread(tree: &UseTree, before: &mut Vec<String>, all: &mut Vec<Taken>) {
    let mut take = |name: String, last: Option<String>| {
        let path = before.iter().cloned().chain(last).collect();
        all.push(Taken { name, path });
    };
    match tree {
        UseTree::Path(path) => {
            before.push(path.ident.to_string());
            spread(&path.tree, before, all);
            before.pop();
        }
        UseTree::Name(name) if name.ident == "self" => take(before.last().cloned().unwrap_or_default(), None),
        UseTree::Name(name) => take(name.ident.to_string(), Some(name.ident.to_string())),
        UseTree::Rename(name) if name.ident == "self" => take(name.rename.to_string(), None),
        UseTree::Rename(name) => take(name.rename.to_string(), Some(name.ident.to_string())),
        UseTree::Glob(_) => take("*".to_owned(), None),
        UseTree::Group(group) => group.items.iter().for_each(|tree| spread(tree, before, all)),
    }
}

/// A path from the root; nothing if it leads out of the crate.
pub(crate) fn absolute(path: &[String], from: &[String], modules: &Modules) -> Option<Vec<String>> {
    let (first, rest) = path.split_first()?;
    match first.as_str() {
        "crate" => Some(rest.to_vec()),
        "self" => Some([from, rest].concat()),
        "super" => {
            let ups = path.iter().take_while(|word| *word == "super").count();
            let above = from.get(..from.len().checked_sub(ups)?)?;
            Some([above, &path[ups..]].concat())
        }
        _ => {
            let child = [from, std::slice::from_ref(first)].concat();
            modules.has(&child).then(|| [&child, rest].concat())
        }
    }
}

/// The files whose names a module uses, with the names. What it only hands on is none of it.
pub(crate) fn used(module: &Module, modules: &Modules) -> Vec<(String, String)> {
    let mut paths = Paths::default();
    module.items.iter().for_each(|item| paths.visit_item(item));
    let aliases: BTreeMap<&str, &[String]> = paths.uses.iter().map(|taken| (&*taken.name, &*taken.path)).collect();
    let mut all: Vec<Vec<String>> = paths.uses.iter().map(|taken| taken.path.clone()).collect();
    all.extend(paths.paths.iter().map(|path| match aliases.get(path[0].as_str()) {
        Some(of) if path.len() > 1 => [of, &path[1..]].concat(),
        _ => path.clone(),
    }));
    let found = all.iter().filter_map(|path| absolute(path, &module.path, modules));
    found.filter_map(|path| modules.definition(&path)).collect()
}

#[derive(Default)]
struct Paths {
    uses: Vec<Taken>,
    paths: Vec<Vec<String>>,
}

impl<'a> Visit<'a> for Paths {
    fn visit_item_use(&mut self, item: &'a ItemUse) {
        if matches!(item.vis, Visibility::Inherited) && !is_of_tests(&item.attrs) {
            self.uses.extend(taken(&item.tree));
        }
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        let words: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if words.len() > 1 {
            self.paths.push(words);
        }
        visit::visit_path(self, path);
    }

    // A module inside a file is read by itself.
    fn visit_item_mod(&mut self, _: &'a ItemMod) {}

    fn visit_item_fn(&mut self, item: &'a ItemFn) {
        if !is_of_tests(&item.attrs) {
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_item_impl(&mut self, item: &'a ItemImpl) {
        if !is_of_tests(&item.attrs) {
            visit::visit_item_impl(self, item);
        }
    }
}
