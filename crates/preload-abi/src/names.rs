//! What is counted by name: the hooked functions, and the reasons to leave a region alone.

/// A function that the library stands in front of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hook {
    /// `mmap` and `mmap64`.
    Mmap,
    Munmap,
    Mremap,
    Madvise,
    Mprotect,
    Brk,
    Sbrk,
    Shmget,
    Shmat,
}

impl Hook {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Mmap,
        Self::Munmap,
        Self::Mremap,
        Self::Madvise,
        Self::Mprotect,
        Self::Brk,
        Self::Sbrk,
        Self::Shmget,
        Self::Shmat,
    ];

    /// The function's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mmap => "mmap",
            Self::Munmap => "munmap",
            Self::Mremap => "mremap",
            Self::Madvise => "madvise",
            Self::Mprotect => "mprotect",
            Self::Brk => "brk",
            Self::Sbrk => "sbrk",
            Self::Shmget => "shmget",
            Self::Shmat => "shmat",
        }
    }
}

/// Why a large anonymous region was left as the program asked for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unserved {
    /// Address space without access, to be used later: JVM, Go and V8 begin so.
    Reserved,
    /// The program named the address (`MAP_FIXED`): often a piece of such a reservation.
    Fixed,
    /// Shared between processes.
    Shared,
    /// Code will stand there, or the program may only read.
    Protected,
    /// A stack, locked memory, or an address below 4 GiB.
    Special,
    /// Growth of the heap by `brk` or `sbrk`, which only transparent huge pages can back.
    Heap,
}

impl Unserved {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Reserved,
        Self::Fixed,
        Self::Shared,
        Self::Protected,
        Self::Special,
        Self::Heap,
    ];

    /// One word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reserved => "reserved",
            Self::Fixed => "fixed",
            Self::Shared => "shared",
            Self::Protected => "protected",
            Self::Special => "special",
            Self::Heap => "heap",
        }
    }
}
