//! The guest itself: memory, tables and a virtual CPU put together; kernels loaded, run, timed and counted.

use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::time::{Duration, Instant};

use chase::alarm::Alarm;
use kvm_bindings::kvm_sregs;
use kvm_ioctls::{VcpuExit, VcpuFd, VmFd};

use crate::boot::{self, Ring};
use crate::churn::Op;
use crate::hypervisor::Hypervisor;
use crate::memory::{Memory, Owned};
use crate::pagetable::Levels;
use crate::plan::{Config, Plan};
use crate::stats::{self, Stats};
use crate::{Error, layout, payload, syscall};

/// How often a guest is interrupted once its deadline has passed.
const AGAIN: Duration = Duration::from_millis(5);

/// Machine code that was loaded into a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernel {
    entry: u64,
    /// The page fault handler it needs, if any; without one, a fault ends the guest.
    handler: Option<u64>,
}

/// One entry into the guest.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    pub kernel: Kernel,
    pub ring: Ring,
    /// Its first argument: for a chase, the address of a node.
    pub start: u64,
    /// Its second argument: turns of its loop in one block, at least 1.
    pub turns: u64,
    /// Blocks, each timed, without leaving the guest between them.
    pub blocks: u64,
    /// How long all of it may take.
    pub deadline: Duration,
}

/// What one entry gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// Ticks of the time stamp counter for each block.
    pub ticks: Vec<u64>,
    /// Where the last block ended.
    pub next: u64,
}

/// A virtual machine with one virtual CPU, ready to run kernels on lent memory again and again.
pub struct Guest<'m> {
    // The files first: they are closed before the memory goes.
    vcpu: VcpuFd,
    vcpu_stats: File,
    vm_stats: File,
    _vm: VmFd,
    own: Owned,
    fresh: kvm_sregs,
    root: u64,
    levels: Levels,
    loaded: u64,
    lent: PhantomData<Memory<'m>>,
}

impl<'m> Guest<'m> {
    /// Makes the machine; nothing runs yet, and no page of the lent memory is touched.
    pub fn new(hypervisor: &Hypervisor, config: &Config<'m>) -> Result<Self, Error> {
        if !hypervisor.guest_pages().contains(&config.page) {
            return Err(Error::GuestPage(config.page));
        }
        let plan = Plan::new(hypervisor, config)?;
        let mut own = Owned::new(plan.own_len())?;
        plan.write(&mut own);
        let vm = hypervisor
            .kvm()
            .create_vm()
            .map_err(Error::call("create a virtual machine"))?;
        plan.give_memory(&vm, &own)?;
        syscall::allow_shadow_tables(&vm, plan.shadow_tables());
        let vcpu = vm.create_vcpu(0).map_err(Error::call("create a virtual CPU"))?;
        vcpu.set_cpuid2(hypervisor.cpuid())
            .map_err(Error::call("set the virtual CPU's features"))?;
        let fresh = vcpu.get_sregs().map_err(Error::call("read the virtual CPU's state"))?;
        let stats = |result: io::Result<File>| {
            result.map_err(|source| Error::Call {
                what: "open its statistics",
                source,
            })
        };
        let mut guest = Self {
            vcpu_stats: stats(syscall::stats_file(&vcpu))?,
            vm_stats: stats(syscall::stats_file(&vm))?,
            vcpu,
            _vm: vm,
            own,
            fresh,
            root: plan.root(),
            levels: hypervisor.levels(),
            loaded: 0,
            lent: PhantomData,
        };
        guest.load(payload::wrapper())?;
        Ok(guest)
    }

    /// Copies a kernel into the guest. Its contract is that of [`payload`]; it must be free of relocations.
    pub fn load(&mut self, code: &[u8]) -> Result<Kernel, Error> {
        Ok(Kernel {
            entry: self.place(code)?,
            handler: None,
        })
    }

