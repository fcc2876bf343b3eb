//! A checkup in every form: verdict first, then what it rests on.

use std::collections::BTreeSet;

use model::guest::Guest;
use model::headline::{PairedGain, WORTH};
use model::verdict::Next;

use super::{doctor, inventory, verdict};
use crate::render::measure::{latency, tlb};
use crate::results::{Checkup, ProcessList, Skipped};
use crate::show::Show;
use draw::{Block, Figure, Lines, Sheet, columns, counted, joined, number, or};

/// Single draws differ by more than is said to make no difference, to each side.
const WIDE: f64 = 2.0 * WORTH;
/// Processes on a terminal.
const FEW: usize = 8;

impl Show for Checkup {
    fn title(&self) -> String {
        format!("Huge pages on {}", self.inventory.source)
    }

    fn headlines(&self) -> Vec<String> {
        self.verdict.sentences.clone()
    }

    fn sheets(&self) -> Vec<Sheet> {
        let all = self.blocks().into_iter().chain(self.folded());
        all.filter_map(Block::sheet).collect()
    }

    /// About two screens: what the first sentence rests on, some working sets, the first processes, findings, the readings of the guest, the machine in a few lines.
    fn brief_sheets(&self) -> Vec<Sheet> {
        let latency = self.latency.iter().flat_map(latency::brief_sheets);
        let processes = self.processes.iter().map(|list| ProcessList {
            processes: list.processes.iter().take(FEW).cloned().collect(),
            ..list.clone()
        });
        let processes = processes.flat_map(|list| list.sheets());
        self.next()
            .into_iter()
            .chain(self.by_turns())
            .chain(latency)
            .chain(processes)
            .chain(self.machines())
            .chain(self.doctor.as_ref().map(doctor::overview))
            .chain(self.host_pages())
            .chain(self.tlb.as_ref().map(tlb::levels))
            .chain(self.guest.as_ref().map(readings))
            .chain([inventory::brief(&self.inventory)])
            .chain(self.skipped())
            .collect()
    }

    fn figures(&self) -> Vec<Figure> {
        let all = self.blocks().into_iter().chain(self.folded());
        all.filter_map(Block::figure).collect()
    }

    /// What a reader asks for: the next commands, curves, processes, findings.
    fn blocks(&self) -> Vec<Block> {
        let is_shown = |block: &Block| !matches!(block, Block::Figure(figure) if !is_curve(figure));
        let first = self.next().into_iter().chain(self.by_turns()).map(Block::Sheet);
        let latency = self.latency.iter().flat_map(Show::blocks).filter(is_shown);
        let processes = self.processes.iter().flat_map(Show::blocks);
        let last = self.machines().into_iter().chain(self.findings()).chain(self.skipped());
        first
            .chain(latency)
            .chain(processes)
            .chain(last.map(Block::Sheet))
            .collect()
    }

    /// The TLB, the hypervisor, the machine.
    fn folded(&self) -> Vec<Block> {
        let host = self.not_judged().into_iter().chain(self.host_pages()).map(Block::Sheet);
        let tlb = self.tlb.iter().flat_map(Show::blocks);
        let guest = self.guest.iter().flat_map(Show::blocks);
        let machine = inventory::sheets(&self.inventory).into_iter().map(Block::Sheet);
        host.chain(tlb).chain(guest).chain(machine).collect()
    }

    fn tables(&self) -> Vec<(&'static str, Lines<'_>)> {
        let parts = [
            ("findings", self.doctor.as_ref().map(Show::csv)),
            ("processes", self.processes.as_ref().map(Show::csv)),
            ("virtual machines", self.vms.as_ref().map(Show::csv)),
            ("latency", self.latency.as_ref().map(Show::csv)),
            ("guest", self.guest.as_ref().map(Show::csv)),
            ("tlb", self.tlb.as_ref().map(Show::csv)),
        ];
        let parts = parts.into_iter();
        parts.filter_map(|(name, lines)| Some((name, lines?))).collect()
    }

