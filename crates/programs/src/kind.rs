//! Which programs are known: one line each, and what its own module says of it.

use host::Source;
use model::Unread;

use super::facts::Own;
use super::{Area, Program, Target, areas, dpdk, jvm, mongo, mysql, oracle, postgres, redis, vms};

/// What a program is known by.
pub(crate) struct Known {
    /// Its name for users.
    pub(crate) title: &'static str,
    /// Words that mean it on the command line, the one of its goal first.
    pub(crate) words: &'static [&'static str],
    /// Names of executables. The kernel keeps 15 letters of a name, so longer ones are compared up to there.
    pub(crate) executables: &'static [&'static str],
    /// Beginnings of the names of libraries.
    pub(crate) libraries: &'static [&'static str],
    /// Names of container images, without registry, repository, tag and version.
    pub(crate) images: &'static [&'static str],
    /// Does a process have such a name or such arguments, whatever it runs?
    pub(crate) has_signs: fn(&str, &[String]) -> bool,
    pub(crate) is_hypervisor: bool,
    pub(crate) server: Option<&'static Server>,
    /// Options of `compare --live` with which it shows how much it does, where one command suits all of its users and it is known where
    /// it takes connections.
    pub(crate) live: Option<fn(At<'_>) -> Option<String>>,
}

/// Looks for a configuration file in a directory; else why there is none.
type InDirectory = fn(&Source, &str) -> Result<String, String>;
/// Options of a port and of a socket, given what each begins with.
type At<'a> = &'a dyn Fn(&str, &str) -> String;

/// A server whose configuration file a plan may change.
pub struct Server {
    /// The user and the service that it usually runs as.
    pub account: &'static str,
    pub service: &'static str,
    /// What a goal for it may name.
    pub keys: &'static str,
    /// Its file, where that is not known.
    pub file: &'static str,
    /// The setting for huge pages, and how one writes it.
    pub setting: &'static str,
    pub on: &'static str,
    pub off: &'static str,
    /// What would ask for them, where it is set not to.
    pub asking: &'static str,
    /// Does a server ask that has this value of the setting?
    pub asks: fn(Option<&str>) -> bool,
    /// The last value of the setting in a file and what that includes.
    pub value_in: fn(&Source, &str) -> Result<Option<String>, Unread>,
    /// The configuration file of a running server.
    pub configuration: fn(&Target) -> Option<String>,
    /// Where a data directory may stand for its file.
    pub in_directory: Option<InDirectory>,
    /// What its arguments decide and its file does not know, as further keys of a goal.
    pub typed: fn(&[String]) -> String,
    /// Commands that load it.
    pub load: fn(At<'_>) -> Load,
    pub(crate) own: fn(&Source, &Program, bool) -> Own,
    /// What its arguments set, its program first; names as in its files.
    pub(crate) set_by: fn(&[String]) -> Vec<(String, String)>,
}

/// Commands that load a server, for a comparison of its pages.
pub struct Load {
    /// Fills it once.
    pub fill: Option<String>,
    /// Succeeds once it takes connections.
    pub ready: String,
    pub load: String,
    /// Is the server's own user its superuser, who alone may log in by its socket?
    pub as_owner: bool,
    /// What `compare --metric` reads of the load.
    pub metric: &'static str,
}

impl Known {
    pub(crate) const fn new(
        title: &'static str,
        words: &'static [&'static str],
        executables: &'static [&'static str],
    ) -> Self {
        Self {
            title,
            words,
            executables,
            libraries: &[],
            images: &[],
            has_signs: |_, _| false,
            is_hypervisor: false,
            server: None,
            live: None,
        }
    }
}

macro_rules! known {
    ($($kind:ident: $known:expr,)*) => {
        /// A program that has rules of its own for huge pages.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Kind {
            $($kind,)*
        }

        const ALL: &[(Kind, &Known)] = &[$((Kind::$kind, &$known),)*];
    };
}

known! {
    Jvm: jvm::KNOWN,
    Postgres: postgres::KNOWN,
    Oracle: oracle::KNOWN,
    Mysql: mysql::KNOWN,
    Redis: redis::KNOWN,
    Mongo: mongo::KNOWN,
    Qemu: vms::qemu::KNOWN,
    CloudHypervisor: vms::cloud_hypervisor::KNOWN,
    Firecracker: vms::firecracker::KNOWN,
    Dpdk: dpdk::KNOWN,
    Kubelet: Known::new("kubelet", &["kubelet"], &["kubelet"]),
}

fn first(is_it: impl Fn(&Known) -> bool) -> Option<Kind> {
    let found = ALL.iter().find(|(_, known)| is_it(known));
    found.map(|(kind, _)| *kind)
}

impl Kind {
    /// The kind of a process by its short name and its arguments.
    pub(super) fn of(name: &str, arguments: &[String]) -> Option<Self> {
        let program = arguments
            .first()
            .map_or("", |first| first.split([' ', ':']).next().unwrap_or_default());
        let program = program.rsplit('/').next().unwrap_or_default();
        let is_it = |known: &&str| *known == program || known.get(..15).unwrap_or(known) == name;
        first(|known| known.executables.iter().any(is_it))
            .or_else(|| first(|known| (known.has_signs)(name, arguments) || (known.has_signs)(program, &[])))
    }

    /// The kind of a process by the libraries that it mapped, whatever it calls itself: a JVM inside another program, a
    /// program linked with DPDK's environment layer.
    pub(super) fn of_areas(areas: &[Area]) -> Option<Self> {
        let of_kind = |(kind, known): &(Self, &Known)| known.libraries.iter().map(|name| (*name, *kind)).collect();
        let libraries: Vec<_> = ALL.iter().flat_map::<Vec<_>, _>(of_kind).collect();
        areas::known_files(areas, &libraries).next()
    }

    /// The program that a word on the command line means.
    pub fn of_word(word: &str) -> Option<Self> {
        first(|known| known.words.contains(&word))
    }

    /// The server that a word means, and what a plan has to know of it.
    pub fn of_server(word: &str) -> Option<(Self, &'static Server)> {
        let kind = Self::of_word(word)?;
        Some((kind, kind.server()?))
    }

    /// Options of `compare --live` that suit a running program, by its name for users and where it takes connections.
    pub fn live_options(title: &str, at: At<'_>) -> Option<String> {
        first(|known| known.title == title)?.known().live?(at)
    }

    pub(crate) fn of_image(name: &str) -> Option<Self> {
        first(|known| known.images.contains(&name))
    }

    fn known(self) -> &'static Known {
        ALL[self as usize].1
    }

    pub fn server(self) -> Option<&'static Server> {
        self.known().server
    }

    /// The word with which its goal begins.
    pub fn word(self) -> &'static str {
        self.known().words[0]
    }

    /// The name of its program.
    pub(crate) fn executable(self) -> &'static str {
        self.known().executables[0]
    }

    /// Does it run virtual machines?
    pub fn is_hypervisor(self) -> bool {
        self.known().is_hypervisor
    }

    /// Its name for users.
    pub fn title(self) -> &'static str {
        self.known().title
    }
}
