//! What backs a stretch of memory, and whether a number may be given under the name of the page kind asked for.

use host::processes;
use model::latency::Backed;
use model::{Backing, Bytes, NotMeasured, PageKind, Reading};

/// At least this share of a working set must be of a kind.
const ENOUGH: f64 = 0.95;

/// What backs `bytes` from `start` on, and the reason if that is not what was asked for.
pub(crate) fn prove(asked: PageKind, start: usize, bytes: Bytes) -> (Backed, Option<NotMeasured>) {
    let mut proof = processes::own_range(start, bytes.as_usize());
    if let (Some(size), Reading::Known(known)) = (asked.mthp(), &proof) {
        proof = processes::own_range_mthp(known, start, bytes.round_up_to(size).as_usize(), size);
    }
    match proof {
        Reading::Unread(why) => (unproved(asked, "none"), Some(NotMeasured::Unproved(why))),
        Reading::Known(proof) => {
            let backed = Backed {
                asked,
                got: proof.backing,
                proof: proof.account,
            };
            let why = (!is_enough(asked, &backed.got)).then(|| NotMeasured::FellBack(backed.clone()));
            (backed, why)
        }
    }
}

/// The same of memory that the kernel refused.
pub(crate) fn never_mapped(asked: PageKind, answer: &str) -> (Backed, Option<NotMeasured>) {
    let why = NotMeasured::Refused(answer.to_owned());
    (unproved(asked, "never mapped"), Some(why))
}

fn unproved(asked: PageKind, proof: &str) -> Backed {
    Backed {
        asked,
        got: Backing::new(),
        proof: proof.to_owned(),
    }
}

fn is_enough(kind: PageKind, got: &Backing) -> bool {
    got.share(kind).is_some_and(|share| share >= ENOUGH)
}

#[cfg(test)]
mod tests {
    use super::is_enough;
    use model::{Backing, Bytes, PageKind};

    #[test]
    fn memory_counts_as_a_kind_from_95_percent_on() {
        let got = |thp: u64| -> Backing {
            let parts = [(PageKind::Thp, thp), (PageKind::Base, 1000 - thp)];
            parts.map(|(kind, mib)| (kind, Bytes::mib(mib))).into_iter().collect()
        };
        assert!(is_enough(PageKind::Thp, &got(950)));
        assert!(!is_enough(PageKind::Thp, &got(949)));
        assert!(!is_enough(PageKind::HUGETLB_2M, &got(950)));
        assert!(!is_enough(PageKind::Thp, &Backing::new()), "nothing is resident");
    }
}