    /// Each part has lines of its own shape, in `tables`.
    fn csv(&self) -> Lines<'_> {
        (Vec::new(), Box::new(std::iter::empty()))
    }
}

/// What is saved stands in the table of page kinds by turns. Points of the curve, each measured for itself in little time, would seem to
/// deny it.
fn is_curve(figure: &Figure) -> bool {
    !figure.id.starts_with("gain-")
}

/// Between what single draws of a pair lie, where they differ much.
fn apart(gain: &PairedGain) -> Option<String> {
    let least = gain.draws.iter().copied().reduce(f64::min)?;
    let most = gain.draws.iter().copied().reduce(f64::max)?;
    (gain.saved.is_some() && most - least > WIDE).then(|| {
        let [low, high] = [least, most].map(number);
        format!(
            "{low} to {high} % ({} against {} at {})",
            gain.kind, gain.against, gain.bytes
        )
    })
}

/// The readings of the matrix, without the matrix.
fn readings(guest: &Guest) -> Sheet {
    let mut sheet = Sheet::new(&guest.title(), [""; 0]);
    guest.readings.iter().for_each(|reading| sheet.note(reading));
    sheet
}

impl Checkup {
    fn next(&self) -> Option<Sheet> {
        let fields = columns![|next| &Next; "command" => next.command, "why" => verdict::why(&next.why)];
        Sheet::of("What to type next", fields, self.verdict.next.iter()).with_rows()
    }

    /// The findings, first in one table.
    fn findings(&self) -> Vec<Sheet> {
        let doctor = self.doctor.iter();
        doctor
            .flat_map(|doctor| [doctor::overview(doctor)].into_iter().chain(doctor::details(doctor)))
            .collect()
    }

    fn not_judged(&self) -> Vec<Sheet> {
        self.doctor.iter().flat_map(doctor::not_judged).collect()
    }

    /// The page size of the host, as timing shows it.
    fn host_pages(&self) -> Option<Sheet> {
        let mut sheet = Sheet::new("Pages of the host", [""; 0]);
        sheet.note(tlb::host(&self.tlb.as_ref()?.host_backing));
        Some(sheet)
    }

    /// What the first sentence rests on.
    fn by_turns(&self) -> Option<Sheet> {
        let headline = self.headline.as_ref()?;
        let fields = columns![|gain| &PairedGain;
            "#working set" => gain.bytes, "page kind" => gain.kind, "against" => gain.against,
            "#saved, %" => or(gain.saved.map(|saved| number(saved.percent)), "?"),
            "#95 % CI" => gain.saved.map(|saved| format!("{} to {}", number(saved.low), number(saved.high)))?,
            "~#ns" => gain.ns.map(number)?, "~#ns against" => gain.against_ns.map(number)?,
        ];
        let title = "Time saved by page kind (paired)";
        let mut sheet = Sheet::of(title, fields, headline.gains.iter());
        sheet.note(format!(
            "random reads of one line each; memory was taken anew {}, with {} rounds of visits each, in {:.0} s",
            counted(headline.draws as usize, "time"),
            headline.rounds,
            headline.seconds
        ));
        let apart = joined(headline.gains.iter().filter_map(apart), ", ");
        if !apart.is_empty() {
            sheet.note(format!("single draws: {apart}"));
        }
        let why: BTreeSet<&String> = headline.gains.iter().flat_map(|gain| &gain.not_measured).collect();
        why.iter().for_each(|why| sheet.note(format!("?: {why}")));
        Some(sheet)
    }

    /// Virtual machines, where there are any.
    fn machines(&self) -> Vec<Sheet> {
        let some = self.vms.iter().filter(|list| !list.known().is_empty());
        some.flat_map(Show::sheets).collect()
    }

    fn skipped(&self) -> Option<Sheet> {
        let fields = columns![|skipped| &Skipped; "part" => skipped.part, "why" => skipped.why];
        Sheet::of("Skipped", fields, self.skipped.iter()).with_rows()
    }
}

