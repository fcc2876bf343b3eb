//! MongoDB, whose advice depends on its version.

use model::Reading;

use super::kind::Known;
use super::{Area, Program, glibc, packages};
use host::Source;

pub(crate) const KNOWN: Known = Known::new("MongoDB", &["mongo", "mongodb"], &["mongod"]);

/// Packages of the server: of MongoDB, Percona and Debian.
pub(crate) const PACKAGES: [&str; 4] = [
    "mongodb-org-server",
    "mongodb-enterprise-server",
    "percona-server-mongodb-server",
    "mongodb-server-core",
];

/// By the variable of the official image, the path of its executable, or the package that is installed.
pub(super) fn version(source: &Source, program: &Program, areas: &[Area]) -> Reading<(u32, u32)> {
    let told = program
        .tunables
        .known()
        .and_then(|tunables| glibc::pair(tunables.get("MONGO_VERSION")?));
    let first = program.arguments.known().and_then(|argv| argv.first());
    let mapped = areas.iter().map(|area| &*area.name);
    let mut paths = first.map(String::as_str).into_iter().chain(mapped);
    match told.or_else(|| paths.find_map(in_path)) {
        Some(version) => Reading::Known(version),
        None => packages::version(source, "", &PACKAGES),
    }
}

/// As archives and package managers name directories: `mongodb-linux-x86_64-ubuntu2004-5.0.5`, `mongodb/7.0.14`, `mongodb-ce-6.0.4`.
fn in_path(path: &str) -> Option<(u32, u32)> {
    let directory = path.strip_suffix("/mongod")?;
    let named = &directory[directory.find("mongodb")?..];
    let is_version = |part: &&str| {
        let mut numbers = part.split('.');
        part.contains('.') && numbers.all(|number| number.parse::<u32>().is_ok())
    };
    let mut parts = named.split(['/', '-', '_', '@']);
    parts.find(is_version).and_then(glibc::pair)
}

#[cfg(test)]
mod tests {
    use super::in_path;

    #[test]
    fn directories_of_a_release() {
        for (path, expected) in [
            ("/opt/mongodb-linux-x86_64-ubuntu2004-5.0.5/bin/mongod", Some((5, 0))),
            ("/opt/mongodb-linux-aarch64-rhel90-8.0.3/bin/mongod", Some((8, 0))),
            ("/nix/store/0abc1.2-mongodb-6.0.11/bin/mongod", Some((6, 0))),
            ("/srv/mongodb/7.0.14/bin/mongod", Some((7, 0))),
            ("/usr/bin/mongod", None),
            ("/opt/python-3.8/mongodb/bin/mongod", None),
            ("/opt/mongodb-linux-x86_64-5.0.5/lib/libfips.so", None),
        ] {
            assert_eq!(in_path(path), expected, "{path}");
        }
    }
}
