//! The kernel's table of mounts, and what of it has huge pages: hugetlbfs, and tmpfs with `huge=`.

use std::collections::BTreeMap;

use model::{Bytes, Reading};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Source;
use crate::membership::with_ancestors;
use crate::parse::memparse;

/// The mounts as the reading process sees them.
pub const MOUNTS: &str = "/proc/self/mounts";

/// One mounted file system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Mount {
    /// Where it is mounted.
    pub target: String,
    /// `hugetlbfs`, `tmpfs`, ...
    pub kind: String,
    /// Mount options as the kernel lists them.
    pub options: Vec<String>,
}

impl Mount {
    /// The value of an option such as `pagesize` or `huge`.
    pub fn option(&self, name: &str) -> Option<&str> {
        self.options
            .iter()
            .find_map(|option| option.strip_prefix(name)?.strip_prefix('='))
    }

    /// The most that a tmpfs takes: `size=524288k`.
    pub fn size(&self) -> Option<Bytes> {
        memparse(self.option("size")?)
    }

    /// The page size of a hugetlbfs mount. Old kernels show it as it was written: `2097152`.
    pub fn page_size(&self) -> Option<Bytes> {
        memparse(self.option("pagesize")?).filter(|size| size.0 > 0)
    }
}

/// hugetlbfs mounts, and tmpfs mounts that ask for huge pages.
pub(super) fn read(source: &Source) -> Reading<Vec<Mount>> {
    let gives_large = |mount: &Mount| match mount.kind.as_str() {
        "hugetlbfs" => true,
        "tmpfs" => mount.option("huge").is_some_and(|huge| huge != "never"),
        _ => false,
    };
    all(source).map(|mounts| mounts.into_iter().filter(gives_large).collect())
}

/// Every mount, in the order in which they were made: of two at one place the later one is on top. A tree that a person made may have the
/// older name, which is a link.
pub fn all(source: &Source) -> Reading<Vec<Mount>> {
    let mounts = all_of(source, MOUNTS);
    let of_link = || Some(all_of(source, "/proc/mounts")).filter(|mounts| mounts.known().is_some());
    match mounts.is_absent() {
        true => of_link().unwrap_or(mounts),
        false => mounts,
    }
}

/// Every mount of a table, in its order.
pub fn all_of(source: &Source, path: &str) -> Reading<Vec<Mount>> {
    source.text(path).map(|table| table.lines().filter_map(mount).collect())
}

/// Mounts by their places, to be asked for what a path lies on: a process may have many of both.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MountTree(BTreeMap<String, Mount>);

impl MountTree {
    /// Those that a process sees, or else those that this one does: a capture has few of the former. Empty if neither could be read.
    pub fn of_process(source: &Source, pid: u32) -> Self {
        let own = all_of(source, &format!("/proc/{pid}/mounts")).into_result();
        Self::new(own.or_else(|_| all(source).into_result()).unwrap_or_default())
    }

    /// Those that this process sees.
    pub fn own(source: &Source) -> Reading<Self> {
        all(source).map(Self::new)
    }

    /// Of two at one place the later one is on top.
    fn new(mounts: Vec<Mount>) -> Self {
        let mounts = mounts.into_iter().map(|mount| (mount.target.clone(), mount));
        Self(mounts.collect())
    }

    /// The innermost mount that a path lies on.
    pub fn of(&self, path: &str) -> Option<&Mount> {
        with_ancestors(path).find_map(|at| self.0.get(if at.is_empty() { "/" } else { at }))
    }
}

/// `DEVICE TARGET KIND OPTIONS 0 0`; other lines are none of ours.
fn mount(line: &str) -> Option<Mount> {
    let mut words = line.split(' ');
    let (_, target, kind, options) = (words.next()?, words.next()?, words.next()?, words.next()?);
    Some(Mount {
        target: unescape(target),
        kind: kind.to_owned(),
        options: options.split(',').map(str::to_owned).collect(),
    })
}

/// Spaces and the like in paths are written in octal: `\040`.
pub(crate) fn unescape(path: &str) -> String {
    let mut pieces = path.split('\\');
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        match piece.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                plain.push(char::from(byte));
                plain += &piece[3..];
            }
            None => plain = format!("{plain}\\{piece}"),
        }
    }
    plain
}
