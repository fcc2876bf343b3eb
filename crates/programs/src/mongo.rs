//! MongoDB, whose advice depends on its version.

use model::{Cause, Reading, Unread};

use super::kind::Known;
use super::{Program, glibc};
use host::Source;

pub(crate) const KNOWN: Known = Known::new("MongoDB", &["mongo", "mongodb"], &["mongod"]);

/// By the variable of the official image, or the package that is installed.
pub(super) fn version(source: &Source, program: &Program) -> Reading<(u32, u32)> {
    let told = program
        .tunables
        .known()
        .and_then(|tunables| glibc::pair(tunables.get("MONGO_VERSION")?));
    match told {
        Some(version) => Reading::Known(version),
        None => packaged(source, "mongodb-org-server"),
    }
}

/// The version of a package in dpkg's status file.
fn packaged(source: &Source, package: &str) -> Reading<(u32, u32)> {
    let status = "/var/lib/dpkg/status";
    source.bytes(status).and_then(|bytes| {
        let text = String::from_utf8_lossy(&bytes);
        let header = format!("Package: {package}\n");
        let after = text
            .split_once(&header)
            .map(|(_, rest)| rest.split("\n\n").next().unwrap_or(rest));
        let line = after.and_then(|block| block.lines().find_map(|line| line.strip_prefix("Version: ")));
        let absent = || Unread::new(Cause::Absent, status, format!("the package {package} is not in it"));
        line.and_then(glibc::pair).ok_or_else(absent)
    })
}
