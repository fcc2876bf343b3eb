//! What came with which release of Linux: the one table that rules and plans ask.

use super::Kernel;

model::table! {
    /// Something that a kernel has from a release on, with the first one. Vendors carry some of it to older releases: where a file shows it, the file decides.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Feature: [u32; 3] {
        /// mmap() takes pool pages without a file (mmap(2), MAP_HUGETLB).
        MapHugetlb = [2, 6, 32],
        /// systemd starts on it (systemd's README, of its first releases).
        Systemd = [2, 6, 39],
        /// A control group limits reservations of hugetlb pages, not only their use (cgroup-v2.rst, `hugetlb.<size>.rsvd.max`).
        ReservationLimits = [5, 7, 0],
        /// The first write to a THP after fork splits it and copies one base page (commit 3917c80280c9).
        CopySplitsThp = [5, 8, 0],
        /// `hugetlb_free_vmemmap=` on the command line (kernel-parameters.txt).
        FreeVmemmap = [5, 14, 0],
        /// `hugepages=NODE:PAGES` on the command line (mm/hugetlb.c).
        NodePages = [5, 16, 0],
        /// `sysctl.NAME=` on the command line (kernel-parameters.txt).
        SysctlAtBoot = [5, 8, 0],
        /// `vm.hugepages_treat_as_movable` is gone (commit d6cb41cc44c6).
        NoTreatAsMovable = [4, 16, 0],
        /// Pools of gigantic pages, such as 1 GiB, may have surplus pages (mm/hugetlb.c; before it nr_overcommit_hugepages was refused for them).
        GiganticSurplus = [6, 19, 0],
        /// SHM_HUGETLB asks for a group or a capability, and no longer for a memlock limit.
        ShmWithoutMemlock = [5, 16, 0],
        /// A pool of 1 GiB pages that the boot line does not name, where the CPU has such pages (mm/hugetlb.c).
        GiganticPool = [3, 16, 0],
        /// Likewise one of PMD-sized pages beside another default size (commit 282f421438f1).
        PmdPool = [5, 8, 0],
        /// Limits of System V segments that limit nothing by default; before it 32M for one and 8G for all (include/linux/shm.h).
        LargeSegments = [3, 16, 0],
        /// Idmapped mounts of hugetlbfs (commit 91e78a1eb6b1).
        IdmappedHugetlbfs = [6, 9, 0],
        /// MADV_COLLAPSE (madvise(2)).
        Collapse = [6, 1, 0],
        /// Thread stacks of a glibc's default size are no longer backed by THP.
        StacksWithoutThp = [6, 8, 0],
        /// THP sizes below that of a PMD, each with a policy (transhuge.rst).
        Sizes = [6, 8, 0],
        /// `thp_anon=` on the command line (transhuge.rst).
        SizesAtBoot = [6, 12, 0],
        /// PR_THP_DISABLE_EXCEPT_ADVISED (prctl(2)).
        ExceptAdvised = [6, 18, 0],
        /// PAGEMAP_SCAN (pagemap.rst).
        PagemapScan = [6, 7, 0],
        /// Guests whose memory no process maps (KVM_CREATE_GUEST_MEMFD).
        GuestMemfd = [6, 8, 0],
        /// PREEMPT_LAZY, which `preempt=lazy` chooses.
        PreemptLazy = [6, 13, 0],
        /// PREEMPT_NONE is gone: lazy preemption is the least.
        NoPreemptNone = [7, 0, 0],
        /// khugepaged collapses to sizes below that of a PMD, and `max_ptes_none` is 0 or all for these.
        CollapseToSizes = [7, 2, 0],
        /// CONFIG_READ_ONLY_THP_FOR_FS: khugepaged collapses code of files that no process has open for writing.
        ReadOnlyThpOption = [5, 4, 0],
        /// That option is gone: huge pages of files are those of their file systems.
        NoReadOnlyThpOption = [7, 3, 0],
        /// Files of 2 MiB and more are mapped at addresses that fit their huge pages (commit 1854bc6e2420; ext4, xfs, btrfs since 6.1).
        FilesAligned = [5, 18, 0],
        /// XFS keeps files in large folios (its pull for 5.18).
        XfsFolios = [5, 18, 0],
        /// ext4 does (its pull for 6.16).
        Ext4Folios = [6, 16, 0],
        /// Btrfs does, of a huge page's size (its pull for 7.2; before it under CONFIG_BTRFS_EXPERIMENTAL, up to 256K).
        BtrfsFolios = [7, 2, 0],
    }
}

