//! Memory that common tools do not show.

use model::Bytes;
use programs::Evidence;

use super::facts::{known, largest, programs};
use super::rule::{Answer, Case, Checks, Reason};
use super::topics::Topic;

#[cfg(test)]
mod tests;

pub(super) const TOPIC: Topic = Topic {
    words: include_str!("rules.toml"),
    checks: &[Checks::of_machine("H01", not_in_rss)],
};

fn not_in_rss(evidence: &Evidence) -> Answer {
    let all = programs(evidence)?
        .iter()
        .map(|program| Ok((program, program.hugetlb()?)));
    let most = largest(all.collect::<Result<Vec<_>, Reason>>()?);
    let Some((largest, bytes)) = most.filter(|(_, bytes)| *bytes >= Bytes::gib(1)) else {
        // Kernels before 4.4 show it by the pools alone.
        for pool in evidence.snapshot.pools.known().into_iter().flatten() {
            known(&pool.nr)?;
            known(&pool.free)?;
        }
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
