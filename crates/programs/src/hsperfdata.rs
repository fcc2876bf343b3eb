//! What HotSpot itself reports of its heap: the counters that it keeps in a file which it maps (`hsperfdata_USER/PID`), as `jstat` reads.

use host::Source;
use model::{Bytes, Collector};

use super::Area;

/// The file begins so, and goes on with the byte order: 1 where the lowest byte is first.
const MAGIC: [u8; 5] = [0xca, 0xfe, 0xc0, 0xc0, 1];
/// Where the offset of the first entry and the number of entries are.
const FIRST: usize = 24;
/// More entries than a JVM has, some 300.
const MOST: usize = 10_000;
/// Counters lie in words of 8 bytes after a header, so that sizes may be a few bytes too large.
const PAGE: u64 = 4096;

/// What they say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counters {
    /// The most that the heap may grow to.
    pub(super) heap: Option<Bytes>,
    /// The collector, also where the JVM chose it itself.
    pub(super) collector: Option<Collector>,
}

/// How the names of collectors of the young generation begin, those of JDK 8 last.
const COLLECTORS: [(&str, Collector); 5] = [
    ("G1", Collector::G1),
    ("Parallel", Collector::Parallel),
    ("Serial", Collector::Serial),
    ("PSScavenge", Collector::Parallel),
    ("Copy", Collector::Serial),
];

/// Those of a process; none where the JVM keeps no counters (`-XX:-UsePerfData`), or they cannot be read.
pub(super) fn counters(source: &Source, pid: u32, areas: &[Area]) -> Counters {
    let names = &mut areas.iter().map(|area| &*area.name);
    let name = names.find(|name| name.contains("/hsperfdata_"));
    let file = name.map(|name| source.bytes(&format!("/proc/{pid}/root{name}")));
    let bytes = file.as_ref().and_then(|file| file.known());
    bytes.map_or_else(Counters::default, |bytes| read(bytes).unwrap_or_default())
}

/// The same from the file's content.
fn read(bytes: &[u8]) -> Option<Counters> {
    if !bytes.starts_with(&MAGIC) {
        return None;
    }
    let (mut at, entries) = (number(bytes, FIRST)?, number(bytes, FIRST + 4)?.min(MOST));
    let (mut young, mut old, mut first_collector) = (None, None, String::new());
    for _ in 0..entries {
        let entry = bytes.get(at..at.checked_add(number(bytes, at)?)?)?;
        match text(entry, number(entry, 4)?) {
            b"sun.gc.generation.0.maxCapacity" => young = value(entry),
            b"sun.gc.generation.1.maxCapacity" => old = value(entry),
            b"sun.gc.collector.0.name" => {
                first_collector = String::from_utf8_lossy(text(entry, number(entry, 16)?)).into_owned();
            }
            _ => {}
        }
        at += entry.len().max(20);
    }
    let known = COLLECTORS
        .into_iter()
        .find(|(name, _)| first_collector.starts_with(name));
    let collector = known.map(|(_, collector)| collector);
    // Of G1 and ZGC each generation may take the whole heap; Parallel and Serial divide it.
    let heap = match collector {
        Some(Collector::Parallel | Collector::Serial) => young.zip(old).and_then(|(young, old)| young.checked_add(old)),
        _ => old.or(young),
    };
    let heap = heap.map(|heap| Bytes(heap / PAGE * PAGE)).filter(|heap| heap.0 > 0);
    Some(Counters { heap, collector })
}

/// A number of 32 bits that counts bytes.
fn number(bytes: &[u8], at: usize) -> Option<usize> {
    let four = bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
    usize::try_from(i32::from_le_bytes(four))
        .ok()
        .filter(|number| *number > 0 || at == FIRST + 4)
}

