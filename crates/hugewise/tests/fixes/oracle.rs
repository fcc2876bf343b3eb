//! What holds of every fix, read from its printed words: files are there, values are taken, pools fit, plans are accepted.

use std::collections::BTreeMap;

use host::snapshot::Mount;
use host::{Snapshot, Source};
use hugewise::commands::diagnosis::accepts;
use model::Bytes;
use model::findings::Proof;

use crate::cases::Inputs;

/// Files that take a value and show none.
const WRITE_ONLY: [&str; 2] = ["/proc/sys/vm/drop_caches", "/proc/sys/vm/compact_memory"];

/// How a reading that failed is printed.
const CAUSES: [&str; 6] = ["absent", "denied", "garbled", "masked", "timeout", "failed"];

/// Rules about what came with a release.
const SINCE: [(&str, [u32; 3]); 4] = [
    ("C10", [6, 7, 0]),
    ("D33", [7, 2, 0]),
    ("F06", [6, 13, 0]),
    ("G08", [6, 8, 0]),
];

/// Everything that does not hold.
pub(crate) fn violations(inputs: &Inputs) -> Vec<String> {
    let source = inputs.source();
    let machine = inputs.tree.is_some().then(|| Machine {
        snapshot: Snapshot::take(&source),
        source: &source,
    });
    let doctor = inputs.diagnosis();
    let mut violations = Vec::new();
    let mut asked: BTreeMap<Bytes, u64> = BTreeMap::new();
    for finding in &doctor.diagnosis.findings {
        let mut add = |what: String| violations.push(format!("{}: {} {what}", inputs.name, finding.id));
        if finding.fix.is_empty() || finding.evidence.is_empty() {
            add(format!("has no fix or no evidence: {}", finding.consequence));
        }
        let Some(machine) = &machine else {
            if let Some(fix) = finding.fix.iter().find(|fix| fix.contains("plan --for")) {
                add(format!("plans without a machine: {fix}"));
            }
            continue;
        };
        let since = SINCE.iter().find(|(id, _)| *id == finding.id);
        if since.is_some_and(|(_, since)| machine.snapshot.kernel.numbers().is_none_or(|release| release < *since)) {
            add(format!("is not of this kernel: {}", finding.consequence));
        }
        for fix in &finding.fix {
            machine
                .wrong(fix, &mut asked)
                .into_iter()
                .for_each(|what| add(format!("{what}: `{fix}`")));
        }
        for proof in &finding.evidence {
            if !machine.was_read(proof) {
                add(format!("quotes what was not read: {proof}"));
            }
        }
    }
    if let Some(machine) = &machine
        && !machine.fits(&asked)
    {
        violations.push(format!(
            "{}: the pools of all fixes together do not fit: {asked:?}",
            inputs.name
        ));
    }
    violations
}

struct Machine<'s> {
    source: &'s Source,
    snapshot: Snapshot,
}

