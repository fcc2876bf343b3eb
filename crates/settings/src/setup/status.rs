//! What hugewise has changed and when, from its journals.

use model::setup::{Held, Run, Status};

use super::Setup;
use super::access::Access;
use super::change_log::{ChangeLog, Entry};
use super::error::SetupError;

impl Setup {
    /// Every plan that was applied and not undone, oldest first.
    ///
    /// # Errors
    /// When the journals cannot be used, or another run is at work.
    pub fn status(&self) -> Result<Status, SetupError> {
        let Some(home) = self.home()? else {
            return Ok(Status { runs: Vec::new() });
        };
        let _lock = home.try_lock()?;
        let access = Access::new(&self.writer, None);
        let logs = Self::logs(home)?;
        let runs: Result<Vec<Run>, SetupError> = logs.iter().map(|log| self.run(&access, log)).collect();
        runs.map(|runs| Status { runs })
    }

    fn run(&self, access: &Access<'_>, log: &ChangeLog) -> Result<Run, SetupError> {
        Ok(Run {
            time: log.story.head.time.clone(),
            goals: log.story.head.plan.goals.clone(),
            complete: log.story.complete,
            restarted: self.is_restarted(log)?,
            changes: log.story.entries.iter().map(|entry| held(access, entry)).collect(),
        })
    }
}

fn held(access: &Access<'_>, entry: &Entry) -> Held {
    Held {
        place: entry.place.to_string(),
        before: entry.before.to_string(),
        applied: entry.pending.as_ref().unwrap_or(&entry.ours).to_string(),
        now: access.reading(&entry.place).map(|now| now.to_string()),
    }
}
