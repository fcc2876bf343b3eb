//! Group.

use super::rule::Rule;

pub(super) const RULES: &[Rule] = &[];
