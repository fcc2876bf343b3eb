//! The verdict claims what was measured, and nothing more, and leads on.

use host::snapshot::FreeBlocks;
use model::headline::Headline;
use model::tlb::Verdict as HostPages;
use model::verdict::{Choice, Doubt, Saving, Verdict};
use model::{Bytes, Cause, PageKind, Reading, Unread};

use super::{Grounds, Server};
use crate::cli::args::Sort;
use crate::render::find::verdict::sentences;
use crate::results::ProcessList;
use crate::samples::{grounds, headline, machine, process_rows, tlb};

const SMALL: Bytes = Bytes::kib(128);
const MIDDLE: Bytes = Bytes::mib(256);
const LARGE: Bytes = Bytes::gib(1);
const BASE: PageKind = PageKind::Base;
const THP: PageKind = PageKind::Thp;
const POOL: PageKind = PageKind::HUGETLB_2M;

fn judged(grounds: &Grounds<'_>) -> Verdict {
    let verdict = super::verdict(grounds);
    Verdict {
        sentences: sentences(&verdict).to_vec(),
        ..verdict
    }
}

fn of(headline: &Headline) -> Verdict {
    judged(&grounds(Ok(headline), &machine()))
}

fn thp(ends: [[f64; 2]; 3]) -> Headline {
    let gains: Vec<_> = [SMALL, MIDDLE, LARGE]
        .into_iter()
        .zip(ends)
        .map(|(bytes, ends)| (bytes, THP, BASE, ends))
        .collect();
    headline(&gains)
}

#[test]
fn a_saving_is_reported_at_each_size_with_its_interval_and_where_there_is_none() {
    let verdict = of(&thp([[-0.41, 0.24], [7.0, 9.02], [12.0, 16.0]]));
    assert!(matches!(verdict.saving, Saving::Saves { .. }), "{verdict:#?}");
    assert!(
        verdict.sentences[0].starts_with(
            "Huge pages save 8 % (7 to 9) at 256M and 14 % (12 to 16) at 1G of the time of a random read, by working set (thp, 95 % CI); no difference (3 points or less): -0.4 to 0.2 % at 128K."
        ),
        "{}",
        verdict.sentences[0]
    );
}

#[test]
fn within_three_points_of_none_there_is_no_difference_and_nothing_to_choose() {
    let verdict = of(&thp([[-0.4, 0.2], [-1.0, 2.5], [0.5, 2.9]]));
    assert!(matches!(verdict.saving, Saving::NoDifference { .. }), "{verdict:#?}");
    assert!(
        verdict.sentences[0].starts_with("Huge pages make no difference"),
        "{}",
        verdict.sentences[0]
    );
    assert_eq!(verdict.choice, Choice::NoDifference);
}

#[test]
fn a_wide_interval_is_no_answer_and_has_a_reason_a_time_and_no_number_in_its_middle() {
    let verdict = of(&thp([[-0.4, 0.2], [-2.0, 9.0], [-8.0, 24.0]]));
    let Saving::CannotTell { why, seconds, .. } = &verdict.saving else {
        panic!("{verdict:#?}");
    };
    assert_eq!(
        *why,
        Doubt::DrawsDiffer {
            least: -8.0,
            most: 24.0
        }
    );
    // 16 points to each side are to become 2.
    assert_eq!(*seconds, Some(27.0 * 64.0));
    let sentence = &verdict.sentences[0];
    assert!(
        sentence.contains("is not clear") && sentence.contains("-8 to 24 % at 1G") && sentence.contains("29 min"),
        "{sentence}"
    );
    assert!(!sentence.contains("at 128K"), "{sentence}");
    assert!(
        verdict.next[0].command.starts_with("hugewise checkup --budget "),
        "{:?}",
        verdict.next
    );
}

#[test]
fn too_few_draws_for_an_interval_say_so() {
    let mut short = thp([[-0.4, 0.2], [7.0, 9.0], [12.0, 16.0]]);
    short.draws = 2;
    short.gains.iter_mut().for_each(|gain| gain.saved = None);
    let verdict = of(&short);
    assert!(
        verdict.sentences[0]
            .starts_with("Whether huge pages save time here is not clear. There was time to take memory 2 times only"),
        "{}",
        verdict.sentences[0]
    );
}

#[test]
fn a_loss_is_called_one() {
    let verdict = of(&thp([[-0.4, 0.2], [-9.0, -5.0], [-1.0, 2.0]]));
    assert!(matches!(verdict.saving, Saving::Costs { .. }), "{verdict:#?}");
    assert!(
        verdict.sentences[0].starts_with("Huge pages cost 7 % (5 to 9) at 256M"),
        "{}",
        verdict.sentences[0]
    );
}

