//! What a file of a plan can be.

/// How comments begin.
const HASH: &[char] = &['#'];
const EITHER: &[char] = &['#', ';'];

crate::table! {
    /// What a file is, by its place: with the heads of sections that a plan may add (none where there are no sections), and how comments begin.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(in crate::plan) enum Sort: (&'static [&'static str], &'static [char]) {
        /// sysctl.conf(5).
        Sysctl = (&[], EITHER),
        /// limits.conf(5).
        Limits = (&[], HASH),
        /// tmpfiles.d(5).
        Tmpfiles = (&[], HASH),
        /// GRUB's defaults, which are a script.
        Grub = (&[], HASH),
        /// kernel-install's command line: one line of words.
        Cmdline = (&[], EITHER),
        /// A drop-in of a service.
        Service = (&["[Service]"], EITHER),
        /// A drop-in through which a target wants a unit.
        Wants = (&["[Unit]"], EITHER),
        /// The unit that mounts a hugetlbfs.
        Mount = (&["[Unit]", "[Mount]"], EITHER),
        /// The unit that fills pools at boot.
        Pools = (&["[Unit]", "[Service]"], EITHER),
        /// postgresql.conf.
        Postgres = (&[], HASH),
        /// my.cnf.
        Mysql = (&["[mysqld]"], EITHER),
    }
}

impl Sort {
    pub(super) fn sections(self) -> &'static [&'static str] {
        self.row().0
    }

    pub(super) fn comments(self) -> &'static [char] {
        self.row().1
    }

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