    /// Copies the kernel of a page-table operation and its fault handler into the guest.
    pub fn load_churn(&mut self, op: Op) -> Result<Kernel, Error> {
        Ok(Kernel {
            entry: self.place(op.code())?,
            handler: op.handler().map(|code| self.place(code)).transpose()?,
        })
    }

    fn place(&mut self, code: &[u8]) -> Result<u64, Error> {
        let place = self.loaded.next_multiple_of(64);
        let end = place + code.len() as u64;
        if end > layout::CODE_LEN {
            return Err(Error::TooMuch {
                what: "bytes of code in a guest",
                asked: end,
                most: layout::CODE_LEN,
            });
        }
        self.own.write(layout::CODE + place, code);
        self.loaded = end;
        Ok(layout::CODE + place)
    }

    /// Runs a kernel to its end, or until the deadline.
    pub fn run(&mut self, job: &Job) -> Result<Done, Error> {
        if !(1..=layout::MOST_BLOCKS).contains(&job.blocks) || job.turns == 0 {
            return Err(Error::TooMuch {
                what: "blocks in one entry (or none, or blocks without a turn)",
                asked: job.blocks,
                most: layout::MOST_BLOCKS,
            });
        }
        let handler = job.kernel.handler;
        if let Some(handler) = handler {
            boot::write_handler(&mut self.own, handler);
        }
        let special = boot::special(&self.fresh, job.ring, self.root, self.levels, handler.is_some());
        self.vcpu.set_sregs(&special).map_err(Error::call("enter long mode"))?;
        let general = boot::general(job.kernel.entry, job.start, job.turns, job.blocks);
        self.vcpu
            .set_regs(&general)
            .map_err(Error::call("set the virtual CPU's registers"))?;
        self.until_finished(job.deadline)?;
        Ok(Done {
            ticks: self.own.words(layout::RESULTS, job.blocks as usize),
            next: self.registers()?.rdi,
        })
    }

    fn until_finished(&mut self, deadline: Duration) -> Result<(), Error> {
        // From the deadline on it interrupts KVM_RUN again and again, until it is dropped.
        let alarm = Alarm::of_this_thread().map_err(Error::Watchdog)?;
        // A time of zero would mean "never".
        let first = deadline.max(Duration::from_nanos(1));
        alarm.set(first, AGAIN).map_err(Error::Watchdog)?;
        let end = Instant::now() + deadline;
        loop {
            match self.vcpu.run() {
                Ok(VcpuExit::MmioWrite(layout::FINISHED, _)) => return Ok(()),
                Ok(VcpuExit::MmioWrite(layout::PING, _)) => {}
                Ok(VcpuExit::Shutdown) => return Err(self.faulted()?),
                Ok(exit) => {
                    let exit = format!("{exit:?}");
                    let rip = self.registers()?.rip;
                    return Err(Error::Exit { rip, exit });
                }
                Err(error) if matches!(error.errno(), libc::EINTR | libc::EAGAIN) => {}
                Err(error) => return Err(Error::call("run the guest")(error)),
            }
            if Instant::now() >= end {
                return Err(Error::Stuck(deadline));
            }
        }
    }

    /// What the hypervisor has counted so far: for the machine and its virtual CPU together.
    pub fn stats(&self) -> Result<Stats, Error> {
        Ok(stats::read(&self.vm_stats)?.and(stats::read(&self.vcpu_stats)?))
    }

    fn registers(&self) -> Result<kvm_bindings::kvm_regs, Error> {
        self.vcpu
            .get_regs()
            .map_err(Error::call("read the virtual CPU's registers"))
    }

    fn faulted(&self) -> Result<Error, Error> {
        let special = self
            .vcpu
            .get_sregs()
            .map_err(Error::call("read the virtual CPU's state"))?;
        Ok(Error::Faulted {
            rip: self.registers()?.rip,
            cr2: special.cr2,
        })
    }
}

#[cfg(test)]
mod tests;
