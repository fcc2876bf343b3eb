//! The joint fit on clean, disturbed, gentle and senseless observations.

use super::{Eviction, Fit, Sample, Shape, fit};
use crate::tlb::probe::Layout;
use model::tlb::{Hash, Ways};

fn shape(sets: u32, ways: u32, hash: Hash) -> Shape {
    Shape { sets, ways, hash }
}

fn observe(shape: Shape, strides: u32) -> Vec<Sample> {
    (0..strides)
        .map(Layout::strided)
        .flat_map(|layout| {
            let shares = shape.misses(layout, 1..160);
            (1..160).zip(shares).map(move |(pages, height)| Sample {
                layout,
                pages,
                height,
                slack: 0.01,
                passes: 12,
            })
        })
        .collect()
}

fn found(samples: &[Sample]) -> Fit {
    fit(samples, Eviction::Lru, (16, 200)).expect("observations")
}

#[test]
fn a_clean_observation_has_one_explanation() {
    for shape in [
        shape(16, 6, Hash::Linear),
        shape(8, 4, Hash::Linear),
        shape(1, 72, Hash::Linear),
        shape(16, 6, Hash::Fold),
        shape(4, 13, Hash::Fold),
    ] {
        let samples = observe(shape, 7);
        let fit = found(&samples);
        assert_eq!(fit.shape, shape, "{fit:?}");
        assert!(fit.is_decided() && fit.entries().is_exact(), "{fit:?}");
        assert_eq!(fit.ways(), Some(shape.associativity()));
        assert!(fit.misfit(&samples).usual < 1e-9);
    }
}

#[test]
fn one_stride_alone_tells_entries_but_not_ways() {
    let full = shape(1, 64, Hash::Linear);
    let samples: Vec<Sample> = observe(full, 1)
        .into_iter()
        .filter(|sample| [1, 64, 128].contains(&sample.pages))
        .collect();
    let fit = found(&samples);
    assert!(fit.entries().low <= 64 && fit.entries().high >= 64 && !fit.entries().is_exact());
    assert_eq!(fit.ways(), None, "three points cannot separate sets from ways: {fit:?}");
    assert_eq!(full.associativity(), Ways::Full);
}

#[test]
fn hits_that_were_seen_count_more_than_misses_that_a_neighbour_may_have_made() {
    let samples: Vec<Sample> = observe(shape(1, 64, Hash::Linear), 3)
        .into_iter()
        .map(|sample| Sample {
            // At two strides of three contention holds a fifth of it.
            height: if sample.layout.stride > 0 && sample.pages > 51 {
                1.0
            } else {
                sample.height
            },
            ..sample
        })
        .collect();
    assert_eq!(found(&samples).shape.entries(), 64);
}

#[test]
fn nonsense_fits_badly() {
    let noise: Vec<Sample> = (0..)
        .zip(observe(shape(16, 6, Hash::Linear), 5))
        .map(|(n, sample): (u32, Sample)| Sample {
            height: f64::from(n * 7919 % 101) / 100.0,
            ..sample
        })
        .collect();
    assert!(found(&noise).misfit(&noise).usual > 0.2);
}

#[test]
fn where_misses_spread_gently_the_edges_alone_tell() {
    let truth = shape(128, 24, Hash::Linear);
    let observe = |layout: Layout| {
        let pages = || (8..70).map(move |part| (truth.capacity(layout, 8000) * part / 32).max(1));
        let shares = truth.shares(Eviction::Any, layout, pages());
        pages().zip(shares).map(move |(pages, shares)| Sample {
            layout,
            pages,
            height: shares.least,
            slack: 0.01,
            passes: 32,
        })
    };
    let samples: Vec<Sample> = (0..6).map(Layout::strided).flat_map(observe).collect();
    let edges = fit(&samples, Eviction::Any, (1500, 6000)).expect("observations");
    assert!(edges.rivals.contains(&truth), "{edges:?}");
    assert_eq!(edges.shape.entries(), 3072, "{edges:?}");
    assert!(edges.misfit(&samples).explains());
    let lru = fit(&samples, Eviction::Lru, (1500, 6000)).expect("observations");
    assert_ne!(lru.shape.entries(), 3072, "LRU has no such gentle knee: {lru:?}");
}
