//! Guests as libvirt and hypervisors are configured to start them.

use std::collections::BTreeSet;

use model::Bytes;
use model::findings::Severity;
use programs::Evidence;
use programs::config::Distribution;
use programs::config::given::{Backing, FileKind, Guest, Manager, Wrong};

use super::nova::unreserved;
use super::sizes::{lacking, no_such_size, of_other_pool};
use crate::demand::{Shortage, guests, is_no_hugetlbfs, runs_by_proxmox, shortages};
use crate::facts::{count, default_size, distribution, known, pages_for, pool_file};
use crate::kept::boot_pages;
use crate::links;
use crate::pools::{is_mounted, mount_there, mounted_sizes};
use crate::remedy::{Count, Need};
use crate::rule::answers::parts;
use crate::rule::{Answer, Case, Reason};

/// Files of guests, and at the end what leaves pages to other programs.
pub(super) const WITH_NOVA: &[FileKind] = &[
    FileKind::Libvirt,
    FileKind::Qemu,
    FileKind::Firecracker,
    FileKind::Kata,
    FileKind::Proxmox,
    FileKind::Incus,
    FileKind::Nova,
];
pub(super) const OF: &[FileKind] = WITH_NOVA.split_at(WITH_NOVA.len() - 1).0;

/// A guest smaller than this gains little.
const WORTH: Bytes = Bytes::gib(4);

pub(super) fn on_base(evidence: &Evidence) -> Answer {
    let is_plain = |guest: &Guest| guest.memory.iter().all(|(_, backing)| *backing == Backing::Any);
    let plain = |guest: &&Guest| guest.total() >= WORTH && guest.refused.is_empty() && is_plain(guest);
    let guests = guests(evidence);
    let cases = guests.iter().filter(plain).map(|guest| {
        Case::hint(format!(
            "the {} of {} is backed by huge pages only where the host's THP allows it, which no file shows",
            guest.total(),
            guest.name
        ))
        .severity(Severity::Info)
        .seen(&guest.place, "memory", guest.total())
        .seen(&guest.place, "hugetlb pages", "not requested")
        .link(Some(links::of_manager(guest.manager)))
        .fix(on_pages(Some(guest.manager)))
        .fix("or check the running guest: hugewise vm")
    });
    let cases = cases.chain(guests.iter().filter_map(mapped_small));
    Ok(cases.chain(guests.iter().filter_map(unused)).collect())
}

/// A backend on huge pages that is not the guest's memory. What a command of the monitor makes of it later is not known.
fn unused(guest: &Guest) -> Option<Case> {
    let id = guest.unused.as_ref()?;
    let case = Case::likely(format!(
        "no option of {} uses its memory backend {id}: QEMU makes the memory of -m itself. Only a command of the monitor (device_add) can use it later",
        guest.name
    ));
    let case = case.link(Some(links::of_manager(guest.manager)));
    let fix = format!("memory-backend={id} in -machine, or memdev={id} in the -numa node that has it");
    let case = case.severity(Severity::Warning).fix(fix);
    Some(case.seen(&guest.place, "memory backend", id))
}

/// How a guest gets pages of a pool, by what starts it.
pub(super) fn on_pages(manager: Option<Manager>) -> &'static str {
    match manager {
        None => {
            "libvirt: <memoryBacking><hugepages/></memoryBacking>; QEMU: -object memory-backend-memfd,hugetlb=on,hugetlbsize=2M,size=..."
        }
        Some(Manager::Libvirt) => "<memoryBacking><hugepages/></memoryBacking> in its definition",
        Some(Manager::Qemu) => {
            "-object memory-backend-memfd,hugetlb=on,hugetlbsize=2M,size=... (-machine memory-backend=ID)"
        }
        Some(Manager::CloudHypervisor) => "hugepages=on in its --memory",
        Some(Manager::Firecracker) => "\"huge_pages\": \"2M\" in its machine-config",
        Some(Manager::Kata) => "enable_hugepages = true below its [hypervisor...]",
        Some(Manager::Proxmox) => "hugepages: 2 in its configuration, which needs numa: 1",
    }
}

