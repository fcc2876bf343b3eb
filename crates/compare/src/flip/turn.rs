//! A process flipped between large and base pages, there and back, and left as it was found.

use std::collections::BTreeSet;

use host::Source;
use host::processes::areas::{Area, counted_within};
use host::processes::status::Status;
use model::collapse::Refused;
use model::compare::{Flip, Restored};
use model::{Backing, Bytes, PageKind, Unread};

use super::collapse::{Done, Error, RETRIES, RETRY_PERIOD, Spec, meaning, refuse, work};
use super::live::{Live, PATIENT};
use super::pieces::Shared;
use super::target::Target;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    Base,
    /// Transparent huge pages.
    Large,
}

impl To {
    pub fn kind(self) -> PageKind {
        match self {
            Self::Base => PageKind::Base,
            Self::Large => PageKind::Thp,
        }
    }

    /// The name of an arm with such pages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Base => "base",
            Self::Large => "thp",
        }
    }

    /// How it is done, in words.
    pub fn technique(self) -> &'static str {
        match self {
            Self::Base => "huge pages split from outside (MADV_COLD on a part of each)",
            Self::Large => "collapsed from outside (MADV_COLLAPSE)",
        }
    }
}

/// Which pieces were of which kind at first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) large: BTreeSet<u64>,
    pub(super) base: BTreeSet<u64>,
}

impl Found {
    fn of(pieces: &[u64], large: BTreeSet<u64>) -> Self {
        let base = pieces.iter().copied().filter(|at| !large.contains(at)).collect();
        Self { large, base }
    }

    /// What a piece is to be given back as: what it was, and for memory that came since, what most was.
    pub(super) fn kind_of(&self, at: u64) -> To {
        let mostly_large = self.large.len() > self.base.len();
        if self.large.contains(&at) || (mostly_large && !self.base.contains(&at)) {
            To::Large
        } else {
            To::Base
        }
    }
}

pub struct Flipped {
    spec: Spec,
    live: Live,
    source: Source,
    found: Found,
    before: Backing,
    is_changed: bool,
}

impl Drop for Flipped {
    /// On every way out, a panic included.
    fn drop(&mut self) {
        if self.is_changed {
            // It has ended, and then there is nothing to give back.
            let _ = self.restore();
        }
    }
}

impl Flipped {
    /// Opens a process and notes which pages it has.
    ///
    /// # Errors
    /// If it cannot be reached, or has no memory of that kind.
    pub fn open(spec: Spec) -> Result<Self, Error> {
        let pid = spec.pid;
        let live = Live::open(pid).map_err(|source| Error::Process { pid, source })?;
        let mut flipped = Self {
            live,
            source: Source::live(),
            found: Found::default(),
            before: Backing::new(),
            is_changed: false,
            spec,
        };
        let areas = flipped.areas()?;
        let pieces = flipped.spec.pieces(&areas)?;
        flipped.before = flipped.all(&areas);
        flipped.found = Found::of(&pieces, flipped.live.large(&pieces)?);
        Ok(flipped)
    }

    /// What backs the memory that is meant, by its smaps. Walks page tables: never while something is measured.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn look(&self) -> Result<Backing, Unread> {
        Ok(self.all(&self.areas()?))
    }

    /// The memory that is meant, and the shared memory beside it: an arm is in effect by the share of both.
    fn all(&self, areas: &[Area]) -> Backing {
        let mut all = self.spec.span.backing(areas);
        all.extend(self.spec.span.shared(areas).backing.iter());
        all
    }

    /// The memory that can be flipped, and the shared memory that cannot.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn reach(&self) -> Result<(Bytes, Shared), Unread> {
        let areas = self.areas()?;
        Ok((self.spec.span.backing(&areas).total(), self.spec.span.shared(&areas)))
    }

    /// Turns all pieces to one kind; stops between two pieces when asked.
    ///
    /// # Errors
    /// If the process cannot be reached, or the kernel does not allow it at all. Pieces that are refused are counted.
    pub fn flip(&mut self, to: To, stop: &dyn Fn() -> bool) -> Result<Flip, Error> {
        let began = self.live.now();
        let pieces = self.pieces()?;
        self.is_changed = true;
        let mut flip = turn(to, &self.spec, &pieces, &mut self.live, stop)?;
        flip.seconds = (self.live.now() - began).as_secs_f64();
        if to == To::Large && self.is_switched_off() {
            flip.refused.iter_mut().for_each(told_by_prctl);
        }
        Ok(flip)
    }

    /// Gives every piece the kind of pages that it had at first.
    ///
    /// # Errors
    /// If the process cannot be reached any more.
    pub fn restore(&mut self) -> Result<Restored, Error> {
        let began = self.live.now();
        self.is_changed = false;
        let (large, base): (Vec<u64>, Vec<u64>) = self
            .pieces()?
            .into_iter()
            .partition(|&at| self.found.kind_of(at) == To::Large);
        turn(To::Base, &self.spec, &base, &mut self.live, &|| false)?;
        // What was large is so again however little of it is in use by now.
        let spec = Spec {
            used: 0.0,
            ..self.spec.clone()
        };
        turn(To::Large, &spec, &large, &mut self.live, &|| false)?;
        let still_large = self.live.large(&base)?;
        let now_large = self.live.large(&large)?;
        let wrong = base.iter().filter(|at| still_large.contains(at)).count()
            + large.iter().filter(|at| !now_large.contains(at)).count();
        Ok(Restored {
            before: self.before.clone(),
            after: self.look().into(),
            wrong: wrong as u64,
            seconds: (self.live.now() - began).as_secs_f64(),
        })
    }

    fn pieces(&self) -> Result<Vec<u64>, Error> {
        Ok(self.spec.span.pieces(&self.areas()?))
    }

    fn areas(&self) -> Result<Vec<Area>, Unread> {
        counted_within(&self.source, self.spec.pid, PATIENT).into_result()
    }

    fn is_switched_off(&self) -> bool {
        let path = format!("/proc/{}/status", self.spec.pid);
        let bytes = self.source.bytes(&path);
        bytes
            .known()
            .is_some_and(|bytes| Status::parse(&path, bytes).thp_enabled.known() == Some(&false))
    }
}

