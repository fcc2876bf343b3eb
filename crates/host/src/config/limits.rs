//! pam_limits: `/etc/security/limits.conf` and `limits.d` (limits.conf(5)), which login sessions get and services do not.

use model::Unread;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{content, has_configuration, listed, said};
use crate::Source;
use crate::programs::Limit;

const LIMITS_CONF: &str = "/etc/security/limits.conf";
const LIMITS_D: &str = "/etc/security/limits.d";

/// One line: `DOMAIN TYPE ITEM VALUE`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LimitLine {
    /// `FILE:LINE`.
    pub place: String,
    /// A user, `@group`, `*`, ...
    pub domain: String,
    /// `soft`, `hard` or `-` for both.
    pub kind: String,
    /// `memlock`, `nofile`, ...
    pub item: String,
    /// As written; memlock is in KiB, `unlimited` or `-1`.
    pub value: String,
}

/// All lines: limits.conf first, then limits.d in order of name, so that later ones hold.
pub(super) fn read(source: &Source) -> Result<Vec<LimitLine>, Unread> {
    has_configuration(source)?;
    let drop_ins = listed(source, LIMITS_D)?;
    let drop_ins = drop_ins
        .iter()
        .filter(|name| name.ends_with(".conf"))
        .map(|name| format!("{LIMITS_D}/{name}"));
    let mut lines = Vec::new();
    for path in [LIMITS_CONF.to_owned()].into_iter().chain(drop_ins) {
        if let Some(text) = content(source, &path)? {
            lines.extend(said(&text, &['#']).filter_map(|(number, line)| limit_line(&path, number, line)));
        }
    }
    Ok(lines)
}

/// The soft memlock limit that a login of this user would get, and the line that says so.
pub fn memlock_for<'a>(lines: &'a [LimitLine], user: &str, groups: &[String]) -> Option<(Limit, &'a LimitLine)> {
    let ours = |line: &&LimitLine| line.item == "memlock" && line.kind != "hard";
    let for_user = |line: &&LimitLine| line.domain == user;
    let for_group = |line: &&LimitLine| {
        line.domain
            .strip_prefix('@')
            .is_some_and(|group| groups.iter().any(|name| name == group))
    };
    let for_all = |line: &&LimitLine| line.domain == "*" && user != "root";
    let last = |matches: &dyn Fn(&&LimitLine) -> bool| lines.iter().filter(ours).rfind(|line| matches(line));
    let line = last(&for_user)
        .or_else(|| last(&for_group))
        .or_else(|| last(&for_all))?;
    Some((memlock(&line.value)?, line))
}

fn memlock(value: &str) -> Option<Limit> {
    match value {
        "unlimited" | "infinity" | "-1" => Some(Limit::Unlimited),
        kib => Some(Limit::Bytes(kib.parse::<u64>().ok()?.checked_mul(1024)?)),
    }
}

/// Does the line have a known form?
pub(super) fn is_known(line: &LimitLine) -> bool {
    let kind = matches!(line.kind.as_str(), "soft" | "hard" | "-");
    kind && (line.item != "memlock" || memlock(&line.value).is_some())
}

pub(super) fn limit_line(path: &str, number: usize, line: &str) -> Option<LimitLine> {
    let mut words = line.split_whitespace().map(str::to_owned);
    Some(LimitLine {
        place: format!("{path}:{number}"),
        domain: words.next()?,
        kind: words.next()?,
        item: words.next()?,
        value: words.next()?,
    })
}
