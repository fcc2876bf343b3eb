//! JVMs and transparent huge pages.

use host::snapshot::Feature;
use model::{Bytes, PageKind};
use programs::{Evidence, Jvm, JvmKind, Program};

use crate::explain::heap::Heap;
use crate::facts::{each_jvm, has, is_arm, known, lacks_thp, policy, thp, thp_file};
use crate::rule::{Answer, Case, Reason};

const BUGS: &str = "https://bugs.openjdk.org/browse/JDK-";

/// A kernel without THP, and a JVM that asks for it.
fn without(evidence: &Evidence) -> Answer {
    let has_pools = evidence.snapshot.pools.known().is_some_and(|pools| !pools.is_empty());
    each_jvm(evidence, is_told, |program, _| {
        let rss = *known(&program.pages.rss)?;
        let case = Case::sure(format!(
            "{} is configured to use THP, and all of its {rss} is backed by base pages: this kernel was built without THP",
            program.title()
        ))
        .seen(program.file("cmdline"), TOLD, "set")
        .seen("/proc/meminfo", "AnonHugePages", "no such line")
        .fix("a kernel with CONFIG_TRANSPARENT_HUGEPAGE")
        .fix_if(has_pools, "or a hugetlb pool: hugewise size jvm, and -XX:+UseLargePages");
        Ok(Some(case))
    })
}

const TOLD: &str = "-XX:+UseTransparentHugePages";

fn is_told(jvm: &Jvm) -> bool {
    jvm.transparent
}

/// A JVM that asks for THP under the policy `never`. ZGC's heap has a policy of its own, which some releases do not look at.
pub(super) fn under_never(who: &str, place: &str, is_zgc: bool, what: &str) -> Case {
    let new: fn(String) -> Case = if is_zgc { Case::likely } else { Case::sure };
    new(format!(
        "{who} is configured to use THP, and the THP policy is `never`{what}"
    ))
    .seen(place, TOLD, "set")
}

pub(super) fn disabled(evidence: &Evidence) -> Answer {
    if lacks_thp(evidence) {
        return without(evidence);
    }
    let policy = policy(evidence)?;
    each_jvm(evidence, is_told, |program, jvm| {
        let is_hotspot = jvm.kind == JvmKind::HotSpot;
        let is_zgc = is_hotspot && jvm.collector == Some(model::Collector::Z);
        if policy == "madvise" && is_hotspot && !is_zgc {
            return not_advised(program, jvm);
        }
        // ZGC's heap has a policy of its own; these releases look at that of anonymous memory first (JDK-8310233, JDK-8319969).
        if policy != "never" || (is_zgc && !matches!(version(program, jvm)?, 17 | 21)) {
            return Ok(None);
        }
        let on_base = heap(program).and_then(|heap| Ok(heap.on_base()?));
        let what = match on_base {
            // It got its pages under another policy.
            Ok((base, all)) if base.0 < all.0 / 10 => return Ok(None),
            Ok((base, all)) => format!(": {base} of its heap ({all}) is backed by base pages"),
            // That it gets none is known all the same.
            Err(_) => String::new(),
        };
        let case = under_never(&program.title(), &program.file("cmdline"), is_zgc, &what)
            .seen(thp_file("enabled"), "", &policy)
            .plan("thp=madvise")
            .write_as("enabled", "madvise", |command| {
                format!("{command}, then restart the JVM")
            })
            .fix_if(
                is_zgc,
                format!("or JDK 22 and later, in which shmem_enabled alone decides for ZGC: {BUGS}8319969"),
            )
            .otherwise("this kernel's policy offers no `madvise`: `always`, or a hugetlb pool");
        Ok(Some(case))
    })
}

/// A JVM that is to use THP and advises no part of its heap has switched the option off at its start.
fn not_advised(program: &Program, jvm: &Jvm) -> Result<Option<Case>, Reason> {
    // Nothing advises a heap in a file.
    if jvm.heap_at.is_some() {
        return Ok(None);
    }
    let heap = heap(program)?;
    let (base, all) = heap.on_base()?;
    let is_on_base = all >= Bytes::mib(64) && base.0 > all.0 / 10 * 9;
    if !is_on_base || heap.is_advised() != Some(false) {
        return Ok(None);
    }
    let hidden = program
        .details
        .as_ref()
        .is_some_and(|own| own.thp_files.known() == Some(&false));
    let why = match hidden {
        true => "it cannot see the files of THP below /sys, which it reads at its start",
        false => "the files of THP said `never` at its start, or it could not read them",
    };
    let case = Case::likely(format!(
        "{} is configured to use THP and advised no part of its heap ({base} of {all} is backed by base pages): the JVM switched the option off, as {why}",
        program.title()
    ))
    .seen(program.file("cmdline"), "-XX:+UseTransparentHugePages", "set")
    .seen(program.file("smaps"), "VmFlags of its heap", "no hg (MADV_HUGEPAGE)");
    let case = match hidden {
        true => case
            .seen(program.file("mounts"), "sysfs at /sys", "not there")
            .fix("let the sandbox show /sys/kernel/mm/transparent_hugepage (Flatpak: --filesystem=/sys/kernel/mm/transparent_hugepage:ro; containers: /sys read-only), then restart the JVM"),
        false => case.fix("restart the JVM; its log has the reason: `UseTransparentHugePages disabled`"),
    };
    Ok(Some(case.collapse("at once, until then", program.pid())))
}

