//! Why a mapping is on base pages, case by case.

use model::process::{MappingPages, ProcessPages};
use model::{Address, Backing, Bytes, PageKind, Reading};

use super::{Ground, Reason, why_base};
use crate::snapshot::{Choice, Kernel, MountTree, Thp};

fn thp(policy: &str) -> Thp {
    let chosen = Choice {
        chosen: policy.to_owned(),
        offered: Vec::new(),
    };
    Thp {
        directory: crate::snapshot::thp::THP.to_owned(),
        enabled: Reading::Known(chosen.clone()),
        defrag: Reading::absent("defrag"),
        shmem_enabled: Reading::Known(chosen),
        pmd_size: Reading::Known(Bytes::mib(2)),
        use_zero_page: Reading::Known(true),
        shrink_underused: Reading::absent("shrink_underused"),
        khugepaged: Reading::absent("khugepaged"),
        sizes: Vec::new(),
        unknown: Vec::new(),
    }
}

fn process(thp_enabled: bool) -> ProcessPages {
    ProcessPages {
        pid: 7,
        name: "x".to_owned(),
        uid: Reading::Known(0),
        resident: Reading::Known(Bytes::mib(9)),
        shared: Reading::Known(Bytes(0)),
        rss: Reading::Known(Bytes::mib(9)),
        hugetlb: Reading::Known(Bytes(0)),
        page_tables: Reading::Known(Bytes::kib(40)),
        backing: Reading::Known(Backing::new()),
        thp_enabled: Reading::Known(thp_enabled),
        segments: Vec::new(),
        shown_in: "smaps_rollup",
    }
}

/// A megabyte, four aligned blocks and another megabyte, all on base pages.
fn mapping(flags: &str) -> MappingPages {
    MappingPages {
        start: Address(0x7f00_0010_0000),
        end: Address(0x7f00_00b0_0000),
        perms: "rw-p".to_owned(),
        name: String::new(),
        offset: Bytes::mib(1),
        size: Bytes::mib(10),
        backing: [(PageKind::Base, Bytes::mib(10))].into_iter().collect(),
        thp_eligible: Some(true),
        flags: flags.split(' ').map(str::to_owned).collect(),
    }
}

fn why(mapping: &MappingPages, policy: &str) -> Option<Reason> {
    why_of(mapping, true, &Reading::Known(thp(policy)))
}

fn why_of(mapping: &MappingPages, thp_enabled: bool, thp: &Reading<Thp>) -> Option<Reason> {
    let kernel = Kernel {
        release: Reading::Known("6.18.0".to_owned()),
        command_line: Reading::absent("cmdline"),
        preemption: Reading::absent("preempt"),
        base_page: Reading::Known(Bytes::kib(4)),
    };
    let ground = Ground {
        thp,
        kernel: &kernel,
        mounts: &MountTree::default(),
    };
    why_base(mapping, &process(thp_enabled), &ground)
}

#[test]
fn the_policy_and_the_programs_advice_decide_first() {
    assert_eq!(why(&mapping("rd wr"), "never"), Some(Reason::PolicyNever));
    assert_eq!(why(&mapping("rd wr hg"), "never"), Some(Reason::PolicyNever));
    assert_eq!(why(&mapping("rd wr"), "madvise"), Some(Reason::NotAdvised));
    assert_eq!(why(&mapping("rd wr hg"), "madvise"), Some(Reason::NotGiven));
    assert_eq!(why(&mapping("rd wr"), "always"), Some(Reason::NotGiven));
    assert_eq!(why(&mapping("rd wr nh"), "always"), Some(Reason::AdvisedAgainst));
    let off = why_of(&mapping("rd hg"), false, &Reading::Known(thp("always")));
    assert_eq!(off, Some(Reason::SwitchedOff));
    let unread = why_of(&mapping("rd"), true, &Reading::absent("thp"));
    assert_eq!(unread, Some(Reason::PolicyUnread));
}

