//! Pages for a Java virtual machine: the heap, the code cache, and what the garbage collector keeps beside the heap.

use model::{Bytes, Collector};

use super::{SizeError, Sizing};
use model::sizing::pages_for;

/// A table that a collector keeps: one byte of it for so many bytes of heap.
type Table = (&'static str, u64);

/// What is known of the JVM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jvm {
    /// `-Xmx`.
    pub heap: Bytes,
    /// `-XX:ReservedCodeCacheSize`: 240 MiB with tiered compilation.
    pub code_cache: Bytes,
    /// `-XX:MaxMetaspaceSize`, or what is expected.
    pub metaspace: Bytes,
    /// Threads, for their stacks of 1 MiB.
    pub threads: u64,
    pub collector: Collector,
    /// Major version of the JDK.
    pub jdk: u32,
    /// Page size of the pool for the heap.
    pub page: Bytes,
}

/// Structures that are too small for a page of the heap's size come from the pool of this size.
const SMALL: Bytes = Bytes::mib(2);
/// From this size on the code cache has segments.
const SEGMENTED: Bytes = Bytes::mib(240);
/// Pages that rounding up three segments takes at most beyond their sum. JDK 25 does that, JDK 17 and 21 do not. Of the versions between it is
/// not known: two pages too few keep a JVM from starting, two too many do no harm.
const SEGMENTS_EXTRA: u64 = 2;
const SOURCE: &str = "OpenJDK: os_linux.cpp, g1CollectedHeap.cpp, parMarkBitMap.cpp, cardTable.hpp, codeCache.cpp";

/// The tables of a collector in this version of the JDK.
fn tables(collector: Collector, jdk: u32) -> Vec<Table> {
    let cards = [("card_table", 512), ("offset_table", 512)];
    match collector {
        Collector::Serial => cards.to_vec(),
        // One of the two bitmaps went with JDK 23, and the table of blocks (JDK-8329203).
        Collector::Parallel if jdk < 23 => [&cards[..], &[("mark_bitmap", 32), ("block_table", 512)]].concat(),
        Collector::Parallel => [&cards[..], &[("mark_bitmap", 64)]].concat(),
        // One of the two bitmaps went with JDK 20 (JDK-8210708), the counts of cards with JDK 21 (JDK-8225409).
        Collector::G1 => {
            let bitmap = ("mark_bitmap", if jdk < 20 { 32 } else { 64 });
            let counts = (jdk < 21).then_some(("card_counts", 512));
            cards.into_iter().chain([bitmap]).chain(counts).collect()
        }
        Collector::Z => Vec::new(),
        Collector::Shenandoah => vec![("mark_bitmap", 32), ("aux_bitmap", 32)],
    }
}

impl Jvm {
    /// With HotSpot's defaults.
    pub fn new(heap: Bytes, page: Bytes) -> Self {
        Self {
            heap,
            code_cache: Bytes::mib(240),
            metaspace: Bytes::mib(256),
            threads: 100,
            collector: Collector::G1,
            jdk: 21,
            page,
        }
    }

    /// With what is known of one, and the defaults for the rest. Without a collector it is G1, or Parallel before JDK 9.
    pub fn known(
        heap: Bytes,
        page: Bytes,
        collector: Option<Collector>,
        jdk: Option<u32>,
        code_cache: Option<Bytes>,
    ) -> Self {
        let usual = Self::new(heap, page);
        let jdk = jdk.unwrap_or(usual.jdk);
        let default = if jdk < 9 { Collector::Parallel } else { Collector::G1 };
        Self {
            collector: collector.unwrap_or(default),
            code_cache: code_cache.unwrap_or(usual.code_cache),
            jdk,
            ..usual
        }
    }

    /// Is each segment of the code cache a whole number of pages?
    fn rounds_segments(&self) -> bool {
        self.jdk > 21 && self.code_cache >= SEGMENTED
    }

    /// Structures beside the heap that are large enough for a page: name, how, bytes.
    fn beside(&self) -> Vec<(&'static str, String, Bytes)> {
        let table = |(name, divisor): Table| {
            let bytes = Bytes(self.heap.0.div_ceil(divisor));
            (name, format!("{} / {divisor}", self.heap), bytes)
        };
        let tables = tables(self.collector, self.jdk).into_iter().map(table);
        let segments = if self.rounds_segments() { ", three segments" } else { "" };
        let how = format!("ReservedCodeCacheSize{segments}");
        let is_shenandoah = self.collector == Collector::Shenandoah;
        let regions = is_shenandoah.then(|| ("region_storage", "data of its regions".to_owned(), SMALL));
        let all = std::iter::once(("code_cache", how, self.code_cache)).chain(tables);
        let all = all.chain(regions);
        all.filter(|(_, _, bytes)| *bytes >= SMALL).collect()
    }
}

