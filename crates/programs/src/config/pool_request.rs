//! The value of `hugepages=`.

use std::fmt;

/// The value of `hugepages=`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PoolRequest {
    /// So many pages, spread over the nodes.
    Total(u64),
    /// Pages by node: `0:512,1:512`.
    ByNode(Vec<(u32, u64)>),
}

impl PoolRequest {
    /// Pages on all nodes together.
    pub fn total(&self) -> u64 {
        match self {
            Self::Total(pages) => *pages,
            Self::ByNode(nodes) => nodes.iter().fold(0, |sum, (_, pages)| sum.saturating_add(*pages)),
        }
    }
}

/// As it is written.
impl fmt::Display for PoolRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Total(pages) => write!(f, "{pages}"),
            Self::ByNode(nodes) => {
                let words: Vec<String> = nodes.iter().map(|(node, pages)| format!("{node}:{pages}")).collect();
                f.write_str(&words.join(","))
            }
        }
    }
}

/// hugepages_setup(): a list of `NODE:PAGES`, or the digits at the beginning, whatever follows them.
pub(super) fn request(value: &str) -> Option<PoolRequest> {
    let mut nodes = Vec::new();
    let mut rest = value;
    while !rest.is_empty() {
        let (first, after) = digits(rest)?;
        let Some(after) = after.strip_prefix(':') else {
            return nodes.is_empty().then_some(PoolRequest::Total(first));
        };
        let (pages, after) = digits(after)?;
        nodes.push((u32::try_from(first).ok()?, pages));
        match after.strip_prefix(',') {
            Some(after) => rest = after,
            None => break,
        }
    }
    (!nodes.is_empty()).then_some(PoolRequest::ByNode(nodes))
}

fn digits(text: &str) -> Option<(u64, &str)> {
    let (digits, rest) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    Some((digits.parse().ok()?, rest))
}
