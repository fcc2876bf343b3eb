//! PostgreSQL: its files, its arguments, `huge_pages`, and what it needs.

pub mod conf;
pub mod need;
pub mod value;

use model::{Bytes, Cause, Reading, Unread};

use super::facts::Own;
use super::kind::{Known, Load, Server};
use super::{Listens, Program, Setting, Target};
use crate::config::Settings;
use conf::Configuration;
use host::Source;
pub use value::HugePages;
use value::Value;

const NAME: &str = "huge_pages";

pub(crate) const KNOWN: Known = Known {
    images: &[
        "postgres",
        "postgresql",
        "postgresql-repmgr",
        "postgis",
        "timescaledb",
        "timescaledb-ha",
        "timescaledb-postgis",
        "pgvector",
        "citus",
        "paradedb",
        "spilo",
        "patroni",
        "crunchy-postgres",
        "crunchy-postgres-ha",
        "crunchy-postgres-gis",
        "crunchy-postgres-gis-ha",
        "percona-distribution-postgresql",
        "percona-distribution-postgresql-with-postgis",
        "edb-postgres-advanced",
        "edb-postgres-extended",
        "cloudnative-vectorchord",
        "harbor-db",
        "pgautoupgrade",
        "pgvecto-rs",
        "stolon",
    ],
    server: Some(&Server {
        account: "postgres",
        service: "postgresql.service",
        keys: "file, pages, user, service",
        file: "postgresql.conf",
        setting: NAME,
        on: "huge_pages = on",
        off: "huge_pages = off",
        asking: "huge_pages = try or on",
        // `try` unless it is set.
        asks: |value| value.and_then(HugePages::of) != Some(HugePages::Off),
        value_in: |source, file| {
            let read = Configuration::read(source, "", file)?;
            Ok(read.settings.last(NAME).map(|set| set.value.clone()))
        },
        configuration,
        in_directory: Some(in_directory),
        typed: |_| String::new(),
        load: |at| {
            let at = at("-p ", "-h ");
            Load {
                fill: Some(format!("pgbench{at} -i -s 50 postgres")),
                ready: format!("pg_isready{at}"),
                load: format!("pgbench{at} -n -S -c 2 -T 10 postgres"),
                as_owner: true,
                metric: "tps=tps = ([0-9.]+),higher",
            }
        },
        own,
        set_by: settings_of,
    }),
    ..Known::new(
        "PostgreSQL",
        &["postgres", "postgresql", "pg"],
        &["postgres", "postmaster", "edb-postgres"],
    )
};

/// As its arguments say, or in the directory that it works in.
fn configuration(server: &Target) -> Option<String> {
    let named = files(server.main.arguments.known()?).pop();
    named.or_else(|| Some(format!("{}/postgresql.conf", server.directory.as_ref()?)))
}

/// The configuration file of a data directory: its own, or the one that the last start named.
pub fn in_directory(source: &Source, directory: &str) -> Result<String, String> {
    let directory = directory.trim_end_matches('/');
    let own = format!("{directory}/postgresql.conf");
    match source.text(&own) {
        Reading::Known(_) => return Ok(own),
        Reading::Unread(why) if why.unread == Cause::Denied => {
            return Err(format!("{directory} may not be read by this user (run it with sudo)"));
        }
        Reading::Unread(_) => {}
    }
    let options = format!("{directory}/postmaster.opts");
    let named = source.text(&options).known().and_then(|text| {
        let argument = text.split('"').find_map(|part| part.strip_prefix("config_file="))?;
        Some(argument.to_owned())
    });
    named.ok_or_else(|| format!("{directory} holds no postgresql.conf, and {options} names none: name the file itself"))
}

/// Where a running server takes connections, by its own account (`postmaster.pid` in its data directory).
pub(super) fn listens(source: &Source, program: &Program, directory: &str) -> Option<Listens> {
    let text = source.text(&format!("/proc/{}/root{directory}/postmaster.pid", program.pid()));
    let lines: Vec<&str> = text.known()?.lines().collect();
    Some(Listens {
        port: Some(lines.get(3)?.trim().parse().ok()?),
        socket: lines
            .get(4)
            .map(|path| path.trim().to_owned())
            .filter(|path| path.starts_with('/')),
    })
}

/// `huge_pages`, if it is written anywhere, and all that is: in `postgresql.conf`, `postgresql.auto.conf` or the arguments, the last that
/// says it. Its value is one of the documentation's words, whichever of its other names is written there.
fn own(source: &Source, program: &Program, _: bool) -> Own {
    let mut refused = Vec::new();
    let arguments = program.arguments.known().map_or(&[][..], Vec::as_slice);
    let (set, denied) = in_files(source, program, &files(arguments), &mut refused);
    let settings = set.with(&program.typed());
    let setting = match (settings.last(NAME), denied.or(program.arguments.unread().cloned())) {
        (None, Some(why)) => Reading::Unread(why),
        (set, _) => Reading::Known(set.cloned().map(|set| Setting {
            value: HugePages::of(&set.value).map_or(set.value, |known| known.word().to_owned()),
            ..set
        })),
    };
    Own {
        setting,
        settings,
        refused,
        ..Own::default()
    }
}