/// The newest release of which changes are known here.
const KNOWN: [u32; 2] = [7, 3];

impl Feature {
    /// The first release that has it.
    pub const fn since(self) -> [u32; 3] {
        self.row()
    }

    /// What a file system needs to keep its files in huge pages; `None` of one of which that is not known.
    pub fn of_file_system(kind: &str) -> Option<Self> {
        match kind {
            "xfs" => Some(Self::XfsFolios),
            "ext4" => Some(Self::Ext4Folios),
            "btrfs" => Some(Self::BtrfsFolios),
            _ => None,
        }
    }
}

/// The first three numbers of a release; a number that is not there is 0.
pub(crate) fn numbers(release: &str) -> Option<[u32; 3]> {
    let mut numbers = release
        .split(|c: char| !c.is_ascii_digit())
        .map_while(|part| part.parse().ok());
    let [first, second] = [numbers.next()?, numbers.next()?];
    Some([first, second, numbers.next().unwrap_or(0)])
}

impl Kernel {
    /// The release's first three numbers; a number that is not there is 0.
    pub fn numbers(&self) -> Option<[u32; 3]> {
        numbers(self.release.known()?)
    }

    /// The release, and the newest of which changes are known here, if it is beyond that.
    pub fn beyond_known(&self) -> Option<([u32; 2], [u32; 2])> {
        let [major, minor, _] = self.numbers()?;
        ([major, minor] > KNOWN).then_some(([major, minor], KNOWN))
    }

    /// May khugepaged collapse code of files, where the kernel was built so?
    pub fn may_collapse_code(&self) -> Option<bool> {
        Some(self.has(Feature::ReadOnlyThpOption)? && !self.has(Feature::NoReadOnlyThpOption)?)
    }

    /// Has this release that? `None` if the release is not known.
    pub fn has(&self, feature: Feature) -> Option<bool> {
        Some(self.numbers()? >= feature.since())
    }
}

#[cfg(test)]
mod tests {
    use super::Feature;
    use crate::{Snapshot, Source, Tree};

    fn kernel(release: &str) -> super::Kernel {
        let tree = Tree::new().line("/proc/sys/kernel/osrelease", release);
        Snapshot::take(&Source::from_tree("test", tree)).kernel
    }

    #[test]
    fn a_newer_release_than_all_that_are_known_is_told() {
        assert_eq!(kernel("7.4.0-rc1").beyond_known(), Some(([7, 4], [7, 3])));
        assert_eq!(kernel("7.3.9").beyond_known(), None);
        assert_eq!(kernel("unknown").beyond_known(), None);
        for (release, expected) in [
            ("4.18.0", Some(false)),
            ("6.18.1", Some(true)),
            ("7.3.0", Some(false)),
            ("?", None),
        ] {
            assert_eq!(kernel(release).may_collapse_code(), expected, "{release}");
        }
    }

    #[test]
    fn a_release_has_what_came_before_it() {
        let has = |release: &str, feature| kernel(release).has(feature);
        for (release, feature, expected) in [
            ("2.6.18-53.el5", Feature::MapHugetlb, Some(false)),
            ("2.6.32-754.el6.x86_64", Feature::MapHugetlb, Some(true)),
            ("5.6.19", Feature::ReservationLimits, Some(false)),
            ("5.7-rc1", Feature::ReservationLimits, Some(true)),
            ("5.15.0-91-generic", Feature::NodePages, Some(false)),
            ("5.16", Feature::NodePages, Some(true)),
            ("6.18.44", Feature::ExceptAdvised, Some(true)),
            ("unknown", Feature::Sizes, None),
        ] {
            assert_eq!(has(release, feature), expected, "{release} {feature:?}");
        }
    }
}
