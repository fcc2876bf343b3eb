//! Files in memory: the option `huge=` of a tmpfs, what overrides it, and what it costs.

use host::snapshot::Mount;
use model::Bytes;
use programs::config::Setting;
use programs::{Area, Evidence, Program};

use crate::facts::{container, known, lacks_thp, largest, programs, thp, thp_file};
use crate::rule::answers::each;
use crate::rule::{Answer, Case, Reason};

/// Smaller files of one program gain little.
const WORTH: Bytes = Bytes::gib(1);

pub(super) fn option(evidence: &Evidence) -> Answer {
    let mounts = known(&evidence.config.tmpfs)?;
    if lacks_thp(evidence) {
        let lines = known(&evidence.config.huge_tmpfs)?;
        return Ok(lines.iter().map(|line| refused(line, mounts)).collect());
    }
    let shmem = &known(&thp(evidence)?.shmem_enabled)?.chosen;
    let mut cases = match shmem.as_str() {
        "deny" => overridden(mounts).into_iter().collect(),
        _ => wasteful(evidence, mounts),
    };
    // These two hold for every mount, whatever its option says.
    if shmem == "force" || shmem == "deny" {
        return Ok(cases);
    }
    let all = programs(evidence);
    let of_programs = all.and_then(|all| each(all, |program| without_option(program, mounts, shmem)));
    match of_programs {
        Ok(more) => cases.extend(more),
        Err(reason) if cases.is_empty() => return Err(reason),
        Err(reason) => {
            let elsewhere = Some(cases);
            return Err(Reason { elsewhere, ..reason });
        }
    }
    Ok(cases)
}

/// A kernel without THP takes no other value than `never` (shmem_parse_one()).
fn refused(line: &Setting, mounts: &[Mount]) -> Case {
    // systemd mounts /dev/shm and /run before it reads the table, and the line would change that mount.
    let (state, command) = match mounts.iter().any(|mount| mount.target == line.name) {
        true => ("stays mounted without its option", "mount -o remount"),
        false => ("is not mounted", "mount"),
    };
    Case::sure(format!(
        "{} {state}: this kernel was built without THP and refuses huge={} of a tmpfs",
        line.name, line.value
    ))
    .seen(&line.place, format!("{}: huge", line.name), &line.value)
    .seen("/proc/meminfo", "AnonHugePages", "no such line")
    .fix(format!(
        "take huge={} out of {}, then: {command} {}",
        line.value, line.place, line.name
    ))
    .fix("or start a kernel with CONFIG_TRANSPARENT_HUGEPAGE (kernels with PREEMPT_RT have none)")
}

fn huge(mount: &Mount) -> &str {
    mount.option("huge").unwrap_or("never")
}

/// Mounts that ask for huge pages in vain.
fn overridden(mounts: &[Mount]) -> Option<Case> {
    let asks: Vec<&Mount> = mounts.iter().filter(|mount| huge(mount) != "never").collect();
    let first = asks.first()?;
    let case = Case::sure(format!(
        "huge= of {} tmpfs, such as {}, has no effect: shmem_enabled is `deny`, which holds for all",
        asks.len(),
        first.target
    ));
    let case = asks.iter().fold(case, |case, mount| {
        case.seen("/proc/self/mounts", format!("{}: huge", mount.target), huge(mount))
    });
    Some(
        case.seen(thp_file("shmem_enabled"), "", "deny")
            .plan("thp:shmem_enabled=never")
            .write_as("shmem_enabled", "never", |command| {
                format!("{command}: then each mount's own option decides")
            }),
    )
}

/// Small files of the system, each of which takes a huge page.
fn wasteful(evidence: &Evidence, mounts: &[Mount]) -> Vec<Case> {
    let Some(page) = thp(evidence).ok().and_then(|thp| thp.pmd_size.known()) else {
        return Vec::new();
    };
    let is_system = |target: &str| target == "/dev" || target == "/run" || target.starts_with("/run/");
    // One that has no room for a huge page takes none.
    let has_room = |mount: &Mount| mount.size().is_none_or(|size| size >= *page);
    let small: Vec<&Mount> = mounts
        .iter()
        .filter(|mount| huge(mount) == "always" && is_system(&mount.target) && has_room(mount))
        .collect();
    let Some(first) = small.first() else {
        return Vec::new();
    };
    let targets: Vec<&str> = small.iter().map(|mount| mount.target.as_str()).collect();
    let fills = |mount: &Mount| Some(mount.size()?.0 / page.0.max(1));
    let least = small
        .iter()
        .filter_map(|mount| Some((fills(mount)?, mount)))
        .min_by_key(|(files, _)| *files);
    let full = least.map_or_else(String::new, |(files, mount)| {
        format!("; {files} small files fill {}", mount.target)
    });
    let huge_pages = evidence.snapshot.memory.get("ShmemHugePages");
    let case = Case::likely(format!(
        "each file below {} takes {} of memory at least, as huge=always backs it by a huge page{full}",
        targets.join(" and "),
        page.exact()
    ));
    let case = small.iter().fold(case, |case, mount| {
        case.seen("/proc/self/mounts", format!("{}: huge", mount.target), "always")
    });
    let remounts: Vec<String> = targets
        .iter()
        .map(|target| format!("mount -o remount,huge=within_size {target}"))
        .collect();
    vec![
        case.seen("/proc/meminfo", "ShmemHugePages", &huge_pages)
            .fix(remounts.join(" && "))
            .fix(format!(
                "and the same option where {} is mounted (the initramfs, /etc/fstab): a file takes a huge page where it fills one",
                first.target
            )),
    ]
}

/// A program with much in files of a tmpfs that is mounted without the option, where THP is on for other shared memory, or the
/// program is to use it.
fn without_option(program: &Program, mounts: &[Mount], shmem: &str) -> Result<Option<Case>, Reason> {
    let jvm = program.jvm().ok().flatten();
    let is_told = jvm.is_some_and(|jvm| jvm.transparent && jvm.heap_at.is_some());
    if shmem == "never" && !is_told {
        return Ok(None);
    }
    let mut filled = Vec::new();
    for mount in mounts
        .iter()
        .filter(|mount| mount.kind == "tmpfs" && huge(mount) == "never")
    {
        let is_inside = |area: &&Area| {
            let file = area.name.strip_prefix(mount.target.trim_end_matches('/'));
            area.is_shared_data() && !area.is_hugetlb() && file.is_some_and(|file| file.starts_with('/'))
        };
        let own = program.areas()?.iter().filter(is_inside);
        filled.push((mount, own.map(|area| area.base().unwrap_or(area.size())).sum()));
    }
    let largest = largest(filled).filter(|(_, base)| *base >= WORTH);
    // The tmpfs of a container is its own.
    let Some((mount, base)) = largest.filter(|_| container(program).is_none()) else {
        return Ok(None);
    };
    let target = &mount.target;
    let case = Case::likely(format!(
        "{} has {base} on base pages in files of {target}: that tmpfs is mounted without huge=, and shmem_enabled (`{shmem}`) is for shared memory without a file",
        program.title()
    ))
    .seen(program.file("smaps"), format!("base pages in {target}"), base)
    .seen("/proc/self/mounts", format!("{target}: huge"), mount.option("huge").unwrap_or("not set"))
    .seen(thp_file("shmem_enabled"), "", shmem);
    Ok(Some(
        case.fix(format!(
            "mount -o remount,huge=within_size {target}, then restart it: its files are written anew"
        ))
        .fix(format!(
            "to keep it: a line in /etc/fstab: tmpfs {target} tmpfs huge=within_size 0 0"
        )),
    ))
}
