//! What hugewise has changed and when, from its journals.

use model::setup::{Held, Run, Status};

use super::Setup;
use super::access::Access;
use super::change_log::{Entry, Story};
use super::error::SetupError;

impl Setup {
    /// Every plan that was applied and not undone, oldest first.
    ///
    /// # Errors
    /// When the journals cannot be read. It takes no lock: a run at work is shown as far as it has come.
    pub fn status(&self) -> Result<Status, SetupError> {
        let access = Access::new(&self.writer, None);
        let stories = self.stories()?;
        let runs: Result<Vec<Run>, SetupError> = stories.iter().map(|story| self.run(&access, story)).collect();
        runs.map(|runs| Status { runs })
    }

    fn run(&self, access: &Access<'_>, story: &Story) -> Result<Run, SetupError> {
        Ok(Run {
            time: story.head.time.clone(),
            goals: story.head.plan.goals.clone(),
            complete: story.complete,
            restarted: self.is_restarted(story)?,
            changes: story.entries.iter().map(|entry| held(access, entry)).collect(),
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
