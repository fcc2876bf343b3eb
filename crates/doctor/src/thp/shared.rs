//! Shared memory, and machines whose base page is 64 KiB.

use model::{Bytes, Reading};
use programs::Evidence;
use programs::{Kind, Program};

use crate::facts::{known, programs, thp, thp_file, total};
use crate::rule::{Answer, Case, Reason};

pub(super) fn shmem_off(evidence: &Evidence) -> Answer {
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
    let who = user.map_or(String::new(), |program| format!(", among them {}", program.title()));
    let case = Case::sure(format!(
        "{shmem} of shared memory is backed by base pages{who}: its THP policy is `{policy}`"
    ))
    .info_if(user.is_none())
    .seen(thp_file("shmem_enabled"), "", policy)
    .seen("/proc/meminfo", "Shmem", shmem)
    .seen("/proc/meminfo", "ShmemHugePages", huge)
    .plan("thp:shmem_enabled=advise")
    .fix(format!("echo advise > {}", thp_file("shmem_enabled")))
    .fix("for a tmpfs: mount -o remount,huge=within_size PATH");
    Ok(vec![case])
}

/// Is it of a kind that keeps its data in shared memory, with at least 1 GiB of it?
fn has_much(program: &Program) -> Result<bool, Reason> {
    let keeps = match known(&program.kind)? {
        Some(Kind::Postgres | Kind::Qemu | Kind::CloudHypervisor | Kind::Firecracker) => true,
        Some(Kind::Jvm) => program
            .jvm()?
            .is_some_and(|jvm| jvm.collector == Some(model::Collector::Z)),
        _ => false,
    };
    if !keeps {
        return Ok(false);
    }
    let shared = program
        .areas()?
        .iter()
        .filter(|area| area.is_shared_data() && !area.is_hugetlb());
    // Without bytes the size of the mapping has to do.
    let bytes: Bytes = shared.map(|area| area.resident().unwrap_or(area.size())).sum();
    Ok(bytes >= Bytes::gib(1))
}

pub(super) fn granule(evidence: &Evidence) -> Answer {
    let base = *known(&evidence.snapshot.kernel.base_page)?;
    let thp = thp(evidence)?;
    let pmd = *known(&thp.pmd_size)?;
    let two = Bytes::mib(2);
    if base < Bytes::kib(64) || pmd < Bytes::mib(512) {
        return Ok(Vec::new());
    }
    let policy = match thp.policy(two) {
        Reading::Known(policy) if policy != "never" => return Ok(Vec::new()),
        other => other.into_result()?,
    };
    let file = thp_file("hugepages-2048kB/enabled");
    let case = Case::sure(format!(
        "PMD-mapped THP is {} here, too large for almost every mapping; THP of 2M is off",
        pmd.exact()
    ))
    .seen(thp_file("hpage_pmd_size"), "", pmd.0)
    .seen(&file, "", policy)
    .plan("thp:mthp-2M=madvise")
    .fix(format!("echo madvise > {file}"))
    .fix("to keep it: thp_anon=2M:madvise on the boot command line");
    Ok(vec![case])
}
