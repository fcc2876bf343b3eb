//! Layouts as users type them, and as the library reads them.

use model::{Bytes, PageKind};
use preload_abi::at;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::{Layout, Rule};

fn layout(text: &str) -> Layout {
    text.parse().expect(text)
}

#[test]
fn layouts_are_printed_as_they_are_typed() {
    for text in [
        "thp",
        "base",
        "hugetlb-1G,min=4M",
        "base,0-512M=hugetlb-2M,1G-=thp",
        "thp,3B-5B=base",
    ] {
        assert_eq!(layout(text).to_string(), text);
    }
    assert_eq!(
        layout(" base , 1G-2G=thp , -512M=hugetlb-2M "),
        layout("base,0-512M=hugetlb-2M,1G-2G=thp")
    );
}

#[test]
fn what_cannot_be_ordered_is_refused_and_names_the_part() {
    for (text, part) in [
        ("", "``"),
        ("huge", "`huge`"),
        ("mthp-64K", "`mthp-64K`"),
        ("hugetlb-1T", "`hugetlb-1T`"),
        ("base,0-1G=mthp-16K", "`mthp-16K`"),
        ("base,1G", "`1G`"),
        ("base,1G=thp", "`1G=thp`"),
        ("base,2G-1G=thp", "`2G-1G=thp`"),
        ("base,0-16=thp", "`0-16=thp`"),
        ("base,0-2G=thp,1G-3G=base", "`1G-3G=base`"),
        ("base,min=2", "`min=2`"),
        ("base,0-1G=hugetlb-64K", "`hugetlb-64K`"),
    ] {
        let error = text.parse::<Layout>().expect_err(text).to_string();
        assert!(
            error.starts_with(part) && error.contains("0-512M=hugetlb-2M"),
            "{text}: {error}"
        );
    }
}

#[test]
fn the_smallest_region_is_one_page_of_the_smallest_large_kind_unless_said() {
    let minimum = |text: &str| Bytes(layout(text).words(0)[at::MINIMUM]);
    assert_eq!(minimum("thp"), Bytes::mib(2));
    assert_eq!(minimum("base"), Bytes::mib(2));
    assert_eq!(minimum("hugetlb-1G"), Bytes::gib(1));
    assert_eq!(minimum("base,0-1G=hugetlb-1G,1G-2G=thp"), Bytes::mib(2));
    assert_eq!(minimum("hugetlb-1G,min=64K"), Bytes::kib(64));
}

#[test]
fn rules_stand_in_the_page_in_ascending_order() {
    let words = layout("base,1G-=thp,0-512M=hugetlb-2M").words(7);
    assert_eq!(words[at::NONCE], 7);
    assert_eq!(words[at::RULE_COUNT], 2);
    assert_eq!(words[at::RULES..at::RULES + 6], [0, 512 << 20, 2, 1 << 30, u64::MAX, 1]);
}

fn fixed() -> ProptestConfig {
    ProptestConfig {
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(fixed())]

    #[test]
    fn any_text_is_a_layout_or_an_error(text in "[ a-z0-9,=-]{0,40}") {
        if let Ok(layout) = text.parse::<Layout>() {
            prop_assert_eq!(layout.to_string().parse::<Layout>(), Ok(layout));
        }
    }

    #[test]
    fn layouts_survive_their_text(ends in prop::collection::btree_set(1..1_u64 << 50, 2..80), minimum in 1..1_u64 << 40) {
        let ends: Vec<u64> = ends.into_iter().collect();
        let kinds = [PageKind::Base, PageKind::Thp, PageKind::HUGETLB_2M, PageKind::HUGETLB_1G];
        let rules = ends.as_chunks::<2>().0.iter().zip(kinds.into_iter().cycle());
        let mut layout = Layout::of(PageKind::Thp).expect("thp").with_minimum(Bytes(minimum));
        for (&[from, to], kind) in rules {
            layout = layout.with_rule(Rule { from: Bytes(from), to: Bytes(to), kind }).expect("apart");
        }
        prop_assert_eq!(layout.to_string().parse::<Layout>(), Ok(layout));
    }
}
