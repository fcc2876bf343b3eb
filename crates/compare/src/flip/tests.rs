//! Collapsing a made process: what is tried, tried again, left alone and counted; and one real one.

use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

use host::processes::areas::Area;
use host::processes::{Counted, Counts};
use model::{Bytes, Unread};

use super::collapse::{Done, work};
use super::target::Target;
use super::{Budget, Error, Span, Spec, run};

fn mapping(start: u64, end: u64, perms: &str, name: &str, resident: Bytes) -> Area {
    let counts = Counts {
        rss: resident,
        ..Counts::default()
    };
    Area {
        range: start..end,
        perms: perms.into(),
        offset: 0,
        device: "00:01".into(),
        // Files of different names are different ones here.
        inode: name.len() as u64,
        name: name.into(),
        counted: Some(Counted {
            counts,
            ..Counted::default()
        }),
    }
}

fn spec(span: Span) -> Spec {
    Spec {
        pid: 1,
        span,
        used: 0.5,
        budget: None,
    }
}

/// A process whose pieces answer as a list says; time passes only in calls.
struct Made {
    used: f64,
    answers: Vec<Option<i32>>,
    asked: Vec<u64>,
    now: Duration,
    rested: Duration,
}

impl Made {
    fn answering(answers: &[Option<i32>]) -> Self {
        Self {
            used: 1.0,
            answers: answers.iter().rev().copied().collect(),
            asked: Vec::new(),
            now: Duration::ZERO,
            rested: Duration::ZERO,
        }
    }
}

impl Target for Made {
    fn used(&mut self, _: u64) -> io::Result<f64> {
        Ok(self.used)
    }

    fn collapse(&mut self, at: u64) -> io::Result<()> {
        self.asked.push(at);
        self.now += Duration::from_millis(1);
        match self.answers.pop().flatten() {
            Some(errno) => Err(io::Error::from_raw_os_error(errno)),
            None => Ok(()),
        }
    }

