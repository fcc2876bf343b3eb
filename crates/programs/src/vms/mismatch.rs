//! Where a machine's memory is not what it was configured for, in sentences. Pure.

use host::processes::Reason;
use model::vms::Vm;
use model::{Backing, Bytes};

/// Below this share a kind was not obtained.
const ENOUGH: f64 = 0.95;
/// Less resident memory than this says nothing yet.
const LITTLE: Bytes = Bytes::mib(16);

/// All that applies, the gravest first.
pub(super) fn all(vm: &Vm, why: &dyn Fn() -> Option<Reason>) -> Vec<String> {
    let Some(backing) = vm.backing.known() else {
        return Vec::new();
    };
    [
        not_as_asked(vm, backing),
        no_large_pages(vm, backing, why),
        mapped_small(vm, backing),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// hugetlb pages or THP were requested, and the backing is different.
fn not_as_asked(vm: &Vm, backing: &Backing) -> Option<String> {
    let configured = vm.configured.known()?;
    let kind = configured.memory.iter().find_map(|region| region.kind)?;
    let share = backing.share(kind)?;
    let all_of_it = configured.memory.iter().all(|region| region.kind == Some(kind));
    (all_of_it && share < ENOUGH).then(|| {
        format!(
            "configured for {kind}, but only {:.0} % of the {} in use is: {backing}",
            share * 100.0,
            backing.total()
        )
    })
}

/// Nothing was asked for, and base pages came.
fn no_large_pages(vm: &Vm, backing: &Backing, why: &dyn Fn() -> Option<Reason>) -> Option<String> {
    let configured = vm.configured.known()?;
    let asked = configured.memory.iter().any(|region| region.kind.is_some());
    let coverage = backing.coverage()?;
    (!asked && coverage < 0.5 && backing.total() >= LITTLE).then(|| {
        let why = why().map_or_else(|| "why could not be read".to_owned(), |reason| reason.to_string());
        format!(
            "{:.0} % of the {} in use is backed by base pages: {why}",
            (1.0 - coverage) * 100.0,
            backing.total()
        )
    })
}

/// The host has huge pages, but KVM maps them with smaller entries.
fn mapped_small(vm: &Vm, backing: &Backing) -> Option<String> {
    let mapped = vm.kvm_pages.known()?.large_share()?;
    let had = backing.coverage()?;
    (had >= ENOUGH && mapped < 0.5).then(|| {
        format!(
            "the host backs it with {backing}, but KVM maps only {:.0} % of it with huge pages: its guest uses base pages (under shadow paging), is being migrated, executes from it (nx_huge_pages), or its memory is not aligned",
            mapped * 100.0
        )
    })
}
