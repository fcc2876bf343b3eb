//! MySQL and MariaDB: their option files and arguments, as the server sees them, and what they need.

pub mod conf;
mod groups;
pub mod need;
mod settings;

use model::{Cause, Unread};

use super::facts::Own;
use super::kind::{Known, Load, Server};
use super::{Listens, Program};
use conf::Options;
use host::Source;
use settings::Innodb;

pub(crate) const KNOWN: Known = Known {
    images: &[
        "mysql",
        "mysql-server",
        "community-server",
        "enterprise-server",
        "percona",
        "percona-server",
        "percona-xtradb-cluster",
        "mariadb",
        "mariadb-galera",
    ],
    server: Some(&Server {
        account: "mysql",
        service: "mysql.service",
        keys: "file, pages, user, service, buffer-pool",
        file: "my.cnf",
        setting: "large-pages",
        on: "large-pages",
        off: "large-pages = OFF",
        asking: "large-pages",
        asks: |value| value.is_some_and(conf::is_on),
        value_in: |source, file| {
            let options = Options::read(source, "", file)?;
            Ok(options.settings.last("large_pages").map(|set| set.value.clone()))
        },
        configuration: |server| server.main.details.as_ref()?.option_file.clone(),
        in_directory: None,
        typed: buffer_pool,
        load: |at| {
            let at = at("--port=", "--socket=");
            Load {
                fill: None,
                ready: format!("mysqladmin{at} ping"),
                load: format!("mysqlslap{at} --auto-generate-sql --concurrency=2 --number-of-queries=20000"),
                as_owner: false,
                metric: "seconds=seconds to run all queries: ([0-9.]+),lower",
            }
        },
        own,
        set_by: conf::set_by,
    }),
    ..Known::new("MySQL", &["mysql", "mariadb", "innodb"], &["mysqld", "mariadbd"])
};

/// Packages of the server, of which a machine has one: of MariaDB, Oracle, Percona and Debian.
pub(crate) const PACKAGES: [&str; 7] = [
    "mariadb-server-core",
    "mariadb-server",
    "mysql-server-core",
    "mysql-community-server-core",
    "mysql-community-server",
    "mysql-server",
    "percona-server-server",
];

/// By its files and its command line.
pub(super) fn listens(program: &Program) -> Option<Listens> {
    let settings = &program.details.as_ref()?.settings;
    let value = |name: &str| settings.last(name).map(|set| &set.value);
    Some(Listens {
        port: value("port").and_then(|port| port.parse().ok()),
        socket: value("socket").cloned(),
    })
}

/// The size that the command line gives the buffer pool.
fn buffer_pool(arguments: &[String]) -> String {
    match Innodb::is_pool_among(arguments) {
        true => format!(",buffer-pool={}", Innodb::of([]).with_options(arguments).pool.exact()),
        false => String::new(),
    }
}

fn own(source: &Source, program: &Program, is_container: bool) -> Own {
    // A capture holds the files of the host alone, so that of a server in a container it has none.
    let root = match source.is_live() {
        true => Some(program.file("root")),
        false => (!is_container).then(String::new),
    };
    let why = || Unread::new(Cause::Absent, "my.cnf", "a capture has no files of containers");
    let arguments = program.arguments.known().map_or(&[][..], Vec::as_slice);
    let files = root.as_deref().ok_or_else(why);
    let mut files = files.and_then(|root| Options::of_server(source, root, arguments));
    let refused = files
        .as_mut()
        .map_or_else(|_| Vec::new(), |options| std::mem::take(&mut options.refused));
    let setting = program
        .arguments
        .as_ref()
        .and_then(|arguments| conf::large_pages(files.as_ref(), (arguments, &program.file("cmdline"))).into_result());
    let typed = program.typed();
    let settings = files
        .as_ref()
        .map_or_else(|_| typed.clone(), |options| options.settings.with(&typed));
    let files = files.ok();
    let is_mariadb = program.is_called_mariadb() || files.as_ref().is_some_and(|options| options.names_mariadb);
    // An option of the command line, on or off, holds before the files.
    let is_by_file = is_mariadb && conf::set_by(arguments).iter().all(|(name, _)| name != "memlock");
    let lock = files
        .as_ref()
        .filter(|_| is_by_file)
        .and_then(|options| conf::memlock(&options.settings));
    let innodb = files.map(|_| Innodb {
        is_mariadb,
        ..Innodb::of(settings.pairs())
    });
    Own {
        setting,
        settings,
        lock,
        option_file: root.and_then(|root| conf::option_file(source, &root, arguments)),
        innodb,
        refused,
    }
}
