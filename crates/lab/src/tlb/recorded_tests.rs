//! What real machines answered, written down once and asked again in tests: discovery replayed on real data.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use chase::clock::CoreClock;
use model::tlb::Ways;
use model::{Bytes, PageKind};

use super::discover::{Discovery, Effort, discover};
use super::live::{Live, Pages};
use super::probe::{Layout, Limits, Oracle, Probe, Sweep};

/// Effort and rounds of a recording, which its replay repeats: answers are kept in the order of the questions.
const EFFORT: Effort = Effort { passes: 8, refined: 40 };
const ROUNDS: u32 = 2;

/// Answers by question, in tenths of a cycle; `None` where the attempt was disturbed.
#[derive(Default)]
struct Answers(BTreeMap<Probe, Vec<Option<u32>>>);

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
        self.answers.0.entry(probe).or_default().push(tenths);
        tenths.map(|tenths| f64::from(tenths) / 10.0)
    }
}

/// A recording that answers.
struct Replay {
    limits: [Limits; 2],
    answers: Answers,
    asked: BTreeMap<Probe, usize>,
}

impl Oracle for Replay {
    fn limits(&self, sweep: Sweep) -> Limits {
        self.limits[sweep as usize]
    }

    /// The next answer to that question; over again where a later way of searching asks more often, none to a new question.
    fn cost(&mut self, probe: Probe, _: u32) -> Option<f64> {
        let answers = self.answers.0.get(&probe)?;
        let turn = self.asked.entry(probe).or_default();
        *turn += 1;
        answers[(*turn - 1) % answers.len()].map(|tenths| f64::from(tenths) / 10.0)
    }
}

/// One line of a recording: `near 5 0 0 64: 52 51 - 53` is stride, block, draw, pages, and the answers.
fn line(probe: Probe, answers: &[Option<u32>]) -> String {
    let sweep = if probe.sweep == Sweep::Near { "near" } else { "far" };
    let Layout { stride, block, draw } = probe.layout;
    let mut line = format!("{sweep} {stride} {block} {draw} {}:", probe.pages);
    for answer in answers {
        match answer {
            Some(tenths) => write!(line, " {tenths}"),
            None => write!(line, " -"),
        }
        .expect("a string");
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

/// A recording with what is known of its machine from its maker: `level 1 64 full`, a line for each level, `?` where sources
/// contradict each other on ways.
struct Machine {
    name: String,
    replay: Replay,
    truth: Vec<(u32, Option<Ways>)>,
}

impl Machine {
    fn parse(name: &str, text: &str) -> Option<Self> {
        let mut machine = Self {
            name: name.to_owned(),
            replay: Replay {
                limits: [Limits { pages: 0, span: 0 }; 2],
                answers: Answers::default(),
                asked: BTreeMap::new(),
            },
            truth: Vec::new(),
        };
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["level", _, entries, "full"] => machine.truth.push((entries.parse().ok()?, Some(Ways::Full))),
                ["level", _, entries, "?"] => machine.truth.push((entries.parse().ok()?, None)),
                ["level", _, entries, ways] => {
                    machine
                        .truth
                        .push((entries.parse().ok()?, Some(Ways::Count(ways.parse().ok()?))));
                }
                ["limits", near, span, far, far_span] => {
                    let limits = |pages: &str, span: &str| {
                        let (pages, span) = (pages.parse().ok()?, span.parse().ok()?);
                        Some(Limits { pages, span })
                    };
                    machine.replay.limits = [limits(near, span)?, limits(far, far_span)?];
                }
                _ => {
                    let (probe, answers) = read_line(line)?;
                    machine.replay.answers.0.insert(probe, answers);
                }
            }
        }
        Some(machine)
    }
}

fn directory() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/tlb"))
}

fn machines() -> Vec<Machine> {
    let files = std::fs::read_dir(directory()).expect("fixtures/tlb");
    let machine = |file: std::io::Result<std::fs::DirEntry>| {
        let path = file.expect("an entry").path();
        let text = std::fs::read_to_string(&path).expect("text");
        let name = path.display().to_string();
        Machine::parse(&name, &text).unwrap_or_else(|| panic!("{name} cannot be read"))
    };
    files.map(machine).collect()
}

fn replayed(replay: &mut Replay) -> Discovery {
    discover(replay, EFFORT, ROUNDS, &|| false)
}

#[test]
fn recorded_machines_get_no_wrong_name_and_their_first_level_in_most() {
    let (mut exact, mut all) = (0, 0);
    for mut machine in machines() {
        let found = replayed(&mut machine.replay);
        let name = &machine.name;
        for ((entries, ways), level) in machine.truth.iter().zip(&found.levels) {
            let told = format!("{name}: {level:?} of {entries} {ways:?}");
            assert!(
                level
                    .entries
                    .is_none_or(|told| (told.low..=told.high).contains(entries)),
                "{told}"
            );
            assert!(level.ways.zip(*ways).is_none_or(|(told, ways)| told == ways), "{told}");
        }
        assert!(
            found.levels.len() <= machine.truth.len(),
            "{name}: {} levels",
            found.levels.len()
        );
        all += 1;
        exact += usize::from(found.levels.first().is_some_and(|level| level.ways.is_some()));
    }
    assert!(all > 0 && 2 * exact > all, "{exact} of {all} first levels");
}

#[test]
fn a_line_of_a_recording_reads_back_as_written() {
    let probe = Probe {
        sweep: Sweep::Far,
        layout: Layout::drawn(14, 3),
        pages: 2048,
    };
    let answers = vec![Some(52), None, Some(1000)];
    let line = line(probe, &answers);
    assert_eq!(line, "far 14 0 3 2048: 52 - 1000\n");
    assert_eq!(read_line(line.trim_end()), Some((probe, answers)));
    assert_eq!(read_line("far 14 0 x 2048: 52"), None);
}

/// Writes down what this machine answers, for `fixtures/tlb`; the lines on its levels are added by hand, from its maker's manual:
/// `HUGEWISE_TLB_RECORD=FILE cargo test -p hugewise-lab --release -- --ignored --exact tlb::recorded::record_this_machine`.
#[test]
#[ignore = "records this machine; asked for by name"]
fn record_this_machine() {
    let file = std::env::var("HUGEWISE_TLB_RECORD").expect("HUGEWISE_TLB_RECORD names the file to write");
    let clock = CoreClock::new();
    let _pinned = chase::thread::Pinned::to(None).expect("a CPU");
    let pages = |kind, size| Pages { kind, size };
    let (base, pmd) = (Bytes::kib(4), Bytes::mib(2));
    let live = Live::new(
        pages(PageKind::Base, base),
        base,
        pmd,
        pages(PageKind::Thp, pmd),
        &clock,
    );
    let mut recording = Recording {
        oracle: live.expect("base pages"),
        answers: Answers::default(),
    };
    let found = discover(&mut recording, EFFORT, ROUNDS, &|| false);
    let [near, far] = [Sweep::Near, Sweep::Far].map(|sweep| recording.limits(sweep));
    let mut text = format!("limits {} {} {} {}\n", near.pages, near.span, far.pages, far.span);
    for (probe, answers) in &recording.answers.0 {
        text += &line(*probe, answers);
    }
    for level in &found.levels {
        writeln!(
            text,
            "# found {:?} {:?} {:?} {:?}",
            level.entries, level.ways, level.index, level.not_told
        )
        .expect("a string");
    }
    std::fs::write(file, text).expect("writes");
}
