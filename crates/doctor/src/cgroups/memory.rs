//! Memory limits: what keeps huge pages from being charged, and what a program takes that leaves it no room.

use model::Bytes;
use programs::config::Setting;
use programs::config::given::{Confined, Taken};
use programs::{Area, Evidence, Groups, Jvm, Limit, Program};

use crate::demand::Room;
use crate::facts::{each_jvm, each_looked_into, known, programs, total};
use crate::rule::{Answer, Case, Reason};

/// hugetlb pages that count against memory.max, where the rest of them no longer fits.
pub(super) fn counts_hugetlb(evidence: &Evidence) -> Answer {
    known(&evidence.snapshot.cgroup.version)?;
    if !evidence.snapshot.cgroup.counts_hugetlb {
        return Ok(Vec::new());
    }
    each_looked_into(evidence, |program, _| {
        let mapped = program.areas()?.iter().filter(|area| area.is_hugetlb());
        let mapped: Bytes = mapped.map(Area::size).sum();
        let Some(groups) = program.cgroup()?.filter(|_| mapped.0 > 0) else {
            return Ok(None);
        };
        let untouched = mapped.0.saturating_sub(program.hugetlb()?.0);
        let tight = groups.levels.iter().find_map(|level| {
            let (Limit::Bytes(max), now) = (*level.memory_max.known()?, *level.memory_current.known()?) else {
                return None;
            };
            (now.0.saturating_add(untouched) > max).then_some((level, Bytes(max), now))
        });
        Ok(tight.map(|(level, max, now)| {
            Case::sure(format!(
                "{} can still touch {} of hugetlb pages, and its control group has {now} of {max}: here hugetlb pages count against memory.max",
                program.title(),
                Bytes(untouched)
            ))
            .seen("/proc/self/mounts", "cgroup2", "memory_hugetlb_accounting")
            .seen(format!("{}/memory.max", level.directory), "", max)
            .seen(format!("{}/memory.current", level.directory), "", now)
            .seen_hugetlb(program, program.hugetlb().unwrap_or_default())
            .fix(format!(
                "raise memory.max of {} by what the program maps of hugetlb pages ({mapped})",
                level.directory
            ))
            .fix("or mount the hierarchy without memory_hugetlb_accounting")
        }))
    })
}

pub(super) fn blocked(evidence: &Evidence) -> Answer {
    let memory = &evidence.snapshot.memory;
    let refused = memory.count("thp_fault_fallback_charge").into_result()?;
    let given = memory.count("thp_fault_alloc").into_result()?;
    if refused < 100 || refused.saturating_mul(100) < given {
        return Ok(Vec::new());
    }
    let mut full: Vec<(&str, Bytes, Bytes)> = Vec::new();
    for program in programs(evidence)? {
        let Ok(Some(groups)) = program.cgroup() else { continue };
        for level in &groups.levels {
            let (Some(Limit::Bytes(max)), Some(now)) = (level.memory_max.known(), level.memory_current.known()) else {
                continue;
            };
            if now.0 as f64 >= *max as f64 * 0.95 && !full.iter().any(|(directory, ..)| *directory == level.directory) {
                full.push((&level.directory, *now, Bytes(*max)));
            }
        }
    }
    let confidence = if full.is_empty() { Case::hint } else { Case::likely };
    let case = confidence(format!(
        "{refused} page faults since boot got base pages because a memory limit had no room for a huge page"
    ))
    .info_if(full.is_empty())
    .seen("/proc/vmstat", "thp_fault_fallback_charge", refused)
    .seen("/proc/vmstat", "thp_fault_alloc", given);
    let case = full.iter().take(4).fold(case, |case, (directory, now, max)| {
        case.seen(format!("{directory}/memory.current"), "", now)
            .seen(format!("{directory}/memory.max"), "", max)
    });
    Ok(vec![case.fix(
        "raise memory.max of the groups that run close to it by a tenth, or reduce the program's memory",
    )])
}

/// JVMs whose heap leaves no room below the limit of their control group.
pub(super) fn heap_fills(evidence: &Evidence) -> Answer {
    let swap = evidence.snapshot.memory.get("SwapTotal");
    each_jvm(
        evidence,
        |jvm| !jvm.wants_hugetlb(),
        |program, jvm| {
            let Some(groups) = program.cgroup()? else {
                return Ok(None);
            };
            let Some((limit, file)) = least(groups)? else {
                return Ok(None);
            };
            let memory = total(evidence).map_or(limit, |total| limit.min(total));
            let Some(heap) = jvm.granted.or_else(|| jvm.heap_within(memory)) else {
                return Ok(None);
            };
            let is_part = jvm.heap_max.is_none() && jvm.part_of_ram.is_some();
            let set = set_of(program, jvm, if is_part { "MaxRAM" } else { "-Xmx" }, heap);
            let direct = jvm
                .direct
                .map(|direct| set_of(program, jvm, "-XX:MaxDirectMemorySize", direct));
            let own = Confined {
                who: program.title(),
                limit,
                set: Setting::new(file, "", limit.to_string()),
                taken: Taken::of_jvm(jvm, heap, limit, set, direct),
                mega: if groups.path.contains("kubepods") { "Mi" } else { "M" },
                may_swap: swap.known().is_none_or(|swap| swap.0 > 0),
            };
            Ok(own.taken.exceeds(limit).then(|| too_full(&own, false)))
        },
    )
}

