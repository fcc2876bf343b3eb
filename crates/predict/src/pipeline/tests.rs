//! Code whose time on a core is known.

use std::collections::HashMap;

use super::{Branches, Code, Instruction, Mispredicted, Run, Timing, Wait};
use translation::machine::Core;
use translation::{Access, Side};

/// Of each piece of code.
const ROUNDS: usize = 1000;

/// An instruction, with the accesses that it comes with.
type Step<'a> = (&'a [u8], &'a [Access]);

const fn plain(bytes: &[u8]) -> Step<'_> {
    (bytes, &[])
}

/// Adds to six registers.
const ADDS: [Step; 6] = [
    plain(&[0x49, 0x83, 0xc0, 1]),
    plain(&[0x49, 0x83, 0xc1, 1]),
    plain(&[0x49, 0x83, 0xc2, 1]),
    plain(&[0x49, 0x83, 0xc3, 1]),
    plain(&[0x49, 0x83, 0xc4, 1]),
    plain(&[0x49, 0x83, 0xc5, 1]),
];
const LOADED: Access = Access::load(0x5000);
const STORED: Access = Access::new(0x6000, Side::Store);
/// mov [rbx], rax
const STORE: Step = (&[0x48, 0x89, 0x03], &[STORED]);
/// cmp r8, r9
const CMP: Step = plain(&[0x4d, 0x39, 0xc8]);
/// imul rax, rax
const IMUL: Step = plain(&[0x48, 0x0f, 0xaf, 0xc0]);
/// xor eax, eax
const ZERO: Step = plain(&[0x31, 0xc0]);
const fn jne(back: u8) -> [u8; 2] {
    [0x75, back.wrapping_neg()]
}

/// Code that is being put together.
#[derive(Default)]
struct Ran {
    code: Code,
    places: HashMap<Instruction, u32>,
    accesses: Vec<Access>,
}

impl Ran {
    fn step(&mut self, at: u64, bytes: &[u8], accesses: &[Access]) {
        let instruction = Instruction {
            at,
            bytes: bytes.to_vec(),
            accesses: accesses.len() as u8,
        };
        let place = *self.places.entry(instruction.clone()).or_insert_with(|| {
            self.code.known.push(instruction);
            self.code.known.len() as u32 - 1
        });
        self.code.order.push(place);
        self.accesses.extend(accesses);
    }

    /// Cycles on both cores, the wide one first.
    fn cycles(&self, mispredicted: Mispredicted, waits: &[Wait]) -> [f64; 2] {
        let run = Run::new(&self.code, &self.accesses, &mut Branches::default());
        let timing = Timing {
            counted: 0..self.accesses.len(),
            waits,
            mispredicted,
        };
        [Core::Wide, Core::Narrow].map(|core| run.cycles(core, &timing) as f64)
    }
}

/// Code again and again: in a loop, or in a row where each round has places of its own.
fn ran(code: &[Step], is_loop: bool, rounds: usize) -> Ran {
    let mut ran = Ran::default();
    let mut at = 0x1000;
    for _ in 0..rounds {
        at = if is_loop { 0x1000 } else { at };
        for (bytes, accesses) in code {
            ran.step(at, bytes, accesses);
            at += bytes.len() as u64;
        }
    }
    ran
}

/// Cycles of a round on both cores, without mispredicted branches.
fn each(code: &[Step]) -> [f64; 2] {
    of_round(&ran(code, false, ROUNDS))
}

fn of_round(ran: &Ran) -> [f64; 2] {
    ran.cycles(Mispredicted::None, &[]).map(|cycles| cycles / ROUNDS as f64)
}

#[track_caller]
fn assert_near(found: [f64; 2], expected: [f64; 2]) {
    let is_near = |(found, expected): (f64, f64)| (found - expected).abs() < 0.03 * expected + 0.03;
    assert!(
        found.into_iter().zip(expected).all(is_near),
        "expected {expected:?}, got {found:?}"
    );
}

