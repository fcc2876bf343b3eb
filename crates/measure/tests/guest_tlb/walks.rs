//! Lines are reached in three ways, and the first is placed between the other two.

use crate::inside::ground::{LARGE, SMALL};
use crate::inside::walks::{Costs, Course, Through, WAYS};

#[test]
fn all_ways_lead_to_the_same_lines() {
    let course = Course::new(4);
    let windows = course.windows();
    let mut reached = WAYS.map(|way| {
        let window = &windows[way as usize];
        let mut lines: Vec<u64> = course
            .nodes(way, 3)
            .iter()
            .map(|node| {
                let (within, size) = (node.virt - window.virt, window.page.size().0);
                assert_eq!(window.frames[(within / size) as usize] + within % size, node.offset);
                node.offset
            })
            .collect();
        lines.sort_unstable();
        lines
    });
    reached.iter_mut().for_each(|lines| lines.dedup());
    assert_eq!(reached[0].len(), 128);
    assert!(reached.windows(2).all(|pair| pair[0] == pair[1]));
    let entry_lines = |way: Through| {
        let mut all: Vec<u64> = course.nodes(way, 0).iter().map(|node| node.virt / SMALL / 8).collect();
        all.sort_unstable();
        all.dedup();
        all.len()
    };
    assert_eq!((entry_lines(Through::Apart), entry_lines(Through::Row)), (128, 16));
    assert!(
        course
            .nodes(Through::Large, 0)
            .iter()
            .all(|node| node.offset < 4 * LARGE)
    );
}

#[test]
fn the_place_between_the_references_is_reported_only_if_they_differ() {
    let costs = |large: f64, apart: f64, row: f64, passes: u32| Costs {
        passes: (0..passes)
            .map(|n| [large, apart, row].map(|cost| cost + f64::from(n % 3)))
            .collect(),
    };
    let share = |costs: Costs| costs.judge(4096).expect("passes").share.map(|share| share.median);
    assert_eq!(share(costs(150.0, 150.0, 100.0, 30)), Some(1.0));
    assert_eq!(share(costs(90.0, 150.0, 100.0, 30)), Some(-0.2));
    assert_eq!(
        share(costs(100.0, 103.0, 100.0, 30)),
        None,
        "less than a twentieth apart"
    );
    assert_eq!(share(costs(100.0, 150.0, 100.0, 11)), None, "too few passes");
    assert!(Costs::default().judge(4096).is_none());
}
