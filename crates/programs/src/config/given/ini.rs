//! Files of servers: postgresql.conf, YAML of Patroni, which writes it, and my.cnf.

use std::collections::BTreeMap;
use std::mem::take;

use host::CpuList;
use model::{Bytes, Cause, Unread};

use super::{operators, yaml};
use crate::Kind;
use crate::config::files::said;
use crate::config::includes::Reader;
use crate::config::mysql::{self, Options};
use crate::config::{Setting, Settings};
use crate::postgres::conf::Lines;
use crate::postgres::need::Postgres;
use crate::postgres::value;

/// A server by its configuration file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    pub kind: Kind,
    pub path: String,
    /// What it says, the last one of a name holds.
    pub settings: Settings,
    /// What it says to one of several servers of MySQL, by the end of its group's name.
    pub(super) instances: BTreeMap<String, Vec<Setting>>,
    /// What it includes, by the line that says so.
    pub(super) includes: Vec<Setting>,
    /// Has it a group that MariaDB alone reads?
    pub is_mariadb: bool,
    /// The nodes that its memory has to be on, where what starts it says so.
    pub nodes: Option<CpuList>,
}

impl Server {
    pub(super) fn new(kind: Kind, path: &str, settings: Vec<Setting>) -> Self {
        Self {
            kind,
            path: path.to_owned(),
            settings: Settings(settings),
            instances: BTreeMap::new(),
            includes: Vec::new(),
            is_mariadb: false,
            nodes: None,
        }
    }

    /// Does it ask for huge pages?
    pub fn asks(&self) -> bool {
        self.kind.server().is_some_and(|server| {
            let set = self.settings.last(&server.setting.replace('-', "_"));
            (server.asks)(set.map(|set| set.value.as_str()))
        })
    }

    /// Parameters that it does not have, by a name near one of its own.
    pub(super) fn misspelt(&self) -> Vec<Unread> {
        match self.kind {
            Kind::Postgres => self.settings.iter().filter_map(value::misspelt).collect(),
            _ => Vec::new(),
        }
    }

    /// What decides PostgreSQL's pages.
    ///
    /// # Errors
    /// If it does not start with one of these values.
    pub fn postgres(&self) -> Result<Postgres, Unread> {
        Postgres::of(&self.settings).map_err(|why| Unread::new(Cause::Garbled, &self.path, why.to_string()))
    }

    /// A size of MySQL: `8G`, `134217728`.
    ///
    /// # Errors
    /// Garbled if it is none.
    pub fn mysql_bytes(&self, name: &str) -> Result<Option<Bytes>, Unread> {
        let line = self.settings.last(name);
        let bytes = |line: &Setting| mysql::size(&line.value).ok_or_else(|| line.garbled("a size such as 8G"));
        line.map(bytes).transpose()
    }
}

/// postgresql.conf as the server's scanner takes it.
pub(super) fn postgres(path: &str, text: &str, bad: &mut Vec<Unread>) -> Server {
    let mut lines = Lines::default();
    for line in said(path, text, Lines::COMMENT) {
        lines.line(0, line);
    }
    bad.append(&mut lines.refused);
    Server {
        includes: lines.includes,
        ..Server::new(Kind::Postgres, path, lines.settings)
    }
}

/// Where ALTER SYSTEM writes what holds in the end.
const AUTO_CONF: &str = "postgresql.auto.conf";

/// A path's last two names: of its directory, if there is one, and its own.
fn names(path: &str) -> (Option<&str>, &str) {
    let mut names = path.rsplit('/').filter(|name| !matches!(*name, "" | "."));
    let own = names.next().unwrap_or_default();
    (names.next(), own)
}

/// Does a line include a file? Where the files lie on their machine is not known, so that names decide.
fn has(include: &Setting, file: &str) -> bool {
    let ((_, wanted), (directory, own)) = (names(&include.value), names(file));
    match include.name.as_str() {
        "include_dir" => directory == Some(wanted) && own.ends_with(".conf"),
        "includedir" => directory == Some(wanted) && own.ends_with(".cnf"),
        _ => own == wanted,
    }
}

/// Does a file lie where a line of another one includes it, by the paths of both?
fn is_at(file: &Server, include: &Setting, part: &str) -> bool {
    let directory = |path: &str| path.rsplit_once('/').map_or("", |(directory, _)| directory).to_owned();
    let (base, wanted) = (
        directory(&file.path),
        include.value.trim_start_matches("./").trim_end_matches('/'),
    );
    let wanted = match base.is_empty() || wanted.starts_with('/') {
        true => wanted.to_owned(),
        false => format!("{base}/{wanted}"),
    };
    let is_directory = include.name.ends_with("dir");
    wanted == if is_directory { directory(part) } else { part.to_owned() }
}

