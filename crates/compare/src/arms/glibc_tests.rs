//! What the loader says, and what starts of this very program show.

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
            "arms::glibc::tests::the_table_is_what_starts_of_this_program_show",
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
