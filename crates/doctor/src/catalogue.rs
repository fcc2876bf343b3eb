//! The catalogue of rules: those of all topics.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::rule::Rule;
use crate::topic::Topic;
use crate::{cgroups, databases, jvm, limits, numa, pools, settings, thp, tools, vms};

const TOPICS: [Topic; 10] = [
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
];

/// Every rule, in order of id, whatever its topic: results are in this order.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    static BY_ID: LazyLock<BTreeMap<&str, Rule>> = LazyLock::new(|| TOPICS.iter().flat_map(Topic::rules).collect());
    BY_ID.values()
}
