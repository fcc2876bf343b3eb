//! What hugewise has changed and when, from its journals.

use model::setup::{Held, Run, Status};
use model::{Cause, Reading, Unread};

use super::Setup;
use super::book::{Book, Entry};
use super::error::SetupError;
use super::hand::Hand;

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
        let hand = Hand::new(&self.door, None);
        let books = Self::books(home)?;
        let runs: Result<Vec<Run>, SetupError> = books.iter().map(|book| self.run(&hand, book)).collect();
        runs.map(|runs| Status { runs })
    }

    fn run(&self, hand: &Hand<'_>, book: &Book) -> Result<Run, SetupError> {
        Ok(Run {
            time: book.story.head.time.clone(),
            goals: book.story.head.plan.goals.clone(),
            complete: book.story.complete,
            restarted: self.is_restarted(book)?,
            changes: book.story.entries.iter().map(|entry| held(hand, entry)).collect(),
        })
    }
}

fn held(hand: &Hand<'_>, entry: &Entry) -> Held {
    let now = match hand.look(&entry.place) {
        Ok(now) => Reading::Known(now.to_string()),
        Err(error) => Reading::Unread(Unread::new(Cause::Failed, entry.place.path(), error.to_string())),
    };
    Held {
        place: entry.place.to_string(),
        before: entry.before.to_string(),
        put: entry.pending.as_ref().unwrap_or(&entry.ours).to_string(),
        now,
    }
}
