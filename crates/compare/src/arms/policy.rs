//! The page policies that an arm can stand for, by the names that users type.

use std::fmt;
use std::str::FromStr;

use model::{Bytes, PageKind};

/// Below this share of base pages the arm `base` is not what it says: the program asks for huge pages in a way that no
/// switch of the kernel's keeps from it.
pub(crate) const LEAST_BASE: f64 = 0.9;

/// What an arm asks of the pages behind a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Policy {
    /// Base pages: THP is switched off for the program.
    Base,
    /// Whatever the machine and the program make of it.
    System,
    /// THP only where the program asks for them, whatever the machine's mode (Linux 6.18 and later).
    ThpAdvised,
    Thp,
    /// Pages of that size from a pool.
    Hugetlb(Bytes),
    /// Huge pages behind the code that the program mapped from files.
    Text,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not an arm (write base, system, thp-advised, thp, hugetlb-SIZE such as hugetlb-2M, text, or a name from --arms-file)"
)]
pub struct ParsePolicyError(String);

impl Policy {
    /// The page kind whose share shows whether it took effect.
    pub fn kind(self) -> Option<PageKind> {
        match self {
            Self::Base => Some(PageKind::Base),
            Self::Thp | Self::Text => Some(PageKind::Thp),
            Self::Hugetlb(size) => Some(PageKind::Hugetlb(size)),
            Self::System | Self::ThpAdvised => None,
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Base => f.pad("base"),
            Self::System => f.pad("system"),
            Self::ThpAdvised => f.pad("thp-advised"),
            Self::Thp => f.pad("thp"),
            Self::Hugetlb(size) => PageKind::Hugetlb(*size).fmt(f),
            Self::Text => f.pad("text"),
        }
    }
}

impl FromStr for Policy {
    type Err = ParsePolicyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "base" => Ok(Self::Base),
            "system" => Ok(Self::System),
            "thp-advised" => Ok(Self::ThpAdvised),
            "thp" => Ok(Self::Thp),
            "text" => Ok(Self::Text),
            other => match other.parse() {
                Ok(PageKind::Hugetlb(size)) => Ok(Self::Hugetlb(size)),
                _ => Err(ParsePolicyError(text.to_owned())),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Policy;
    use model::Bytes;

    #[test]
    fn every_policy_prints_what_it_reads_and_others_are_refused() {
        let sizes = [Bytes::mib(2), Bytes::gib(1)].map(Policy::Hugetlb);
        let others = [
            Policy::Base,
            Policy::System,
            Policy::ThpAdvised,
            Policy::Thp,
            Policy::Text,
        ];
        for policy in sizes.into_iter().chain(others) {
            assert_eq!(policy.to_string().parse(), Ok(policy));
        }
        let error = "mthp-64K".parse::<Policy>().expect_err("no arm").to_string();
        assert!(error.contains("hugetlb-2M"), "{error}");
    }
}