/// The least of the memory limits of a process, and its file.
fn least(groups: &Groups) -> Result<Option<(Bytes, &str)>, Reason> {
    let mut least: Option<(Bytes, &str)> = None;
    for (file, max) in &groups.memory {
        if let Limit::Bytes(max) = max.clone().into_result()?
            && least.is_none_or(|(before, _)| max < before.0)
        {
            least = Some((Bytes(max), file.as_str()));
        }
    }
    Ok(least)
}

/// What sets a size of a running JVM, as far as its options show it.
fn set_of(program: &Program, jvm: &Jvm, word: &str, size: Bytes) -> Setting {
    let mut arguments = program.arguments.known().into_iter().flatten();
    let own = arguments.rfind(|argument| argument.contains(word));
    let place = jvm.places.get(word).cloned();
    let place = place.unwrap_or_else(|| program.file("cmdline"));
    Setting::new(place, "", own.cloned().unwrap_or_else(|| format!("{word}: {size}")))
}

/// Programs of files whose configured memory leaves no room below their limit. Pages of a pool do not count against it.
pub(super) fn takes_all(evidence: &Evidence) -> Answer {
    let room = Room::of(evidence);
    let holds = |bytes: Bytes| {
        let is_enough = |(page, (pages, _)): (Bytes, &(u64, String))| page.0.saturating_mul(*pages) >= bytes.0;
        room.as_ref().is_ok_and(|room| room.filled().any(is_enough))
    };
    let all = evidence.files.confined();
    let full = all.iter().filter(|own| own.taken.exceeds(own.limit));
    let counted = full.filter(|own| !(own.taken.asks && holds(own.taken.bytes)));
    Ok(counted
        .map(|own| too_full(own, own.taken.asks && room.is_err()))
        .collect())
}

/// `may_be_huge`: it is not known whether a pool has pages for it.
fn too_full(own: &Confined, may_be_huge: bool) -> Case {
    let (taken, limit) = (&own.taken, own.limit);
    let rest = match taken.program {
        "the JVM" => "its code, metaspace, threads and buffers",
        _ => "all its other memory",
    };
    let when = if taken.at_start {
        "already as it starts (AlwaysPreTouch)"
    } else {
        "once it has filled that"
    };
    let unless = match (own.may_swap, may_be_huge) {
        (true, true) => ", unless it can swap or a pool of huge pages backs it",
        (true, false) => ", unless it can swap",
        (false, true) => ", unless a pool of huge pages backs it",
        (false, false) => "",
    };
    let case = Case::likely(format!(
        "{} of {} may take {} of a memory limit of {limit}, which leaves too little for {rest}: the kernel kills it {when} (OOMKilled){unless}",
        taken.program, own.who, taken.bytes
    ))
    .seen_line(&own.set)
    .seen_line(&taken.set)
    .with(taken.direct.as_ref(), |case, (set, _)| case.seen_line(set));
    let case = case.fix(smaller(taken, limit));
    let case = match taken.is_part {
        true => case,
        false => {
            let enough = (taken.bytes.0.saturating_mul(100) / taken.share).div_ceil(1 << 20);
            case.fix(format!("or a memory limit of {enough}{} or more", own.mega))
        }
    };
    case.fix("then start it anew: a limit and the options of a program hold from its start on")
}

/// What the program is to take in place of what it takes.
fn smaller(taken: &Taken, limit: Bytes) -> String {
    let (share, most) = (taken.share, taken.most(limit));
    let direct = taken.direct.as_ref().map_or(Bytes(0), |(_, direct)| *direct);
    let heap = Bytes(most.0.saturating_sub(direct.0));
    let (option, size) = (taken.option(), taken.written(heap));
    let beside = match direct.0 {
        0 => String::new(),
        _ => format!(" beside {direct} of direct memory"),
    };
    if heap.0 < limit.0 / 4 {
        let sum = most.0 >> 20;
        return format!(
            "a smaller -XX:MaxDirectMemorySize, so that the heap and direct memory come to {sum}M at most ({share} % of the limit)"
        );
    }
    if taken.is_part {
        let of_direct = direct.0.saturating_mul(100).div_ceil(limit.0.max(1));
        let percent = share.saturating_sub(of_direct);
        return format!(
            "-XX:MaxRAMPercentage={percent} or less in its place, which is a heap of {}M at most{beside}",
            heap.0 >> 20
        );
    }
    let initial = match taken.program {
        "the JVM" => ", and -Xms no larger",
        _ => "",
    };
    format!("{option} of {size} at most{beside} ({share} % of the limit{initial})")
}
