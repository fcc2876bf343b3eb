//! What a command line asks for, before the machine says which page sizes its paths and defaults mean. Pure.

use model::vms::{Configured, Region};
use model::{Bytes, PageKind};

use host::snapshot::MountTree;

/// Where a piece of memory is to come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Backing {
    /// Anonymous or shared memory, backed by THP where the host's policy allows it.
    #[default]
    Any,
    /// THP, requested explicitly.
    Thp,
    /// hugetlb pages of a size, or of the default size.
    Hugetlb(Option<Bytes>),
    /// A file below some directory; what that is, the mounts say.
    Path(String),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) name: Option<String>,
    pub(crate) memory: Vec<(Bytes, Backing)>,
    /// The host's nodes that each part is bound to, as written; as many as there are parts.
    pub(crate) bound: Vec<Option<String>>,
    pub(crate) prealloc: bool,
    pub(crate) shared: bool,
}

impl Asked {
    /// With the mounts that its process sees, and the default hugetlb page size.
    pub(super) fn resolve(&self, mounts: &MountTree, default: Option<Bytes>) -> Configured {
        let mounted = |path: &String| {
            let mount = mounts.of(path).filter(|mount| mount.kind == "hugetlbfs")?;
            mount.page_size().or(default)
        };
        let region = |(size, from): &(Bytes, Backing)| Region {
            size: *size,
            kind: match from {
                Backing::Any => None,
                Backing::Thp => Some(PageKind::Thp),
                Backing::Hugetlb(page) => page.or(default).map(PageKind::Hugetlb),
                Backing::Path(path) => mounted(path).map(PageKind::Hugetlb),
            },
        };
        Configured {
            memory: self.memory.iter().map(region).collect(),
            prealloc: self.prealloc,
            shared: self.shared,
        }
    }
}

/// `key=value` parts of an option, separated by commas; QEMU writes a comma in a value twice.
pub(crate) fn parts(option: &str) -> Vec<(String, String)> {
    let joined = option.replace(",,", "\u{0}");
    let split = joined.split(',').filter(|part| !part.is_empty());
    split
        .map(|part| {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            (key.to_owned(), value.replace('\u{0}', ","))
        })
        .collect()
}

pub(crate) fn value<'a>(parts: &'a [(String, String)], key: &str) -> Option<&'a str> {
    parts
        .iter()
        .find(|(name, _)| name == key)
        .map(|(_, value)| value.as_str())
}

pub(crate) fn is_on(parts: &[(String, String)], key: &str) -> bool {
    matches!(value(parts, key), Some("on" | "yes" | "true"))
}

/// A size whose unit is `unit` when none is written.
pub(crate) fn size(text: &str, unit: u64) -> Option<Bytes> {
    match text.parse::<u64>() {
        Ok(number) => number.checked_mul(unit).map(Bytes),
        Err(_) => text.parse().ok(),
    }
}

/// Every value of an option that is written `--name value`, `-name value` or `--name=value`.
pub(crate) fn options<'a>(argv: &'a [String], name: &str) -> Vec<&'a str> {
    let mut found = Vec::new();
    let mut words = argv.iter().skip(1);
    while let Some(word) = words.next() {
        let Some(bare) = word.strip_prefix('-') else { continue };
        let bare = bare.strip_prefix('-').unwrap_or(bare);
        if bare == name {
            found.extend(words.next().map(String::as_str));
        } else if let Some(value) = bare.strip_prefix(name).and_then(|rest| rest.strip_prefix('=')) {
            found.push(value);
        }
    }
    found
}
