//! Made results: who is right, what is missing, and what a readout says.

use model::guest::tlb::{Behind, GuestTlb, Readout, Walks};
use model::latency::Backed;
use model::tlb::{Entries, HostBacking, Verdict, Ways};
use model::{Backing, Estimate, PageKind, Reading};

use crate::render::look::Look;
use crate::show::Show;

fn exactly(value: f64) -> Estimate {
    Estimate {
        median: value,
        low: value,
        high: value,
        samples: 40,
    }
}

fn behind(kind: PageKind, leaf: Verdict, verdict: Verdict) -> Behind {
    let mut behind = Behind {
        kind,
        backing: Backed {
            asked: kind,
            got: Backing::new(),
            proof: "PAGEMAP_SCAN".to_owned(),
        },
        kvm: None,
        leaf,
        verdict: HostBacking {
            verdict,
            confidence: 0.9,
            splintered: None,
            evidence: vec!["seen".to_owned()],
        },
        consistent: None,
        entries: None,
        walks: Some(Walks {
            lines: 4096,
            large: exactly(150.0),
            apart: exactly(152.0),
            row: exactly(100.0),
            share: Some(exactly(0.96)),
            dropped: 0,
        }),
        levels: Vec::new(),
        not_measured: None,
    };
    behind.consistent = behind.is_consistent(Verdict::None);
    behind
}

fn guest(readout: Readout) -> GuestTlb {
    let missing = Behind {
        not_measured: Some("the pool is empty".to_owned()),
        walks: None,
        ..behind(PageKind::HUGETLB_2M, Verdict::Unknown, Verdict::Unknown)
    };
    GuestTlb {
        mmu: Reading::Known("shadow-pvm".to_owned()),
        native: behind(PageKind::Thp, Verdict::None, Verdict::None).verdict,
        behind: vec![
            behind(PageKind::Base, Verdict::Small, Verdict::Small),
            behind(PageKind::Thp, Verdict::None, Verdict::Small),
            missing,
        ],
        readout,
        cpu: 1,
        seconds: 3.0,
    }
}

#[test]
fn agreement_contradiction_and_what_is_missing_are_told_apart() {
    let guest = guest(Readout::Blind {
        why: "shadow".to_owned(),
    });
    assert!(
        guest.headlines()[0].contains("1 of 3 page kinds; 1 contradicts them"),
        "{:?}",
        guest.headlines()
    );
    let look = Look {
        width: 200,
        color: false,
        plot: false,
    };
    let text = guest.text(look);
    for part in [
        "0.96",
        "NO",
        "hugetlb-2M: not obtained: the pool is empty",
        "base: seen",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let (head, mut lines) = guest.csv();
    assert!(lines.all(|line| line.len() == head.len()));
}

#[test]
fn a_readout_is_one_sentence_either_way() {
    let blind = guest(Readout::Blind {
        why: "shadow".to_owned(),
    });
    assert_eq!(blind.headlines()[1], "TLB content cannot be read out here: shadow.");
    let seen = guest(Readout::Seen {
        entries: Entries { low: 2000, high: 2100 },
        ways: Some(Ways::Count(16)),
        latest_first: true,
    });
    assert!(seen.headlines()[1].contains("2000-2100 pages of 4K, 16-way; the latest"));
}
