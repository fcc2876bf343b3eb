//! Names of sysctl settings that Linux does not have.

use programs::Evidence;
use programs::config::{Distribution, Setting, Settings};

use crate::facts::{boot_fix, thp_file};
use crate::rule::Case;

/// Those of huge pages that Linux has (mm/hugetlb_sysctl.c, mm/hugetlb_vmemmap.c).
const KNOWN: [&str; 6] = [
    "vm.nr_hugepages",
    "vm.nr_hugepages_mempolicy",
    "vm.nr_overcommit_hugepages",
    "vm.hugetlb_shm_group",
    "vm.hugetlb_optimize_vmemmap",
    // By release: a check of its own.
    "vm.hugepages_treat_as_movable",
];

const OF_THP: [&str; 4] = ["enabled", "defrag", "shmem_enabled", "use_zero_page"];

/// Lines of huge pages that nothing takes for which their names are. systemd-sysctl passes over them with a message in the journal.
pub(super) fn of_no_kernel(evidence: &Evidence, sysctl: &Settings) -> Vec<Case> {
    let is_last = |line: &&Setting| sysctl.last(&line.name) == Some(*line);
    let unknown = sysctl.iter().filter(is_last).filter(|line| is_unknown(&line.name));
    unknown.map(|line| case(evidence, line)).collect()
}

/// A pattern such as `vm.nr_huge*` is none.
fn is_unknown(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let is_ours = ["hugepage", "huge_page", "hugetlb", "transparent"]
        .iter()
        .any(|word| lower.contains(word));
    let is_there = lower.starts_with("vm.") || lower.starts_with("kernel.");
    is_there && is_ours && !name.contains(['*', '?', '[']) && !KNOWN.contains(&name)
}

fn case(evidence: &Evidence, line: &Setting) -> Case {
    let text = format!(
        "`{} = {}` has no effect: Linux has no sysctl setting of that name",
        line.name, line.value
    );
    let seen = |case: Case| case.seen(&line.place, &line.name, &line.value);
    if line.name.contains("transparent") {
        return of_thp(evidence, line, seen(Case::sure(text)));
    }
    // A vendor's kernel may have settings of its own.
    seen(Case::likely(text)).fix(meant(&line.name))
}

/// THP has files below /sys and boot parameters, and no sysctl settings.
fn of_thp(evidence: &Evidence, line: &Setting, case: Case) -> Case {
    let (_, own) = line.name.split_once("hugepage").unwrap_or_default();
    let own = own.strip_prefix('s').unwrap_or(own).trim_start_matches(['.', '_']);
    let own = own.replace('.', "/");
    let name = match OF_THP.contains(&own.as_str()) || own.starts_with("khugepaged/") {
        true => own.as_str(),
        false => "enabled",
    };
    let file = thp_file(name);
    let is_policy = matches!(line.value.as_str(), "always" | "madvise" | "never");
    let value = if is_policy || name != "enabled" {
        line.value.as_str()
    } else {
        "always|madvise|never"
    };
    let by_boot = format!("transparent_hugepage={value}");
    let written = format!("w {file} - - - - {value}");
    let (by_boot, line) = match line.place.contains(".nix:") {
        true => (
            Distribution::NixOs.add_boot_parameters(&by_boot),
            format!("systemd.tmpfiles.rules = [ \"{written}\" ]; in the module, then: nixos-rebuild switch"),
        ),
        false => (
            boot_fix(evidence, &by_boot),
            format!("a line of /etc/tmpfiles.d, which writes it at each boot: {written}"),
        ),
    };
    match name {
        "enabled" => case.fix(by_boot).fix(format!("or {line}")),
        _ => case.fix(line),
    }
}

/// The setting that is nearest to the name.
fn meant(name: &str) -> String {
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    if has(&["size", "sz"]) {
        return "the size of pages is a boot parameter: default_hugepagesz=, or hugepagesz= before hugepages="
            .to_owned();
    }
    let own = match name {
        _ if has(&["vmemmap"]) => "vm.hugetlb_optimize_vmemmap",
        _ if has(&["shm", "group", "gid"]) => "vm.hugetlb_shm_group",
        _ if has(&["overcommit", "surplus"]) => "vm.nr_overcommit_hugepages",
        _ if has(&["mempolicy"]) => "vm.nr_hugepages_mempolicy",
        _ => "vm.nr_hugepages",
    };
    format!("if {own} is meant, write that name (a count of pages for the pools, no memory size), and apply it again")
}