/// `size jvm`: pages of the heap's pool, and pages of 2 MiB for what lies beside it.
///
/// # Errors
/// When the page is none, or none that the collector takes.
pub fn jvm(jvm: &Jvm) -> Result<Sizing, SizeError> {
    let heap = pages_for(jvm.heap, jvm.page)?;
    if jvm.collector == Collector::Z && jvm.page != SMALL {
        let wanted = "2M: ZGC takes huge pages of no other size";
        return Err(SizeError::out_of_range("a page for ZGC", jvm.page.exact(), wanted));
    }
    let beside_page = jvm.page.min(SMALL);
    let (page, size, collector) = (jvm.page.exact(), jvm.heap, jvm.collector);
    let about = format!("pages of {page} for a JVM of {size} ({collector}, JDK {})", jvm.jdk);
    let how = format!("{size} / {page}, rounded up");
    let mut sizing = Sizing::new(about, SOURCE).step("heap", how, heap, "pages");
    let mut beside = 0u64;
    for (name, how, bytes) in jvm.beside() {
        let has_extra = name == "code_cache" && jvm.rounds_segments();
        let extra = if has_extra { SEGMENTS_EXTRA } else { 0 };
        let pages = pages_for(bytes, beside_page)?.saturating_add(extra);
        beside = beside.saturating_add(pages);
        let how = format!("{how} = {bytes}, / {} rounded up", beside_page.exact());
        sizing = sizing.step(name, how, pages, "pages");
    }
    let outside = jvm.metaspace.0.saturating_add(jvm.threads.saturating_mul(1 << 20));
    let how = format!(
        "metaspace {} + {} stacks of 1M, on base pages",
        jvm.metaspace, jvm.threads
    );
    sizing = sizing.step("outside", how, outside, "B");
    let sizing = totals(sizing, jvm.page, heap, beside)
        .trap(short_pool(collector))
        .trap("-Xms = -Xmx and -XX:+AlwaysPreTouch: pages are taken at the start or not at all")
        .trap("metaspace and stacks are never on pool pages");
    Ok(sizing)
}

/// What a pool with too few pages leads to.
fn short_pool(collector: Collector) -> &'static str {
    match collector {
        Collector::Z => {
            "with a pool that is too small for -Xms the JVM does not start, and one too small for \
             -Xmx lowers the heap's maximum"
        }
        _ => {
            "the JVM tests one page at the start: with a pool that is too small for all it falls \
             back part by part, with no more than a line in -Xlog:pagesize"
        }
    }
}

/// The most that OpenJ9 takes for its code on 64 bits, unless `-Xcodecachetotal` says more.
const OPENJ9_CODE: Bytes = Bytes::mib(256);
const OPENJ9_SOURCE: &str = "Eclipse OpenJ9 documentation: -Xlp:objectheap, -Xlp:codecache, -Xcodecachetotal, -XX:codecachetotalMaxRAMPercentage";

/// OpenJ9 with `-Xlp:objectheap` and `-Xlp:codecache`: no other of its memory takes pages of a pool by these options.
///
/// # Errors
/// When the page is none.
pub fn openj9(heap: Bytes, page: Bytes, code_cache: Option<Bytes>) -> Result<Sizing, SizeError> {
    let code = code_cache.map_or(OPENJ9_CODE, |own| own.max(OPENJ9_CODE));
    let beside_page = page.min(SMALL);
    let (of_heap, of_code) = (pages_for(heap, page)?, pages_for(code, beside_page)?);
    let about = format!("pages of {} for an OpenJ9 of {heap}", page.exact());
    let how = format!("{heap} / {}, rounded up", page.exact());
    let of_cache = format!("-Xcodecachetotal = {code}, / {} rounded up", beside_page.exact());
    let sizing = Sizing::new(about, OPENJ9_SOURCE)
        .step("heap", how, of_heap, "pages")
        .step("code_cache", of_cache, of_code, "pages");
    Ok(totals(sizing, page, of_heap, of_code))
}

/// The answer: one pool, or two where the heap's pages are larger than what lies beside it.
fn totals(sizing: Sizing, page: Bytes, heap: u64, beside: u64) -> Sizing {
    let smaller = "code cache and tables: the next smaller size";
    let all = heap.saturating_add(beside);
    match page > SMALL {
        true => sizing
            .step("pages_2m", smaller, beside, "pages of 2M")
            .step("pages", "the heap", heap, "pages")
            .trap("without a pool of 2M beside it, code cache and tables stay on base pages, silently"),
        false => sizing.step("pages", format!("{heap} + {beside}"), all, "pages"),
    }
}

#[cfg(test)]
mod tests {
    use super::{Jvm, jvm, openj9};
    use model::{Bytes, Collector};

