//! hugetlbfs as scripts mount it.

use model::Bytes;
use programs::config::given::HugeMount;

use crate::rule::Case;

const LINK: &str = "https://man7.org/linux/man-pages/man8/mount.8.html";

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
        .link(Some(LINK))
        .seen(&own.place, "device", stray)
        .fix(format!("mount -t hugetlbfs -o {stray} nodev {target}")),
    )
}

fn hiding(own: &HugeMount) -> Option<Case> {
    let (over, target) = (own.over.as_ref()?, &own.target);
    Some(
        Case::sure(format!("the hugetlbfs of {over} is hidden by that of {}, which has the same directory", own.place))
            .link(Some(LINK))
            .seen(over, "mounted at", target)
            .seen(&own.place, "mounted at", target)
            .fix("mount each page size at a directory of its own: -o pagesize=2M at /mnt/huge, -o pagesize=1G at /mnt/huge-1G"),
    )
}
