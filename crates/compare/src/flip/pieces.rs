//! Which PMD ranges of a process can be one huge page each. Pure.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use model::process::MappingPages;
use model::{Backing, Bytes};

/// Which of a process's memory is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Span {
    /// Private anonymous memory that can be written, the heap included.
    Anon,
    /// The heap of brk only.
    Heap,
    /// Code: mappings of files that can be executed.
    Text,
    /// Just these addresses.
    Addresses(Range<u64>),
}

/// Why a span could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no range (write anon, heap, text, or two addresses in hex such as 7f0000000000-7f0040000000)")]
pub struct ParseSpanError(String);

impl FromStr for Span {
    type Err = ParseSpanError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let address = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok();
        match text {
            "anon" => Ok(Self::Anon),
            "heap" => Ok(Self::Heap),
            "text" => Ok(Self::Text),
            other => other
                .split_once('-')
                .and_then(|(start, end)| Some(address(start)?..address(end)?))
                .filter(|range| range.start < range.end)
                .map(Self::Addresses)
                .ok_or_else(|| ParseSpanError(text.to_owned())),
        }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Anon => f.pad("anon"),
            Self::Heap => f.pad("heap"),
            Self::Text => f.pad("text"),
            Self::Addresses(range) => write!(f, "{:x}-{:x}", range.start, range.end),
        }
    }
}

impl Span {
    /// The part of a mapping that is meant; hugetlb pages are large already.
    fn of(&self, mapping: &MappingPages) -> Option<Range<u64>> {
        let whole = mapping.start.0..mapping.end.0;
        let anonymous = mapping.name.is_empty() || mapping.name.starts_with("[anon");
        let private = mapping.perms.ends_with('p');
        let meant = match self {
            Self::Anon => private && mapping.perms.starts_with("rw") && (anonymous || mapping.name == "[heap]"),
            Self::Heap => mapping.name == "[heap]",
            Self::Text => mapping.perms.contains('x') && mapping.name.starts_with('/'),
            Self::Addresses(_) => true,
        };
        let part = match self {
            Self::Addresses(range) => whole.start.max(range.start)..whole.end.min(range.end),
            _ => whole,
        };
        let hugetlb = mapping.flags.iter().any(|flag| flag == "ht");
        (meant && !hugetlb && part.start < part.end).then_some(part)
    }

    /// What backs the mappings that are meant, whole mappings each.
    pub(super) fn backing(&self, mappings: &[MappingPages]) -> Backing {
        let meant = mappings.iter().filter(|mapping| self.of(mapping).is_some());
        let mut sum = Backing::new();
        meant.for_each(|mapping| sum.extend(mapping.backing.iter()));
        sum
    }

    /// What backs the shared memory of the same program, which is not flipped: a heap may be in it, as that of ZGC is. With the name
    /// of its largest mapping; nothing beside memory that was named.
    pub(super) fn shared(&self, mappings: &[MappingPages]) -> Shared {
        let is_meant = |mapping: &&MappingPages| *self == Self::Anon && is_shared_memory(mapping);
        let mut shared = Shared::default();
        let mut largest = Bytes(0);
        for mapping in mappings.iter().filter(is_meant) {
            shared.backing.extend(mapping.backing.iter());
            if mapping.backing.total() > largest {
                largest = mapping.backing.total();
                shared.name.clone_from(&mapping.name);
            }
        }
        shared
    }

    /// First addresses of all PMD ranges that lie whole inside mappings that hold anything at all.
    pub(super) fn pieces(&self, mappings: &[MappingPages], page: Bytes) -> Vec<u64> {
        let used = mappings.iter().filter(|mapping| mapping.backing.total().0 > 0);
        used.filter_map(|mapping| self.of(mapping))
            .flat_map(|part| aligned(part, page))
            .collect()
    }
}

/// Shared memory of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shared {
    pub backing: Backing,
    /// The name of its largest mapping.
    pub name: String,
}

/// Memory that has no file on a disk: of memfd, shm_open, System V, or an anonymous shared mapping. Pool pages are large already.
fn is_shared_memory(mapping: &MappingPages) -> bool {
    const NAMES: [&str; 5] = ["/memfd:", "/dev/shm/", "/SYSV", "/dev/zero", "[anon_shmem"];
    let is_named = NAMES.iter().any(|name| mapping.name.starts_with(name));
    is_named && mapping.perms.ends_with('s') && !mapping.flags.iter().any(|flag| flag == "ht")
}

/// The PMD ranges that lie whole between two addresses.
pub(crate) fn aligned(part: Range<u64>, page: Bytes) -> impl Iterator<Item = u64> {
    let first = part.start.next_multiple_of(page.0);
    (first..part.end)
        .step_by(page.as_usize())
        .filter(move |at| part.end - at >= page.0)
}
