//! How much of which memory is on which pages: private memory, shared memory and mapped files of one process, each page of a file
//! or segment counted once however many mappings show it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

use model::process::SharedMemory;
use model::{Backing, Bytes};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::areas::Area;
use super::mapping::Mapping;

/// Resident bytes by page kind. The three parts add up to what the process has resident.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Coverage {
    /// Memory of the process alone: anonymous, and hugetlb in private mappings.
    pub private: Backing,
    /// Memory that processes can share, without a file on a disk.
    pub shared: Backing,
    /// Files: code, libraries, data.
    pub file: Backing,
}

impl Coverage {
    /// Of these mappings. Mappings that were not counted (maps) add nothing: ask [`is_counted`] first.
    pub fn of<'a>(mappings: impl IntoIterator<Item = &'a Area>) -> Self {
        let mut covering = Covering::default();
        mappings.into_iter().for_each(|mapping| covering.add(mapping));
        covering.sum()
    }

    /// Without files.
    pub fn own(&self) -> Backing {
        self.private.iter().chain(self.shared.iter()).collect()
    }

    /// All three.
    pub fn all(&self) -> Backing {
        let parts = [&self.private, &self.shared, &self.file];
        parts.into_iter().flat_map(Backing::iter).collect()
    }
}

/// The same while mappings are read one by one.
#[derive(Debug, Default)]
pub struct Covering {
    private: Backing,
    shared: Objects,
    file: Objects,
    /// Pages of files that a process wrote are copies of its own.
    copies: Backing,
}

impl Covering {
    pub fn add<T: Deref<Target: AsRef<[u8]>>>(&mut self, mapping: &Mapping<T>) {
        match Sort::of(mapping) {
            Sort::Private => self.private.extend(mapping.backing().iter()),
            Sort::Shared => self.shared.add(mapping),
            Sort::File if mapping.is_private_data() => self.copies.extend(mapping.backing().iter()),
            Sort::File => self.file.add(mapping),
        }
    }

    pub fn sum(self) -> Coverage {
        let mut file = self.file.once();
        file.extend(self.copies.iter());
        Coverage {
            private: self.private,
            shared: self.shared.once(),
            file,
        }
    }
}

/// Were the bytes of every one of these mappings read?
pub fn is_counted<'a>(mappings: impl IntoIterator<Item = &'a Area>) -> bool {
    mappings.into_iter().all(|mapping| mapping.counted.is_some())
}

/// Each segment or file of one sort that they map, once.
pub fn objects<'a>(mappings: impl IntoIterator<Item = &'a Area>, sort: Sort) -> Vec<SharedMemory> {
    let mut objects = Objects::default();
    let of_sort = mappings.into_iter().filter(|mapping| Sort::of(*mapping) == sort);
    of_sort.for_each(|mapping| objects.add(mapping));
    objects.each()
}

/// Bytes that mappings take of the pool of one page size: touched or reserved, a segment once however often it is mapped, and of
/// memory that was mapped without a reservation what is touched.
pub fn taken_of_pool<'a>(mappings: impl IntoIterator<Item = &'a Area>, page: Bytes) -> Bytes {
    let mut segments = Objects::default();
    let mut own = 0_u64;
    for mapping in mappings {
        if mapping.hugetlb_page() != Some(page) {
            continue;
        }
        match (mapping.has("nr"), mapping.is_shared()) {
            (Some(true), _) => own += mapping.counts().map_or(0, |counts| counts.hugetlb.0),
            (_, true) => segments.add(mapping),
            (_, false) => own += mapping.size().0,
        }
    }
    let segments = segments.each().into_iter().map(|segment| segment.size.0);
    Bytes(segments.fold(own, u64::saturating_add))
}

/// The sorts of memory, by its mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// Of this process alone.
    Private,
    /// Shared, without a file on a disk.
    Shared,
    File,
}

impl Sort {
    /// That of a mapping. Anonymous memory of a shared mapping has a file of the kernel's own, and hugetlb memory has one too.
    pub fn of<T: Deref<Target: AsRef<[u8]>>>(mapping: &Mapping<T>) -> Self {
        match mapping.is_shared() {
            true if mapping.is_hugetlb() || mapping.is_shmem() => Self::Shared,
            false if mapping.is_hugetlb() => Self::Private,
            _ if mapping.name.as_ref().starts_with(b"/") => Self::File,
            _ => Self::Private,
        }
    }
}

