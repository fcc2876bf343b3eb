//! Versions of glibc, and what their huge page tunable does by chance.

use std::fmt;
use std::path::Path;

use host::Input;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Glibc(pub u32, pub u32);

/// Versions in which `glibc.malloc.hugetlb=1` takes effect by chance under THP `madvise`: the kernel's policy is read into a buffer
/// that is then compared as a string, and nothing ends it. The tunable came with 2.35; seen with 2.36, in one start of six; the
/// comparison is the same in 2.35 and 2.37.
const BY_CHANCE: [Glibc; 3] = [Glibc(2, 35), Glibc(2, 36), Glibc(2, 37)];
/// The first version with the tunable.
const TUNABLE: Glibc = Glibc(2, 35);

impl Glibc {
    /// That of a program's loader, which carries it as text.
    pub(crate) fn of_loader(loader: &str) -> Option<Self> {
        let bytes = Input::Program.read(Path::new(loader)).ok()?;
        Self::of_text(&bytes)
    }

    fn of_text(bytes: &[u8]) -> Option<Self> {
        const BEFORE: &[u8] = b"release version ";
        let at = bytes.windows(BEFORE.len()).position(|window| window == BEFORE)?;
        let rest = &bytes[at + BEFORE.len()..];
        let end = rest.iter().position(|byte| !byte.is_ascii_digit() && *byte != b'.')?;
        let mut parts = std::str::from_utf8(&rest[..end]).ok()?.split('.');
        Some(Self(parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
    }

    /// Does the tunable for THP take effect in some starts, and not in others?
    pub fn is_by_chance(self) -> bool {
        BY_CHANCE.contains(&self)
    }

    pub fn has_tunable(self) -> bool {
        self >= TUNABLE
    }
}

impl fmt::Display for Glibc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

#[cfg(test)]
#[path = "glibc_tests.rs"]
mod tests;
