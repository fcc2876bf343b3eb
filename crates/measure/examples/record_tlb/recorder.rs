//! Answers of a machine as readable text, for `fixtures/tlb`. Tests of the crate include this file, too.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{Effort, Layout, Limits, Oracle, Probe, Search, Sweep};

/// Effort and rounds of a recording, which its replay repeats: answers are kept in the order of the questions.
const EFFORT: Effort = Effort { passes: 8, refined: 40 };
const ROUNDS: u32 = 2;

/// Answers by question, in tenths of a cycle; `None` where the attempt was disturbed.
pub(super) type Answers = BTreeMap<Probe, Vec<Option<u32>>>;

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

/// A search that went as far as a recording does.
pub(super) fn searched<O: Oracle>(oracle: O) -> Search<'static, O> {
    let mut search = Search::new(oracle, EFFORT, &|| false);
    (0..ROUNDS).for_each(|_| search.look());
    search
}

/// Asks an oracle all that a search asks, and returns the questions with their answers as text. What was found is in comments:
/// the lines on the machine's levels are added by hand, from its vendor's manual.
pub(super) fn record(oracle: impl Oracle) -> String {
    let search = searched(Recording {
        oracle,
        answers: Answers::new(),
    });
    let [near, far] = [Sweep::Near, Sweep::Far].map(|sweep| search.oracle.limits(sweep));
    let mut text = format!("limits {} {} {} {}\n", near.pages, near.span, far.pages, far.span);
    let lines = search.oracle.answers.iter();
    text.extend(lines.map(|(probe, answers)| line(*probe, answers)));
    text.extend(search.levels().map(|level| {
        let (entries, ways, index) = (level.entries, level.ways, level.index);
        format!("# found {entries:?} {ways:?} {index:?} {:?}\n", level.not_told)
    }));
    text
}

/// One line of a recording: `near 5 0 0 64: 52 51 - 53` is stride, block, draw, pages, and the answers.
pub(super) fn line(probe: Probe, answers: &[Option<u32>]) -> String {
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
