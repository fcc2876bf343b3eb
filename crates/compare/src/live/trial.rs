//! Whole runs of all arms. Before them, trial runs show which of several ways to its pages an arm takes, where the program's file
//! does not: a few runs of each in order, until one way reaches enough of the program's memory in each of its runs.

use ::process::Attention;
use model::compare::{Metric, Run};
use model::{Bytes, PageKind};

use super::{Arm, Live};
use crate::arms::Arms;
use crate::around::{Around, Event, Shortage};
use crate::room::Room;
use crate::runlog::RunLog;
use crate::technique::Setup;
use crate::{Error, Outcome, Spec, experiment};

/// Seconds of a run that may be over between two looks.
const SHORT: f64 = 2.0;
/// Of such a run.
const TRIES: u32 = 3;
/// So many runs of a way have to reach enough: what takes effect by chance in some starts passes one.
const DEMANDED: u32 = 3;
/// Of runs that take longer than this many seconds, two.
const LONG: f64 = 30.0;

/// A way, and what a run of it showed.
#[derive(Debug)]
struct Tried {
    setup: Setup,
    share: Share,
}

/// The share of the program's memory on the pages that were wanted.
#[derive(Debug)]
enum Share {
    Reached(f64),
    /// It could not be looked at: better than too little, worse than enough.
    Unknown(String),
    /// The program did not end well.
    Failed(Error),
}

/// Makes the runs. Pages are on loan only while a run needs them.
pub(crate) fn compare<'a>(
    arms: &Arms,
    room: &Room<'a>,
    spec: &Spec,
    mut live: Live<'a>,
    log: &mut RunLog<'_>,
) -> Result<Outcome, Error> {
    let memory = needed(arms, room, &live)?;
    let (lender, short) = room.lender(live.around, memory)?;
    live.lender = Some(lender);
    let spec = try_all(&mut live, spec, &short)?;
    log.note_ways(live.arms.iter().map(|arm| &arm.setup));
    let done = log.take_done(&spec);
    let around = live.around;
    experiment::run(&spec, done, &mut live, log, around)
}

/// The memory that a pool has to hold, as a run on base pages shows it.
fn needed(arms: &Arms, room: &Room<'_>, live: &Live<'_>) -> Result<Bytes, Error> {
    if !room.is_borrowed() {
        return Ok(Bytes(0));
    }
    live.around.report(&Event::Needed { is_start: false });
    let plain = arms.plain()?;
    let is_reference = plain.kind.is_some();
    match live.one(&plain, Attention::Free) {
        Ok(run) => Ok(run.memory().unwrap_or_default().max(live.whole.get())),
        // It may be that it does not start without pages.
        Err(error @ (Error::Failed { .. } | Error::Gone { .. })) if !is_reference => room.half().ok_or(error),
        Err(error) => Err(error),
    }
}

/// Tries the ways of every arm that has several; the experiment names the one that is taken, and what the pool lacked.
fn try_all(live: &mut Live<'_>, spec: &Spec, short: &[Shortage]) -> Result<Spec, Error> {
    for place in 0..live.arms.len() {
        let mut arm = live.arms[place].clone();
        arm.lack(short);
        let mut run = |arm: &Arm| live.one(arm, Attention::Free);
        try_ways(&mut arm, spec.least_coverage, live.around, &mut run)?;
        live.arms[place] = arm;
    }
    Ok(Spec {
        arms: live.arms.iter().map(Arm::named).collect(),
        ..spec.clone()
    })
}

/// Makes an arm that has several ways to its pages take the first that reaches the share `least` of the memory, or else the one
/// that reaches most, and reports which.
///
/// # Errors
/// If the program ends badly on every way, or the user has had enough.
pub(crate) fn try_ways(
    arm: &mut Arm,
    least: f64,
    around: &dyn Around,
    run: &mut dyn FnMut(&Arm) -> Result<Run, Error>,
) -> Result<(), Error> {
    let others = std::mem::take(&mut arm.others);
    let Some(kind) = arm.kind.filter(|kind| kind.is_large() && !others.is_empty()) else {
        return Ok(());
    };
    let mut tried = Vec::new();
    for setup in std::iter::once(arm.setup.clone()).chain(others) {
        arm.setup = setup.clone();
        let share = Share::each_time(&mut || run(arm), kind, least)?;
        let is_enough = share.is_enough(least);
        tried.push(Tried { setup, share });
        if is_enough {
            break;
        }
    }
    arm.setup = best(tried, kind, least)?;
    around.report(&Event::Technique {
        arm: &arm.name,
        words: &arm.setup.words,
    });
    Ok(())
}