/// The setting by which the shared memory of a server is of another type than mmap, and so takes no huge pages (sysv_shmem.c).
pub fn no_mmap(settings: &Settings) -> Option<&Setting> {
    let set = settings.last("shared_memory_type")?;
    (!set.value.eq_ignore_ascii_case("mmap")).then_some(set)
}

/// The size of the pages that a server asks for; `None` for the system's own.
pub fn page(settings: &Settings) -> Option<Bytes> {
    let set = settings.last("huge_page_size")?;
    match value::value(&set.name, &set.value) {
        Ok(Some(Value::Bytes(page))) => Some(page).filter(|page| page.0 > 0),
        _ => None,
    }
}

/// What the arguments of a server set, in their order: `-c name=value`, `-cname=value`, `--name=value`, `-B buffers`, `-N connections`, `-p port`.
pub fn settings_of(arguments: &[String]) -> Vec<(String, String)> {
    let mut set = Vec::new();
    let mut words = arguments.iter().skip(1);
    while let Some(word) = words.next() {
        let mut short = |(option, name): &(&str, &str)| {
            let attached = Some(word.strip_prefix(option)?).filter(|value| !value.is_empty());
            let value = attached.or_else(|| words.next().map(String::as_str))?;
            Some(format!("{name}{value}"))
        };
        let pair = match word.strip_prefix("--") {
            Some(long) => Some(long.to_owned()),
            None => SHORT.iter().find_map(&mut short),
        };
        let pair = pair.and_then(|pair| {
            let (name, value) = pair.split_once('=')?;
            Some((name.replace('-', "_").to_ascii_lowercase(), value.to_owned()))
        });
        set.extend(pair);
    }
    set
}

/// Options of one letter, and the setting that the value is of, unless it names one itself.
const SHORT: [(&str, &str); 4] = [
    ("-c", ""),
    ("-B", "shared_buffers="),
    ("-N", "max_connections="),
    ("-p", "port="),
];

/// The last one of a name holds.
fn argument(arguments: &[String], name: &str) -> Option<String> {
    let set = settings_of(arguments).into_iter().rev();
    set.into_iter().find(|(known, _)| known == name).map(|(_, value)| value)
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
    let named = text.lines().rev().find_map(|line| match value::line(line) {
        Ok((name, value)) if name == "data_directory" => Some(value),
        _ => None,
    });
    let beside = || file.rsplit_once('/').map_or("", |(directory, _)| directory).to_owned();
    let directory = named.filter(|path| path.starts_with('/')).unwrap_or_else(beside);
    format!("{directory}/postgresql.auto.conf")
}

/// What they set, the strongest last, and why one of them could not be read.
fn in_files(
    source: &Source,
    program: &Program,
    files: &[String],
    refused: &mut Vec<Unread>,
) -> (Settings, Option<Unread>) {
    let (mut set, mut denied) = (Settings::default(), None);
    for path in files.iter().rev() {
        match Configuration::read(source, &program.file("root"), path) {
            Ok(mut read) => {
                refused.append(&mut read.refused);
                set = set.with(&read.settings);
            }
            Err(why) if why.unread == Cause::Denied => denied = Some(why),
            Err(_) => {}
        }
    }
    (set, denied)
}

#[cfg(test)]
mod tests {
    use super::{auto_conf, files, in_directory, settings_of};
    use host::{Source, Tree};

    #[test]
    fn a_directory_that_may_not_be_read_is_not_said_to_hold_nothing() {
        let why = |tree: Tree| in_directory(&Source::from_tree("made", tree), "/pg/").expect_err("no file");
        let denied = why(Tree::new().denied("/pg/postgresql.conf"));
        assert!(denied.starts_with("/pg may not be read by this user"), "{denied}");
        assert!(why(Tree::new()).starts_with("/pg holds no postgresql.conf"));
    }

    #[test]
    fn arguments_are_taken_as_getopt_takes_them_and_the_last_one_holds() {
        let words = [
            "postgres",
            "-D",
            "/data",
            "-c",
            "huge_pages=try",
            "-cMax-Connections=7",
            "--huge-pages=off",
            "-B",
            "64",
            "-N5",
            "-i",
            "-c",
        ];
        let words = words.map(str::to_owned);
        let set = settings_of(&words);
        let set: Vec<(&str, &str)> = set
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        assert_eq!(
            set,
            [
                ("huge_pages", "try"),
                ("max_connections", "7"),
                ("huge_pages", "off"),
                ("shared_buffers", "64"),
                ("max_connections", "5")
            ]
        );
        assert_eq!(super::argument(&words, "huge_pages").as_deref(), Some("off"));
        assert_eq!(files(&words), ["/data/postgresql.auto.conf", "/data/postgresql.conf"]);
        let named = auto_conf("/etc/pg/postgresql.conf", "data_directory='/var/lib/pg' # Debian\n");
        assert_eq!(named, "/var/lib/pg/postgresql.auto.conf");
    }
}
