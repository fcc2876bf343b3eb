//! Recipes are well formed, and what was built before is never run.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::build::{CarriedFile, build};
use super::recipe::{Recipe, Selection};
use super::{RECIPES, choose};

#[test]
fn what_was_built_before_is_never_run() {
    let temp = tempfile::tempdir().expect("a directory");
    let folder = temp.path().join("workloads/planted-1");
    std::fs::create_dir_all(&folder).expect("a directory");
    for planted in ["built", "program", "source", "other"] {
        std::fs::write(folder.join(planted), "planted").expect("a file");
    }
    for _ in 0..2 {
        let source = CarriedFile {
            name: "below/source".into(),
            bytes: b"carried".into(),
            is_executable: true,
        };
        let lines = ["cp below/source program".to_owned()];
        build(&folder, &lines, &[source], Duration::from_secs(60)).expect("built");
        assert_eq!(
            std::fs::read_to_string(folder.join("program")).expect("there"),
            "carried"
        );
        let mode = std::fs::metadata(folder.join("below/source"))
            .expect("there")
            .permissions();
        assert_eq!(mode.mode() & 0o777, 0o700, "an executable file stays one");
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
    let variants = |(name, files): &super::Carried| {
        let (_, text) = files.iter().find(|(file, _)| *file == "recipe.toml").expect("a recipe");
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
        let chosen = choose(&name, Path::new("")).unwrap_or_else(|error| panic!("{name}: {error:#}"));
        let recipe = &chosen.recipe;
        assert!(!recipe.about.is_empty() && recipe.build_lines().is_ok(), "{name}");
        for shut_in in [None, Some(&Arc::default())] {
            let task = recipe.task(Path::new("/cache/x"), Path::new("/var/tmp/y"), shut_in);
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
        ("oracle", "memtest, oltp, python, redis, redis-fork"),
        (
            "oltp:tpcc",
            "there is no variant `tpcc` (it has order-entry, reconnect, select-only, tpcb)",
        ),
        ("jbb:heep=1g", "there is no parameter `heep` (it has gc, heap"),
        ("hash-join:x", "it has none"),
        ("jbb:heap=1g;reboot", "letters, digits"),
        ("jbb:flip,1g", "expected PARAMETER=VALUE"),
    ] {
        let error = format!("{:#}", choose(typed, Path::new("")).expect_err(typed));
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn a_variant_replaces_parameters_and_what_is_typed_replaces_both() {
    let recipe = Recipe::parse(
        "recipe.toml",
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

/// Programs that a bare Debian lacks; which of them its scripts name is searched for as text.
const NOT_IN_DEBIAN: [&str; 34] = [
    "apr-1-config",
    "bc",
    "bzip2",
    "c++",
    "cc",
    "curl",
    "dpkg-source",
    "g++",
    "gcc",
    "git",
    "initdb",
    "java",
    "javac",
    "jq",
    "make",
    "mvn",
    "numactl",
    "perf",
    "perl",
    "pgbench",
    "postgres",
    "ps",
    "psql",
    "python3",
    "redis-benchmark",
    "redis-cli",
    "redis-server",
    "sqlite3",
    "ss",
    "strace",
    "unzip",
    "wget",
    "wrk",
    "xz",
];

#[test]
fn every_recipe_lists_the_programs_that_its_scripts_name() {
    for name in all() {
        let chosen = choose(&name, Path::new("")).expect("a recipe");
        let (recipe, folder) = (&chosen.recipe, Path::new("/cache"));
        let task = recipe.task(folder, Path::new("/scratch"), None).expect("a task");
        let mut lines = recipe.build_lines().expect("lines");
        lines.extend(task.command.iter().map(|word| word.to_string_lossy().into_owned()));
        if let Some(server) = task.server {
            lines.extend(
                [server.ready, Some(server.load), server.check, server.stop]
                    .into_iter()
                    .flatten(),
            );
        }
        let text = lines.join("\n");
        let files = chosen.files.all().expect("files");
        // A script counts if a line runs it.
        let scripts = files.iter().filter(|file| {
            let name = file.name.to_string_lossy();
            name.ends_with(".sh") && text.contains(name.as_ref())
        });
        let scripts: Vec<_> = scripts
            .map(|file| String::from_utf8_lossy(&file.bytes).into_owned())
            .collect();
        let all = std::iter::once(&text).chain(&scripts).flat_map(|text| text.lines());
        let code = all.filter(|line| !line.trim_start().starts_with('#'));
        let words = code.flat_map(|line| line.split(|c: char| !c.is_ascii_alphanumeric() && !"+-_.".contains(c)));
        for word in words.filter(|word| NOT_IN_DEBIAN.contains(word)) {
            let is_listed = recipe.needs.iter().any(|need| need.program == word);
            assert!(is_listed, "{name}: `{word}` is used and not in its needs");
        }
    }
}

const OWN: &str = "\
about = 'a'
needs = [{ program = 'sh', install = 'dash' }]
build = ['cc {size}']
command = ['{dir}/x', '{size}']
metrics = ['rate=([0-9]+),higher']
[parameters]
size = '1'
[server]
load = 'x {scratch} {size}'
[variants.large]
command = ['x', '{size}']
";

#[test]
fn a_mistake_in_a_recipe_is_named_with_its_line_and_what_is_expected() {
    Recipe::parse("own/recipe.toml", OWN).expect("a recipe");
    for (from, to, line, part) in [
        (
            "cc {size}",
            "cc {sice}",
            3,
            "there is no `{sice}` here: expected one of cpus, size",
        ),
        ("cc {size}", "cc {dir}", 3, "expected one of cpus, size"),
        (
            "'{size}']\nm",
            "'{sice}']\nm",
            4,
            "expected one of cpus, dir, scratch, size",
        ),
        (
            "['{dir}/x', '{size}']",
            "[]",
            4,
            "expected the program and its arguments",
        ),
        ("rate=([0-9]+)", "rate=([0-9]+", 5, "is not a regular expression"),
        (
            "rate=([0-9]+),higher",
            "cpus",
            5,
            "`cpus` is not a metric (write wall, cpu",
        ),
        (
            "size = '1'",
            "cpus = '1'\nsize = '1'",
            7,
            "cannot be the name of a parameter",
        ),
        ("x {scratch}", "x {scrach}", 9, "there is no `{scrach}`"),
        ("'x', '{size}'", "'x', '{sice}'", 11, "there is no `{sice}`"),
        ("about", "abuot", 1, "unknown field `abuot`, expected one of `about`"),
        ("build", "build_time = 'soon'\nbuild", 3, "write a number and a unit"),
        ("command = ['{dir}/x', '{size}']\n", "", 1, "missing field `command`"),
    ] {
        let error = Recipe::parse("own/recipe.toml", &OWN.replacen(from, to, 1));
        let error = error.expect_err(to).to_string();
        assert!(
            error.contains("own/recipe.toml") && error.contains(&format!("line {line}")),
            "{to}: {error}"
        );
        assert!(error.contains(part), "{error}");
    }
}