impl Share {
    /// The least of several runs, if the first ones reach enough; else that of the one that does not.
    fn each_time(run: &mut dyn FnMut() -> Result<Run, Error>, kind: PageKind, least: f64) -> Result<Self, Error> {
        let mut seconds = 0.0;
        let mut timed = || {
            let run = run();
            let wall = run
                .as_ref()
                .ok()
                .and_then(|run| run.metrics.get(Metric::Wall.name()).copied());
            seconds = wall.unwrap_or(seconds);
            run
        };
        let mut all = Self::seen(&mut timed, kind)?;
        let demanded = if seconds > LONG { 2 } else { DEMANDED };
        for _ in 1..demanded {
            let Self::Reached(share) = all else { break };
            if share < least {
                break;
            }
            all = match Self::seen(run, kind)? {
                Self::Reached(again) => Self::Reached(again.min(share)),
                // What could not be seen does not speak against what was.
                Self::Unknown(_) => Self::Reached(share),
                failed @ Self::Failed(_) => failed,
            };
        }
        Ok(all)
    }

    /// That of a run, or of another one if it was over before it was looked at well, as on a busy machine.
    fn seen(run: &mut dyn FnMut() -> Result<Run, Error>, kind: PageKind) -> Result<Self, Error> {
        for _ in 1..TRIES {
            let run = run();
            let seconds = run.as_ref().ok().and_then(|run| run.metrics.get(Metric::Wall.name()));
            let is_short = seconds.is_some_and(|seconds| *seconds < SHORT);
            let share = Self::of(run, kind)?;
            if !is_short || !matches!(share, Self::Unknown(_)) {
                return Ok(share);
            }
        }
        Self::of(run(), kind)
    }

    fn of(run: Result<Run, Error>, kind: PageKind) -> Result<Self, Error> {
        match run {
            Err(error @ (Error::Interrupted | Error::Start { .. })) => Err(error),
            Err(error) => Ok(Self::Failed(error)),
            Ok(run) => Ok(run
                .coverage(Some(kind))
                .map_or_else(|why| Self::Unknown(why.to_string()), Self::Reached)),
        }
    }

    fn is_enough(&self, least: f64) -> bool {
        matches!(self, Self::Reached(share) if *share >= least)
    }

    /// What speaks for a way, to be compared.
    fn weight(&self, least: f64) -> f64 {
        match self {
            Self::Reached(share) if *share < least => *share - 1.0,
            Self::Reached(share) => *share,
            Self::Unknown(_) => 0.0,
            Self::Failed(_) => f64::NEG_INFINITY,
        }
    }
}

impl Tried {
    fn sentence(&self) -> String {
        let title = self.setup.way.map_or(self.setup.words.as_str(), |way| way.title());
        match &self.share {
            Share::Reached(share) => format!("{title}: {:.1} %", share * 100.0),
            Share::Unknown(why) => format!("{title}: not known: {why}"),
            Share::Failed(error) => format!("{title}: {error}"),
        }
    }
}

/// The way that reaches most, the first of equals; the last that was tried, if it reached enough.
fn best(mut tried: Vec<Tried>, kind: PageKind, least: f64) -> Result<Setup, Error> {
    let weights = tried.iter().map(|tried| tried.share.weight(least)).enumerate();
    // Of equals the last is taken, which is the first from behind.
    let best = weights.rev().max_by(|a, b| a.1.total_cmp(&b.1));
    let mut chosen = tried.remove(best.map_or(0, |(place, _)| place));
    if let Share::Failed(error) = chosen.share {
        return Err(error);
    }
    chosen.setup.words = sentence(&chosen, &tried, kind, least);
    Ok(chosen.setup)
}

/// How an arm gets its pages, and what the other ways reached.
fn sentence(chosen: &Tried, others: &[Tried], kind: PageKind, least: f64) -> String {
    let words = &chosen.setup.words;
    let shares: Vec<String> = others.iter().map(Tried::sentence).collect();
    let trial = match &shares[..] {
        [] => String::new(),
        shares => format!(", chosen by trial of the share on {kind} pages: {}", shares.join("; ")),
    };
    let this = match &chosen.share {
        Share::Reached(share) if *share < least => format!(
            "; no way reaches {:.0} %, this one {:.1} %",
            least * 100.0,
            share * 100.0
        ),
        Share::Unknown(why) => format!("; what it reaches is not known: {why}"),
        Share::Reached(share) if !shares.is_empty() => format!("; this: {:.1} %", share * 100.0),
        _ => String::new(),
    };
    format!("{words}{trial}{this}")
}

