//! Recipes are well formed, and what was built before is never run.

use std::path::Path;

use super::build::build;
use super::recipe::{Recipe, Selection};
use super::{NOBODY, RECIPES, choose};

#[test]
fn what_was_built_before_is_never_run() {
    let temp = tempfile::tempdir().expect("a directory");
    let folder = temp.path().join("workloads/planted-1");
    std::fs::create_dir_all(&folder).expect("a directory");
    for planted in ["built", "program", "source", "other"] {
        std::fs::write(folder.join(planted), "planted").expect("a file");
    }
    for _ in 0..2 {
        build(&folder, &["cp source program".to_owned()], &[("source", "carried")]).expect("built");
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

/// Every recipe with each of its variants.
fn all() -> Vec<String> {
    let variants = |(name, text, _): &super::Carried| {
        let table: toml::Table = text.parse().unwrap_or_else(|error| panic!("{name}: {error}"));
        let variants = table
            .get("variants")
            .and_then(toml::Value::as_table)
            .cloned()
            .unwrap_or_default();
        let varied = variants
            .keys()
            .map(|variant| format!("{name}:{variant}"))
            .collect::<Vec<_>>();
        std::iter::once((*name).to_owned()).chain(varied).collect::<Vec<_>>()
    };
    RECIPES.iter().flat_map(variants).collect()
}

#[test]
fn every_recipe_is_well_formed_and_names_only_what_there_is() {
    for name in all() {
        let chosen = choose(&name).unwrap_or_else(|error| panic!("{name}: {error:#}"));
        let recipe = &chosen.recipe;
        assert!(!recipe.about.is_empty() && recipe.build_lines().is_ok(), "{name}");
        for user in [None, Some(NOBODY)] {
            let task = recipe.task(Path::new("/cache/x"), Path::new("/var/tmp/y"), user);
            let task = task.unwrap_or_else(|error| panic!("{name}: {error:#}"));
            let words: Vec<_> = task.command.iter().map(|word| word.to_string_lossy()).collect();
            let words = words.join(" ").replace("{arm}", "");
            assert!(!words.contains('{'), "{name}: {words}");
        }
    }
}

#[test]
fn what_is_chosen_wrongly_is_told_what_there_is() {
    for (typed, part) in [
        ("oracle", "memtest, redis, redis-fork, python"),
        (
            "oltp:tpcc",
            "there is no variant `tpcc` (it has order-entry, reconnect, select-only, tpcb)",
        ),
        ("jbb:heep=1g", "there is no parameter `heep` (it has gc, heap"),
        ("memtest:x", "it has none"),
        ("jbb:heap=1g;reboot", "letters, digits"),
        ("jbb:flip,1g", "expected PARAMETER=VALUE"),
    ] {
        let error = format!("{:#}", choose(typed).expect_err(typed));
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn a_variant_replaces_parameters_and_what_is_typed_replaces_both() {
    let recipe: Recipe = toml::from_str(
        "about = 'a'\nneeds = []\ncommand = ['x', '{size}', '{kind}', '{arm}', 'a{1,2}']\nparameters = { size = '1', kind = 'b' }\n\
         [variants.large]\nparameters = { size = '9' }\n",
    )
    .expect("a recipe");
    let words = |typed: &str| {
        let selection: Selection = typed.parse().expect("a selection");
        let recipe = recipe.clone().chosen(&selection).expect("chosen");
        let task = recipe.task(Path::new(""), Path::new(""), None).expect("a task");
        let words: Vec<String> = task
            .command
            .iter()
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        words.join(" ")
    };
    assert_eq!(words("r"), "x 1 b {arm} a{1,2}");
    assert_eq!(words("r:large"), "x 9 b {arm} a{1,2}");
    assert_eq!(words("r:large,size=7"), "x 7 b {arm} a{1,2}");
    assert_eq!(words("r:kind=c"), "x 1 c {arm} a{1,2}");
}
