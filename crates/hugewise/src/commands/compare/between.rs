//! Shell commands that are compared with each other, as hyperfine's users type them.

use anyhow::{Context, bail};
use compare::Custom;
use model::Warning;
use model::compare::{Arm, Compare, Metric};

use crate::cli::args::{self, Between};

/// A long name would be most of each table.
const LONGEST: usize = 40;
const MOST: usize = 100;
/// The shell, unless another is typed.
const SHELL: &str = "/bin/sh";
/// Seconds of which the start of a shell, about a millisecond, is a large part.
const SHORT: f64 = 0.005;

/// A command with all that is typed for it; parameters have their values.
#[derive(Clone)]
pub(super) struct Typed {
    /// What its arm is called.
    pub(super) name: String,
    /// The name that is typed for it, or the whole command.
    pub(super) command: String,
    pub(super) arm: Custom,
    /// Its parameters.
    pub(super) values: Values,
    /// Run once, after all runs.
    pub(super) cleanup: Option<String>,
}

/// What is compared with each other: the commands typed, each with every value of every parameter; or one command or program twice, where what it
/// differs from itself by is asked for.
pub(super) fn commands(args: &args::Compare) -> anyhow::Result<Vec<Typed>> {
    if args.commands.is_empty() {
        must_not_be_typed(&args.between)?;
    }
    let all = filled(args)?;
    if args.what_can_be_seen.is_some() {
        return with_itself(args, all);
    }
    let names = args.between.command_name.len();
    match all.len() {
        0 => {}
        1 => bail!(
            "one command alone cannot be compared: write a second one in quotes, or --parameter-list (for one program under several page \
             policies: hugewise compare -- {})",
            args.commands[0]
        ),
        count if count > MOST => bail!("{count} commands are more than the {MOST} that can be compared at once"),
        count if names > count => bail!("--command-name: {names} names for {count} commands"),
        _ => {}
    }
    Ok(all)
}

/// Of anything but shell commands these options would do nothing.
fn must_not_be_typed(between: &Between) -> anyhow::Result<()> {
    // All of them, so that a new one is not forgotten.
    let Between {
        command_name,
        no_shell,
        shell,
        prepare,
        conclude,
        cleanup,
        parameter_list,
        parameter_scan,
        // Has no meaning without --parameter-scan.
        parameter_step_size: _,
        export_json,
    } = between;
    let typed = [
        ("--command-name", !command_name.is_empty(), ""),
        ("--no-shell", *no_shell, ""),
        ("--shell", shell.is_some(), ""),
        (
            "--prepare",
            !prepare.is_empty(),
            "; for arms of one program, `before` in --arms-file",
        ),
        (
            "--conclude",
            !conclude.is_empty(),
            "; for arms of one program, `after` in --arms-file",
        ),
        ("--cleanup", !cleanup.is_empty(), ""),
        ("--parameter-list", !parameter_list.is_empty(), ""),
        ("--parameter-scan", !parameter_scan.is_empty(), ""),
        (
            "--export-json",
            export_json.is_some(),
            "; the runs of one program are in --json",
        ),
    ];
    match typed.into_iter().find(|(_, is_typed, _)| *is_typed) {
        None => Ok(()),
        Some((option, _, instead)) => bail!(
            "{option} is for shell commands, and there is none (leave it out, or write each command in quotes without `--`{instead})"
        ),
    }
}

fn with_itself(args: &args::Compare, mut all: Vec<Typed>) -> anyhow::Result<Vec<Typed>> {
    if all.is_empty() && !args.command.is_empty() {
        let words = args.command.iter().map(|word| word.to_string_lossy().into_owned());
        let words: Vec<String> = words.collect();
        all.push(Typed {
            name: shortened(&words.join(" ")),
            command: words.join(" "),
            arm: Custom::of_command(words, None, None),
            values: Vec::new(),
            cleanup: None,
        });
    }
    let Ok([one]) = <[Typed; 1]>::try_from(all) else {
        bail!("--what-can-be-seen takes one program (write: hugewise compare --what-can-be-seen 10m -- ./program)")
    };
    let again = Typed {
        name: format!("{} (2)", one.name),
        cleanup: None,
        ..one.clone()
    };
    Ok(vec![one, again])
}

/// The commands typed, each with every value of every parameter.
fn filled(args: &args::Compare) -> anyhow::Result<Vec<Typed>> {
    let between = &args.between;
    let lines = &args.commands;
    let [prepare, conclude, cleanup] = [
        ("--prepare", &between.prepare),
        ("--conclude", &between.conclude),
        ("--cleanup", &between.cleanup),
    ]
    .map(|(option, given)| one_for_each(option, given, lines.len()));
    let [prepare, conclude, cleanup] = [prepare?, conclude?, cleanup?];
    let mut all: Vec<Typed> = Vec::new();
    let parameters = parameters(between)?;
    let combinations = combinations(&parameters)?;
    must_be_used(&parameters, between, lines)?;
    for (at, line) in lines.iter().enumerate() {
        for values in &combinations {
            let filled = |text: &String| {
                values.iter().fold(text.clone(), |text, (name, value)| {
                    text.replace(&format!("{{{name}}}"), value)
                })
            };
            let line = filled(line);
            if line.trim().is_empty() {
                bail!("an empty command: write each command in quotes");
            }
            let given = between.command_name.get(all.len());
            let name = given.map_or_else(|| shortened(&line), Clone::clone);
            if name.trim().is_empty() {
                bail!("--command-name: an empty name");
            }
            all.push(Typed {
                values: values.clone(),
                name: distinct(&name, &all),
                command: given.unwrap_or(&line).clone(),
                arm: Custom::of_command(
                    words(between, &line)?,
                    prepare[at].map(filled),
                    conclude[at].map(filled),
                ),
                cleanup: cleanup[at].map(filled),
            });
        }
    }
    Ok(all)
}

