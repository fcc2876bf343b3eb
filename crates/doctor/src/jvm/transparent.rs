//! JVMs and transparent huge pages.

use host::Evidence;
use host::programs::JvmKind;
use model::Bytes;
use model::findings::Severity;

use crate::facts::{each, kernel, known, policy, programs, thp, thp_file};
use crate::rule::{Answer, Case, Checks, Rule};

const JAVA: &str = "https://docs.oracle.com/en/java/javase/21/docs/specs/man/java.html";
const BUGS: &str = "https://bugs.openjdk.org/browse/JDK-";

pub(super) const E05: Rule = Rule {
    id: "E05",
    name: "jvm-thp-disabled-by-os",
    severity: Severity::Warning,
    holds: "HotSpot of every version",
    text: "The JVM is configured to use THP (-XX:+UseTransparentHugePages) and the machine's policy is `never`. The JVM reads the \
           policy once, at start, prints a warning and goes on without THP; changing the policy later does not help. The policy \
           `madvise` serves exactly such JVMs.",
    link: JAVA,
    checks: Checks::of_both(disabled, super::files::OF, super::files::policy),
};

pub(super) const E06: Rule = Rule {
    id: "E06",
    name: "zgc-shmem",
    severity: Severity::Warning,
    holds: "ZGC of every version: its heap is shared memory",
    text: "The JVM runs ZGC with -XX:+UseTransparentHugePages. ZGC keeps its heap in a memfd, so the policy for shared memory \
           decides, not the one for anonymous memory, and that is `never` or `deny` here. The JVM warns once (`Shared memory \
           transparent huge pages are not enabled in the OS`). Set shmem_enabled to `advise`.",
    link: "https://wiki.openjdk.org/display/zgc/Main",
    checks: Checks::of_machine(zgc),
};

pub(super) const E07: Rule = Rule {
    id: "E07",
    name: "jvm-stack-thp-bloat",
    severity: Severity::Warning,
    holds: "JDK before 21 (JDK-8303215, JDK-8312182), Linux before 6.8, which takes MAP_STACK for VM_NOHUGEPAGE (c4608d1bf7c6; the later stable releases of 6.7 do too)",
    text: "With the policy `always`, huge pages back thread stacks that are adjacent or whose size is a multiple of a huge page. \
           Each thread then takes up to 2 MiB instead of some 100 KiB. JDK 21 and later keep stacks unaligned, and so do \
           backports; Linux 6.8 and later do not use huge pages for stacks that are mapped with MAP_STACK, as glibc's are. Use \
           `madvise`, or -Xss2040k.",
    link: "https://bugs.openjdk.org/browse/JDK-8303215",
    checks: Checks::of_machine(stacks),
};

pub(super) const E08: Rule = Rule {
    id: "E08",
    name: "pretouch-fragments",
    severity: Severity::Warning,
    holds: "JDK 17 to 21 without JDK-8315923",
    text: "The JVM runs with -XX:+AlwaysPreTouch and -XX:+UseTransparentHugePages, and most of its heap is backed by base pages. \
           Several threads touch the heap page by page before it can be backed by huge pages, which leaves about a tenth with \
           huge pages. JDK 22 and later populate the heap at once (MADV_POPULATE_WRITE). Upgrade, or drop one of the two options.",
    link: "https://bugs.openjdk.org/browse/JDK-8315923",
    checks: Checks::of_machine(pretouch),
};

fn disabled(evidence: &Evidence) -> Answer {
    let policy = policy(evidence)?;
    each(programs(evidence)?, |program| {
        let Some(jvm) = program.jvm()?.filter(|jvm| jvm.transparent) else {
            return Ok(None);
        };
        if policy != "never" || (jvm.collector == Some(model::Collector::Z) && jvm.kind == JvmKind::HotSpot) {
            return Ok(None);
        }
        let rss = *known(&program.pages.rss)?;
        let case = Case::sure(format!(
            "{} is configured to use THP, and all of its {rss} is backed by base pages: the THP policy is `never`",
            program.title()
        ))
        .seen(program.file("cmdline"), "-XX:+UseTransparentHugePages", "set")
        .seen(thp_file("enabled"), "", &policy)
        .plan("thp=madvise")
        .fix(format!("echo madvise > {}, then restart the JVM", thp_file("enabled")));
        Ok(Some(case))
    })
}

