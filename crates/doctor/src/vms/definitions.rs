//! Guests as libvirt and QEMU are told to make them: rules that only files can break.

use model::findings::Severity;

use crate::files::needs_a_file;
use crate::rule::Rule;

pub(super) const G04: Rule = Rule {
    id: "G04",
    name: "libvirt-mount-nodeset",
    severity: Severity::Error,
    holds: "libvirt and QEMU of every version",
    text: "A virtual machine is to be backed with hugetlb pages of a size of which fewer are set aside than it has memory. libvirt \
           refuses to start it, and QEMU with prealloc=on or reserve=on too. Pages of each NUMA cell are taken from the host nodes \
           that the cell is bound to. Told from the domain XML or the QEMU command line together with a sysctl file, a kernel \
           command line, or a machine (--root).",
    link: "https://libvirt.org/formatdomain.html#memory-backing",
    look: needs_a_file,
};

pub(super) const G05: Rule = Rule {
    id: "G05",
    name: "ram-not-multiple",
    severity: Severity::Warning,
    holds: "libvirt and QEMU of every version",
    text: "The memory of a virtual machine is no whole number of the pages that are to back it. QEMU rounds up or refuses, depending \
           on the backend and its version, and a part of the last page is lost. Make the memory of each NUMA cell a multiple of its \
           page size.",
    link: "https://libvirt.org/formatdomain.html#memory-backing",
    look: needs_a_file,
};
