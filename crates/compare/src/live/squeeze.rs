//! Huge pages for a running program from outside: each part of its memory is collapsed once it is there.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use host::Source;
use host::processes::areas::parse_maps;
use model::{Cause, counted};
use process::cpu_time;

use crate::flip::{MADV_COLLAPSE, PAGE, Span, aligned, meaning, process_madvise};
use crate::technique::Collapse;

/// A page that refused so often is left alone: it is locked, shared or not all there.
const TRIES: u8 = 5;
/// Tries of ranges that nothing is in yet may take this much at once and this share of the time in all: an arm that reserves
/// terabytes is else asked for each of its ranges at every reading. The next reading goes on where this one ended.
const VAIN: Duration = Duration::from_millis(5);
const VAIN_SHARE: f64 = 0.01;
/// What leads on where no code was collapsed.
const CODE: &str = " (which code of a program fits huge pages: hugewise explain --image FILE; what its file system and this kernel allow: \
                    hugewise explain PID)";

/// What was collapsed so far.
pub(super) struct Squeeze {
    what: Collapse,
    pid: u32,
    process: Option<OwnedFd>,
    done: BTreeSet<u64>,
    tries: BTreeMap<u64, u8>,
    refused: Option<io::Error>,
    /// Where the next reading begins.
    cursor: u64,
    began: Instant,
    /// CPU time that went into collapsing, and into ranges that nothing was in.
    pub(super) took: Duration,
    vain: Duration,
}

impl Squeeze {
    /// In a process that is there as long as this is used.
    pub(super) fn new(what: Collapse, pid: u32) -> Self {
        let (process, refused) = match process::handle(pid) {
            Ok(process) => (Some(process), None),
            Err(error) => (None, Some(error.into())),
        };
        Self {
            what,
            pid,
            process,
            done: BTreeSet::new(),
            tries: BTreeMap::new(),
            refused,
            cursor: 0,
            began: Instant::now(),
            took: Duration::ZERO,
            vain: Duration::ZERO,
        }
    }

    /// Tries every aligned page of the program's memory that was not collapsed yet, as far as the time for vain tries goes.
    pub(super) fn tick(&mut self) {
        let path = format!("/proc/{}/maps", self.pid);
        let text = Source::live().bytes(&path).into_result();
        let areas = match text.and_then(|text| parse_maps(&path, &text)) {
            Ok(areas) => areas,
            // It has ended.
            Err(why) if why.unread == Cause::Absent => return,
            Err(why) => {
                self.refused = Some(io::Error::other(why.to_string()));
                return;
            }
        };
        let span = match self.what {
            Collapse::Private | Collapse::Share(_) => Span::Anon,
            Collapse::Text => Span::Text,
        };
        let ranges: Vec<Range<u64>> = areas.iter().filter_map(|area| span.of(area)).collect();
        self.round(&ranges, &mut Self::collapse);
    }

    /// One round through all ranges from where the last one ended.
    fn round(&mut self, ranges: &[Range<u64>], collapse: &mut dyn FnMut(&mut Self, u64) -> Tried) {
        let from = self.cursor;
        let before = ranges.iter().map(|range| range.start..range.end.min(from));
        let behind = ranges.iter().map(|range| range.start.max(from)..range.end);
        let at_once = self.vain + VAIN;
        for page in behind
            .chain(before)
            .filter(|part| part.start < part.end)
            .flat_map(aligned)
        {
            if !self.chooses(page)
                || self.done.contains(&page)
                || self.tries.get(&page).is_some_and(|tries| *tries >= TRIES)
            {
                continue;
            }
            let allowed = VAIN + self.began.elapsed().mul_f64(VAIN_SHARE);
            if self.vain >= at_once.min(allowed) {
                self.cursor = page;
                return;
            }
            let began = cpu_time();
            let tried = collapse(self, page);
            let took = cpu_time().saturating_sub(began);
            match tried {
                Tried::Nothing => self.vain += took,
                Tried::Collapsed | Tried::Refused => self.took += took,
            }
        }
        self.cursor = 0;
    }

