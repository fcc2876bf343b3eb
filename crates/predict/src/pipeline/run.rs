//! A window's instructions, ready to run on a core as often as there are sets of waits.

use std::collections::HashMap;
use std::ops::Range;

use iced_x86::{Decoder, DecoderOptions, InstructionInfoFactory};

use super::branches::Branches;
use super::code::{Code, Instruction};
use super::flow::Flow;
use super::timeline::{Names, Shape, Timeline, Touch, Wait};
use translation::machine::Core;
use translation::{Access, Side};

/// Address bits within a word of memory whose last store is known, a line, and a page.
const WORD: u32 = 3;
const LINE: u32 = 6;
const PAGE: u32 = 12;

/// Instructions with their accesses, and the branches among them that a core would mispredict.
#[derive(Clone, Debug)]
pub struct Run {
    known: Vec<Known>,
    steps: Vec<Step>,
    touched: Vec<Touch>,
    names: Names,
}

/// An instruction, decoded.
#[derive(Clone, Debug)]
struct Known {
    at: u64,
    behind: u64,
    flow: Flow,
    accesses: usize,
}

#[derive(Clone, Copy, Debug)]
struct Step {
    known: u32,
    /// Was the branch before it mispredicted?
    is_flushed: bool,
    /// Is it a further round of a repeated string instruction?
    is_another: bool,
}

/// What is asked of a run.
#[derive(Clone, Debug)]
pub struct Timing<'a> {
    /// The accesses whose instructions are timed.
    pub counted: Range<usize>,
    /// How long each of them waits; without it none waits.
    pub waits: &'a [Wait],
    /// What becomes of mispredicted branches.
    pub mispredicted: Mispredicted,
}

/// What a mispredicted branch costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mispredicted {
    None,
    /// All that ran behind it is lost.
    Lost,
    /// The same, but both its ways soon come to the same instructions, whose loads have begun then. Most conditional branches are so; of others this is an end.
    Joins,
}

impl Run {
    /// Of code and all its accesses; `branches` is what earlier windows taught the core's predictor.
    pub fn new(code: &Code, accesses: &[Access], branches: &mut Branches) -> Self {
        let known = decoded(&code.known);
        let steps = steps(&known, &code.order, branches);
        let mut numbers = Numbers::default();
        let (mut touched, mut left) = (Vec::with_capacity(accesses.len()), accesses);
        for step in &steps {
            let Known { flow, accesses, .. } = &known[step.known as usize];
            let (own, others) = left.split_at(left.len().min(*accesses));
            touched.extend(own.iter().map(|access| numbers.touch(*access, flow.bytes)));
            left = others;
        }
        Self {
            known,
            steps,
            touched,
            names: numbers.names(),
        }
    }

    /// Core cycles.
    pub fn cycles(&self, core: Core, timing: &Timing) -> u64 {
        let Timing {
            counted,
            waits,
            mispredicted,
        } = timing;
        let mut timeline = Timeline::new(Shape::of(core), self.names);
        let (mut from, mut behind) = (0, 0);
        for step in &self.steps {
            let known = &self.known[step.known as usize];
            let to = from + known.accesses;
            if to > counted.end {
                break;
            }
            if from >= counted.start {
                let own = from - counted.start..to - counted.start;
                let waits = waits.get(own).unwrap_or(&[]);
                if step.is_flushed && *mispredicted != Mispredicted::None {
                    timeline.flush(*mispredicted == Mispredicted::Joins);
                }
                let touched = &self.touched[from..to];
                if step.is_another {
                    timeline.repeat(&known.flow, touched, waits);
                } else {
                    timeline.fetch(known.at, known.at == behind);
                    timeline.take(&known.flow, touched, waits);
                }
            }
            (from, behind) = (to, known.behind);
        }
        timeline.cycles()
    }
}

fn decoded(known: &[Instruction]) -> Vec<Known> {
    let mut info = InstructionInfoFactory::new();
    let decoded = |instruction: &Instruction| {
        let decoded = Decoder::with_ip(64, &instruction.bytes, instruction.at, DecoderOptions::NONE).decode();
        Known {
            at: instruction.at,
            behind: decoded.next_ip(),
            flow: Flow::of(&decoded, info.info(&decoded)),
            accesses: instruction.accesses.into(),
        }
    };
    known.iter().map(decoded).collect()
}

fn steps(known: &[Known], order: &[u32], branches: &mut Branches) -> Vec<Step> {
    branches.begin();
    let mut last = None;
    let step = |&place: &u32| {
        let Known { at, behind, flow, .. } = &known[place as usize];
        let is_flushed = branches.went(*at);
        branches.runs(*at, *behind, flow.branch);
        let is_another = last.replace(*at) == Some(*at) && flow.is_repeated;
        Step {
            known: place,
            is_flushed,
            is_another,
        }
    };
    order.iter().map(step).collect()
}

/// Numbers of words, lines and pages.
#[derive(Default)]
struct Numbers {
    words: HashMap<u64, u32>,
    lines: HashMap<u64, u32>,
    pages: HashMap<u64, u32>,
}

impl Numbers {
    fn touch(&mut self, access: Access, bytes: u64) -> Touch {
        let address = access.address();
        let is_store = access.side() == Side::Store;
        // A load waits for the store to its first word.
        let last = if is_store { address + bytes.max(1) - 1 } else { address };
        let words = (address >> WORD..=last >> WORD).map(|word| number(&mut self.words, word));
        Touch {
            words: words.collect(),
            line: number(&mut self.lines, address >> LINE),
            page: number(&mut self.pages, address >> PAGE),
            is_store,
        }
    }

    fn names(&self) -> Names {
        Names {
            words: self.words.len(),
            lines: self.lines.len(),
            pages: self.pages.len(),
        }
    }
}

fn number(numbers: &mut HashMap<u64, u32>, place: u64) -> u32 {
    let next = numbers.len() as u32;
    *numbers.entry(place).or_insert(next)
}
