//! Replays what `examples/record_tlb` recorded of a machine.

#[path = "../../examples/record_tlb/recorder.rs"]
mod recorder;

use std::collections::BTreeMap;

use model::tlb::Ways;

use self::recorder::{Answers, line, record, searched};
use super::discover::{Effort, Found, Search};
use super::probe::{Layout, Limits, Oracle, Probe, Sweep};

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
struct Recorded {
    /// Entries and ways of each level, first level first.
    truth: Vec<(u32, Option<Ways>)>,
    limits: [Limits; 2],
    answers: Answers,
    asked: BTreeMap<Probe, usize>,
}

impl Recorded {
    /// Reads a recording; `None` where a line is garbled.
    fn parse(text: &str) -> Option<Self> {
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

    /// The levels that a search finds from these answers.
    fn replay(&mut self) -> Vec<Found> {
        searched(self).levels().cloned().collect()
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

impl Oracle for &mut Recorded {
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
