//! What was asked for: boot parameters and configuration files, to compare with what the kernel has.

mod boot;
mod boot_thp;
mod commands;
mod distribution;
mod dormant;
pub(crate) mod files;
pub mod given;
mod grub;
pub(crate) mod includes;
mod instances;
mod kept;
mod kernel_number;
mod limits;
mod passed_over;
mod policy;
mod pool_lines;
mod pool_request;
mod pool_words;
mod rights;
mod settings;
mod sysctl_files;
mod tuned;
pub(crate) mod unit;
pub mod vmware;
mod written;

#[cfg(test)]
mod tests;

use model::{Bytes, Cause, Reading, Unread};

use host::snapshot::{Feature, Mount, mounts};
use host::{Accounts, Snapshot, Source};

pub use crate::mysql::conf as mysql;
pub use crate::postgres::conf as postgres;
pub use boot::{Boot, BootForm, BootLine, BootPool, DigitsTaken};
pub use boot_thp::ThpSizes;
pub use distribution::Distribution;
pub(crate) use distribution::STARTERS;
pub use dormant::{Dormant, Starter};
pub use given::Given;
pub use host::shm::Segment;
pub use instances::{Instance, Parameters};
pub use limits::{LimitLine, memlock_for};
pub use passed_over::{Ignored, IgnoredWhy};
pub use pool_lines::{PoolLine, PoolWrite, is_of_node, requested};
pub use pool_request::PoolRequest;
pub use pool_words::OnBoot;
pub use settings::{Setting, Settings};
pub(crate) use sysctl_files::applies_sysctl;
pub use sysctl_files::is_packaged;
pub use unit::{Unit, is_of_manager};
pub use vmware::Vmware;

use files::listed;

/// Files and boot parameters. Each is there or says why not.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The hugetlb part of the boot command line, as the kernel takes it.
    pub boot: Reading<Boot>,
    /// The command line of the next boot, as the defaults of GRUB have it, or the file of kernel-install where GRUB starts none.
    pub next_boot: Option<BootLine>,
    /// `/etc/sysctl.conf` and the `sysctl.d` directories; then the surplus pages that other files write for a size.
    pub sysctl: Reading<Settings>,
    /// `/etc/security/limits.conf` and `limits.d`.
    pub limits: Reading<Vec<LimitLine>>,
    /// Everything that sets the THP policy at boot.
    pub thp_policy: Reading<Vec<Setting>>,
    /// What would set it at boot, and is not started or may not have run.
    pub dormant: Reading<Vec<Dormant>>,
    /// What else requests pages of pools: sysfs.conf, tmpfiles, units, profiles of tuned.
    pub pool_lines: Reading<Vec<PoolLine>>,
    /// What the allocator of Nitro enclaves takes whenever it starts: `memory_mib` and its value.
    pub enclaves: Option<Setting>,
    /// Units that the administrator wrote, and no package.
    pub own_units: Reading<Given>,
    /// Instances of Oracle that files of a root describe.
    pub instances: Reading<Vec<Parameters>>,
    /// Users and groups.
    pub accounts: Reading<Accounts>,
    /// The family of distributions, as far as commands differ.
    pub distribution: Reading<Distribution>,
    /// System V shared memory segments.
    pub segments: Reading<Vec<Segment>>,
    /// Mounts of file systems in memory: tmpfs and devtmpfs.
    pub tmpfs: Reading<Vec<Mount>>,
    /// Does nothing apply the files of sysctl.d at boot?
    pub is_sysctl_unread: bool,
    /// tmpfs of /etc/fstab that are mounted at boot and ask for huge pages: where each is mounted, and its `huge=`.
    pub huge_tmpfs: Reading<Vec<Setting>>,
    /// hugetlbfs likewise, with its `pagesize=`.
    pub hugetlb_mounts: Reading<Vec<Setting>>,
    /// Those for which no boot stops.
    pub optional_mounts: Reading<Vec<Setting>>,
    /// Could all be read that decides what is read at boot?
    pub starter: Reading<()>,
    /// Is /sys read-only, as in a container? Then settings are the host's to make.
    pub is_sys_read_only: bool,
    /// The machine's memory, which a container's own /proc/meminfo (lxcfs) does not say.
    pub total: Reading<Bytes>,
    /// Is this a container that sees its own processes alone?
    pub is_inside: bool,
    /// Is it a partition of POWER with the hash MMU? There pages of 16 GiB are the hypervisor's to give (arch/powerpc/mm/hugetlbpage.c).
    pub is_hash_partition: bool,
    /// Files in hugetlbfs mounts, as paths.
    pub hugetlb_files: Reading<Vec<String>>,
    /// Lines of these files that the kernel, systemd or PAM refuses or ignores.
    pub refused: Vec<Unread>,
    /// Lines about huge pages that are right and come to nothing, as something else is read.
    pub unheard: Vec<Unheard>,
}

