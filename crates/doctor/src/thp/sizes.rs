//! THP sizes on the boot command line: once one is named there, every size that is not named is `never`, the PMD size too
//! (transhuge.rst, Linux 6.12 and 6.13).

use host::snapshot::{Choice, Thp, ThpSize};
use model::{Bytes, Reading};
use programs::Evidence;

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
    let Reading::Known(line) = &evidence.snapshot.kernel.command_line else {
        return Ok(Vec::new());
    };
    if PARAMETERS.iter().all(|(name, ..)| last(line, name).is_none()) {
        return Ok(Vec::new());
    }
    let thp = thp(evidence)?;
    let pmd = *known(&thp.pmd_size)?;
    let mut cases = Vec::new();
    for (name, general, of_size, of_all) in PARAMETERS {
        let Some(value) = last(line, name) else { continue };
        // A kernel without sizes does not know the parameter.
        let own = thp.size(pmd).and_then(|size| of_size(size).known());
        let is_never = own.is_some_and(|own| own.chosen == "never");
        let wanted = &known(of_all(thp))?.chosen;
        if is_never && !names(value, pmd) && !matches!(wanted.as_str(), "never" | "deny") {
            let file = thp_file(&format!("hugepages-{}kB/{general}", pmd.0 >> 10));
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
    for line in &evidence.files.boot {
        let is_off = last(&line.words, "transparent_hugepage") == Some("never");
        for (name, ..) in PARAMETERS {
            let value = last(&line.words, name).filter(|value| !is_off && !names(value, USUAL));
            cases.extend(value.map(|value| case(&line.place, name, value, USUAL)));
        }
    }
    cases
}

fn case(place: &str, name: &str, value: &str, pmd: Bytes) -> Case {
    let (what, size) = (if name == "thp_anon" { "anonymous" } else { "shared" }, pmd.exact());
    Case::sure(format!(
        "{name} does not name {size}, and sizes that it does not name are `never`: no {what} memory gets THP of {size}"
    ))
    .seen(place, name, value)
    .fix(format!("on the boot command line: {name}={value};{size}:inherit"))
}

/// The value that holds: the last one.
fn last<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let mut values = line
        .split_whitespace()
        .filter_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    values.next_back()
}

/// `16K-64K:always;128K,512K:inherit`: is a size in it, whatever its policy?
fn names(value: &str, size: Bytes) -> bool {
    let sizes = value.split(';').filter_map(|part| part.split_once(':'));
    sizes.flat_map(|(sizes, _)| sizes.split(',')).any(|one| {
        let (from, to) = one.split_once('-').unwrap_or((one, one));
        let ends = from.parse::<Bytes>().ok().zip(to.parse::<Bytes>().ok());
        ends.is_some_and(|(from, to)| (from..=to).contains(&size))
    })
}

#[cfg(test)]
mod tests {
    use model::Bytes;

    use super::names;
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
            "on the boot command line: thp_anon=64K:always;2M:inherit"
        );
        clear("D22", sizes(line("thp_anon=16K-64K:always;1M-4M:inherit"), never));
        clear("D22", sizes(line(only_64k), "always [inherit] madvise never"));
        clear("D22", sizes(line("quiet"), never));
        clear("D22", line(only_64k));
        let off = thp(sizes(line(only_64k), never), "enabled", "always madvise [never]");
        clear("D22", off);
    }

    #[test]
    fn lists_and_ranges_name_sizes() {
        let two = Bytes::mib(2);
        for value in [
            "2M:always",
            "64K:always;2048K:never",
            "16K,2M:inherit",
            "64K-4M:madvise",
        ] {
            assert!(names(value, two), "{value}");
        }
        for value in ["64K:always", "2:always", "64K-1M:always", "4M:always", "", "2M"] {
            assert!(!names(value, two), "{value}");
        }
    }
}