#[cfg(test)]
mod tests {
    use crate::cli::args::{Format, Sort};
    use crate::results::{Checkup, ProcessList};
    use crate::samples;
    use crate::show::{Show, show};
    use draw::Look;
    use model::headline::Headline;
    use model::{Bytes, PageKind};

    fn checkup(headline: Headline) -> Checkup {
        Checkup {
            verdict: samples::verdict(),
            inventory: samples::machine(),
            processes: Some(ProcessList::new(samples::process_rows(), Sort::Large, None)),
            vms: None,
            doctor: None,
            headline: Some(headline),
            latency: Some(samples::usual()),
            tlb: Some(samples::tlb()),
            guest: Some(samples::guest()),
            skipped: Vec::new(),
        }
    }

    const THP: (Bytes, PageKind, PageKind, [f64; 2]) = (Bytes::gib(1), PageKind::Thp, PageKind::Base, [12.0, 16.0]);
    const LOOK: Look = Look::plain(120);

    #[test]
    fn the_table_of_pairs_says_why_a_number_is_missing_and_how_much_single_draws_differ() {
        let pool = (PageKind::HUGETLB_2M, PageKind::Base);
        let mut headline = samples::headline(&[
            THP,
            (Bytes::gib(1), pool.0, pool.1, [10.2, 32.0]),
            (Bytes::mib(64), pool.0, pool.1, [1.0, 2.0]),
        ]);
        headline.gains[2].saved = None;
        headline.gains[2].not_measured = Some("the pool is empty".to_owned());
        let table = checkup(headline).by_turns().expect("a table");
        assert_eq!(
            table.notes[1..],
            [
                "single draws: 10.2 to 32 % (hugetlb-2M against base at 1G)",
                "?: the pool is empty"
            ]
        );
        assert_eq!(table.rows[2][3..5], ["?", ""]);
        assert!(table.text(LOOK).contains("10.2 to 32"));
    }

    #[test]
    fn where_base_pages_lie_fits_the_schema_and_is_absent_where_it_is_hidden() {
        let validator = serde_json::to_value(crate::show::schema::<Checkup>()).expect("JSON");
        let validator = jsonschema::validator_for(&validator).expect("a schema");
        for lines in [None, Some(4.8)] {
            let headline = Headline {
                host_lines: lines,
                ..samples::headline(&[THP])
            };
            let json = serde_json::to_value(samples::envelope(checkup(headline))).expect("JSON");
            assert!(validator.is_valid(&json));
            let written = json["data"]["headline"]
                .get("host_lines")
                .and_then(serde_json::Value::as_f64);
            assert_eq!(written, lines);
            let read: Checkup = serde_json::from_value(json["data"].clone()).expect("a checkup");
            assert_eq!(read.headline.expect("a headline").host_lines, lines);
        }
    }

    #[test]
    fn the_text_fits_two_screens_and_the_page_has_everything() {
        let checkup = checkup(samples::headline(&[THP]));
        assert!(checkup.sheets().iter().any(super::Sheet::is_heat_map));
        let result = samples::envelope(checkup);
        let shown = |format| String::from_utf8(show(&result, format, LOOK).expect("shown")).expect("text");
        let (text, html) = (shown(Format::Text), shown(Format::Html));
        assert!(text.lines().count() < 66, "{text}");
        for part in [
            "One sentence.",
            " 16K",
            " 1G",
            "random reads of one line each",
            "jvm",
            "keeps only 20 %",
            "THP: enabled madvise",
        ] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
        assert!(
            text.contains("level 2: the knee is soft") && text.contains("backs this machine's huge pages with 4 KiB")
        );
        for part in [
            "tlb-pages",
            "Page-table walks",
            "base level 1: 72 entries",
            "native",
            "First touch",
            "Free memory in large pieces",
            "class=\"n h3\"",
            "<th class=\"n s\">ns against</th>",
        ] {
            assert!(html.contains(part) && !text.contains(part), "{part}");
        }
        // Savings of single points would seem to deny the headline.
        assert!(html.contains("Time of one step") && !html.contains("Time saved against"));
    }
}
