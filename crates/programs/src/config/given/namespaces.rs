//! sysctl settings that containers get: those of their own namespaces, and no others.

use model::{Cause, Unread};

/// Why a container with such a setting does not start, if it does not: run-times and the kubelet take settings of its own namespaces
/// alone (docs.podman.io, `--sysctl`; kubernetes.io, sysctl-cluster), also for a privileged one.
pub(super) fn refused(place: String, name: &str) -> Option<Unread> {
    let name = name.replace('/', ".");
    let is_own = ["net.", "fs.mqueue.", "kernel.shm", "kernel.msg"]
        .iter()
        .any(|own| name.starts_with(own));
    if is_own || ["kernel.sem", "kernel.domainname"].contains(&name.as_str()) {
        return None;
    }
    let why = format!(
        "{name} belongs to the whole machine and to no namespace of a container, which does not start with it: set it on the host, in /etc/sysctl.d"
    );
    Some(Unread::new(Cause::Garbled, place, why))
}