#[test]
fn the_kind_that_is_easiest_to_set_up_leads_unless_only_another_saves() {
    let both = |thp: [f64; 2], more: [f64; 2]| {
        of(&headline(&[
            (LARGE, THP, BASE, thp),
            (LARGE, POOL, BASE, [12.0, 16.0]),
            (LARGE, POOL, THP, more),
        ]))
    };
    let enough = both([11.0, 15.0], [-1.0, 2.0]);
    assert!(
        enough.sentences[0].contains("(thp, 95 % CI)") && enough.sentences[0].contains("thp is enough"),
        "{enough:#?}"
    );
    assert!(matches!(
        enough.choice,
        Choice::Enough {
            kind: THP,
            best: POOL,
            ..
        }
    ));
    let better = both([-1.0, 2.0], [10.0, 14.0]);
    assert!(better.sentences[0].contains("(hugetlb-2M, 95 % CI)"), "{better:#?}");
    assert_eq!(better.choice, Choice::Best { kind: POOL });
    let open = both([4.0, 12.0], [-2.0, 9.0]);
    assert!(matches!(open.choice, Choice::Open { rival: THP, .. }), "{open:#?}");
}

#[test]
fn what_the_host_takes_away_stands_in_the_sentence() {
    let headline = thp([[-0.4, 0.2], [7.0, 9.0], [12.0, 16.0]]);
    let (machine, tlb) = (machine(), tlb());
    let verdict = judged(&Grounds {
        tlb: Some(&tlb),
        ..grounds(Ok(&headline), &machine)
    });
    assert!(
        verdict.sentences[0].contains("the host backs huge pages with pages of 4K (96 % sure)"),
        "{verdict:#?}"
    );
}

/// Single pages and pieces of 8 pages that are free, beside a gigabyte in pieces of 2M; none if that could not be read.
type Free = Option<[u64; 2]>;

fn lie(ends: [[f64; 2]; 3], host_lines: Option<f64>, (hypervisor, pages): (&str, HostPages), free: Free) -> Verdict {
    let headline = Headline {
        host_lines,
        ..thp(ends)
    };
    let (mut machine, mut tlb) = (machine(), tlb());
    machine.cpu.hypervisor = Reading::Known(hypervisor.to_owned());
    machine.kernel.base_page = Reading::Known(Bytes::kib(4));
    let zone = |[single, eights]: [u64; 2]| FreeBlocks {
        node: 0,
        zone: "Normal".to_owned(),
        by_order: vec![single, 0, 0, eights, 0, 0, 0, 0, 0, 512],
    };
    let denied = || Unread::new(Cause::Denied, "/proc/buddyinfo", "");
    machine.memory.free_blocks = free.map(|free| vec![zone(free)]).ok_or_else(denied).into();
    tlb.host_backing.verdict = pages;
    judged(&Grounds {
        tlb: Some(&tlb),
        ..grounds(Ok(&headline), &machine)
    })
}

const SAVES: [[f64; 2]; 3] = [[-0.4, 0.2], [7.0, 9.0], [12.0, 16.0]];
const GUEST: (&str, HostPages) = ("KVM", HostPages::Small);
const IN_ORDER: Free = Some([0, 0]);
/// 2 GiB in pieces below 2M.
const IN_PIECES: Free = Some([262_144, 32_768]);

#[test]
fn scattered_base_pages_are_blamed_only_where_a_host_has_an_entry_for_each() {
    let scattered = lie(SAVES, Some(4.81), GUEST, IN_ORDER);
    assert!(
        scattered.sentences[0].contains(
            "away. Base pages lie scattered here, on 4.8 times as many lines of the host's page table as in order. Part of the saving is due to \
             that: after a restart, or in part after `echo 1 > /proc/sys/vm/compact_memory`, a program has less to gain."
        ),
        "{}",
        scattered.sentences[0]
    );
    let bare = ("none", HostPages::Unknown);
    let silent = [
        ("in order", lie(SAVES, Some(1.4), GUEST, IN_ORDER)),
        ("in order in spite of pieces", lie(SAVES, Some(1.1), GUEST, IN_PIECES)),
        ("hidden", lie(SAVES, None, GUEST, IN_ORDER)),
        (
            "hidden, in pieces that share no line",
            lie(SAVES, None, GUEST, Some([0, 65_536])),
        ),
        ("bare metal", lie(SAVES, Some(4.81), bare, IN_PIECES)),
        ("bare metal, unread", lie(SAVES, None, bare, None)),
        (
            "large host pages",
            lie(SAVES, Some(4.81), ("KVM", HostPages::None), IN_PIECES),
        ),
        ("no saving", lie([[-0.4, 0.2]; 3], Some(4.81), GUEST, IN_PIECES)),
    ];
    for (why, verdict) in silent {
        assert!(!verdict.sentences[0].contains("scattered"), "{why}: {verdict:#?}");
        let json = serde_json::to_string(&verdict).expect("JSON");
        assert!(!json.contains("scattered") && !json.contains("small_blocks"), "{why}");
        if why != "no saving" {
            assert_eq!(verdict.next, scattered.next, "no other command");
        }
    }
}

