//! PostgreSQL's `huge_pages`: from its arguments or its files.

use model::{Cause, Reading, Unread};

use super::{Kind, Program, Setting};
use crate::config::postgres::Configuration;
use host::Source;

const NAME: &str = "huge_pages";

/// Where a running server takes connections, by its own account (`postmaster.pid` in its data directory).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listens {
    /// TCP port, which is part of the socket's name, too.
    pub port: u16,
    /// The directory of its socket; `None` without one.
    pub socket: Option<String>,
}

pub(super) fn listens(source: &Source, program: &Program, directory: &str) -> Option<Listens> {
    let text = source.text(&format!("/proc/{}/root{directory}/postmaster.pid", program.pid()));
    let lines: Vec<&str> = text.known()?.lines().collect();
    Some(Listens {
        port: lines.get(3)?.trim().parse().ok()?,
        socket: lines
            .get(4)
            .map(|path| path.trim().to_owned())
            .filter(|path| path.starts_with('/')),
    })
}

/// The setting, if it is written anywhere: in the arguments, `postgresql.auto.conf` or `postgresql.conf`, the first that
/// says it.
pub(super) fn huge_pages(source: &Source, program: &Program, kind: Option<Kind>) -> Reading<Option<Setting>> {
    if kind != Some(Kind::Postgres) {
        return Reading::Known(None);
    }
    let arguments = program.arguments.as_ref();
    arguments.and_then(|arguments| match argument(arguments, NAME) {
        Some(value) => Ok(Some(Setting {
            value,
            place: program.file("cmdline"),
        })),
        None => in_files(source, program, &files(arguments)),
    })
}

/// `-c name=value`, `--name=value`.
fn argument(arguments: &[String], name: &str) -> Option<String> {
    arguments.iter().find_map(|argument| {
        let bare = argument.trim_start_matches("-c").trim_start_matches('-');
        pair(bare.trim_start(), name)
    })
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

/// The file that ALTER SYSTEM writes and the server reads last: in `data_directory`, if the configuration file with this text sets it,
/// and else beside that file.
pub fn auto_conf(file: &str, text: &str) -> String {
    let named = text.lines().rev().find_map(|line| pair(line.trim(), "data_directory"));
    let beside = || file.rsplit_once('/').map_or("", |(directory, _)| directory).to_owned();
    let directory = named.filter(|path| path.starts_with('/')).unwrap_or_else(beside);
    format!("{directory}/postgresql.auto.conf")
}

fn in_files(source: &Source, program: &Program, files: &[String]) -> Result<Option<Setting>, Unread> {
    let mut denied = None;
    for path in files {
        match Configuration::read(source, &program.file("root"), path) {
            Ok(read) => {
                if let Some(last) = read.settings.last(NAME) {
                    return Ok(Some(Setting {
                        value: last.value.clone(),
                        place: last.place.clone(),
                    }));
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
