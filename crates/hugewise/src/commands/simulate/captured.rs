//! A captured host as the start of a simulation: its memory, its virtual machines, KSM and khugepaged.

use anyhow::Context;
use host::snapshot::Numbers;
use host::{Snapshot, Source};
use model::vms::Vm;
use model::{Bytes, PageKind, Warning};
use studies::host_memory::advice::{Captured, CapturedVm};
use studies::host_memory::{Host, Khugepaged, Ksm, Pages, Translation};
use translation::Mode;
use translation::patterns::Pattern;

use super::machine;
use crate::results::VmList;

const LARGE: Bytes = Bytes::mib(2);
/// Accesses simulated for each page size and working set.
const ACCESSES: u64 = 200_000;

/// The host. What the capture does not show and has a usual value is a warning.
pub(super) fn host(source: &Source, snapshot: &Snapshot, warnings: &mut Vec<Warning>) -> anyhow::Result<Captured> {
    let list = VmList::of(source).vms.into_result().context("virtual machines")?;
    let vms: Vec<CapturedVm> = list.iter().filter_map(|vm| captured(vm, warnings)).collect();
    let memory = snapshot.memory.get("MemTotal").into_result()?;
    let available = snapshot.memory.get("MemAvailable").into_result()?;
    let resident: u64 = vms.iter().map(|vm| vm.resident.0).sum();
    let used = memory.0.saturating_sub(available.0).saturating_sub(resident);
    let enabled = snapshot.thp.known().and_then(|thp| thp.enabled.known());
    let translation = translation(snapshot);
    if matches!(translation, Translation::None) {
        let text = "the CPU table does not have this CPU: time lost to translation is not simulated";
        warnings.push(Warning::new("unknown-cpu", text));
    }
    Ok(Captured {
        name: snapshot.source.clone(),
        host: Host {
            memory,
            used: Bytes(used),
            large_pages: enabled.is_some_and(|choice| choice.chosen != "never"),
            fragmented: fragmented(snapshot, warnings),
        },
        vms,
        is_merging: snapshot
            .ksm
            .known()
            .is_some_and(|ksm| ksm.get("run").known() == Some(&1)),
        merged: merged(snapshot),
        ksm: ksm(snapshot),
        khugepaged: khugepaged(snapshot),
        translation,
    })
}

/// Its memory as configured, or else as mapped. Where its resident memory could not be read, all of it is yet to be touched.
fn captured(vm: &Vm, warnings: &mut Vec<Warning>) -> Option<CapturedVm> {
    let name = vm.name.clone().unwrap_or_else(|| vm.pid.to_string());
    let memory = vm.configured.known().map_or(vm.mapped, |asked| asked.total());
    if memory.0 == 0 {
        let text = format!("{name}: the size of its memory could not be read, and it is left out");
        warnings.push(Warning::new("vm-left-out", text));
        return None;
    }
    let backing = vm.backing.known().cloned().unwrap_or_default();
    if let Some(why) = vm.backing.unread() {
        let text = format!("{name}: its resident memory could not be read ({why}), and is drawn from none to all");
        warnings.push(Warning::new("resident-unknown", text));
    }
    let pools = backing.iter().filter(|(kind, _)| kind.pool().is_some());
    let pool: u64 = pools.map(|(_, bytes)| bytes.0).sum();
    let giant = backing.of(PageKind::HUGETLB_1G).0;
    let pages = match pool > 0 && 2 * pool >= backing.total().0 {
        true if 2 * giant >= pool && memory.0.is_multiple_of(1 << 30) => Pages::Giant,
        true => Pages::Pool,
        false => Pages::Any,
    };
    Some(CapturedVm {
        name,
        memory,
        resident: backing.total(),
        pages,
    })
}

/// Of the free memory, the part in blocks that are not whole, in 65,536ths.
fn fragmented(snapshot: &Snapshot, warnings: &mut Vec<Warning>) -> u32 {
    let whole = snapshot.base_page().known().and_then(|page| {
        let order = (LARGE.0 / page.0).checked_ilog2()?;
        snapshot.memory.free_at_least(order as usize).known().copied()
    });
    match (whole, snapshot.memory.get("MemFree").known()) {
        (Some(blocks), Some(free)) if free.0 > 0 => {
            let whole = (blocks as f64 * LARGE.0 as f64 / free.0 as f64).min(1.0);
            ((1.0 - whole) * 65_536.0).round() as u32
        }
        _ => {
            let text = "/proc/buddyinfo could not be read: all free memory is taken to be in whole blocks";
            warnings.push(Warning::new("unknown-fragmentation", text));
            0
        }
    }
}

/// Merged and volatile parts of what KSM looked at, once it has seen all of it twice.
fn merged(snapshot: &Snapshot) -> Option<[f64; 2]> {
    let ksm = snapshot.ksm.known()?;
    let get = |name| ksm.get(name).known().copied();
    let [shared, sharing, unshared, volatile] = [
        get("pages_shared")?,
        get("pages_sharing")?,
        get("pages_unshared")?,
        get("pages_volatile")?,
    ]
    .map(|pages| pages as f64);
    let all = shared + sharing + unshared + volatile;
    (get("full_scans")? >= 2 && all > 0.0).then(|| [(shared + sharing) / all, volatile / all])
}

fn known(numbers: Option<&Numbers>, name: &str) -> Option<u32> {
    u32::try_from(*numbers?.get(name).known()?).ok()
}

fn ksm(snapshot: &Snapshot) -> Ksm {
    let usual = Ksm::default();
    let get = |name: &str, usual: u32| known(snapshot.ksm.known(), name).unwrap_or(usual);
    Ksm {
        pages_to_scan: get("pages_to_scan", usual.pages_to_scan).max(1),
        sleep_millisecs: get("sleep_millisecs", usual.sleep_millisecs),
        use_zero_pages: get("use_zero_pages", 0) == 1,
        max_page_sharing: get("max_page_sharing", usual.max_page_sharing).max(2),
        ..usual
    }
}

fn khugepaged(snapshot: &Snapshot) -> Khugepaged {
    let usual = Khugepaged::default();
    let numbers = snapshot.thp.known().and_then(|thp| thp.khugepaged.known());
    let get = |name: &str, usual: u32| known(numbers, name).unwrap_or(usual);
    Khugepaged {
        pages_to_scan: get("pages_to_scan", usual.pages_to_scan),
        scan_sleep_millisecs: get("scan_sleep_millisecs", usual.scan_sleep_millisecs),
        max_ptes_none: get("max_ptes_none", usual.max_ptes_none),
        max_ptes_shared: get("max_ptes_shared", usual.max_ptes_shared),
        max_ptes_swap: get("max_ptes_swap", usual.max_ptes_swap),
    }
}

/// Popular pages on the capture's CPU, with huge pages in the guests.
fn translation(snapshot: &Snapshot) -> Translation {
    match machine::named_or_at_hand(None, snapshot) {
        Err(_) => Translation::None,
        Ok(machine) => Translation::Pattern {
            machine: Box::new(machine),
            mode: Mode::Nested,
            pattern: Pattern::Zipf,
            guest_page: LARGE,
            other_cycles: 0.0,
            accesses: ACCESSES,
        },
    }
}
