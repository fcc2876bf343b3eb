//! Databases whose vendors recommend a THP policy.

use host::Evidence;
use host::programs::{Kind, Program};
use model::findings::Severity;

use crate::facts::{each, known, policy, programs, thp, thp_file};
use crate::rule::{Answer, Case, Checks, Reason, Rule};

pub(super) const D02: Rule = Rule {
    id: "D02",
    name: "thp-always-fork-database",
    severity: Severity::Warning,
    holds: "Redis, Valkey and KeyDB that leave THP on for themselves; quiet on `madvise` and where THP_enabled is 0",
    text: "Redis saves by fork: the child's snapshot shares memory with the parent until one of them writes. With huge pages \
           the first write to any byte copies 2 MiB (about a quarter of a millisecond) instead of 4 KiB, and memory grows by \
           as much. Latency then spikes during BGSAVE and AOF rewrites. Since 6.2 Redis switches THP off for itself \
           (disable-thp yes), and then the policy does not matter. The policy `madvise` is fine, whatever the warning of old \
           versions says.",
    link: "https://redis.io/docs/latest/operate/oss_and_stack/management/optimization/latency/",
    checks: Checks::of_machine(redis),
};

pub(super) const D03: Rule = Rule {
    id: "D03",
    name: "mongod-version-policy",
    severity: Severity::Warning,
    holds: "MongoDB on x86-64: since 8.0 its vendor recommends THP, until 7.0 it advised against it",
    text: "MongoDB reversed its advice with version 8.0, which uses another allocator. Until 7.0 THP should be off; from 8.0 \
           on it should be `always` with defrag `defer+madvise` and khugepaged/max_ptes_none 0. The version is read from the \
           package or from the official image's MONGO_VERSION.",
    link: "https://www.mongodb.com/docs/manual/administration/tcmalloc-performance/",
    checks: Checks::of_machine(mongo),
};

fn redis(evidence: &Evidence) -> Answer {
    let policy = policy(evidence)?;
    each(programs(evidence)?, |program| {
        if !program.is(Kind::Redis)? || policy != "always" || !*known(&program.pages.thp_enabled)? {
            return Ok(None);
        }
        let huge = program.thp()?;
        if huge.0 == 0 {
            return Ok(None);
        }
        let case = Case::sure(format!(
            "{} has {huge} backed by THP: each first write to a page during a save copies 2 MiB, and latency spikes",
            program.title()
        ))
        .seen(thp_file("enabled"), "", &policy)
        .seen(program.file("status"), "THP_enabled", 1)
        .seen(program.file("smaps_rollup"), "AnonHugePages", huge)
        .fix("in redis.conf: disable-thp yes (6.2 and later), then restart it")
        .plan("redis")
        .fix(format!("or for the machine: echo madvise > {}", thp_file("enabled")));
        Ok(Some(case))
    })
}

fn mongo(evidence: &Evidence) -> Answer {
    let policy = policy(evidence)?;
    let is_arm = evidence
        .snapshot
        .cpu
        .vendor
        .known()
        .is_some_and(|vendor| vendor.starts_with("0x"));
    each(programs(evidence)?, |program| {
        if !program.is(Kind::Mongo)? || is_arm {
            return Ok(None);
        }
        let Some(details) = &program.details else {
            return Ok(None);
        };
        let version = *known(&details.version)?;
        if version >= (8, 0) {
            new_mongo(evidence, program, version, &policy)
        } else {
            Ok(old_mongo(program, version, &policy))
        }
    })
}

fn old_mongo(program: &Program, version: (u32, u32), policy: &str) -> Option<Case> {
    (policy == "always").then(|| {
        Case::likely(format!(
            "MongoDB {}.{} should run without THP and gets it everywhere: memory grows and latency varies",
            version.0, version.1
        ))
        .seen(thp_file("enabled"), "", policy)
        .seen(program.file("status"), "Name", &program.pages.name)
        .plan("thp=never")
        .fix(format!("echo never > {}", thp_file("enabled")))
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
    Ok(Some(
        Case::likely(format!(
            "MongoDB {}.{} counts backed by THP and does not get them as its vendor ask",
            version.0, version.1
        ))
        .seen(thp_file("enabled"), "", policy)
        .seen(thp_file("defrag"), "", defrag)
        .seen(thp_file("khugepaged/max_ptes_none"), "", none)
        .seen(program.file("status"), "Name", &program.pages.name)
        .plan("thp=always,defrag=defer+madvise,khugepaged.max_ptes_none=0")
        .fix(format!("echo always > {}", thp_file("enabled")))
        .fix(format!("echo defer+madvise > {}", thp_file("defrag")))
        .fix(format!("echo 0 > {}", thp_file("khugepaged/max_ptes_none")))
        .fix("sysctl -w vm.overcommit_memory=1"),
    ))
}
