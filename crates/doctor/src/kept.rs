//! How settings last over the next boot, by the machine's distribution.

use std::fmt::Display;

use host::snapshot::hugetlb::path_in_pool;
use model::Bytes;
use programs::Evidence;
use programs::config::{Distribution, OnBoot, is_of_manager};

use super::facts::{default_size, distribution, file_of};

/// How to add boot parameters on this distribution.
pub(super) fn boot_fix(evidence: &Evidence, parameters: &str) -> String {
    add_boot(evidence, distribution(evidence), parameters)
}

fn on_boot(evidence: &Evidence) -> OnBoot {
    OnBoot::of(&evidence.snapshot, &evidence.config)
}

/// The same as that distribution does it, with the boot line of this machine.
pub(super) fn add_boot(evidence: &Evidence, own: Distribution, parameters: &str) -> String {
    own.add_boot_parameters(&on_boot(evidence), parameters)
}

/// Where a unit fills the pool at each boot: beside `hugetlb_cma=` the kernel makes none of its pages before.
pub(super) fn filled_from_cma(evidence: &Evidence, page: Bytes) -> Option<String> {
    let given = evidence.files.boot.iter().map(|line| &line.boot);
    let given = given.filter(|_| !evidence.has_machine);
    let mut lines = evidence.config.boot.known().into_iter().chain(given);
    let has_cma = page >= Bytes::gib(1) && lines.any(|boot| boot.cma_at_run_time().is_some());
    let has_pool = || !evidence.has_machine || evidence.snapshot.pool(page).is_some();
    (has_cma && has_pool()).then(|| pool_path(page))
}

/// The file of a pool's pages, of which only the size may be known.
pub(super) fn pool_path(page: Bytes) -> String {
    path_in_pool(page, None, "nr_hugepages")
}

/// How such a unit does it, or what the machine has in place of units.
pub(super) fn by_unit(own: Distribution, file: &str, pages: impl Display) -> String {
    match own.keep_files(&[(file.to_owned(), pages.to_string())]) {
        Some(how) => format!("with hugetlb_cma= on the boot line the pool has to be filled after the start: {how}"),
        None => format!(
            "with hugetlb_cma= on the boot line a unit has to fill the pool at each boot, before the programs: echo {pages} > {file}"
        ),
    }
}

/// How files of sysfs have these numbers of pages after the next boot too.
pub(super) fn keep_files(evidence: &Evidence, files: &[(String, u64)]) -> String {
    let texts: Vec<(String, String)> = files
        .iter()
        .map(|(file, pages)| (file.clone(), pages.to_string()))
        .collect();
    distribution(evidence).keep_files(&texts).unwrap_or_else(|| {
        let lines = files.iter().map(|(file, pages)| format!("w {file} - - - - {pages}"));
        format!(
            "in /etc/tmpfiles.d/hugepages.conf: {}",
            lines.collect::<Vec<_>>().join("; ")
        )
    })
}

/// How so many pages are requested at boot.
pub(super) fn boot_pages(evidence: &Evidence, page: Bytes, pages: impl Display) -> String {
    match filled_from_cma(evidence, page) {
        Some(file) => by_unit(distribution(evidence), &file, pages),
        None => boot_fix(evidence, &format!("hugepagesz={} hugepages={pages}", page.exact())),
    }
}

/// How to have so many pages after the next boot too.
pub(super) fn keep_pool(evidence: &Evidence, page: Bytes, pages: impl Display) -> String {
    if default_size(evidence).is_ok_and(|default| default == page) {
        return format!(
            "to keep it: {}",
            distribution(evidence).keep_setting("vm.nr_hugepages", pages)
        );
    }
    format!("to keep it: {}", boot_pages(evidence, page, pages))
}

/// How those that stand in the defaults of GRUB already come to the kernel.
pub(super) fn boot_again(evidence: &Evidence, parameters: &str) -> String {
    distribution(evidence).apply_boot_parameters(&on_boot(evidence), parameters)
}

/// The command that applies a file of settings anew.
pub(super) fn apply_again(evidence: &Evidence, place: &str) -> Option<&'static str> {
    let file = file_of(place);
    let is_of_nix = file.starts_with("/etc/") && distribution(evidence) == Distribution::NixOs;
    match file.rsplit_once('.').map_or("", |(_, ending)| ending) {
        "nix" => Some("nixos-rebuild switch, and reboot where boot.kernelParams changed"),
        _ if is_of_nix => Some("nixos-rebuild switch, with the change in the machine's configuration"),
        "conf" if file.contains("sysctl") => Some("sysctl --system"),
        "service" | "container" => Some("systemctl daemon-reload, and restart it"),
        "conf" if is_of_manager(file) => Some("systemctl daemon-reexec, and restart the services"),
        "conf" if file.contains(".service.d/") => Some("systemctl daemon-reload, and restart it"),
        _ => None,
    }
}

/// How parameters come to the boot entries, from which the kernel is started.
pub(super) fn entry_fix(evidence: &Evidence, parameters: &str) -> String {
    match distribution(evidence) {
        Distribution::Debian | Distribution::Suse | Distribution::Other => format!(
            "{} /etc/kernel/cmdline (a copy of /proc/cmdline, if it is not there), from which kernel-install writes the entries, have it write them, and reboot",
            on_boot(evidence).what(parameters)
        ),
        own => add_boot(evidence, own, parameters),
    }
}
