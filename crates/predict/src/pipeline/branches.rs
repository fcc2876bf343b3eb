//! Which branches a core would mispredict: a predictor with a table for each length of the history (TAGE, ITTAGE), and a return stack.

use std::collections::VecDeque;

use super::flow::Branch;
use translation::random::mixed;

/// Bits of history for each table. Two bits stand for a branch that was taken; cores keep about a hundred such branches.
const LENGTHS: [u32; 8] = [0, 4, 8, 16, 32, 64, 96, 128];
/// Entries of a table: cores have some ten thousand in all.
const ENTRIES: usize = 1 << 13;
/// Entries of the return stack.
const RETURNS: usize = 32;
/// The counter of an entry that was right at least so often since it was wrong.
const SUREST: u8 = 3;

/// What a predictor learns of a program's branches, over all its windows.
#[derive(Clone, Debug)]
pub struct Branches {
    tables: [Vec<Entry>; LENGTHS.len()],
    /// Of branches that were taken: some bits of each, the last one lowest.
    history: u128,
    returns: VecDeque<u64>,
    last: Option<Last>,
}

/// A branch that has not ended yet.
#[derive(Clone, Copy, Debug)]
struct Last {
    at: u64,
    behind: u64,
    branch: Branch,
}

/// Where a branch went after some history.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    /// The hash of both; 0 if there is none.
    key: u64,
    target: u64,
    sure: u8,
}

impl Default for Branches {
    fn default() -> Self {
        Self {
            tables: LENGTHS.map(|_| vec![Entry::default(); ENTRIES]),
            history: 0,
            returns: VecDeque::new(),
            last: None,
        }
    }
}

impl Branches {
    /// A window begins: which calls are open is not known.
    pub(super) fn begin(&mut self) {
        self.returns.clear();
        self.last = None;
    }

    /// An instruction begins; `behind` is the address behind it.
    pub(super) fn runs(&mut self, at: u64, behind: u64, branch: Branch) {
        self.last = (branch != Branch::None).then_some(Last { at, behind, branch });
    }

    /// Where the program went on after it. Was that mispredicted? A branch that was not seen before is not counted.
    pub(super) fn went(&mut self, to: u64) -> bool {
        let Some(Last { at, behind, branch }) = self.last.take() else {
            return false;
        };
        let is_wrong = match branch {
            Branch::None | Branch::Jump | Branch::Call => false,
            Branch::Conditional | Branch::Indirect | Branch::IndirectCall => self.is_wrong(at, to),
            Branch::Return => self.returns.pop_back().is_some_and(|expected| expected != to),
        };
        if matches!(branch, Branch::Call | Branch::IndirectCall) {
            self.returns.push_back(behind);
            if self.returns.len() > RETURNS {
                self.returns.pop_front();
            }
        }
        if to != behind {
            self.history = (self.history << 2) ^ u128::from(mixed(at ^ to.rotate_left(7)) >> 56);
        }
        is_wrong
    }

    /// The longest history that has been right before predicts, or the branch alone. If that is wrong, all longer ones learn.
    fn is_wrong(&mut self, at: u64, to: u64) -> bool {
        let (mut predicted, mut longest) = (None, 0);
        let keys = LENGTHS.map(|length| key(at, self.history, length));
        for (place, key) in keys.into_iter().enumerate() {
            let entry = self.entry(place, key);
            if entry.key == key {
                if entry.sure > 0 || place == 0 {
                    predicted = Some(entry.target);
                }
                entry.learn(to);
                longest = place;
            }
        }
        let is_wrong = predicted.is_some_and(|target| target != to);
        let new = match predicted {
            None => 0..1,
            Some(_) if is_wrong => longest + 1..LENGTHS.len(),
            Some(_) => 0..0,
        };
        for place in new {
            self.entry(place, keys[place]).replace(keys[place], to);
        }
        is_wrong
    }

    fn entry(&mut self, table: usize, key: u64) -> &mut Entry {
        &mut self.tables[table][key as usize % ENTRIES]
    }
}

impl Entry {
    fn learn(&mut self, target: u64) {
        if self.target == target {
            self.sure = (self.sure + 1).min(SUREST);
        } else if self.sure == 0 {
            self.target = target;
        } else {
            self.sure -= 1;
        }
    }

    /// One that has been right stays for a while.
    fn replace(&mut self, key: u64, target: u64) {
        match self.sure {
            0 => (self.key, self.target) = (key, target),
            _ => self.sure -= 1,
        }
    }
}

/// A branch with the last bits of the history.
fn key(at: u64, history: u128, length: u32) -> u64 {
    let kept = match 128 - length {
        128 => 0,
        shift => history << shift,
    };
    mixed(at ^ mixed((kept >> 64) as u64 ^ mixed(kept as u64))) | 1 << 63
}

#[cfg(test)]
#[path = "branches_tests.rs"]
mod tests;
