//! Lines are spread over small and huge pages as the detector expects.

use std::collections::HashSet;

use measure::tlb::backing::Area;

use crate::inside::entries::{LINES_EACH, nodes};
use crate::inside::ground::{LARGE, LINE, SMALL};

#[test]
fn lines_are_as_many_as_asked_for_on_as_many_small_pages_as_meant() {
    for (area, pages) in [(Area::Small, 200), (Area::Dense, 4), (Area::Region(3), 200)] {
        let nodes = nodes(area, LINES_EACH, 1);
        let lines: HashSet<u64> = nodes.iter().map(|node| node.offset / LINE).collect();
        let small: HashSet<u64> = nodes.iter().map(|node| node.virt / SMALL).collect();
        let large: HashSet<u64> = nodes.iter().map(|node| node.virt / LARGE).collect();
        assert_eq!((lines.len(), small.len(), large.len()), (200, pages, 1), "{area:?}");
    }
}