/// A line about huge pages in a file that people take for the machine's configuration, and that comes to nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unheard {
    /// `FILE:LINE`.
    pub place: String,
    /// What of it is lost.
    pub words: String,
    pub why: UnheardWhy,
}

impl Unheard {
    /// Of words behind a `;`.
    pub const AT_SEMICOLON: &str = "GRUB ends the command line at a `;` without `\\` before it";
    /// How they come to the kernel.
    pub const ESCAPED: &str = "write `\\;` for that `;`, or each part of thp_anon= and thp_shmem= as a parameter of its own, then write GRUB's configuration anew (update-grub, or grub2-mkconfig -o /boot/grub2/grub.cfg), and reboot";

    fn of(line: &files::Line<'_>, words: String, why: UnheardWhy) -> Self {
        let place = line.place();
        Self { place, words, why }
    }
}

/// What is read in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnheardWhy {
    /// A line that is read later assigns the variable without its old value.
    AssignedAnew { variable: String, by: String },
    /// Kernels start by boot entries with lines of their own.
    BootEntries,
    /// It stands behind a `;`, at which GRUB ends the command line.
    Semicolon,
    /// It assigns a variable of its own among the defaults of GRUB.
    OwnVariable,
    /// EFI starts the kernel without GRUB, or GRUB takes entries that another tool writes.
    NoGrub,
    /// What makes unified kernel images passes another command line.
    ImageConf,
    /// systemd reads the files of `sysctl.d`, and this distribution links /etc/sysctl.conf there no more.
    SysctlConf,
    /// Names of files that are read end in `.conf`.
    SysctlName,
    /// WSL without systemd: nothing applies sysctl settings.
    NoSystemd,
    /// The same, but a command of one's own runs at start, and may apply them.
    PerhapsByCommand,
}

impl Config {
    /// Reads everything once. The snapshot has the page sizes for which the kernel has pools.
    pub fn read(source: &Source, snapshot: &Snapshot) -> Self {
        let pools = snapshot.pools.known();
        // Where they are not known, those that no machine has are left out.
        let sizes = pools.map(|pools| pools.iter().map(|pool| pool.size).collect());
        let sizes: Vec<Bytes> = sizes.unwrap_or_else(|| Boot::SIZES.to_vec());
        let default = own_default(snapshot);
        let unheard = sysctl_files::unheard(source);
        let of_sysctl = unheard.as_ref().map(drop).map_err(Unread::clone);
        let mut unheard = unheard.unwrap_or_default();
        let next_boot = grub::read(source).map(|grub| {
            unheard.extend(grub.unheard);
            grub.next_boot.map(|line| BootLine {
                boot: as_taken(Boot::parse_for(&line.words, Some(&Boot::SIZES), default), snapshot),
                ..line
            })
        });
        let sysctl = sysctl_files::read(source)
            .and_then(|own| Ok(own.with(&written::surplus(source)?)))
            .into();
        let limits = limits::read(source).into();
        let mut noticed = Vec::new();
        let units = commands::of_units(source, &mut noticed);
        let thp_policy: Reading<Vec<Setting>> = policy::read(source, &next_boot, &units, &mut noticed).into();
        let pool_lines = pool_lines::read(source, &next_boot, &units, &snapshot.topology, &mut noticed).into();
        let refused = refused(&sysctl, &limits, &thp_policy, noticed);
        let thp_policy = thp_policy.map(|mut lines| {
            lines.retain(|line| boot_thp::is_policy(&line.value));
            lines
        });
        Self {
            refused,
            unheard,
            boot: source
                .line("/proc/cmdline")
                .map(|line| as_taken(Boot::parse_for(&line, Some(&sizes), default), snapshot)),
            sysctl,
            limits,
            thp_policy,
            dormant: dormant::read(source).into(),
            pool_lines,
            enclaves: pool_lines::enclaves(source),
            next_boot: next_boot.ok().flatten(),
            own_units: own_units(source).into(),
            instances: instances::read(source).into(),
            accounts: Accounts::read(source),
            distribution: Distribution::read(source),
            segments: host::shm::read(source),
            tmpfs: tmpfs(source),
            is_sysctl_unread: sysctl_files::is_without_systemd(source),
            huge_tmpfs: huge_tmpfs(source).into(),
            hugetlb_mounts: of_fstab(source, "hugetlbfs", "pagesize=").into(),
            optional_mounts: optional_mounts(source).into(),
            starter: Distribution::is_readable(source).and(of_sysctl).into(),
            is_sys_read_only: is_mounted(source, "/sys", is_read_only),
            total: total(source, snapshot),
            is_inside: is_inside(source),
            is_hash_partition: is_hash_partition(source),
            hugetlb_files: hugetlb_files(source),
        }
    }
}

