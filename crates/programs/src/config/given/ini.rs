//! Files of servers: postgresql.conf, YAML of Patroni, which writes it, and my.cnf.

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
        let set = self.settings.iter();
        let settings = Postgres::of(set.map(|set| [set.place.as_str(), &set.name, &set.value]));
        settings.map_err(|why| Unread::new(Cause::Garbled, &self.path, why.to_string()))
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
    Server::new(Kind::Postgres, path, lines.settings)
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
pub(super) fn mysql(path: &str, text: &str, bad: &mut Vec<Unread>) -> Server {
    let mut options = Options::parse(path, text);
    bad.append(&mut options.refused);
    Server {
        is_mariadb: options.names_mariadb || path.contains("mariadb"),
        ..Server::new(Kind::Mysql, path, options.settings.0)
    }
}