fn zgc(evidence: &Evidence) -> Answer {
    let shmem = &known(&thp(evidence)?.shmem_enabled)?.chosen;
    each(programs(evidence)?, |program| {
        let zgc = program
            .jvm()?
            .is_some_and(|jvm| jvm.transparent && jvm.collector == Some(model::Collector::Z));
        if !zgc || !matches!(shmem.as_str(), "never" | "deny") {
            return Ok(None);
        }
        let case = Case::sure(format!(
            "the heap of {} is shared memory, for which THP is off here",
            program.title()
        ))
        .seen(
            program.file("cmdline"),
            "-XX:+UseZGC -XX:+UseTransparentHugePages",
            "set",
        )
        .seen(thp_file("shmem_enabled"), "", shmem)
        .plan("thp:shmem_enabled=advise")
        .fix(format!(
            "echo advise > {}, then restart the JVM",
            thp_file("shmem_enabled")
        ));
        Ok(Some(case))
    })
}

fn stacks(evidence: &Evidence) -> Answer {
    let policy = policy(evidence)?;
    let kernel = kernel(evidence)?;
    each(programs(evidence)?, |program| {
        let Some(jvm) = program.jvm()?.filter(|jvm| jvm.kind == JvmKind::HotSpot) else {
            return Ok(None);
        };
        if policy != "always" || kernel >= (6, 8) {
            return Ok(None);
        }
        let threads = *known(&program.threads)?;
        let version = jvm
            .version
            .ok_or_else(|| format!("{}: the JVM's version could not be read", program.file("maps")))?;
        if threads < 50 || version >= 21 {
            return Ok(None);
        }
        let most = Bytes(threads.saturating_mul(Bytes::mib(2).0));
        let case = Case::likely(format!(
            "the {threads} thread stacks of {} (JDK {version}) can grow to {most} because huge pages back them",
            program.title()
        ))
        .seen(thp_file("enabled"), "", &policy)
        .seen(program.file("status"), "Threads", threads)
        .seen(program.file("smaps_rollup"), "AnonHugePages", program.thp()?)
        .plan("thp=madvise")
        .fix(format!("echo madvise > {}", thp_file("enabled")))
        .fix(format!("or -Xss2040k, or JDK 21 and later: {BUGS}8303215"));
        Ok(Some(case))
    })
}

fn pretouch(evidence: &Evidence) -> Answer {
    let policy = policy(evidence)?;
    each(programs(evidence)?, |program| {
        let Some(jvm) = program.jvm()?.filter(|jvm| jvm.pretouch && jvm.transparent) else {
            return Ok(None);
        };
        if policy == "never" {
            return Ok(None);
        }
        let (huge, rss) = (program.thp()?, *known(&program.pages.rss)?);
        let version = jvm
            .version
            .ok_or_else(|| format!("{}: the JVM's version could not be read", program.file("maps")))?;
        if !(17..=21).contains(&version) || rss < Bytes::mib(128) || huge.0 >= rss.0 / 2 {
            return Ok(None);
        }
        let share = 100.0 * huge.0 as f64 / rss.0.max(1) as f64;
        let case = Case::likely(format!(
            "only {share:.0} % of {} is backed by huge pages: pretouching filled the heap with base pages",
            program.title()
        ))
        .seen(
            program.file("cmdline"),
            "-XX:+AlwaysPreTouch -XX:+UseTransparentHugePages",
            "set",
        )
        .seen(program.file("smaps_rollup"), "AnonHugePages", huge)
        .seen(program.file("status"), "VmRSS", rss)
        .fix("JDK 22 and later, or leave out -XX:+AlwaysPreTouch")
        .fix(format!("at once: hugewise collapse {}", program.pid()));
        Ok(Some(case))
    })
}
