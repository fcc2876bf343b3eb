//! The groups of option files: which of them the server reads, and where each counts.

use std::collections::BTreeMap;

use super::conf::{Options, decides, is_loose, pair, refused};
use crate::config::Setting;
use crate::config::files::Line;
use crate::config::given::is_template;
use crate::config::includes::{Include, Reader};

/// Whose group it is.
#[derive(Clone, PartialEq, Eq)]
enum Group {
    /// Before the first one, in a file that no other includes.
    None,
    Server,
    /// Of a server of one version, such as `8.0`.
    OfVersion(String),
    /// Of one of several servers: `1` of `[mysqld1]`, `@a` of `[mysqld@a]`, `.a` of `[mariadb.a]`.
    OfInstance(String),
    /// The script that starts the server.
    Safe,
    Other,
}

/// A file begins in no group, and the one that includes it goes on in its own.
#[derive(Default)]
pub(super) struct Groups {
    /// By depth.
    groups: Vec<Group>,
    /// The end of the names of the server's own groups.
    suffix: String,
    /// The version of the server that is installed, where that is known.
    installed: Option<(u32, u32)>,
    /// The places of settings that decide, by the version whose server alone reads them.
    versions: BTreeMap<String, Vec<String>>,
    options: Options,
}

/// What mysqld_safe of Percona Server writes to the THP policy before it starts the server: the one setting of its group that is kept.
const THP_SETTING: &str = "thp_setting";

impl Reader for Groups {
    const COMMENT: &'static [char] = &['#', ';'];

    fn begin(&mut self, depth: usize) {
        self.groups.truncate(depth);
        self.groups.push(if depth == 0 { Group::None } else { Group::Other });
    }

    fn line(&mut self, depth: usize, line: Line<'_>) -> Option<Include> {
        self.groups.truncate(depth + 1);
        if let Some(order) = line.text.strip_prefix('!') {
            return self.include(order, &line);
        }
        match line.text.strip_prefix('[').map(|group| group.split_once(']')) {
            Some(Some((name, _))) => {
                let name = name.trim().to_ascii_lowercase();
                self.groups[depth] = Group::of(&name, &self.suffix);
                self.options.names_mariadb |= name.starts_with("mariadb");
            }
            Some(None) => self.options.refused.push(line.garbled("`[group]`")),
            None => self.option(depth, &line),
        }
        None
    }
}

impl Groups {
    pub(super) fn of(suffix: &str, installed: Option<(u32, u32)>) -> Self {
        Self {
            installed,
            suffix: suffix.to_ascii_lowercase(),
            ..Self::default()
        }
    }

    fn include(&mut self, order: &str, line: &Line<'_>) -> Option<Include> {
        let (order, path) = order.split_once(char::is_whitespace)?;
        let path = path.trim().to_owned();
        let include = match order {
            "include" => Include::File(path.clone()),
            "includedir" => Include::Directory(path.clone(), ".cnf"),
            _ => return None,
        };
        self.options.includes.push(line.setting(order, path));
        Some(include)
    }

    fn option(&mut self, depth: usize, line: &Line<'_>) {
        if let Group::OfVersion(version) = &self.groups[depth]
            && self.is_other(version)
        {
            return;
        }
        let settings = &mut self.options.settings.0;
        match (&self.groups[depth], pair(line.text)) {
            (Group::Other, _) => {}
            (Group::Safe, pair) => {
                let thp = pair.filter(|(name, _)| name == THP_SETTING);
                settings.extend(thp.map(|(name, value)| line.setting(name, value)));
            }
            // The server ends at the first; a template has lines of its own.
            (Group::None, _) => {
                if !is_template(line.text) {
                    self.groups[depth] = Group::Other;
                    let wanted = "a line below a `[group]`: the server does not start with it";
                    self.options.refused.push(line.garbled(wanted));
                }
            }
            (_, None) => self.options.refused.push(line.garbled("`name` or `name = value`")),
            (group, Some((name, value))) => {
                let setting = line.setting(name, value);
                self.options.refused.extend(refused(&setting, is_loose(line.text)));
                if let Group::OfInstance(name) = group {
                    self.options.instances.entry(name.clone()).or_default().push(setting);
                    return;
                }
                if let Group::OfVersion(version) = group
                    && decides(&setting.name)
                {
                    let places = self.versions.entry(version.clone()).or_default();
                    places.push(setting.place.clone());
                }
                settings.push(setting);
            }
        }
    }

    fn is_other(&self, version: &str) -> bool {
        self.installed
            .is_some_and(|(major, minor)| version != format!("{major}.{minor}"))
    }

    /// What was read. Of groups of several versions the server reads those of one, and no file says of which.
    pub(super) fn options(self) -> Options {
        let (mut options, versions) = (self.options, self.versions);
        let mut places = versions.values().flatten();
        if let (true, Some(first)) = (versions.len() > 1, places.next()) {
            let names = versions.keys().map(String::as_str).collect::<Vec<_>>().join(" and ");
            let why = format!(
                "groups of {names} set the server's pages: its version decides which of them counts, and no file names it, so none is judged"
            );
            options.undecided = Some(format!("{first}: {why}"));
            let is_of_one = |set: &Setting| versions.values().flatten().any(|place| *place == set.place);
            options.settings.0.retain(|set| !is_of_one(set));
        }
        options
    }
}

impl Group {
    /// A server with a suffix reads its groups under that name too.
    fn of(name: &str, suffix: &str) -> Self {
        let own = name.strip_suffix(suffix).filter(|_| !suffix.is_empty());
        match own.map(Self::named) {
            Some(group @ (Self::Server | Self::OfVersion(_))) => group,
            _ => Self::named(name),
        }
    }

    fn named(name: &str) -> Self {
        match name {
            "mysqld_safe" | "safe_mysqld" | "mariadbd-safe" | "mariadb_safe" => Self::Safe,
            "server" | "client-server" | "galera" => Self::Server,
            _ => {
                let ends = ["mysqld", "mariadb", "mariadbd"].iter();
                let ends = ends.filter_map(|base| name.strip_prefix(base));
                ends.map(Self::by_end)
                    .find(|group| *group != Self::Other)
                    .unwrap_or(Self::Other)
            }
        }
    }

    /// By what follows the server's name: `mysqld`, `mysqld-8.0`, `mysqld1`; not `mysqldump`.
    fn by_end(end: &str) -> Self {
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
        let is_version = |text: &str| {
            text.split_once('.')
                .is_some_and(|(one, two)| is_number(one) && is_number(two))
        };
        match end.strip_prefix('-') {
            Some(version) if is_version(version) => Self::OfVersion(version.to_owned()),
            None if end.is_empty() => Self::Server,
            None if is_number(end) || end.starts_with(['@', '.']) => Self::OfInstance(end.to_owned()),
            _ => Self::Other,
        }
    }
}
