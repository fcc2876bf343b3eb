//! Looks at a running program from outside: cheap accounts often, page tables rarely and within a bounded share of its time.

use std::time::{Duration, Instant};

use chase::thread::cpu_time;
use host::Source;
use host::processes::areas::{Area, counted};
use host::processes::status::Status;
use host::processes::{Coverage, Sort, mthp_of};
use model::compare::Looks;
use model::{Backing, Bytes, Cause, PageKind, Unread};

use crate::syscall::own_peak;
use crate::tree;

/// How closely a program is looked at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Attention {
    /// Its time is measured. It is expected to come to so much memory, 0 if that is not known: most of the time for looks is left
    /// for when it has come near.
    Measured(Bytes),
    /// Its time is not measured: looks take as much of it as they are worth.
    Free,
}

impl Attention {
    /// The share of a run's time that walks of page tables may take: for a measured program, two orders below the smallest effects
    /// of interest.
    pub fn share(self) -> f64 {
        match self {
            Self::Measured(_) => 0.005,
            Self::Free => 0.1,
        }
    }

    /// What they may take beyond that, so that short runs are looked at, too: for a measured program, one walk of 1 GiB of base
    /// pages.
    fn beyond(self) -> Duration {
        match self {
            Self::Measured(_) => Duration::from_millis(5),
            Self::Free => Duration::from_millis(100),
        }
    }

    fn expected(self) -> u64 {
        match self {
            Self::Measured(expected) => expected.0,
            Self::Free => 0,
        }
    }
}

/// What a walk of base pages takes; large ones take a hundredth.
const PER_GIB: Duration = Duration::from_millis(4);
/// Memory grows by this factor before it is worth another look.
const GROWN: f64 = 1.15;
/// While memory grows faster than that between two readings, looks leave so much of the time for when it has grown.
const LEFT_WHILE_GROWING: f64 = 0.7;
/// A look stands for a run if it saw at least this share of its largest memory: with less, the rest may be on other pages.
const NEAR_PEAK: f64 = 0.8;

/// A later look replaces an earlier one unless memory was given back since.
const STILL_THERE: f64 = 0.9;

/// What was seen so far.
pub struct Watch {
    source: Source,
    began: Instant,
    looks: Looks,
    last: Duration,
    last_memory: u64,
    read_memory: u64,
    peak: u64,
    attention: Attention,
    thp_size: Option<Bytes>,
    /// Without its mappings.
    seen: Walk,
    seen_memory: u64,
    /// `None` where the kernel does not report it.
    migrations: Option<u64>,
}

/// What a run is said to have had.
pub struct Seen {
    /// Own memory by page kind, when it was largest.
    pub backing: Result<Backing, Unread>,
    /// Code from files by page kind, at the same look.
    pub text: Backing,
    /// The most memory at any reading, of which segments that several mappings show count once.
    pub peak: Bytes,
    /// Moves between CPUs; `None` where the kernel does not report them.
    pub migrations: Option<u64>,
    pub looks: Looks,
}

impl Watch {
    /// Nothing is seen yet. Pages of a THP size are told from base pages if one is given, which takes root.
    pub fn new(attention: Attention, thp_size: Option<Bytes>) -> Self {
        Self {
            source: Source::live(),
            began: Instant::now(),
            looks: Looks::default(),
            last: Duration::ZERO,
            last_memory: 0,
            read_memory: 0,
            peak: 0,
            attention,
            thp_size,
            seen: Walk::default(),
            seen_memory: 0,
            migrations: None,
        }
    }

    /// Reads the accounts of a process and its children, and walks their page tables if it is worth it. Gives who they are.
    pub fn tick(&mut self, root: u32) -> Vec<u32> {
        let family = tree::of(&self.source, root);
        let (tree, mut not_whole) = (family.pids, family.not_whole);
        let mut had = Vec::with_capacity(tree.len());
        for &pid in &tree {
            let size = self.memory(pid).unwrap_or_else(|why| {
                not_whole.get_or_insert(why);
                0
            });
            had.push((pid, size));
        }
        let memory: u64 = had.iter().map(|(_, size)| size).sum();
        self.peak = self.peak.max(memory);
        let moves: Option<u64> = tree
            .iter()
            .filter_map(|pid| migrations(&self.source, &format!("/proc/{pid}")))
            .reduce(|all, one| all + one);
        self.migrations = self.migrations.max(moves);
        let grown = memory as f64 >= self.last_memory as f64 * GROWN;
        if (grown && self.may_look(memory)) || self.may_look_again(memory) {
            self.look(&had, memory, not_whole);
        }
        self.read_memory = memory;
        tree
    }

