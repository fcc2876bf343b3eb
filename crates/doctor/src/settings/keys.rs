//! Names of sysctl settings that Linux does not have.

use host::snapshot::hugetlb::path_in_pool;
use model::Bytes;
use programs::Evidence;
use programs::config::{Boot, Distribution, Setting, Settings};

use crate::facts::{distribution, thp_file};
use crate::kept::add_boot;
use crate::links;
use crate::remedy::Remedy;
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
    if line.name.contains("transparent") {
        return of_thp(evidence, line, Case::sure(text).seen_line(line).link(Some(links::THP)));
    }
    // A vendor's kernel may have settings of its own.
    let case = Case::likely(text).seen_line(line);
    match size_in(&line.name) {
        Some(page) => of_size(evidence, line, case.link(Some(links::HUGETLB)), page),
        None => case.fix(meant(&line.name)),
    }
}

/// The page size in a name such as `vm.nr_hugepages_1G`.
fn size_in(name: &str) -> Option<Bytes> {
    let words = name.split(|c: char| !c.is_ascii_alphanumeric());
    let mut sizes = words.filter_map(|word| word.parse::<Bytes>().ok());
    sizes.find(|size| Boot::SIZES.contains(size))
}

/// Pools of a size have boot parameters and files: sysctl settings are for the default size.
fn of_size(evidence: &Evidence, line: &Setting, case: Case, page: Bytes) -> Case {
    let size = page.exact();
    if ["overcommit", "surplus"].iter().any(|word| line.name.contains(word)) {
        let file = path_in_pool(page, None, "nr_overcommit_hugepages");
        return case.fix(format!("write it at each start to {file}"));
    }
    let pages = line.value.parse::<u64>();
    let pages = pages.map_or_else(|_| "PAGES".to_owned(), |pages| pages.to_string());
    let words = format!("hugepagesz={size} hugepages={pages}");
    let remedy = Remedy::new(add_boot(evidence, distribution_of(evidence, line), &words));
    case.remedy(remedy.with_line(evidence, &words)).otherwise(format!(
        "take the line out: the machine has no pool of {size}, or no room for it beside the other findings"
    ))
}

/// Modules of NixOS are given beside other machines too.
fn distribution_of(evidence: &Evidence, line: &Setting) -> Distribution {
    match line.place.contains(".nix:") {
        true => Distribution::NixOs,
        false => distribution(evidence),
    }
}

/// THP has files below /sys and boot parameters, and no sysctl settings.
fn of_thp(evidence: &Evidence, line: &Setting, case: Case) -> Case {
    let (_, own) = line.name.split_once("hugepage").unwrap_or_default();
    let own = own.strip_prefix('s').unwrap_or(own).trim_start_matches(['.', '_']);
    let own = own.replace('.', "/");
    let is_of_size = own.starts_with("hugepages-") && own.ends_with("enabled");
    let name = match OF_THP.contains(&own.as_str()) || own.starts_with("khugepaged/") || is_of_size {
        true => own.as_str(),
        false => "enabled",
    };
    let file = thp_file(name);
    let is_policy = matches!(line.value.as_str(), "always" | "madvise" | "never");
    let is_clear = is_policy || name != "enabled";
    let value = if is_clear { line.value.as_str() } else { "POLICY" };
    let case = case.fix_if(!is_clear, "choose a POLICY: always, madvise or never");
    let distribution = distribution_of(evidence, line);
    let by_boot = add_boot(evidence, distribution, &format!("transparent_hugepage={value}"));
    let written = format!("w {file} - - - - {value}");
    let lasting = match distribution {
        Distribution::NixOs => Some(format!(
            "systemd.tmpfiles.rules = [ \"{written}\" ]; in the module, then: nixos-rebuild switch"
        )),
        own if own.configured_in().is_some() || evidence.config.is_sysctl_unread => None,
        _ => Some(format!(
            "a line of /etc/tmpfiles.d, which writes it at each boot: {written}"
        )),
    };
    match (name, lasting) {
        ("enabled", None) => case.fix(by_boot),
        ("enabled", Some(line)) => case.fix(by_boot).fix(format!("or {line}")),
        (_, Some(line)) => case.fix(line),
        (_, None) => case.fix(format!("have {value} written to {file} at each start")),
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
    let unit = match own.ends_with("hugepages") {
        true => " (a count of pages, no memory size)",
        false => "",
    };
    format!("if {own} is meant, write that name{unit}, and apply it again")
}
