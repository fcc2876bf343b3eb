//! The four programs that record context switches, in the instructions of Documentation/bpf/standardization/instruction-set.rst. Pure.

use super::btf::Layout;

/// What a record holds; its first word is the moment, then come two threads, the CPU, and these.
pub(crate) mod flag {
    /// The first thread left the CPU.
    pub(crate) const OUT: u32 = 1;
    /// The second thread got the CPU.
    pub(crate) const IN: u32 = 2;
    /// The first could have gone on.
    pub(crate) const PREEMPTED: u32 = 4;
    /// The first has ended.
    pub(crate) const DEAD: u32 = 8;
    /// The first was started, as part of the process that stands second.
    pub(crate) const FORK: u32 = 16;
    /// The first has the name that follows.
    pub(crate) const NAME: u32 = 32;
    /// The first executed a program, and has the number of its process since, which stands second.
    pub(crate) const EXEC: u32 = 64;
}

/// Bytes of a record, and of a name after it.
pub(crate) const RECORD: i32 = 24;
pub(crate) const NAME: i32 = 16;
/// Keys of the map of counts.
pub(crate) const LOST: u32 = 0;
pub(crate) const UNFOLLOWED: u32 = 1;

/// `TASK_DEAD` of the kernel's `linux/sched.h`: the state in which a thread leaves its CPU for the last time.
const TASK_DEAD: i32 = 0x80;
/// Helpers of `linux/bpf.h`.
const LOOKUP: i32 = 1;
const UPDATE: i32 = 2;
const DELETE: i32 = 3;
const KTIME: i32 = 5;
const CPU: i32 = 8;
const READ_TEXT: i32 = 115;
const RESERVE: i32 = 131;
const SUBMIT: i32 = 132;
/// `BPF_RB_NO_WAKEUP`: who reads the ring looks at it by itself.
const NO_WAKEUP: i32 = 1;

/// Codes of instructions.
const MOVE: u8 = 0xb7;
const COPY: u8 = 0xbf;
const ADD: u8 = 0x07;
const AND: u8 = 0x57;
const OR: u8 = 0x47;
const LOAD32: u8 = 0x61;
const LOAD64: u8 = 0x79;
const STORE32: u8 = 0x63;
const STORE64: u8 = 0x7b;
const ATOMIC64: u8 = 0xdb;
const GOTO: u8 = 0x05;
const IF_ZERO: u8 = 0x15;
const IF_NOT: u8 = 0x55;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;
const MAP: u8 = 0x18;
/// The source that makes the number of [`MAP`] that of a map's descriptor.
const OF_MAP: u8 = 1;

/// Registers: results, arguments from 1 on, those that calls keep from 6 on, and the end of the stack.
const R0: u8 = 0;
const R1: u8 = 1;
const R2: u8 = 2;
const R3: u8 = 3;
const R4: u8 = 4;
const R6: u8 = 6;
const R7: u8 = 7;
const R8: u8 = 8;
const R9: u8 = 9;
const END: u8 = 10;
/// Places on the stack.
const KEY: i16 = -4;
const VALUE: i16 = -8;

/// One instruction, as bpf(2) takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Instruction {
    code: u8,
    /// The target in the lower half.
    registers: u8,
    offset: i16,
    number: i32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Maps {
    /// Threads that are recorded, with their processes.
    pub(crate) followed: i32,
    pub(crate) ring: i32,
    pub(crate) counts: i32,
}

/// A place to go to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Label {
    Next,
    Preempted,
    Emit,
    Filled,
    NoRoom,
    End,
}

struct Code {
    maps: Maps,
    instructions: Vec<Instruction>,
    labels: Vec<(Label, usize)>,
    jumps: Vec<(Label, usize)>,
}

