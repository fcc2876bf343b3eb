//! Branches that are learned, and some that cannot be.

use super::{Branch, Branches};

const AT: u64 = 0x1000;
const BEHIND: u64 = 0x1006;
const TARGET: u64 = 0x2000;
const END: u64 = 0x3000;
const COUNT: u64 = 4000;

/// Runs one round of a loop: a branch, and the jump back.
fn round(branches: &mut Branches, branch: Branch, to: u64) -> bool {
    branches.runs(AT, BEHIND, branch);
    let is_wrong = branches.went(to);
    branches.runs(END, END + 2, Branch::Jump);
    assert!(!branches.went(AT));
    is_wrong
}

/// How often a branch of a loop is mispredicted that goes to these places, one after the other.
fn wrong(branch: Branch, targets: impl Fn(u64) -> u64) -> u64 {
    let mut branches = Branches::default();
    let goes = |number| u64::from(round(&mut branches, branch, targets(number)));
    (0..COUNT).map(goes).sum()
}

fn conditional(is_taken: impl Fn(u64) -> bool) -> u64 {
    wrong(
        Branch::Conditional,
        |number| if is_taken(number) { TARGET } else { BEHIND },
    )
}

fn random(number: u64) -> u64 {
    translation::random::mixed(number ^ translation::random::mixed(77))
}

#[test]
fn what_is_always_taken_is_never_mispredicted() {
    assert_eq!(conditional(|_| true), 0);
    assert_eq!(conditional(|_| false), 0);
}

#[test]
fn a_random_branch_is_mispredicted_half_the_time() {
    let found = conditional(|number| random(number).is_multiple_of(2));
    assert!((COUNT * 2 / 5..COUNT * 3 / 5).contains(&found), "{found}");
    let found = conditional(|number| random(number).is_multiple_of(10));
    assert!((COUNT / 20..COUNT / 5).contains(&found), "{found}");
}

#[test]
fn patterns_are_learned() {
    let patterns: [fn(u64) -> bool; 4] = [
        |number| number % 2 == 0,
        |number| number % 3 == 0,
        |number| number % 20 != 0,
        |number| 0b1101_0010 >> (number % 8) & 1 == 1,
    ];
    for (place, pattern) in patterns.into_iter().enumerate() {
        let found = conditional(pattern);
        assert!((1..COUNT / 50).contains(&found), "{place}: {found}");
    }
}

#[test]
fn targets_are_learned_by_what_came_before() {
    let found = wrong(Branch::Indirect, |number| TARGET + 64 * (number % 5));
    assert!((1..COUNT / 50).contains(&found), "{found}");
    let found = wrong(Branch::IndirectCall, |number| TARGET + 64 * (random(number) % 8));
    assert!(found > COUNT * 3 / 4, "{found}");
}

#[test]
fn direct_jumps_and_first_encounters_are_not_counted() {
    assert_eq!(wrong(Branch::Jump, random), 0);
    assert_eq!(wrong(Branch::Call, random), 0);
    let mut branches = Branches::default();
    for number in 0..1000 {
        branches.runs(AT + 16 * number, BEHIND + 16 * number, Branch::Indirect);
        assert!(!branches.went(random(number)), "{number}");
    }
}

#[test]
fn returns_go_to_where_the_last_call_was() {
    let mut branches = Branches::default();
    let mut step = |branch: Branch, behind: u64, to: u64| {
        branches.runs(behind - 5, behind, branch);
        branches.went(to)
    };
    assert!(!step(Branch::Call, 0x1005, 0x2000));
    assert!(!step(Branch::IndirectCall, 0x2005, 0x3000));
    assert!(!step(Branch::Return, 0x3005, 0x2005));
    assert!(step(Branch::Return, 0x2105, 0x1234));
    // Called before the window.
    assert!(!step(Branch::Return, 0x1105, 0x9999));
    assert!(!step(Branch::Call, 0x1005, 0x2000));
    branches.begin();
    branches.runs(0x2000, 0x2001, Branch::Return);
    assert!(!branches.went(0x7777));
}

#[test]
fn what_was_learned_stays_for_the_next_window() {
    let mut branches = Branches::default();
    let mut window = || {
        branches.begin();
        let mut found = 0;
        for number in 0..200 {
            let to = if number % 8 == 0 { TARGET } else { BEHIND };
            found += u64::from(round(&mut branches, Branch::Conditional, to));
        }
        found
    };
    let (first, second) = (window(), window());
    assert!(first > 0 && second == 0, "{first} {second}");
}
