//! Mounts of hugetlbfs that have other pages than they ask for, or that others hide.

use host::snapshot::Mount;
use model::Bytes;
use programs::Evidence;
use programs::config::given::HugeMount;

use crate::facts::default_page;
use crate::rule::Case;

const MOUNT: &str = "https://man7.org/linux/man-pages/man8/mount.8.html";

/// Options that no mount has, and mounts that hide others. An option that names the default size is not missed.
pub(super) fn by_scripts(mounts: &[HugeMount], default: Bytes) -> Vec<Case> {
    let strays = mounts.iter().filter(|own| own.written() != Some(default));
    let strays = strays.filter_map(|own| stray(own, default));
    strays.chain(mounts.iter().filter_map(hiding)).collect()
}

fn stray(own: &HugeMount, default: Bytes) -> Option<Case> {
    let (stray, target) = (own.stray()?, &own.target);
    let lost = match own.written() {
        Some(_) => format!(
            "the hugetlbfs at {target} has pages of the default size ({})",
            default.exact()
        ),
        None => "the option has no effect".to_owned(),
    };
    Some(
        Case::sure(format!(
            "`mount` takes {stray} as the name of the device, as -o is missing: {lost}"
        ))
        .link(Some(MOUNT))
        .seen(&own.place, "device", stray)
        .fix(format!("mount -t hugetlbfs -o {stray} nodev {target}")),
    )
}

fn hiding(own: &HugeMount) -> Option<Case> {
    let (over, target) = (own.over.as_ref()?, &own.target);
    Some(
        Case::sure(format!("the hugetlbfs of {over} is hidden by that of {}, which has the same directory", own.place))
            .link(Some(MOUNT))
            .seen(over, "mounted at", target)
            .seen(&own.place, "mounted at", target)
            .fix("mount each page size at a directory of its own: -o pagesize=2M at /mnt/huge, -o pagesize=1G at /mnt/huge-1G"),
    )
}

/// Two hugetlbfs of the machine with one directory and pages of different sizes. DPDK takes a directory for each size from the table of mounts,
/// and locks it (get_hugepage_dir(), hugepage_info_init()): it waits for itself.
pub(super) fn stacked(evidence: &Evidence) -> Vec<Case> {
    let default = default_page(evidence);
    let size = |mount: &Mount| mount.page_size().unwrap_or(default);
    let mounts = evidence.snapshot.mounts.known().into_iter().flatten();
    let mounts: Vec<&Mount> = mounts.filter(|mount| mount.kind == "hugetlbfs").collect();
    let below = |(at, top): (usize, &&Mount)| {
        let mut below = mounts[..at].iter().rev();
        let hidden = below.find(|own| own.target == top.target && size(own) != size(top))?;
        Some(on_one_directory(&top.target, size(hidden), size(top)))
    };
    mounts.iter().enumerate().filter_map(below).collect()
}

fn on_one_directory(target: &str, hidden: Bytes, top: Bytes) -> Case {
    let (hidden, top) = (hidden.exact(), top.exact());
    Case::sure(format!(
        "the hugetlbfs with pages of {top} at {target} hides one with pages of {hidden}: programs that start now do not reach the latter, \
         and DPDK, which reads both in /proc/mounts, hangs at start, as it locks {target} twice"
    ))
    .link(Some(MOUNT))
    .seen("/proc/self/mounts", target, format!("pagesize={hidden}"))
    .seen("/proc/self/mounts", target, format!("pagesize={top}"))
    .fix(format!(
        "give the second a directory of its own: umount {target} && mkdir -p {target}-{top} && mount -t hugetlbfs -o pagesize={top} none \
         {target}-{top}"
    ))
    .fix("change the line of /etc/fstab, the unit or the script that mounts it in the same way")
}
