//! Whose pages a pool holds: the goals' own, those of plans on record, those of other programs, and those that files ask for.

use host::snapshot::Pool;
use model::plan::PoolNeed;
use model::{Bytes, Reading, Unread};

use super::goal::Goal;
use super::host::persistent;
use super::{Host, Need, Recorded, Wanted};

/// Pages that are mapped.
fn used(all: &Reading<u64>, free: &Reading<u64>) -> Result<u64, Unread> {
    let (all, free) = (all.as_ref().into_result()?, free.as_ref().into_result()?);
    Ok(all.saturating_sub(*free))
}

/// What all goals together want of one pool.
#[derive(Default)]
pub(super) struct Demand<'g> {
    /// What a goal says the pool shall have in all.
    pub(super) total: u64,
    /// What goals take beside what others have.
    pub(super) more: u64,
    /// Pages that the goals' programs have already.
    own: u64,
    /// Do all of these programs ask for huge pages already?
    asks: bool,
    pub(super) how: Vec<String>,
    pub(super) goal: Option<&'g Goal>,
}

/// How many pages a pool shall have, with the arithmetic, and what others lose by it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) pages: u64,
    pub(super) why: String,
    pub(super) losses: Vec<String>,
}

impl<'g> Demand<'g> {
    pub(super) fn in_all(&mut self, goal: &'g Goal, page: Bytes, pages: u64) {
        self.total = self.total.max(pages);
        self.how.push(format!("{pages} pages of {} in all", page.exact()));
        self.goal = Some(goal);
    }

    pub(super) fn beside(&mut self, goal: &'g Goal, need: &Need) {
        self.asks = need.asks && (self.asks || self.more == 0);
        self.more = self.more.saturating_add(need.pages);
        self.own = self.own.saturating_add(need.own);
        self.how.push(need.how.clone());
        self.goal = Some(goal);
    }
}

/// A pool, or a node's part of it, and everybody who has pages there.
pub(super) struct Account<'a> {
    host: &'a Host<'a>,
    pool: &'a Pool,
    node: Option<u32>,
    /// Plans on record for other goals.
    others: Vec<(Goal, &'a Recorded)>,
    /// Pages that plans on record took for the same goals.
    earlier: u64,
}

/// Why it is so many pages, where a goal wants some beside those of others.
fn of_more(mut why: String, demand: &Demand<'_>, least: u64, (kept, place): (u64, &str)) -> String {
    if why.contains(" + ") {
        why += &format!(" = {least}");
    }
    if demand.own > 0 {
        why += &format!("; {} of these it has already, touched or reserved", demand.own);
    }
    if kept > least {
        why += &format!("; the pool keeps its {kept} pages ({place}), more than it needs");
    }
    why
}

impl<'a> Account<'a> {
    pub(super) fn of(host: &'a Host<'a>, pool: &'a Pool, node: Option<u32>, wanted: &[Wanted]) -> Self {
        let is_here = |recorded: &Recorded| (recorded.need.page, recorded.need.node) == (pool.size, node);
        let mut others = host.others(wanted);
        others.retain(|(_, recorded)| is_here(recorded));
        let all = host.recorded.iter().filter(|recorded| is_here(recorded));
        let same = all.filter(|recorded| !others.iter().any(|(_, other)| std::ptr::eq(*other, *recorded)));
        let earlier = same.map(|recorded| recorded.need.pages).fold(0, u64::saturating_add);
        Self {
            host,
            pool,
            node,
            others,
            earlier,
        }
    }

    /// The pages for a demand: nothing that others need is taken away, but by a goal that says how many pages there shall be in all.
    pub(super) fn share(&self, demand: &Demand<'_>) -> Result<Share, Unread> {
        let (in_use, unread) = match self.in_use() {
            Ok(in_use) => (in_use, None),
            // A goal that says how many pages there shall be can do without the count of those in use.
            Err(unread) if demand.more == 0 => (0, Some(unread)),
            Err(unread) => return Err(unread),
        };
        // A pool that was planned by its size has the pages of a program that asks for such.
        let is_open = demand.asks && self.earlier == 0;
        let recorded = match is_open {
            true => self.of_programs(),
            false => self.recorded(),
        };
        let others_in_use = in_use.saturating_sub(demand.own).saturating_sub(self.recorded_in_use());
        let (asked, place) = self.asked();
        let known = recorded.saturating_add(self.earlier.max(demand.own));
        let unaccounted = asked.saturating_sub(known);
        let together = recorded.saturating_add(unaccounted).saturating_add(demand.more);
        let is_for_it = is_open || !self.fits(together);
        let others = match is_for_it {
            true => others_in_use,
            false => others_in_use.max(unaccounted),
        };
        let least = recorded.saturating_add(others).saturating_add(demand.more);
        let kept = if is_for_it { asked } else { 0 };
        let pages = match demand.more {
            0 => demand.total,
            _ => demand.total.max(least).max(kept),
        };
        let mut why = demand.how.join("; ");
        if demand.more > 0 {
            let beside = self.beside(recorded, others, others_in_use, &place);
            why = of_more(why + &beside, demand, least, (kept, &place));
        }
        if let Some(unread) = unread {
            why += &format!("; how many pages are in use now could not be read ({unread})");
        }
        if pages < in_use {
            why += &format!("; {in_use} pages are in use: the difference stays as surplus until they are freed");
        }
        let losses = self.losses(pages, asked, &place);
        Ok(Share { pages, why, losses })
    }