pub(super) fn no_reserve(evidence: &Evidence) -> Answer {
    let open = |guest: &&Guest| guest.unreserved && !guest.prealloc && guest.hugetlb().next().is_some();
    let guests = guests(evidence);
    let cases = guests.iter().filter(open).map(|guest| {
        Case::likely(format!(
            "{} takes pages from the pool as it touches them, without a reservation: when the pool is empty, it dies of SIGBUS",
            guest.name
        ))
        .severity(Severity::Warning)
        .link(Some(links::of_manager(guest.manager)))
        .seen(&guest.place, "reserved at start", "no")
        .fix(match guest.manager {
            Manager::CloudHypervisor => "prefault=on: it takes them all when it starts".to_owned(),
            Manager::Firecracker => format!(
                "keep {} free for it, beside those of all other guests: vm.nr_hugepages",
                count(pages_for(guest.total(), Bytes::mib(2)), "page of 2M", "pages of 2M")
            ),
            _ => "reserve=on, or prealloc=on".to_owned(),
        })
    });
    Ok(cases.collect())
}

/// What may be wrong with one guest, but for its page sizes.
const OF_ONE: [fn(&Evidence, &Guest) -> Option<Case>; 6] = [
    found_at_start,
    of_other_pool,
    on_no_mount,
    unshared,
    promised_more,
    without_hpage,
];

pub(super) fn no_room(evidence: &Evidence) -> Answer {
    let guests = guests(evidence);
    let mut cases = Vec::new();
    for guest in &guests {
        let mut own = refused(guest);
        own.extend(no_such_size(evidence, guest));
        own.extend(OF_ONE.iter().filter_map(|check| check(evidence, guest)));
        let manager = links::of_manager(guest.manager);
        cases.extend(own.into_iter().map(|case| case.link(Some(manager))));
    }
    let mut last = Vec::new();
    for guest in &guests {
        last.extend(unmounted(evidence, guest)?);
    }
    let asks = |guest: &Guest| guest.is_by_pool() && guest.hugetlb().next().is_some();
    if !guests.iter().any(asks) {
        return parts([Ok(cases), unreserved(evidence)]);
    }
    parts([
        Ok(cases),
        unreserved(evidence),
        short_of_pages(evidence, &guests),
        Ok(last),
    ])
}

/// Guests that the pools cannot serve. Of a size that is not there another case says so.
fn short_of_pages(evidence: &Evidence, guests: &[Guest]) -> Answer {
    let case = |short: Shortage<'_>| {
        let who = &short.demand.who;
        let mut named = guests.iter().filter(|guest| guest.name == *who);
        let manager = named.clone().next().map(|guest| guest.manager);
        let what = match named.any(|guest| guest.unreserved && !guest.prealloc) {
            true => "dies of SIGBUS when it touches more than is there",
            false => "does not start",
        };
        let case = short.case(format!("{who} {what}: it {}", short.text()));
        case.link(manager.map(links::of_manager))
            .when(manager == Some(Manager::Kata), |case| {
                case.fix(
                    "count the pages of one sandbox for each that runs at a time, and those that containers hot-plug",
                )
                .fix("or enable_hugepages = false in the configuration of Kata Containers")
            })
    };
    let missing: Vec<Bytes> = guests.iter().flat_map(|guest| lacking(evidence, guest)).collect();
    let short = shortages(evidence, FileKind::Libvirt)?.into_iter();
    Ok(short.filter(|short| !missing.contains(&short.page)).map(case).collect())
}

/// How libvirt shares a guest's memory.
const SHARED: &str = "<access mode='shared'/> in <memoryBacking>, beside <hugepages/> or <source type='memfd'/>; where the guest has cells, also memAccess='shared' in each that says otherwise";

/// The guest starts, and devices of vhost-user do not work.
fn unshared(_: &Evidence, guest: &Guest) -> Option<Case> {
    let place = guest.unshared.as_ref()?;
    let case = Case::sure(format!(
        "devices of vhost-user do not work in {}: their other end cannot map its memory, which is private",
        guest.name
    ));
    let case = case.seen(place, "device", "vhost-user");
    Some(case.seen(&guest.place, "shared memory", "no").fix(match guest.manager {
        Manager::Libvirt => SHARED,
        _ => "share=on in the backend of its memory: -object memory-backend-file,...,share=on",
    }))
}