/// A file or segment: device, and inode.
type Id = (Vec<u8>, u64);

/// One mapping of a file or segment.
#[derive(Clone, Debug)]
struct Piece {
    offset: u64,
    length: u64,
    backing: Backing,
    pss: u64,
}

/// Files and segments, with the mappings that show them.
#[derive(Clone, Debug, Default)]
pub(super) struct Objects(BTreeMap<Id, Vec<Piece>>);

/// Bytes of a piece for each of this many bytes of address space: exact for whole pages.
const PER: u64 = 1 << 20;

impl Objects {
    /// Adds a mapping.
    pub(super) fn add<T: Deref<Target: AsRef<[u8]>>>(&mut self, mapping: &Mapping<T>) {
        if mapping.size().0 == 0 {
            return;
        }
        let id = (mapping.device.as_ref().to_vec(), mapping.inode);
        self.0.entry(id).or_default().push(Piece {
            offset: mapping.offset,
            length: mapping.size().0,
            backing: mapping.backing(),
            pss: mapping.counts().map_or(0, |counts| counts.pss.0),
        });
    }

    /// All of them, each page once.
    fn once(&self) -> Backing {
        self.0
            .values()
            .flat_map(|pieces| once(pieces).0.iter().collect::<Vec<_>>())
            .collect()
    }

    /// Each of them.
    pub(super) fn each(&self) -> Vec<SharedMemory> {
        let each = self.0.iter().map(|((device, inode), pieces)| {
            let (backing, size) = once(pieces);
            SharedMemory {
                id: format!("{}:{inode}", String::from_utf8_lossy(device)),
                page: backing.iter().find_map(|(kind, _)| kind.pool()),
                size: Bytes(size),
                resident: backing.total(),
            }
        });
        each.collect()
    }
}

/// What backs an object, and how many bytes of it are mapped. Where mappings overlap, the fullest of them counts at least: a process that
/// maps a heap three times has its pages in each view, or in the one that it used. Where each view has pages that others lack, the sum of
/// their shares (Pss) is what they have together, if no other process maps it.
fn once(pieces: &[Piece]) -> (Backing, u64) {
    let mut edges: Vec<(u64, bool, usize)> = Vec::with_capacity(2 * pieces.len());
    for (at, piece) in pieces.iter().enumerate() {
        edges.push((piece.offset, true, at));
        edges.push((piece.offset.saturating_add(piece.length), false, at));
    }
    edges.sort_unstable();
    let fullness = |at: usize| {
        let piece = &pieces[at];
        u128::from(piece.backing.total().0) * u128::from(PER) / u128::from(piece.length.max(1))
    };
    let (mut open, mut before, mut mapped) = (BTreeSet::new(), 0, 0);
    // Bytes of address space for which each piece counts.
    let mut counts = vec![0_u64; pieces.len()];
    for (edge, begins, at) in edges {
        if let Some(&(_, fullest)) = open.last() {
            let length: u64 = edge - before;
            counts[fullest] += length;
            mapped += length;
        }
        before = edge;
        match begins {
            true => open.insert((fullness(at), at)),
            false => open.remove(&(fullness(at), at)),
        };
    }
    let share = |(at, &length): (usize, &u64)| {
        let piece = &pieces[at];
        let part = move |bytes: Bytes| {
            Bytes((u128::from(bytes.0) * u128::from(length) / u128::from(piece.length.max(1))) as u64)
        };
        piece.backing.iter().map(move |(kind, bytes)| (kind, part(bytes)))
    };
    let backing: Backing = counts.iter().enumerate().flat_map(share).collect();
    let together = pieces.iter().fold(0_u64, |sum, piece| sum.saturating_add(piece.pss));
    match together > backing.total().0 {
        true => (in_proportion(pieces, together), mapped),
        false => (backing, mapped),
    }
}

/// So many bytes, of the kinds that all pieces have.
fn in_proportion(pieces: &[Piece], bytes: u64) -> Backing {
    let kinds: Backing = pieces.iter().flat_map(|piece| piece.backing.iter()).collect();
    let all = u128::from(kinds.total().0.max(1));
    let part = |kind: Bytes| Bytes((u128::from(kind.0) * u128::from(bytes) / all) as u64);
    kinds.iter().map(|(kind, bytes)| (kind, part(bytes))).collect()
}

#[cfg(test)]
#[path = "once_tests.rs"]
mod tests;
