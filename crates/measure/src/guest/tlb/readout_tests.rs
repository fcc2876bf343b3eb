//! The readout against TLBs on paper, against those that blind it, and on this machine's KVM.
#![allow(clippy::print_stderr)]

use std::collections::HashSet;

use chase::arena::{Arena, Want};
use model::guest::tlb::Readout;
use model::tlb::Ways;
use model::{Bytes, PageKind};
use sim::tlb::{Array, Replacement, Tlb};

use super::{Held, InGuest, MEMORY, node, read_out, window};

const PAGE: Bytes = Bytes::kib(4);
const WALK: f64 = 100.0;

/// A machine on paper: what is not walked for is held.
struct Paper(Vec<Array>);

impl Held for Paper {
    fn is_held(&mut self, visits: &[u64], page: u64) -> Result<bool, vm::Error> {
        let mut tlb = Tlb::new(&self.0, WALK);
        for &page in visits {
            tlb.access(PAGE, page);
        }
        Ok(tlb.access(PAGE, page) < WALK)
    }
}

fn seen(arrays: &[Array]) -> (model::tlb::Entries, Option<Ways>, bool) {
    match read_out(&mut Paper(arrays.to_vec()), &|| false).expect("paper does not fail") {
        Readout::Seen {
            entries,
            ways,
            latest_first,
        } => (entries, ways, latest_first),
        Readout::Blind { why } => panic!("{why}"),
    }
}

#[test]
fn entries_ways_and_policy_of_tlbs_on_paper_are_read_out() {
    for (sets, ways, replacement) in [
        (128, 16, Replacement::Lru),
        (256, 8, Replacement::Lru),
        (128, 12, Replacement::Random),
        (64, 4, Replacement::TreePlru),
    ] {
        let first = Array::new(1, PAGE, 1, 72, 0.0);
        let second = Array {
            replacement,
            ..Array::new(2, PAGE, sets, ways, 7.0)
        };
        let (entries, told, latest_first) = seen(&[first, second]);
        let truth = sets * ways;
        // What only the first level still holds comes on top.
        assert!(
            entries.low <= truth + 72 && entries.high >= truth,
            "{sets} x {ways} {replacement:?}: {entries}"
        );
        if replacement == Replacement::Lru {
            assert_eq!((told, latest_first), (Some(Ways::Count(ways)), true), "{sets} x {ways}");
        }
        assert!(replacement != Replacement::Random || !latest_first);
    }
}

#[test]
fn ways_of_one_set_or_of_hashed_sets_are_not_told() {
    assert_eq!(seen(&[Array::new(1, PAGE, 1, 512, 0.0)]).1, None);
    assert_eq!(seen(&[Array::new(1, PAGE, 128, 16, 0.0).hashed()]).1, None);
}

/// A hypervisor's own tables: they keep a page from its first visit on, for good or not at all.
struct Shadow {
    keeps: bool,
    known: HashSet<u64>,
}

impl Held for Shadow {
    fn is_held(&mut self, visits: &[u64], page: u64) -> Result<bool, vm::Error> {
        self.known.extend(visits);
        Ok(self.keeps && self.known.contains(&page))
    }
}

#[test]
fn shadow_tables_are_found_out_by_the_controls() {
    for (keeps, why) in [(true, "until a flush"), (false, "intercepts")] {
        let mut shadow = Shadow {
            keeps,
            known: HashSet::new(),
        };
        let told = read_out(&mut shadow, &|| false).expect("answers");
        assert!(
            matches!(&told, Readout::Blind { why: told } if told.contains(why)),
            "{told:?}"
        );
    }
}

#[test]
fn nodes_have_words_of_their_own_inside_the_windows_frames() {
    let window = window();
    let mut words = HashSet::new();
    for page in 0..window.frames.len() as u64 {
        let node = node(page);
        assert!(words.insert(node.offset));
        assert_eq!(node.offset, window.frames[page as usize] + node.virt % 4096);
    }
}

#[test]
fn this_machine_is_read_out_or_says_why_it_is_blind() {
    let hypervisor = match vm::Hypervisor::open() {
        Ok(hypervisor) => hypervisor,
        Err(why) => return testing::skipped(&why.to_string()),
    };
    let mut arena = Arena::new(&Want::plain(PageKind::Base, Bytes(MEMORY))).expect("4 MiB");
    let window = window();
    let memory = vm::Memory::of_arena(&mut arena).expect("whole pages");
    let mut guest = InGuest::new(&hypervisor, memory, &window).expect("a guest");
    match read_out(&mut guest, &|| false).expect("a guest that runs") {
        Readout::Seen { entries, .. } => assert!(entries.low <= entries.high, "{entries}"),
        Readout::Blind { why } => eprintln!("blind here: {why}"),
    }
}