/// Definitions that their manager does not accept: nothing else about their pages can be right.
fn refused(guest: &Guest) -> Vec<Case> {
    let who = match guest.manager {
        Manager::Proxmox => "Proxmox VE",
        Manager::Qemu => "QEMU",
        _ => "libvirt",
    };
    let cases = guest.refused.iter().map(|refused| {
        let general = match (refused.wrong, guest.manager) {
            (Wrong::Private, _) => SHARED,
            (Wrong::Backend, _) => "-m and size= of the backend alike",
            (Wrong::Cells, Manager::Proxmox) => {
                "numa: 1 (qm set ID --numa 1), each numaN with one of hostnodes, a policy and whole pages of memory, together those of memory:, and no memory in hotplug:"
            }
            (Wrong::Cells, _) => {
                "nodeset of <page> and cellid of <memnode> name cells of the guest: add them (<cpu><numa><cell .../></numa></cpu>), or leave nodeset and <memnode> out"
            }
        };
        let why = &refused.why;
        Case::sure(format!("{who} refuses the definition of {}: {why}", guest.name))
            .seen(&refused.place, format!("{who}'s error"), why)
            .fix(refused.fix().unwrap_or(general))
    });
    cases.collect()
}

/// On s390x KVM backs guests with pages of 1M only where its module was loaded so (kvm.hpage).
fn without_hpage(evidence: &Evidence, guest: &Guest) -> Option<Case> {
    let is_off = evidence.snapshot.kvm.hpage.known() == Some(&false);
    guest.hugetlb().next().filter(|_| is_off)?;
    Some(
        Case::sure(format!(
            "{} does not start: KVM was loaded without hpage=1 (QEMU: `KVM does not support this memory backing`)",
            guest.name
        ))
        .seen("/sys/module/kvm/parameters/hpage", "", 0)
        .seen(&guest.place, "huge pages", "requested")
        .fix("echo 'options kvm hpage=1 nested=0' >> /etc/modprobe.d/kvm.conf")
        .fix("then load kvm anew (with nested=1 it refuses hpage=1)"),
    )
}

/// A path that is named for huge pages, on a machine where no hugetlbfs is mounted there.
fn on_no_mount(evidence: &Evidence, guest: &Guest) -> Option<Case> {
    let (path, size) = guest.paths().find(|(path, _)| is_no_hugetlbfs(path, evidence))?;
    let case = Case::sure(format!(
        "{} gets no huge pages: {path} is on no hugetlbfs of this machine, so its memory becomes an ordinary file there, or it does not start",
        guest.name
    ));
    Some(mount_there(case.seen(&guest.place, "path", path), evidence, path, size))
}

/// Proxmox VE takes pages when a guest starts: of 2M the kernel mostly finds them, of 1G hardly ever after boot.
fn found_at_start(evidence: &Evidence, guest: &Guest) -> Option<Case> {
    let page = Bytes::gib(1);
    let pool = evidence.snapshot.pool(page)?;
    let is_ours = guest.manager == Manager::Proxmox && guest.refused.is_empty();
    let of_page = guest.hugetlb().filter(|(_, own)| is_ours && *own == Some(page));
    let need = of_page.map(|(size, _)| size.0 / page.0).sum::<u64>();
    let (free, taken) = (pool.available()?, pool.taken()?);
    // One that runs has its pages already.
    (need > free && !runs_by_proxmox(evidence, guest)).then(|| {
        Case::likely(format!(
            "{} needs {need} pages of 1G, which Proxmox VE requests when the guest starts, and {free} are free: after boot the kernel hardly finds more",
            guest.name
        ))
        .severity(Severity::Warning)
        .wants(page)
        .seen(&guest.place, "pages of 1G", need)
        .seen(pool_file(pool, "free_hugepages"), "", free)
        .fix_with(
            Need::More(page, need),
            boot_pages(evidence, page, Count::of(page, taken.saturating_add(need))),
        )
        .fix("or hugepages: 2")
    })
}

/// libvirt makes a file of the guest's memory in a mount of its page size, and knows those that were there at its own start.
fn unmounted(evidence: &Evidence, guest: &Guest) -> Result<Vec<Case>, Reason> {
    if !evidence.has_machine || !guest.by_file || !guest.refused.is_empty() {
        return Ok(Vec::new());
    }
    let default = default_size(evidence)?;
    let mounts = known(&evidence.snapshot.mounts)?;
    let mut sizes: BTreeSet<Bytes> = guest.hugetlb().map(|(_, page)| page.unwrap_or(default)).collect();
    // Of a size that is not there another case says so.
    sizes.retain(|size| !is_mounted(mounts, default, *size) && evidence.snapshot.pool(*size).is_some());
    let cases = sizes.into_iter().map(|size| {
        let (text, kib) = (size.exact(), size.0 >> 10);
        Case::sure(format!(
            "{} does not start: no hugetlbfs with pages of {text} is mounted (libvirt: `Unable to find any usable hugetlbfs mount for {kib} KiB`)",
            guest.name
        ))
        .seen(&guest.place, "page size", &text)
        .seen("/proc/self/mounts", "hugetlbfs", mounted_sizes(evidence))
        .fix(keep_mounted(distribution(evidence), &text))
        .fix("then restart libvirt, which looks for mounts at its start: systemctl try-restart virtqemud libvirtd")
        .wants(size)
    });
    Ok(cases.collect())
}

