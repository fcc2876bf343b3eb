//! Which registers an instruction reads and writes, and how long it takes: the part of a core's model that depends on its bytes alone.

use iced_x86::{FlowControl, Instruction, InstructionInfo, Mnemonic, OpAccess, OpKind, Register, UsedRegister};

/// The number of the flags, which are one register here. It is that of [`Register::None`].
const FLAGS: u8 = 0;
/// Numbers of registers lie below.
pub(super) const REGISTERS: usize = 256;

/// How an instruction runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    #[default]
    Plain,
    /// After all before it, and before all behind it: atomic operations and fences.
    Serial,
    /// A repeated string instruction that moves or sets whole lines.
    Lines,
    /// A repeated string instruction that compares one item a round.
    Items,
}

/// The part of an instruction that is the same each time it runs.
#[derive(Clone, Debug, Default)]
pub(super) struct Flow {
    /// Registers that its addresses are computed from.
    pub(super) addresses: Vec<u8>,
    /// All registers that it reads, the flags among them.
    pub(super) reads: Vec<u8>,
    pub(super) writes: Vec<u8>,
    /// Cycles from its operands to its result, without those of a load.
    pub(super) latency: u64,
    /// Slots that it takes of a core's width.
    pub(super) slots: u64,
    /// Bytes of its memory operand.
    pub(super) bytes: u64,
    pub(super) kind: Kind,
    pub(super) branch: Branch,
    /// Is it a string instruction that repeats itself?
    pub(super) is_repeated: bool,
    /// Is a conditional branch that follows it fused with it?
    pub(super) fuses: bool,
}

/// Where an instruction may go on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Branch {
    /// At the next instruction, or at one place.
    #[default]
    None,
    /// At one place, which is not the next instruction.
    Jump,
    Conditional,
    Indirect,
    Call,
    IndirectCall,
    Return,
}

impl Flow {
    pub(super) fn of(instruction: &Instruction, info: &InstructionInfo) -> Self {
        let registers = || {
            info.used_registers()
                .iter()
                .filter(|used| !is_renamed(instruction, used))
        };
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        for used in registers() {
            if is_read(used) {
                reads.push(number(used.register()));
            }
            if is_written(used) {
                writes.push(number(used.register()));
            }
        }
        reads.extend((instruction.rflags_read() != 0).then_some(FLAGS));
        writes.extend((instruction.rflags_modified() != 0).then_some(FLAGS));
        let memory = info.used_memory();
        let bases = memory.iter().flat_map(|memory| [memory.base(), memory.index()]);
        let loads = memory.iter().any(|memory| is_load(memory.access()));
        let stores = memory.iter().any(|memory| is_store(memory.access()));
        let bytes = memory.iter().map(|memory| memory.memory_size().size() as u64).max();
        Self {
            addresses: bases.filter(|base| *base != Register::None).map(number).collect(),
            reads,
            writes,
            latency: latency(instruction, loads),
            slots: slots(instruction) + u64::from(loads && stores),
            bytes: bytes.unwrap_or(0),
            kind: kind(instruction, stores),
            branch: branch(instruction),
            is_repeated: is_repeated(instruction),
            fuses: fuses(instruction),
        }
    }
}

/// All parts of a register are one.
fn number(register: Register) -> u8 {
    register.full_register() as usize as u8
}

/// The stack engine of a core renames the stack pointer: what pushes or pops does not wait for the push before.
fn is_renamed(instruction: &Instruction, used: &UsedRegister) -> bool {
    instruction.is_stack_instruction() && used.register().full_register() == Register::RSP
}

/// A write of 8 or 16 bits, or one that is made on a condition, keeps a part of what was there.
fn is_read(used: &UsedRegister) -> bool {
    let is_part = used.register().is_gpr() && used.register().size() < 4;
    match used.access() {
        OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite | OpAccess::CondWrite => {
            true
        }
        OpAccess::Write => is_part,
        OpAccess::None | OpAccess::NoMemAccess => false,
    }
}

fn is_written(used: &UsedRegister) -> bool {
    is_store(used.access())
}

fn is_load(access: OpAccess) -> bool {
    matches!(
        access,
        OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite
    )
}

fn is_store(access: OpAccess) -> bool {
    matches!(
        access,
        OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite
    )
}

fn kind(instruction: &Instruction, stores: bool) -> Kind {
    match instruction.mnemonic() {
        Mnemonic::Mfence | Mnemonic::Cpuid | Mnemonic::Rdtsc | Mnemonic::Rdtscp | Mnemonic::Pause => Kind::Serial,
        Mnemonic::Xchg if stores => Kind::Serial,
        _ if instruction.has_lock_prefix() => Kind::Serial,
        _ if is_repeated(instruction) && stores => Kind::Lines,
        _ if is_repeated(instruction) => Kind::Items,
        _ => Kind::Plain,
    }
}

fn is_repeated(instruction: &Instruction) -> bool {
    instruction.is_string_instruction() && (instruction.has_rep_prefix() || instruction.has_repne_prefix())
}