    /// What was collapsed, in words, and where the time that it took is.
    pub(super) fn told(&self, place: &str) -> String {
        let mut told = format!("{} of 2M collapsed from outside", counted(self.done.len(), "page"));
        if let Some(error) = &self.refused {
            let refusal = error.raw_os_error().map(meaning);
            let refusal = refusal.map_or_else(|| error.to_string(), |(name, why)| format!("{name}: {why}"));
            told += &format!("; the last refusal: {refusal}");
        }
        match (self.done.is_empty(), self.what) {
            (true, Collapse::Text) => told + CODE,
            (true, _) => told,
            (false, _) => format!("{told}; that took {:.3} s of CPU time{place}", self.took.as_secs_f64()),
        }
    }

    /// Of a share, others in each process: addresses may be the same in all of them.
    fn chooses(&self, page: u64) -> bool {
        match self.what {
            Collapse::Share(percent) => {
                let mixed = (page ^ u64::from(self.pid)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                (mixed >> 32) % 100 < u64::from(percent)
            }
            Collapse::Private | Collapse::Text => true,
        }
    }

    fn collapse(&mut self, page: u64) -> Tried {
        let Some(process) = &self.process else {
            return Tried::Nothing;
        };
        match process_madvise(process.as_fd(), page, PAGE.as_usize(), MADV_COLLAPSE) {
            Ok(()) => {
                self.done.insert(page);
                Tried::Collapsed
            }
            // Nothing is there yet: memory that is touched later deserves its try then. Of code, it is the file system.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) && self.what != Collapse::Text => Tried::Nothing,
            Err(error) => {
                *self.tries.entry(page).or_default() += 1;
                self.refused = Some(error);
                Tried::Refused
            }
        }
    }
}

/// What came of a try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tried {
    Collapsed,
    Refused,
    /// Nothing is in that range yet.
    Nothing,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_share_about_so_many_ranges_are_chosen_and_others_in_another_process() {
        let chosen = |pid: u32| -> Vec<u64> {
            let mut squeeze = Squeeze::new(Collapse::Share(30), pid);
            let mut tried = Vec::new();
            let range = 0x7f00_0000_0000..0x7f00_0000_0000 + 1000 * PAGE.0;
            squeeze.round(std::slice::from_ref(&range), &mut |_, page| {
                tried.push(page);
                Tried::Collapsed
            });
            tried
        };
        let (one, other) = (chosen(7), chosen(8));
        for chosen in [&one, &other] {
            assert!((230..370).contains(&chosen.len()), "{}", chosen.len());
        }
        assert_ne!(one, other);
    }

    #[test]
    fn ranges_that_nothing_is_in_take_bounded_time_and_none_is_forgotten() {
        let mut squeeze = Squeeze::new(Collapse::Private, std::process::id());
        let page = PAGE.0;
        // A terabyte that is reserved, and one page at its end that is there; a try takes 1 ms of this thread's time.
        let reserved = page..(1 << 40) + page;
        let all = std::slice::from_ref(&reserved);
        let mut tried = Vec::new();
        let mut collapse = |squeeze: &mut Squeeze, at: u64| {
            tried.push(at);
            squeeze.vain += Duration::from_millis(1);
            Tried::Nothing
        };
        squeeze.round(all, &mut collapse);
        assert!((1..=6).contains(&tried.len()), "{}", tried.len());
        let last = *tried.last().expect("some");
        assert_eq!(squeeze.cursor, last + page, "the next reading goes on there");
        // Time passes, so that there is some for further tries.
        squeeze.began = Instant::now() - Duration::from_secs(10);
        let mut next = None;
        squeeze.round(all, &mut |squeeze, at| {
            next.get_or_insert(at);
            squeeze.vain += Duration::from_secs(1);
            Tried::Nothing
        });
        assert_eq!(next, Some(last + page));
    }
}
