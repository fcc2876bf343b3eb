//! TLB reach: entries times page size, and how much of a working set that covers.

use model::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a TLB of some entries reaches with pages of one size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reach {
    /// Page size.
    pub page: Bytes,
    /// TLB entries.
    pub entries: u64,
    /// Entries x page size.
    pub reach: Bytes,
    /// How much of each working set is covered, in the order asked for.
    pub covers: Vec<Cover>,
}

/// The part of a working set that a TLB reaches. With uniform random accesses it is the hit rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cover {
    /// The working set.
    pub working_set: Bytes,
    /// From 0 to 1: reach / working set, and never more than all of it.
    pub share: f64,
}

/// Every page size with every TLB, page sizes outermost: the rows of the table that the VCF study prints. A reach saturates where it
/// exceeds 64 bits.
pub fn table(pages: &[Bytes], entries: &[u64], working_sets: &[Bytes]) -> Vec<Reach> {
    let row = |page: Bytes, entries: u64| {
        let reach = Bytes(page.0.saturating_mul(entries));
        let cover = |&working_set: &Bytes| Cover {
            working_set,
            share: if reach >= working_set {
                1.0
            } else {
                reach.0 as f64 / working_set.0 as f64
            },
        };
        Reach {
            page,
            entries,
            reach,
            covers: working_sets.iter().map(cover).collect(),
        }
    };
    let rows = |&page: &Bytes| entries.iter().map(move |&entries| row(page, entries));
    pages.iter().flat_map(rows).collect()
}

#[cfg(test)]
mod tests {
    use super::table;
    use model::Bytes;

    /// Table 1 of VMware's and Samsung's study of memory latency on VMware Cloud Foundation ("VCF blog"): page size,
    /// entries, coverage in GB, per cent of 8 GB, per cent of 64 GB, as printed there.
    const VCF_TABLE_1: [(&str, u64, f64, f64, f64); 9] = [
        ("4K", 64, 0.000_244, 0.0031, 0.000_38),
        ("4K", 256, 0.000_977, 0.0122, 0.001_53),
        ("4K", 2048, 0.007_812, 0.0977, 0.0122),
        ("2M", 64, 0.125, 1.5625, 0.1953),
        ("2M", 256, 0.5, 6.25, 0.7813),
        ("2M", 2048, 4.0, 50.0, 6.25),
        ("1G", 64, 64.0, 100.0, 100.0),
        ("1G", 256, 256.0, 100.0, 100.0),
        ("1G", 2048, 2048.0, 100.0, 100.0),
    ];

    /// Equal in every digit that the study prints: at most half a unit of its last place away.
    fn printed_as(value: f64, printed: f64) -> bool {
        let digits = printed
            .to_string()
            .split_once('.')
            .map_or(0, |(_, fraction)| fraction.len());
        (value - printed).abs() <= 0.5 * 10f64.powi(-(digits as i32)) * (1.0 + 1e-9)
    }

    #[test]
    fn the_vcf_table_is_reproduced_exactly() {
        let size = |text: &str| text.parse::<Bytes>().expect("a size");
        let pages = ["4K", "2M", "1G"].map(size);
        let rows = table(&pages, &[64, 256, 2048], &[Bytes::gib(8), Bytes::gib(64)]);
        assert_eq!(rows.len(), VCF_TABLE_1.len());
        for (row, (page, entries, coverage, of_8, of_64)) in rows.iter().zip(VCF_TABLE_1) {
            assert_eq!((row.page, row.entries), (size(page), entries));
            let gb = row.reach.0 as f64 / Bytes::gib(1).0 as f64;
            assert!(
                printed_as(gb, coverage),
                "{page} x {entries}: {gb} GB, printed {coverage}"
            );
            for (cover, printed) in row.covers.iter().zip([of_8, of_64]) {
                let percent = cover.share * 100.0;
                assert!(
                    printed_as(percent, printed),
                    "{page} x {entries}: {percent} %, printed {printed}"
                );
            }
        }
    }

    #[test]
    fn nothing_overflows_and_an_empty_working_set_is_covered() {
        let reach = table(&[Bytes::gib(1)], &[u64::MAX], &[Bytes(0), Bytes::gib(8)]).remove(0);
        assert_eq!(reach.reach, Bytes(u64::MAX));
        assert!(reach.covers.iter().all(|cover| cover.share == 1.0));
    }
}
