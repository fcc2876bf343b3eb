//! Pool pages and THP sizes on loan: asked for at the writer before a measurement, given back after it, whatever happens.

use std::cell::OnceCell;

use compare::Shortage;
use host::Source;
use model::{Bytes, PageKind};
use settings::{GaveBack, PoolLease, ThpLease, ThpSizes, Writer, WriterError};

use super::settings::writer;
use crate::scratch;
use crate::ui::Ui;

/// Gives back what an earlier run could not, and says so.
pub(super) fn recover(ui: &Ui) {
    compare::at_end(settle);
    match writer().recover() {
        Ok(told) => told.iter().for_each(|gave_back| ui.say(&gave_back.to_string())),
        Err(error) => ui.say(&format!(
            "an earlier run may have left pages in a pool, or switches of THP sizes: {error}"
        )),
    }
}

/// The same without a word: for the guardian, whose reader is gone. Directories of workloads go, too.
fn settle() {
    scratch::sweep();
    let _ = writer().recover();
}

/// Pages on loan for the kinds of one measurement, and switches of THP sizes for one run.
pub(super) struct Loan {
    leases: Vec<PoolLease>,
    switches: Option<ThpLease>,
    /// The kinds of which there are fewer pages than were asked for, and why.
    pub(super) short: Vec<Shortage>,
}

impl Loan {
    /// Room for so many bytes on each kind that draws from a pool. A kind that cannot have it stays in the measurement, which
    /// then reports for each point what it got. The reason is reported here, or not: of loans that follow each other the first
    /// one says it for all.
    pub(super) fn take(ui: &Ui, rooms: impl IntoIterator<Item = (PageKind, Bytes)>, is_reported: bool) -> Self {
        let writer = writer();
        let mut loan = Self {
            leases: Vec::new(),
            switches: None,
            short: Vec::new(),
        };
        for (kind, bytes) in rooms {
            let Some(page) = kind.pool() else { continue };
            let (lease, why) = lease(&writer, page, bytes);
            if is_reported {
                why.iter().for_each(|why| ui.say(why));
                if let Some(lease) = &lease {
                    ui.note(&format!("for this measurement: {}", lease.how()));
                }
            }
            loan.leases.extend(lease);
            loan.short.extend(why.map(|why| Shortage { kind, why }));
        }
        loan
    }

    /// The switches for a run on this THP size and no other. They are claimed with the first loan, so that no other run of
    /// hugewise has them in between. The first loan of each size is reported.
    pub(super) fn add_switches(
        &mut self,
        ui: &Ui,
        claimed: &OnceCell<ThpSizes>,
        size: Bytes,
        is_reported: bool,
    ) -> Result<(), String> {
        // Where there is no guardian, the next command puts back what a killed one left.
        let _ = compare::guarded();
        let claimed = match claimed.get() {
            Some(claimed) => claimed,
            None => {
                let new = writer().claim_thp_sizes().map_err(|error| error.to_string())?;
                claimed.get_or_init(|| new)
            }
        };
        let lease = claimed.lend(size).map_err(|error| error.to_string())?;
        if is_reported {
            ui.note(&format!(
                "while a run of THP of {} lasts: {}",
                size.exact(),
                lease.how()
            ));
        }
        self.switches = Some(lease);
        Ok(())
    }

    /// Gives everything back, and says what was not as expected.
    pub(super) fn give_back(self, ui: &Ui) {
        for lease in self.leases {
            report(ui, lease.give_back());
        }
        if let Some(lease) = self.switches {
            report(ui, lease.give_back());
        }
    }
}

/// What was not as expected when a lease was given back.
fn report(ui: &Ui, gave_back: Result<Vec<GaveBack>, WriterError>) {
    match gave_back {
        Ok(told) => {
            let left = told.iter().filter(|told| !told.is_clean());
            left.for_each(|told| ui.not_restored(&told.to_string()));
        }
        Err(error) => ui.not_restored(&format!("{error}; the next run tries again")),
    }
}

/// Why pages of a pool would be of no use: a control group does not let this process have so many.
fn beyond_limit(page: Bytes, bytes: Bytes) -> Option<String> {
    let limit = host::room::own_hugetlb(&Source::live(), page).into_result().ok()??;
    let (set_by, left) = (limit.set_by, limit.left);
    (left < bytes).then(|| {
        format!(
            "{set_by} leaves {left} of pages of {}, and {bytes} are needed",
            page.exact()
        )
    })
}

/// A loan if there is one, and what is missing in it.
fn lease(writer: &Writer, page: Bytes, bytes: Bytes) -> (Option<PoolLease>, Option<String>) {
    if let Some(why) = beyond_limit(page, bytes) {
        return (None, Some(why));
    }
    let pages = bytes.0.div_ceil(page.0);
    // Where there is no guardian, the next command gives back what a killed one left.
    let _ = compare::guarded();
    match writer.lease_pool(page, pages) {
        Ok(lease) => {
            let (obtained, asked) = (lease.obtained, lease.asked);
            let why = (obtained < asked)
                .then(|| format!("only {obtained} of {asked} pages of {} were available", page.exact()));
            (Some(lease), why)
        }
        Err(error) => {
            let why = format!("pages of {} could not be borrowed: {error}", page.exact());
            (None, Some(why))
        }
    }
}
