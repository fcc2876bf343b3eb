//! Verdicts from made evidence: right names on quiet machines, no wrong ones on noisy ones.

use host::snapshot::Mmu;
use model::tlb::{HostBacking, Verdict};
use model::{Backing, Bytes, PageKind};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::inside::verdict::{Leaves, Outcome, decide, leaf, unknown};
use crate::inside::walks::{Costs, Walks};

fn said(verdict: Verdict) -> HostBacking {
    HostBacking {
        verdict,
        ..unknown(String::new())
    }
}

/// Passes over huge pages of which a share is splintered, with references 100 and 150 cycles, and contention that adds up
/// to `noise` times as much to each timing.
fn walks(splintered: f64, noise: f64, seed: u64) -> Option<Walks> {
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let mut heard = |cost: f64| cost * (1.0 + noise * rng.random::<f64>());
    let passes = (0..60).map(|_| [heard(100.0 + 50.0 * splintered), heard(150.0), heard(100.0)]);
    let passes = passes.collect();
    Costs { passes }.judge(4096)
}

fn shadow(walks: Option<&Walks>) -> HostBacking {
    decide(
        Some(Mmu::ShadowPvm),
        &said(Verdict::Small),
        walks,
        &said(Verdict::Small),
    )
}

#[test]
fn both_backings_are_named_in_all_runs_beside_a_noisy_neighbor() {
    for seed in 0..40 {
        let small = shadow(walks(1.0, 0.3, seed).as_ref());
        assert_eq!(small.verdict, Verdict::Small, "{seed} {small:?}");
        let large = shadow(walks(0.0, 0.3, seed).as_ref());
        assert_eq!(large.verdict, Verdict::None, "{seed} {large:?}");
        assert!(
            large.evidence[1].contains("itself virtual") && large.confidence > 0.3,
            "{large:?}"
        );
    }
}

#[test]
fn heavy_noise_is_no_verdict_rather_than_a_wrong_one() {
    let mut refused = 0;
    for seed in 0..200 {
        for (splintered, right) in [(1.0, Verdict::Small), (0.0, Verdict::None)] {
            let said = shadow(walks(splintered, 10.0, seed).as_ref());
            assert!([right, Verdict::Unknown].contains(&said.verdict), "{seed} {said:?}");
            refused += u32::from(said.verdict == Verdict::Unknown);
        }
    }
    assert!(refused > 200, "{refused} of 400");
}

#[test]
fn a_half_splintered_guest_is_not_given_either_name() {
    let said = shadow(walks(0.42, 0.02, 1).as_ref());
    assert_eq!((said.verdict, said.splintered), (Verdict::Unknown, None));
    assert!(said.evidence[0].contains("in between"), "{said:?}");
    assert_eq!(shadow(None).verdict, Verdict::Unknown);
}

#[test]
fn walks_decide_under_shadow_paging_and_entries_under_nested_paging() {
    let small_walks = walks(1.0, 0.1, 1);
    let by = |mmu, native, entries| decide(mmu, &said(native), small_walks.as_ref(), &said(entries)).verdict;
    use Verdict::{None as Whole, Small, Unknown};
    assert_eq!(by(Some(Mmu::ShadowVmx), Whole, Small), Small);
    assert_eq!(by(Some(Mmu::Ept), Whole, Small), Small);
    assert_eq!(
        by(Some(Mmu::Npt), Small, Small),
        Unknown,
        "the layer below may have splintered them"
    );
    assert_eq!(by(None, Whole, Small), Unknown);
    for mmu in [None, Some(Mmu::Ept), Some(Mmu::ShadowPvm)] {
        assert_eq!(by(mmu, Whole, Whole), Whole, "whole entries need every layer");
    }
}

#[test]
fn leaves_are_what_kvm_counted_or_else_what_the_kernel_reports() {
    let backed = |kind| [(kind, Bytes::mib(256))].into_iter().collect::<Backing>();
    let leaves = |large| {
        Some(Leaves {
            visited: 128,
            small: (128 - large) * 512,
            large,
        })
    };
    assert_eq!(leaf(leaves(128), &backed(PageKind::Base)), Verdict::None);
    assert_eq!(leaf(leaves(0), &backed(PageKind::Thp)), Verdict::Small);
    assert_eq!(leaf(leaves(64), &backed(PageKind::Thp)), Verdict::Unknown);
    assert_eq!(leaf(None, &backed(PageKind::HUGETLB_2M)), Verdict::None);
    assert_eq!(leaf(None, &backed(PageKind::Base)), Verdict::Small);
}

#[test]
fn the_effective_size_is_never_larger_than_a_leaf_and_smaller_only_where_a_layer_below_may_make_it_so() {
    use Verdict::{None as Whole, Small, Unknown};
    for native in [Whole, Small, Unknown] {
        assert_eq!(Outcome::of(Small, Small, native), Outcome::Right);
        assert_eq!(Outcome::of(Small, Whole, native), Outcome::Wrong);
        assert_eq!(Outcome::of(Whole, Whole, native), Outcome::Right);
        assert_eq!(Outcome::of(Small, Unknown, native), Outcome::Unknown);
        assert_eq!(Outcome::of(Unknown, Small, native), Outcome::Unknown);
    }
    // A host on 4 KiB pages below this machine, seen on a Zen 5 cloud guest: KVM's leaves are large, TLB entries are small.
    assert_eq!(Outcome::of(Whole, Small, Small), Outcome::Unknown);
    assert_eq!(Outcome::of(Whole, Small, Unknown), Outcome::Unknown);
    assert_eq!(Outcome::of(Whole, Small, Whole), Outcome::Wrong);
}
