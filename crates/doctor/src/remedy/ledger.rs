//! What this machine can take of all that its findings advise, together.

use std::collections::{BTreeMap, BTreeSet};

use host::snapshot::Pool;
use host::snapshot::hugetlb::directory_name;
use host::snapshot::thp::THP;
use model::findings::{Finding, Planned};
use model::{Bytes, Reading};
use programs::Evidence;

use super::account::{Account, Owner, larger, unfirm};
use super::at_once::{Request, add_limit};
use super::count::filled_in;
use super::draft::Draft;
use super::{Need, Remedy};
use crate::demand::programs_of_files;
use crate::facts::{counted, default_size, distribution, persistent, total};
use crate::pools::STARVES;

/// Memory in per cent that pools may have: the kernel and programs need the rest.
const MOST_IN_POOLS: u64 = 90;

/// What the machine has for the fixes of all findings together.
pub(crate) struct Ledger<'e> {
    evidence: &'e Evidence,
    /// Pages of each size that the pools would have with the fixes shown so far.
    pools: BTreeMap<Bytes, Account>,
    /// Bytes of pools that have pages and no account.
    others: u64,
    /// Pools that findings want for programs, by page size.
    wanted: BTreeSet<Bytes>,
    /// Is memory so short that no pool may grow?
    is_starved: bool,
    /// Programs that run, and that the files which were given may start.
    of_files: BTreeSet<u32>,
    /// Whose pages are asked for now.
    owner: Owner,
}

impl<'e> Ledger<'e> {
    /// Nothing is asked of the machine yet.
    pub(crate) fn of(evidence: &'e Evidence) -> Self {
        let pools = counted(evidence).unwrap_or_default();
        let pools = pools.iter();
        // A pool that could not be read has no account: nothing is advised for it.
        let account = |pool: &Pool| {
            let (now, taken) = (*pool.nr.known()?, pool.taken()?);
            let account = Account {
                now,
                taken,
                firm: now,
                ..Account::default()
            };
            Some((pool.size, account))
        };
        let others = pools.clone().filter(|pool| account(pool).is_none());
        let others = others.filter_map(|pool| Some(pool.size.0.saturating_mul(*pool.nr.known()?)));
        Self {
            evidence,
            others: others.fold(0, u64::saturating_add),
            pools: pools.filter_map(account).collect(),
            wanted: BTreeSet::new(),
            is_starved: false,
            of_files: BTreeSet::new(),
            owner: Owner::Finding(0),
        }
    }

    /// All findings, in their order, with those fixes that this machine can take together.
    pub(crate) fn settle_all(&mut self, drafts: Vec<Draft>) -> Vec<Finding> {
        self.of_files = programs_of_files(self.evidence);
        self.wanted.extend(drafts.iter().filter_map(|draft| draft.wants));
        let entered = drafts
            .into_iter()
            .enumerate()
            .map(|(nth, draft)| self.enter(nth, draft));
        let entered: Vec<(Finding, Option<Bytes>)> = entered.collect();
        let settled = entered.into_iter().map(|(finding, page)| self.settle(finding, page));
        let mut findings: Vec<Finding> = settled.collect();
        once(&mut findings);
        findings
    }

    /// No pool may grow from here on: what is left of memory is too little already.
    pub(crate) fn starve(&mut self) {
        self.is_starved = true;
    }

