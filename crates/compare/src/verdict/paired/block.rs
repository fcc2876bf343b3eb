//! A block of scores.

/// One run and its peers.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// The score of the run that is asked about.
    pub own: f64,
    /// Those of its peers, one at least.
    pub peers: Vec<f64>,
}

impl Block {
    /// All scores, as if the run had done worse by so much.
    pub(super) fn all(&self, shift: f64) -> impl Iterator<Item = f64> + '_ {
        std::iter::once(self.own - shift).chain(self.peers.iter().copied())
    }
}
