//! Which PMD ranges of a process can be one huge page each. Pure.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use host::processes::Coverage;
use host::processes::areas::Area;
use model::{Backing, Bytes, PageKind};

/// A PMD range of x86-64.
pub(crate) const PAGE: Bytes = PageKind::Thp.x86_size();

/// Which of a process's memory is meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Span {
    /// Private anonymous memory that can be written, the heap included.
    #[default]
    Anon,
    /// The heap of brk only.
    Heap,
    /// Code: mappings of files that can be executed.
    Text,
    /// Just these addresses.
    Addresses(Range<u64>),
}

impl FromStr for Span {
    type Err = String;

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
                .ok_or_else(|| {
                    format!(
                        "`{text}` is no range (write anon, heap, text, or two addresses in hex such as 7f0000000000-7f0040000000)"
                    )
                }),
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
    pub(crate) fn of(&self, area: &Area) -> Option<Range<u64>> {
        let whole = area.range.clone();
        let meant = match self {
            Self::Anon => area.is_private_data() && area.is_anonymous(),
            Self::Heap => &*area.name == "[heap]",
            Self::Text => area.perms.contains('x') && area.name.starts_with('/'),
            Self::Addresses(_) => true,
        };
        let part = match self {
            Self::Addresses(range) => whole.start.max(range.start)..whole.end.min(range.end),
            _ => whole,
        };
        (meant && !area.is_hugetlb() && part.start < part.end).then_some(part)
    }

    /// What backs the mappings that are meant, whole mappings each.
    pub(super) fn backing(&self, areas: &[Area]) -> Backing {
        Coverage::of(areas.iter().filter(|area| self.of(area).is_some())).all()
    }

    /// What backs the shared memory of the same program, which is not flipped: a heap may be in it, as that of ZGC is, whose pages each
    /// of three mappings shows. With the name of its largest mapping; nothing beside memory that was named.
    pub(super) fn shared(&self, areas: &[Area]) -> Shared {
        let is_meant = |area: &&Area| *self == Self::Anon && area.is_shared_memory() && !area.is_hugetlb();
        let meant = || areas.iter().filter(is_meant);
        let largest = meant().max_by_key(|area| area.resident());
        Shared {
            backing: Coverage::of(meant()).shared,
            name: largest.map_or_else(String::new, |area| area.name.to_string()),
        }
    }

    /// First addresses of all PMD ranges that lie whole inside mappings that hold anything at all.
    pub(super) fn pieces(&self, areas: &[Area]) -> Vec<u64> {
        let used = areas.iter().filter(|area| area.resident() > Some(Bytes(0)));
        used.filter_map(|area| self.of(area)).flat_map(aligned).collect()
    }
}

/// Shared memory of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shared {
    pub backing: Backing,
    /// The name of its largest mapping.
    pub name: String,
}

/// The PMD ranges that lie whole between two addresses.
pub(crate) fn aligned(part: Range<u64>) -> impl Iterator<Item = u64> {
    let first = part.start.next_multiple_of(PAGE.0);
    (first..part.end)
        .step_by(PAGE.as_usize())
        .filter(move |at| part.end - at >= PAGE.0)
}
