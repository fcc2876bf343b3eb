//! Verifying: is what was requested in effect at every layer, and does a process use it?

use std::collections::BTreeSet;

use model::plan::{Change, Plan, Target};
use model::process::ProcessPages;
use model::setup::{Check, Program, User, Verdict, Verified, VerifiedPlan};
use model::{Bytes, PageKind, Reading};

use super::Setup;
use super::access::Access;
use super::apply::{reboot, still_to_do};
use super::error::SetupError;
use crate::place::{Place, State, wanted};

/// Looks up the running programs that goals are for.
pub type Programs<'a> = dyn Fn(&[String]) -> Vec<Program> + 'a;

impl Setup {
    /// Holds a plan against the machine; without one, every plan that was applied and not undone.
    ///
    /// # Errors
    /// When the journals cannot be used, or another run is at work.
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
                vec![(
                    verified(&access, plan, None, false, programs(&plan.goals)),
                    plan.clone(),
                )]
            }
            None => self.applied(&access, programs)?,
        };
        let (plans, asked): (Vec<VerifiedPlan>, Vec<Plan>) = plans.into_iter().unzip();
        let kinds: BTreeSet<Asked> = asked.iter().flat_map(|plan| kinds(&access, plan)).collect();
        let is_asked = |kind| kinds.iter().any(|asked| asked.covers(kind));
        let users = processes.as_ref().map(|rows| users(rows, is_asked));
        let notes = notes(&plans, &kinds, &users, processes);
        Ok(Verified { plans, users, notes })
    }

    fn applied(&self, access: &Access<'_>, programs: &Programs<'_>) -> Result<Vec<(VerifiedPlan, Plan)>, SetupError> {
        let Some(home) = self.home()? else {
            return Ok(Vec::new());
        };
        let _lock = home.try_lock()?;
        let logs = Self::logs(home)?;
        let verify = |log: &super::ChangeLog| {
            let (plan, time) = (log.story.head.plan.clone(), log.story.head.time.clone());
            let restarted = self.is_restarted(log)?;
            let mut programs = programs(&plan.goals);
            programs
                .iter_mut()
                .for_each(|program| program.since = since(program, &time));
            Ok((verified(access, &plan, Some(time), restarted, programs), plan))
        };
        logs.iter().map(verify).collect()
    }
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
    programs: Vec<Program>,
) -> VerifiedPlan {
    let is_new = !programs.is_empty() && programs.iter().all(Program::is_new);
    let left = |change: &Change| match (restarted, is_new) {
        (true, _) => String::new(),
        (false, true) => reboot(change).unwrap_or_default(),
        (false, false) => still_to_do(change),
    };
    let checks = plan.changes.iter().map(|change| check(access, change, left(change)));
    VerifiedPlan {
        programs,
        goals: plan.goals.clone(),
        applied,
        restarted,
        checks: checks.collect(),
    }
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
        Target::Setting { path } if path.contains("/transparent_hugepage/") => Some(Asked::Transparent),
        target => access.page(&Place::of(target)?).map(Asked::Pool),
    };
    plan.changes.iter().filter_map(kind).collect()
}

/// Processes with memory on pages of such kinds, by the kernel's own account of their mappings.
pub fn users(rows: &[ProcessPages], is_asked: impl Fn(PageKind) -> bool) -> Vec<User> {
    let mut users = Vec::new();
    for row in rows {
        let backing = row.backing.known().into_iter().flat_map(model::Backing::iter);
        let of_kind = backing.filter(|&(kind, bytes)| bytes.0 > 0 && is_asked(kind));
        users.extend(of_kind.map(|(kind, bytes)| User {
            pid: row.pid,
            name: row.name.clone(),
            kind,
            bytes,
        }));
    }
    users
}

fn notes(
    plans: &[VerifiedPlan],
    kinds: &BTreeSet<Asked>,
    users: &Reading<Vec<User>>,
    processes: &Reading<Vec<ProcessPages>>,
) -> Vec<String> {
    let none = plans.is_empty().then(|| "hugewise has changed nothing here".to_owned());
    let unused = users.known().is_some_and(Vec::is_empty) && !kinds.is_empty();
    let unused = unused.then(|| "no process uses these pages yet: start or restart the application".to_owned());
    let hidden = processes.known().into_iter().flatten();
    let hidden = hidden.filter(|row| row.backing.unread().is_some()).count();
    let hidden = (hidden > 0 && !kinds.is_empty())
        .then(|| format!("processes that could not be looked into, and may use them: {hidden}"));
    none.into_iter().chain(unused).chain(hidden).collect()
}