/// `sched_switch`: preempt, the thread that leaves, the one that comes, the state of the first.
pub(crate) fn switch(layout: &Layout, maps: Maps) -> Vec<Instruction> {
    let mut code = Code::new(maps);
    code.copy(R6, R1);
    code.argument(R1, 1);
    code.load(LOAD32, R7, R1, layout.pid);
    code.argument(R1, 2);
    code.load(LOAD32, R8, R1, layout.pid);
    // The record's flags.
    code.set(R9, 0);
    // The idle thread is never followed.
    code.jump(IF_ZERO, R7, 0, Label::Next);
    code.look_up(R7);
    code.jump(IF_ZERO, R0, 0, Label::Next);
    code.set(R9, flag::OUT.cast_signed());
    code.argument(R1, 3);
    code.jump(IF_ZERO, R1, 0, Label::Preempted);
    code.argument(R2, 0);
    code.op(AND, R2, 0, 0, 0xff);
    code.jump(IF_NOT, R2, 0, Label::Preempted);
    code.op(AND, R1, 0, 0, TASK_DEAD);
    code.jump(IF_ZERO, R1, 0, Label::Next);
    code.op(OR, R9, 0, 0, flag::DEAD.cast_signed());
    code.jump(GOTO, 0, 0, Label::Next);
    code.here(Label::Preempted);
    code.op(OR, R9, 0, 0, flag::PREEMPTED.cast_signed());
    code.here(Label::Next);
    code.jump(IF_ZERO, R8, 0, Label::Emit);
    code.look_up(R8);
    code.jump(IF_ZERO, R0, 0, Label::Emit);
    code.op(OR, R9, 0, 0, flag::IN.cast_signed());
    code.here(Label::Emit);
    code.jump(IF_ZERO, R9, 0, Label::End);
    code.emit(RECORD, |_| {});
    // Its number may belong to another thread next.
    code.op(AND, R9, 0, 0, flag::DEAD.cast_signed());
    code.jump(IF_ZERO, R9, 0, Label::End);
    code.forget(R7);
    code.finish()
}

/// `sched_process_fork`: the thread that starts another, the other.
pub(crate) fn fork(layout: &Layout, maps: Maps) -> Vec<Instruction> {
    let mut code = Code::new(maps);
    code.copy(R6, R1);
    code.argument(R1, 0);
    code.load(LOAD32, R7, R1, layout.pid);
    code.look_up(R7);
    code.jump(IF_ZERO, R0, 0, Label::End);
    code.argument(R1, 1);
    code.load(LOAD32, R7, R1, layout.pid);
    code.load(LOAD32, R8, R1, layout.tgid);
    code.set(R9, flag::FORK.cast_signed());
    code.follow(R7, R8);
    code.jump(IF_ZERO, R0, 0, Label::Emit);
    code.count(UNFOLLOWED);
    code.jump(GOTO, 0, 0, Label::End);
    code.here(Label::Emit);
    code.emit(RECORD, |_| {});
    code.finish()
}

/// `sched_process_exec`: the thread, and the number that it had before: a process whose other threads end gives the last one its own.
pub(crate) fn exec(layout: &Layout, maps: Maps) -> Vec<Instruction> {
    let mut code = Code::new(maps);
    code.copy(R6, R1);
    code.argument(R1, 0);
    code.load(LOAD32, R8, R1, layout.pid);
    code.load(LOAD64, R7, R6, 8);
    // Is it another number?
    code.copy(R1, R7);
    code.op(0xaf, R1, R8, 0, 0); // R1 ^= R8
    code.op(0x67, R1, 0, 0, 32); // R1 <<= 32: numbers have 32 bits.
    code.jump(IF_ZERO, R1, 0, Label::End);
    code.look_up(R7);
    code.jump(IF_ZERO, R0, 0, Label::End);
    code.set(R9, flag::EXEC.cast_signed());
    code.follow(R8, R8);
    code.forget(R7);
    code.emit(RECORD, |_| {});
    code.finish()
}

/// `task_rename`: the thread, its new name.
pub(crate) fn rename(layout: &Layout, maps: Maps) -> Vec<Instruction> {
    let mut code = Code::new(maps);
    code.copy(R6, R1);
    code.argument(R1, 0);
    code.load(LOAD32, R7, R1, layout.pid);
    code.set(R8, 0);
    code.look_up(R7);
    code.jump(IF_ZERO, R0, 0, Label::End);
    code.argument(R8, 1);
    code.set(R9, flag::NAME.cast_signed());
    code.emit(RECORD + NAME, |code| {
        code.copy(R1, R6);
        code.op(ADD, R1, 0, 0, RECORD);
        code.set(R2, NAME);
        code.copy(R3, R8);
        code.call(READ_TEXT);
    });
    code.finish()
}

impl Code {
    fn new(maps: Maps) -> Self {
        Self {
            maps,
            instructions: Vec::new(),
            labels: Vec::new(),
            jumps: Vec::new(),
        }
    }

