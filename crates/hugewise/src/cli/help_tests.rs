//! Every command has examples that parse, and its short help fits a screen.

use clap::{Command, Parser};
use model::compare::Metric;

use super::{Cli, EXAMPLES, command, examples};

/// Visits every command below `command` that a user can run.
fn each(command: &Command, path: &str, visit: &mut impl FnMut(&str, &Command)) {
    for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
        let path = format!("{path} {}", below.get_name()).trim_start().to_owned();
        visit(&path, below);
        each(below, &path, visit);
    }
}

/// The help of every command, as `-h` and as `--help` show it.
fn helps() -> Vec<(String, String, String)> {
    let mut command = command().term_width(100);
    command.build();
    let mut helps = vec![(
        String::new(),
        command.render_help().to_string(),
        command.render_long_help().to_string(),
    )];
    each(&command, "", &mut |path, below| {
        let mut below = below.clone();
        let short = below.render_help().to_string();
        helps.push((path.to_owned(), short, below.render_long_help().to_string()));
    });
    helps
}

/// The words of a line, as a shell splits them: single quotes are all that the examples use.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![];
    let (mut word, mut started, mut quoted) = (String::new(), false, false);
    for c in line.chars() {
        match c {
            '\'' => (quoted, started) = (!quoted, true),
            ' ' if !quoted => {
                if started {
                    words.push(std::mem::take(&mut word));
                }
                started = false;
            }
            c => {
                word.push(c);
                started = true;
            }
        }
    }
    if started {
        words.push(word);
    }
    words
}

#[test]
fn short_help_fits_a_screen() {
    for (path, short, _) in helps() {
        let lines = short.trim_end().lines().count();
        assert!(lines < 40, "{path} -h has {lines} lines");
        for line in short.lines() {
            assert!(line.chars().count() <= 100, "{path} -h: {line}");
        }
    }
}

#[test]
fn long_help_of_every_command_has_examples_and_names_the_common_options_in_one_line() {
    for (path, _, long) in helps() {
        if path == "options" {
            continue;
        }
        let group = ["measure", "placement", "simulate", "size"].contains(&path.as_str());
        assert!(group || long.contains("Examples:\n"), "{path}");
        assert_eq!(long.matches("hugewise help options").count(), 1, "{path}");
        assert!(!long.contains("--no-color"), "{path}");
    }
}

#[test]
fn the_help_of_compare_names_every_metric() {
    let all = helps();
    let (_, _, long) = all.iter().find(|(path, ..)| path == "compare").expect("its help");
    for name in Metric::ALL.map(Metric::name) {
        assert!(
            long.contains(&format!("{name},")) || long.contains(&format!("{name}.")),
            "{name}"
        );
    }
}

#[test]
fn the_page_of_common_options_has_all_of_them() {
    let page = helps()
        .into_iter()
        .find(|(path, ..)| path == "options")
        .expect("the page")
        .2;
    for option in [
        "--root",
        "--format",
        "--json",
        "--output",
        "--seed",
        "--quiet",
        "--no-color",
        "--yes",
    ] {
        assert!(page.contains(option), "{option}");
    }
}

#[test]
fn examples_are_command_lines_of_their_command() {
    let mut paths = vec![String::new()];
    each(&command(), "", &mut |path, _| paths.push(path.to_owned()));
    for heading in EXAMPLES.lines().filter_map(|line| line.strip_prefix('#')) {
        assert!(paths.iter().any(|path| path == heading.trim()), "no command: {heading}");
    }
    for path in &paths {
        let joined = examples(path).join("\n").replace("\\\n", " ");
        for line in joined.lines() {
            let line = line.trim_start_matches("sudo ").split(" > ").next().unwrap_or_default();
            assert!(line.starts_with("hugewise "), "{line}");
            assert!(
                path.is_empty() || line.contains(path) || line.contains("--root"),
                "{path}: {line}"
            );
            if let Err(error) = Cli::try_parse_from(words(line)) {
                panic!("{line}: {error}");
            }
        }
    }
}

/// clap drops what an option requires where something is given that conflicts with that: then the option itself has to conflict with it.
#[test]
fn an_option_that_would_have_no_effect_is_refused() {
    for line in [
        "simulate host h.toml --overcommit 50%",
        "simulate host h.toml --more 200",
        "simulate host h.toml --draws 9",
        "simulate host h.toml --small-pages a",
        "simulate host --preset minfree --giant-pages a",
        "simulate translation --working-sets 1M --fetches",
        "simulate translation --preset nehalem-ept --trace-format lackey",
        "simulate translation --pages 4K --host-pages 2M",
        "predict --warm-up 5 -- true",
        "predict --trace-format lackey -- true",
        "ps --vmas --user root",
        "report r.json --chart a --metric wall",
        "compare --loads 3 true false",
        "compare --workload redis --stop true",
    ] {
        let words = words(&format!("hugewise {line}"));
        let error = Cli::try_parse_from(words).expect_err(line).to_string();
        let option = line.split(' ').filter(|word| word.starts_with("--") && *word != "--");
        assert!(option.clone().any(|option| error.contains(option)), "{line}: {error}");
        assert!(error.contains("cannot be used with"), "{line}: {error}");
    }
}
