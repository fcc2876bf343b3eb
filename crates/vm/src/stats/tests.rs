//! The file format, byte by byte, whole and damaged.

use proptest::prelude::*;

use super::parse;

/// A file with names of 16 bytes, an id after the header, and a gap before the values, as the kernel may lay it out.
fn file(entries: &[(&str, &[u64])]) -> Vec<u8> {
    let (names, id, gap) = (16, 16, 24);
    let descriptors = 24 + id;
    let values = descriptors + entries.len() * (16 + names) + gap;
    let header = [0, names, entries.len(), 24, descriptors, values];
    let mut bytes: Vec<u8> = header.iter().flat_map(|&word| (word as u32).to_ne_bytes()).collect();
    bytes.resize(descriptors, b'i');
    let mut offset = 0;
    for (name, numbers) in entries {
        bytes.extend(0u32.to_ne_bytes()); // flags
        bytes.extend(0i16.to_ne_bytes()); // exponent
        bytes.extend((numbers.len() as u16).to_ne_bytes());
        bytes.extend((offset as u32).to_ne_bytes());
        bytes.extend(0u32.to_ne_bytes()); // bucket size
        bytes.extend(name.bytes().chain(std::iter::repeat(0)).take(names));
        offset += numbers.len() * 8;
    }
    bytes.resize(values, 0xff);
    bytes.extend(
        entries
            .iter()
            .flat_map(|(_, numbers)| *numbers)
            .flat_map(|n| n.to_ne_bytes()),
    );
    bytes
}

#[test]
fn values_come_by_name_and_histograms_stay_out() {
    let stats = parse(&file(&[
        ("exits", &[7]),
        ("hist", &[1, 2, 3]),
        ("pf_fixed", &[1 << 40]),
    ]))
    .expect("parses");
    let all: Vec<_> = stats.iter().collect();
    assert_eq!(all, [("exits", 7), ("pf_fixed", 1 << 40)]);
    assert_eq!(stats.get("hist"), None);
}

#[test]
fn changes_are_signed_and_what_stood_still_is_left_out() {
    let before = parse(&file(&[("exits", &[7]), ("pages_4k", &[9]), ("same", &[1])])).expect("parses");
    let after = parse(&file(&[("exits", &[10]), ("pages_4k", &[4]), ("same", &[1])])).expect("parses");
    let changes: Vec<_> = after.since(&before).into_iter().collect();
    assert_eq!(changes, [("exits".to_owned(), 3), ("pages_4k".to_owned(), -5)]);
    assert_eq!(before.and(after).get("exits"), Some(17));
}

#[test]
fn a_file_that_is_cut_off_is_garbled_wherever_it_ends() {
    let whole = file(&[("exits", &[7]), ("pf_fixed", &[8])]);
    for len in 0..whole.len() {
        let error = parse(&whole[..len]).expect_err("cut off").to_string();
        assert!(error.contains("garbled"), "{len}: {error}");
    }
}

proptest! {
    #[test]
    fn no_bytes_can_make_it_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..300), small in any::<bool>()) {
        if small {
            // Small header words get past the first check.
            for word in bytes.chunks_exact_mut(4).take(6) {
                word[1..].fill(0);
            }
        }
        let _ = parse(&bytes);
    }
}
