//! Versions of glibc, and what their huge page tunable does by chance.

use std::fmt;
use std::path::Path;

use host::Input;

/// A version of glibc.
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

    /// Is there such a tunable?
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
mod tests {
    use std::process::Command;

    use super::Glibc;
    use crate::program::look;

    #[test]
    fn the_version_is_in_the_loader() {
        let text = b"\0ld.so (Debian GLIBC 2.36-9+deb12u14) stable release version 2.36.\n";
        assert_eq!(Glibc::of_text(text), Some(Glibc(2, 36)));
        assert_eq!(Glibc::of_text(b"release version "), None);
        assert_eq!(Glibc::of_text(b"musl libc"), None);
    }

    /// Set for the starts of this test that only allocate.
    const CHILD: &str = "HUGEWISE_TEST_ALLOCATES";
    const ADVISED: &str = "malloc was advised: ";

    #[test]
    #[allow(clippy::print_stdout, reason = "the child answers so")]
    fn the_table_is_what_starts_of_this_program_show() {
        if std::env::var_os(CHILD).is_some() {
            let block = vec![1_u8; 24 << 20];
            let maps = std::fs::read_to_string("/proc/self/smaps").expect("this process");
            let is_advised = maps
                .lines()
                .any(|line| line.starts_with("VmFlags:") && line.contains(" hg"));
            println!("{ADVISED}{is_advised} {}", block.len());
            return;
        }
        let policy = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
        let own = std::env::current_exe().expect("a path");
        let glibc = look(own.as_os_str(), None).expect("readable").glibc;
        let Some(glibc) = glibc.filter(|glibc| glibc.has_tunable() && policy.contains("[madvise]")) else {
            return testing::skipped("needs a glibc with the tunable, and THP madvise");
        };
        let start = |_| {
            let mut command = Command::new(&own);
            command.args([
                "--nocapture",
                "--exact",
                "glibc::tests::the_table_is_what_starts_of_this_program_show",
            ]);
            let tunables = "glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=33554432";
            let output = command.env(CHILD, "1").env("GLIBC_TUNABLES", tunables).output();
            let text = String::from_utf8(output.expect("it starts").stdout).expect("text");
            assert!(text.contains(ADVISED), "{text}");
            text.contains(&format!("{ADVISED}true"))
        };
        let took_effect = (0..24).filter(|at| start(*at)).count();
        // In one of those versions any number may take effect, but not all of so many.
        assert_eq!(glibc.is_by_chance(), took_effect < 24, "{glibc}: {took_effect} of 24");
    }
}
