//! What fixes make of one pool, and whose pages these are.

use std::collections::BTreeMap;

use model::Bytes;

/// Whose pages a fix adds: several findings of one program ask for the same ones.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Owner {
    Program(u32),
    /// One that the files which were given may start: it may run already.
    OfFiles(u32),
    Finding(usize),
}

/// A pool now, and as the fixes leave it.
#[derive(Clone, Default)]
pub(super) struct Account {
    pub(super) now: u64,
    /// Pages in use.
    pub(super) taken: u64,
    /// Pages that the fixes shown so far add beside those.
    pub(super) more: BTreeMap<Owner, u64>,
    /// Pages that all programs of the files that were given need beside those.
    pub(super) files: u64,
    /// The whole pool as a file requests it.
    pub(super) asked: u64,
    /// The whole pool by the fixes that have no alternative.
    pub(super) firm: u64,
}

impl Account {
    pub(super) fn used(&self) -> u64 {
        let is_of_files = |owner: &Owner| matches!(owner, Owner::OfFiles(_));
        let sum = |of_files: bool| {
            let own = self.more.iter().filter(|(owner, _)| is_of_files(owner) == of_files);
            own.fold(0_u64, |sum, (_, pages)| sum.saturating_add(*pages))
        };
        let files = self.files.max(sum(true));
        self.taken.saturating_add(files).saturating_add(sum(false))
    }

    pub(super) fn whole(&self) -> u64 {
        self.now.max(self.asked).max(self.used())
    }

    /// The pool as the larger of both has it.
    pub(super) fn larger(&mut self, other: &Self) {
        for (owner, pages) in &other.more {
            let own = self.more.entry(*owner).or_default();
            *own = (*own).max(*pages);
        }
        self.files = self.files.max(other.files);
        self.asked = self.asked.max(other.asked);
        self.firm = self.firm.max(other.firm);
    }
}

/// Each pool as the larger of both accounts has it.
pub(super) fn larger(pools: &mut BTreeMap<Bytes, Account>, others: &BTreeMap<Bytes, Account>) {
    for (page, other) in others {
        pools.entry(*page).or_default().larger(other);
    }
}

/// What has an alternative is left out of what is certain.
pub(super) fn unfirm(pools: &mut BTreeMap<Bytes, Account>, before: &BTreeMap<Bytes, Account>) {
    for (page, account) in pools {
        account.firm = before.get(page).map_or(account.now, |before| before.firm);
    }
}
