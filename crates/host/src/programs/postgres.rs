//! PostgreSQL's `huge_pages`: from its arguments or its files.

use model::{Cause, Reading, Unread};

use super::{Kind, Program};
use crate::Source;

const NAME: &str = "huge_pages";

/// The setting, if it is written anywhere: in the arguments, `postgresql.auto.conf` or `postgresql.conf`, the first that
/// says it.
pub(super) fn huge_pages(source: &Source, program: &Program, kind: Option<Kind>) -> Reading<Option<String>> {
    if kind != Some(Kind::Postgres) {
        return Reading::Known(None);
    }
    let arguments = program.arguments.as_ref().into_result();
    let found = arguments.and_then(|arguments| match argument(arguments, NAME) {
        Some(value) => Ok(Some(value)),
        None => in_files(source, program, &files(arguments)),
    });
    found.into()
}

/// `-c name=value`, `--name=value`.
fn argument(arguments: &[String], name: &str) -> Option<String> {
    let plain = |argument: &String| {
        argument
            .trim_start_matches("-c")
            .trim_start_matches('-')
            .trim_start()
            .to_owned()
    };
    arguments.iter().find_map(|argument| pair(&plain(argument), name))
}

/// The files that may hold a setting, the strongest first.
pub(crate) fn files(arguments: &[String]) -> Vec<String> {
    let after = arguments
        .iter()
        .skip_while(|argument| *argument != "-D")
        .nth(1)
        .cloned();
    let joined = || {
        arguments
            .iter()
            .find_map(|argument| argument.strip_prefix("-D").filter(|path| !path.is_empty()))
    };
    let data = after.or_else(|| joined().map(str::to_owned));
    let config = argument(arguments, "config_file");
    let in_data = |file: &str| data.as_ref().map(|data| format!("{data}/{file}"));
    [
        in_data("postgresql.auto.conf"),
        config.or_else(|| in_data("postgresql.conf")),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn in_files(source: &Source, program: &Program, files: &[String]) -> Result<Option<String>, Unread> {
    let mut denied = None;
    for path in files {
        match source
            .bytes(&format!("/proc/{}/root{path}", program.pid()))
            .into_result()
        {
            Ok(bytes) => {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                if let Some(value) = text.lines().rev().find_map(|line| pair(line.trim(), NAME)) {
                    return Ok(Some(value));
                }
            }
            Err(why) if why.unread == Cause::Denied => denied = Some(why),
            Err(_) => {}
        }
    }
    denied.map_or(Ok(None), Err)
}

/// The value in `name = value`, without quotes and what follows a `#`.
fn pair(line: &str, name: &str) -> Option<String> {
    let rest = line.strip_prefix(name)?.trim_start();
    let value = rest
        .strip_prefix('=')
        .unwrap_or(rest)
        .split('#')
        .next()?
        .trim()
        .trim_matches('\'');
    (!value.is_empty()).then(|| value.to_owned())
}
