//! Why a design was taken, and why a verdict is what it is: codes, whose sentences are written where results are shown.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Method;

/// Why the runs were arranged so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "code", rename_all = "kebab-case")]
pub enum Because {
    /// It was asked for.
    Asked,
    /// The finished runs were made so.
    Resumed,
    /// The process runs already.
    Running,
    /// What is judged goes up while the program works, and its memory can change without a restart.
    Counters,
    /// The load can be run on one server again and again, whose memory can change without a restart.
    Loads,
    /// What is judged can be read of each arm while its program runs.
    CountersOfArms,
    /// Arms turn switches of the machine, which all programs that are alive at once share.
    Switches,
    /// A load has a beginning and an end.
    Load,
    /// A metric is known when a run has ended.
    AtEnd {
        /// The metric.
        metric: String,
    },
    /// Another design was tried.
    Tried {
        /// Which.
        method: Method,
        /// Why this program has no result by it.
        error: String,
    },
}

/// Why a verdict is what it is. The numbers are beside it: interval, probability and pairs in the verdict, coverage in the arm,
/// the reference's own difference in the control.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// Likely, above the smallest effect, and above what the reference differs from itself.
    Clear,
    /// Likely, but below the smallest effect.
    Small,
    /// The reference differs from itself by no less.
    Noise,
    /// It cannot be distinguished from chance.
    Chance,
    /// Its interval by itself leaves out none, but of all arms, metrics and looks together one may do so by chance.
    OneOfMany,
    /// So few pairs cannot show a difference at what the last look may spend.
    StrictLook,
    /// Each program was started less often than a verdict takes.
    FewStarts,
    /// There are fewer pairs of runs than a verdict takes.
    FewPairs,
    /// Not every run has the metric as a positive number, beside the reference's.
    NoNumber,
    /// The arm did not take effect.
    NotInEffect,
    /// Whether it took effect could not be read.
    EffectUnread,
    /// The reference did not take effect, or that could not be read.
    Reference,
}
