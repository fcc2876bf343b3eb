//! Programs of DPDK in containers, and the hugetlbfs that they take pages of.

use model::Bytes;
use programs::config::given::{Container, Pod};

use super::has_mounted;
use crate::demand::who;
use crate::rule::Case;

const HUGE_DIR: &str = "--huge-dir";

/// DPDK looks for the hugetlbfs that holds this directory, and takes pages of no other.
pub(super) fn no_huge_dir(pod: &Pod, container: &Container) -> Option<Case> {
    let directory = container.option(HUGE_DIR)?;
    let by_itself = container
        .words
        .iter()
        .any(|word| word == "mount" || word == "--no-huge" || word == "--in-memory");
    if by_itself || container.mount_of(directory).is_some() {
        return None;
    }
    let own = pod.volumes.iter().find(|volume| has_mounted(container, volume));
    let mount = own.and_then(|volume| container.mounts.iter().find(|mount| mount.volume == volume.name));
    let case = Case::likely(format!(
        "{} does not start: nothing is mounted at {directory}, where DPDK looks for a hugetlbfs",
        who(pod, container)
    ));
    let case = case.seen(&container.place, HUGE_DIR, directory);
    Some(match mount {
        Some(mount) => case
            .seen(&container.place, format!("volume {}", mount.volume), &mount.directory)
            .fix(format!("{HUGE_DIR}={}, or mountPath: {directory}", mount.directory)),
        None => case.fix(format!(
            "a volume emptyDir: {{medium: HugePages}}, mounted at {directory}"
        )),
    })
}

/// The page size that DPDK takes in a container: that of the mount which it names, or the only one that it may have.
pub(super) fn page_of(pod: &Pod, container: &Container) -> Option<Bytes> {
    let allowed = pod.allowed(container);
    let only = match allowed[..] {
        [(page, ..)] => Some(page),
        _ => None,
    };
    let Some(directory) = container.option(HUGE_DIR) else {
        return only;
    };
    let mount = container.mount_of(directory)?;
    let volume = pod.volumes.iter().find(|volume| volume.name == mount.volume);
    let page = volume.map_or(only, |volume| volume.page().or(only))?;
    allowed.iter().any(|(size, ..)| *size == page).then_some(page)
}
