//! A plan as it leaves the program: without the files that it changes.

use super::{Edit, Plan, Sum, Target, Value};
use crate::Reading;

impl Plan {
    /// The same plan without whole files: of those that are there it holds a checksum and the lines that change.
    #[must_use]
    pub fn with_edits(mut self) -> Self {
        for change in &mut self.changes {
            let (Target::File { .. }, Reading::Known(Value::Text(before)), Value::Text(after)) =
                (&change.target, &change.before, &change.after)
            else {
                continue;
            };
            let edit = Edit::between(before, after);
            // What is added ends its lines; a text that does not is none of ours.
            if edit.applied_to(before).as_ref() != Some(after) {
                continue;
            }
            change.before = Reading::Known(Value::Sum(Sum::of(before)));
            change.after = Value::Edit(edit);
        }
        self
    }
}
