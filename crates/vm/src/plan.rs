//! A guest before it exists: which memory goes where, and the page tables that say so.

use kvm_bindings::kvm_userspace_memory_region;
use kvm_ioctls::VmFd;
use model::guest::GuestPage;

use crate::hypervisor::Hypervisor;
use crate::memory::{Memory, Owned};
use crate::pagetable::{Mapping, Rights, Tables, around};
use crate::{Error, boot, layout};

/// What a guest is made of.
#[derive(Clone, Copy, Debug)]
pub struct Config<'m> {
    /// The memory its kernels work on, at the same addresses as on the host; `None` for kernels that need none.
    pub memory: Option<Memory<'m>>,
    /// With which pages the guest maps that memory.
    pub page: GuestPage,
    /// Bytes at the beginning of `memory` whose pages look never used in the guest's page tables: each first touch there
    /// is a fault of its own. Beyond, a shadowing hypervisor may fill in adjacent entries, which warms the rest many times faster.
    pub fresh: u64,
    /// Memory for the page tables, best of the same page kind as `memory`, because under nested paging their place
    /// counts too; `None`: the guest's own base pages.
    pub tables: Option<Memory<'m>>,
}

/// Memory slots, page tables, and who holds the tables.
pub(crate) struct Plan<'m> {
    tables: Tables,
    memory: Option<Slot<'m>>,
    tables_memory: Option<Slot<'m>>,
}

/// Lent memory at a guest-physical address.
#[derive(Clone, Copy)]
struct Slot<'m> {
    phys: u64,
    host: Memory<'m>,
}

impl Slot<'_> {
    fn end(&self) -> u64 {
        self.phys + self.host.len()
    }
}

impl<'m> Plan<'m> {
    pub(crate) fn new(hypervisor: &Hypervisor, config: &Config<'m>) -> Result<Self, Error> {
        let slot = |host: Memory<'m>, from| Slot {
            phys: layout::physical(host.start(), from),
            host,
        };
        let memory = config.memory.map(|memory| slot(memory, layout::LENT));
        let above = memory.map_or(layout::LENT, |memory| memory.end());
        let tables_memory = config.tables.map(|tables| slot(tables, above));
        let base = tables_memory.map_or(layout::TABLES, |slot| slot.phys);
        let mut tables = Tables::new(base, hypervisor.levels());
        own_mappings().iter().try_for_each(|mapping| tables.map(mapping))?;
        if let Some(memory) = &memory {
            check(memory, config.page, hypervisor)?;
            lent_mappings(memory, config)
                .iter()
                .try_for_each(|mapping| tables.map(mapping))?;
        }
        map_work(&mut tables)?;
        let plan = Self {
            tables,
            memory,
            tables_memory,
        };
        plan.check_tables(hypervisor.physical_end())?;
        Ok(plan)
    }

    pub(crate) fn root(&self) -> u64 {
        self.tables.root()
    }

    /// Where the entry for a small page is.
    #[cfg(test)]
    pub(crate) fn entry(&mut self, virt: u64) -> Option<u64> {
        self.tables.entry(virt)
    }

    /// Bytes that the guest needs of its own.
    pub(crate) fn own_len(&self) -> u64 {
        match self.tables_memory {
            Some(_) => layout::TABLES,
            None => layout::TABLES + self.tables.size(),
        }
    }

    /// Fills in page tables and descriptor tables.
    pub(crate) fn write(&self, own: &mut Owned) {
        match &self.tables_memory {
            Some(slot) => slot.host.store(self.tables.words()),
            None => own.write_words(layout::TABLES, self.tables.words()),
        }
        own.write_words(layout::SECOND_ROOT, self.tables.root_words());
        boot::write_tables(own);
    }

    /// Registers the guest's memory with KVM.
    pub(crate) fn give_memory(&self, vm: &VmFd, own: &Owned) -> Result<(), Error> {
        let lent = [self.memory, self.tables_memory].into_iter().flatten();
        let lent = lent.map(|slot| (slot.phys, slot.host.start(), slot.host.len()));
        for (number, (phys, host, len)) in [(0, own.start(), own.len())].into_iter().chain(lent).enumerate() {
            let region = kvm_userspace_memory_region {
                slot: number as u32,
                flags: 0,
                guest_phys_addr: phys,
                memory_size: len,
                userspace_addr: host,
            };
            // SAFETY: the memory is mapped for longer than the machine lives: its own goes after the machine's files, lent
            // memory is borrowed. The slots do not overlap, by layout.
            unsafe { vm.set_user_memory_region(region) }.map_err(Error::call("give memory to the guest"))?;
        }
        Ok(())
    }

    /// How many tables a shadowing hypervisor may need for these: one for each of the guest's, and one for each 2 MiB of
    /// lent memory that the guest maps large and the host small.
    pub(crate) fn shadow_tables(&self) -> u64 {
        let lent = self.memory.map_or(0, |memory| memory.host.len());
        2 * (self.tables.size() / 4096 + lent / GuestPage::Size2M.size().0)
    }

    fn check_tables(&self, physical_end: u64) -> Result<(), Error> {
        let refuse = |what, most| {
            Err(Error::TooMuch {
                what,
                asked: self.tables.size(),
                most,
            })
        };
        match &self.tables_memory {
            Some(slot) if slot.host.len() < self.tables.size() => {
                refuse("bytes of page tables in the memory for them", slot.host.len())
            }
            Some(slot) if slot.end() > physical_end => {
                refuse("bytes of page tables below the guest's last physical address", 0)
            }
            None if layout::TABLES + self.tables.size() > layout::EXIT => {
                refuse("bytes of page tables", layout::EXIT - layout::TABLES)
            }
            _ => Ok(()),
        }
    }
}