#[test]
fn a_chain_takes_the_latency_of_each_of_its_instructions() {
    assert_near(each(&[(&[0x48, 0x8b, 0x00], &[LOADED])]), [5.0, 5.0]); // mov rax, [rax]
    assert_near(each(&[IMUL]), [3.0, 3.0]);
    assert_near(each(&[ADDS[0]]), [1.0, 1.0]);
    assert_near(each(&[plain(&[0xf2, 0x0f, 0x58, 0xc1])]), [4.0, 4.0]); // addsd xmm0, xmm1
    assert_near(each(&[plain(&[0xc5, 0xfb, 0x5e, 0xc1])]), [13.0, 13.0]); // vdivsd xmm0, xmm0, xmm1
    assert_near(each(&[plain(&[0x48, 0xf7, 0xf1])]), [14.0, 14.0]); // div rcx
    assert_near(each(&[(&[0x48, 0x03, 0x00], &[LOADED])]), [6.0, 6.0]); // add rax, [rax]
    assert_near(each(&[plain(&[0x48, 0x11, 0xd8])]), [1.0, 1.0]); // adc rax, rbx
    let [to, back] = [[0x66, 0x48, 0x0f, 0x6e, 0xc0], [0x66, 0x48, 0x0f, 0x7e, 0xc0]];
    assert_near(each(&[plain(&to), plain(&back)]), [6.0, 6.0]); // movq and back
}

#[test]
fn independent_instructions_fill_the_width() {
    assert_near(each(&ADDS), [1.0, 1.5]);
    // Two loads a cycle, or three: mov rcx, [rbx]; mov rdx, [rbx]; mov rsi, [rbx]
    let loads = [[0x48, 0x8b, 0x0b], [0x48, 0x8b, 0x13], [0x48, 0x8b, 0x33]];
    let loads: Vec<Step> = loads.iter().map(|bytes| (&bytes[..], &[LOADED][..])).collect();
    assert_near(each(&loads), [1.0, 1.5]);
    assert_near(each(&[STORE]), [0.5, 1.0]);
    // mov rcx, imm64: ten bytes each, of which 64 or 32 are fetched.
    assert_near(
        each(&[plain(&[0x48, 0xb9, 1, 2, 3, 4, 5, 6, 7, 8])]),
        [10.0 / 60.0, 10.0 / 32.0],
    );
}

#[test]
fn a_compare_and_its_branch_are_one_and_a_loop_takes_a_cycle() {
    let in_loop = |back: u8, front: &[Step]| {
        let back = jne(back);
        let code: Vec<Step> = front.iter().copied().chain([plain(&back)]).collect();
        ran(&code, true, ROUNDS)
    };
    let full = in_loop(25, &[&ADDS[..5], &[CMP]].concat());
    assert_near(of_round(&full), [1.0, 1.5]);
    let [lost, none] = [Mispredicted::Lost, Mispredicted::None].map(|kind| full.cycles(kind, &[]));
    assert_near(lost, none);
    assert_near(of_round(&in_loop(9, &[ADDS[0], CMP])), [1.0, 1.0]);
    // Nothing to be fused with: nop.
    let apart = in_loop(26, &[&ADDS[..5], &[CMP, plain(&[0x90])]].concat());
    assert_near(of_round(&apart), [8.0 / 6.0, 2.0]);
}

#[test]
fn a_load_waits_for_the_store_before_it_to_the_same_word() {
    let same: Step = (&[0x48, 0x8b, 0x03], &[Access::load(0x6000)]);
    let other: Step = (&[0x48, 0x8b, 0x43, 0x08], &[Access::load(0x6008)]);
    assert_near(each(&[STORE, same]), [5.0, 5.0]);
    assert_near(each(&[STORE, other]), [0.5, 1.0]);
    // movups [rbx], xmm0; movsd xmm0, [rbx + 8]: a store of several words.
    let several: [Step; 2] = [
        (&[0x0f, 0x11, 0x03], &[STORED]),
        (&[0xf2, 0x0f, 0x10, 0x43, 0x08], &[Access::load(0x6008)]),
    ];
    assert_near(each(&several), [5.0, 5.0]);
}

#[test]
fn the_stack_pointer_forms_no_chain_but_what_it_is_set_to_counts() {
    assert_near(each(&[(&[0x50], &[STORED])]), [0.5, 1.0]); // push rax
    assert_near(each(&[(&[0x58], &[LOADED])]), [1.0 / 3.0, 0.5]); // pop rax
    assert_near(each(&[plain(&[0x48, 0x83, 0xec, 8])]), [1.0, 1.0]); // sub rsp, 8
}

#[test]
fn zeroing_and_moves_form_no_chain() {
    assert_near(each(&[IMUL, ZERO]), [2.0 / 6.0, 0.5]);
    // mov rbx, rax; mov rax, rbx
    assert_near(
        each(&[plain(&[0x48, 0x89, 0xc3]), plain(&[0x48, 0x89, 0xd8])]),
        [2.0 / 6.0, 0.5],
    );
    // mov al, 1 keeps the rest of what imul waits for.
    assert_near(each(&[IMUL, plain(&[0xb0, 1])]), [4.0, 4.0]);
}

