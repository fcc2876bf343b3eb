//! One arena per page kind with its standing rings, and the proof of what backs each working set in it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use chase::arena::{Arena, Want};
use chase::order::Order;
use chase::ring::{Rings, SLOTS, Slot};
use chase::thread::Pinned;
use host::processes;
use model::latency::{Backed, Pattern};
use model::{Bytes, NotMeasured, PageKind};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::plan;
use super::spec::Spec;
use crate::proof;

/// Working sets begin on a base page.
const PLACE: Bytes = Bytes::kib(4);

/// How often progress in taking memory is read.
const POLL_PERIOD: Duration = Duration::from_millis(20);

/// Which ring: the working set and the order of visits.
pub(super) type RingKey = (Pattern, Bytes);

/// An arena with its rings, and which of them stand for the whole measurement.
pub(super) struct Field {
    pub(super) rings: Rings,
    standing: Vec<(RingKey, Slot)>,
    /// Private cache: working sets that nearly fill it are laid in another place at each visit.
    private_cache: Option<Bytes>,
}

/// What was obtained for one kind.
pub(super) struct Held {
    pub(super) kind: PageKind,
    pub(super) field: Result<Field, String>,
}

/// The arenas of the kinds that are measured together.
pub(super) struct Arenas {
    held: Vec<Held>,
}

impl Arenas {
    /// Takes memory for all kinds, one thread each: bringing pages in is what set-up takes longest for. `go_on` is asked
    /// with the memory brought in so far; once it says no, what comes back is only good for being dropped.
    pub(super) fn take(spec: &Spec, kinds: &[PageKind], pinned: &Pinned, go_on: &mut dyn FnMut(Bytes) -> bool) -> Self {
        let (taken, stopped) = (AtomicU64::new(0), AtomicBool::new(false));
        let take = |kind| {
            if spec.one_node {
                pinned.free_helper();
            }
            let field = Field::take(spec, kind, &mut |bytes| {
                taken.fetch_add(bytes.0, Ordering::Relaxed);
                !stopped.load(Ordering::Relaxed)
            });
            Held { kind, field }
        };
        let held = thread::scope(|scope| {
            let helpers: Vec<_> = kinds.iter().map(|&kind| scope.spawn(move || take(kind))).collect();
            while !helpers.iter().all(ScopedJoinHandle::is_finished) {
                thread::sleep(POLL_PERIOD);
                if !go_on(Bytes(taken.load(Ordering::Relaxed))) {
                    stopped.store(true, Ordering::Relaxed);
                }
            }
            // A panic of a helper is a defect, and goes on as one.
            let join = |helper: ScopedJoinHandle<'_, Held>| {
                helper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            helpers.into_iter().map(join).collect()
        });
        Self { held }
    }

    /// What was obtained for a kind.
    pub(super) fn of(&mut self, kind: PageKind) -> Option<&mut Held> {
        self.held.iter_mut().find(|held| held.kind == kind)
    }

    /// Kinds whose memory could not be locked, so that the machine may swap it out while it is timed.
    pub(super) fn unlocked(&self) -> Vec<PageKind> {
        let unlocked = |held: &&Held| held.field.as_ref().is_ok_and(|field| !field.rings.arena().is_locked);
        self.held.iter().filter(unlocked).map(|held| held.kind).collect()
    }
}

impl Held {
    /// Proves what backs the first `bytes`, and wherever else a working set of that size is laid; the reason if it is not
    /// what was asked for.
    pub(super) fn prove(&self, bytes: Bytes) -> (Backed, Option<NotMeasured>) {
        let field = match &self.field {
            Ok(field) => field,
            Err(why) => return proof::never_mapped(self.kind, why),
        };
        let first = |bytes| proof::prove(self.kind, field.rings.arena().address(), bytes);
        let (backed, why) = first(bytes);
        (backed, why.or_else(|| first(field.reach(bytes)).1))
    }

    /// The frames of the first `bytes`, on base pages; none where the kernel hides them.
    pub(super) fn frames(&self, bytes: Bytes) -> Option<Vec<u64>> {
        let field = self.field.as_ref().ok().filter(|_| self.kind == PageKind::Base)?;
        let start = field.rings.arena().address() as u64;
        processes::frames_of(std::process::id(), start, bytes.0)
            .into_result()
            .ok()
    }
}

impl Field {
    fn take(spec: &Spec, kind: PageKind, go_on: &mut dyn FnMut(Bytes) -> bool) -> Result<Self, String> {
        let want = Want {
            kind,
            bytes: plan::arena(spec, kind),
            node: spec.node,
        };
        let arena = Arena::watched(&want, go_on).map_err(|why| why.to_string())?;
        let standing = standing(spec);
        let orders: Vec<(Slot, Order)> = standing.iter().map(|(_, slot, order)| (*slot, order.clone())).collect();
        let mut rings = Rings::new(arena);
        rings.lay_while(&orders, &mut || go_on(Bytes(0)));
        Ok(Self {
            rings,
            standing: standing.into_iter().map(|(key, slot, _)| (key, slot)).collect(),
            private_cache: spec.private_cache,
        })
    }

    /// Over how much memory a working set is moved.
    fn reach(&self, bytes: Bytes) -> Bytes {
        let reach = plan::reach(self.private_cache, bytes);
        reach.min(Bytes(self.rings.arena().size() as u64)).max(bytes)
    }

    /// Where the ring stands; one that has no slot of its own is laid anew into the shared one. A standing ring goes on
    /// where its last visit left it: at the lines not seen for longest. `draw` decides the place of one that is moved.
    /// `None` if it was not laid to its end because of `stop`.
    pub(super) fn ring(&mut self, key: RingKey, order: &Order, draw: u64, stop: &dyn Fn() -> bool) -> Option<Slot> {
        if let Some((_, slot)) = self.standing.iter().find(|(standing, _)| *standing == key) {
            return Some(*slot);
        }
        let (_, bytes) = key;
        let places = (self.reach(bytes).0 - bytes.0) / PLACE.0 + 1;
        let place = Pcg64Mcg::seed_from_u64(draw).random_range(0..places);
        let order = order.clone().beginning_at(Bytes(place * PLACE.0));
        let is_laid = self.rings.lay_while(&[(Slot::SCRATCH, order)], &mut || !stop());
        is_laid.then_some(Slot::SCRATCH)
    }
}

/// The rings with most nodes get slots of their own: laying them is expensive, and they would be laid at every visit.
fn standing(spec: &Spec) -> Vec<(RingKey, Slot, Order)> {
    let keys = spec
        .patterns
        .iter()
        .flat_map(|&pattern| spec.sizes.iter().map(move |&bytes| (pattern, bytes)));
    let mut orders: Vec<(RingKey, Order)> = keys
        .filter(|(_, bytes)| plan::reach(spec.private_cache, *bytes) == *bytes)
        .filter_map(|key| Some((key, Order::new(key.0, key.1, spec.seed)?)))
        .collect();
    orders.sort_by_key(|(key, order)| (std::cmp::Reverse(order.nodes()), *key));
    orders.dedup_by_key(|(key, _)| *key);
    let slots = (0..SLOTS - 1).filter_map(Slot::new);
    orders
        .into_iter()
        .zip(slots)
        .map(|((key, order), slot)| (key, slot, order))
        .collect()
}
