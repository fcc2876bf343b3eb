//! Which size is the default, and what free, reserved and surplus really mean.

use host::Evidence;
use model::findings::Severity;

use super::HUGETLBPAGE;
use crate::facts::{available, boot_fix, bytes, default_size, each, known, persistent, pool_file, pools};
use crate::rule::{Answer, Case, Rule};

pub(super) const A05: Rule = Rule {
    id: "A05",
    name: "wrong-default-size",
    severity: Severity::Warning,
    holds: "every kernel with hugetlb",
    text: "A program that asks for large pages without naming a size (plain MAP_HUGETLB or SHM_HUGETLB) gets the default size \
           of the machine and nothing else. Here that pool is empty while another size has free pages that nobody uses, so such a \
           program fails or falls back. Name the size (PostgreSQL huge_page_size, -XX:LargePageSizeInBytes, MAP_HUGE_2MB), or \
           change default_hugepagesz. A pool of another size that is in use is left alone: its users know how to ask.",
    link: HUGETLBPAGE,
    look: wrong_default,
};

pub(super) const A06: Rule = Rule {
    id: "A06",
    name: "available-is-not-free",
    severity: Severity::Info,
    holds: "every kernel with hugetlb",
    text: "Free pages are promised to mappings that have not touched them yet: HugePages_Free says that there are some, and a \
           new mapping fails all the same. What is available is free minus reserved. Watch that difference instead of \
           HugePages_Free, and size the pool for reservations.",
    link: HUGETLBPAGE,
    look: all_reserved,
};

pub(super) const A07: Rule = Rule {
    id: "A07",
    name: "surplus-will-vanish",
    severity: Severity::Warning,
    holds: "every kernel with hugetlb",
    text: "Pages are in use above the pool's size, and more of them than the machine now allows. They stay as long as their \
           mapping does; after a restart of their user there are fewer pages than before. This happens when nr_hugepages or \
           nr_overcommit_hugepages is lowered under a running program.",
    link: HUGETLBPAGE,
    look: surplus,
};

pub(super) const A08: Rule = Rule {
    id: "A08",
    name: "overcommit-only",
    severity: Severity::Warning,
    holds: "every kernel with hugetlb",
    text: "The pool has no pages of its own and only grows on demand. Whether there are any then depends on how broken up memory \
           is at that moment, and each page is zeroed at the fault. That suits tools that come and go; a program that must have \
           its pages at start needs them set aside.",
    link: HUGETLBPAGE,
    look: overcommit_only,
};

fn wrong_default(evidence: &Evidence) -> Answer {
    let pools = pools(evidence)?;
    let default = default_size(evidence)?;
    let Some(own) = pools.iter().find(|pool| pool.size == default) else {
        return Ok(Vec::new());
    };
    if *known(&own.nr)? > 0 || *known(&own.overcommit)? > 0 {
        return Ok(Vec::new());
    }
    each(pools.iter().filter(|pool| pool.size != default), |other| {
        let free = available(other)?;
        if free == 0 || free < *known(&other.nr)? {
            return Ok(None);
        }
        let size = other.size.exact();
        let case = Case::likely(format!(
            "programs that name no size ask for pages of {} and find none, while {} of pages of {size} lie free",
            default.exact(),
            bytes(other, free)
        ))
        .seen("/proc/meminfo", "Hugepagesize", default)
        .seen(pool_file(own, "nr_hugepages"), "", 0)
        .seen(pool_file(other, "free_hugepages"), "", &other.free)
        .fix(format!(
            "name the size in the program: huge_page_size={size}B (PostgreSQL), -XX:LargePageSizeInBytes={size} (Java)"
        ))
        .fix(boot_fix(evidence, &format!("default_hugepagesz={size}")));
        Ok(Some(case))
    })
}

fn all_reserved(evidence: &Evidence) -> Answer {
    each(pools(evidence)?, |pool| {
        let (free, reserved) = (*known(&pool.free)?, *known(&pool.reserved)?);
        if free == 0 || reserved < free {
            return Ok(None);
        }
        let case = Case::sure(format!(
            "all {free} free pages of {} are promised: a new mapping gets none, whatever HugePages_Free says",
            pool.size.exact()
        ))
        .seen(pool_file(pool, "free_hugepages"), "", free)
        .seen(pool_file(pool, "resv_hugepages"), "", reserved)
        .fix(format!(
            "for another program add its pages: {}",
            pool_file(pool, "nr_hugepages")
        ));
        Ok(Some(case))
    })
}

fn surplus(evidence: &Evidence) -> Answer {
    each(pools(evidence)?, |pool| {
        let (surplus, allowed) = (*known(&pool.surplus)?, *known(&pool.overcommit)?);
        if surplus == 0 || surplus <= allowed {
            return Ok(None);
        }
        let case = Case::sure(format!(
            "{} in use goes for good when its user restarts: it is above the pool's size, and only {allowed} such pages are allowed now",
            bytes(pool, surplus - allowed)
        ))
        .seen(pool_file(pool, "surplus_hugepages"), "", surplus)
        .seen(pool_file(pool, "nr_overcommit_hugepages"), "", allowed)
        .fix(format!("echo {} > {}", known(&pool.nr)?, pool_file(pool, "nr_hugepages")));
        Ok(Some(case))
    })
}

fn overcommit_only(evidence: &Evidence) -> Answer {
    each(pools(evidence)?, |pool| {
        let allowed = *known(&pool.overcommit)?;
        if persistent(pool)? > 0 || allowed == 0 {
            return Ok(None);
        }
        let case = Case::likely(format!(
            "up to {} of pages of {} exist only if memory is unbroken when they are asked for",
            bytes(pool, allowed),
            pool.size.exact()
        ))
        .seen(pool_file(pool, "nr_hugepages"), "", &pool.nr)
        .seen(pool_file(pool, "nr_overcommit_hugepages"), "", allowed)
        .fix(format!(
            "set pages aside for what must have them at start: {}",
            pool_file(pool, "nr_hugepages")
        ));
        Ok(Some(case))
    })
}
