//! Virtual machines, from inside, from the host, and in their files.

mod definitions;
mod guests;
mod nova;
mod sizes;
mod vmware;

#[cfg(test)]
mod tests;

use programs::config::given::FileKind;

use super::rule::Checks;
use super::topics::Topic;

pub(super) const TOPIC: Topic = Topic {
    words: include_str!("rules.toml"),
    checks: &[
        Checks::of_machine("G01", guests::guest_without),
        Checks::of_both("G02", guests::on_base, definitions::OF, definitions::on_base),
        Checks::of_both("G03", guests::no_reserve, definitions::OF, definitions::no_reserve),
        Checks::of_files("G04", definitions::WITH_NOVA, definitions::no_room),
        Checks::of_files("G05", definitions::OF, sizes::no_multiple),
        Checks::of_files("G06", &[FileKind::Vmware], vmware::one_g),
        Checks::of_files("G07", &[FileKind::Vmware], vmware::disabled),
        Checks::of_machine("G08", guests::unseen),
    ],
};
