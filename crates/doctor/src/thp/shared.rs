//! Shared memory, and machines whose base page is 64 KiB.

use std::collections::BTreeMap;

use host::snapshot::Feature;
use model::Bytes;
use model::findings::Severity;
use programs::{Area, Evidence, Kind, Program};

use super::advice::WORTH;
use crate::facts::{
    advised, any_size, known, largest, looked_into, never_advised, policy, programs, running, thp, thp_file, total,
};
use crate::remedy::Need;
use crate::rule::answers::{parts, readable};
use crate::rule::{Answer, Case, Reason};

pub(super) fn of_shared_memory(evidence: &Evidence) -> Answer {
    parts([shmem_off(evidence), beside_never(evidence)])
}

/// THP that is off for private memory alone: who switched it off may not know of the other policy.
fn beside_never(evidence: &Evidence) -> Answer {
    if any_size(evidence)? {
        return Ok(Vec::new());
    }
    let policy = &known(&thp(evidence)?.shmem_enabled)?.chosen;
    let huge = evidence.snapshot.memory.get("ShmemHugePages").or_if_absent(Bytes(0))?;
    if !["always", "within_size", "force"].contains(&policy.as_str()) || huge < Bytes::gib(1) {
        return Ok(Vec::new());
    }
    let of = |program: &Program| -> Bytes {
        let areas = program.areas().unwrap_or_default().iter();
        areas.filter_map(Area::counts).map(|counts| counts.shmem_pmd).sum()
    };
    let user = largest(running(evidence).map(|program| (program, of(program))));
    let user = user.filter(|(_, bytes)| bytes.0 > 0);
    let who = user.map_or_else(String::new, |(program, bytes)| {
        format!(", {bytes} of it in {}", program.title())
    });
    let file = thp_file("shmem_enabled");
    let case = Case::sure(format!(
        "THP is `never` for private memory alone: {huge} of shared memory is backed by THP{who}, as its own policy is `{policy}`"
    ))
    .severity(Severity::Info)
    .seen(thp_file("enabled"), "", "never")
    .seen(&file, "", policy)
    .seen("/proc/meminfo", "ShmemHugePages", huge);
    let case = case
        .write_as("shmem_enabled", "never", |command| {
            format!("if no memory is to have THP: {command}")
        })
        .fix(format!(
            "to keep it: a line of /etc/tmpfiles.d, as transparent_hugepage=never leaves that policy alone: w {file} - - - - never"
        ));
    Ok(vec![case.with(user, |case, (program, _)| {
        case.fix(format!("then restart {}", program.pages.name))
    })])
}

fn shmem_off(evidence: &Evidence) -> Answer {
    let policy = &known(&thp(evidence)?.shmem_enabled)?.chosen;
    if policy != "never" && policy != "deny" {
        return Ok(Vec::new());
    }
    let shmem = evidence.snapshot.memory.get("Shmem").into_result()?;
    let huge = evidence.snapshot.memory.get("ShmemHugePages").into_result()?;
    if shmem < Bytes::gib(1) || shmem.0 < total(evidence)?.0 / 20 || huge.0 > 0 {
        return Ok(Vec::new());
    }
    let mut user = None;
    for program in programs(evidence)? {
        if user.is_none() && has_much(program)? {
            user = Some(program);
        }
    }
    if user.is_none() && advises_none(evidence).0 >= shmem.0 / 2 {
        return Ok(Vec::new());
    }
    let who = user.map_or(String::new(), |program| format!(", among them {}", program.title()));
    let case = Case::sure(format!(
        "{shmem} of shared memory is backed by base pages{who}: its THP policy is `{policy}`"
    ))
    .info_if(user.is_none())
    .seen(thp_file("shmem_enabled"), "", policy)
    .seen("/proc/meminfo", "Shmem", shmem)
    .seen("/proc/meminfo", "ShmemHugePages", huge)
    .plan("thp:shmem_enabled=advise")
    .write("shmem_enabled", "advise")
    .fix("for a tmpfs: mount -o remount,huge=within_size PATH");
    Ok(vec![case])
}

/// Shared memory on base pages of programs that advise none of it: the policy `advise` changes nothing there, and rules of their own
/// say how they get huge pages.
fn advises_none(evidence: &Evidence) -> Bytes {
    let mut resident: BTreeMap<&str, Bytes> = BTreeMap::new();
    let is_silent = |program: &&Program| matches!(program.kind.known(), Some(Some(Kind::Postgres | Kind::Oracle)));
    let segments = running(evidence)
        .filter(is_silent)
        .flat_map(|program| &program.pages.segments);
    for segment in segments.filter(|segment| segment.page.is_none()) {
        let most = resident.entry(&segment.id).or_default();
        *most = segment.resident.max(*most);
    }
    let of_guests = running(evidence).map(|program| of_shared(never_advised(program)));
    resident.into_values().chain(of_guests).sum()
}

/// What is shared and in no pool; without counts the size of a mapping has to do.
fn of_shared<'a>(areas: impl Iterator<Item = &'a Area>) -> Bytes {
    let shared = areas.filter(|area| area.is_shared_data() && !area.is_hugetlb());
    shared.map(|area| area.resident().unwrap_or(area.size())).sum()
}

