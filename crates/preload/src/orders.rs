//! The shared page, seen from the library: orders to read, counts to add to.

use core::sync::atomic::{AtomicU64, Ordering};

use preload_abi::{Kind, MOST_RULES, Rule, WORDS, at};

use crate::linux::{Answer, Errno};

/// The page, mapped for as long as the process lives.
#[derive(Clone, Copy)]
pub(crate) struct Orders(pub(crate) &'static [AtomicU64; WORDS]);

impl Orders {
    pub(crate) fn word(self, at: usize) -> u64 {
        self.0.get(at).map_or(0, |word| word.load(Ordering::Relaxed))
    }

    pub(crate) fn add(self, at: usize, n: u64) {
        if let Some(word) = self.0.get(at) {
            word.fetch_add(n, Ordering::Relaxed);
        }
    }

    pub(crate) fn minimum(self) -> usize {
        self.word(at::MINIMUM) as usize
    }

    /// The kind of whatever no rule names.
    pub(crate) fn kind(self) -> Kind {
        Kind::from_word(self.word(at::KIND)).unwrap_or(Kind::Base)
    }

    /// The rules in ascending order.
    pub(crate) fn rules(self) -> impl Iterator<Item = Rule> + Clone {
        let count = (self.word(at::RULE_COUNT) as usize).min(MOST_RULES);
        (0..count).filter_map(move |number| {
            let first = at::RULES + 3 * number;
            Some(Rule {
                from: self.word(first),
                to: self.word(first + 1),
                kind: Kind::from_word(self.word(first + 2))?,
            })
        })
    }

    /// Every kind that is named at all.
    pub(crate) fn kinds(self) -> impl Iterator<Item = Kind> {
        core::iter::once(self.kind()).chain(self.rules().map(|rule| rule.kind))
    }

    pub(crate) fn served(self, kind: Kind, bytes: usize) {
        self.add(at::served(kind), 1);
        self.add(at::served(kind) + 1, bytes as u64);
    }

    /// What came of giving memory a kind.
    pub(crate) fn tried(self, kind: Kind, bytes: usize, answer: Answer) {
        match answer {
            Ok(_) => self.served(kind, bytes),
            Err(errno) => self.fell_back(errno),
        }
    }

    pub(crate) fn fell_back(self, errno: Errno) {
        self.add(at::fallback(errno.0.unsigned_abs() as usize), 1);
    }
}