/// The kernel's default page size where no boot line sets one. What the running line sets is not that of the next boot; the kernel's own is that of
/// one entry of the page tables.
fn own_default(snapshot: &Snapshot) -> Option<Bytes> {
    let running = snapshot.kernel.command_line.known().map_or("", String::as_str);
    let size = match Boot::parse(running, None).default_size {
        None => snapshot.memory.get("Hugepagesize"),
        Some(_) => snapshot.pmd_page(),
    };
    size.known().copied()
}

/// As this kernel's release takes it.
fn as_taken(boot: Boot, snapshot: &Snapshot) -> Boot {
    let lacks = |feature| snapshot.kernel.has(feature) == Some(false);
    let boot = match lacks(Feature::NodePages) {
        true => boot.without_nodes(),
        false => boot,
    };
    let sizes = snapshot
        .kernel
        .base_page
        .known()
        .zip(snapshot.thp.known().and_then(|thp| thp.pmd_size.known()));
    let boot = match sizes {
        _ if lacks(Feature::SizesAtBoot) => boot.without_thp_sizes(),
        Some((page, pmd)) => boot.with_thp_sizes(*page, *pmd),
        None => boot,
    };
    boot.on_nodes(&snapshot.topology)
        .with_sysctl(!lacks(Feature::SysctlAtBoot), own_default(snapshot))
}

/// What the kernel, PAM and tuned refuse or ignore of the machine's own files: the setting stays as it was, and nothing else says so. `more` was
/// noticed while files were read.
fn refused(
    sysctl: &Reading<Settings>,
    limit_lines: &Reading<Vec<LimitLine>>,
    policies: &Reading<Vec<Setting>>,
    more: Vec<Unread>,
) -> Vec<Unread> {
    let sysctl = sysctl.known().into_iter().flat_map(Settings::iter);
    let limit_lines = limit_lines.known().into_iter().flatten();
    let policies = policies.known().into_iter().flatten();
    let limits = limit_lines.filter(|line| line.item == "memlock" && !limits::is_known(line));
    let policies = policies.filter(|line| !boot_thp::is_policy(&line.value));
    sysctl
        .filter_map(sysctl_files::refused)
        .chain(limits.map(|line| {
            Setting::new(&line.place, &line.item, &line.value).garbled("KiB or `unlimited`, so PAM sets no such limit")
        }))
        .chain(policies.map(|line| line.garbled("always, madvise or never, so the policy stays as it was")))
        .chain(more)
        .collect()
}

fn tmpfs(source: &Source) -> Reading<Vec<Mount>> {
    mounts::all(source).map(|mut mounts| {
        mounts.retain(|mount| mount.kind == "tmpfs" || mount.kind == "devtmpfs");
        mounts
    })
}

/// Those in /etc/systemd/system that are no links to files of packages, with their drop-ins.
fn own_units(source: &Source) -> Result<Given, Unread> {
    let [own, ..] = unit::DIRECTORIES;
    let is_packaged = |name: &str| {
        let real = source.real(&format!("{own}/{name}"));
        ["/usr/lib/", "/lib/", "/dev/"]
            .iter()
            .any(|other| real.starts_with(other))
    };
    let mut given = Given::default();
    let mut names = files::listed(source, own)?;
    // A template starts nothing itself.
    names.retain(|name| name.ends_with(".service") && !name.ends_with("@.service") && !is_packaged(name));
    let paths: Result<Vec<_>, _> = names.iter().map(|name| unit::files(source, name)).collect();
    for path in paths?.concat() {
        let text = files::content(source, &path)?.unwrap_or_default();
        // What is wrong in a unit is said where its service runs.
        drop(given.add(&path, text.as_bytes(), Some(given::FileKind::Unit)));
    }
    Ok(given)
}