    fn op(&mut self, code: u8, target: u8, source: u8, offset: i16, number: i32) {
        self.instructions.push(Instruction {
            code,
            registers: target | source << 4,
            offset,
            number,
        });
    }

    fn set(&mut self, target: u8, number: i32) {
        self.op(MOVE, target, 0, 0, number);
    }

    fn copy(&mut self, target: u8, source: u8) {
        self.op(COPY, target, source, 0, 0);
    }

    fn load(&mut self, size: u8, target: u8, from: u8, offset: i16) {
        self.op(size, target, from, offset, 0);
    }

    fn store(&mut self, size: u8, to: u8, offset: i16, source: u8) {
        self.op(size, to, source, offset, 0);
    }

    /// An argument of the tracepoint, whose arguments are kept in R6.
    fn argument(&mut self, target: u8, index: i16) {
        self.load(LOAD64, target, R6, 8 * index);
    }

    fn call(&mut self, helper: i32) {
        self.op(CALL, 0, 0, 0, helper);
    }

    fn jump(&mut self, code: u8, register: u8, number: i32, to: Label) {
        self.jumps.push((to, self.instructions.len()));
        self.op(code, register, 0, 0, number);
    }

    fn here(&mut self, label: Label) {
        self.labels.push((label, self.instructions.len()));
    }

    fn map(&mut self, target: u8, descriptor: i32) {
        self.op(MAP, target, OF_MAP, 0, descriptor);
        self.op(0, 0, 0, 0, 0);
    }

    fn place(&mut self, target: u8, place: i16) {
        self.copy(target, END);
        self.op(ADD, target, 0, 0, place.into());
    }

    /// The map of threads and a thread's number, as arguments.
    fn key(&mut self, tid: u8) {
        self.store(STORE32, END, KEY, tid);
        self.map(R1, self.maps.followed);
        self.place(R2, KEY);
    }

    /// R0 is zero of a thread that is not followed.
    fn look_up(&mut self, tid: u8) {
        self.key(tid);
        self.call(LOOKUP);
    }

    fn forget(&mut self, tid: u8) {
        self.key(tid);
        self.call(DELETE);
    }

    /// R0 is zero unless there is no room.
    fn follow(&mut self, tid: u8, pid: u8) {
        self.key(tid);
        self.store(STORE32, END, VALUE, pid);
        self.place(R3, VALUE);
        self.set(R4, 0);
        self.call(UPDATE);
    }

    /// Counts one that is missing, and goes on; to [`Label::End`] if the map is broken.
    fn count(&mut self, key: u32) {
        self.set(R1, key.cast_signed());
        self.store(STORE32, END, KEY, R1);
        self.map(R1, self.maps.counts);
        self.place(R2, KEY);
        self.call(LOOKUP);
        self.jump(IF_ZERO, R0, 0, Label::End);
        self.set(R1, 1);
        self.store(ATOMIC64, R0, 0, R1);
    }

    /// A record of the threads in R7 and R8 and the flags in R9, or a count if there is no room. R6 is its place in `more`.
    fn emit(&mut self, bytes: i32, more: impl FnOnce(&mut Self)) {
        self.map(R1, self.maps.ring);
        self.set(R2, bytes);
        self.set(R3, 0);
        self.call(RESERVE);
        self.jump(IF_ZERO, R0, 0, Label::NoRoom);
        self.copy(R6, R0);
        self.store(STORE32, R6, 8, R7);
        self.store(STORE32, R6, 12, R8);
        self.store(STORE32, R6, 20, R9);
        self.call(CPU);
        self.store(STORE32, R6, 16, R0);
        self.call(KTIME);
        self.store(STORE64, R6, 0, R0);
        more(self);
        self.copy(R1, R6);
        self.set(R2, NO_WAKEUP);
        self.call(SUBMIT);
        self.jump(GOTO, 0, 0, Label::Filled);
        self.here(Label::NoRoom);
        self.count(LOST);
        self.here(Label::Filled);
    }

    fn finish(mut self) -> Vec<Instruction> {
        self.here(Label::End);
        self.set(R0, 0);
        self.op(EXIT, 0, 0, 0, 0);
        for &(label, at) in &self.jumps {
            let to = self.labels.iter().find(|(name, _)| *name == label);
            let (_, to) = to.expect("each label that a program uses is in it");
            self.instructions[at].offset = (to - at - 1) as i16;
        }
        self.instructions
    }
}