    #[test]
    fn newer_jdks_round_up_each_segment_of_the_code_cache() {
        let pages = |jdk, code_cache| {
            let collector = Some(Collector::Z);
            let known = Jvm::known(Bytes::mib(256), Bytes::mib(2), collector, Some(jdk), code_cache);
            jvm(&known).expect("a size").whole("pages")
        };
        // A JVM 25 maps 118M + 6M + 118M, and with 248 pages ZGC does not start.
        assert_eq!((pages(17, None), pages(25, None)), (Some(248), Some(250)));
        assert_eq!(pages(25, Some(Bytes::mib(64))), Some(128 + 32), "one segment");
    }

    #[test]
    fn each_table_is_rounded_up_by_itself() {
        let mut six = Jvm::new(Bytes::gib(6), Bytes::mib(2));
        let sizing = jvm(&six).expect("a size");
        // 6 GiB / 512 = 12 MiB = 6 pages twice; / 64 = 96 MiB = 48 pages; 240 MiB of code = 120 pages.
        for (name, pages) in [
            ("heap", 3072),
            ("code_cache", 120),
            ("card_table", 6),
            ("offset_table", 6),
            ("mark_bitmap", 48),
            ("pages", 3252),
        ] {
            assert_eq!(sizing.whole(name), Some(pages), "{name}");
        }
        six.jdk = 17;
        assert_eq!(
            jvm(&six).expect("a size").whole("pages"),
            Some(3072 + 120 + 6 + 6 + 96 + 6)
        );
        six.collector = Collector::Z;
        assert_eq!(jvm(&six).expect("a size").whole("pages"), Some(3192));
    }

    /// psParallelCompact.cpp, shenandoahHeap.cpp.
    #[test]
    fn each_collector_has_the_tables_of_its_time() {
        let sizing = |collector, jdk, page| {
            let (heap, code) = (Bytes::gib(4), Some(Bytes::mib(64)));
            jvm(&Jvm::known(heap, page, Some(collector), Some(jdk), code))
        };
        for (collector, jdk, tables) in [
            (Collector::Parallel, 21, 4 + 4 + 64 + 4),
            (Collector::Parallel, 25, 4 + 4 + 32),
            (Collector::Shenandoah, 21, 64 + 64 + 1),
        ] {
            let sizing = sizing(collector, jdk, Bytes::mib(2)).expect("a size");
            assert_eq!(sizing.whole("pages"), Some(2048 + 32 + tables), "{collector} {jdk}");
            assert!(sizing.traps.iter().any(|trap| trap.contains("part by part")));
        }
        let zgc = |page| sizing(Collector::Z, 21, page);
        let traps = zgc(Bytes::mib(2)).expect("a size").traps;
        assert!(traps.iter().all(|trap| !trap.contains("part by part")), "{traps:?}");
        let refused = zgc(Bytes::gib(1)).expect_err("of one size").to_string();
        assert!(refused.contains("write 2M"), "{refused}");
    }

    #[test]
    fn what_lies_beside_a_heap_on_1g_pages_takes_2m_pages() {
        let sizing = jvm(&Jvm::new(Bytes(7 << 29), Bytes::gib(1))).expect("a size");
        assert_eq!(sizing.whole("pages"), Some(4), "3.5 GiB rounded up");
        assert_eq!(sizing.whole("pages_2m"), Some(120 + 4 + 4 + 28));
    }

    #[test]
    fn openj9_takes_its_heap_and_its_code() {
        let pages = |page, code| openj9(Bytes::gib(25), page, code).expect("a size");
        let sizing = pages(Bytes::mib(2), None);
        assert_eq!(sizing.whole("pages"), Some(12_800 + 128));
        assert!(!sizing.about.contains("g1"), "{}", sizing.about);
        // Less than the default is ignored.
        assert_eq!(
            pages(Bytes::mib(2), Some(Bytes::mib(64))).whole("code_cache"),
            Some(128)
        );
        assert_eq!(pages(Bytes::mib(2), Some(Bytes::gib(1))).whole("code_cache"), Some(512));
        let large = pages(Bytes::gib(1), None);
        assert_eq!((large.whole("pages"), large.whole("pages_2m")), (Some(25), Some(128)));
    }

    #[test]
    fn a_small_heap_has_tables_too_small_for_a_page() {
        let sizing = jvm(&Jvm::new(Bytes::mib(64), Bytes::mib(2))).expect("a size");
        assert_eq!(sizing.value("card_table"), None);
        assert_eq!(sizing.whole("pages"), Some(32 + 120));
    }

    #[test]
    fn every_collector_reads_what_it_prints() {
        for collector in Collector::ALL {
            assert_eq!(collector.to_string().parse(), Ok(collector));
        }
        assert!("cms".parse::<Collector>().expect_err("gone").contains("shenandoah"));
    }
}