impl Machine<'_> {
    fn wrong(&self, fix: &str, asked: &mut BTreeMap<Bytes, u64>) -> Vec<String> {
        let mut wrong = Vec::new();
        for (value, path) in writes(fix) {
            wrong.extend(self.write(&value, &path, asked));
        }
        for (name, value) in sysctls(fix) {
            let path = format!("/proc/sys/{}", name.replace('.', "/"));
            if self.source.line(&path).known().is_none() {
                wrong.push(format!("{path} is not there"));
            }
            if name == "vm.nr_hugepages" {
                wrong.extend(self.pool(self.default(), &value, asked));
            }
        }
        wrong.extend(self.boot(fix, asked));
        if let Some(goal) = between(fix, "hugewise plan --for ", " --output") {
            if !accepts(self.source, goal) {
                wrong.push(format!("the plan of {goal} is refused"));
            }
            if let Some((size, pages)) = goal.strip_prefix("pool:").and_then(|pool| pool.split_once('=')) {
                wrong.extend(
                    size.parse::<Bytes>()
                        .ok()
                        .and_then(|size| self.pool(size, pages, asked)),
                );
            }
        }
        for (words, since) in [
            ("hugewise collapse", [6, 1, 0]),
            ("thp_anon=", [6, 12, 0]),
            ("NODE:PAGES", [5, 16, 0]),
            ("hugetlb_free_vmemmap=", [5, 14, 0]),
        ] {
            let says = fix.contains(words) && !fix.contains("does not know");
            if says && self.snapshot.kernel.numbers().is_none_or(|release| release < since) {
                wrong.push(format!("`{words}` needs {since:?}"));
            }
        }
        let collapses_to_sizes = self
            .snapshot
            .kernel
            .numbers()
            .is_some_and(|release| release >= [7, 2, 0]);
        if fix.contains("max_ptes_none=64") && collapses_to_sizes {
            wrong.push("this kernel takes 64 for 0".to_owned());
        }
        if fix.contains("transparent_hugepage=") && self.snapshot.thp.known().is_none() {
            wrong.push("this kernel has no THP".to_owned());
        }
        if let Some((from, to)) = between(fix, "cat ", "\n").and_then(|rest| rest.split_once(" > ")) {
            for path in [from, to].map(word) {
                if self.source.line(path).known().is_none() {
                    wrong.push(format!("{path} is not there"));
                }
            }
        }
        wrong
    }

    fn write(&self, value: &str, path: &str, asked: &mut BTreeMap<Bytes, u64>) -> Option<String> {
        if path.starts_with("/etc/") || WRITE_ONLY.contains(&path) {
            return None;
        }
        let Some(line) = self.source.line(path).known().cloned() else {
            return Some(format!("{path} is not there"));
        };
        if line.contains('[') {
            let offered = line
                .split_whitespace()
                .any(|word| word.trim_matches(['[', ']']) == value);
            return (!offered).then(|| format!("{path} does not take {value}"));
        }
        let size = path
            .strip_suffix("/nr_hugepages")
            .and_then(|rest| rest.rsplit_once("hugepages-"));
        let kib = size.and_then(|(_, size)| size.strip_suffix("kB")?.parse::<u64>().ok());
        match kib {
            Some(kib) if path.starts_with("/sys/kernel/mm/") => self.pool(Bytes(kib << 10), value, asked),
            Some(_) | None => None,
        }
    }

    fn boot(&self, fix: &str, asked: &mut BTreeMap<Bytes, u64>) -> Option<String> {
        let mut size = None;
        // A whole line repeats the pools that it asks for already.
        let old: Vec<&str> = between(fix, " in place of `", "`").map_or_else(Vec::new, |old| old.split(' ').collect());
        for word in fix.split(|c: char| c.is_whitespace() || "`\",();".contains(c)) {
            match word.split_once('=') {
                Some(("hugepagesz", value)) => size = value.parse::<Bytes>().ok(),
                Some(("hugepages", value))
                    if value.starts_with(|c: char| c.is_ascii_digit()) && !old.contains(&word) =>
                {
                    if value.contains(':')
                        && self
                            .snapshot
                            .kernel
                            .numbers()
                            .is_none_or(|release| release < [5, 16, 0])
                    {
                        return Some("this kernel does not know NODE:PAGES".to_owned());
                    }
                    let size = size.unwrap_or(self.default());
                    if self.is_made_at_boot(size) {
                        asked.insert(size, value.parse().unwrap_or(u64::MAX));
                        return None;
                    }
                    return self.pool(size, value, asked);
                }
                _ => {}
            }
        }
        None
    }

    /// Has this machine no pool of that size because nothing asked for one when it started? Kernels that allocate 1 GiB pages at boot alone
    /// make it then, and those before 5.8 that have another default size.
    fn is_made_at_boot(&self, size: Bytes) -> bool {
        let pools = self.snapshot.pools.known().is_some_and(|pools| !pools.is_empty());
        let has = |flag| self.snapshot.cpu.has(flag).known() == Some(&true);
        let release = self.snapshot.kernel.numbers();
        let is_made = match size {
            size if size == Bytes::gib(1) => has("pdpe1gb"),
            size if size == Bytes::mib(2) => has("pse") && release.is_some_and(|release| release < [5, 8, 0]),
            _ => false,
        };
        is_made && pools && self.snapshot.pool(size).is_none()
    }

    fn default(&self) -> Bytes {
        let size = self.snapshot.memory.get("Hugepagesize");
        size.known().copied().unwrap_or(Bytes::mib(2))
    }

    /// A pool that is to have so many pages.
    fn pool(&self, size: Bytes, pages: &str, asked: &mut BTreeMap<Bytes, u64>) -> Option<String> {
        let pages: u64 = pages.parse().ok()?;
        let Some(pool) = self.snapshot.pool(size) else {
            return Some(format!("there is no pool of {}", size.exact()));
        };
        let now = pool.nr.known().copied().unwrap_or(0);
        if pages > now {
            let most = asked.entry(size).or_default();
            *most = pages.max(*most);
        }
        None
    }

    /// Do larger pools leave a tenth of the memory? That of a container (lxcfs) is not the machine's.
    fn fits(&self, asked: &BTreeMap<Bytes, u64>) -> bool {
        let mounts = host::snapshot::mounts::all(self.source);
        let is_own = |mounts: &Vec<Mount>| mounts.iter().any(|mount| mount.target == "/proc/meminfo");
        if mounts.known().is_some_and(is_own) {
            return true;
        }
        let total = self.snapshot.memory.get("MemTotal");
        let Some(total) = total.known().filter(|_| !asked.is_empty()) else {
            return true;
        };
        let pools = self.snapshot.pools.known().into_iter().flatten();
        let bytes = pools.map(|pool| {
            let now = pool.nr.known().copied().unwrap_or(0);
            let pages = asked.get(&pool.size).copied().unwrap_or(0).max(now);
            u128::from(pages) * u128::from(pool.size.0)
        });
        bytes.sum::<u128>() * 10 <= u128::from(total.0) * 9
    }

    /// Is it of a file that is there? What is not there may be quoted as such.
    fn was_read(&self, proof: &Proof) -> bool {
        let absent = ["none", "not there", "no such line", "no "]
            .iter()
            .any(|word| proof.value.starts_with(word));
        let path = file_of(proof);
        let is_file = path.starts_with('/') && !path.contains('*');
        let failed = CAUSES
            .iter()
            .any(|cause| proof.value.starts_with(&format!("({cause}: ")));
        let is_there = || self.source.bytes(path).known().is_some() || self.source.list(path).known().is_some();
        !failed && (!is_file || absent || is_there() && self.has_field(path, &proof.field))
    }

    /// Does a file of named lines have the line that is quoted? A field of several words is what was counted there.
    fn has_field(&self, path: &str, field: &str) -> bool {
        let has_names = ["/proc/meminfo", "/proc/vmstat"].contains(&path) || path.ends_with("/status");
        let is_name = !field.is_empty() && field.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !has_names || !is_name {
            return true;
        }
        let text = self.source.text(path);
        let mut lines = text.known().map_or("", |text| text.as_str()).lines();
        lines.any(|line| line.split(|c: char| c == ':' || c.is_whitespace()).next() == Some(field))
    }
}