#[test]
fn chains_overlap_as_far_as_the_reorder_buffer_reaches() {
    let chain: Vec<Step> = [ZERO].into_iter().chain([IMUL; 100]).collect();
    let [wide, narrow] = each(&chain);
    assert!((40.0..60.0).contains(&wide), "{wide}");
    assert!((70.0..100.0).contains(&narrow), "{narrow}");
}

#[test]
fn atomic_operations_wait_for_all_and_all_for_them() {
    // lock add [rbx], rax
    let both = [Access::load(0x6000), STORED];
    let [wide, _] = each(&[(&[0xf0, 0x48, 0x01, 0x03], &both), ADDS[0]]);
    assert!((20.0..30.0).contains(&wide), "{wide}");
}

#[test]
fn repeated_string_instructions_move_lines_and_not_bytes() {
    let rounds = |bytes: &[u8]| {
        let mut ran = Ran::default();
        for byte in 0..6400_u64 {
            let line = [Access::load(0x5000 + byte), Access::new(0x9000 + byte, Side::Store)];
            ran.step(0x1000, bytes, if byte % 64 == 0 { &line } else { &[] });
        }
        ran.cycles(Mispredicted::None, &[])[0]
    };
    assert!((200.0..300.0).contains(&rounds(&[0xf3, 0xa4])), "rep movsb");
    assert!((6400.0..6500.0).contains(&rounds(&[0xf3, 0xa6])), "repe cmpsb");
}

/// A branch over one instruction, at random: the other way has a jump of its own. Behind it comes the same code, which loads from another line each round.
fn at_random(behind: &[&[u8]]) -> Ran {
    let (mut ran, mut state) = (Ran::default(), 88_172_645_463_325_252_u64);
    for round in 0..ROUNDS as u64 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        ran.step(0x1000, &[0x75, 2], &[]); // jne 0x1004
        if state >> 63 == 0 {
            ran.step(0x1002, &[0xeb, 0], &[]); // jmp 0x1004
        }
        let mut at = 0x1004;
        for (place, bytes) in behind.iter().enumerate() {
            let loads = [Access::load(0x10_0000 + (round << 6))];
            ran.step(at, bytes, if place == 0 { &loads } else { &[] });
            at += bytes.len() as u64;
        }
        ran.step(at, &[0xeb, 0], &[]);
    }
    ran
}

#[test]
fn a_mispredicted_branch_empties_the_core() {
    let ran = at_random(&[]);
    let [lost, none] = [Mispredicted::Lost, Mispredicted::None].map(|kind| ran.cycles(kind, &[])[0]);
    // Half of them, 17 cycles and some for the branch.
    let each = (lost - none) / ROUNDS as f64;
    assert!((7.0..=11.0).contains(&each), "{each}");
}

#[test]
fn behind_a_mispredicted_branch_loads_may_have_begun() {
    // mov rax, [rbx]; three multiplications; cmp rax, rax, for which the next branch waits. The next load waits for nothing.
    let imul: &[u8] = IMUL.0;
    let ran = at_random(&[&[0x48, 0x8b, 0x03], imul, imul, imul, &[0x48, 0x39, 0xc0]]);
    let slow = Wait {
        line: 300,
        ..Wait::default()
    };
    let waits = vec![slow; ran.accesses.len()];
    let slower = |kind| (ran.cycles(kind, &waits)[0] - ran.cycles(kind, &[])[0]) / ROUNDS as f64;
    let (lost, joins) = (slower(Mispredicted::Lost), slower(Mispredicted::Joins));
    // Half of the branches are mispredicted, and each of those loads waits in vain.
    assert!((100.0..200.0).contains(&lost), "{lost}");
    assert!(joins < 0.7 * lost, "{joins} of {lost}");
}

/// A page for each round.
fn far(code: &[u8], beside: &[Step], wait: Wait) -> [f64; 2] {
    let mut ran = Ran::default();
    let mut at = 0x1000;
    for round in 0..ROUNDS as u64 {
        ran.step(at, code, &[Access::load(0x10_0000 + (round << 12))]);
        at += code.len() as u64;
        for (bytes, accesses) in beside {
            ran.step(at, bytes, accesses);
            at += bytes.len() as u64;
        }
    }
    let waits = vec![wait; ran.accesses.len()];
    let slower = [&waits[..], &[]].map(|waits| ran.cycles(Mispredicted::None, waits));
    [0, 1].map(|core| (slower[0][core] - slower[1][core]) / ROUNDS as f64)
}

