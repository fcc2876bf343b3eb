//! Large folios below the PMD size, on made and on real memory.

use model::{Backing, Bytes, Cause, PageKind};
use proptest::prelude::*;

use super::{PageFlags, Seen, is_one, mthp_of, one_piece, own_range_mthp, refined, spread};
use crate::Source;
use crate::processes::areas::counted;
use crate::processes::{Coverage, Proof, own_range};

const HEAD: PageFlags = PageFlags(PageFlags::THP | PageFlags::COMPOUND_HEAD);
const TAIL: PageFlags = PageFlags(PageFlags::THP | PageFlags::COMPOUND_TAIL);
const BASE: PageFlags = PageFlags(0);

#[test]
fn a_folio_is_one_head_and_its_tails() {
    assert!(is_one(&[HEAD, TAIL, TAIL, TAIL, BASE], 4));
    assert!(is_one(&[HEAD, TAIL, TAIL, TAIL, HEAD], 4));
    assert!(is_one(&[HEAD, TAIL, TAIL, TAIL], 4), "at the end of memory");
    assert!(!is_one(&[HEAD, TAIL, TAIL, TAIL, TAIL], 4), "of a larger one");
    assert!(!is_one(&[TAIL, TAIL, TAIL, TAIL, BASE], 4), "the last quarter of one");
    assert!(!is_one(&[HEAD, TAIL, HEAD, TAIL, BASE], 4), "two smaller ones");
    assert!(!is_one(&[BASE; 5], 4));
    assert!(!is_one(&[HEAD, TAIL], 4), "cut off");
    let hugetlb = PageFlags(HEAD.0 | PageFlags::HUGE);
    assert!(!is_one(&[hugetlb, TAIL, TAIL, TAIL, BASE], 4));
}

#[test]
fn one_piece_is_present_in_order_and_aligned() {
    assert_eq!(one_piece(&[Some(8), Some(9), Some(10), Some(11)]), Some(8));
    assert_eq!(one_piece(&[Some(9), Some(10), Some(11), Some(12)]), None);
    assert_eq!(one_piece(&[Some(8), Some(9), None, Some(11)]), None);
    assert_eq!(one_piece(&[Some(8), Some(10)]), None);
    assert_eq!(one_piece(&[]), None);
}

#[test]
fn a_sample_moves_its_share_from_base_to_mthp() {
    let size = Bytes::kib(64);
    let proof = Proof {
        backing: [(PageKind::Base, Bytes::mib(4)), (PageKind::Thp, Bytes::mib(4))]
            .into_iter()
            .collect(),
        account: "PAGEMAP_SCAN".to_owned(),
    };
    let seen = Seen {
        ranges: 32,
        exact: 8,
        present: 0,
    };
    let refined = refined(&proof, size, 128, &seen);
    assert_eq!(refined.backing.to_string(), "base 2M + mthp-64K 2M + thp 4M");
    assert_eq!(refined.account, "PAGEMAP_SCAN; kpageflags, 32 of 128 ranges sampled");
}

#[test]
fn a_size_that_is_no_page_size_is_refused() {
    let proof = Proof {
        backing: Backing::new(),
        account: String::new(),
    };
    for size in [Bytes(0), Bytes(4096), Bytes(100_000), Bytes::gib(2)] {
        let answer = own_range_mthp(&proof, 0, 1 << 20, size);
        assert_eq!(answer.unread().expect("refused").unread, Cause::Failed, "{answer:?}");
    }
}

/// The stack of a test is base pages, whatever the machine's policy; without root the answer is a reason.
#[test]
#[allow(clippy::print_stderr)]
fn own_memory_is_sampled_by_root_and_denied_to_others() {
    let memory = vec![1_u8; 1 << 20];
    let (start, len) = (memory.as_ptr().addr(), memory.len());
    let proof = own_range(start, len).into_result().expect("a proof");
    match own_range_mthp(&proof, start, len, Bytes::kib(64)).into_result() {
        Ok(refined) => {
            assert!(refined.account.ends_with(" ranges sampled"), "{refined:?}");
            assert_eq!(refined.backing.total(), proof.backing.total());
        }
        Err(why) => {
            assert!(matches!(why.unread, Cause::Denied | Cause::Absent), "{why}");
            testing::skipped(&why.to_string());
        }
    }
}

#[test]
fn memory_of_a_process_is_sampled_by_root_and_denied_to_others_and_one_that_has_ended_is_absent() {
    let memory = vec![1_u8; 8 << 20];
    let areas = counted(&Source::live(), std::process::id())
        .into_result()
        .expect("own mappings");
    match mthp_of(std::process::id(), &areas, Bytes::kib(64)) {
        Ok(bytes) => assert!(bytes <= Coverage::of(&areas).own().total(), "{bytes} {}", memory.len()),
        Err(why) => {
            assert!(matches!(why.unread, Cause::Denied | Cause::Absent), "{why}");
            testing::skipped(&why.to_string());
        }
    }
    let gone = mthp_of(u32::MAX >> 1, &areas, Bytes::kib(64)).expect_err("no such process");
    assert_eq!(gone.unread, Cause::Absent, "{gone}");
}

proptest! {
    #[test]
    fn picks_are_inside_ascending_and_different(ranges in 1_u64..1_000_000, wanted in 1_u64..300) {
        let sampled = wanted.min(ranges);
        let picks: Vec<u64> = (0..sampled).map(|index| spread(index, sampled, ranges)).collect();
        prop_assert!(picks.is_sorted_by(|a, b| a < b));
        prop_assert!(picks.iter().all(|&pick| pick < ranges));
    }
}
