//! The instructions that a thread ran, as a trace keeps them.

/// Bytes of the longest instruction.
pub const LONGEST: usize = 15;

/// Instructions in the order in which they ran.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Code {
    /// What ran: an instruction stands here once for each number of accesses that it came with.
    pub known: Vec<Instruction>,
    /// Places in `known`, one for each step. An instruction that follows itself is a further round of a repeated string instruction.
    pub order: Vec<u32>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Instruction {
    pub at: u64,
    /// Its bytes, at most [`LONGEST`].
    pub bytes: Vec<u8>,
    /// Loads and stores that it came with.
    pub accesses: u8,
}

impl Code {
    /// The loads and stores of all steps.
    pub fn accesses(&self) -> u64 {
        let of = |place: &u32| {
            self.known
                .get(*place as usize)
                .map_or(0, |known| u64::from(known.accesses))
        };
        self.order.iter().map(of).sum()
    }
}