#[cfg(test)]
mod tests {
    use model::compare::{Metric, Run};
    use model::{Backing, Bytes, Cause, PageKind, Reading, Unread};

    use super::{Share, Tried, best};
    use crate::Error;
    use crate::technique::{Setup, Technique};

    fn tried(words: &str, share: Share) -> Tried {
        let setup = Setup {
            words: words.to_owned(),
            way: words.starts_with("tunables").then_some(Technique::Tunables),
            ..Setup::default()
        };
        Tried { setup, share }
    }

    fn run(backing: Reading<Backing>) -> Run {
        Run::bare([(Metric::Wall.name().to_owned(), 0.6)], backing.into_result())
    }

    #[test]
    fn a_short_run_that_was_missed_is_made_again() {
        let missed = || Unread::new(Cause::Failed, "/proc/PID/smaps", "it had more");
        for missing in 0..4_u32 {
            let mut runs = 0;
            let mut one = || {
                runs += 1;
                let backing = if runs <= missing {
                    Reading::Unread(missed())
                } else {
                    Reading::Known([(PageKind::Thp, Bytes::mib(96))].into_iter().collect())
                };
                Ok(run(backing))
            };
            let share = Share::seen(&mut one, PageKind::Thp).expect("a share");
            assert_eq!(
                matches!(share, Share::Reached(all) if all > 0.99),
                missing < 3,
                "{missing}"
            );
            assert_eq!(runs, (missing + 1).min(3));
        }
    }

    #[test]
    fn a_way_that_works_by_chance_is_not_taken_for_one_that_works() {
        let mut shares = [0.99, 0.98, 0.0, 0.99].into_iter();
        let mut one = || {
            let thp = (shares.next().expect("no more than four") * 1000.0) as u64;
            let parts = [(PageKind::Thp, thp), (PageKind::Base, 1000 - thp)];
            Ok(run(Reading::Known(
                parts.map(|(kind, mib)| (kind, Bytes::mib(mib))).into_iter().collect(),
            )))
        };
        let share = Share::each_time(&mut one, PageKind::Thp, 0.5).expect("a share");
        assert!(matches!(share, Share::Reached(share) if share == 0.0), "{share:?}");
    }

    fn chosen(tried: Vec<Tried>) -> Result<String, Error> {
        best(tried, PageKind::Thp, 0.5).map(|choice| choice.words)
    }

    #[test]
    fn a_first_way_that_reaches_enough_needs_no_words() {
        let only = vec![tried("tunables (X=1)", Share::Reached(0.97))];
        assert_eq!(chosen(only).expect("a way"), "tunables (X=1)");
    }

    #[test]
    fn a_later_way_tells_what_came_before_it() {
        let ways = vec![
            tried("tunables (X=1)", Share::Reached(0.03)),
            tried("collapsed (call)", Share::Reached(0.9)),
        ];
        assert_eq!(
            chosen(ways).expect("a way"),
            "collapsed (call), chosen by trial of the share on thp pages: glibc's tunables: 3.0 %; this: 90.0 %"
        );
    }

    #[test]
    fn without_any_that_reaches_enough_the_nearest_is_taken_and_said_to_be_short() {
        let ways = || {
            vec![
                tried("tunables", Share::Reached(0.0)),
                tried("library", Share::Failed(Error::Interrupted)),
                tried("collapsed", Share::Reached(0.2)),
            ]
        };
        let words = chosen(ways()).expect("a way");
        assert!(
            words.starts_with("collapsed") && words.ends_with("no way reaches 50 %, this one 20.0 %"),
            "{words}"
        );
        let mut equal = ways();
        equal.remove(2);
        assert!(chosen(equal).expect("a way").starts_with("tunables"));
    }

    #[test]
    fn what_cannot_be_looked_at_stands_between_too_little_and_enough_and_failure_everywhere_is_an_error() {
        let unknown = |share| {
            vec![
                tried("tunables", Share::Reached(0.1)),
                tried("library", Share::Unknown("too short".to_owned())),
                tried("collapsed", share),
            ]
        };
        let words = chosen(unknown(Share::Failed(Error::Interrupted))).expect("a way");
        assert!(
            words.starts_with("library") && words.ends_with("what it reaches is not known: too short"),
            "{words}"
        );
        assert!(
            chosen(unknown(Share::Reached(0.6)))
                .expect("a way")
                .starts_with("collapsed")
        );
        let failed = vec![tried("tunables", Share::Failed(Error::Interrupted))];
        assert!(chosen(failed).is_err());
    }
}
