//! Traces of each format give their accesses, and bad ones a place and a reason.

use super::own::{BlindSpot, Head, Method, Window, write};
use super::{Trace, TraceError, TraceFormat};
use model::latency::Frames;
use translation::{Access, Accesses, Side};

fn all(mut bytes: &[u8], format: Option<TraceFormat>, fetches: bool) -> Result<(TraceFormat, Vec<Access>), TraceError> {
    let mut trace = Trace::open(&mut bytes, format, fetches)?;
    let (mut all, mut gaps) = (Vec::new(), 0);
    loop {
        let before = all.len();
        match trace.fill(&mut all)? {
            Some(_) => gaps += 1,
            None if all.len() == before => break,
            None => {}
        }
    }
    assert_eq!(gaps, trace.told.windows);
    Ok((trace.format, all))
}

fn read(bytes: &[u8]) -> (TraceFormat, Vec<(Side, u64)>) {
    let (format, all) = all(bytes, None, false).expect("a trace");
    (
        format,
        all.iter().map(|access| (access.side(), access.address())).collect(),
    )
}

fn refused(bytes: &[u8]) -> String {
    all(bytes, None, false).expect_err("refused").to_string()
}

const LACKEY: &str =
    "==7== Lackey\n==7== \nI  0401ab70,3\n S 1fff000748,8\n L 04222c4c,4\nI  0401ab75,5\n M 1ffeffff60,4\n==7== end\n";

fn entry(kind: u16, size: u16, address: u64) -> Vec<u8> {
    [&kind.to_le_bytes()[..], &size.to_le_bytes(), &address.to_le_bytes()].concat()
}

fn drmemtrace() -> Vec<u8> {
    let records = [
        (25, 0, 3),
        (22, 0, 77),
        (10, 4, 0x40_1000),
        (0, 8, 0x7f00_0000_1000),
        (17, 2, 0x0503),
        (1, 8, 0x7f00_0000_2000),
        (28, 2, 9),
        (23, 0, 77),
        (26, 0, 0),
    ];
    records
        .iter()
        .flat_map(|&(kind, size, address)| entry(kind, size, address))
        .collect()
}

fn champsim(records: usize) -> Vec<u8> {
    let mut record = [0_u8; 64];
    record[..8].copy_from_slice(&0x40_1000_u64.to_le_bytes());
    record[12..16].copy_from_slice(&[25, 0, 0, 44]);
    record[16..24].copy_from_slice(&0x7000_u64.to_le_bytes());
    record[32..40].copy_from_slice(&0x8000_u64.to_le_bytes());
    record.repeat(records)
}

#[test]
fn every_format_is_recognised_and_gives_loads_and_stores() {
    use Side::{Load, Store};
    let stack = 0x1f_feff_ff60;
    assert_eq!(
        read(LACKEY.as_bytes()),
        (
            TraceFormat::Lackey,
            vec![
                (Store, 0x1f_ff00_0748),
                (Load, 0x0422_2c4c),
                (Load, stack),
                (Store, stack)
            ]
        )
    );
    assert_eq!(
        read(&drmemtrace()),
        (
            TraceFormat::Drmemtrace,
            vec![(Load, 0x7f00_0000_1000), (Store, 0x7f00_0000_2000)]
        )
    );
    assert_eq!(
        read(&champsim(2)),
        (TraceFormat::Champsim, [(Load, 0x8000), (Store, 0x7000)].repeat(2))
    );
    let words: Vec<u8> = [0x7f00_1234_5678_u64, 0xffff_8880_0000_1000]
        .map(u64::to_le_bytes)
        .concat();
    assert_eq!(
        read(&words),
        (
            TraceFormat::U64,
            vec![(Load, 0x7f00_1234_5678), (Load, 0x8880_0000_1000)]
        )
    );
}

#[test]
fn fetches_come_if_they_are_asked_for() {
    let fetched = |bytes: &[u8]| -> Vec<u64> {
        let (_, all) = all(bytes, None, true).expect("a trace");
        all.iter()
            .filter(|access| access.side() == Side::Fetch)
            .map(|access| access.address())
            .collect()
    };
    assert_eq!(fetched(LACKEY.as_bytes()), [0x0401_ab70, 0x0401_ab75]);
    assert_eq!(fetched(&drmemtrace()), [0x40_1000, 0x40_1004, 0x40_1007]);
    assert_eq!(fetched(&champsim(1)), [0x40_1000]);
}

/// 20,000 accesses, more than any buffer holds.
fn windows() -> Vec<Window> {
    let access = |number: u64| {
        Access::new(
            0x7f00_0000_0000 ^ (number.wrapping_mul(0x9e37_79b9) % (1 << 40)),
            Side::ALL[number as usize % 3],
        )
    };
    let window = |from: u64| Window {
        instructions: 3 * from + 1,
        at_us: from << 20,
        used_pages: (from > 0).then_some(from),
        accesses: (from..from + 10_000).map(access).collect(),
    };
    vec![window(0), window(10_000)]
}

