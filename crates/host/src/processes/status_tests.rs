//! status files as kernels write them, and as none does.

use model::{Bytes, Cause, Reading};
use proptest::prelude::*;

use super::Status;

const TEXT: &[u8] = b"Name:\tpostgres\nUmask:\t0022\nState:\tS (sleeping)\nUid:\t0\t70\t70\t70\nKthread:\t0\n\
VmSize:\t  202928 kB\nVmRSS:\t  101760 kB\nRssAnon:\t    1160 kB\nRssFile:\t    1644 kB\nRssShmem:\t   98956 kB\n\
VmPTE:\t     440 kB\nHugetlbPages:\t    4096 kB\nTHP_enabled:\t0\nNewInLinux9:\tsomething else\nno colon at all\n";

fn named(line: &[u8]) -> Reading<String> {
    Status::parse("/proc/7/status", line).name
}

#[test]
fn reads_what_the_kernel_prints() {
    let status = Status::parse("/proc/7/status", TEXT);
    assert_eq!(status.name, Reading::Known("postgres".to_owned()));
    assert_eq!(status.uid, Reading::Known(70));
    assert_eq!(status.rss, Reading::Known(Bytes::kib(101_760)));
    assert_eq!(status.rss_anon, Reading::Known(Bytes::kib(1160)));
    assert_eq!(status.rss_file, Reading::Known(Bytes::kib(1644)));
    assert_eq!(status.rss_shmem, Reading::Known(Bytes::kib(98_956)));
    assert_eq!(status.page_tables, Reading::Known(Bytes::kib(440)));
    assert_eq!(status.hugetlb, Reading::Known(Bytes::mib(4)));
    assert_eq!(status.thp_enabled, Reading::Known(false));
    assert!(status.has_memory());
}

#[test]
fn a_name_may_hold_any_byte() {
    for (line, name) in [
        (&b"Name:\ta:b c) (d\n"[..], "a:b c) (d"),
        (b"Name:\t two  blanks \n", " two  blanks "),
        (b"Name:\tone\\ntwo\\\\n\n", "one\ntwo\\n"),
        (b"Name:\tVmRSS: 1 kB\n", "VmRSS: 1 kB"),
        (b"Name:\t\xff\xfe\n", "\u{fffd}\u{fffd}"),
        (b"Name:\t\n", ""),
        (b"Name:\tends in \\\n", "ends in \\"),
    ] {
        assert_eq!(named(line), Reading::Known(name.to_owned()));
    }
}

#[test]
fn a_missing_line_is_absent_and_a_garbled_one_names_its_place() {
    let status = Status::parse("/proc/7/status", b"Name:\tx\nVmRSS:\t17");
    let rss = status.rss.unread().expect("cut");
    assert_eq!((rss.unread, rss.place.as_str()), (Cause::Garbled, "/proc/7/status:2"));
    assert!(rss.why.contains("VmRSS") && rss.why.contains("kB"), "{rss}");
    assert_eq!(status.page_tables.unread().expect("missing").unread, Cause::Absent);
    for bad in ["-1 kB", "x kB", "18446744073709551615 kB", "1 MB", "kB", ""] {
        let status = Status::parse("s", format!("VmPTE:\t{bad}\n").as_bytes());
        assert_eq!(status.page_tables.unread().expect(bad).unread, Cause::Garbled, "{bad}");
    }
}

#[test]
fn threads_of_the_kernel_and_zombies_have_no_memory() {
    let old_kernel_thread = b"Name:\tkthreadd\nUid:\t0\t0\t0\t0\nThreads:\t1\n";
    assert!(!Status::parse("s", old_kernel_thread).has_memory());
    assert!(!Status::parse("s", b"Name:\tx\nKthread:\t1\nVmRSS:\t 1 kB\n").has_memory());
    assert!(Status::parse("s", b"VmRSS:\tgarbage\n").has_memory());
}

proptest! {
    #[test]
    fn no_bytes_upset_it(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        Status::parse("s", &bytes);
    }

    #[test]
    fn no_change_to_a_real_file_upsets_it(at in 0..TEXT.len(), byte: u8, cut in 0..TEXT.len()) {
        let mut bytes = TEXT.to_vec();
        bytes[at] = byte;
        bytes.truncate(cut);
        Status::parse("s", &bytes);
    }
}