/// The file of a line of evidence, without the number of the line.
pub(crate) fn file_of(proof: &Proof) -> &str {
    let numbered = proof.source.rsplit_once(':');
    let numbered = numbered.filter(|(_, line)| line.parse::<u32>().is_ok());
    numbered.map_or(proof.source.as_str(), |(path, _)| path)
}

fn between<'t>(text: &'t str, before: &str, after: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(before)?;
    Some(rest.split_once(after).map_or(rest, |(inner, _)| inner))
}

fn word(text: &str) -> &str {
    let end = text
        .find(|c: char| c.is_whitespace() || ",;)'`".contains(c))
        .unwrap_or(text.len());
    &text[..end]
}

/// Every `echo VALUE > FILE`.
fn writes(fix: &str) -> Vec<(String, String)> {
    let commands = fix.split("echo ").skip(1);
    let pairs = commands.filter_map(|rest| rest.split_once(" > "));
    pairs
        .map(|(value, path)| (value.trim_matches('\'').to_owned(), word(path).to_owned()))
        .collect()
}

/// Every `NAME=VALUE` after `sysctl -w`.
fn sysctls(fix: &str) -> Vec<(String, String)> {
    let Some((_, rest)) = fix.split_once("sysctl -w ") else {
        return Vec::new();
    };
    let words = rest.split_whitespace().map_while(|word| word.split_once('='));
    words
        .map(|(name, value)| (name.to_owned(), value.trim_end_matches(',').to_owned()))
        .collect()
}