/// Files of servers, each with those of them that it includes where it does, and the only one with what ALTER SYSTEM wrote.
pub(super) fn together(files: &[&Server]) -> Vec<Server> {
    let is_auto = |file: &&Server| file.kind == Kind::Postgres && names(&file.path).1 == AUTO_CONF;
    let (auto, others): (Vec<&Server>, Vec<&Server>) = files.iter().copied().partition(is_auto);
    let includes = |file: &Server, other: &Server| {
        file.path != other.path && file.includes.iter().any(|include| has(include, &other.path))
    };
    let is_first = |file: &&Server| !others.iter().any(|other| includes(other, file));
    let firsts: Vec<&Server> = others.iter().copied().filter(is_first).collect();
    // Where each is included by another it is not known which is the first.
    let firsts = if firsts.is_empty() { &others } else { &firsts };
    let whole = firsts.iter().map(|file| whole(file, &others, MOST_DEEP));
    let mut servers: Vec<Server> = whole.flat_map(each).collect();
    match &mut servers[..] {
        [only] => auto
            .iter()
            .for_each(|file| only.settings.0.extend(file.settings.iter().cloned())),
        _ => servers.extend(auto.into_iter().cloned()),
    }
    servers
}

/// The servers of a file: one, or each for which it has groups. Their own hold, as mysqld_multi hands them over as arguments.
fn each(mut file: Server) -> Vec<Server> {
    let instances = take(&mut file.instances);
    if instances.is_empty() {
        return vec![file];
    }
    let one = |(end, own): (String, Vec<Setting>)| {
        let mut one = file.clone();
        one.path = format!("{} [mysqld{end}]", file.path);
        one.settings.0.extend(own);
        one
    };
    instances.into_iter().map(one).collect()
}

/// Files that include each other end here.
const MOST_DEEP: usize = 10;

fn whole(file: &Server, files: &[&Server], deep: usize) -> Server {
    let mut server = file.clone();
    let line = |set: &Setting| {
        let (path, line) = set.place.rsplit_once(':')?;
        line.parse::<usize>().ok().filter(|_| path == file.path)
    };
    for include in file.includes.iter().filter(|_| deep > 0) {
        let mut parts: Vec<&&Server> = files.iter().filter(|part| has(include, &part.path)).collect();
        // Two clusters have directories of one name.
        let is_of_one = |part: &&&Server| {
            let mut own = files.iter();
            own.any(|other| other.includes.iter().any(|include| is_at(other, include, &part.path)))
        };
        parts.retain(|part| is_at(file, include, &part.path) || !is_of_one(part));
        parts.sort_by_key(|part| names(&part.path).1);
        for part in parts.into_iter().filter(|part| part.path != file.path) {
            let part = whole(part, files, deep - 1);
            server.is_mariadb |= part.is_mariadb;
            let behind = |set: &Setting| line(set).is_some_and(|own| Some(own) > line(include));
            for (end, own) in part.instances {
                server.instances.entry(end).or_default().extend(own);
            }
            let settings = &mut server.settings.0;
            let at = settings.iter().position(behind).unwrap_or(settings.len());
            drop(settings.splice(at..at, part.settings.0));
        }
    }
    server
}

/// What files of servers include and is not among them.
pub(super) fn not_given(files: &[Server]) -> impl Iterator<Item = String> {
    let is_missing = move |include: &&Setting| !files.iter().any(|file| has(include, &file.path));
    let missing = files.iter().flat_map(|file| &file.includes).filter(is_missing);
    missing.map(|Setting { place, name, value }| {
        format!(
            "{place}: {name} {value}, which is not among the files: what it sets is not judged (give it with --file)"
        )
    })
}

/// Does a line begin a section that Patroni's YAML has? Its configuration names a scope, that of a cluster (`patronictl show-config`) its intervals.
pub(super) fn is_patroni(text: &str) -> bool {
    let begins = |names: &[&str]| text.lines().any(|line| names.iter().any(|name| line.starts_with(name)));
    begins(&["postgresql:", "bootstrap:"]) && begins(&["scope:", "loop_wait:", "ttl:"])
}

/// Patroni's YAML: parameters of the cluster, then those of the node.
pub(super) fn patroni(path: &str, text: &str) -> Result<Server, Unread> {
    const PARAMETERS: [&[&str]; 2] = [
        &["bootstrap", "dcs", "postgresql", "parameters"],
        &["postgresql", "parameters"],
    ];
    let documents = yaml::documents(path, text)?;
    let nodes = documents
        .iter()
        .flat_map(|node| PARAMETERS.iter().filter_map(|keys| node.at(keys)));
    let set = nodes.flat_map(operators::settings);
    Ok(Server::new(Kind::Postgres, path, set.collect()))
}

/// my.cnf: what the server's groups say.
pub(super) fn mysql(path: &str, text: &str, bad: &mut Vec<Unread>, unresolved: &mut Vec<String>) -> Server {
    let mut options = Options::parse(path, text);
    bad.append(&mut options.refused);
    unresolved.extend(options.undecided);
    Server {
        instances: options.instances,
        includes: options.includes,
        is_mariadb: options.names_mariadb || path.contains("mariadb"),
        ..Server::new(Kind::Mysql, path, options.settings.0)
    }
}
