//! Memory of one kind with a ring for each working set and a small one for the sanity check, and the proof of its backing.

use chase::arena::{Arena, Want};
use chase::order::Order;
use chase::ring::{Rings, Slot};
use model::latency::{Backed, Pattern};
use model::{Bytes, NotMeasured, PageKind};

use super::spec::{SMALLEST, Spec};
use crate::proof;

/// Memory and rings, or why there are none.
pub(super) struct Field {
    pub(super) kind: PageKind,
    pub(super) rings: Result<Rings, String>,
}

/// A working set and where its ring stands.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) bytes: Bytes,
    pub(super) slot: Slot,
    pub(super) nodes: u64,
}

impl Field {
    pub(super) fn take(spec: &Spec, kind: PageKind) -> Self {
        let largest = spec.sizes.iter().copied().max().unwrap_or_default();
        let want = Want {
            kind,
            bytes: memory(largest, kind),
            node: spec.node,
        };
        let rings = Arena::new(&want).map_err(|why| why.to_string()).map(|arena| {
            let mut rings = Rings::new(arena);
            let orders: Vec<_> = places(spec)
                .into_iter()
                .filter_map(|place| Some((place.slot, order(spec, place.bytes)?)))
                .chain(Order::new(Pattern::RandomLine, SMALLEST, spec.seed).map(|order| (Slot::SCRATCH, order)))
                .collect();
            rings.lay(&orders);
            rings
        });
        Self { kind, rings }
    }

    /// Proves what backs the first `bytes`, and gives the reason if that is not what was asked for.
    pub(super) fn prove(&self, bytes: Bytes) -> (Backed, Option<NotMeasured>) {
        match &self.rings {
            Ok(rings) => proof::prove(self.kind, rings.arena().address(), bytes),
            Err(why) => proof::never_mapped(self.kind, why),
        }
    }
}

/// Working sets, and a slot for each.
pub(super) fn places(spec: &Spec) -> Vec<Place> {
    let place = |(number, &bytes): (usize, &Bytes)| {
        Some(Place {
            bytes,
            slot: Slot::new(number)?,
            nodes: order(spec, bytes)?.nodes(),
        })
    };
    spec.sizes.iter().enumerate().filter_map(place).collect()
}

fn order(spec: &Spec, bytes: Bytes) -> Option<Order> {
    Order::new(spec.pattern, bytes, spec.seed)
}

/// Room for the guest's page tables on pages of the same kind: 8 bytes for each 4 KiB, and a little more. Not on 1 GiB pages,
/// of which that would take another one; there the tables are on base pages.
pub fn memory(bytes: Bytes, kind: PageKind) -> Bytes {
    match kind {
        PageKind::Hugetlb(size) if size >= Bytes::gib(1) => bytes,
        PageKind::Base | PageKind::Thp | PageKind::Mthp(_) | PageKind::Hugetlb(_) => {
            Bytes(bytes.round_up_to(Bytes::mib(2)).0 + bytes.0 / 512 + (256 << 10))
        }
    }
}