#[test]
fn free_memory_in_small_pieces_is_named_where_base_pages_come_from_it() {
    let few = lie(SAVES, Some(1.6), GUEST, IN_PIECES);
    let pieces = "2G of free memory lay in blocks below 2M (/proc/buddyinfo), from which base pages come first.";
    let due = "art of the saving is";
    for part in ["on 1.6 times as many lines", pieces, &format!("P{due} due to that")] {
        assert!(few.sentences[0].contains(part), "{part}: {}", few.sentences[0]);
    }
    let hidden = lie(SAVES, None, GUEST, IN_PIECES);
    assert_eq!((hidden.scattered, &hidden.small_blocks), (None, &few.small_blocks));
    let likely = format!("{pieces} So they likely lie scattered, and then p{due} due to that: after a restart");
    assert!(hidden.sentences[0].contains(&likely), "{}", hidden.sentences[0]);
    let unread = lie(SAVES, None, GUEST, None);
    assert!(
        unread.sentences[0].contains(
            "Base pages may lie scattered, and then part of the saving is due to that. Only root can read where they lie, and free memory could \
             not be read (denied: /proc/buddyinfo)."
        ),
        "{}",
        unread.sentences[0]
    );
    for verdict in [few, hidden, unread] {
        let json = serde_json::to_string(&verdict).expect("JSON");
        assert_eq!(serde_json::from_str::<Verdict>(&json).expect("a verdict"), verdict);
    }
}

#[test]
fn who_uses_huge_pages_is_named_and_the_next_commands_are_for_this_machine() {
    let headline = thp([[-0.4, 0.2], [7.0, 9.0], [12.0, 16.0]]);
    let machine = machine();
    let none = judged(&grounds(Ok(&headline), &machine));
    let commands = |verdict: &Verdict| verdict.next.iter().map(|next| next.command.clone()).collect::<Vec<_>>();
    assert_eq!(
        commands(&none),
        [
            "hugewise compare --arms base,thp -- YOUR_PROGRAM",
            "hugewise plan --for thp=always"
        ]
    );
    let processes = ProcessList::new(process_rows(), Sort::Large, None);
    let servers = [Server {
        name: "postgres".to_owned(),
        pid: 30,
        runs_machines: false,
    }];
    let some = judged(&Grounds {
        processes: Some(&processes),
        servers: &servers,
        root: Some("db7.tree"),
        ..grounds(Ok(&headline), &machine)
    });
    assert!(
        some.sentences[1].starts_with("Huge pages are used now by jvm (512M) and db"),
        "{}",
        some.sentences[1]
    );
    assert_eq!(commands(&some)[0], "hugewise --root db7.tree explain postgres");
}

#[test]
fn a_verdict_is_read_back_from_its_json() {
    let shown = thp([[-0.4, 0.2], [7.0, 9.0], [12.0, 16.0]]);
    let open = thp([[-0.4, 0.2], [-7.0, 9.0], [12.0, 16.0]]);
    for headline in [Ok(&shown), Ok(&open), Err("it was skipped")] {
        let verdict = judged(&grounds(headline, &machine()));
        let json = serde_json::to_string(&verdict).expect("JSON");
        assert_eq!(serde_json::from_str::<Verdict>(&json).expect("a verdict"), verdict);
    }
}

#[test]
fn without_a_measurement_the_reason_is_quoted() {
    let skipped = judged(&grounds(Err("it was skipped"), &machine()));
    assert_eq!(
        skipped.sentences[0],
        "The saving by huge pages was not measured: it was skipped."
    );
    let mut without = headline(&[(LARGE, POOL, BASE, [1.0, 2.0])]);
    without.gains[0].saved = None;
    without.gains[0].draws.clear();
    without.gains[0].not_measured = Some("the pool is empty".to_owned());
    assert!(of(&without).sentences[0].contains("the pool is empty"));
}

#[test]
fn pools_that_could_not_be_read_are_neither_absent_nor_empty() {
    let denied = || Unread::new(Cause::Denied, "/sys/kernel/mm/hugepages", "");
    let limits = |machine: &host::Snapshot| judged(&grounds(Err("it was skipped"), machine)).sentences.remove(2);
    let mut unread = machine();
    unread.pools = Reading::Unread(denied());
    assert!(
        limits(&unread).contains("The hugetlb pools could not be read"),
        "{}",
        limits(&unread)
    );
    let mut uncounted = machine();
    if let Reading::Known(pools) = &mut uncounted.pools {
        pools[0].nr = Reading::Unread(denied());
    }
    assert!(
        limits(&uncounted).contains("The size of a hugetlb pool could not be read"),
        "{}",
        limits(&uncounted)
    );
}
