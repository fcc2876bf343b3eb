//! What a file of a plan can be.

/// What a file is, by its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::plan) enum Sort {
    /// sysctl.conf(5).
    Sysctl,
    /// limits.conf(5).
    Limits,
    /// tmpfiles.d(5).
    Tmpfiles,
    /// GRUB's defaults, which are a script.
    Grub,
    /// kernel-install's command line: one line of words.
    Cmdline,
    /// A drop-in of a service.
    Service,
    /// A drop-in through which a target wants a unit.
    Wants,
    /// The unit that mounts a hugetlbfs.
    Mount,
    /// The unit that fills pools at boot.
    Pools,
    /// postgresql.conf.
    Postgres,
    /// my.cnf.
    Mysql,
}

impl Sort {
    /// May a plan make such a file where there is none? A server's own file is there before.
    pub(super) fn may_be_new(self) -> bool {
        !matches!(self, Self::Postgres | Self::Mysql | Self::Cmdline)
    }
}

/// A file of hugewise's own, so that it hides none that the system or an administrator brought: `60-hugewise.conf`.
pub(super) fn is_own(name: &str, ending: &str) -> bool {
    let Some(stem) = name.strip_suffix(ending) else {
        return false;
    };
    let number = stem
        .get(..3)
        .filter(|start| start.ends_with('-') && start.as_bytes()[..2].iter().all(u8::is_ascii_digit));
    let stem = number.map_or(stem, |_| &stem[3..]);
    let rest = stem.strip_prefix("hugewise");
    rest.is_some_and(|rest| {
        rest.bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    })
}
