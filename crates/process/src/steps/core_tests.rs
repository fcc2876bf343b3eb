//! Code whose time on a core is known.

use super::super::operands::{LONGEST, Operands};
use super::{Core, Cores, Learned};

/// Of each piece of code.
const ROUNDS: usize = 1000;

const ADDS: [&[u8]; 6] = [
    &[0x49, 0x83, 0xc0, 1],
    &[0x49, 0x83, 0xc1, 1],
    &[0x49, 0x83, 0xc2, 1],
    &[0x49, 0x83, 0xc3, 1],
    &[0x49, 0x83, 0xc4, 1],
    &[0x49, 0x83, 0xc5, 1],
];
/// mov [rbx], rax
const STORE: &[u8] = &[0x48, 0x89, 0x03];
/// cmp r8, r9
const CMP: &[u8] = &[0x4d, 0x39, 0xc8];
/// imul rax, rax
const IMUL: &[u8] = &[0x48, 0x0f, 0xaf, 0xc0];
/// xor eax, eax
const ZERO: &[u8] = &[0x31, 0xc0];
/// jne back by so much
const fn jne(back: u8) -> [u8; 2] {
    [0x75, back.wrapping_neg()]
}

/// Runs code again and again, in a row or in a loop, with addresses by the round.
fn run(code: &[&[u8]], is_loop: bool, address: impl Fn(usize) -> u64) -> Core {
    let (mut learned, mut operands) = (Learned::default(), Operands::new());
    let mut cores = Cores::new(&mut learned);
    let mut registers = super::super::no_registers();
    for round in 0..ROUNDS {
        registers.rip = if is_loop { 0x1000 } else { registers.rip.max(0x1000) };
        (registers.rax, registers.rbx, registers.rsp) = (0x5000, 0x6000, 0x8000);
        (registers.rsi, registers.rdi) = (address(round), 0x10_0000 + address(round));
        for bytes in code {
            let (mut touched, mut hidden) = (Vec::new(), 0);
            let read = |into: &mut [u8; LONGEST]| {
                into[..bytes.len()].copy_from_slice(bytes);
                bytes.len()
            };
            let next = operands.next(&registers, read, &mut touched, &mut hidden);
            cores.take(registers.rip, &next, &touched);
            registers.rip = next.behind;
        }
    }
    cores.so_far()
}

/// Cycles of a round on both cores, without mispredicted branches.
fn each(code: &[&[u8]]) -> [f64; 2] {
    let core = run(code, false, |_| 0);
    [core.wide, core.narrow].map(|cycles| cycles.predicted as f64 / ROUNDS as f64)
}

#[track_caller]
fn assert_near(found: [f64; 2], expected: [f64; 2]) {
    let is_near = |(found, expected): (f64, f64)| (found - expected).abs() < 0.03 * expected + 0.02;
    assert!(
        found.into_iter().zip(expected).all(is_near),
        "expected {expected:?}, got {found:?}"
    );
}

#[test]
fn a_chain_takes_the_latency_of_each_of_its_instructions() {
    assert_near(each(&[&[0x48, 0x8b, 0x00]]), [5.0, 5.0]); // mov rax, [rax]
    assert_near(each(&[IMUL]), [3.0, 3.0]);
    assert_near(each(&[ADDS[0]]), [1.0, 1.0]);
    assert_near(each(&[&[0xf2, 0x0f, 0x58, 0xc1]]), [4.0, 4.0]); // addsd xmm0, xmm1
    assert_near(each(&[&[0xc5, 0xfb, 0x5e, 0xc1]]), [13.0, 13.0]); // vdivsd xmm0, xmm0, xmm1
    assert_near(each(&[&[0x48, 0xf7, 0xf1]]), [14.0, 14.0]); // div rcx
    assert_near(each(&[&[0x48, 0x03, 0x00]]), [6.0, 6.0]); // add rax, [rax]
    assert_near(each(&[&[0x48, 0x11, 0xd8]]), [1.0, 1.0]); // adc rax, rbx
    assert_near(
        each(&[&[0x66, 0x48, 0x0f, 0x6e, 0xc0], &[0x66, 0x48, 0x0f, 0x7e, 0xc0]]),
        [6.0, 6.0],
    ); // movq and back
}