#[test]
fn waits_of_a_chain_come_one_after_the_other_and_others_overlap() {
    // mov rsi, [rsi]; mov rax, [rsi].
    let [chain, others]: [&[u8]; 2] = [&[0x48, 0x8b, 0x36], &[0x48, 0x8b, 0x06]];
    let line = Wait {
        line: 400,
        ..Wait::default()
    };
    let walk = Wait {
        translation: 400,
        is_walk: true,
        ..Wait::default()
    };
    for wait in [line, walk] {
        assert_near(far(chain, &[], wait), [400.0, 400.0]);
    }
    // With 64 instructions for each wait the reorder buffers hold eight waits, and 3.5. The instructions themselves hide 11 cycles of each, and 16.
    let work: Vec<Step> = (0..63).map(|at| ADDS[at % 6]).collect();
    let found = far(others, &work, line);
    let expected = [400.0 / 8.0 - 10.7, 400.0 / 3.5 - 16.0];
    assert!(
        [0, 1]
            .iter()
            .all(|&core| (found[core] / expected[core] - 1.0).abs() < 0.15),
        "{found:?}, expected {expected:?}"
    );
    // Nothing else to do: as many as there are fill buffers, and walkers.
    assert_near(far(others, &[], line), [400.0 / 16.0, 400.0 / 12.0]);
    assert_near(far(others, &[], walk), [400.0 / 6.0, 400.0 / 2.0]);
}

#[test]
fn a_short_wait_hides_behind_a_long_one_and_one_for_the_same_line_is_one() {
    let others: &[u8] = &[0x48, 0x8b, 0x06];
    let mut ran = Ran::default();
    let mut at = 0x1000;
    for round in 0..ROUNDS as u64 {
        // Both loads to one line, then one to another line that comes sooner.
        for address in [0, 8, 0x800] {
            ran.step(at, others, &[Access::load(0x10_0000 + (round << 12) + address)]);
            at += 3;
        }
        ran.step(at, &[0x0f, 0xae, 0xf0], &[]); // mfence
        at += 3;
    }
    let wait = |line| Wait {
        line,
        ..Wait::default()
    };
    let cycles = |waits: [u64; 3]| {
        let waits: Vec<Wait> = waits.map(wait).repeat(ROUNDS);
        ran.cycles(Mispredicted::None, &waits)[0] / ROUNDS as f64
    };
    let one = cycles([400, 0, 0]);
    assert!((400.0..450.0).contains(&one), "{one}");
    assert!((cycles([400, 0, 300]) - one).abs() < 2.0);
}

#[test]
fn lines_of_a_stream_come_one_after_the_other() {
    let others: &[u8] = &[0x48, 0x8b, 0x06];
    let fetched = Wait {
        fetched: Some((500, 25.0)),
        ..Wait::default()
    };
    assert_near(far(others, &[], fetched), [25.0, 25.0]);
    // Slower code does not wait for them.
    let work: Vec<Step> = (0..240).map(|at| ADDS[at % 6]).collect();
    let [wide, _] = far(others, &work, fetched);
    assert!(wide < 1.0, "{wide}");
}

#[test]
fn stores_wait_behind_the_core_until_their_buffer_is_full() {
    let store = |round: u64| [Access::new(0x10_0000 + (round << 12), Side::Store)];
    let cycles = |beside: usize| {
        let mut ran = Ran::default();
        for round in 0..ROUNDS as u64 {
            ran.step(0x1000, STORE.0, &store(round));
            for add in 0..beside {
                ran.step(0x1003 + 4 * add as u64, ADDS[add % 6].0, &[]);
            }
        }
        let waits = vec![
            Wait {
                line: 400,
                ..Wait::default()
            };
            ROUNDS
        ];
        [&waits[..], &[]].map(|waits| ran.cycles(Mispredicted::None, waits)[0] / ROUNDS as f64)
    };
    // As many lines at a time as there are fill buffers; the last stores are behind the end.
    let [with, _] = cycles(0);
    assert!((21.0..27.0).contains(&with), "{with}");
    let [with, without] = cycles(240);
    assert!(with - without < 1.0, "{with} and {without}");
}
