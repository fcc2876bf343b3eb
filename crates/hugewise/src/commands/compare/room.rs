//! How many pages of a pool the hugetlb arms of a comparison need.

use compare::Spec;
use compare::program::{Memory, Program};
use host::Snapshot;
use model::compare::Method;
use model::{Bytes, PageKind, Unread};

use super::super::pools::Loan;
use super::arms::Arms;
use crate::cli::typed;
use crate::ui::Ui;

/// What a loan is larger than what was needed once: other page sizes round up more.
const SPARE: f64 = 1.25;
/// And beyond that, or one page if that is larger: malloc's heap grows by 64 MiB under its tunables, code caches of virtual
/// machines are as large, and malloc's first few bytes take a page of their own.
const SPARE_BYTES: Bytes = Bytes::mib(192);

/// What hugetlb arms need of the machine.
pub(super) struct Room<'a> {
    /// Page kinds that need a pool, each with the programs that are on it at once.
    kinds: Vec<(PageKind, u64)>,
    /// May nothing be taken on loan?
    is_forbidden: bool,
    /// As typed.
    pool: Option<Bytes>,
    /// The heap that was told to a Java virtual machine.
    heap: Option<Bytes>,
    program: &'a Program,
    snapshot: &'a Snapshot,
}

impl<'a> Room<'a> {
    pub(super) fn of(
        typed: &typed::Compare,
        spec: &Spec,
        arms: &Arms,
        program: &'a Program,
        snapshot: &'a Snapshot,
    ) -> Self {
        let at_once = |kind: PageKind| match spec.method {
            Method::Slices => {
                let of_kind = spec.arms.iter().filter(|arm| arm.kind == Some(kind)).count();
                let is_twice = spec.arms.first().is_some_and(|reference| reference.kind == Some(kind));
                (of_kind + usize::from(is_twice)) as u64
            }
            Method::Runs | Method::Flip => 1,
        };
        Self {
            kinds: arms.pools().into_iter().map(|kind| (kind, at_once(kind))).collect(),
            is_forbidden: typed.no_pool,
            pool: typed.pool,
            heap: heap(spec),
            program,
            snapshot,
        }
    }

    /// Will pages be taken on loan, as many as the program's memory tells?
    pub(super) fn is_borrowed(&self) -> bool {
        !self.kinds.is_empty() && !self.is_forbidden
    }

    /// Room for programs as large as one that was seen.
    pub(super) fn loan(&self, ui: &Ui, memory: Bytes) -> Loan {
        if self.is_forbidden {
            return Loan::forbidden(self.kinds.iter().map(|(kind, _)| *kind));
        }
        if let Some(why) = self.unknown_heap() {
            ui.say(&format!(
                "the heap that a Java virtual machine takes by default could not be read, so no huge pages are borrowed for it: {why} \
                 (write -Xmx, or --pool)"
            ));
        }
        let rooms = self
            .kinds
            .iter()
            .map(|&(kind, programs)| (kind, Bytes(self.each(kind, memory).0 * programs)));
        Loan::take(ui, rooms)
    }

    /// What a Java virtual machine takes: as typed, or a quarter of the memory; `None` for other programs.
    fn jvm_heap(&self) -> Option<Result<Bytes, Unread>> {
        let quarter = || {
            let total = self.snapshot.memory.get("MemTotal").into_result();
            total.map(|total| Bytes(total.0 / 4))
        };
        (self.program.memory == Memory::Jvm).then(|| self.heap.map_or_else(quarter, Ok))
    }

    /// Why the heap is not known although the number of pages depends on it.
    fn unknown_heap(&self) -> Option<Unread> {
        let is_needed = self.is_borrowed() && self.pool.is_none();
        self.jvm_heap().filter(|_| is_needed)?.err()
    }

    /// What a hugetlb arm needs. A Java virtual machine takes its whole heap at once, a quarter of the memory if not told.
    fn each(&self, kind: PageKind, memory: Bytes) -> Bytes {
        // One that could not be read was reported by `loan`.
        let heap = self.jvm_heap().and_then(Result::ok).unwrap_or_default();
        let spare = SPARE_BYTES.max(kind.pool().unwrap_or_default());
        let needed = Bytes((memory.0.max(heap.0) as f64 * SPARE) as u64 + spare.0);
        self.pool.unwrap_or(needed)
    }
}

/// The largest heap that a Java virtual machine was told, among the program's arguments.
fn heap(spec: &Spec) -> Option<Bytes> {
    let told = spec
        .program
        .iter()
        .rev()
        .find_map(|argument| argument.strip_prefix("-Xmx"))?;
    let unit = told.chars().last().filter(char::is_ascii_digit).map_or("", |_| "B");
    format!("{told}{unit}").parse().ok()
}