    /// Resident memory, hugetlb pages included; an error if it could not be read. A process that has ended has none.
    fn memory(&self, pid: u32) -> Result<u64, Unread> {
        let path = format!("/proc/{pid}/status");
        let Some(bytes) = self.source.bytes(&path).if_present()? else {
            return Ok(0);
        };
        let status = Status::parse(&path, &bytes);
        Ok(status.rss.or_if_absent(Bytes(0))?.0 + status.hugetlb.or_if_absent(Bytes(0))?.0)
    }

    /// A walk of more memory takes longer: at worst all that is new is on base pages.
    fn may_look(&self, memory: u64) -> bool {
        let new = Bytes(memory.saturating_sub(self.last_memory));
        let expected = self.last.as_secs_f64() + new.0 as f64 / Bytes::gib(1).0 as f64 * PER_GIB.as_secs_f64();
        let allowed =
            self.attention.beyond().as_secs_f64() + self.attention.share() * self.began.elapsed().as_secs_f64();
        let growing = memory as f64 >= self.read_memory as f64 * GROWN || !Self::is_near(memory, self.expected());
        let allowed = if growing {
            allowed * (1.0 - LEFT_WHILE_GROWING)
        } else {
            allowed
        };
        memory > 0 && (self.looks.count == 0 || self.looks.seconds + expected <= allowed)
    }

    fn is_near(memory: u64, peak: u64) -> bool {
        memory as f64 >= NEAR_PEAK * peak as f64
    }

    /// Near its peak, a program's pages may still change their kind: the last look counts.
    fn may_look_again(&self, memory: u64) -> bool {
        let share = self.attention.share() * self.began.elapsed().as_secs_f64();
        Self::is_near(memory, self.peak.max(self.expected()))
            && self.looks.seconds + 2.0 * self.last.as_secs_f64() <= share
    }

    /// `tree` is who was there, and the memory that each had a moment ago.
    fn look(&mut self, tree: &[(u32, u64)], memory: u64, not_whole: Option<Unread>) {
        let walk = walk(&self.source, tree.iter().map(|(pid, _)| *pid), self.thp_size);
        let is_whole = !tree.iter().any(|(pid, had)| *had > 0 && walk.gone.contains(pid));
        let why_not = walk.why_not.or(not_whole);
        self.last = walk.took;
        self.looks.count += 1;
        self.looks.seconds += self.last.as_secs_f64();
        self.last_memory = memory;
        // A look that missed something, as at the program's end, does not replace one that did not.
        let is_better = (is_whole && why_not.is_none()) || self.seen_memory == 0;
        let sees = walk.own.total().0 > 0 || why_not.is_some();
        if is_better && sees && memory as f64 >= STILL_THERE * self.seen_memory as f64 {
            let areas = Vec::new();
            (self.seen, self.seen_memory) = (Walk { areas, why_not, ..walk }, memory);
        }
    }

    /// The kernel's counters have a page once for each mapping that shows it (ZGC maps its heap three times). The last look shows how much that is.
    fn once(&self, accounted: u64) -> Bytes {
        Bytes((accounted as f64 * self.share_once()) as u64)
    }

    fn share_once(&self) -> f64 {
        let again = self.seen.again.0.min(self.seen_memory) as f64 / self.seen_memory.max(1) as f64;
        1.0 - again
    }

    /// What these counters are expected to come to.
    fn expected(&self) -> u64 {
        (self.attention.expected() as f64 / self.share_once().max(0.01)) as u64
    }