/// How a hugetlbfs is mounted, at each boot too. NixOS makes /etc/systemd itself, and Talos has no systemd.
fn keep_mounted(own: Distribution, size: &str) -> String {
    let path = format!("/dev/hugepages{size}");
    let unit = format!("dev-hugepages{size}.mount");
    match own {
        Distribution::NixOs => format!(
            "fileSystems.\"{path}\" = {{ device = \"none\"; fsType = \"hugetlbfs\"; options = [ \"pagesize={size}\" ]; }}; in the machine's configuration, then: nixos-rebuild switch"
        ),
        Distribution::Talos | Distribution::Bottlerocket => format!(
            "in libvirt's container, at each start of it: mkdir -p {path} && mount -t hugetlbfs -o pagesize={size} hugetlbfs {path}"
        ),
        _ => format!(
            "(echo '[Mount]'; echo What=hugetlbfs; echo Where={path}; echo Type=hugetlbfs; echo Options=pagesize={size}; echo '[Install]'; echo WantedBy=multi-user.target) > /etc/systemd/system/{unit} && systemctl daemon-reload && systemctl enable --now {unit}"
        ),
    }
}

/// KVM maps no huge page of a guest while it logs what the guest writes. Others do that for a migration alone.
fn mapped_small(guest: &Guest) -> Option<Case> {
    let place = guest.tracked.as_ref()?;
    let page = guest.memory.iter().find_map(|(_, from)| match from {
        Backing::Hugetlb(Some(page)) => Some(page.exact()),
        Backing::Hugetlb(None) | Backing::Thp => Some("huge".to_owned()),
        _ => None,
    })?;
    Some(
        Case::sure(format!(
            "the {page} pages of {} gain nothing: KVM maps them as base pages while it logs the pages that the guest writes (track_dirty_pages)",
            guest.name
        ))
        .link(Some(links::of_manager(guest.manager)))
        .seen(place, "track_dirty_pages", "true")
        .fix("\"track_dirty_pages\": false; only differential snapshots need it")
        .fix("or leave \"huge_pages\" out"),
    )
}

/// KVM's HV on POWER maps a page of a guest by one of the host: pages as large as promised have to back it (QEMU, spapr_caps.c).
fn promised_more(evidence: &Evidence, guest: &Guest) -> Option<Case> {
    let (place, promised) = guest.hpt_page.as_ref()?;
    let base = evidence.snapshot.kernel.base_page.known().copied();
    let base = base.unwrap_or(Bytes::kib(64));
    let default = default_size(evidence).ok();
    let page = |backing: &Backing| match backing {
        Backing::Any => Some(base),
        Backing::Hugetlb(page) => page.or(default),
        _ => None,
    };
    let pages: Option<Vec<Bytes>> = guest.memory.iter().map(|(_, backing)| page(backing)).collect();
    let page = pages?.into_iter().min().filter(|page| page < promised)?;
    let (promised, kib) = (promised.exact(), [promised.0 >> 10, page.0 >> 10]);
    Some(
        Case::sure(format!(
            "{} does not start: it is promised pages of {promised}, and pages of {} back it (QEMU: `Can't support {} kiB guest pages with {} kiB host pages with this KVM implementation`)",
            guest.name,
            page.exact(),
            kib[0],
            kib[1]
        ))
        .seen(place, "largest page", &promised)
        .seen(&guest.place, "page size", page.exact())
        .fix(match guest.manager {
            Manager::Libvirt => "<maxpagesize unit='KiB'>64</maxpagesize>, or no <maxpagesize>",
            _ => "cap-hpt-max-page-size=64k, or leave it out",
        })
        .fix(format!(
            "or back it by pages of {promised} or more: of 16M where the host has the hash MMU, of 1G where it has radix"
        )),
    )
}
