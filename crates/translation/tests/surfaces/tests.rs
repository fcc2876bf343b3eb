//! What is simulated has the shape of what was measured.

use super::{Order, surfaces};

#[test]
fn every_surface_has_a_geometry_and_both_halves() {
    let surfaces = surfaces().expect("geometries");
    assert_eq!(surfaces.len(), 5);
    for surface in surfaces {
        for order in [Order::Windows, Order::Random] {
            let of = |is_fitted: bool| {
                let points = surface.points.iter();
                points
                    .filter(|point| point.order == order && point.is_fitted == is_fitted)
                    .count()
            };
            assert!(
                of(true) > 120 && of(false) > 120,
                "{}: {} {}",
                surface.id,
                of(true),
                of(false)
            );
        }
        assert!(
            surface
                .points
                .iter()
                .all(|point| point.clocks >= 3.0 && point.working_set >= 2 * point.apart)
        );
    }
}

/// One in nine points, as all of them take minutes; `cargo bench -p hugewise-translation --bench surfaces` judges all.
#[test]
fn simulated_surfaces_have_the_shape_of_measured_ones() {
    for surface in surfaces().expect("geometries") {
        let judged = surface.judge(3);
        let id = &surface.id;
        for (order, rank) in judged.rank {
            assert!(rank > 0.95, "{id}, {order:?}: {rank}");
        }
        assert!(judged.judged > 30 && judged.error < 0.25, "{id}: {judged:?}");
    }
}
