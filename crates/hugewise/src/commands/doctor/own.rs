//! A machine as doctor judges it: with what hugewise applied to it, and without what its runs have borrowed for a while.

use host::Snapshot;
use jiff::Timestamp;
use model::setup::{Run, Status};
use model::{Cause, Reading, Unread};
use programs::{Applied, Evidence};

use crate::commands::session::Session;
use crate::commands::settings;
use crate::commands::settings::setup;

/// Everything about the machine. Of a captured one nothing is known of what hugewise did to it.
pub(in crate::commands) fn evidence(session: &Session<'_>, snapshot: Snapshot) -> Evidence {
    let programs = programs::programs(&session.source, &snapshot);
    let mut evidence = Evidence::of(&session.source, snapshot, programs);
    if session.source.is_live() {
        match settings::writer().loans() {
            Ok(loans) => loans.iter().for_each(|loan| evidence.leave_out(&loan.path, loan.pages)),
            Err(error) => session.ui.say(&format!(
                "the huge pages that runs of hugewise hold as leases could not be read, so they count as the pool's own: {error}"
            )),
        }
        evidence.applied = since_boot(&evidence.uptime);
    }
    evidence
}

fn since_boot(uptime: &Reading<f64>) -> Reading<Vec<Applied>> {
    let unread = |why: String| Unread::new(Cause::Failed, "the journal of what hugewise applied", why);
    let applied = setup().status().map_err(|error| unread(error.to_string()));
    let both = applied.and_then(|status| Ok((status, *uptime.as_ref().into_result()?)));
    both.map(|(status, uptime)| applied_in(&status, Timestamp::now(), uptime))
        .into()
}

/// What stands since this start of the machine, oldest first.
fn applied_in(status: &Status, now: Timestamp, uptime: f64) -> Vec<Applied> {
    let of_run = |run: &Run| {
        let time = run.time.parse();
        let at = time.map(|time| uptime - now.duration_since(time).as_secs_f64());
        // A journal whose time cannot be read is as old as the machine's start.
        let at = at.unwrap_or(0.0);
        let applied = |held: &model::setup::Held| Applied {
            path: held.place.clone(),
            value: held.applied.clone(),
            at,
        };
        run.changes.iter().map(applied).collect::<Vec<_>>()
    };
    let runs = status.runs.iter().filter(|run| !run.restarted);
    runs.flat_map(of_run).collect()
}

#[cfg(test)]
mod tests {
    use model::Reading;
    use model::setup::{Held, Run, Status};

    use super::applied_in;

    #[test]
    fn what_was_applied_before_a_restart_is_not_in_force() {
        let run = |time: &str, restarted, applied: &str| Run {
            time: time.to_owned(),
            goals: vec![],
            complete: true,
            restarted,
            changes: vec![Held {
                place: "/sys/x".to_owned(),
                before: "never".to_owned(),
                applied: applied.to_owned(),
                now: Reading::Known(applied.to_owned()),
            }],
        };
        let runs = vec![
            run("2026-05-01T10:00:00Z", true, "always"),
            run("2026-05-01T11:59:00Z", false, "madvise"),
        ];
        let now = "2026-05-01T12:00:00Z".parse().expect("a time");
        let applied = applied_in(&Status { runs }, now, 600.0);
        let told: Vec<_> = applied
            .iter()
            .map(|one| (one.path.as_str(), one.value.as_str(), one.at))
            .collect();
        assert_eq!(told, [("/sys/x", "madvise", 540.0)]);
    }
}