    /// What is added to the goals' own pages.
    fn beside(&self, recorded: u64, others: u64, in_use: u64, place: &str) -> String {
        let mut text: String = self
            .programs()
            .map(|need| format!(" + {} for {} (a plan on record)", need.pages, need.goal))
            .collect();
        let in_all = recorded.saturating_sub(self.of_programs());
        if in_all > 0 {
            text += &format!(" + {in_all} for a pool that a plan on record asks for");
        }
        match others {
            0 => {}
            pages if pages == in_use => {
                text += &format!(" + {pages} that other programs have now, touched or reserved");
            }
            pages => text += &format!(" + {pages} that {place} asks for, for which there is no plan on record"),
        }
        text
    }

    fn programs(&self) -> impl Iterator<Item = &PoolNeed> {
        let programs = self.others.iter().filter(|(goal, _)| goal.pools().is_empty());
        programs.map(|(_, recorded)| &recorded.need)
    }

    fn of_programs(&self) -> u64 {
        self.programs().fold(0, |sum, need| sum.saturating_add(need.pages))
    }

    /// The most that a goal about a whole pool asks for: it has the pages of programs in it.
    fn in_all(&self) -> u64 {
        let pools = self.others.iter().filter(|(goal, _)| !goal.pools().is_empty());
        pools.map(|(_, recorded)| recorded.need.pages).max().unwrap_or(0)
    }

    /// Pages of all plans on record for other goals.
    fn recorded(&self) -> u64 {
        self.of_programs().max(self.in_all())
    }

    /// Those of them that are in use.
    fn recorded_in_use(&self) -> u64 {
        let used = self
            .others
            .iter()
            .map(|(_, recorded)| recorded.own.min(recorded.need.pages));
        used.fold(0, u64::saturating_add)
    }

    /// The pages that the pool has, or is to have from the next boot on, and where that is said. More than the machine has are a mistake
    /// that nothing relies on.
    fn asked(&self) -> (u64, String) {
        let (config, default) = (&self.host.config, self.host.default_page());
        let is_whole = self.node.is_none();
        let sysctl = config.sysctl.known().filter(|_| is_whole && self.pool.size == default);
        let sysctl = sysctl.and_then(|files| files.number("vm.nr_hugepages").ok().flatten());
        let sysctl = sysctl.map(|(pages, line)| (pages, line.place.clone()));
        let boot = config.boot.known().filter(|_| is_whole);
        let boot = boot.and_then(|boot| boot.pages_of(self.pool.size, Some(default)));
        let boot = boot.map(|pages| (pages, "/proc/cmdline".to_owned()));
        let now = self.now().ok().map(|pages| (pages, "the pool now".to_owned()));
        let places = now.into_iter().chain(sysctl).chain(boot);
        // The first of equals: what the pool has.
        places
            .filter(|(pages, _)| self.fits(*pages))
            .reduce(|one, other| if other.0 > one.0 { other } else { one })
            .unwrap_or_default()
    }

    fn fits(&self, pages: u64) -> bool {
        let total = self.host.config.total.known();
        total.is_none_or(|total| self.pool.size.0.saturating_mul(pages) < total.0)
    }

    /// Pages without the surplus.
    fn now(&self) -> Result<u64, Unread> {
        match self.part()? {
            None => persistent(&self.pool.nr, &self.pool.surplus),
            Some(None) => Ok(0),
            Some(Some(part)) => persistent(&part.nr, &part.surplus),
        }
    }

    /// Pages that are mapped or reserved. The kernel does not report reservations by node.
    fn in_use(&self) -> Result<u64, Unread> {
        match self.part()? {
            None => {
                let promised = *self.pool.reserved.as_ref().into_result()?;
                Ok(used(&self.pool.nr, &self.pool.free)?.saturating_add(promised))
            }
            // A node without such a pool has none of its pages in use.
            Some(None) => Ok(0),
            Some(Some(part)) => used(&part.nr, &part.free),
        }
    }

    /// The node's part, if it is about one.
    fn part(&self) -> Result<Option<Option<&host::snapshot::NodePool>>, Unread> {
        let Some(node) = self.node else { return Ok(None) };
        let nodes = self.pool.nodes.as_ref().into_result()?;
        Ok(Some(nodes.iter().find(|part| part.node == node)))
    }

    /// Who is left without pages.
    fn losses(&self, pages: u64, asked: u64, place: &str) -> Vec<String> {
        let Some(smaller) = smaller(asked, pages, place) else {
            return Vec::new();
        };
        let mut losses = vec![smaller];
        let short = self.others.iter().filter(|_| pages < self.recorded());
        losses.extend(short.map(|(_, recorded)| {
            let need = &recorded.need;
            format!(
                "{} pages are on record for {}, and would not be there",
                need.pages, need.goal
            )
        }));
        losses
    }
}

/// That a pool loses pages, which others may count on.
pub(super) fn smaller(asked: u64, pages: u64, place: &str) -> Option<String> {
    (pages < asked).then(|| format!("the pool gets smaller: {asked} pages ({place}) become {pages}"))
}
