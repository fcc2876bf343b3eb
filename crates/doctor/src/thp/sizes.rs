//! THP sizes on the boot command line: once one is named there, every size that is not named is `never`, the PMD size too
//! (transhuge.rst, Linux 6.12 and 6.13).

use host::snapshot::hugetlb::directory_name;
use host::snapshot::{Choice, Thp, ThpSize};
use model::{Bytes, Reading};
use programs::Evidence;
use programs::config::Boot;

use crate::facts::{known, thp, thp_file};
use crate::rule::{Answer, Case};

/// The PMD size of machines with base pages of 4 KiB, for command lines without a machine.
const USUAL: Bytes = Bytes::mib(2);

type OfSize = fn(&ThpSize) -> &Reading<Choice>;
type OfAll = fn(&Thp) -> &Reading<Choice>;

/// A parameter, the policy that it sets of a size, and the general one that the size stops to follow.
const PARAMETERS: [(&str, &str, OfSize, OfAll); 2] = [
    ("thp_anon", "enabled", |size| &size.enabled, |thp| &thp.enabled),
    (
        "thp_shmem",
        "shmem_enabled",
        |size| &size.shmem_enabled,
        |thp| &thp.shmem_enabled,
    ),
];

/// On a machine whose command line could be read.
pub(super) fn dropped(evidence: &Evidence) -> Answer {
    let Reading::Known(boot) = &evidence.config.boot else {
        return Ok(Vec::new());
    };
    if boot.thp_sizes.is_empty() {
        return Ok(Vec::new());
    }
    let thp = thp(evidence)?;
    let pmd = *known(&thp.pmd_size)?;
    let mut cases = Vec::new();
    for (name, general, of_size, of_all) in PARAMETERS {
        let Some(value) = without(boot, name, pmd) else {
            continue;
        };
        // A kernel without sizes does not know the parameter.
        let own = thp.size(pmd).and_then(|size| of_size(size).known());
        let is_never = own.is_some_and(|own| own.chosen == "never");
        let wanted = &known(of_all(thp))?.chosen;
        if is_never && !matches!(wanted.as_str(), "never" | "deny") {
            let file = thp_file(&format!("{}/{general}", directory_name(pmd)));
            let case = case("/proc/cmdline", name, value, pmd)
                .seen(thp_file(general), "", wanted)
                .seen(&file, "", "never")
                .fix(format!("at once: echo inherit > {file}"));
            cases.push(case);
        }
    }
    Ok(cases)
}

pub(super) fn dropped_in_files(evidence: &Evidence) -> Vec<Case> {
    let mut cases = Vec::new();
    let lines = evidence.files.boot.iter();
    for line in lines.filter(|line| line.boot.thp.as_deref() != Some("never")) {
        for (name, ..) in PARAMETERS {
            let value = without(&line.boot, name, USUAL);
            cases.extend(value.map(|value| case(&line.place, name, value, USUAL)));
        }
    }
    cases
}

/// The last value of a parameter that sets policies of sizes, and none of this one. All that a line has add up.
fn without<'b>(boot: &'b Boot, name: &str, size: Bytes) -> Option<&'b str> {
    let own = || boot.thp_sizes.iter().filter(|sizes| sizes.name == name);
    let last = own().next_back().filter(|_| !own().any(|sizes| sizes.names(size)))?;
    Some(&last.value)
}

fn case(place: &str, name: &str, value: &str, pmd: Bytes) -> Case {
    let (what, size) = (if name == "thp_anon" { "anonymous" } else { "shared" }, pmd.exact());
    Case::sure(format!(
        "{name} does not name {size}, and sizes that it does not name are `never`: no {what} memory gets THP of {size}"
    ))
    .seen(place, name, value)
    .fix(format!(
        "on the boot command line: {name}={value} {name}={size}:inherit"
    ))
}

#[cfg(test)]
mod tests {
    use crate::machines::*;

    fn sizes(tree: host::Tree, own: &str) -> host::Tree {
        let at = "/sys/kernel/mm/transparent_hugepage";
        let tree = tree.line(
            &format!("{at}/hugepages-64kB/enabled"),
            "[always] inherit madvise never",
        );
        tree.line(&format!("{at}/hugepages-2048kB/enabled"), own)
    }

    #[test]
    fn d22_a_size_that_is_not_named_is_never() {
        let line = |words: &str| machine().line("/proc/cmdline", words);
        let never = "always inherit madvise [never]";
        let only_64k = "transparent_hugepage=always thp_anon=64K:always";
        let finding = found("D22", sizes(line(only_64k), never));
        assert!(
            finding.consequence.contains("thp_anon does not name 2M"),
            "{}",
            finding.consequence
        );
        assert_eq!(
            finding.fix[0],
            "on the boot command line: thp_anon=64K:always thp_anon=2M:inherit"
        );
        clear("D22", sizes(line("thp_anon=16K-64K:always;1M-2M:inherit"), never));
        let added = "transparent_hugepage=always thp_anon=2M:inherit thp_anon=64K:always";
        clear("D22", sizes(line(added), never));
        // The kernel refuses the whole value, and sets no size.
        for refused in ["64K:always;1M-4M:inherit", "64K:alway", "64K:always;"] {
            let line = line(&format!("transparent_hugepage=always thp_anon={refused}"));
            clear("D22", sizes(line, never));
        }
        clear("D22", sizes(line(only_64k), "always [inherit] madvise never"));
        clear("D22", sizes(line("quiet"), never));
        clear("D22", line(only_64k));
        let off = thp(sizes(line(only_64k), never), "enabled", "always madvise [never]");
        clear("D22", off);
    }
}
