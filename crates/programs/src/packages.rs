//! The version of a server, as the packages of its machine have it.

use model::{Cause, Reading, Unread};

use super::glibc;
use host::Source;

/// What dpkg knows of all packages.
pub(crate) const STATUS: &str = "/var/lib/dpkg/status";

/// Is a package one of these? Debian's names may end with the version: `mariadb-server-core-10.6`.
fn is_one(package: &str, names: &[&str]) -> bool {
    names.iter().any(|name| {
        let end = package.strip_prefix(name);
        end.is_some_and(|end| {
            end.is_empty() || end.starts_with('-') && end[1..].starts_with(|c: char| c.is_ascii_digit())
        })
    })
}

/// The paragraphs of dpkg's status about packages with these names that are installed.
pub(crate) fn installed<'t>(text: &'t str, names: &[&str]) -> impl Iterator<Item = &'t str> {
    text.split("\n\n").filter(|block| {
        let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name));
        let is_gone = |status: &str| status.ends_with(" config-files") || status.ends_with(" not-installed");
        !field("Status: ").is_some_and(is_gone) && field("Package: ").is_some_and(|package| is_one(package, names))
    })
}

/// The version of the first package with one of these names, below `root`.
pub(crate) fn version(source: &Source, root: &str, names: &[&str]) -> Reading<(u32, u32)> {
    let status = format!("{root}{STATUS}");
    source.bytes(&status).and_then(|bytes| {
        let text = String::from_utf8_lossy(&bytes);
        let version = installed(&text, names).find_map(|block| {
            let version = block.lines().find_map(|line| line.strip_prefix("Version: "))?;
            // Debian's has an epoch before it.
            glibc::pair(version.rsplit(':').next()?)
        });
        version.ok_or_else(|| Unread::new(Cause::Absent, status, "no package of that server is in it"))
    })
}