fn own() -> Vec<u8> {
    let head = Head {
        method: Method::Steps,
        command: vec!["./program".to_owned(), "a b".to_owned()],
        blind_spots: vec![BlindSpot::Kernel],
        frames: Frames::of([7, 8, 1000]),
        run_us: Some(30_000),
    };
    let mut bytes = Vec::new();
    write(&head, &windows(), &mut bytes).expect("memory");
    let trace = Trace::open(&bytes[..], None, true).expect("a trace");
    assert_eq!(trace.head.as_ref(), Some(&head));
    bytes
}

#[test]
fn our_own_format_comes_back_with_its_windows() {
    let bytes = own();
    let (format, back) = all(&bytes, None, true).expect("a trace");
    let written: Vec<Access> = windows().into_iter().flat_map(|window| window.accesses).collect();
    assert_eq!((format, back), (TraceFormat::Hugewise, written));
    let mut trace = Trace::open(&bytes[..], None, true).expect("a trace");
    let mut accesses = vec![Access::load(0)];
    while trace.told.windows < 2 || !accesses.is_empty() {
        accesses.clear();
        trace.fill(&mut accesses).expect("read");
    }
    assert_eq!(trace.finished_window().used_pages, windows()[1].used_pages);
    for end in [bytes.len() - 1, bytes.len() / 2, 40] {
        let why = refused(&bytes[..end]);
        assert!(
            why.starts_with("offset ") && (why.contains("truncated") || why.contains("head")),
            "{why}"
        );
    }
}

#[test]
fn a_trace_of_an_older_version_is_to_be_made_again() {
    for version in [1, 2] {
        let old = format!(
            "hugewise trace {version}\n{{\"method\":\"steps\",\"command\":[],\"blind_spots\":[]}}\n\x09\x07\x02"
        );
        let why = refused(old.as_bytes());
        assert!(
            why.contains("another version of hugewise") && why.contains("hugewise trace"),
            "{why}"
        );
    }
}

#[test]
fn bad_traces_have_a_place_and_a_reason() {
    let lackey = |line: &str| refused(format!("{LACKEY}{line}").as_bytes());
    assert_eq!(
        lackey(" L 1ff"),
        "line 9: the trace ends within a line: it is truncated"
    );
    assert!(
        lackey(" L 1ffz,8\n").starts_with("line 9: no line of lackey: expected"),
        "{}",
        lackey(" L 1ffz,8\n")
    );
    assert!(lackey(" L 1ff\n").starts_with("line 9: no line of lackey"));
    assert_eq!(
        lackey(" L 4141414141414141,8\n"),
        "line 9: 0x4141414141414141 is no address: expected one below 2^52, or a kernel address"
    );
    let raw = drmemtrace();
    assert_eq!(
        refused(&raw[..50]),
        "offset 48: the trace ends within a record of 12 bytes: it is truncated"
    );
    assert_eq!(
        refused(&raw[..48]),
        "offset 48: the trace ends within a file without its footer: it is truncated"
    );
    let wrong = [&raw[..24], &entry(0, 8, 1 << 60), &raw[24..]].concat();
    assert!(refused(&wrong).starts_with("offset 24: 0x1000000000000000 is no address"));
    let wrong = [&raw[..24], &entry(999, 8, 0), &raw[24..]].concat();
    assert!(refused(&wrong).starts_with("offset 24: a record of type 999"));
    assert_eq!(
        refused(&champsim(2)[..100]),
        "offset 64: the trace ends within an instruction of 64 bytes: it is truncated"
    );
    assert_eq!(refused(b""), "offset 0: the trace holds no loads and stores");
    assert!(refused(&[0x1f, 0x8b, 8, 0]).contains("compressed by gzip"));
    assert!(refused(&[0x99; 64]).starts_with("offset 0: the content fits no trace format"));
    assert!(refused(b"==7== nothing\n").ends_with("no loads and stores"));
    let words: Vec<u8> = [1_u64 << 40 | 8; 1000].map(u64::to_le_bytes).concat();
    assert!(refused(&[&words[..], &[9; 8]].concat()).starts_with("offset 8000: 0x909090909090909 is no address"));
    let why = all(&words, Some(TraceFormat::Drmemtrace), false)
        .expect_err("refused")
        .to_string();
    assert_eq!(why, "offset 0: expected a drmemtrace header (a record of type 25)");
}

#[test]
fn content_that_may_be_two_formats_has_to_be_named() {
    let mut plain = champsim(1);
    plain[12..16].fill(0);
    assert!(refused(&plain).contains("may be champsim or u64"));
    let (_, words) = all(&plain, Some(TraceFormat::U64), false).expect("a trace");
    assert_eq!(words.len(), 8);
}
