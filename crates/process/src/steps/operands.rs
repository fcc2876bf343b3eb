//! Which memory an instruction accesses, from its bytes and the registers before it.

use std::collections::HashMap;

use iced_x86::{Decoder, DecoderOptions, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, Register};

use super::syscall::Registers;

/// The longest instruction of x86.
pub(super) const LONGEST: usize = 15;
/// Bytes of a line: accesses of a repeated string instruction within one are one.
const LINE: u64 = 64;

/// One access of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touch {
    pub address: u64,
    pub is_store: bool,
}

/// Decodes the instructions of one thread.
pub(super) struct Operands {
    known: HashMap<u64, Instruction>,
    info: InstructionInfoFactory,
    last_string: Option<(u64, [u64; 2])>,
}

impl Operands {
    pub(super) fn new() -> Self {
        Self {
            known: HashMap::new(),
            info: InstructionInfoFactory::new(),
            last_string: None,
        }
    }

    /// Adds what the next instruction accesses. `code` reads its bytes. Was it a call of the kernel? Is it a new instruction, and not
    /// another round of a repeated one?
    pub(super) fn next(
        &mut self,
        registers: &Registers,
        code: impl FnOnce(&mut [u8; LONGEST]) -> usize,
        touched: &mut Vec<Touch>,
        hidden: &mut u64,
    ) -> Next {
        let at = registers.rip;
        let instruction = *self.known.entry(at).or_insert_with(|| {
            let mut bytes = [0; LONGEST];
            let length = code(&mut bytes);
            Decoder::with_ip(64, &bytes[..length], at, DecoderOptions::NONE).decode()
        });
        let is_call = matches!(
            instruction.mnemonic(),
            Mnemonic::Syscall | Mnemonic::Int | Mnemonic::Sysenter
        );
        if is_call {
            // The kernel may have put other code there.
            self.known.clear();
        }
        let before = touched.len();
        self.add(&instruction, registers, touched, hidden);
        let is_string = instruction.has_rep_prefix() || instruction.has_repne_prefix();
        let is_another = is_string && self.is_another_round(at, before, touched);
        if !is_string {
            self.last_string = None;
        }
        Next {
            is_call,
            is_another,
            pushes_flags: instruction.mnemonic() == Mnemonic::Pushfq,
            pops_flags: (instruction.mnemonic() == Mnemonic::Popfq).then(|| instruction.next_ip()),
        }
    }

    /// Adds what an instruction accesses, and counts what cannot be known.
    fn add(&mut self, instruction: &Instruction, registers: &Registers, touched: &mut Vec<Touch>, hidden: &mut u64) {
        for memory in self.info.info(instruction).used_memory() {
            let value = |register: Register, _: usize, _: usize| value(registers, register);
            let accesses: &[bool] = match memory.access() {
                OpAccess::None | OpAccess::NoMemAccess => continue,
                OpAccess::Read | OpAccess::CondRead => &[false],
                OpAccess::Write | OpAccess::CondWrite => &[true],
                OpAccess::ReadWrite | OpAccess::ReadCondWrite => &[false, true],
            };
            match memory.virtual_address(0, value) {
                Some(address) => touched.extend(accesses.iter().map(|&is_store| Touch { address, is_store })),
                None => *hidden += 1,
            }
        }
    }

    /// Of a repeated instruction one access to each line counts.
    fn is_another_round(&mut self, at: u64, before: usize, touched: &mut Vec<Touch>) -> bool {
        let mut lines = [0; 2];
        for (line, touch) in lines.iter_mut().zip(&touched[before..]) {
            *line = touch.address / LINE;
        }
        let last = self.last_string.replace((at, lines));
        let is_another = last.is_some_and(|(place, _)| place == at);
        if last == Some((at, lines)) {
            touched.truncate(before);
        }
        is_another
    }
}