    /// The finding with those fixes that this machine can take beside those of the findings before it, and the page size of the pool of which
    /// they request pages while the machine runs.
    fn enter(&mut self, nth: usize, draft: Draft) -> (Finding, Option<Bytes>) {
        self.owner = match draft.owner(nth) {
            Owner::Program(pid) if self.of_files.contains(&pid) => Owner::OfFiles(pid),
            owner => owner,
        };
        let Draft {
            mut finding, remedies, ..
        } = draft;
        let (last, first): (Vec<Remedy>, Vec<Remedy>) = remedies.into_iter().partition(|remedy| remedy.is_last);
        // One finding asks for one pool, in several ways.
        let before = self.pools.clone();
        let mut taken = before.clone();
        let mut goal = None;
        // Several fixes of one finding ask for the same pool.
        let mut request = None;
        for remedy in &first {
            self.pools.clone_from(&before);
            if self.takes(remedy) {
                finding.fix.push(remedy.text.clone());
                goal = goal.or_else(|| remedy.goal.clone());
                larger(&mut taken, &self.pools);
                request = request.or(self.requests(remedy));
            }
        }
        if first.iter().any(|remedy| remedy.is_instead) {
            unfirm(&mut taken, &before);
        }
        let last = last.iter().filter(|remedy| self.takes(remedy));
        let otherwise: Vec<String> = last.map(|remedy| remedy.text.clone()).collect();
        if finding.fix.is_empty() {
            finding.fix.clone_from(&otherwise);
        }
        finding.plan = goal.map(|goal| Planned { goal, otherwise });
        self.pools = taken;
        (finding, request)
    }

    /// The finding with what all of them together come to.
    fn settle(&self, mut finding: Finding, request: Option<Bytes>) -> Finding {
        self.count(&mut finding);
        if let Some(request) = request.and_then(|page| self.request(page)) {
            add_limit(self.evidence, &mut finding, request);
        }
        self.name_files(&mut finding);
        self.leave_to_host(&mut finding);
        self.leave_to_configuration(&mut finding);
        finding
    }

    /// The page size of the pool of which this fix requests pages while the machine runs, by a plan or by a setting.
    fn requests(&self, remedy: &Remedy) -> Option<Bytes> {
        let is_now = remedy.goal.is_some() || remedy.text.contains("nr_hugepages");
        let page = remedy.needs.iter().filter(|_| is_now).find_map(Need::page)?;
        // A pool that a boot line is to make takes none of them.
        counted(self.evidence).ok()?.iter().find(|pool| pool.size == page)?;
        self.request(page).map(|request| request.page)
    }

    fn request(&self, page: Bytes) -> Option<Request> {
        let account = self.pools.get(&page)?;
        let (now, whole) = (account.now, account.whole());
        (whole > now).then_some(Request { page, now, whole })
    }

    /// Fills in the pages of pools, and says it where they are those of other findings, too.
    fn count(&self, finding: &mut Finding) {
        let mut shared = None;
        for fix in &mut finding.fix {
            *fix = filled_in(fix, |count| {
                let (page, Some(own)) = (count.page, count.own) else {
                    return self.kept(count.page);
                };
                let all = self.pools.get(&page).map_or(own, |account| account.whole().max(own));
                shared = Some((page, all)).filter(|_| all > own).or(shared);
                all
            });
        }
        finding.fix.extend(shared.map(|(page, all)| {
            let size = page.exact();
            format!("{all} pages of {size}: the sum for all findings of this report that want them")
        }));
    }

    /// The pages of a pool that is to be kept as all fixes together leave it.
    fn kept(&self, page: Bytes) -> u64 {
        let pool = self.evidence.snapshot.pool(page);
        let now = pool.and_then(|pool| persistent(pool).ok()).unwrap_or(0);
        let grown = self.pools.get(&page).filter(|account| account.firm > account.now);
        grown.map_or(now, |account| account.firm)
    }

    /// Red Hat Enterprise Linux 6 has the files of THP in a directory of another name.
    fn name_files(&self, finding: &mut Finding) {
        let thp = self.evidence.snapshot.thp.known();
        let Some(thp) = thp.filter(|thp| thp.directory != THP) else {
            return;
        };
        let texts = finding.evidence.iter_mut().map(|proof| &mut proof.source);
        for text in texts.chain(&mut finding.fix) {
            *text = text.replace(THP, &thp.directory);
        }
    }