/// A text that ends with a zero byte.
fn text(entry: &[u8], at: usize) -> &[u8] {
    let rest = entry.get(at..).unwrap_or_default();
    rest.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// The value of a counter of 64 bits.
fn value(entry: &[u8]) -> Option<u64> {
    let at = number(entry, 16)?;
    let eight = entry.get(at..at.checked_add(8)?)?.try_into().ok()?;
    u64::try_from(i64::from_le_bytes(eight)).ok()
}

#[cfg(test)]
mod tests {
    use model::{Bytes, Collector};

    use super::{Counters, MAGIC, read};

    fn heap(bytes: &[u8]) -> Option<Bytes> {
        read(bytes)?.heap
    }

    /// A file with these counters and texts.
    fn file(counters: &[(&str, u64)], collector: &str) -> Vec<u8> {
        let entry = |name: &str, kind: u8, data: &[u8]| {
            let at = (20 + name.len() + 1).next_multiple_of(8);
            let length = (at + data.len() + 1).next_multiple_of(8);
            let mut bytes = Vec::new();
            for number in [length, 20, if kind == b'J' { 0 } else { data.len() }] {
                bytes.extend((number as i32).to_le_bytes());
            }
            bytes.extend([kind, 0, 2, 1]);
            bytes.extend((at as i32).to_le_bytes());
            bytes.extend(name.as_bytes());
            bytes.resize(at, 0);
            bytes.extend(data);
            bytes.resize(length, 0);
            bytes
        };
        let mut bytes = MAGIC.to_vec();
        bytes.resize(24, 0);
        bytes.extend(32_i32.to_le_bytes());
        bytes.extend((counters.len() as i32 + 1).to_le_bytes());
        for (name, value) in counters {
            bytes.extend(entry(name, b'J', &value.to_le_bytes()));
        }
        bytes.extend(entry("sun.gc.collector.0.name", b'B', collector.as_bytes()));
        bytes
    }

    fn heap_of(young: u64, old: u64, collector: &str) -> Option<Bytes> {
        let generation = |number| format!("sun.gc.generation.{number}.maxCapacity");
        heap(&file(
            &[
                (&generation(0), young),
                ("sun.os.hrt.frequency", 7),
                (&generation(1), old),
            ],
            collector,
        ))
    }

    #[test]
    fn generations_share_the_heap_or_each_may_take_it() {
        // JDK 17 of -XX:MaxRAM=1g: 256 MiB by each collector.
        let g1 = "G1 young collection pauses";
        assert_eq!(heap_of(268_435_480, 268_435_464, g1), Some(Bytes::mib(256)));
        let parallel = "Parallel young collection pauses";
        assert_eq!(heap_of(88_080_384, 180_355_072, parallel), Some(Bytes::mib(256)));
        assert_eq!(
            heap_of(89_456_640, 178_978_816, "Serial young collection pauses"),
            Some(Bytes::mib(256))
        );
        assert_eq!(
            heap_of(268_435_456, 268_435_456, "ZGC minor collection pauses"),
            Some(Bytes::mib(256))
        );
    }

    /// A JVM chooses Serial by itself on one CPU, or in less than 1792 MiB.
    #[test]
    fn the_collector_is_the_one_that_runs() {
        for (name, collector) in [
            ("Serial young collection pauses", Some(Collector::Serial)),
            ("Copy", Some(Collector::Serial)),
            ("G1 young collection pauses", Some(Collector::G1)),
            ("PSScavenge", Some(Collector::Parallel)),
            ("ZGC minor collection pauses", None),
        ] {
            let counters = read(&file(&[], name));
            let expected = Counters { heap: None, collector };
            assert_eq!(counters, Some(expected), "{name}");
        }
    }

    #[test]
    fn what_is_cut_or_garbled_is_nothing() {
        let whole = file(&[("sun.gc.generation.1.maxCapacity", 1 << 28)], "G1");
        assert_eq!(heap(&whole), Some(Bytes::mib(256)));
        for cut in 0..whole.len() {
            let _ = heap(&whole[..cut]);
        }
        for at in 0..whole.len() {
            let mut other = whole.clone();
            other[at] ^= 0xff;
            let _ = heap(&other);
        }
        assert_eq!(heap(b"\xca\xfe\xc0\xc0\x00"), None);
    }
}