#[test]
fn memory_that_is_not_plain_is_told_apart() {
    let named = |name: &str, flags: &str| MappingPages {
        name: name.to_owned(),
        ..mapping(flags)
    };
    assert_eq!(
        why(&named("/usr/lib/libc.so.6", "rd ex"), "always"),
        Some(Reason::OfFile)
    );
    assert_eq!(why(&named("[anon:heap]", "rd wr"), "always"), Some(Reason::NotGiven));
    assert_eq!(why(&named("[vdso]", "rd ex"), "always"), Some(Reason::Special));
    assert_eq!(
        why(&named("/dev/nvidia0", "rd wr io pf"), "always"),
        Some(Reason::Special)
    );
    assert_eq!(why(&named("/dev/hugepages/x", "rd wr ht"), "always"), None);
}

#[test]
fn shared_memory_has_a_policy_of_its_own() {
    let shared = |name: &str, flags: &str, eligible| MappingPages {
        name: name.to_owned(),
        perms: "rw-s".to_owned(),
        thp_eligible: eligible,
        ..mapping(flags)
    };
    let zero = |eligible| shared("/dev/zero (deleted)", "rd wr sh", eligible);
    assert_eq!(why(&zero(Some(false)), "never"), Some(Reason::SharedNever));
    assert_eq!(why(&zero(Some(false)), "advise"), Some(Reason::SharedNotAdvised));
    assert_eq!(why(&zero(Some(true)), "always"), Some(Reason::NotGiven));
    let memfd = shared("/memfd:x (deleted)", "rd wr sh hg", Some(false));
    assert_eq!(why(&memfd, "never"), Some(Reason::SharedNever));
    assert_eq!(why(&memfd, "advise"), Some(Reason::NotEligible));
    let heap = |policy| why(&shared("/memfd:java_heap (deleted)", "rd wr sh", Some(false)), policy);
    assert_eq!(heap("never"), Some(Reason::SharedNever));
    assert_eq!(heap("advise"), Some(Reason::HeapNotAdvised));
    let file = |eligible| shared("/dev/shm/x", "rd wr sh", eligible);
    assert_eq!(why(&file(Some(false)), "always"), Some(Reason::OfTmpfs));
    assert_eq!(why(&file(Some(true)), "never"), Some(Reason::NotGiven));
    let private = MappingPages {
        perms: "rw-p".to_owned(),
        ..memfd
    };
    assert_eq!(why(&private, "always"), Some(Reason::OfFile));
}

#[test]
fn the_shape_of_a_mapping_may_leave_no_room() {
    let small = MappingPages {
        end: Address(0x7f00_003f_f000),
        ..mapping("rd")
    };
    assert_eq!(why(&small, "always"), Some(Reason::TooSmall));
    let backing = |base, thp| {
        [(PageKind::Base, Bytes::mib(base)), (PageKind::Thp, Bytes::mib(thp))]
            .into_iter()
            .collect()
    };
    let ends = MappingPages {
        backing: backing(2, 8),
        ..mapping("rd")
    };
    assert_eq!(why(&ends, "always"), Some(Reason::Ends));
    let partly = MappingPages {
        backing: backing(2, 6),
        ..mapping("rd")
    };
    assert_eq!(why(&partly, "always"), Some(Reason::NotGiven));
    let all = MappingPages {
        backing: backing(0, 10),
        ..mapping("rd")
    };
    assert_eq!(why(&all, "always"), None);
}

#[test]
fn a_mapping_that_the_kernel_refuses_for_no_visible_reason_is_not_eligible() {
    let refused = MappingPages {
        thp_eligible: Some(false),
        ..mapping("rd")
    };
    assert_eq!(why(&refused, "always"), Some(Reason::NotEligible));
    assert_eq!(
        why(&refused, "madvise"),
        Some(Reason::NotAdvised),
        "the visible reason goes first"
    );
    let old_kernel = MappingPages {
        thp_eligible: None,
        ..mapping("rd")
    };
    assert_eq!(why(&old_kernel, "always"), Some(Reason::NotGiven));
}

#[test]
fn garbled_addresses_do_not_upset_it() {
    for (start, end) in [(0, 0), (u64::MAX, 0), (2, u64::MAX)] {
        let odd = MappingPages {
            start: Address(start),
            end: Address(end),
            ..mapping("rd")
        };
        assert!(why(&odd, "always").is_some());
    }
}