    /// In a container the settings are the host's, and their files are read-only.
    fn leave_to_host(&self, finding: &mut Finding) {
        if !self.evidence.config.is_sys_read_only {
            return;
        }
        let goal = finding.plan.as_ref().map(|plan| plan.goal.clone());
        finding.drop_plan();
        if let Some(goal) = goal.filter(|_| finding.fix.is_empty()) {
            finding.fix.push(format!("on the host: {}", Finding::command_of(&goal)));
        }
        let is_setting = |fix: &&mut String| ["/sys/", "sysctl", "reboot"].iter().any(|word| fix.contains(word));
        for fix in finding.fix.iter_mut().filter(is_setting) {
            *fix = format!("on the host (/sys is read-only here): {fix}");
        }
    }

    /// Where one configuration makes all files of /etc, a change to such a file does not last.
    fn leave_to_configuration(&self, finding: &mut Finding) {
        let is_lost = |fix: &String| {
            let has = |words: &[&str]| words.iter().any(|word| fix.contains(word));
            has(&["/etc/", "systemctl edit"]) && !has(&["configuration", "settings"])
        };
        if finding.fix.iter().any(is_lost) {
            let where_else = distribution(self.evidence).configured_in();
            finding.fix.extend(where_else.map(str::to_owned));
        }
    }

    fn takes(&mut self, remedy: &Remedy) -> bool {
        remedy.needs.iter().all(|need| self.has(need))
    }

    fn has(&mut self, need: &Need) -> bool {
        let snapshot = &self.evidence.snapshot;
        match need {
            Need::Thp(name, value) => takes_value(self.evidence, name, value),
            Need::Sysctl(name) => snapshot.sysctls.text(name).known().is_some(),
            Need::Feature(feature) => snapshot.kernel.has(*feature) == Some(true),
            Need::HasThp => snapshot.thp.known().is_some(),
            Need::Unwanted(page) => !self.wanted.contains(page),
            Need::Memory(least) => total(self.evidence).is_ok_and(|total| total >= *least),
            Need::Pool(page, pages) => self.grow(*page, |account, _| {
                account.asked = account.asked.max(*pages);
                *pages
            }),
            Need::Files(page, pages) => self.grow(*page, |account, _| {
                account.files = account.files.max(pages.saturating_sub(account.taken));
                account.used()
            }),
            Need::More(page, pages) => self.grow(*page, |account, owner| {
                let own = account.more.entry(owner).or_default();
                *own = (*own).max(*pages);
                account.used()
            }),
        }
    }

    /// Enters what a pool would become, if that fits. `enter` gives what this fix alone asks for.
    fn grow(&mut self, page: Bytes, enter: impl Fn(&mut Account, Owner) -> u64) -> bool {
        if !self.evidence.has_machine {
            return true;
        }
        // A pool that the boot line alone makes, beside that of the default size, is not there yet.
        let is_other = || default_size(self.evidence).is_ok_and(|default| default != page);
        let made = || (self.evidence.snapshot.is_made_at_boot(page) && is_other()).then(Account::default);
        let Some(mut account) = self.pools.get(&page).cloned().or_else(made) else {
            return false;
        };
        let alone = enter(&mut account, self.owner);
        if alone > account.now && self.is_starved {
            return false;
        }
        account.firm = account.firm.max(alone);
        // What is there already fits.
        let is_there = account.whole() <= account.now;
        let before = self.pools.insert(page, account);
        let fits = is_there || fits(self.evidence, self.bytes());
        if !fits {
            match before {
                Some(before) => self.pools.insert(page, before),
                None => self.pools.remove(&page),
            };
        }
        fits
    }

    fn bytes(&self) -> Bytes {
        let bytes = self
            .pools
            .iter()
            .map(|(page, account)| page.0.saturating_mul(account.whole()));
        Bytes(bytes.fold(self.others, u64::saturating_add))
    }
}

/// The steps against a starving pool are given once: others that have the same ones name its finding.
fn once(findings: &mut [Finding]) {
    let starving = findings.iter().find(|finding| finding.id == STARVES);
    let Some(steps) = starving.map(|finding| finding.fix.clone()) else {
        return;
    };
    let same = findings
        .iter_mut()
        .filter(|finding| finding.id != STARVES && finding.fix == steps);
    same.for_each(|finding| finding.fix = vec![format!("take the steps of {STARVES}, which has the same cause")]);
}