/// None, one for all, or one for each command.
fn one_for_each<'a>(option: &str, given: &'a [String], commands: usize) -> anyhow::Result<Vec<Option<&'a String>>> {
    match given {
        [] => Ok(vec![None; commands]),
        [one] => Ok(vec![Some(one); commands]),
        each if each.len() == commands => Ok(each.iter().map(Some).collect()),
        each => bail!(
            "{option}: {} for {commands} commands (write one, or one for each command)",
            each.len()
        ),
    }
}

/// Parameters, each with one of its values.
pub(super) type Values = Vec<(String, String)>;

/// A parameter with all of its values.
struct Parameter<'a> {
    option: &'static str,
    name: &'a str,
    values: Vec<String>,
}

fn parameters(between: &Between) -> anyhow::Result<Vec<Parameter<'_>>> {
    let lists = between.parameter_list.chunks_exact(2).map(|list| Parameter {
        option: "--parameter-list",
        name: &list[0],
        values: list[1].split(',').map(str::to_owned).collect(),
    });
    let scan = match &between.parameter_scan[..] {
        [name, from, to] => Some(Parameter {
            option: "--parameter-scan",
            name,
            values: numbers(from, to, &between.parameter_step_size)?,
        }),
        _ => None,
    };
    Ok(lists.chain(scan).collect())
}

