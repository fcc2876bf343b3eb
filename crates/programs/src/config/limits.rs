//! pam_limits: `/etc/security/limits.conf` and `limits.d` (limits.conf(5)), which login sessions get and services do not.

use model::Unread;

use super::files::{Line, drop_ins, has_configuration, taken};
use crate::Limit;
use host::Source;

const LIMITS_CONF: &str = "/etc/security/limits.conf";
const LIMITS_D: &str = "/etc/security/limits.d";

/// One line: `DOMAIN TYPE ITEM VALUE`.
#[derive(Clone, Debug, PartialEq, Eq)]
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

impl LimitLine {
    /// What it lets processes lock; `None` of other items.
    pub fn memlock(&self) -> Option<Limit> {
        memlock(&self.value).filter(|_| self.item == "memlock")
    }
}

/// All lines: limits.conf first, then limits.d in order of name, so that later ones hold.
pub(super) fn read(source: &Source) -> Result<Vec<LimitLine>, Unread> {
    has_configuration(source)?;
    let drop_ins = drop_ins(source, &[LIMITS_D])?.into_iter().map(|(_, path)| path);
    let paths = [LIMITS_CONF.to_owned()].into_iter().chain(drop_ins);
    taken(source, paths, &['#'], limit_line)
}

/// The soft memlock limit that a login of this user would get, and the line that says so. No soft limit is above the hard one (pam_limits lowers it).
pub fn memlock_for<'a>(lines: &'a [LimitLine], user: &str, groups: &[String]) -> Option<(Limit, &'a LimitLine)> {
    let soft = of_kind(lines, "soft", user, groups)?;
    let hard = of_kind(lines, "hard", user, groups);
    Some(hard.filter(|(limit, _)| *limit < soft.0).unwrap_or(soft))
}

/// The limit of a kind: that of the user, else of a group, else of all; the last line of each holds.
fn of_kind<'a>(lines: &'a [LimitLine], kind: &str, user: &str, groups: &[String]) -> Option<(Limit, &'a LimitLine)> {
    let ours = |line: &&LimitLine| line.item == "memlock" && (line.kind == kind || line.kind == "-");
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

pub(super) fn limit_line(line: &Line<'_>) -> Option<LimitLine> {
    let mut words = line.text.split_whitespace().map(str::to_owned);
    Some(LimitLine {
        place: line.place(),
        domain: words.next()?,
        kind: words.next()?,
        item: words.next()?,
        value: words.next()?,
    })
}
