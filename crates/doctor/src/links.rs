//! Where to read more of a product, in place of a rule's own page.

use programs::Kind;
use programs::config::given::Manager;
use programs::config::is_of_manager;

use crate::facts::{file_name, file_of};

pub(super) const HUGETLB: &str = "https://docs.kernel.org/admin-guide/mm/hugetlbpage.html";
pub(super) const THP: &str = "https://docs.kernel.org/admin-guide/mm/transhuge.html";
pub(super) const SYSCTL: &str = "https://docs.kernel.org/admin-guide/sysctl/vm.html";
pub(super) const SYSCTL_KERNEL: &str = "https://docs.kernel.org/admin-guide/sysctl/kernel.html";
pub(super) const BOOT: &str = "https://docs.kernel.org/admin-guide/kernel-parameters.html";
pub(super) const UNITS: &str = "https://www.freedesktop.org/software/systemd/man/latest/systemd.exec.html";
pub(super) const NOVA: &str = "https://docs.openstack.org/nova/latest/configuration/config.html";
pub(super) const DOCKER_RUN: &str = "https://docs.docker.com/reference/cli/docker/container/run/";
pub(super) const PODMAN_RUN: &str = "https://docs.podman.io/en/latest/markdown/podman-run.1.html";
pub(super) const JAVA: &str = "https://docs.oracle.com/en/java/javase/21/docs/specs/man/java.html";
pub(super) const QUADLET: &str = "https://docs.podman.io/en/latest/markdown/podman-systemd.unit.5.html";

/// The manual of what starts a guest.
pub(super) fn of_manager(manager: Manager) -> &'static str {
    match manager {
        Manager::Libvirt => "https://libvirt.org/formatdomain.html#memory-backing",
        Manager::Qemu => "https://www.qemu.org/docs/master/system/invocation.html",
        Manager::CloudHypervisor => "https://github.com/cloud-hypervisor/cloud-hypervisor/blob/main/docs/memory.md",
        Manager::Firecracker => "https://github.com/firecracker-microvm/firecracker/blob/main/docs/hugepages.md",
        Manager::Kata => {
            "https://github.com/kata-containers/kata-containers/blob/main/docs/how-to/how-to-set-sandbox-config-kata.md"
        }
        Manager::Proxmox => "https://pve.proxmox.com/pve-docs/qm.conf.5.html",
    }
}

pub(super) const MARIADB: &str = "https://mariadb.com/kb/en/server-system-variables/#large_pages";
const POSTGRES: &str = "https://www.postgresql.org/docs/current/config-setting.html";
const MYSQL: &str = "https://dev.mysql.com/doc/refman/8.4/en/option-files.html";

/// The manual of a server's settings.
pub(super) fn of_server(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Postgres => Some(POSTGRES),
        Kind::Mysql => Some(MYSQL),
        _ => None,
    }
}

/// That of a configuration file, by its path; `None` of others than those known here.
pub(super) fn of_file(place: &str) -> Option<&'static str> {
    let (file, name) = (file_of(place), file_name(place));
    Some(match name {
        _ if name.ends_with(".service") || file.contains(".service.d/") => UNITS,
        _ if name == "limits.conf" || file.contains("limits.d/") => {
            "https://man7.org/linux/man-pages/man5/limits.conf.5.html"
        }
        _ if is_of_manager(file) => "https://www.freedesktop.org/software/systemd/man/latest/systemd-system.conf.html",
        _ if file.contains("tmpfiles.d/") => "https://www.freedesktop.org/software/systemd/man/latest/tmpfiles.d.html",
        _ if name.starts_with("postgresql") => POSTGRES,
        _ if name.ends_with(".cnf") => MYSQL,
        _ if name == "grub" || name == "cmdline" => BOOT,
        _ => return None,
    })
}
