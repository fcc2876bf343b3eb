//! Java virtual machines.

mod explicit;
mod files;
mod options;
mod transparent;

#[cfg(test)]
mod tests;

use host::Evidence;
use host::programs::{Jvm, Program};
use model::Bytes;
use sim::size::jvm;

use super::catalogue::Topic;
use super::facts::{each, programs};
use super::rule::{Answer, Case, Checks, Reason};

/// Checks the JVMs that are of this sort.
fn each_jvm(
    evidence: &Evidence,
    is_it: impl Fn(&Jvm) -> bool,
    look: impl Fn(&Program, &Jvm) -> Result<Option<Case>, Reason>,
) -> Answer {
    each(programs(evidence)?, |program| {
        match program.jvm()?.filter(|jvm| is_it(jvm)) {
            Some(jvm) => look(program, jvm),
            None => Ok(None),
        }
    })
}

/// Pages that such a JVM takes from the pool of its heap, as `hugewise size jvm` and `hugewise plan` count them.
pub(super) fn pool_pages(java: &Jvm, heap: Bytes, page: Bytes) -> u64 {
    let known = jvm::Jvm::known(heap, page, java.collector, java.version, java.code_cache);
    let counted = jvm::jvm(&known).ok().and_then(|sizing| sizing.whole("pages"));
    counted.unwrap_or_else(|| heap.0.div_ceil(page.0.max(1)))
}

pub(super) const TOPIC: Topic = Topic {
    words: include_str!("rules.toml"),
    checks: &[
        Checks::of_both("E01", explicit::fallback, files::OF, files::too_small),
        Checks::of_machine("E02", explicit::step_down),
        Checks::of_both("E03", options::sizes, files::OF, files::sizes),
        Checks::of_both("E05", transparent::disabled, files::OF, files::policy),
        Checks::of_machine("E06", transparent::zgc),
        Checks::of_machine("E07", transparent::stacks),
        Checks::of_machine("E08", transparent::pretouch),
        Checks::of_both("E13", options::old, files::OF, files::old_options),
    ],
};
