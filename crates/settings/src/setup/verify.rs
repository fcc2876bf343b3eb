//! Verifying: is what was requested in effect at every layer, and does a process use it?

use std::collections::{BTreeMap, BTreeSet};

use model::plan::{Change, Plan, Target, Value};
use model::process::{Once, ProcessPages};
use model::setup::{Check, PlanState, Program, User, Verdict, Verified, VerifiedPlan};
use model::{Bytes, PageKind, Reading};

use super::Setup;
use super::access::Access;
use super::apply::{reboot, still_to_do};
use super::change_log::Story;
use super::error::SetupError;
use crate::place::{Place, State, wanted};

/// Looks up the running programs that goals are for; `None` if they are for no program that can be looked up.
pub type Programs<'a> = dyn Fn(&[String]) -> Option<Vec<Program>> + 'a;

impl Setup {
    /// Holds a plan against the machine; without one, every plan that was applied and not undone.
    ///
    /// # Errors
    /// When the journals cannot be read.
    pub fn verify(
        &self,
        plan: Option<&Plan>,
        processes: &Reading<Vec<ProcessPages>>,
        programs: &Programs<'_>,
    ) -> Result<Verified, SetupError> {
        let access = Access::new(&self.writer, None);
        let plans = match plan {
            Some(plan) => {
                plan.check()?;
                let programs = with_since(programs(&plan.goals), self.when_applied(plan).as_deref());
                vec![(verified(&access, plan, None, false, programs), plan.clone())]
            }
            None => self.applied(&access, programs)?,
        };
        let (mut plans, asked): (Vec<VerifiedPlan>, Vec<Plan>) = plans.into_iter().unzip();
        let kinds: BTreeSet<Asked> = asked.iter().flat_map(|plan| kinds(&access, plan)).collect();
        let is_asked = |kind| kinds.iter().any(|asked| asked.covers(kind));
        let users = processes.as_ref().map(|rows| users(rows, is_asked));
        let notes = notes(&kinds, &users, processes);
        for (verified, plan) in plans.iter_mut().zip(&asked) {
            verified.state = state(&access, verified, plan, &users);
        }
        Ok(Verified { plans, users, notes })
    }

    /// When a plan was applied that is on record; `None` where the records may not be read.
    fn when_applied(&self, plan: &Plan) -> Option<String> {
        let targets = |plan: &Plan| -> Vec<(Target, Value)> {
            let changes = plan.changes.iter();
            changes
                .map(|change| (change.target.clone(), change.after.clone()))
                .collect()
        };
        let stories = self.stories().ok()?;
        let own = targets(plan);
        let story = stories.iter().rfind(|story| targets(&story.head.plan) == own)?;
        Some(story.head.time.clone())
    }

    fn applied(&self, access: &Access<'_>, programs: &Programs<'_>) -> Result<Vec<(VerifiedPlan, Plan)>, SetupError> {
        let stories = self.stories()?;
        let verify = |(nth, story): (usize, &Story)| {
            let (plan, time) = (story.head.plan.clone(), story.head.time.clone());
            let restarted = self.is_restarted(story)?;
            let programs = with_since(programs(&plan.goals), Some(&time));
            let mut verified = verified(access, &plan, Some(time), restarted, programs);
            let changes = plan.changes.iter().zip(&mut verified.checks);
            changes.for_each(|(change, check)| further_changed(access, change, check, &stories[nth..]));
            Ok((verified, plan))
        };
        stories.iter().enumerate().map(verify).collect()
    }
}

/// Set is not in use: a restart may be to come, or the programs that are to have the pages do not run or have none.
fn state(access: &Access<'_>, verified: &VerifiedPlan, plan: &Plan, users: &Reading<Vec<User>>) -> PlanState {
    if verified.checks.iter().any(|check| check.verdict.is_bad()) {
        return PlanState::NotAsSet;
    }
    let is_left = |(change, check): (&Change, &Check)| {
        let needs_start = !change.risk.restart.is_empty() || change.risk.reboot;
        needs_start && (check.verdict == Verdict::NotSeen || !check.note.is_empty())
    };
    let has_restarted = verified.restarted || verified.has_new_programs();
    let is_left = !has_restarted && plan.changes.iter().zip(&verified.checks).any(is_left);
    let kinds = kinds(access, plan);
    let is_asked = |kind: PageKind| kinds.iter().any(|asked| asked.covers(kind));
    let is_unused = !kinds.is_empty() && !is_in_use(verified.programs.as_deref(), users, is_asked);
    match is_left || is_unused {
        true => PlanState::Set,
        false => PlanState::InUse,
    }
}

