//! Memory that common tools do not show.

use model::Bytes;
use programs::Evidence;

use super::catalogue::Topic;
use super::facts::{known, programs};
use super::rule::{Answer, Case, Checks};

#[cfg(test)]
mod tests;

pub(super) const TOPIC: Topic = Topic {
    words: include_str!("rules.toml"),
    checks: &[Checks::of_machine("H01", not_in_rss)],
};

fn not_in_rss(evidence: &Evidence) -> Answer {
    let mut hidden = Vec::new();
    for program in programs(evidence)? {
        let bytes = program.hugetlb()?;
        if bytes >= Bytes::gib(1) {
            hidden.push((program, bytes));
        }
    }
    if hidden.is_empty() {
        // Kernels before 4.4 show it by the pools alone.
        for pool in evidence.snapshot.pools.known().into_iter().flatten() {
            known(&pool.nr)?;
            known(&pool.free)?;
        }
    }
    let Some((largest, bytes)) = hidden.into_iter().max_by_key(|(_, bytes)| *bytes) else {
        return Ok(Vec::new());
    };
    let case = Case::sure(format!(
        "tools that show RSS do not count {bytes} of hugetlb memory of {}",
        largest.title()
    ))
    .seen_hugetlb(largest, bytes)
    .seen_rss(largest)
    .fix("hugewise ps, which counts both");
    Ok(vec![case])
}