fn huge_tmpfs(source: &Source) -> Result<Vec<Setting>, Unread> {
    let mut lines = of_fstab(source, "tmpfs", "huge=")?;
    lines.retain(|line| line.value != "never");
    Ok(lines)
}

fn optional_mounts(source: &Source) -> Result<Vec<Setting>, Unread> {
    let of = |option| of_fstab(source, "hugetlbfs", option);
    Ok([of("nofail")?, of("x-systemd.automount")?].concat())
}

/// Lines such as `tmpfs /tmp tmpfs nosuid,huge=within_size 0 0` (fstab(5)) that are mounted at boot: the place, and the option's value.
fn of_fstab(source: &Source, kind: &str, option: &str) -> Result<Vec<Setting>, Unread> {
    files::taken(source, ["/etc/fstab".to_owned()], &['#'], |line| {
        let mut fields = line.text.split_whitespace().skip(1);
        let (target, own, options) = (fields.next()?, fields.next()?, fields.next()?);
        let is_at_boot = options.split(',').all(|one| one != "noauto");
        let value = options.split(',').find_map(|one| one.strip_prefix(option));
        let value = value.filter(|_| own == kind && is_at_boot)?;
        Some(line.setting(target, value))
    })
}

const MEMINFO: &str = "/proc/meminfo";

fn total(source: &Source, snapshot: &Snapshot) -> Reading<Bytes> {
    if is_mounted(source, MEMINFO, |_| true) {
        let why = "it shows a container's own memory (lxcfs)";
        return Reading::Unread(Unread::new(Cause::Masked, MEMINFO, why));
    }
    snapshot.memory.get("MemTotal")
}

/// Of two mounts at one place the later one is on top.
pub(crate) fn is_mounted(source: &Source, target: &str, is_it: impl Fn(&Mount) -> bool) -> bool {
    let mounts = mounts::all(source);
    let top = mounts
        .known()
        .and_then(|mounts| mounts.iter().rfind(|mount| mount.target == target));
    top.is_some_and(is_it)
}

fn is_read_only(mount: &Mount) -> bool {
    mount.options.iter().any(|option| option == "ro")
}

/// A container that has not the machine's processes: those have the kernel's threads among them.
fn is_inside(source: &Source) -> bool {
    let is_there = |path: &str| source.text(path).known().is_some();
    let is_container = is_mounted(source, "/sys", is_read_only)
        || is_mounted(source, MEMINFO, |_| true)
        || ["/.dockerenv", "/run/.containerenv"].into_iter().any(is_there);
    is_container
        && source
            .line("/proc/2/comm")
            .known()
            .is_none_or(|name| name != "kthreadd")
}

fn is_hash_partition(source: &Source) -> bool {
    let cpuinfo = source.text("/proc/cpuinfo");
    let has = |name: &str, value: &str| {
        let mut fields = cpuinfo.known().into_iter().flat_map(|text| text.lines());
        fields.any(|line| {
            line.split_once(':')
                .is_some_and(|(own, is)| (own.trim(), is.trim()) == (name, value))
        })
    };
    has("platform", "pSeries") && has("MMU", "Hash")
}

/// The files below every hugetlbfs mount, one level of directories deep.
pub(crate) fn hugetlb_files(source: &Source) -> Reading<Vec<String>> {
    mounts::all(source).and_then(|mounts| {
        let mut files = Vec::new();
        for mount in mounts.iter().filter(|mount| mount.kind == "hugetlbfs") {
            for name in listed(source, &mount.target)? {
                let path = format!("{}/{name}", mount.target);
                match source.list(&path) {
                    Reading::Known(inner) => files.extend(inner.iter().map(|name| format!("{path}/{name}"))),
                    Reading::Unread(_) => files.push(path),
                }
            }
        }
        Ok(files)
    })
}
