//! Programs, what they print, and the files that configure them.

use ::programs::config::Given;
use ::programs::config::given::FileKind;

use super::seeds::{chosen, seed};

/// A configuration file of any kind with any content: its reader answers, and garbled lines have a place in it.
pub(crate) fn given(bytes: &[u8]) {
    let Some((kind, content)) = chosen(&FileKind::ALL, bytes) else {
        return;
    };
    let mut given = Given::default();
    let _ = given.add("fuzz", content, Some(kind));
    let _ = given.add("fuzz", content, None);
    assert!(given.garbled.iter().all(|why| why.place.starts_with("fuzz:")));
    let _ = doctor::judge(&::programs::Evidence::of_files(given));
}

/// A file of each kind.
pub(crate) fn configurations() -> Vec<Vec<u8>> {
    let one = |(nth, kind): (u8, FileKind)| [vec![nth], seed("given", kind.name())].concat();
    (0..).zip(FileKind::ALL).map(one).collect()
}

/// The settings of a database server, as it prints them or from its file.
pub(crate) fn server(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let _ = ::programs::size::postgres::Postgres::parse("fuzz", &text);
    let options = ::programs::config::mysql::Options::parse("fuzz", &text);
    let _ = ::programs::size::mysql::Innodb::of(options.settings.pairs());
}

/// What a program prints: a number, or where it was looked for.
pub(crate) fn output(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for pattern in ["rps=([0-9.,]+)", "a=b(.*)c", "x=[0-9]+"] {
        let asked: compare::metric::Asked = pattern.parse().expect("a metric");
        let _ = compare::metric::find(&asked.pattern.expect("a pattern"), &text);
    }
}

/// The file of a program: what loads it, and what it needs.
pub(crate) fn elf(bytes: &[u8]) {
    compare::fuzz::elf(bytes);
    if let Some(elf) = ::programs::image::Elf::parse(bytes) {
        for &code in &elf.code {
            let (pages, _) = elf.fit(code, 2 << 20);
            assert!(pages <= code[2] >> 21, "more whole pages than bytes: {code:?}");
        }
    }
}

/// The beginning of the smallest header that is one.
pub(crate) fn elves() -> Vec<Vec<u8>> {
    let mut header = vec![0; 176];
    header[..20].copy_from_slice(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0");
    // One program header behind the file header: PT_INTERP of 16 bytes.
    header[32] = 64;
    header[54] = 56;
    header[56] = 1;
    header[64] = 3;
    header[72] = 120;
    header[96] = 16;
    header[120..136].copy_from_slice(b"/lib/ld-linux.so");
    vec![header]
}

/// Arms of a user's own.
pub(crate) fn arms(bytes: &[u8]) {
    compare::fuzz::arms(&String::from_utf8_lossy(bytes));
}

/// The log of a JVM's garbage collector: its sums are finite, and no pause is without its line.
pub(crate) fn gc_log(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let log = ::programs::gc_log::parse(&text);
    let lines = text.lines().count() as u64;
    assert!(log.pauses <= lines && log.collections <= lines && log.warnings.len() <= 5);
    assert!(log.pause_seconds >= 0.0 && log.cpu_seconds.is_none_or(|seconds| seconds >= 0.0));
}
