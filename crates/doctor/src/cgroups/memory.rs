//! Memory limits: what keeps huge pages from being charged, and what a program takes that leaves it no room.

use model::Bytes;
use programs::config::Setting;
use programs::config::given::{FileKind, Taken};
use programs::{Area, Evidence, GroupLevel, Groups, Jvm, Limit, Program};

use crate::demand::Room;
use crate::facts::{each_jvm, each_looked_into, known, programs, total};
use crate::rule::{Answer, Case, Reason};

pub(super) const WITH_LIMITS: &[FileKind] = &[FileKind::Pod, FileKind::Compose, FileKind::Unit];

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
    each_jvm(
        evidence,
        |jvm| !jvm.wants_hugetlb(),
        |program, jvm| {
            let Some(groups) = program.cgroup()? else {
                return Ok(None);
            };
            let Some((limit, level)) = least(groups)? else {
                return Ok(None);
            };
            let memory = total(evidence).map_or(limit, |total| limit.min(total));
            let Some(heap) = jvm.granted.or_else(|| jvm.heap_within(memory)) else {
                return Ok(None);
            };
            let taken = Taken::of_jvm(jvm, heap, heap_set(program, jvm, heap), limit);
            let set = Setting::new(format!("{}/memory.max", level.directory), "", limit.to_string());
            Ok(taken
                .exceeds(limit)
                .then(|| too_full(&program.title(), limit, &set, &taken)))
        },
    )
}

/// The least of the memory limits of a process, and the group that has it.
fn least(groups: &Groups) -> Result<Option<(Bytes, &GroupLevel)>, Reason> {
    let mut least: Option<(Bytes, &GroupLevel)> = None;
    for level in &groups.levels {
        if let Limit::Bytes(max) = level.memory_max.or_if_absent(Limit::Unlimited)?
            && least.is_none_or(|(before, _)| max < before.0)
        {
            least = Some((Bytes(max), level));
        }
    }
    Ok(least)
}

/// What sets the largest heap of a running JVM, as far as its options show it.
fn heap_set(program: &Program, jvm: &Jvm, heap: Bytes) -> Setting {
    let is_part = jvm.heap_max.is_none() && jvm.part_of_ram.is_some();
    let word = if is_part { "MaxRAM" } else { "-Xmx" };
    let mut arguments = program.arguments.known().into_iter().flatten();
    let own = arguments.rfind(|argument| argument.contains(word));
    let place = jvm.places.get(word).cloned();
    let place = place.unwrap_or_else(|| program.file("cmdline"));
    Setting::new(place, "", own.cloned().unwrap_or_else(|| format!("{word}: {heap}")))
}

/// Programs of files whose configured memory leaves no room below their limit. Pages of a pool do not count against it.
pub(super) fn takes_all(evidence: &Evidence) -> Answer {
    let has_pool = Room::of(evidence).is_ok_and(|room| room.filled().next().is_some());
    let all = evidence.files.confined();
    let full = all
        .iter()
        .filter(|own| own.taken.exceeds(own.limit) && !(own.taken.asks && has_pool));
    Ok(full
        .map(|own| too_full(&own.who, own.limit, &own.set, &own.taken))
        .collect())
}

fn too_full(who: &str, limit: Bytes, set: &Setting, taken: &Taken) -> Case {
    let is_jvm = taken.program == "the JVM";
    let rest = match is_jvm {
        true => "its code, metaspace, threads and buffers",
        false => "all its other memory",
    };
    let when = if taken.at_start {
        "already as it starts (AlwaysPreTouch)"
    } else {
        "once it has filled that"
    };
    let case = Case::likely(format!(
        "{} of {who} may take {} of a memory limit of {limit}, which leaves too little for {rest}: the kernel kills it {when} (OOMKilled)",
        taken.program, taken.bytes
    ))
    .seen_line(set)
    .seen_line(&taken.set);
    let (share, option) = (taken.share, taken.option());
    let most = (limit.0.saturating_mul(share) / 100) >> 20;
    let enough = (taken.bytes.0.saturating_mul(100) / share).div_ceil(1 << 20);
    let case = match taken.is_part {
        true => case.fix(format!(
            "-XX:MaxRAMPercentage={share} or less in its place, which is a heap of {most}M at most"
        )),
        false => case
            .fix(format!(
                "{option} of {most}M at most ({share} % of the limit{})",
                if is_jvm {
                    ", with direct memory, and -Xms no larger"
                } else {
                    ""
                }
            ))
            .fix(format!("or a memory limit of {enough}M or more")),
    };
    case.fix("then start it anew: a limit and the options of a program hold from its start on")
}