    /// What it comes to, given the largest resident set that the kernel reports at the end. A program starts in this
    /// process's memory, which counts into that number, so that only more than this process's own peak means something.
    pub fn finish(&self, max_rss: u64) -> Seen {
        let peak = if max_rss > self.peak.max(own_peak()) {
            max_rss
        } else {
            self.peak
        };
        let total = self.seen.own.total().0;
        let near = total > 0 && Self::is_near(self.seen_memory, peak);
        let backing = match (near, &self.seen.why_not) {
            (true, None) => Ok(self.seen.own.clone()),
            (_, Some(why)) => Err(why.clone()),
            (false, None) => Err(missed(self.looks.count, Bytes(self.seen_memory), Bytes(peak))),
        };
        Seen {
            backing,
            text: self.seen.text.clone(),
            peak: if near { self.once(peak) } else { Bytes(peak) },
            migrations: self.migrations,
            looks: self.looks,
        }
    }
}

fn missed(looks: u32, seen: Bytes, peak: Bytes) -> Unread {
    let why = if looks == 0 || seen.0 == 0 {
        "the program ended before it could be looked at: give it more to do".to_owned()
    } else {
        format!("it had {peak} at its peak, and {seen} when its page tables were last looked at")
    };
    Unread::new(Cause::Failed, "/proc/PID/smaps", why)
}

/// How often the kernel moved a process or a thread, by its folder in /proc; `None` without CONFIG_SCHED_DEBUG.
pub fn migrations(source: &Source, folder: &str) -> Option<u64> {
    let text = source.text(&format!("{folder}/sched"));
    let mut lines = text.known()?.lines();
    let line = lines.find(|line| line.starts_with("se.nr_migrations"))?;
    line.rsplit_once(':')?.1.trim().parse().ok()
}

/// What backs the memory of some processes.
#[derive(Default)]
pub struct Walk {
    pub areas: Vec<Area>,
    /// Own memory by page kind.
    pub own: Backing,
    /// Code from files.
    pub text: Backing,
    /// Shared memory in further mappings of it.
    again: Bytes,
    /// Those whose memory is gone, as it is before they are.
    gone: Vec<u32>,
    /// Why that is not all.
    pub why_not: Option<Unread>,
    /// CPU time that it took to find out.
    pub took: Duration,
}

/// Looks at the mappings of processes. Pages of a THP size are counted apart from base pages if one is given.
pub fn walk(source: &Source, pids: impl IntoIterator<Item = u32>, size: Option<Bytes>) -> Walk {
    let began = cpu_time();
    let (mut areas, mut of_size, mut gone, mut why_not) = (Vec::new(), Bytes(0), Vec::new(), None);
    for pid in pids {
        match counted(source, pid).into_result() {
            Ok(more) => {
                match size.map(|size| mthp_of(pid, &more, size)) {
                    Some(Ok(bytes)) => of_size.0 += bytes.0,
                    Some(Err(why)) => why_not = Some(why),
                    None => {}
                }
                if !more.iter().any(|area| area.resident() > Some(Bytes(0))) {
                    gone.push(pid);
                }
                areas.extend(more);
            }
            Err(why) if why.unread == Cause::Absent => gone.push(pid),
            Err(why) => why_not = Some(why),
        }
    }
    let coverage = Coverage::of(&areas);
    // Of hugetlb pages the account has those that a process touched, whatever its mappings show.
    let is_view = |area: &&Area| Sort::of(*area) == Sort::Shared && !area.is_hugetlb();
    let shown: u64 = areas.iter().filter(is_view).map(|area| area.backing().total().0).sum();
    let once = Coverage::of(areas.iter().filter(is_view)).shared.total();
    let mut own = coverage.own();
    tell(&mut own, size, of_size);
    let is_code = |area: &&Area| Sort::of(*area) == Sort::File && area.perms.contains('x');
    Walk {
        own,
        text: Coverage::of(areas.iter().filter(is_code)).file,
        again: Bytes(shown.saturating_sub(once.0)),
        took: cpu_time().saturating_sub(began),
        areas,
        gone,
        why_not,
    }
}

/// Takes them out of what smaps counts as base pages.
fn tell(backing: &mut Backing, size: Option<Bytes>, found: Bytes) {
    let moved = size.and_then(|size| Some((size, backing.take(PageKind::Base, found)?.1)));
    if let Some((size, bytes)) = moved {
        backing.add(PageKind::Mthp(size), bytes);
    }
}

#[cfg(test)]
#[path = "watch_tests.rs"]
mod tests;
