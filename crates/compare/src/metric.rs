//! Numbers that a program prints: which to look for, where, and which direction is better.

use std::str::FromStr;
use std::sync::Arc;

use model::compare::Metric;
use regex::Regex;

use super::excerpt::excerpt;
use process::KEPT;
use process::rights::ShutIn;

/// A metric that is judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    pub name: String,
    /// Is more of it better?
    pub higher: bool,
}

/// A metric as typed: `NAME`, or `NAME=REGEX[,higher|lower][,from=FILE|cmd:COMMAND]`.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Its name and direction.
    pub wanted: Wanted,
    /// How to find it in a text; `None` for one that every run has.
    pub pattern: Option<Regex>,
    /// Where the text is, if not on standard output.
    pub from: Option<From>,
    /// Whose rights are enough to read it, if not all of this process's.
    pub shut_in: Option<Arc<ShutIn>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum From {
    /// A file, read after the run.
    File(String),
    /// The output of a command of the shell, asked while the program still runs.
    Command(String),
}

impl From {
    /// The place of one arm, whose name stands for `{arm}`.
    pub fn of_arm(&self, arm: &str) -> Self {
        let own = |text: &String| text.replace("{arm}", arm);
        match self {
            Self::File(path) => Self::File(own(path)),
            Self::Command(line) => Self::Command(own(line)),
        }
    }

    /// Has each arm a place of its own? Programs that are alive at once would otherwise write over each other's numbers.
    pub fn is_of_one_arm(&self) -> bool {
        self.of_arm("") != *self
    }

    /// Does the program itself answer, so that it must not have ended or been stopped?
    pub fn asks_the_program(&self) -> bool {
        !matches!(self, Self::File(_))
    }
}

impl FromStr for Asked {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let Some((name, rest)) = text.split_once('=') else {
            return built_in(text);
        };
        // `tps = ([0-9.]+)` is a pattern that begins with the number's name.
        let (name, rest) = match name.trim_end() {
            trimmed if trimmed == name => (name, rest),
            trimmed => (trimmed, text),
        };
        if name.is_empty() || Metric::named(name).is_some() {
            return Err(format!("`{name}` cannot be the name of a metric of your own"));
        }
        let mut pattern = rest;
        let (mut higher, mut from) = (true, None);
        while let Some((before, option)) = pattern.rsplit_once(',') {
            match (option, option.strip_prefix("from=")) {
                ("higher", _) => higher = true,
                ("lower", _) => higher = false,
                (_, Some(url)) if url.starts_with("http://") || url.starts_with("https://") => {
                    return Err(format!(
                        "from={url}: an address is asked by a command (write from=cmd:curl -s {url})"
                    ));
                }
                (_, Some(place)) => {
                    let command = place.strip_prefix("cmd:").map(str::to_owned);
                    from = Some(command.map_or_else(|| From::File(place.to_owned()), From::Command));
                }
                _ => break,
            }
            pattern = before;
        }
        let regex = Regex::new(pattern).map_err(|error| format!("`{pattern}` is not a regular expression: {error}"))?;
        Ok(Self {
            wanted: Wanted {
                name: name.to_owned(),
                higher,
            },
            pattern: Some(regex),
            from,
            shut_in: None,
        })
    }
}

fn built_in(name: &str) -> Result<Asked, String> {
    let names = || Metric::ALL.map(Metric::name).join(", ");
    let metric = Metric::named(name).ok_or_else(|| {
        format!(
            "`{name}` is not a metric (write {}, or NAME=REGEX[,higher|lower][,from=FILE|cmd:COMMAND])",
            names()
        )
    })?;
    Ok(Asked {
        wanted: Wanted {
            name: metric.name().to_owned(),
            higher: false,
        },
        pattern: None,
        from: None,
        shut_in: None,
    })
}

/// The last number that the pattern finds: its first group, or all of it.
///
/// # Errors
/// If nothing matches, or what matches is no number; says what to look at.
pub fn find(pattern: &Regex, text: &str) -> Result<f64, String> {
    let found = pattern.captures_iter(text).last();
    let found = found.ok_or_else(|| {
        let is_long = text.len() as u64 >= KEPT.0;
        let bound = if is_long {
            format!(" (of an output only the last {KEPT} is searched)")
        } else {
            String::new()
        };
        format!("`{pattern}` is nowhere in {}{bound}", excerpt(text))
    })?;
    let number = found.get(1).or_else(|| found.get(0)).map_or("", |part| part.as_str());
    number
        .trim()
        .replace(',', "")
        .parse()
        .map_err(|_| format!("`{pattern}` finds `{number}`, which is no number (put a group around the number)"))
}

#[cfg(test)]
mod tests {
    use super::{Asked, From, find};

    #[test]
    fn a_pattern_may_have_commas_and_options_stand_last() {
        let asked: Asked = "rps=a{1,2}: ([0-9.]+),lower,from=/tmp/x".parse().expect("a metric");
        assert_eq!((asked.wanted.name.as_str(), asked.wanted.higher), ("rps", false));
        assert_eq!(asked.from, Some(From::File("/tmp/x".to_owned())));
        let of_command: Asked = "up=([0-9]+),from=cmd:echo 5 {arm}".parse().expect("a metric");
        let place = of_command.from.expect("a place").of_arm("thp");
        assert_eq!(place.text(None, &|| false).as_deref(), Ok("5 thp\n"));
        let pattern = asked.pattern.expect("a pattern");
        assert_eq!(find(&pattern, "a: 1\naa: 2.5\n"), Ok(2.5));
        assert!(
            find(&pattern, "b: 1")
                .expect_err("nothing")
                .contains("ends with `b: 1`")
        );
        let spaced: Asked = "tps = ([0-9.]+)".parse().expect("a metric");
        assert_eq!(spaced.wanted.name, "tps");
        assert_eq!(
            find(&spaced.pattern.expect("a pattern"), "tps = 5.5 (without 9)"),
            Ok(5.5)
        );
        let asked: Asked = "ops=([0-9,]+) ops/s".parse().expect("a metric");
        assert!(asked.wanted.higher && asked.from.is_none());
        assert_eq!(find(&asked.pattern.expect("a pattern"), "1,234 ops/s"), Ok(1234.0));
    }

    #[test]
    fn wrong_metrics_say_what_to_write() {
        for (text, part) in [
            ("speed", "wall, cpu"),
            ("wall=x", "`wall` cannot"),
            ("x=(", "regular expression"),
            (
                "x=[0-9]+,from=http://localhost/x",
                "from=cmd:curl -s http://localhost/x",
            ),
        ] {
            let error = text.parse::<Asked>().expect_err(text);
            assert!(error.contains(part), "{error}");
        }
        let pattern = "x=ops".parse::<Asked>().expect("a metric").pattern.expect("a pattern");
        assert!(find(&pattern, "ops").expect_err("no number").contains("put a group"));
    }
}
