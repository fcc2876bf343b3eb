//! The virtual machines that run here: which page kinds back their memory, and whether that is what they were configured for.

pub(crate) mod cloud_hypervisor;
pub(crate) mod configured;
pub(crate) mod firecracker;
mod mismatch;
pub(crate) mod pinned;
pub(crate) mod qemu;
mod ram;
#[cfg(test)]
mod tests;

use model::process::{MappingPages, Unseen};
use model::vms::{Configured, KvmPages, Vm};
use model::{Bytes, Cause, PageKind, Reading, Unread};

use crate::config::files::file_name;
use crate::{Kind, zero_ended};
use configured::Asked;
use host::processes::{self, Ground, Reason, smaps};
use host::snapshot::{Kernel, Meminfo, MountTree, Thp};
use host::{Source, spread};

pub use pinned::{Pinned, pins, size as guest_size};

/// KVM's own accounts: a directory `PID-FD` for each machine.
const DEBUGFS: &str = "/sys/kernel/debug/kvm";
/// What the descriptor of a machine leads to.
pub(crate) const KVM: &str = "anon_inode:kvm-vm";
/// Descriptors of one process that are looked at, each by a system call; a process may have a million.
const MOST_DESCRIPTORS: usize = 4096;
/// smaps of a large process.
const LONGEST_SMAPS: Bytes = Bytes::gib(1);

/// Every process that runs a virtual machine: known by its program, or because it holds a machine of KVM. Beside them, those of which
/// neither is known. Absent if there is no process at all.
pub fn list(source: &Source) -> (Reading<Vec<Vm>>, Unseen) {
    let mut unseen = processes::unseen(source);
    let vms = source.pids().and_then(|pids| {
        let found = spread::over(source, &pids, |&pid| look(source, pid));
        if found.iter().all(|found| matches!(found, Ok(None))) {
            processes::list(source).into_result()?;
        }
        found
            .iter()
            .filter_map(|found| found.as_ref().err())
            .for_each(|why| unseen.add(why));
        Ok(found.into_iter().filter_map(|found| found.ok()??).collect())
    });
    (vms, unseen)
}

/// The machine that a process runs; `None` if it runs none, could not be read, or has just ended.
pub fn vm(source: &Source, pid: u32) -> Option<Vm> {
    look(source, pid).ok()??
}

/// Nothing for what is no program: a thread of the kernel, or one that has just ended.
///
/// # Errors
/// Why it could not be read whether a program runs a machine.
fn look(source: &Source, pid: u32) -> Result<Option<Option<Vm>>, Unread> {
    let denied = |why: Unread| {
        if why.unread == Cause::Denied {
            Err(why)
        } else {
            Ok(None)
        }
    };
    let mut argv = match source.bytes(&format!("/proc/{pid}/cmdline")) {
        Reading::Known(bytes) => zero_ended(&bytes),
        Reading::Unread(why) => return denied(why),
    };
    argv.retain(|word| !word.is_empty());
    let Some(own_name) = argv.first().map(|first| file_name(first)) else {
        return Ok(None);
    };
    let program = Kind::of(own_name, &argv).filter(|kind| kind.is_hypervisor());
    match (program, holds_kvm(source, pid)) {
        (None, Reading::Unread(why)) if why.unread == Cause::Denied => Err(why),
        (None, Reading::Known(false) | Reading::Unread(_)) => Ok(Some(None)),
        (program, kvm) => Ok(Some(Some(read(source, pid, &argv, (program, kvm))))),
    }
}

/// What is known of a machine, whose process is `program` or holds one of KVM.
fn read(source: &Source, pid: u32, argv: &[String], (program, kvm): (Option<Kind>, Reading<bool>)) -> Vm {
    let own_name = argv.first().map_or("", |first| file_name(first));
    let asked = asked(source, pid, program, argv);
    let mounts = MountTree::of_process(source, pid);
    let configured = asked
        .as_ref()
        .map(|asked| asked.resolve(&mounts, default_huge_page(source)));
    let memory = memory(source, pid, configured.known());
    let mappings = memory
        .as_ref()
        .map_or_else(|_| Vec::new(), |memory| memory.mappings.clone());
    let mut vm = Vm {
        pid,
        program: match program {
            Some(Kind::Qemu) => "qemu",
            Some(kind) => kind.executable(),
            None => own_name,
        }
        .to_owned(),
        name: asked.known().and_then(|asked| asked.name.clone()),
        kvm,
        configured,
        mapped: memory.as_ref().map_or(Bytes(0), |memory| memory.mapped),
        found: memory.as_ref().ok().map(|memory| memory.found.to_owned()),
        backing: memory.map(|memory| memory.backing).into(),
        kvm_pages: kvm_pages(source, pid),
        mismatches: Vec::new(),
    };
    vm.mismatches = mismatch::all(&vm, &|| why_base(source, pid, &mappings));
    vm
}

