//! What came of a plan: the shapes of the results of `apply`, `verify`, `undo` and `status`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::plan::Layer;
use crate::{Backing, Bytes, PageKind, Reading};

/// What applying a plan came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Applied {
    /// The plan's goals.
    pub goals: Vec<String>,
    /// How it ended.
    pub end: End,
    /// Its changes, in their order.
    pub steps: Vec<Step>,
    /// Running programs that the plan is for. Most take huge pages at their start only.
    #[serde(default)]
    pub programs: Vec<Program>,
    /// What to know about the whole.
    pub notes: Vec<String>,
}

/// A running program that a plan is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Program {
    /// Its main process.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// Its systemd service.
    pub unit: Option<String>,
    /// When it started; `null` if that could not be read.
    pub started: Option<String>,
    /// Did it start after the plan was applied? `null` if that is not known.
    #[serde(default)]
    pub since: Option<bool>,
    /// What backs all its processes, each page once; of pools, what is reserved for it counts too.
    #[serde(default = "unread")]
    pub backing: Reading<Backing>,
}

fn unread() -> Reading<Backing> {
    Reading::absent("backing")
}

/// How applying a plan ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// Everything that this host can do itself is done.
    Applied,
    /// It is, but a pool got fewer pages than were asked for.
    Short,
    /// A pool got fewer pages than were asked for, and everything was undone, as `--exact` wants.
    RolledBack,
}

/// One change of a plan, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    /// The change's name in the plan.
    pub id: String,
    /// Its layer.
    pub layer: Layer,
    /// What it changes.
    pub place: String,
    /// The value before.
    pub before: String,
    /// What shall stand there.
    pub asked: String,
    /// The value now, as read back.
    pub obtained: String,
    /// What came of it.
    pub outcome: StepOutcome,
    /// What to do, or to know.
    pub note: String,
}

/// What came of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StepOutcome {
    /// It was made, and read back.
    Done,
    /// It was so already; nothing was written.
    Already,
    /// A pool got fewer pages than were asked for.
    Short,
    /// It is not for this host to make: the note says what to do.
    ToDo,
    /// It was made and undone again, or not made at all.
    Undone,
}

/// Whether what plans asked for is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Verified {
    /// Each plan with its changes.
    pub plans: Vec<VerifiedPlan>,
    /// Processes that use the page kinds that the plans are about.
    pub users: Reading<Vec<User>>,
    /// What to know about the whole.
    pub notes: Vec<String>,
}

/// One plan, held against the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VerifiedPlan {
    /// Its goals.
    pub goals: Vec<String>,
    /// When hugewise applied it; `None` for a plan that was given as a file.
    pub applied: Option<String>,
    /// Has the machine been restarted since?
    pub restarted: bool,
    /// Its changes.
    pub checks: Vec<Check>,
    /// Running programs that it is for; `null` if it is for no program that can be looked up.
    #[serde(default)]
    pub programs: Option<Vec<Program>>,
    /// How far it has come.
    pub state: PlanState,
}

/// How far a plan has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PlanState {
    /// Something is not as it asks for.
    NotAsSet,
    /// Everything is set, and a restart is still to come, or no process uses the pages yet.
    Set,
    /// Everything is set, and nothing stands in the way of its use.
    InUse,
}

crate::shown_by_name!(PlanState);

/// One change, held against the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// The change's name in the plan.
    pub id: String,
    /// Its layer.
    pub layer: Layer,
    /// What it is about.
    pub place: String,
    /// What shall stand there.
    pub asked: String,
    /// The value now.
    pub found: Reading<String>,
    /// Is that what was asked for?
    pub verdict: Verdict,
    /// Why not, or what is still to do.
    pub note: String,
}

/// Is what was asked for there?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It is.
    Obtained,
    /// A pool has fewer pages than were asked for.
    Short,
    /// Something else is there.
    Different,
    /// It could not be read.
    Unread,
    /// It cannot be seen from this host.
    NotSeen,
}

/// A process that uses huge pages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct User {
    /// Its id.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// The page kind.
    pub kind: PageKind,
    /// How much of its memory these pages back. What several processes share counts once, for the first of them.
    pub bytes: Bytes,
    /// How many other processes share some of it.
    #[serde(default)]
    pub others: u64,
}

/// What reverting came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Undone {
    /// Everything that was to be undone, the last change first.
    pub steps: Vec<RevertStep>,
    /// Processes with pool pages, if some are in use and so could not be taken back.
    #[serde(default)]
    pub holders: Vec<User>,
    /// What to know about the whole.
    pub notes: Vec<String>,
}

/// One place, and what reverting came to there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RevertStep {
    /// The place.
    pub place: String,
    /// What was found there.
    pub found: String,
    /// The value before hugewise changed it.
    pub before: String,
    /// What came of it.
    pub outcome: RevertOutcome,
    /// Why, and what to do.
    pub note: String,
}

/// What came of reverting one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RevertOutcome {
    /// The value from before is restored.
    Restored,
    /// It did already.
    AlreadyBack,
    /// The machine has been restarted since, and the change was gone with that.
    Restarted,
    /// Others have changed it since; it was left as it is.
    Changed,
    /// Part of it is in use; it is taken back as far as possible.
    InUse,
    /// It was left as it is, and is not kept account of any more, as was asked for.
    Forgotten,
    /// It could not be done.
    Failed,
}

/// What hugewise has changed and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Status {
    /// Plans that were applied and not undone, oldest first.
    pub runs: Vec<Run>,
}

/// One plan that was applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// When it began.
    pub time: String,
    /// The plan's goals.
    pub goals: Vec<String>,
    /// Did it come to its end? Otherwise `undo` comes first.
    pub complete: bool,
    /// Has the machine been restarted since?
    pub restarted: bool,
    /// Its changes that still stand.
    pub changes: Vec<Held>,
}

/// One change that still stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Held {
    /// The place.
    pub place: String,
    /// The value before.
    pub before: String,
    /// The value that hugewise applied.
    pub applied: String,
    /// The value now.
    pub now: Reading<String>,
}

impl Verdict {
    /// Is it bad news?
    pub fn is_bad(self) -> bool {
        matches!(self, Self::Short | Self::Different | Self::Unread)
    }
}

impl VerifiedPlan {
    /// Do programs run that it is for, and have all of them been started since?
    pub fn has_new_programs(&self) -> bool {
        let is_new = |program: &Program| program.since == Some(true);
        let programs = self.programs.as_ref().filter(|programs| !programs.is_empty());
        programs.is_some_and(|programs| programs.iter().all(is_new))
    }
}

impl Verified {
    /// Is everything there that can be seen from here?
    pub fn is_obtained(&self) -> bool {
        let mut checks = self.plans.iter().flat_map(|plan| &plan.checks);
        !checks.any(|check| check.verdict.is_bad())
    }

    /// Is all of it in use, too?
    pub fn is_in_use(&self) -> bool {
        self.plans.iter().all(|plan| plan.state == PlanState::InUse)
    }
}

impl RevertOutcome {
    /// Is the place free of what hugewise put there, or let go on purpose?
    pub fn is_settled(self) -> bool {
        !matches!(self, Self::Changed | Self::InUse | Self::Failed)
    }
}

impl Undone {
    /// Is nothing left to undo?
    pub fn is_settled(&self) -> bool {
        self.steps.iter().all(|step| step.outcome.is_settled())
    }
}
