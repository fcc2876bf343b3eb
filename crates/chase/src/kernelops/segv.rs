//! segv: a load from a page without access rights; the handler steps over the load and returns.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use rustix::mm::{MapFlags, ProtFlags};

use super::batch::{Batch, Timed, timed};
use crate::syscall::Mapping;

/// Faults in a batch: about 100 us.
const BATCH: u64 = 32;
/// Bytes of the load, which the handler steps over.
const LOAD: i64 = 3;
const PAGE: usize = 4096;

/// Where the expected fault is; 0: nowhere.
static EXPECTED: AtomicUsize = AtomicUsize::new(0);
/// Times the handler ran.
static HANDLED: AtomicU64 = AtomicU64::new(0);
/// There is one handler for the whole process.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// The page, the handler's stack, and what was there before.
pub(super) struct Segv {
    page: Mapping,
    stack: Mapping,
    old_action: libc::sigaction,
    old_stack: libc::stack_t,
}

impl Segv {
    pub(super) fn open() -> io::Result<Self> {
        let page = Mapping::protected(PAGE, ProtFlags::empty(), MapFlags::empty())?;
        let stack = Mapping::anonymous(16 * PAGE, MapFlags::empty())?;
        if TAKEN.swap(true, Ordering::SeqCst) {
            return Err(io::Error::other("another measurement in this process has it"));
        }
        EXPECTED.store(page.start() as usize, Ordering::SeqCst);
        // SAFETY: all-zero values of both are valid, and are filled in by `install` before they are used.
        let (old_action, old_stack) = unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        let mut this = Self {
            page,
            stack,
            old_action,
            old_stack,
        };
        this.install().inspect_err(|_| TAKEN.store(false, Ordering::SeqCst))?;
        Ok(this)
    }

    fn install(&mut self) -> io::Result<()> {
        let stack = libc::stack_t {
            ss_sp: self.stack.start().cast(),
            ss_flags: 0,
            ss_size: 16 * PAGE,
        };
        // SAFETY: the stack lives as long as `self`, which puts the old one back when dropped; the handler only touches
        // atomics and its own context; all-zero is a valid start for a `sigaction`.
        unsafe {
            if libc::sigaltstack(&raw const stack, &raw mut self.old_stack) != 0 {
                return Err(io::Error::last_os_error());
            }
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = step_over as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_NODEFER | libc::SA_ONSTACK;
            libc::sigemptyset(&raw mut action.sa_mask);
            if libc::sigaction(libc::SIGSEGV, &raw const action, &raw mut self.old_action) != 0 {
                let error = io::Error::last_os_error();
                libc::sigaltstack(&raw const self.old_stack, std::ptr::null_mut());
                return Err(error);
            }
        }
        Ok(())
    }
}

impl Timed for Segv {
    fn batch(&mut self) -> io::Result<Batch> {
        let before = HANDLED.load(Ordering::SeqCst);
        let page = self.page.start();
        let mut batch = timed(BATCH, || {
            // SAFETY: every load faults, and the handler steps over it.
            unsafe { probe(page, BATCH) };
            Ok(())
        })?;
        batch.counts.signals = HANDLED.load(Ordering::SeqCst) - before;
        if batch.counts.signals != BATCH {
            let seen = batch.counts.signals;
            return Err(io::Error::other(format!(
                "{seen} of {BATCH} loads were handled as faults"
            )));
        }
        Ok(batch)
    }
}

impl Drop for Segv {
    fn drop(&mut self) {
        // SAFETY: both were in force before, and the handler's stack is not in use now.
        unsafe {
            libc::sigaction(libc::SIGSEGV, &raw const self.old_action, std::ptr::null_mut());
            libc::sigaltstack(&raw const self.old_stack, std::ptr::null_mut());
        }
        EXPECTED.store(0, Ordering::SeqCst);
        TAKEN.store(false, Ordering::SeqCst);
    }
}

/// Loads `times` times from `page`.
///
/// # Safety
/// The handler is installed and expects faults at `page`.
#[inline(never)]
unsafe fn probe(page: *const u8, times: u64) {
    // SAFETY: the load writes to a register that is given up; the handler changes nothing but where it goes on.
    unsafe {
        core::arch::asm!(
            "2:",
            ".byte 0x48, 0x8b, 0x07", // mov rax, [rdi]: LOAD bytes
            "dec rsi",
            "jnz 2b",
            in("rdi") page,
            inout("rsi") times => _,
            out("rax") _,
        );
    }
}

/// Steps over the probing load; at any other fault gives the signal its default meaning, and the fault comes again.
extern "C" fn step_over(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes both for a handler with SA_SIGINFO, and the context is a `ucontext_t`.
    unsafe {
        if (*info).si_addr() as usize == EXPECTED.load(Ordering::Relaxed) {
            HANDLED.fetch_add(1, Ordering::Relaxed);
            let context = context.cast::<libc::ucontext_t>();
            (*context).uc_mcontext.gregs[libc::REG_RIP as usize] += LOAD;
        } else {
            libc::signal(signal, libc::SIG_DFL);
        }
    }
}