/// A parameter that is there twice, or in no command, is a mistake in its name.
fn must_be_used(parameters: &[Parameter<'_>], between: &Between, lines: &[String]) -> anyhow::Result<()> {
    for (at, Parameter { option, name, .. }) in parameters.iter().enumerate() {
        let mut texts = [lines, &between.prepare, &between.conclude, &between.cleanup]
            .into_iter()
            .flatten();
        if parameters[..at].iter().any(|earlier| earlier.name == *name) {
            bail!("{option} {name}: this parameter is there twice");
        }
        if !texts.any(|text| text.contains(&format!("{{{name}}}"))) {
            bail!("{option} {name}: no command has {{{name}}}");
        }
    }
    Ok(())
}

/// Every combination of the values of all parameters; one of none where there are no parameters.
fn combinations(parameters: &[Parameter<'_>]) -> anyhow::Result<Vec<Values>> {
    let mut all: Vec<Values> = vec![Vec::new()];
    for Parameter { name, values, .. } in parameters {
        let with = |before: &Values| {
            let one = |value: &String| [&before[..], &[((*name).to_owned(), value.clone())]].concat();
            values.iter().map(one).collect::<Vec<Values>>()
        };
        all = all.iter().flat_map(with).collect();
        if all.len() > MOST {
            bail!(
                "{} values of parameters are more than the {MOST} commands that can be compared at once",
                all.len()
            );
        }
    }
    Ok(all)
}

/// The numbers of a scan, with as many decimals as were typed.
fn numbers(from: &str, to: &str, step: &str) -> anyhow::Result<Vec<String>> {
    let number = |text: &str| {
        let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
        number.with_context(|| format!("--parameter-scan: expected a number, got `{text}`"))
    };
    let [first, last, by] = [number(from)?, number(to)?, number(step)?];
    if by <= 0.0 || last < first {
        bail!("--parameter-scan: expected MIN below MAX and a step above 0, got {from}, {to} and {step}");
    }
    let decimals = [from, step].map(|text| text.split_once('.').map_or(0, |(_, digits)| digits.len()));
    let decimals = decimals[0].max(decimals[1]);
    let count = ((last - first) / by + 1e-9).floor() as usize + 1;
    Ok((0..count.min(MOST + 1))
        .map(|at| format!("{:.decimals$}", first + at as f64 * by))
        .collect())
}

/// Of commands that hardly take longer than the shell that starts them.
pub(super) fn shell_counts(args: &args::Compare, compared: &Compare) -> Option<Warning> {
    let wall = |arm: &Arm| Some((stats::median(&arm.values(Metric::Wall.name()))?, arm.name.clone()));
    let all = compared.arms.iter().filter_map(wall);
    let (seconds, name) = all.min_by(|one, other| one.0.total_cmp(&other.0))?;
    let is_by_shell = !args.commands.is_empty() && !starts_itself(&args.between);
    (is_by_shell && seconds < SHORT).then(|| {
        let text = format!(
            "`{name}` takes {:.1} ms, and the start of its shell is a part of that, the same in all commands: differences look smaller than they are \
             (-N starts commands without a shell)",
            1000.0 * seconds
        );
        Warning::new("shell-counts", text)
    })
}

fn starts_itself(between: &Between) -> bool {
    between.no_shell || between.shell.as_deref() == Some("none")
}

fn shortened(line: &str) -> String {
    let line = draw::joined(line.split_whitespace(), " ");
    match line.char_indices().nth(LONGEST) {
        None => line,
        Some((end, _)) => format!("{}...", &line[..end]),
    }
}

/// Another name where an earlier command has this one: the same command twice is a comparison with itself.
fn distinct(name: &str, earlier: &[Typed]) -> String {
    let is_free = |name: &String| earlier.iter().all(|other| other.name != *name);
    let numbered = (2..).map(|number| format!("{name} ({number})"));
    std::iter::once(name.to_owned())
        .chain(numbered)
        .find(is_free)
        .unwrap_or_default()
}

fn words(between: &Between, line: &str) -> anyhow::Result<Vec<String>> {
    if starts_itself(between) {
        let words = split(line).with_context(|| format!("--no-shell: `{line}`"))?;
        return match words.is_empty() {
            true => bail!("--no-shell: an empty command"),
            false => Ok(words),
        };
    }
    let shell = between.shell.as_deref().unwrap_or(SHELL);
    let mut words = split(shell).with_context(|| format!("--shell {shell}"))?;
    words.extend(["-c".to_owned(), line.to_owned()]);
    Ok(words)
}

/// Words as a POSIX shell splits them; nothing is replaced, and nothing is a comment.
fn split(line: &str) -> anyhow::Result<Vec<String>> {
    const HASH: &str = "\u{f8ff}";
    let words =
        shlex::split(&line.replace('#', HASH)).context("a quote is not closed, or nothing follows a backslash")?;
    Ok(words.iter().map(|word| word.replace(HASH, "#")).collect())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::{commands, numbers, split};
    use crate::cli::args;

    /// `compare` alone.
    #[derive(Parser)]
    struct Words {
        #[command(flatten)]
        compare: args::Compare,
    }

    fn names(words: &[&str]) -> anyhow::Result<Vec<String>> {
        let args = Words::try_parse_from(["compare"].iter().chain(words))?.compare;
        Ok(commands(&args)?.into_iter().map(|args| args.name).collect())
    }

    #[test]
    fn words_are_split_as_a_shell_does() {
        let of = |line| split(line).expect("words");
        assert_eq!(
            of(r#"a 'b c' "d \"e\" \x" f\ g ''"#),
            ["a", "b c", r#"d "e" \x"#, "f g", ""]
        );
        assert_eq!(of("grep -c #include a#b '#'"), ["grep", "-c", "#include", "a#b", "#"]);
        assert!(of("  ").is_empty());
        assert!(split("'a").is_err());
    }

    #[test]
    fn every_value_of_every_parameter_is_a_command_of_its_own() {
        let of = |words: &[&str]| names(words).expect("commands");
        assert_eq!(of(&["a", "b"]), ["a", "b"]);
        assert_eq!(of(&["a", "a"]), ["a", "a (2)"]);
        assert_eq!(of(&["-n", "x", "a", "b"]), ["x", "b"]);
        assert_eq!(
            of(&["-L", "cc", "gcc,clang", "{cc} {o}", "-L", "o", "0,2"]),
            ["gcc 0", "gcc 2", "clang 0", "clang 2"]
        );
        assert_eq!(
            of(&["-P", "d", "0.3", "0.7", "-D", "0.2", "sleep {d}"]),
            ["sleep 0.3", "sleep 0.5", "sleep 0.7"]
        );
        // A parameter may be one of the preparation alone.
        assert_eq!(of(&["-L", "x", "1,2", "-p", "set {x}", "a"]), ["a", "a (2)"]);
        assert_eq!(numbers("1", "3", "1").expect("numbers"), ["1", "2", "3"]);
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_what_to_write() {
        let error = |words: &[&str]| names(words).expect_err("no sense").to_string();
        assert!(error(&["a"]).contains("hugewise compare -- a"));
        assert!(error(&["-p", "x", "-p", "y", "a", "b", "c"]).contains("--prepare: 2 for 3 commands"));
        assert!(error(&["-P", "x", "3", "1", "a {x}"]).contains("MIN below MAX"));
        assert!(error(&["--arms", "base,thp", "a", "b"]).contains("--arms"));
        assert!(error(&["-L", "y", "1,2", "a {x}"]).contains("--parameter-list y: no command has {y}"));
        assert!(error(&["-L", "x", "1,2", "-P", "x", "1", "2", "a {x}"]).contains("there twice"));
        assert!(error(&["-D", "2", "a", "b"]).contains("--parameter-scan"));
        assert!(error(&["", "b"]).contains("an empty command"));
        assert!(error(&["-n", " ", "a", "b"]).contains("--command-name"));
    }
}
