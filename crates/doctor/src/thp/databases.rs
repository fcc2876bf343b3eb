//! Databases whose vendors recommend a THP policy.

use host::snapshot::Feature;
use model::{Bytes, PageKind};
use programs::Evidence;
use programs::{Kind, Program};

use super::vendors::{against_always, apart_from};
use crate::facts::{each_looked_into, is_arm, known, policy, programs, thp, thp_file};
use crate::kept::boot_fix;
use crate::remedy::Need;
use crate::rule::answers::each;
use crate::rule::{Answer, Case, Reason};

pub(super) fn redis(evidence: &Evidence) -> Answer {
    let policy = policy(evidence)?;
    // Linux 5.8 (commit 3917c80280c9): the fault after a fork splits the huge page and copies one base page.
    let splits = evidence.snapshot.kernel.has(Feature::CopySplitsThp) == Some(true);
    let cost = match splits {
        true => {
            "the first write to each huge page during a save splits it and copies 4 KiB, so that commands are slower for a while"
        }
        false => {
            "the first write to each huge page during a save copies 2 MiB, memory grows by as much, and latency spikes"
        }
    };
    each(programs(evidence)?, |program| {
        if !program.is(Kind::Redis)? || policy == "madvise" {
            return Ok(None);
        }
        if policy == "never" {
            return Ok(kept(evidence, program, program.thp()?, cost).map(|case| case.info_if(splits)));
        }
        let huge = match *known(&program.pages.thp_enabled)? {
            true => program.thp()?,
            false => return Ok(None),
        };
        if huge.0 == 0 {
            return Ok(None);
        }
        let case = Case::sure(format!("{} has {huge} backed by THP: {cost}", program.title()))
            .info_if(splits)
            .seen(thp_file("enabled"), "", &policy)
            .seen(program.file("status"), "THP_enabled", 1)
            .seen_backing(program, PageKind::Thp, huge)
            .fix("in redis.conf: disable-thp yes (6.2 and later), then restart it")
            .plan("redis")
            .write_as("enabled", "madvise", |command| format!("or for the machine: {command}"))
            .with_dormant(evidence, &["madvise", "never"]);
        Ok(Some(case))
    })
}

/// Less than this may be on the huge pages of files.
const KEPT: Bytes = Bytes::mib(64);

/// Under `never`, a process that has the pages of the policy before.
fn kept(evidence: &Evidence, program: &Program, huge: Bytes, cost: &str) -> Option<Case> {
    (huge >= KEPT).then(|| {
        Case::likely(format!(
            "{} has {huge} backed by THP from before the policy was `never`: {cost}",
            program.title()
        ))
        .seen(thp_file("enabled"), "", "never")
        .seen_backing(program, PageKind::Thp, huge)
        .fix("restart it: a change of the policy leaves a process the huge pages that it has")
        .fix(format!(
            "set the policy before services start, for which /etc/rc.local is too late: {}",
            boot_fix(evidence, "transparent_hugepage=never")
        ))
    })
}

/// A product whose vendor keeps THP on and asks for `max_ptes_none` 0, where it runs (YugabyteDB's technical advisory 26440; MongoDB since 8.0, see D03).
pub(super) fn wants_no_empty_pages(evidence: &Evidence) -> Option<&'static str> {
    let mut all = evidence.programs.known()?.iter();
    all.find_map(|program| {
        let version = || program.details.as_ref()?.version.known().copied();
        match program.pages.name.as_str() {
            "yb-tserver" | "yb-master" => Some("YugabyteDB"),
            _ if program.is(Kind::Mongo) == Ok(true) && version()? >= (8, 0) => Some("MongoDB"),
            _ => None,
        }
    })
}

pub(super) fn mongo(evidence: &Evidence) -> Answer {
    let policy = policy(evidence)?;
    let is_arm = is_arm(evidence) == Ok(true);
    each_looked_into(evidence, |program, details| {
        if !program.is(Kind::Mongo)? || is_arm {
            return Ok(None);
        }
        let version = *known(&details.version)?;
        if version >= (8, 0) {
            new_mongo(evidence, program, version, &policy)
        } else if policy == "never" {
            Ok(kept(evidence, program, program.thp()?, OF_MONGO))
        } else {
            Ok(old_mongo(evidence, program, version, &policy))
        }
    })
}

/// Is it a MongoDB that is to run without THP?
pub(super) fn is_old_mongo(program: &Program) -> Result<bool, Reason> {
    match &program.details {
        Some(details) if program.is(Kind::Mongo)? => Ok(*known(&details.version)? < (8, 0)),
        _ => Ok(false),
    }
}

const OF_MONGO: &str = "memory grows and latency varies";

fn old_mongo(evidence: &Evidence, program: &Program, version: (u32, u32), policy: &str) -> Option<Case> {
    (policy == "always").then(|| {
        Case::likely(format!(
            "MongoDB {}.{} should run without THP and gets it everywhere: {OF_MONGO}",
            version.0, version.1
        ))
        .seen(thp_file("enabled"), "", policy)
        .seen(program.file("status"), "Name", &program.pages.name)
        .plan("thp=never")
        .write("enabled", "never")
        .with_dormant(evidence, &["never"])
        .fix("or MemoryTHP=disable in its unit (where Linux and systemd support it)")
    })
}

fn new_mongo(
    evidence: &Evidence,
    program: &Program,
    version: (u32, u32),
    policy: &str,
) -> Result<Option<Case>, Reason> {
    let thp = thp(evidence)?;
    let defrag = &known(&thp.defrag)?.chosen;
    let none = *known(&known(&thp.khugepaged)?.get("max_ptes_none"))?;
    if policy == "always" && defrag == "defer+madvise" && none == 0 {
        return Ok(None);
    }
    let case = Case::likely(format!(
        "MongoDB {}.{} is made for THP, and does not get it as its vendor asks",
        version.0, version.1
    ))
    .seen(thp_file("enabled"), "", policy)
    .seen(thp_file("defrag"), "", defrag)
    .seen(thp_file("khugepaged/max_ptes_none"), "", none)
    .seen(program.file("status"), "Name", &program.pages.name);
    if let Some(other) = against_always(evidence, false).filter(|_| policy != "always") {
        return Ok(Some(case.fix(apart_from(other))));
    }
    Ok(Some(
        case.plan("thp=always,defrag=defer+madvise,khugepaged.max_ptes_none=0")
            .write("enabled", "always")
            .write("defrag", "defer+madvise")
            .write("khugepaged/max_ptes_none", "0")
            .fix_with(Need::Sysctl("vm.overcommit_memory"), "sysctl -w vm.overcommit_memory=1")
            .otherwise("its vendor's settings need a newer kernel"),
    ))
}
