//! What really backs a piece of memory, by page kind.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Bytes, PageKind};

/// Bytes by page kind, as proved by the kernel's own accounts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Backing(BTreeMap<PageKind, Bytes>);

impl Backing {
    /// Nothing backed yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds bytes of a kind; zero bytes leave no entry.
    pub fn add(&mut self, kind: PageKind, bytes: Bytes) {
        if bytes.0 > 0 {
            let sum = self.0.entry(kind).or_default();
            sum.0 = sum.0.saturating_add(bytes.0);
        }
    }

    /// Takes away up to so many bytes of a kind, and returns what was there.
    pub fn take(&mut self, kind: PageKind, most: Bytes) -> Option<(PageKind, Bytes)> {
        let there = self.0.remove(&kind)?;
        let taken = there.min(most);
        self.add(kind, Bytes(there.0 - taken.0));
        Some((kind, taken))
    }

    /// Bytes of one kind.
    pub fn of(&self, kind: PageKind) -> Bytes {
        self.0.get(&kind).copied().unwrap_or_default()
    }

    /// Bytes of all kinds.
    pub fn total(&self) -> Bytes {
        self.0.values().copied().sum()
    }

    /// Bytes on anything larger than base pages.
    pub fn large(&self) -> Bytes {
        let large = self.iter().filter(|(kind, _)| kind.is_large());
        large.map(|(_, bytes)| bytes).sum()
    }

    /// The share of one kind, from 0 to 1; `None` if nothing is backed.
    pub fn share(&self, kind: PageKind) -> Option<f64> {
        let total = self.total().0;
        (total > 0).then(|| self.of(kind).0 as f64 / total as f64)
    }

    /// The share backed by huge pages, from 0 to 1; `None` if nothing is backed.
    pub fn coverage(&self) -> Option<f64> {
        let total = self.total().0;
        (total > 0).then(|| self.large().0 as f64 / total as f64)
    }

    /// Kinds and bytes, smallest pages first.
    pub fn iter(&self) -> impl Iterator<Item = (PageKind, Bytes)> + '_ {
        self.0.iter().map(|(&kind, &bytes)| (kind, bytes))
    }
}

impl Extend<(PageKind, Bytes)> for Backing {
    fn extend<I: IntoIterator<Item = (PageKind, Bytes)>>(&mut self, items: I) {
        for (kind, bytes) in items {
            self.add(kind, bytes);
        }
    }
}

impl FromIterator<(PageKind, Bytes)> for Backing {
    fn from_iter<I: IntoIterator<Item = (PageKind, Bytes)>>(items: I) -> Self {
        let mut backing = Self::new();
        backing.extend(items);
        backing
    }
}

impl fmt::Display for Backing {
    /// `base 12M + thp 4M`, or `nothing`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.pad("nothing");
        }
        let parts: Vec<String> = self.iter().map(|(kind, bytes)| format!("{kind} {bytes}")).collect();
        f.pad(&parts.join(" + "))
    }
}

#[cfg(test)]
mod tests {
    use super::Backing;
    use crate::{Bytes, PageKind};

    #[test]
    fn coverage_counts_every_kind_above_base() {
        let backing: Backing = [
            (PageKind::Base, Bytes::mib(1)),
            (PageKind::Thp, Bytes::mib(2)),
            (PageKind::Mthp(Bytes::kib(64)), Bytes::mib(1)),
        ]
        .into_iter()
        .collect();
        assert_eq!(backing.coverage(), Some(0.75));
        assert_eq!(backing.share(PageKind::Base), Some(0.25));
        assert_eq!(backing.to_string(), "base 1M + mthp-64K 1M + thp 2M");
        assert_eq!(Backing::new().coverage(), None);
    }
}
