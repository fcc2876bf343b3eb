//! Whether what was asked for is there, change by change, and who uses it.

use model::setup::{Check, PlanState, Program, Verdict, Verified, VerifiedPlan};
use model::{Backing, PageKind, Reading};

use super::apply::restart;
use crate::show::Show;
use draw::{Lines, Sheet, columns, counted, joined, lines, moment, pairs};

impl Show for Verified {
    fn title(&self) -> String {
        "Applied plans and this machine".to_owned()
    }

    fn headlines(&self) -> Vec<String> {
        if self.plans.is_empty() {
            return vec!["nothing to verify: no plan is on record here".to_owned()];
        }
        let checks = || self.plans.iter().flat_map(|plan| &plan.checks);
        let count = |verdict| checks().filter(|check| check.verdict == verdict).count();
        let bad = checks().filter(|check| check.verdict.is_bad()).count();
        let obtained = format!(
            "{} of {} in effect",
            count(Verdict::Obtained),
            counted(checks().count(), "change")
        );
        let unseen = count(Verdict::NotSeen);
        let unseen = (unseen > 0).then(|| format!(", {unseen} not checked here"));
        let bad = (bad > 0).then(|| format!(", {bad} not as asked for"));
        let set = self.plans.iter().any(|plan| plan.state == PlanState::Set);
        let set = (set && bad.is_none()).then(|| ", set and not in use yet".to_owned());
        let parts = [Some(obtained), unseen, bad, set];
        vec![parts.into_iter().flatten().collect()]
    }

    fn sheets(&self) -> Vec<Sheet> {
        let users = (!self.plans.is_empty()).then(|| users(self));
        self.plans.iter().map(plan).chain(users).collect()
    }

    fn csv(&self) -> Lines<'_> {
        let fields = columns![|(plan, check)| (&VerifiedPlan, &Check);
            applied => plan.applied.as_ref()?, id => check.id, layer => check.layer, place => check.place,
            asked => check.asked, found => found(check), verdict => word(check.verdict), note => check.note,
            state => plan.state,
        ];
        lines(fields, pairs(&self.plans, |plan| &plan.checks))
    }
}

fn plan(plan: &VerifiedPlan) -> Sheet {
    let when = plan.applied.as_ref().map(|time| format!(", applied {}", moment(time)));
    let restarted = if plan.restarted { ", restarted since" } else { "" };
    let title = format!("{}{}{restarted}", plan.goals.join("; "), when.unwrap_or_default());
    let fields = columns![|check| &Check;
        "what" => check.place, "asked" => asked(check), "found" => found(check), "" => word(check.verdict),
    ];
    let mut sheet = Sheet::of(&title, fields, plan.checks.iter());
    for check in plan.checks.iter().filter(|check| !check.note.is_empty()) {
        sheet.note(format!("{}: {}", check.place, check.note));
    }
    let programs = plan.programs.as_deref().unwrap_or_default();
    let is_set_alone = plan.state == PlanState::Set;
    programs
        .iter()
        .for_each(|program| sheet.note(since(program, is_set_alone)));
    if plan.programs.as_ref().is_some_and(Vec::is_empty) {
        sheet.note("the program that this plan is for is not running");
    }
    sheet
}

/// Which huge pages does a running program have, and does it still need a restart?
fn since(program: &Program, is_set_alone: bool) -> String {
    let name = format!("{} ({}){}", program.name, program.pid, on_huge_pages(program));
    // Beside it others may still wait for their restart.
    let has_none = |backing: &Backing| {
        backing
            .iter()
            .all(|(kind, bytes)| kind == PageKind::Base || bytes.0 == 0)
    };
    let is_unused = is_set_alone && program.backing.known().is_some_and(has_none);
    match program.since {
        Some(true) if is_unused => format!(
            "{name} was started after the plan was applied, and uses none of its pages: hugewise explain {} shows why",
            program.pid
        ),
        Some(true) => format!("{name} was started after the plan was applied: no restart is needed"),
        Some(false) => {
            let restart = restart(program);
            format!("{name} has been running since before the plan was applied: {restart}")
        }
        None => format!("{name} is running; whether it was started after the change is not known"),
    }
}

/// ` has 280M of hugetlb-2M and`; nothing where that could not be read.
fn on_huge_pages(program: &Program) -> String {
    let Reading::Known(backing) = &program.backing else {
        return String::new();
    };
    let large = backing
        .iter()
        .filter(|&(kind, bytes)| kind != PageKind::Base && bytes.0 > 0);
    let large = joined(large.map(|(kind, bytes)| format!("{bytes} of {kind}")), " + ");
    match large.is_empty() {
        true => " has no huge pages and".to_owned(),
        false => format!(" has {large} and"),
    }
}

fn users(verified: &Verified) -> Sheet {
    let known = verified.users.known().map_or(&[][..], Vec::as_slice);
    let mut sheet = super::undo::users("Used by", known);
    if let Some(why) = verified.users.unread() {
        sheet.note(format!("processes: {why}"));
    }
    verified.notes.iter().for_each(|note| sheet.note(note));
    sheet
}

fn asked(check: &Check) -> &str {
    match check.verdict {
        Verdict::NotSeen => "(see the plan)",
        _ => &check.asked,
    }
}

fn found(check: &Check) -> String {
    match check.verdict {
        Verdict::NotSeen => String::new(),
        _ => check.found.to_string(),
    }
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Obtained => "in effect",
        Verdict::Short => "short",
        Verdict::Different => "different",
        Verdict::Unread => "could not be read",
        Verdict::NotSeen => "not checked",
    }
}

#[cfg(test)]
mod tests {
    use model::Bytes;

    use super::{Backing, PageKind, Program, Reading, since};

    #[test]
    fn a_program_that_fell_back_is_not_said_to_need_nothing() {
        let said = |bytes: Bytes, is_set_alone| {
            let backing: Backing = [(PageKind::HUGETLB_2M, bytes)].into_iter().collect();
            let program = Program {
                pid: 7,
                name: "mariadbd".to_owned(),
                unit: None,
                started: None,
                since: Some(true),
                backing: Reading::Known(backing),
            };
            since(&program, is_set_alone)
        };
        for is_set_alone in [false, true] {
            assert!(said(Bytes::mib(4), is_set_alone).ends_with("no restart is needed"));
        }
        let fell_back = said(Bytes(0), true);
        assert!(
            fell_back.contains("hugewise explain 7") && !fell_back.contains("no restart"),
            "{fell_back}"
        );
    }
}
