//! Turning a made process, piece by piece: what is asked of the kernel, what it left undone, and what each piece was.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::Duration;

use model::Unread;

use super::collapse::Spec;
use super::target::Target;
use super::turn::{Found, turn};
use super::{Error, Span, To};

/// A process whose pieces are large or not, some of them stubborn.
#[derive(Default)]
struct Made {
    large: BTreeSet<u64>,
    /// Pieces that stay large for so many requests.
    stubborn: BTreeMap<u64, u32>,
    /// What is answered to any request for a piece.
    errors: BTreeMap<u64, i32>,
    asked: Vec<u64>,
}

impl Made {
    fn answer(&mut self, at: u64) -> io::Result<()> {
        self.asked.push(at);
        match self.errors.get(&at) {
            Some(&errno) => Err(io::Error::from_raw_os_error(errno)),
            None => Ok(()),
        }
    }
}

impl Target for Made {
    fn used(&mut self, at: u64) -> io::Result<f64> {
        Ok(if at >= 100 { 0.1 } else { 1.0 })
    }

    fn collapse(&mut self, at: u64) -> io::Result<()> {
        self.answer(at)?;
        self.large.insert(at);
        Ok(())
    }

    fn split(&mut self, at: u64) -> io::Result<()> {
        self.answer(at)?;
        match self.stubborn.get_mut(&at).filter(|left| **left > 0) {
            Some(left) => *left -= 1,
            None => {
                self.large.remove(&at);
            }
        }
        Ok(())
    }

    fn large(&mut self, pieces: &[u64]) -> Result<BTreeSet<u64>, Unread> {
        Ok(pieces.iter().copied().filter(|at| self.large.contains(at)).collect())
    }

    fn now(&self) -> Duration {
        Duration::ZERO
    }

    fn pause(&mut self, _: Duration) {}
}

fn spec() -> Spec {
    Spec {
        pid: 1,
        span: Span::Anon,
        used: 0.5,
        budget: None,
    }
}

#[test]
fn only_what_is_of_the_other_kind_is_touched_and_sparse_pieces_are_left_alone() {
    let mut made = Made {
        large: [20].into(),
        ..Made::default()
    };
    let pieces = [10, 20, 30, 100];
    let flip = turn(To::Large, &spec(), &pieces, &mut made, &|| false).expect("a process");
    assert_eq!(
        (flip.turned, flip.already, flip.sparse, flip.refused.len()),
        (2, 1, 1, 0)
    );
    assert_eq!(made.asked, [10, 30]);
    let flip = turn(To::Base, &spec(), &pieces, &mut made, &|| false).expect("a process");
    assert_eq!((flip.turned, flip.already), (3, 1));
    assert!(made.large.is_empty());
}

#[test]
fn what_stays_large_is_asked_again_and_then_told() {
    let mut made = Made {
        large: [10, 20, 30].into(),
        stubborn: [(20, 2), (30, 99)].into(),
        ..Made::default()
    };
    let flip = turn(To::Base, &spec(), &[10, 20, 30], &mut made, &|| false).expect("a process");
    assert_eq!((flip.turned, flip.refused.len(), flip.refused[0].pieces), (2, 1, 1));
    assert!(flip.refused[0].meaning.contains("shared with a child"));
    assert_eq!(made.asked.iter().filter(|at| **at == 10).count(), 1);
}

#[test]
fn locked_memory_is_refused_by_its_reason_and_a_missing_right_ends_it() {
    let mut made = Made {
        large: [10, 20].into(),
        errors: [(20, libc::EINVAL)].into(),
        ..Made::default()
    };
    let flip = turn(To::Base, &spec(), &[10, 20], &mut made, &|| false).expect("a process");
    assert_eq!((flip.turned, flip.refused[0].pieces), (1, 1));
    assert!(flip.refused[0].meaning.contains("mlock"), "{:?}", flip.refused);
    made.errors = [(20, libc::EPERM)].into();
    let error = turn(To::Base, &spec(), &[20], &mut made, &|| false).expect_err("not allowed");
    assert!(matches!(error, Error::NotAllowed { pid: 1, .. }), "{error}");
}

#[test]
fn when_stopped_nothing_more_is_asked() {
    let mut made = Made {
        large: [10, 20].into(),
        ..Made::default()
    };
    let flip = turn(To::Base, &spec(), &[10, 20], &mut made, &|| true).expect("a process");
    assert_eq!((flip.turned, made.asked.len()), (0, 0));
}

#[test]
fn every_piece_gets_back_what_it_was_and_a_new_one_what_most_were() {
    let found = |large: &[u64], base: &[u64]| Found {
        large: large.iter().copied().collect(),
        base: base.iter().copied().collect(),
    };
    let mostly_base = found(&[10], &[20, 30]);
    assert_eq!(
        [10, 20, 99].map(|at| mostly_base.kind_of(at)),
        [To::Large, To::Base, To::Base]
    );
    let mostly_large = found(&[10, 20], &[30]);
    assert_eq!(
        [10, 30, 99].map(|at| mostly_large.kind_of(at)),
        [To::Large, To::Base, To::Large]
    );
}