fn branch(instruction: &Instruction) -> Branch {
    match instruction.flow_control() {
        FlowControl::UnconditionalBranch => Branch::Jump,
        FlowControl::ConditionalBranch => Branch::Conditional,
        FlowControl::IndirectBranch => Branch::Indirect,
        FlowControl::Call => Branch::Call,
        FlowControl::IndirectCall => Branch::IndirectCall,
        FlowControl::Return => Branch::Return,
        _ => Branch::None,
    }
}

fn fuses(instruction: &Instruction) -> bool {
    matches!(
        instruction.mnemonic(),
        Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Add | Mnemonic::Sub | Mnemonic::And | Mnemonic::Inc | Mnemonic::Dec
    )
}

/// An instruction that a core splits into several operations takes as many slots.
fn slots(instruction: &Instruction) -> u64 {
    match instruction.mnemonic() {
        Mnemonic::Div | Mnemonic::Idiv => 4,
        Mnemonic::Mul | Mnemonic::Call => 2,
        Mnemonic::Xchg => 3,
        Mnemonic::Cmpxchg | Mnemonic::Xadd => 4,
        _ => 1,
    }
}

/// Cycles by how the name begins, without the V of AVX; the first that fits counts. All others take one. Rounded from public instruction tables
/// of server cores since 2017.
const LATENCIES: [(&str, u64); 22] = [
    ("pmul", 5),
    ("pmadd", 5),
    ("cvt", 5),
    ("aes", 4),
    ("pclmul", 5),
    ("pcmpistr", 10),
    ("pcmpestr", 16),
    ("pmovmsk", 3),
    ("movmsk", 3),
    ("pextr", 3),
    ("pinsr", 3),
    ("ptest", 4),
    ("comis", 3),
    ("ucomis", 3),
    ("div", 14),
    ("idiv", 14),
    ("imul", 3),
    ("mul", 3),
    ("popcnt", 3),
    ("crc32", 3),
    ("pdep", 3),
    ("pext", 3),
];

/// The same of names that end with a floating-point type: ps, pd, ss, sd.
const FLOATING: [(&str, u64); 11] = [
    ("div", 13),
    ("sqrt", 13),
    ("add", 4),
    ("sub", 4),
    ("mul", 4),
    ("fm", 4),
    ("fnm", 4),
    ("min", 4),
    ("max", 4),
    ("cmp", 4),
    ("round", 8),
];

/// Cycles of an atomic operation, or a fence.
const SERIAL: u64 = 18;

fn latency(instruction: &Instruction, loads: bool) -> u64 {
    let name = format!("{:?}", instruction.mnemonic()).to_lowercase();
    let name = name.strip_prefix('v').unwrap_or(&name);
    let of = |table: &[(&str, u64)]| {
        let found = table.iter().find(|(begin, _)| name.starts_with(begin));
        found.map(|(_, cycles)| *cycles)
    };
    let is_floating = ["ps", "pd", "ss", "sd"].iter().any(|end| name.ends_with(end));
    if instruction.has_lock_prefix() {
        return SERIAL;
    }
    if name.starts_with("mov") && !name.starts_with("movmsk") {
        return moved(instruction, name, loads);
    }
    let floating = is_floating.then(|| of(&FLOATING)).flatten();
    match instruction.mnemonic() {
        Mnemonic::Pop | Mnemonic::Ret | Mnemonic::Leave | Mnemonic::Nop | Mnemonic::Endbr64 => 0,
        Mnemonic::Xchg if loads => SERIAL,
        Mnemonic::Mfence | Mnemonic::Pause | Mnemonic::Cpuid | Mnemonic::Rdtsc | Mnemonic::Rdtscp => SERIAL,
        Mnemonic::Bsf | Mnemonic::Bsr | Mnemonic::Lzcnt | Mnemonic::Tzcnt => 3,
        Mnemonic::Fadd | Mnemonic::Faddp | Mnemonic::Fsub | Mnemonic::Fmul | Mnemonic::Fmulp => 4,
        Mnemonic::Fdiv | Mnemonic::Fdivp | Mnemonic::Fdivr | Mnemonic::Fsqrt => 15,
        _ => floating.or_else(|| of(&LATENCIES)).unwrap_or(1),
    }
}

/// A core renames a register that is copied to another one of its kind. A copy to a vector register, or from one, takes some cycles.
fn moved(instruction: &Instruction, name: &str, loads: bool) -> u64 {
    let is_register = |operand| instruction.op_kind(operand) == OpKind::Register;
    if loads || !is_register(0) {
        return 0;
    }
    if !is_register(1) {
        return 1;
    }
    let (to, from) = (instruction.op0_register(), instruction.op1_register());
    let is_renamed = match name {
        "mov" => to.size() >= 4,
        "movaps" | "movapd" | "movups" | "movupd" | "movdqa" | "movdqu" => true,
        _ => false,
    };
    match to.is_gpr() == from.is_gpr() {
        false => 3,
        true => u64::from(!is_renamed),
    }
}