#[test]
fn independent_instructions_fill_the_width() {
    assert_near(each(&ADDS), [1.0, 1.5]);
    // Two loads a cycle, or three: mov rcx, [rbx]; mov rdx, [rbx]; mov rsi, [rbx]
    let loads: [&[u8]; 3] = [&[0x48, 0x8b, 0x0b], &[0x48, 0x8b, 0x13], &[0x48, 0x8b, 0x33]];
    assert_near(each(&loads), [1.0, 1.5]);
    assert_near(each(&[STORE]), [0.5, 1.0]);
    // mov rcx, imm64: ten bytes each, of which 64 or 32 are fetched.
    assert_near(
        each(&[&[0x48, 0xb9, 1, 2, 3, 4, 5, 6, 7, 8]]),
        [10.0 / 60.0, 10.0 / 32.0],
    );
}

#[test]
fn a_compare_and_its_branch_are_one_and_a_loop_takes_a_cycle() {
    let back = jne(25);
    let full: Vec<&[u8]> = ADDS[..5].iter().copied().chain([CMP, &back]).collect();
    let core = run(&full, true, |_| 0);
    assert_near(cycles(&core), [1.0, 1.5]);
    assert_eq!(core.mispredicted, 0);
    assert_eq!(core.wide.all, core.wide.predicted);
    let back = jne(9);
    assert_near(cycles(&run(&[ADDS[0], CMP, &back], true, |_| 0)), [1.0, 1.0]);
    // Nothing to be fused with: nop.
    let back = jne(26);
    let apart: Vec<&[u8]> = ADDS[..5].iter().copied().chain([CMP, &[0x90], &back]).collect();
    assert_near(cycles(&run(&apart, true, |_| 0)), [8.0 / 6.0, 2.0]);
}

fn cycles(core: &Core) -> [f64; 2] {
    [core.wide, core.narrow].map(|cycles| cycles.predicted as f64 / ROUNDS as f64)
}

#[test]
fn a_load_waits_for_the_store_before_it_to_the_same_word() {
    let (same, other): (&[u8], &[u8]) = (&[0x48, 0x8b, 0x03], &[0x48, 0x8b, 0x43, 0x08]);
    assert_near(each(&[STORE, same]), [5.0, 5.0]);
    assert_near(each(&[STORE, other]), [0.5, 1.0]);
    // movups [rbx], xmm0; movsd xmm0, [rbx + 8]: a store of several words.
    assert_near(
        each(&[&[0x0f, 0x11, 0x03], &[0xf2, 0x0f, 0x10, 0x43, 0x08]]),
        [5.0, 5.0],
    );
}

#[test]
fn the_stack_pointer_forms_no_chain_but_what_it_is_set_to_counts() {
    assert_near(each(&[&[0x50]]), [0.5, 1.0]); // push rax
    assert_near(each(&[&[0x58]]), [1.0 / 3.0, 0.5]); // pop rax
    assert_near(each(&[&[0x48, 0x83, 0xec, 8]]), [1.0, 1.0]); // sub rsp, 8
}

#[test]
fn zeroing_and_moves_form_no_chain() {
    assert_near(each(&[IMUL, ZERO]), [2.0 / 6.0, 0.5]);
    // mov rbx, rax; mov rax, rbx
    assert_near(each(&[&[0x48, 0x89, 0xc3], &[0x48, 0x89, 0xd8]]), [2.0 / 6.0, 0.5]);
    // mov al, 1 keeps the rest of what imul waits for.
    assert_near(each(&[IMUL, &[0xb0, 1]]), [4.0, 4.0]);
}

#[test]
fn chains_overlap_as_far_as_the_reorder_buffer_reaches() {
    let chain: Vec<&[u8]> = [ZERO].into_iter().chain([IMUL; 100]).collect();
    let [wide, narrow] = each(&chain);
    assert!((40.0..60.0).contains(&wide), "{wide}");
    assert!((70.0..100.0).contains(&narrow), "{narrow}");
}

