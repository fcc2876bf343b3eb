//! Programs that request THP or switch it off, against the policy of the machine.

use std::collections::BTreeMap;

use host::snapshot::Feature;
use model::findings::Severity;
use model::{Bytes, Reading};
use programs::{Evidence, Kind, Program};

use crate::facts::{
    advised, any_size, count, each_looked_into, has, is_own, known, oldest_of, programs, thp, thp_file, unit,
};
use crate::remedy::Need;
use crate::rule::{Answer, Case};

/// Advice on less memory decides nothing.
pub(super) const WORTH: Bytes = Bytes::mib(16);

pub(super) fn never_but_requested(evidence: &Evidence) -> Answer {
    if any_size(evidence)? {
        return Ok(Vec::new());
    }
    let enabled = &known(&thp(evidence)?.enabled)?.chosen;
    each_looked_into(evidence, |program, _| {
        let bytes = advised(program)?;
        let (what, source, field, value) = match code_option(program) {
            _ if bytes >= WORTH => (bytes.to_string(), "smaps", "VmFlags: hg", bytes.to_string()),
            Some(option) => ("its code".to_owned(), "cmdline", "--use-largepages", option.to_owned()),
            None => return Ok(None),
        };
        let madvise = Need::thp("enabled", "madvise");
        let case = Case::sure(format!(
            "{} requested huge pages for {what} and uses base pages: the machine's THP policy is `never`",
            program.title()
        ))
        .seen(thp_file("enabled"), "", enabled)
        .seen(program.file(source), field, value)
        .plan_with(madvise, "thp=madvise")
        .write("enabled", "madvise")
        .fix("to keep it: transparent_hugepage=madvise on the boot command line")
        .fix(format!("restart {}", program.pages.name))
        .collapse("or collapse its memory", program.pid());
        Ok(Some(case))
    })
}

/// Node.js reads the policy first and advises nothing under `never` (node_large_page.cc).
fn code_option(program: &Program) -> Option<&str> {
    let option = program.argument("--use-largepages=")?;
    (program.pages.name == "node" && ["on", "silent"].contains(&option)).then_some(option)
}

pub(super) fn inherited(evidence: &Evidence) -> Answer {
    let all = programs(evidence)?;
    let off: BTreeMap<u32, &Program> = all
        .iter()
        .filter(|program| program.pages.thp_enabled.known() == Some(&false))
        .map(|program| (program.pid(), program))
        .collect();
    let mut trees: BTreeMap<u32, Vec<&Program>> = BTreeMap::new();
    // The first ancestor that has the switch stands for a tree.
    for program in off.values() {
        trees.entry(oldest_of(program, &off).pid()).or_default().push(program);
    }
    let by_us = |root: &Program| {
        let parent = root.parent.known();
        all.iter()
            .any(|program| Some(&program.pid()) == parent && is_own(program))
    };
    let cases = trees
        .iter()
        // A comparison of hugewise switches THP off for its arm of base pages.
        .filter(|(root, _)| off.get(root).is_some_and(|root| !is_own(root) && !by_us(root)))
        .filter_map(|(root, members)| tree_case(off.get(root)?, members))
        .collect::<Vec<_>>();
    if cases.is_empty() {
        for program in all {
            known(&program.pages.thp_enabled)?;
        }
    }
    Ok(cases)
}

/// Programs that switch THP off for themselves: Ceph's daemons (their option `thp`, ceph/ceph#31582), 389 Directory Server with THP_DISABLE=1.
const SWITCH_IT_OFF: &str = "ceph-osd ceph-mon ceph-mgr ceph-mds radosgw rbd-mirror ns-slapd";

/// It switches THP off for itself since 2.6, so that its forks share more of their memory (its eval.c).
const RUBY: &str = "ruby";

/// Its allocator switched THP off by prctl from April 2024 to August 2026 (oven-sh/bun#36990).
const BUN: &str = "bun";

