//! From counts to cycles: latencies that are known, and ranges for those that are not.

use super::Cycles;
use crate::cpus;
use crate::engine::Counts;
use crate::machine::Machine;
use crate::machine::unknown::Unknown;
use crate::range::Range;
use crate::setting::Mode;
use crate::walk::caches::PLACES;

/// What a second-level TLB hit may cost. 3: Neoverse N1 (the table's only entry); 7: the constant of the model of Pham et al.; 20: well above both.
const L2_TLB_HIT: Range = Range::new(3.0, 7.0, 20.0);
/// What a walk may cost besides its reads and the look into the second level. On a Sapphire Rapids guest a walk added 21 cycles to a second-level hit, with
/// page-table entries in the first or second cache (`docs/explanation/translation.md`); less the read of one entry there, 5 or 16 cycles.
const WALK: Range = Range::new(5.0, 10.5, 16.0);
/// What an exit may cost. 1,650: a VMCALL and back on Sandy Bridge-E without any work; ten times that for one whose handler works.
const EXIT: Range = Range::new(1650.0, 5000.0, 16_500.0);

/// What an interrupt of another CPU may cost, on both sides: published round trips on current Xeons take 1 to 3 us, and 3 GHz are assumed.
const IPI: Range = Range::new(1000.0, 3000.0, 9000.0);
/// Exits for each: none with posted interrupts and virtualized sending, one with either, two without.
const IPI_EXITS: Range = Range::new(0.0, 1.0, 2.0);

/// All cycles that cases are weighed with: each a range, or one value where it is known.
#[derive(Clone, Copy, Debug)]
pub struct Weights {
    ranges: [Range; DIMENSIONS],
    known: [bool; DIMENSIONS],
    /// A page-table read from memory, relative to one from this node's.
    table_memory: f64,
    /// A page-table read relative to a load.
    pub walk_reads: f64,
}

/// Numbers that may be unknown: the latencies of all places, a TLB hit, a walk, an exit, an interrupt and its exits.
const NAMES: [Unknown; PLACES + 5] = [
    Unknown::L1Latency,
    Unknown::L2Latency,
    Unknown::L3Latency,
    Unknown::MemoryLatency,
    Unknown::L2TlbHit,
    Unknown::Walk,
    Unknown::Exit,
    Unknown::Ipi,
    Unknown::IpiExits,
];
pub(super) const DIMENSIONS: usize = NAMES.len();
/// Causes of cycles: data, TLB, walks, exits, shootdowns.
pub(super) type Causes = [f64; 5];

/// The last cache's or memory's, and the places of those behind the latencies.
const LAST: usize = PLACES - 1;
const TLB_HIT: usize = PLACES;
const WALK_PLACE: usize = PLACES + 1;
const EXIT_PLACE: usize = PLACES + 2;
const IPI_PLACE: usize = PLACES + 3;
const IPI_EXITS_PLACE: usize = PLACES + 4;

/// Where each dimension stands: 0 low, 1 middle, 2 high.
pub type Point = [u8; DIMENSIONS];
pub type Choice = (usize, Point);
pub const MIDDLE: Point = [1; DIMENSIONS];

/// The values that the CPUs of the table have: those with 1 GiB pages, as older ones are no longer run.
fn of_table(latency: fn(&cpus::Latencies) -> Option<f64>) -> Range {
    let mut values: Vec<f64> = cpus::table()
        .iter()
        .filter(|cpu| {
            cpu.page_sizes
                .iter()
                .flatten()
                .any(|page| page.0 == model::Bytes::gib(1))
        })
        .filter_map(|cpu| latency(&cpu.latency_cycles))
        .collect();
    values.sort_by(f64::total_cmp);
    match values.as_slice() {
        [] => Range::default(),
        [low, ..] => Range {
            low: *low,
            middle: values[values.len() / 2],
            high: values[values.len() - 1],
        },
    }
}