/// The most that pools of all sizes can have together.
fn most_in_pools(evidence: &Evidence) -> Option<Bytes> {
    Some(Bytes(total(evidence).ok()?.0 / 100 * MOST_IN_POOLS))
}

/// The most pages that a pool can have beside the others and the programs as they are; `None` on a machine of unknown size.
pub(crate) fn most_pages(evidence: &Evidence, pool: &Pool) -> Option<u64> {
    let mut others = Ledger::of(evidence);
    others.pools.remove(&pool.size);
    let left = most_in_pools(evidence)?.0.saturating_sub(others.bytes().0);
    let most = left / pool.size.0.max(1);
    Some(beside_programs(evidence, pool).map_or(most, |pages| pages.min(most)))
}

/// What it has and what programs leave, less what has to stay free; at least its pages in use.
fn beside_programs(evidence: &Evidence, pool: &Pool) -> Option<u64> {
    let reserve = spare(evidence)?.0;
    let left = evidence.snapshot.memory.get("MemAvailable");
    let has = pool.size.0.saturating_mul(*pool.nr.known()?);
    let pages = has.saturating_add(left.known()?.0).saturating_sub(reserve) / pool.size.0.max(1);
    Some(pages.max(pool.taken().unwrap_or(0)))
}

/// What no pool may take; `None` on a machine of unknown size.
pub(super) fn spare(evidence: &Evidence) -> Option<Bytes> {
    Some(Bytes(
        total(evidence).ok()?.0.saturating_sub(most_in_pools(evidence)?.0),
    ))
}

/// Do pools of so much leave the machine enough? Of a machine of unknown size nothing is known.
fn fits(evidence: &Evidence, bytes: Bytes) -> bool {
    most_in_pools(evidence).is_none_or(|most| bytes <= most)
}

/// Can a pool of that size have so many pages beside the other pools as they are?
pub(crate) fn fits_alone(evidence: &Evidence, page: Bytes, pages: u64) -> bool {
    Ledger::of(evidence).has(&Need::Pool(page, pages))
}

/// Can these pools have so many pages, beside the others as they are if those are to stay?
pub(crate) fn fit_together(evidence: &Evidence, asked: &BTreeMap<Bytes, u64>, is_beside: bool) -> bool {
    let mut ledger = Ledger::of(evidence);
    let has_more = |(page, pages): (&Bytes, &u64)| ledger.pools.get(page).is_none_or(|account| *pages > account.now);
    if !asked.iter().any(has_more) {
        return true;
    }
    ledger.pools.retain(|page, _| is_beside && !asked.contains_key(page));
    let others = if is_beside { ledger.bytes().0 } else { 0 };
    let bytes = asked.iter().map(|(page, pages)| page.0.saturating_mul(*pages));
    fits(evidence, Bytes(bytes.fold(others, u64::saturating_add)))
}

/// Does this file of THP exist, and does it take the value?
fn takes_value(evidence: &Evidence, name: &str, value: &str) -> bool {
    let Some(thp) = evidence.snapshot.thp.known() else {
        return false;
    };
    let offers = |choice: &Reading<host::snapshot::Choice>| {
        choice
            .known()
            .is_some_and(|choice| choice.offered.iter().any(|offered| offered == value))
    };
    let settings = thp.khugepaged.known();
    match (name, name.split_once('/')) {
        ("enabled", _) => offers(&thp.enabled),
        ("defrag", _) => offers(&thp.defrag),
        ("shmem_enabled", _) => offers(&thp.shmem_enabled),
        ("shrink_underused", _) => thp.shrink_underused.known().is_some(),
        ("use_zero_page", _) => thp.use_zero_page.known().is_some(),
        (_, Some(("khugepaged", name))) => settings.is_some_and(|settings| settings.get(name).known().is_some()),
        (_, Some((directory, "enabled"))) => thp
            .sizes
            .iter()
            .any(|size| directory == directory_name(size.size) && offers(&size.enabled)),
        _ => false,
    }
}
