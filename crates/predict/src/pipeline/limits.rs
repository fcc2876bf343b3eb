//! What of a core serves a limited number at a time: ports, fill buffers and walkers, and buffers whose entries are freed in program order.

use std::collections::VecDeque;

/// What serves so many in a cycle, in program order.
pub(super) struct Port {
    each: f64,
    pub(super) free: f64,
}

impl Port {
    pub(super) fn new(most: u64) -> Self {
        Self {
            each: 1.0 / most as f64,
            free: 0.0,
        }
    }

    /// When it serves the next one, which comes at `from`.
    pub(super) fn take(&mut self, from: u64) -> u64 {
        let begun = self.free.max(from as f64);
        self.free = begun + self.each;
        begun as u64
    }
}

/// Of which each serves one at a time. What comes later in program order may be served before.
pub(super) struct Servers(Vec<VecDeque<Busy>>);

type Busy = (u64, u64);

impl Servers {
    pub(super) fn new(count: usize) -> Self {
        Self(vec![VecDeque::new(); count])
    }

    /// When one has served for so long, from `from` on or as soon as it is free for that long. Nothing comes before `now` any more.
    pub(super) fn serve(&mut self, now: u64, from: u64, long: u64) -> u64 {
        for server in &mut self.0 {
            while server.front().is_some_and(|busy| busy.1 <= now) {
                server.pop_front();
            }
        }
        let gaps = self.0.iter_mut().map(|server| (gap(server, from, long), server));
        let Some(((place, begun), server)) = gaps.min_by_key(|((_, begun), _)| *begun) else {
            return from + long;
        };
        server.insert(place, (begun, begun + long));
        begun + long
    }
}

/// The first gap of that length: its place among those that are busy, and its begin.
fn gap(server: &VecDeque<Busy>, from: u64, long: u64) -> (usize, u64) {
    let mut begun = from;
    for (place, busy) in server.iter().enumerate() {
        if begun + long <= busy.0 {
            return (place, begun);
        }
        begun = begun.max(busy.1);
    }
    (server.len(), begun)
}

/// The last times of so many events.
pub(super) struct Ring {
    times: Vec<u64>,
    count: usize,
}

impl Ring {
    pub(super) fn new(long: usize) -> Self {
        Self {
            times: vec![0; long],
            count: 0,
        }
    }

    /// When that one was that came so many events before the next one, of which at most as many are known as the ring is long.
    pub(super) fn before(&self, events: usize) -> u64 {
        let place = self.count.checked_sub(events);
        place.map_or(0, |place| self.times[place % self.times.len()])
    }

    /// How many of the last events were after a time.
    pub(super) fn since(&self, time: u64) -> usize {
        let most = self.count.min(self.times.len());
        (1..=most)
            .find(|&events| self.before(events) <= time)
            .map_or(most, |events| events - 1)
    }

    pub(super) fn push(&mut self, time: u64) {
        let long = self.times.len();
        self.times[self.count % long] = time;
        self.count += 1;
    }

    /// Takes the last one away, and gives its time.
    pub(super) fn take_back(&mut self) -> u64 {
        let last = self.before(1);
        self.count = self.count.saturating_sub(1);
        last
    }
}