/// Is it of a kind that keeps its data in shared memory and advises it, with at least 1 GiB of it?
fn has_much(program: &Program) -> Result<bool, Reason> {
    let keeps = match known(&program.kind)? {
        Some(Kind::Qemu | Kind::CloudHypervisor | Kind::Firecracker) => true,
        Some(Kind::Jvm) => program
            .jvm()?
            .is_some_and(|jvm| jvm.collector == Some(model::Collector::Z)),
        Some(Kind::Postgres | Kind::Oracle | Kind::Mysql | Kind::Redis | Kind::Mongo | Kind::Dpdk | Kind::Kubelet)
        | None => false,
    };
    if !keeps {
        return Ok(false);
    }
    let bytes = of_shared(program.areas()?.iter());
    let bytes = Bytes(bytes.0.saturating_sub(of_shared(never_advised(program)).0));
    Ok(bytes >= Bytes::gib(1))
}

pub(super) fn granule(evidence: &Evidence) -> Answer {
    let base = *known(&evidence.snapshot.kernel.base_page)?;
    let thp = thp(evidence)?;
    let pmd = *known(&thp.pmd_size)?;
    if base < Bytes::kib(64) || pmd < Bytes::mib(512) {
        return Ok(Vec::new());
    }
    let two = Bytes::mib(2);
    let small = thp.policy(two);
    if small.known().is_some_and(|policy| policy != "never") {
        return Ok(Vec::new());
    }
    let has_size = thp.size(two).is_some();
    if policy(evidence)? == "always" {
        return Ok(vec![giant(evidence, pmd, has_size)]);
    }
    // A kernel without that size has no remedy.
    if small.is_absent() {
        return Ok(Vec::new());
    }
    let Some((program, bytes)) = most_advised(evidence)? else {
        return Ok(Vec::new());
    };
    let policy = small.into_result()?;
    let name = "hugepages-2048kB/enabled";
    let case = Case::sure(format!(
        "PMD-mapped THP is {} here, too large for almost every mapping; THP of 2M is off, and {} advises {bytes}",
        pmd.exact(),
        program.title()
    ))
    .seen(thp_file("hpage_pmd_size"), "", pmd.0)
    .seen(thp_file(name), "", policy)
    .seen(program.file("smaps"), "VmFlags: hg", bytes)
    .plan("thp:mthp-2M=madvise")
    .write(name, "madvise")
    .fix_with(
        Need::Feature(Feature::SizesAtBoot),
        "to keep it: thp_anon=2M:madvise on the boot command line",
    );
    Ok(vec![case])
}

/// The program that advised most: without one `madvise` gives huge pages to none, whatever their size.
fn most_advised(evidence: &Evidence) -> Result<Option<(&Program, Bytes)>, Reason> {
    let all = looked_into(evidence)?.map(|examined| {
        let (program, _) = examined?;
        Ok((program, advised(program)?))
    });
    let (all, unknown) = readable(all);
    match (largest(all).filter(|(_, bytes)| *bytes >= WORTH), unknown) {
        (None, Some(reason)) => Err(reason),
        (found, _) => Ok(found),
    }
}

/// Under `always` the one touch of a mapping that is large enough takes half a gigabyte.
fn giant(evidence: &Evidence, pmd: Bytes, has_size: bool) -> Case {
    let huge = evidence.snapshot.memory.get("AnonHugePages");
    let held = huge
        .known()
        .map_or(String::new(), |huge| format!("; {huge} is backed so now"));
    let case = Case::sure(format!(
        "PMD-mapped THP is {} here, and the policy is `always`: a program that touches one byte of a large mapping gets {} of memory{held}",
        pmd.exact(),
        pmd.exact()
    ))
    .seen(thp_file("hpage_pmd_size"), "", pmd.0)
    .seen(thp_file("enabled"), "", "always");
    let case = case
        .seen("/proc/meminfo", "AnonHugePages", &huge)
        .madvise()
        .fix("to keep it: transparent_hugepage=madvise on the boot command line")
        .with(reserve(evidence), Case::with_reserve);
    match has_size {
        true => case.write_as("hugepages-2048kB/enabled", "always", |command| {
            format!("and THP of 2M in its place: {command}")
        }),
        false => case.fix("or a kernel with base pages of 4 KiB, whose THP has 2 MiB"),
    }
}

/// What khugepaged keeps free for pages of that size: up to a twentieth of the memory (set_recommended_min_free_kbytes()). `None` where it is less.
fn reserve(evidence: &Evidence) -> Option<(Bytes, u64)> {
    let kib: u64 = evidence
        .snapshot
        .sysctls
        .number("vm.min_free_kbytes")
        .known()
        .copied()?;
    let reserve = Bytes(kib.saturating_mul(1024));
    (reserve.0 >= total(evidence).ok()?.0 / 25).then_some((reserve, kib))
}

impl Case {
    /// With that it comes off what programs can have, and how it is lowered: a policy that changes later leaves it as it is.
    fn with_reserve(self, (reserve, kib): (Bytes, u64)) -> Self {
        self.seen("/proc/sys/vm/min_free_kbytes", "", kib)
            .fix(format!(
                "{reserve} is kept free for such pages, and programs cannot have it: sysctl -w vm.min_free_kbytes=60000 lowers it"
            ))
            .fix("khugepaged raises it again when THP is switched on; with transparent_hugepage=never at boot it does not")
    }
}