/// Do the programs that a plan is for have such pages? If it is for none, or what backs them could not be read, any process counts.
fn is_in_use(programs: Option<&[Program]>, users: &Reading<Vec<User>>, is_asked: impl Fn(PageKind) -> bool) -> bool {
    let of_any = || {
        let users = users.known();
        users.is_none_or(|users| users.iter().any(|user| is_asked(user.kind)))
    };
    match programs {
        None => of_any(),
        Some(programs) => programs.iter().any(|program| match &program.backing {
            Reading::Known(backing) => backing.iter().any(|(kind, bytes)| bytes.0 > 0 && is_asked(kind)),
            Reading::Unread(_) => of_any(),
        }),
    }
}

/// Programs with whether they started after a plan was applied.
fn with_since(mut programs: Option<Vec<Program>>, applied: Option<&str>) -> Option<Vec<Program>> {
    let all = programs.iter_mut().flatten();
    all.for_each(|program| program.since = applied.and_then(|applied| since(program, applied)));
    programs
}

/// Did it start after this moment?
fn since(program: &Program, applied: &str) -> Option<bool> {
    let moment = |text: &str| text.parse::<jiff::Timestamp>().ok();
    Some(moment(program.started.as_ref()?)? > moment(applied)?)
}

fn verified(
    access: &Access<'_>,
    plan: &Plan,
    applied: Option<String>,
    restarted: bool,
    programs: Option<Vec<Program>>,
) -> VerifiedPlan {
    let mut verified = VerifiedPlan {
        programs,
        state: PlanState::Set,
        goals: plan.goals.clone(),
        applied,
        restarted,
        checks: Vec::new(),
    };
    let is_new = verified.has_new_programs();
    let left = |change: &Change| match (restarted, is_new) {
        (true, _) => String::new(),
        (false, true) => reboot(change).unwrap_or_default(),
        (false, false) => still_to_do(change),
    };
    let checks = plan.changes.iter().map(|change| check(access, change, left(change)));
    verified.checks = checks.collect();
    verified
}

fn check(access: &Access<'_>, change: &Change, left: String) -> Check {
    let mut check = Check {
        id: change.id.clone(),
        layer: change.layer,
        place: change.target.to_string(),
        asked: change.after.to_string(),
        found: Reading::absent(change.target.to_string()),
        verdict: Verdict::NotSeen,
        note: String::new(),
    };
    if let Some(place) = Place::of(&change.target) {
        let now = access.reading(&place);
        check.found = now.as_ref().map(State::to_string);
        check.verdict = Verdict::Unread;
        if let Reading::Known(now) = now {
            let to = wanted(&change.target, &change.after, &now);
            check.asked = to.to_string();
            check.verdict = verdict(access, &place, &now, &to);
            check.note = note(change, check.verdict, left);
        }
    }
    check
}

/// What a later plan on record has made of the same place, or what is left of it without a plan below, is as it should be, if it is as its
/// journal says. `stories` begins with the plan's own.
fn further_changed(access: &Access<'_>, change: &Change, check: &mut Check, stories: &[Story]) {
    let Some(place) = Place::of(&change.target).filter(|_| check.verdict.is_bad()) else {
        return;
    };
    let entry_of = |story: &Story| story.entries.iter().find(|entry| entry.place == place).cloned();
    let mut last = stories.iter().enumerate().rev();
    let Some((nth, story, entry)) = last.find_map(|(nth, story)| Some((nth, story, entry_of(story)?))) else {
        return;
    };
    let is_ours = nth > 0 || entry.is_rebased;
    let now = access.reading(&place);
    if let Some(now) = now.known().filter(|now| is_ours && now.is(&entry.ours)) {
        // A pool that a later plan made smaller has too few pages for this one.
        let own = stories.first().and_then(entry_of);
        let is_short = own.is_some_and(|own| verdict(access, &place, now, &own.ours) == Verdict::Short);
        if !is_short {
            check.verdict = Verdict::Obtained;
        }
        check.note = match nth {
            0 => "without what another plan had added, which was undone".to_owned(),
            _ => format!("changed further for {}", story.head.plan.goals.join(" and ")),
        };
    }
}