fn told_by_prctl(refused: &mut Refused) {
    if refused.error == "EINVAL" {
        "THP is switched off for this process by prctl (THP_enabled is 0 in its status)"
            .clone_into(&mut refused.meaning);
    }
}

/// Turns pieces to one kind.
pub(super) fn turn(
    to: To,
    spec: &Spec,
    pieces: &[u64],
    target: &mut dyn Target,
    stop: &dyn Fn() -> bool,
) -> Result<Flip, Error> {
    let large = target.large(pieces)?;
    let (right, wrong): (Vec<u64>, Vec<u64>) = pieces.iter().partition(|at| large.contains(at) == (to == To::Large));
    let before = counters();
    let (turned, sparse, refused) = match to {
        To::Large => {
            let done = work(spec, &wrong, target, &mut (), stop)?;
            (done.pieces.large, done.pieces.sparse, done.refused())
        }
        To::Base => {
            let (cut, refused) = split(spec, wrong, target, stop)?;
            (cut, 0, refused)
        }
    };
    let after = counters();
    Ok(Flip {
        seconds: 0.0,
        turned,
        already: right.len() as u64,
        sparse,
        refused,
        splits: rise(before[0], after[0]),
        collapses: rise(before[1], after[1]),
    })
}

/// Splits huge pages, again while some are left: the kernel does not say whether it could.
fn split(
    spec: &Spec,
    mut left: Vec<u64>,
    target: &mut dyn Target,
    stop: &dyn Fn() -> bool,
) -> Result<(u64, Vec<Refused>), Error> {
    let all = left.len() as u64;
    let mut done = Done::default();
    for attempt in 0..=RETRIES {
        if attempt > 0 {
            target.pause(RETRY_PERIOD * attempt);
        }
        // Those that are refused for good are counted and left out.
        let mut asked = Vec::with_capacity(left.len());
        for at in left {
            let answer = if stop() { Ok(()) } else { target.split(at) };
            match answer {
                Ok(()) => asked.push(at),
                // Not there any more.
                Err(error) if error.raw_os_error() == Some(libc::ENOMEM) => {}
                Err(error) => refuse(&mut done, spec.pid, error)?,
            }
        }
        let large = target.large(&asked)?;
        asked.retain(|at| large.contains(at));
        left = asked;
        if left.is_empty() || stop() {
            break;
        }
    }
    let turned = all - left.len() as u64 - done.pieces.refused;
    Ok((turned, uncut(&done, left.len() as u64)))
}

/// Why huge pages are still there.
fn uncut(done: &Done, left: u64) -> Vec<Refused> {
    let refused = done.refused_by(|errno| match errno {
        libc::EINVAL => (
            "EINVAL".to_owned(),
            "memory that is locked (mlock) or a device's cannot be cut",
        ),
        other => meaning(other),
    });
    let left = (left > 0).then(|| Refused {
        error: "still large".to_owned(),
        meaning: "shared with a child (is a snapshot being saved?), pinned, or in use by the kernel each time"
            .to_owned(),
        pieces: left,
    });
    refused.into_iter().chain(left).collect()
}

/// The machine's counters of what is done to huge pages: splits and collapses.
fn counters() -> [Option<u64>; 2] {
    let text = Source::live().text("/proc/vmstat").into_result().unwrap_or_default();
    ["thp_split_page", "thp_collapse_alloc"].map(|name| {
        let mut lines = text.lines().filter_map(|line| line.split_once(' '));
        lines.find(|(known, _)| *known == name)?.1.parse().ok()
    })
}

fn rise(before: Option<u64>, after: Option<u64>) -> Option<u64> {
    Some(after?.saturating_sub(before?))
}