/// Can this memory be mapped where the guest needs it?
fn check(memory: &Slot<'_>, page: GuestPage, hypervisor: &Hypervisor) -> Result<(), Error> {
    let refuse = |why| {
        Err(Error::Memory {
            start: memory.host.start(),
            len: memory.host.len(),
            why,
        })
    };
    let (virt, len) = around(memory.host.start(), memory.host.len(), page);
    if virt < layout::LENT {
        return refuse("it lies in the first 4 GiB, where the guest has its own code");
    }
    if virt + len > hypervisor.levels().end() {
        return refuse("it lies above the addresses that the guest's page tables reach");
    }
    if memory.end() > hypervisor.physical_end() {
        return refuse("the virtual CPU has too few physical address bits for it");
    }
    Ok(())
}

/// The lent memory under its host addresses, its fresh part and the rest. Pages larger than it reach beyond; there is nothing
/// there, and no kernel goes there.
fn lent_mappings(memory: &Slot<'_>, config: &Config<'_>) -> [Mapping; 2] {
    let (virt, len) = around(memory.host.start(), memory.host.len(), config.page);
    let fresh = around(memory.host.start(), config.fresh.min(memory.host.len()), config.page).1;
    let part = |from: u64, to: u64, used| Mapping {
        virt: virt + from,
        phys: memory.phys - (memory.host.start() - virt) + from,
        len: to - from,
        page: config.page,
        rights: Rights::USER_DATA,
        used,
    };
    [part(0, fresh, false), part(fresh, len, true)]
}

/// The work area for ring-0 kernels, and its leaf table a second time so that they can change it.
fn map_work(tables: &mut Tables) -> Result<(), Error> {
    let work = layout::work(tables.levels());
    tables.map(&small(work, layout::WORK_FRAMES, layout::WORK_LEN, Rights::USER_DATA))?;
    let leaves = tables.entry(work).unwrap_or(layout::WORK_FRAMES);
    Ok(tables.map(&small(layout::LEAVES, leaves, 4096, Rights::KERNEL_DATA))?)
}

/// The guest's own memory and the page for exits: virtual = physical, small pages.
fn own_mappings() -> [Mapping; 6] {
    let own = |start, len, rights| small(start, start, len, rights);
    [
        own(layout::CODE, layout::CODE_LEN, Rights::USER_CODE),
        own(layout::STACK, layout::STACK_LEN, Rights::USER_DATA),
        own(layout::RESULTS, layout::RESULTS_LEN, Rights::USER_DATA),
        own(layout::SYSTEM, layout::SYSTEM_LEN, Rights::KERNEL_DATA),
        own(layout::CHURN, layout::CHURN_LEN, Rights::KERNEL_DATA),
        own(layout::EXIT, 4096, Rights::USER_DATA),
    ]
}

fn small(virt: u64, phys: u64, len: u64, rights: Rights) -> Mapping {
    Mapping {
        virt,
        phys,
        len,
        page: GuestPage::Size4K,
        rights,
        used: true,
    }
}
