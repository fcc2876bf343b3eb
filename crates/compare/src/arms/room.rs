//! What the arms of a comparison need on loan: pages of a pool, as many as their programs need, and switches of THP sizes.

use host::Snapshot;
use model::compare::Method;
use model::{Bytes, PageKind, Unread};

use crate::arms::Arms;
use crate::around::{Around, Event, Lender, Shortage};
use crate::program::{Memory, Program};
use crate::request::Request;
use crate::{Error, Spec};

/// What a loan is larger than what was needed once: other page sizes round up more.
const SPARE: f64 = 1.25;
/// And beyond that, or one page if that is larger: malloc's heap grows by 64 MiB under its tunables, code caches of virtual
/// machines are as large, and malloc's first few bytes take a page of their own.
const SPARE_BYTES: Bytes = Bytes::mib(192);

/// What hugetlb arms need of the machine.
pub(crate) struct Room<'a> {
    /// Page kinds that need a pool, each with the programs that are on it at once.
    kinds: Vec<(PageKind, u64)>,
    /// THP sizes whose switches are lent.
    sizes: Vec<PageKind>,
    request: &'a Request,
    program: &'a Program,
    snapshot: &'a Snapshot,
}

impl<'a> Room<'a> {
    pub(crate) fn of(request: &'a Request, spec: &Spec, arms: &'a Arms, snapshot: &'a Snapshot) -> Self {
        let at_once = |kind: PageKind| match spec.method {
            Method::Slices => {
                let of_kind = spec.arms.iter().filter(|arm| arm.kind == Some(kind)).count();
                let is_twice = spec.arms.first().is_some_and(|reference| reference.kind == Some(kind));
                (of_kind + usize::from(is_twice)) as u64
            }
            Method::Runs | Method::Flip => 1,
        };
        let (pools, sizes): (Vec<_>, Vec<_>) = arms.lent().into_iter().partition(|kind| kind.pool().is_some());
        Self {
            kinds: pools.into_iter().map(|kind| (kind, at_once(kind))).collect(),
            sizes,
            request,
            program: &arms.program,
            snapshot,
        }
    }

    /// Will pages be taken on loan, as many as the program's memory needs?
    pub(crate) fn is_borrowed(&self) -> bool {
        !self.kinds.is_empty() && !self.request.no_pool
    }

    /// Who lends to programs as large as one that was seen, and what will be missing.
    ///
    /// # Errors
    /// If a THP size cannot be had: without its switch its arm would be another one.
    pub(crate) fn lender(&self, around: &'a dyn Around, memory: Bytes) -> Result<(Lender<'a>, Vec<Shortage>), Error> {
        let short = self.borrow(around, memory);
        around.give_back();
        let mut rooms = if self.request.no_pool {
            Vec::new()
        } else {
            self.rooms(memory)
        };
        for &size in &self.sizes {
            let room = (size, Bytes(0));
            let short = around.borrow(&[room]);
            around.give_back();
            if let Some(Shortage { kind, why }) = short.into_iter().next() {
                return Err(Error::asked(format!("--arms {kind}"), why));
            }
            rooms.push(room);
        }
        Ok((Lender { around, rooms }, short))
    }

    fn rooms(&self, memory: Bytes) -> Vec<(PageKind, Bytes)> {
        let room = |&(kind, programs): &(PageKind, u64)| (kind, Bytes(self.each(kind, memory).0 * programs));
        self.kinds.iter().map(room).collect()
    }

    /// Half of what is available, for a program that does not start without pages.
    pub(crate) fn half(&self) -> Option<Bytes> {
        let available = self.snapshot.memory.get("MemAvailable");
        available.known().map(|available| Bytes(available.0 / 2))
    }

    /// Borrows pages for programs as large as one that was seen, and gives what is missing.
    pub(crate) fn borrow(&self, around: &dyn Around, memory: Bytes) -> Vec<Shortage> {
        if self.kinds.is_empty() {
            return Vec::new();
        }
        if self.request.no_pool {
            let why = "--no-pool forbids filling the pool: only pages that were free in it could be had";
            let short = |&(kind, _): &(PageKind, u64)| Shortage {
                kind,
                why: why.to_owned(),
            };
            return self.kinds.iter().map(short).collect();
        }
        if let Some(why) = self.unknown_heap() {
            around.report(&Event::UnknownHeap(why));
        }
        around.borrow(&self.rooms(memory))
    }

    /// What a Java virtual machine takes: as typed, or a quarter of the memory; `None` for other programs.
    fn jvm_heap(&self) -> Option<Result<Bytes, Unread>> {
        let quarter = || {
            let total = self.snapshot.memory.get("MemTotal").into_result();
            total.map(|total| Bytes(total.0 / 4))
        };
        (self.program.memory == Memory::Jvm).then(|| heap(&self.request.program()).map_or_else(quarter, Ok))
    }

    /// Why the heap is not known although the number of pages depends on it.
    fn unknown_heap(&self) -> Option<Unread> {
        let is_needed = self.is_borrowed() && self.request.pool.is_none();
        self.jvm_heap().filter(|_| is_needed)?.err()
    }

    /// What a hugetlb arm needs. A Java virtual machine takes its whole heap at once, a quarter of the memory by default.
    fn each(&self, kind: PageKind, memory: Bytes) -> Bytes {
        // One that could not be read was reported by `borrow`.
        let heap = self.jvm_heap().and_then(Result::ok).unwrap_or_default();
        let spare = SPARE_BYTES.max(kind.pool().unwrap_or_default());
        // A database takes its memory at its start, in pieces whose size was seen.
        let times = match self.program.memory {
            Memory::Database(_) => 1.0,
            _ => SPARE,
        };
        let needed = Bytes((memory.0.max(heap.0) as f64 * times) as u64 + spare.0);
        self.request.pool.unwrap_or(needed)
    }
}

/// The largest heap of a Java virtual machine, from the program's arguments, or from those in a line of the shell; the last one counts.
fn heap(arguments: &[String]) -> Option<Bytes> {
    let mut words = arguments
        .iter()
        .rev()
        .flat_map(|argument| argument.split_whitespace().rev());
    let size = words.find_map(|word| word.trim_matches(['\'', '"']).strip_prefix("-Xmx"))?;
    let unit = size.chars().last().filter(char::is_ascii_digit).map_or("", |_| "B");
    format!("{size}{unit}").parse().ok()
}

#[cfg(test)]
mod tests {
    use model::Bytes;

    use super::heap;

    #[test]
    fn the_heap_of_a_java_virtual_machine_is_found_in_its_arguments_and_behind_a_shell() {
        let of = |words: &[&str]| heap(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        assert_eq!(of(&["java", "-Xmx1g", "-Xmx2g", "Main"]), Some(Bytes::gib(2)));
        assert_eq!(
            of(&["/bin/sh", "-c", "prepare && exec java '-Xmx512m' Main"]),
            Some(Bytes::mib(512))
        );
        assert_eq!(of(&["java", "-Xmx1048576", "Main"]), Some(Bytes::mib(1)));
        assert_eq!(of(&["java", "Main"]), None);
    }
}