/// What is to be known of an instruction before it runs: does it call the kernel, is it another round of the one before, and does it push the
/// CPU's flags?
pub(super) struct Next {
    pub(super) is_call: bool,
    pub(super) is_another: bool,
    pub(super) pushes_flags: bool,
    /// The address of the next instruction, if it pops the CPU's flags.
    pub(super) pops_flags: Option<u64>,
}

/// The value of a register of 64 or 32 bits, or the base of a segment.
fn value(registers: &Registers, register: Register) -> Option<u64> {
    let full = match register.full_register() {
        Register::RAX => registers.rax,
        Register::RBX => registers.rbx,
        Register::RCX => registers.rcx,
        Register::RDX => registers.rdx,
        Register::RSI => registers.rsi,
        Register::RDI => registers.rdi,
        Register::RBP => registers.rbp,
        Register::RSP => registers.rsp,
        Register::R8 => registers.r8,
        Register::R9 => registers.r9,
        Register::R10 => registers.r10,
        Register::R11 => registers.r11,
        Register::R12 => registers.r12,
        Register::R13 => registers.r13,
        Register::R14 => registers.r14,
        Register::R15 => registers.r15,
        Register::RIP => registers.rip,
        Register::FS => registers.fs_base,
        Register::GS => registers.gs_base,
        Register::CS | Register::DS | Register::ES | Register::SS => 0,
        _ => return None,
    };
    Some(match register.size() {
        1 => full & 0xff,
        4 => full & 0xffff_ffff,
        _ => full,
    })
}

#[cfg(test)]
mod tests {
    use super::{Operands, Touch};

    /// Accesses of some code, each as its address and whether it stores.
    fn touched(code: &[u8], set: impl FnOnce(&mut super::Registers)) -> (Vec<(u64, bool)>, u64, bool) {
        let mut registers = super::super::no_registers();
        registers.rip = 0x1000;
        set(&mut registers);
        let (mut all, mut hidden) = (Vec::new(), 0);
        let read = |bytes: &mut [u8; super::LONGEST]| {
            bytes[..code.len()].copy_from_slice(code);
            code.len()
        };
        let next = Operands::new().next(&registers, read, &mut all, &mut hidden);
        let all = all.iter().map(|&Touch { address, is_store }| (address, is_store));
        (all.collect(), hidden, next.is_call)
    }

    #[test]
    fn operands_have_the_addresses_that_their_registers_give() {
        // mov rax, [rbx + 8*rcx + 16]
        let load = touched(&[0x48, 0x8b, 0x44, 0xcb, 0x10], |registers| {
            (registers.rbx, registers.rcx) = (0x5000, 3);
        });
        assert_eq!(load, (vec![(0x5028, false)], 0, false));
        // add dword [rip + 0x100], eax
        assert_eq!(
            touched(&[0x01, 0x05, 0, 1, 0, 0], |_| {}).0,
            [(0x1106, false), (0x1106, true)]
        );
        // push rbp; call +0; lea, which accesses nothing
        assert_eq!(touched(&[0x55], |registers| registers.rsp = 0x8000).0, [(0x7ff8, true)]);
        assert_eq!(
            touched(&[0xe8, 0, 0, 0, 0], |registers| registers.rsp = 0x8000).0,
            [(0x7ff8, true)]
        );
        assert_eq!(touched(&[0x48, 0x8d, 0x03], |_| {}).0, []);
        // mov eax, fs:[0x10]
        let thread = touched(&[0x64, 0x8b, 0x04, 0x25, 0x10, 0, 0, 0], |registers| {
            registers.fs_base = 0x7000;
        });
        assert_eq!(thread.0, [(0x7010, false)]);
        // movsq; vpgatherdd xmm1, [rax + xmm2], xmm3; syscall
        let string = touched(&[0x48, 0xa5], |registers| {
            (registers.rsi, registers.rdi) = (0x100, 0x200);
        });
        assert_eq!(string.0, [(0x200, true), (0x100, false)]);
        assert_eq!(touched(&[0xc4, 0xe2, 0x61, 0x90, 0x0c, 0x10], |_| {}).1, 1);
        assert!(touched(&[0x0f, 0x05], |_| {}).2);
    }
}
