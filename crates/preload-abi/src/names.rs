//! What is counted by name: the hooked functions, and the reasons to leave a region alone.

/// An enum and the names of its values, in one table.
macro_rules! names {
    ($(#[$about:meta])* enum $type:ident { $($(#[$of:meta])* $variant:ident = $name:literal,)+ }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $type {
            $($(#[$of])* $variant),+
        }

        impl $type {
            /// All of them.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// Its name.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name),+
                }
            }
        }
    };
}

names! {
    /// A function that the library stands in front of.
    enum Hook {
        /// `mmap` and `mmap64`.
        Mmap = "mmap",
        Munmap = "munmap",
        Mremap = "mremap",
        Madvise = "madvise",
        Mprotect = "mprotect",
        Brk = "brk",
        Sbrk = "sbrk",
        Shmget = "shmget",
        Shmat = "shmat",
    }
}

names! {
    /// Why a large anonymous region was left as the program asked for it.
    enum Unserved {
        /// Address space without access, to be used later: JVM, Go and V8 begin so.
        Reserved = "reserved",
        /// The program named the address (`MAP_FIXED`): often a piece of such a reservation.
        Fixed = "fixed",
        /// Shared between processes.
        Shared = "shared",
        /// Code will stand there, or the program may only read.
        Protected = "protected",
        /// A stack, locked memory, or an address below 4 GiB.
        Special = "special",
        /// Growth of the heap by `brk` or `sbrk`, which only transparent huge pages can back.
        Heap = "heap",
    }
}
