//! Memory that common tools do not show.

use host::Evidence;
use model::Bytes;
use model::findings::Severity;

use super::facts::programs;
use super::rule::{Answer, Case, Checks, Rule};

#[cfg(test)]
mod tests;

pub(super) const RULES: &[Rule] = &[H01];

const H01: Rule = Rule {
    id: "H01",
    name: "rss-excludes-hugetlb",
    severity: Severity::Info,
    holds: "every kernel with hugetlb",
    text: "Resident size (RSS, and PSS before Linux 4.4's Hugetlb lines) excludes hugetlb pages. The tools ps and top and most agents show a process with many of them as small. The tool free counts their memory as used without an owner. Add Private_Hugetlb and \
           Shared_Hugetlb of smaps, or HugetlbPages of /proc/PID/status; `hugewise ps` does.",
    link: "https://docs.kernel.org/filesystems/proc.html",
    checks: Checks::of_machine(not_in_rss),
};

fn not_in_rss(evidence: &Evidence) -> Answer {
    let mut hidden = Vec::new();
    for program in programs(evidence)? {
        let bytes = program.hugetlb()?;
        if bytes >= Bytes::gib(1) {
            hidden.push((program, bytes));
        }
    }
    let Some((largest, bytes)) = hidden.into_iter().max_by_key(|(_, bytes)| *bytes) else {
        return Ok(Vec::new());
    };
    let case = Case::sure(format!(
        "tools that show RSS do not count {bytes} of hugetlb memory of {}",
        largest.title()
    ))
    .seen(largest.file("status"), "HugetlbPages", bytes)
    .seen(largest.file("status"), "VmRSS", &largest.pages.rss)
    .fix("hugewise ps, which counts both");
    Ok(vec![case])
}