pub(super) fn zgc(evidence: &Evidence) -> Answer {
    let shmem = &known(&thp(evidence)?.shmem_enabled)?.chosen;
    let is_arm = is_arm(evidence) == Ok(true);
    let shares = |jvm: &Jvm| jvm.kind == JvmKind::Zing || jvm.collector == Some(model::Collector::Z);
    let is_zgc = |jvm: &Jvm| jvm.transparent && shares(jvm) && jvm.heap_at.is_none();
    each_jvm(evidence, is_zgc, |program, jvm| {
        // Zing's heap is shared memory without its ZST module alone, and no longer on Arm (25.02).
        let is_zing = jvm.kind == JvmKind::Zing;
        let shared = |area: &programs::Area| area.name.starts_with("/memfd:") || area.perms.ends_with('s');
        if is_zing
            && (is_arm
                || !program
                    .areas()?
                    .iter()
                    .any(|area| shared(area) && area.size() >= ZING_HEAP))
        {
            return Ok(None);
        }
        let is_off = matches!(shmem.as_str(), "never" | "deny");
        // Zing's own rule: UseLargePages goes before UseTransparentHugePages.
        let is_overruled = is_zing && jvm.large_pages;
        if !is_off {
            return Ok(is_overruled.then(|| zing_overruled(program)));
        }
        let option = match jvm.kind {
            JvmKind::Zing => "-XX:+UseTransparentHugePages",
            _ => "-XX:+UseZGC -XX:+UseTransparentHugePages",
        };
        let case = Case::sure(format!(
            "the heap of {} is shared memory, for which THP is off here",
            program.title()
        ))
        .seen(program.file("cmdline"), option, "set")
        .seen(thp_file("shmem_enabled"), "", shmem)
        .fix_if(is_overruled, WITHOUT)
        .plan("thp:shmem_enabled=advise")
        .write_as("shmem_enabled", "advise", |command| {
            format!("{command}, then restart the JVM")
        })
        .otherwise("a newer kernel: its shmem_enabled offers `advise`");
        Ok(Some(case))
    })
}

/// Smaller shared mappings are not its heap.
const ZING_HEAP: Bytes = Bytes::mib(256);
const WITHOUT: &str = "leave -XX:+UseLargePages out: with it Zing switches THP off";

fn zing_overruled(program: &Program) -> Case {
    Case::sure(format!(
        "{} has no THP: -XX:+UseLargePages switches it off in Zing",
        program.title()
    ))
    .seen(
        program.file("cmdline"),
        "-XX:+UseLargePages -XX:+UseTransparentHugePages",
        "set",
    )
    .fix(WITHOUT)
}

/// Its heap by its own mappings.
fn heap(program: &Program) -> Result<Heap<'_>, Reason> {
    let none = || format!("{}: no heap of a JVM", program.file("maps"));
    Ok(Heap::of(program)?.ok_or_else(none)?)
}

fn version(program: &Program, jvm: &Jvm) -> Result<u32, Reason> {
    let unknown = || format!("{}: the JVM's version could not be read", program.file("maps"));
    Ok(jvm.version.ok_or_else(unknown)?)
}

pub(super) fn stacks(evidence: &Evidence) -> Answer {
    let policy = policy(evidence)?;
    let no_more = has(evidence, Feature::StacksWithoutThp)?;
    let is_hotspot = |jvm: &Jvm| jvm.kind == JvmKind::HotSpot;
    each_jvm(evidence, is_hotspot, |program, jvm| {
        if policy != "always" || no_more {
            return Ok(None);
        }
        let threads = *known(&program.threads)?;
        let version = version(program, jvm)?;
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
        .seen_backing(program, PageKind::Thp, program.thp()?)
        .madvise()
        .fix(format!("or -Xss2040k, or JDK 21 and later: {BUGS}8303215"));
        Ok(Some(case))
    })
}

pub(super) fn pretouch(evidence: &Evidence) -> Answer {
    let policy = policy(evidence)?;
    let pretouches = |jvm: &Jvm| jvm.pretouch && jvm.transparent;
    each_jvm(evidence, pretouches, |program, jvm| {
        if policy == "never" {
            return Ok(None);
        }
        let (base, all) = heap(program)?.on_base()?;
        let huge = Bytes(all.0 - base.0.min(all.0));
        let version = version(program, jvm)?;
        if !(17..=21).contains(&version) || all < Bytes::mib(128) || huge.0 >= all.0 / 2 {
            return Ok(None);
        }
        let share = 100.0 * huge.0 as f64 / all.0.max(1) as f64;
        let case = Case::likely(format!(
            "only {share:.0} % of the heap of {} is backed by huge pages: pretouching filled it with base pages",
            program.title()
        ))
        .seen(
            program.file("cmdline"),
            "-XX:+AlwaysPreTouch -XX:+UseTransparentHugePages",
            "set",
        )
        .seen(program.file("smaps"), "heap on huge pages", huge)
        .seen(program.file("smaps"), "heap", all)
        .fix("JDK 22 and later, or leave out -XX:+AlwaysPreTouch")
        .collapse("at once", program.pid());
        Ok(Some(case))
    })
}
