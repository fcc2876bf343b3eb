//! Java virtual machines.

mod explicit;
mod files;
mod options;
mod pages;
mod transparent;

#[cfg(test)]
mod tests;

use super::catalogue::Topic;
use super::rule::Checks;

pub(super) use pages::pool_pages;

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
