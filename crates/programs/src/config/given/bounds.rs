//! What the `CapabilityBoundingSet=` of a unit leaves of the capabilities that lift limits of locked memory (systemd.exec(5)).

use crate::config::Setting;

/// Such a set, as the lines so far make it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// CAP_IPC_LOCK: memory is locked whatever the limit.
    pub(super) may_lock: bool,
    /// CAP_SYS_RESOURCE: a limit is raised above the hard one.
    pub may_raise: bool,
    /// The line that was read last.
    pub line: Setting,
}

impl Bounds {
    /// With one more line. Lists add up, what is behind `~` is taken away, `~` alone is all, and an empty line none.
    pub(super) fn with(before: Option<&Self>, line: &Setting) -> Self {
        let value = line.value.to_ascii_uppercase();
        let (is_taken, list) = match value.strip_prefix('~') {
            Some(list) => (true, list.trim()),
            None => (false, value.trim()),
        };
        let leaves = |name: &str, of: fn(&Self) -> bool| {
            let is_named = list.split_whitespace().any(|word| word == name);
            match (is_taken, list.is_empty()) {
                (_, true) => is_taken,
                (true, false) => before.is_none_or(of) && !is_named,
                (false, false) => before.is_some_and(of) || is_named,
            }
        };
        Self {
            may_lock: leaves("CAP_IPC_LOCK", |bounds| bounds.may_lock),
            may_raise: leaves("CAP_SYS_RESOURCE", |bounds| bounds.may_raise),
            line: line.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Bounds;
    use crate::config::Setting;

    /// CAP_IPC_LOCK and CAP_SYS_RESOURCE.
    fn left(values: &[&str]) -> (bool, bool) {
        let last = values.iter().fold(None, |before: Option<Bounds>, value| {
            let line = Setting::new("x.service:2", "CapabilityBoundingSet", *value);
            Some(Bounds::with(before.as_ref(), &line))
        });
        let last = last.expect("a line");
        (last.may_lock, last.may_raise)
    }

    #[test]
    fn lists_add_up_and_take_away() {
        assert_eq!(left(&["CAP_CHOWN CAP_KILL"]), (false, false));
        assert_eq!(left(&["CAP_CHOWN", "cap_sys_resource"]), (false, true));
        assert_eq!(left(&["~CAP_IPC_LOCK CAP_SYS_TIME"]), (false, true));
        assert_eq!(
            left(&["CAP_IPC_LOCK CAP_SYS_RESOURCE", "~CAP_SYS_RESOURCE"]),
            (true, false)
        );
        assert_eq!(left(&["CAP_IPC_LOCK", ""]), (false, false));
        assert_eq!(left(&["CAP_CHOWN", "~"]), (true, true));
    }
}
