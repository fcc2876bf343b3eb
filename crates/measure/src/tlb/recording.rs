//! Answers of a machine as readable text: written down once (`examples/record_tlb.rs`), replayed by tests.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use model::tlb::Ways;

use super::discover::{Discovery, Effort, discover};
use super::probe::{Layout, Limits, Oracle, Probe, Sweep};

/// Effort and rounds of a recording, which its replay repeats: answers are kept in the order of the questions.
const EFFORT: Effort = Effort { passes: 8, refined: 40 };
const ROUNDS: u32 = 2;

/// Answers by question, in tenths of a cycle; `None` where the attempt was disturbed.
type Answers = BTreeMap<Probe, Vec<Option<u32>>>;

/// An oracle whose answers are written down.
struct Recording<O> {
    oracle: O,
    answers: Answers,
}

impl<O: Oracle> Oracle for Recording<O> {
    fn limits(&self, sweep: Sweep) -> Limits {
        self.oracle.limits(sweep)
    }

    fn cost(&mut self, probe: Probe, pass: u32) -> Option<f64> {
        // Rounded at once, so that the replay goes the same way.
        let tenths = self.oracle.cost(probe, pass).map(|cost| (10.0 * cost).round() as u32);
        self.answers.entry(probe).or_default().push(tenths);
        tenths.map(|tenths| f64::from(tenths) / 10.0)
    }
}

/// Asks an oracle all that a discovery asks, and returns the questions with their answers as text. What was found is in comments:
/// the lines on the machine's levels are added by hand, from its vendor's manual.
pub fn record(oracle: impl Oracle) -> String {
    let mut recording = Recording {
        oracle,
        answers: Answers::new(),
    };
    let found = discover(&mut recording, EFFORT, ROUNDS, &|| false);
    let [near, far] = [Sweep::Near, Sweep::Far].map(|sweep| recording.limits(sweep));
    let mut text = format!("limits {} {} {} {}\n", near.pages, near.span, far.pages, far.span);
    let lines = recording.answers.iter();
    text.extend(lines.map(|(probe, answers)| line(*probe, answers)));
    text.extend(found.levels.iter().map(|level| {
        let (entries, ways, index) = (level.entries, level.ways, level.index);
        format!("# found {entries:?} {ways:?} {index:?} {:?}\n", level.not_told)
    }));
    text
}

/// One line of a recording: `near 5 0 0 64: 52 51 - 53` is stride, block, draw, pages, and the answers.
fn line(probe: Probe, answers: &[Option<u32>]) -> String {
    let sweep = if probe.sweep == Sweep::Near { "near" } else { "far" };
    let Layout { stride, block, draw } = probe.layout;
    let mut line = format!("{sweep} {stride} {block} {draw} {}:", probe.pages);
    for answer in answers {
        // Writing to a string cannot fail.
        let _ = match answer {
            Some(tenths) => write!(line, " {tenths}"),
            None => write!(line, " -"),
        };
    }
    line + "\n"
}

fn read_line(line: &str) -> Option<(Probe, Vec<Option<u32>>)> {
    let (question, answers) = line.split_once(':')?;
    let mut words = question.split(' ');
    let sweep = match words.next()? {
        "near" => Sweep::Near,
        "far" => Sweep::Far,
        _ => return None,
    };
    let mut number = || words.next()?.parse::<u32>().ok();
    let layout = Layout {
        stride: number()?,
        block: number()?,
        draw: number()?,
    };
    let pages = number()?;
    let answers = answers.split_whitespace().map(|word| match word {
        "-" => Some(None),
        tenths => tenths.parse().ok().map(Some),
    });
    Some((Probe { sweep, layout, pages }, answers.collect::<Option<_>>()?))
}

/// A recording that answers, with what is known of its machine from its vendor: `level 1 64 full`, a line for each level, `?`
/// where sources contradict each other on ways.
pub struct Recorded {
    /// Entries and ways of each level, first level first.
    pub truth: Vec<(u32, Option<Ways>)>,
    limits: [Limits; 2],
    answers: Answers,
    asked: BTreeMap<Probe, usize>,
}

impl Recorded {
    /// Reads a recording; `None` where a line is garbled.
    pub fn parse(text: &str) -> Option<Self> {
        let mut recorded = Self {
            truth: Vec::new(),
            limits: [Limits { pages: 0, span: 0 }; 2],
            answers: Answers::new(),
            asked: BTreeMap::new(),
        };
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["level", _, entries, ways] => recorded.truth.push((entries.parse().ok()?, read_ways(ways)?)),
                ["limits", near, span, far, far_span] => {
                    let limits = |pages: &str, span: &str| {
                        let (pages, span) = (pages.parse().ok()?, span.parse().ok()?);
                        Some(Limits { pages, span })
                    };
                    recorded.limits = [limits(near, span)?, limits(far, far_span)?];
                }
                _ => {
                    let (probe, answers) = read_line(line)?;
                    recorded.answers.insert(probe, answers);
                }
            }
        }
        Some(recorded)
    }

    /// What discovery finds from these answers.
    pub fn replay(&mut self) -> Discovery {
        discover(self, EFFORT, ROUNDS, &|| false)
    }
}

/// Ways of a level's line; `None` inside where sources contradict each other.
fn read_ways(ways: &str) -> Option<Option<Ways>> {
    match ways {
        "full" => Some(Some(Ways::Full)),
        "?" => Some(None),
        count => count.parse().ok().map(|count| Some(Ways::Count(count))),
    }
}

impl Oracle for Recorded {
    fn limits(&self, sweep: Sweep) -> Limits {
        self.limits[sweep as usize]
    }

    /// The next answer to that question; over again where a later way of searching asks more often, none to a new question.
    fn cost(&mut self, probe: Probe, _: u32) -> Option<f64> {
        let answers = self.answers.get(&probe).filter(|answers| !answers.is_empty())?;
        let turn = self.asked.entry(probe).or_default();
        *turn += 1;
        answers[(*turn - 1) % answers.len()].map(|tenths| f64::from(tenths) / 10.0)
    }
}

#[cfg(test)]
#[path = "recording_tests.rs"]
mod tests;