fn note(change: &Change, verdict: Verdict, left: String) -> String {
    match verdict {
        Verdict::Obtained => left,
        _ if change.also_written_by.is_empty() => String::new(),
        _ => format!("also written by {}", change.also_written_by.join(", ")),
    }
}

fn verdict(access: &Access<'_>, place: &Place, now: &State, to: &State) -> Verdict {
    let pages = now.number().zip(to.number()).filter(|_| access.is_pool(place));
    match pages {
        Some((now, to)) if now >= to => Verdict::Obtained,
        Some(_) => Verdict::Short,
        None if now.is(to) => Verdict::Obtained,
        None => Verdict::Different,
    }
}

/// Page kinds that a plan is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Asked {
    Pool(Bytes),
    Transparent,
}

impl Asked {
    fn covers(self, kind: PageKind) -> bool {
        match self {
            Self::Pool(page) => kind == PageKind::Hugetlb(page),
            Self::Transparent => matches!(kind, PageKind::Thp | PageKind::Mthp(_)),
        }
    }
}

fn kinds(access: &Access<'_>, plan: &Plan) -> Vec<Asked> {
    let kind = |change: &Change| match &change.target {
        Target::Setting { path } if path.contains("/transparent_hugepage/") => {
            let is_raised = path.ends_with("enabled") && reach(Some(&change.after)) > reach(change.before.known());
            is_raised.then_some(Asked::Transparent)
        }
        target => access.page(&Place::of(target)?).map(Asked::Pool),
    };
    plan.changes.iter().filter_map(kind).collect()
}

/// How much memory a THP policy reaches; one that is lowered asks for no pages.
fn reach(policy: Option<&Value>) -> u8 {
    match policy {
        Some(Value::Text(policy)) if ["always", "force"].contains(&policy.as_str()) => 2,
        Some(Value::Text(policy)) if ["never", "deny"].contains(&policy.as_str()) => 0,
        _ => 1,
    }
}

/// Processes with memory on pages of such kinds, by the kernel's own account of their mappings; shared memory once.
pub fn users(rows: &[ProcessPages], is_asked: impl Fn(PageKind) -> bool) -> Vec<User> {
    let Once { own, segments } = Once::of(rows);
    let own = own.into_iter().filter_map(|(row, own)| Some((row, own?, 0)));
    let shared = segments
        .into_iter()
        .map(|shared| (shared.first, shared.backing, shared.others));
    let mut users: BTreeMap<(u32, PageKind), User> = BTreeMap::new();
    for (row, backing, others) in own.chain(shared) {
        for (kind, bytes) in backing.iter().filter(|&(kind, bytes)| bytes.0 > 0 && is_asked(kind)) {
            let user = users.entry((row.pid, kind)).or_insert_with(|| User {
                pid: row.pid,
                name: row.name.clone(),
                kind,
                bytes: Bytes(0),
                others: 0,
            });
            user.bytes.0 += bytes.0;
            user.others = user.others.max(others);
        }
    }
    users.into_values().collect()
}

fn notes(kinds: &BTreeSet<Asked>, users: &Reading<Vec<User>>, processes: &Reading<Vec<ProcessPages>>) -> Vec<String> {
    let unused = users.known().is_some_and(Vec::is_empty) && !kinds.is_empty();
    let unused = unused.then(|| "no process uses these pages yet: start or restart the application".to_owned());
    let hidden = processes.known().into_iter().flatten();
    let hidden = hidden.filter(|row| row.backing.unread().is_some()).count();
    let hidden = (hidden > 0 && !kinds.is_empty())
        .then(|| format!("processes that could not be looked into, and may use them: {hidden}"));
    unused.into_iter().chain(hidden).collect()
}
