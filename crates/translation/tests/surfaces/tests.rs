//! What is simulated has the shape of what was measured.

use super::{Order, surfaces};

#[test]
fn every_surface_has_a_geometry_and_both_orders() {
    let surfaces = surfaces().expect("geometries");
    assert_eq!(surfaces.len(), 5);
    for surface in surfaces {
        for order in [Order::Windows, Order::Random] {
            let points = surface.points.iter().filter(|point| point.order == order).count();
            assert!(points > 240, "{}: {points}", surface.id);
        }
        assert!(
            surface
                .points
                .iter()
                .all(|point| point.clocks >= 3.0 && point.working_set >= 2 * point.apart)
        );
    }
}

/// One in 25 points; `cargo bench -p hugewise-translation --bench surfaces` judges all.
#[test]
fn simulated_surfaces_have_the_shape_of_measured_ones() {
    let mut walked = 0;
    for surface in surfaces().expect("geometries") {
        let judged = surface.judge(5);
        let id = &surface.id;
        for (order, rank) in judged.rank {
            assert!(rank > 0.85, "{id}, {order:?}: {rank}");
        }
        assert!(judged.points > 20 && judged.error < 0.25, "{id}: {judged:?}");
        // What walks cost, where some of these points are a pair.
        if judged.pairs > 0 {
            let [measured, simulated] = judged.extra;
            assert!((simulated / measured - 1.0).abs() < 0.35, "{id}: {judged:?}");
            walked += 1;
        }
    }
    assert_eq!(walked, 4);
}