    fn split(&mut self, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn large(&mut self, _: &[u64]) -> Result<BTreeSet<u64>, Unread> {
        Ok(BTreeSet::new())
    }

    fn now(&self) -> Duration {
        self.now
    }

    fn pause(&mut self, time: Duration) {
        self.now += time;
        self.rested += time;
    }
}

fn worked(spec: &Spec, pieces: &[u64], made: &mut Made) -> Result<Done, Error> {
    work(spec, pieces, made, &mut (), &|| false)
}

#[test]
fn only_whole_aligned_pieces_of_the_memory_meant_are_taken() {
    let mib = |n: u64| n << 20;
    let mappings = [
        mapping(mib(10), mib(12), "r-xp", "/usr/bin/it", Bytes::mib(1)),
        mapping(mib(21), mib(27), "rw-p", "[heap]", Bytes::mib(4)),
        mapping(mib(31), mib(33), "rw-p", "", Bytes::mib(2)),
        mapping(mib(40), mib(44), "rw-p", "", Bytes(0)),
        mapping(mib(50), mib(54), "rw-s", "/dev/shm/x", Bytes::mib(4)),
        mapping(mib(60), mib(64), "rw-p", "[anon:jit]", Bytes::mib(4)),
    ];
    let pieces = |span: Span| -> Vec<u64> {
        let at = span.pieces(&mappings);
        at.iter().map(|at| at >> 20).collect()
    };
    assert_eq!(pieces(Span::Anon), [22, 24, 60, 62]);
    assert_eq!(pieces(Span::Heap), [22, 24]);
    assert_eq!(pieces(Span::Text), [10]);
    assert_eq!(pieces(Span::Addresses(mib(23)..mib(63))), [24, 50, 52, 60]);
    assert_eq!(Span::Heap.backing(&mappings).total(), Bytes::mib(4));
}

#[test]
fn ranges_and_budgets_read_what_they_print_and_refuse_the_rest() {
    for text in ["anon", "heap", "text", "7f0000000000-7f0040000000"] {
        assert_eq!(text.parse::<Span>().expect(text).to_string(), text);
    }
    for text in ["", "stack", "10-10", "20-10", "x-y", "10"] {
        assert!(text.parse::<Span>().is_err(), "{text}");
    }
    assert_eq!("50ms/s".parse::<Budget>().expect("50 ms").to_string(), "50ms/s");
    for text in ["", "50", "0ms/s", "1001ms/s", "-1ms/s", "5s/s"] {
        assert!(text.parse::<Budget>().is_err(), "{text}");
    }
}

#[test]
fn a_busy_piece_is_tried_again_and_a_refused_one_is_counted_by_its_reason() {
    let busy = Some(libc::EAGAIN);
    let mut made = Made::answering(&[busy, busy, None, Some(libc::ENOMEM), None, busy, busy, busy, busy]);
    let done = worked(&spec(Span::Anon), &[10, 20, 30, 40], &mut made).expect("a process");
    assert_eq!(made.asked, [10, 10, 10, 20, 30, 40, 40, 40, 40]);
    assert_eq!((done.pieces.large, done.pieces.refused, done.pieces.total()), (2, 2, 4));
    assert_eq!(done.took.len(), 2);
    let mut reasons: Vec<(String, u64)> = done
        .refused()
        .into_iter()
        .map(|refused| (refused.error, refused.pieces))
        .collect();
    reasons.sort();
    assert_eq!(reasons, [("EAGAIN".to_owned(), 1), ("ENOMEM".to_owned(), 1)]);
}

#[test]
fn what_holds_for_the_whole_process_ends_it() {
    let mut made = Made::answering(&[Some(libc::EPERM)]);
    let error = worked(&spec(Span::Anon), &[10, 20], &mut made).expect_err("no permission");
    assert!(matches!(error, Error::NotAllowed { pid: 1, .. }), "{error}");
    assert_eq!(made.asked, [10]);
}

#[test]
fn sparse_pieces_are_left_alone_and_a_budget_is_kept() {
    let mut made = Made::answering(&[]);
    made.used = 0.2;
    let done = worked(&spec(Span::Anon), &[10, 20], &mut made).expect("a process");
    assert_eq!((done.pieces.sparse, made.asked.len()), (2, 0));

    let slow = Spec {
        budget: Some(Budget { ms_per_second: 100 }),
        ..spec(Span::Anon)
    };
    let mut made = Made::answering(&[]);
    worked(&slow, &[10, 20, 30], &mut made).expect("a process");
    assert_eq!(
        made.rested,
        Duration::from_millis(27),
        "9 ms of rest for each ms of work"
    );
}

#[test]
fn when_stopped_the_rest_is_told() {
    let mut made = Made::answering(&[]);
    let done = work(&spec(Span::Anon), &[10, 20], &mut made, &mut (), &|| true).expect("a process");
    assert_eq!((done.pieces.left, made.asked.len()), (2, 0));
}

#[test]
fn a_process_that_is_not_there_is_named() {
    let nobody = Spec {
        pid: 4_000_000,
        ..spec(Span::Anon)
    };
    let error = run(&nobody, &mut (), &|| false).expect_err("nobody");
    assert!(error.to_string().contains("4000000"), "{error}");
}

#[test]
fn shared_memory_beside_private_one_is_counted_and_pool_pages_and_files_are_not() {
    let mut pool = mapping(0, 4 << 20, "rw-s", "/memfd:pool (deleted)", Bytes(0));
    pool.counted.as_mut().expect("counts").counts.hugetlb = Bytes::mib(4);
    // ZGC maps its heap three times; each view shows the same pages.
    let view = |at: u64| {
        mapping(
            at,
            at + (64 << 20),
            "rw-s",
            "/memfd:java_heap (deleted)",
            Bytes::mib(60),
        )
    };
    let mappings = [
        mapping(0, 8 << 20, "rw-p", "", Bytes::mib(8)),
        view(4 << 40),
        view(8 << 40),
        view(16 << 40),
        mapping(0, 2 << 20, "rw-s", "/dev/shm/x", Bytes::mib(2)),
        mapping(0, 4 << 20, "r--s", "/usr/share/file", Bytes::mib(4)),
        pool,
    ];
    let shared = Span::Anon.shared(&mappings);
    assert_eq!(
        (shared.backing.total(), shared.name.as_str()),
        (Bytes::mib(62), "/memfd:java_heap (deleted)")
    );
    assert_eq!(Span::Heap.shared(&mappings).backing.total(), Bytes(0));
}