#[test]
fn atomic_operations_wait_for_all_and_all_for_them() {
    let [wide, _] = each(&[&[0xf0, 0x48, 0x01, 0x03], ADDS[0]]); // lock add [rbx], rax
    assert!((20.0..30.0).contains(&wide), "{wide}");
}

#[test]
fn repeated_string_instructions_move_lines_and_not_bytes() {
    let rounds = |code: &[u8]| {
        let (mut learned, mut operands) = (Learned::default(), Operands::new());
        let mut cores = Cores::new(&mut learned);
        let mut registers = super::super::no_registers();
        registers.rip = 0x1000;
        for byte in 0..6400 {
            (registers.rsi, registers.rdi) = (0x5000 + byte, 0x9000 + byte);
            let (mut touched, mut hidden) = (Vec::new(), 0);
            let read = |into: &mut [u8; LONGEST]| {
                into[..code.len()].copy_from_slice(code);
                code.len()
            };
            let next = operands.next(&registers, read, &mut touched, &mut hidden);
            cores.take(0x1000, &next, &touched);
        }
        cores.so_far().wide.predicted
    };
    assert!((200..300).contains(&rounds(&[0xf3, 0xa4])), "rep movsb");
    assert!((6400..6500).contains(&rounds(&[0xf3, 0xa6])), "repe cmpsb");
}

#[test]
fn a_mispredicted_branch_empties_the_core() {
    let (mut learned, mut operands) = (Learned::default(), Operands::new());
    let mut cores = Cores::new(&mut learned);
    let mut registers = super::super::no_registers();
    let mut state = 88_172_645_463_325_252_u64;
    for _ in 0..ROUNDS {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        // jne over 6 bytes, or not; the other way is six nops.
        let way = if state >> 63 == 0 {
            vec![0x1000]
        } else {
            vec![0x1000, 0x1002]
        };
        for at in way {
            registers.rip = at;
            let read = |into: &mut [u8; LONGEST]| {
                into[..2].copy_from_slice(if at == 0x1000 { &[0x75, 6] } else { &[0xeb, 4] });
                2
            };
            let next = operands.next(&registers, read, &mut Vec::new(), &mut 0);
            cores.take(at, &next, &[]);
        }
    }
    let core = cores.so_far();
    assert!((400..600).contains(&core.mispredicted), "{}", core.mispredicted);
    let cost = (core.wide.all - core.wide.predicted) / core.mispredicted;
    assert!((14..=20).contains(&cost), "{cost}");
}

#[test]
fn waits_of_a_chain_come_one_after_the_other_and_others_overlap() {
    // A page each round: mov rsi, [rsi]; mov rax, [rsi].
    let [chain, others]: [&[u8]; 2] = [&[0x48, 0x8b, 0x36], &[0x48, 0x8b, 0x06]];
    let far = |round: usize| (round as u64) << 12;
    for overlap in [Core::overlap_of_lines, Core::overlap_of_pages] {
        let [narrow, wide] = overlap(&run(&[chain], false, far));
        assert!(narrow < 1.1 && wide < 1.1, "{narrow} and {wide}");
        // With 64 instructions for each wait the reorder buffers hold 3.5 waits, and 8. The instructions themselves hide 16 cycles of each, and 11.
        let work: Vec<&[u8]> = [others].into_iter().chain((0..63).map(|at| ADDS[at % 6])).collect();
        let [narrow, wide] = overlap(&run(&work, false, far));
        let expected = [400.0 / (400.0 / 3.5 - 16.0), 400.0 / (400.0 / 8.0 - 10.7)];
        assert!(
            (narrow / expected[0] - 1.0).abs() < 0.15 && (wide / expected[1] - 1.0).abs() < 0.15,
            "{narrow} and {wide}, expected {expected:?}"
        );
    }
    // rep movsb, at one place in the code: of 1,000 rounds the first one waits.
    let string = run(&[&[0xf3, 0xa4]], true, far);
    assert!(string.lines <= 2 && string.pages <= 2, "{string:?}");
    let same = run(&[others], false, |_| 0);
    assert_eq!((same.lines, same.pages), (1, 1));
}