impl Weights {
    /// Those of a machine.
    pub fn of(machine: &Machine) -> Self {
        let [l1, l2, l3, memory] = machine.latencies;
        let has_second = machine.arrays.iter().any(|array| array.level > 1);
        let second_level = if has_second { machine.l2_tlb_hit } else { Some(0.0) };
        let sources = [
            (l1, of_table(|latencies| latencies.l1)),
            (l2, of_table(|latencies| latencies.l2)),
            (l3, of_table(|latencies| latencies.l3)),
            (memory, of_table(|latencies| latencies.mem)),
            (second_level, L2_TLB_HIT),
            (machine.walk, WALK),
            (machine.exit, EXIT),
            (machine.ipi, IPI),
            (machine.ipi_exits, IPI_EXITS),
        ];
        let mut ranges = sources.map(|(known, swept)| known.map_or(swept, Range::exactly));
        let mut known = sources.map(|(known, _)| known.is_some());
        if machine.has_unknown_cache && machine.caches.len() < LAST {
            ranges[LAST].low = ranges[machine.caches.len()].low;
            known[LAST] = false;
        }
        if machine.vcpus == 1 {
            known[IPI_PLACE..].fill(true);
        }
        Self {
            ranges,
            known,
            table_memory: machine.table_memory,
            walk_reads: machine.walk_reads.unwrap_or(1.0),
        }
    }

    /// The name of a dimension, if it is not known.
    pub fn unknown(&self, dimension: usize) -> Option<Unknown> {
        (!self.known[dimension]).then_some(NAMES[dimension])
    }

    /// Cycles of a dimension at a point: until data is there from a place, or of what is behind the places.
    pub fn at(&self, dimension: usize, point: &Point) -> f64 {
        self.ranges[dimension].at(point[dimension])
    }

    /// Cycles of a second-level TLB hit, at a point.
    pub fn tlb_hit(&self, point: &Point) -> f64 {
        self.at(TLB_HIT, point)
    }

    /// Cycles of a walk besides its reads, at a point: the second level was looked into first.
    pub fn walk(&self, point: &Point) -> f64 {
        self.tlb_hit(point) + self.at(WALK_PLACE, point)
    }

    pub(super) fn range(&self, dimension: usize) -> Range {
        self.ranges[dimension]
    }

    /// Cycles by cause at one point, for one walker: data, TLB, walks, exits, shootdowns. A guest's interrupts cost exits as well.
    pub(super) fn causes(&self, counts: &Counts, mode: Mode, (walker, point): &Choice) -> Causes {
        let accesses = counts.accesses.max(1) as f64;
        let lines = |lines: &[u64; PLACES], memory: f64| {
            let far = |place: usize| if place == LAST { memory } else { 1.0 };
            (0..PLACES)
                .map(|place| lines[place] as f64 * self.at(place, point) * far(place))
                .sum::<f64>()
        };
        let walks = counts.walkers.get(*walker).copied().unwrap_or_default();
        let exit = self.at(EXIT_PLACE, point);
        let exits = match mode {
            Mode::Native => 0.0,
            _ => self.at(IPI_EXITS_PLACE, point),
        };
        let cycles = [
            lines(&walks.data_lines, 1.0),
            counts.second_level_hits() as f64 * self.tlb_hit(point),
            self.walk(point) * walks.walks as f64 + self.walk_reads * lines(&walks.table_lines, self.table_memory),
            counts.exits.total() as f64 * exit,
            counts.shootdowns as f64 * (self.at(IPI_PLACE, point) + exits * exit),
        ];
        cycles.map(|cycles| cycles / accesses)
    }

    /// All cycles at one point, for one walker.
    pub fn cycles(&self, counts: &Counts, mode: Mode, at: &Choice) -> f64 {
        self.causes(counts, mode, at).iter().sum()
    }

    /// Every corner of what is not known with each of so many walkers; what is known stays in the middle.
    pub fn corners(&self, walkers: usize) -> Vec<Choice> {
        let unknown: Vec<usize> = (0..DIMENSIONS).filter(|&dimension| !self.known[dimension]).collect();
        let corner = |number: usize| {
            let mut point = MIDDLE;
            for (bit, &dimension) in unknown.iter().enumerate() {
                point[dimension] = if number >> bit & 1 == 1 { 2 } else { 0 };
            }
            point
        };
        let corners = (0..1 << unknown.len()).map(corner);
        corners
            .flat_map(|point| (0..walkers).map(move |walker| (walker, point)))
            .collect()
    }
}

impl Cycles {
    /// From the causes at the middle and at all other points.
    pub(super) fn of(middle: Causes, all: &[Causes]) -> Self {
        let range = |cause: usize| Range::of(middle[cause], all.iter().map(|causes| causes[cause]));
        Self {
            data: range(0),
            tlb: range(1),
            walks: range(2),
            exits: range(3),
            shootdowns: range(4),
        }
    }

    /// All of them, in the middle of the sweep.
    pub fn middle(&self) -> f64 {
        self.data.middle + self.tlb.middle + self.walks.middle + self.exits.middle + self.shootdowns.middle
    }
}
