//! All topics, and their rules.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::rule::{Checks, Rule};
use crate::{cgroups, databases, jvm, limits, logs, numa, pools, settings, thp, tools, vms};

const TOPICS: [Topic; 11] = [
    pools::TOPIC,
    numa::TOPIC,
    limits::TOPIC,
    cgroups::TOPIC,
    thp::TOPIC,
    jvm::TOPIC,
    databases::TOPIC,
    vms::TOPIC,
    settings::TOPIC,
    tools::TOPIC,
    logs::TOPIC,
];

/// A topic of rules: the words about each with what it checks.
pub(super) struct Topic {
    /// What there is to say about each of them: a table of TOML by id.
    pub(super) words: &'static str,
    pub(super) checks: &'static [Checks],
}

impl Topic {
    /// Its rules by id.
    ///
    /// # Panics
    /// If its table is not one of rules, or a rule has words or a check only: every test of a rule would show it.
    fn rules(&self) -> BTreeMap<&'static str, Rule> {
        let mut rules: BTreeMap<&str, Rule> = toml::from_str(self.words).expect("a table of rules");
        assert_eq!(rules.len(), self.checks.len(), "each rule has its words and its check");
        for &checks in self.checks {
            let rule = rules.get_mut(checks.id).expect(checks.id);
            (rule.id, rule.checks) = (checks.id, checks);
        }
        rules
    }
}

/// Every rule, in order of id, whatever its topic: results are in this order.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    static BY_ID: LazyLock<BTreeMap<&str, Rule>> = LazyLock::new(|| TOPICS.iter().flat_map(Topic::rules).collect());
    BY_ID.values()
}