fn tree_case(root: &Program, members: &[&Program]) -> Option<Case> {
    let on_purpose = |program: &Program| {
        // MariaDB calls prctl itself, as Redis does.
        program.kind.known() == Some(&Some(Kind::Redis))
            || program.is_mariadb()
            || SWITCH_IT_OFF.split(' ').any(|name| name == program.pages.name)
            || unit(program).is_some_and(|unit| unit.thp.is_some())
    };
    // They keep THP from their own memory on purpose, and not from that of others.
    let is_ruby = members.iter().any(|program| program.pages.name == RUBY);
    let is_meant = |program: &Program| match program.pid() == root.pid() {
        true => root.pages.name == BUN || is_ruby,
        false => program.pages.name == RUBY,
    };
    let members: Vec<&Program> = members.iter().copied().filter(|program| !is_meant(program)).collect();
    let resident = |program: &&Program| program.pages.rss.known().copied().unwrap_or_default();
    let bytes: Bytes = members.iter().map(resident).sum();
    if on_purpose(root) || bytes < WORTH {
        return None;
    }
    let largest = members.iter().max_by_key(|program| resident(program))?;
    let many = count(members.len() as u64, "process", "processes");
    let what = format!(
        "THP is switched off for {many} with {bytes}, whatever the machine's policy; the largest is {}",
        largest.title()
    );
    let case = if members.iter().any(|program| !is_of_one(root, program)) {
        Case::sure(format!(
            "{what}; inherited from {}, in which it was switched off",
            root.title()
        ))
    } else {
        Case::likely(format!("{what}; it or its launcher switched THP off")).severity(Severity::Info)
    };
    let case = case
        .seen(root.file("status"), "THP_enabled", 0)
        .seen(largest.file("status"), "THP_enabled", 0)
        .seen(root.file("status"), "PPid", &root.parent);
    Some(without_switch(root, largest, case))
}

/// Is it the root itself, or a fork that goes on with its program?
fn is_of_one(root: &Program, program: &Program) -> bool {
    program.pages.name == root.pages.name && program.arguments.known() == root.arguments.known()
}

/// How the largest process of a tree comes to be without the switch that its root has.
fn without_switch(root: &Program, largest: &Program, case: Case) -> Case {
    let (own, name) = (&root.pages.name, &largest.pages.name);
    let case = match (root.pid(), own.as_str()) {
        (1, _) => {
            return case.fix("process 1 has it from what started it: in a container its runtime, else the initrd");
        }
        _ if is_of_one(root, largest) => {
            return case.fix(format!(
                "look for prctl(PR_SET_THP_DISABLE) in {own}, in its options, and in what starts it"
            ));
        }
        (_, BUN) => case.fix(
            "bun switches it off for itself, and what it starts inherits that: MIMALLOC_ALLOW_THP=1 in bun's environment, or a bun with oven-sh/bun#36990 (August 2026)",
        ),
        (_, RUBY) => case.fix(
            "ruby switches it off for itself, and what it starts inherits that: the program that ruby starts can clear it by prctl(PR_SET_THP_DISABLE, 0)",
        ),
        _ => case.fix(format!(
            "look for prctl(PR_SET_THP_DISABLE) in {own} and in what starts it: {own} can clear the switch before it starts others"
        )),
    };
    case.fix(format!(
        "or start {name} from something else than {own}: a unit of its own, or systemd-run (--scope inherits it); then start {name} anew"
    ))
}

pub(super) fn except_advised(evidence: &Evidence) -> Answer {
    if !has(evidence, Feature::ExceptAdvised)? {
        return Ok(Vec::new());
    }
    each_looked_into(evidence, |program, details| {
        let Some(unit) = &details.unit else { return Ok(None) };
        let unit = known(unit)?;
        let Some((value, place)) = unit.thp.as_ref().filter(|(value, _)| value == "madvise") else {
            return Ok(None);
        };
        let shown = match &program.pages.thp_enabled {
            Reading::Known(on) => u32::from(*on).to_string(),
            Reading::Unread(why) => why.to_string(),
        };
        let case = by_advice_alone(Case::likely, &program.title(), &unit.name, value, place);
        Ok(Some(case.seen(program.file("status"), "THP_enabled", shown)))
    })
}

/// A program whose unit keeps THP to what it advises: a sure case, or a likely one.
pub(super) fn by_advice_alone(case: fn(String) -> Case, who: &str, service: &str, value: &str, place: &str) -> Case {
    let what = format!("{who} gets THP only for memory that it advises, which no file of /proc shows");
    case(what).seen(place, "MemoryTHP", value).fix(format!(
        "if it should get THP everywhere: systemctl edit {service}, and MemoryTHP=inherit"
    ))
}