/// Why most of a guest's memory that is on base pages is.
fn why_base(source: &Source, pid: u32, mappings: &[MappingPages]) -> Option<Reason> {
    let process = processes::one(source, pid);
    let (thp, kernel, mounts) = (
        Thp::read(source),
        Kernel::read(source),
        MountTree::of_process(source, pid),
    );
    let ground = Ground {
        thp: &thp,
        kernel: &kernel,
        mounts: &mounts,
    };
    let largest = mappings
        .iter()
        .max_by_key(|mapping| mapping.backing.of(PageKind::Base))?;
    processes::why_base(largest, process.known()?, &ground)
}

fn asked(source: &Source, pid: u32, program: Option<Kind>, argv: &[String]) -> Reading<Asked> {
    let absent = |why| Reading::Unread(Unread::new(Cause::Absent, format!("/proc/{pid}/cmdline"), why));
    if argv.len() == 1 && !source.is_live() {
        return absent("the capture has only the name of the program");
    }
    match program {
        Some(Kind::Qemu) => Reading::Known(qemu::parse(argv)),
        Some(Kind::CloudHypervisor) => Reading::Known(cloud_hypervisor::parse(argv)),
        Some(Kind::Firecracker) => firecracker::read(source, pid, argv),
        _ => absent("this program's options are not known"),
    }
}

/// A descriptor of a KVM machine among the open files. A program opens its machine early, so it has one of the lower numbers.
fn holds_kvm(source: &Source, pid: u32) -> Reading<bool> {
    kvm_descriptors(source, pid).and_then(|found| match found {
        Descriptors { kvm, .. } if !kvm.is_empty() => Ok(true),
        Descriptors { left_out: 0, .. } => Ok(false),
        Descriptors { left_out, .. } => {
            let why = format!("{left_out} of its open files were not read");
            Err(Unread::new(Cause::Failed, format!("/proc/{pid}/fd"), why))
        }
    })
}

/// The paths of a process's descriptors that are machines of KVM, and how many were not read.
pub(crate) struct Descriptors {
    pub(crate) kvm: Vec<String>,
    pub(crate) left_out: usize,
}

/// Looks at the lowest [`MOST_DESCRIPTORS`] of a process.
pub(crate) fn kvm_descriptors(source: &Source, pid: u32) -> Reading<Descriptors> {
    let place = format!("/proc/{pid}/fd");
    source.list(&place).map(|names| {
        let mut numbers: Vec<u32> = names.iter().filter_map(|name| name.parse().ok()).collect();
        numbers.sort_unstable();
        let left_out = numbers.len().saturating_sub(MOST_DESCRIPTORS);
        let paths = numbers
            .into_iter()
            .take(MOST_DESCRIPTORS)
            .map(|number| format!("{place}/{number}"));
        let is_kvm = |path: &String| source.link(path).known().is_some_and(|target| target == KVM);
        Descriptors {
            kvm: paths.filter(is_kvm).collect(),
            left_out,
        }
    })
}

fn memory(source: &Source, pid: u32, configured: Option<&Configured>) -> Result<ram::Memory, Unread> {
    let path = format!("/proc/{pid}/smaps");
    let bytes = source.bytes_within(&path, LONGEST_SMAPS).into_result()?;
    let mappings = smaps::parse(&path, &bytes)?;
    let why = "no mapping that could hold a guest's memory";
    ram::find(&mappings, configured).ok_or_else(|| Unread::new(Cause::Absent, &path, why))
}

fn kvm_pages(source: &Source, pid: u32) -> Reading<KvmPages> {
    let mine = |name: &&String| name.split('-').next() == Some(&pid.to_string());
    source.list(DEBUGFS).and_then(|names| {
        let absent = || Unread::new(Cause::Absent, DEBUGFS, format!("no machine of process {pid} there"));
        let name = names.iter().find(mine).ok_or_else(absent)?;
        let count = |size: &str| source.number(&format!("{DEBUGFS}/{name}/pages_{size}")).into_result();
        Ok(KvmPages {
            pages_4k: count("4k")?,
            pages_2m: count("2m")?,
            pages_1g: count("1g")?,
        })
    })
}

/// The size of a hugetlb page where none is named.
fn default_huge_page(source: &Source) -> Option<Bytes> {
    let meminfo = Meminfo::read(source, "/proc/meminfo");
    meminfo.known()?.get("Hugepagesize").known().copied()
}
