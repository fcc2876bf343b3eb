//! How programs get their memory.

/// How a program gets its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    Glibc,
    /// From an allocator of its own, over glibc.
    Allocator(Allocator),
    /// From the heap of a Java virtual machine.
    Jvm,
    /// From shared memory that the program has a switch for.
    Database(Database),
    /// From Go's runtime, in a program without a C library.
    Go,
    /// From another C library.
    OtherLibc,
    /// From a glibc with huge page tunables, linked in: no library can be put in front.
    StaticGlibc,
    /// From whatever was linked in: no library can be put in front, no variable is looked at.
    Static,
}

/// Databases with a switch for the pages of their shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Database {
    Postgres,
    Mysql,
}

/// Allocators with settings of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocator {
    Jemalloc,
    Mimalloc,
    Tcmalloc,
}

impl Allocator {
    pub(crate) fn of_library(name: &str) -> Option<Self> {
        let known = [
            ("libjemalloc", Self::Jemalloc),
            ("libmimalloc", Self::Mimalloc),
            ("libtcmalloc", Self::Tcmalloc),
        ];
        let found = known.into_iter().find(|(beginning, _)| name.starts_with(beginning));
        found.map(|(_, allocator)| allocator)
    }
}

impl Memory {
    pub fn title(self) -> &'static str {
        match self {
            Self::Glibc => "a program with glibc's malloc",
            Self::Allocator(Allocator::Jemalloc) => "a program with jemalloc",
            Self::Allocator(Allocator::Mimalloc) => "a program with mimalloc",
            Self::Allocator(Allocator::Tcmalloc) => "a program with tcmalloc",
            Self::Jvm => "a Java virtual machine",
            Self::Database(Database::Postgres) => "PostgreSQL",
            Self::Database(Database::Mysql) => "MySQL or MariaDB",
            Self::Go => "a Go program",
            Self::OtherLibc => "a program with a C library other than glibc",
            Self::StaticGlibc => "a static program with glibc",
            Self::Static => "a static program",
        }
    }
}
