//! TLB discovery inside a guest: what timing says lies behind it beside what does, the levels it sees, and the readout.

use model::Estimate;
use model::guest::tlb::{Behind, GuestLevel, GuestTlb, Readout};
use model::tlb::{HostBacking, Verdict};

use super::sheet::Sheet;
use super::table::Lines;
use crate::cli::typed::Format;
use crate::show::{Show, TABLES};

impl Show for GuestTlb {
    const FORMS: &'static [Format] = &TABLES;
    const NAME: &'static str = "guest-tlb";

    fn title(&self) -> String {
        format!("TLBs and host pages as a guest sees them ({})", self.mmu)
    }

    fn headlines(&self) -> Vec<String> {
        vec![counted(self), readout(&self.readout)]
    }

    fn sheets(&self) -> Vec<Sheet> {
        let sheets = [verdicts(self), levels(self)];
        sheets.into_iter().filter(|sheet| !sheet.rows.is_empty()).collect()
    }

    fn csv(&self) -> Lines<'_> {
        let head = vec![
            "kind",
            "leaf",
            "verdict",
            "confidence",
            "consistent",
            "cycles_large",
            "cycles_apart",
            "cycles_row",
            "share",
            "share_low",
            "share_high",
            "entries_verdict",
            "not_measured",
        ];
        (head, Box::new(self.behind.iter().map(csv_line)))
    }
}

/// For how many page kinds timing agrees with KVM, in one sentence.
fn counted(guest: &GuestTlb) -> String {
    let count = |consistent| {
        guest
            .behind
            .iter()
            .filter(|behind| behind.consistent == consistent)
            .count()
    };
    let (agreed, contradicted) = (count(Some(true)), count(Some(false)));
    let all = guest.behind.len();
    let contradicted = match contradicted {
        0 => "none contradicts them".to_owned(),
        count => format!("{count} contradict{} them", if count == 1 { "s" } else { "" }),
    };
    format!("Timing inside the guest agrees with KVM's leaves for {agreed} of {all} page kinds; {contradicted}.")
}

fn readout(readout: &Readout) -> String {
    match readout {
        Readout::Blind { why } => format!("TLB content cannot be read out here: {why}."),
        Readout::Seen {
            entries,
            ways,
            latest_first,
        } => {
            let ways = ways.map_or(String::new(), |ways| format!(", {ways}"));
            let stays = if *latest_first {
                "the latest pages stay"
            } else {
                "not only the latest pages stay"
            };
            format!("Read out by changed page-table entries: the TLBs hold {entries} pages of 4K{ways}; {stays}.")
        }
    }
}

fn verdicts(guest: &GuestTlb) -> Sheet {
    let mut sheet = Sheet::new(
        "Behind a guest's 2M pages: what timing says, and what KVM and the kernel say",
        [
            "chosen",
            "KVM's leaves",
            "timing says",
            "#sure",
            "consistent",
            "#cycles through 2M",
            "#as if splintered",
            "#as if not",
            "#place",
            "by TLB entries",
        ],
    );
    guest.behind.iter().for_each(|behind| sheet.row(row(behind)));
    for behind in &guest.behind {
        notes(behind).into_iter().for_each(|note| sheet.note(note));
    }
    sheet.note(format!(
        "timing shows the smallest page of all layers; natively, outside of any guest, it shows {}",
        guest.native.verdict
    ));
    sheet.note("4K: splintered; none: no splintering, the host gives at least 2M. Place: 0 costs as if held whole, 1 as if splintered");
    sheet.note(format!("{:.1} s on CPU {}", guest.seconds, guest.cpu));
    sheet
}

fn row(behind: &Behind) -> [String; 10] {
    let cycles = |of: fn(&model::guest::tlb::Walks) -> Estimate| {
        behind
            .walks
            .as_ref()
            .map_or_else(String::new, |walks| format!("{:.0}", of(walks).median))
    };
    let place = behind.walks.and_then(|walks| walks.share);
    [
        behind.kind.to_string(),
        behind.leaf.to_string(),
        behind.verdict.verdict.to_string(),
        sure(&behind.verdict),
        match behind.consistent {
            Some(true) => "yes",
            Some(false) => "NO",
            None => "-",
        }
        .to_owned(),
        cycles(|walks| walks.large),
        cycles(|walks| walks.apart),
        cycles(|walks| walks.row),
        place.map_or_else(String::new, |place| format!("{:.2}", place.median)),
        behind
            .entries
            .as_ref()
            .map_or_else(String::new, |by| by.verdict.to_string()),
    ]
}

fn sure(backing: &HostBacking) -> String {
    match backing.verdict {
        Verdict::Unknown => String::new(),
        _ => format!("{:.0} %", backing.confidence * 100.0),
    }
}

fn notes(behind: &Behind) -> Vec<String> {
    let kind = behind.kind;
    if let Some(why) = &behind.not_measured {
        return vec![format!("{kind}: not obtained: {why}")];
    }
    let evidence = behind.verdict.evidence.iter().map(|seen| format!("{kind}: {seen}"));
    let kvm = behind.kvm.map(|leaves| format!("{kind}: KVM made {leaves}"));
    evidence.chain(kvm).collect()
}

fn levels(guest: &GuestTlb) -> Sheet {
    let mut sheet = Sheet::new(
        "TLB levels as a guest sees them",
        [
            "guest pages",
            "on host",
            "#level",
            "#entries",
            "ways",
            "#a miss costs, cycles",
        ],
    );
    let all = || guest.behind.iter().flat_map(|behind| &behind.levels);
    for GuestLevel { guest_page, level } in all() {
        let told = |value: Option<String>| value.unwrap_or_else(|| "unknown".to_owned());
        sheet.row([
            guest_page.to_string(),
            level.kind.to_string(),
            level.level.to_string(),
            told(level.entries.map(|entries| entries.to_string())),
            told(level.ways.map(|ways| ways.to_string())),
            told(level.miss_cycles.map(|miss| format!("{:.1}", miss.median))),
        ]);
    }
    for GuestLevel { guest_page, level } in all() {
        if let Some(why) = &level.not_told {
            sheet.note(format!("{guest_page} on {}, level {}: {why}", level.kind, level.level));
        }
    }
    sheet
}

fn csv_line(behind: &Behind) -> Vec<String> {
    let text = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    let walks = behind.walks.as_ref();
    let share = walks.and_then(|walks| walks.share);
    vec![
        behind.kind.to_string(),
        behind.leaf.to_string(),
        behind.verdict.verdict.to_string(),
        behind.verdict.confidence.to_string(),
        behind.consistent.map_or_else(String::new, |known| known.to_string()),
        text(walks.map(|walks| walks.large.median)),
        text(walks.map(|walks| walks.apart.median)),
        text(walks.map(|walks| walks.row.median)),
        text(share.map(|share| share.median)),
        text(share.map(|share| share.low)),
        text(share.map(|share| share.high)),
        behind
            .entries
            .as_ref()
            .map_or_else(String::new, |by| by.verdict.to_string()),
        behind.not_measured.clone().unwrap_or_default(),
    ]
}

#[cfg(test)]
#[path = "guest_tlb_tests.rs"]
mod tests;
