//! A configuration file of any kind with any content: its reader answers, and garbled lines have a place in it.
#![no_main]

use host::config::Given;
use host::config::given::FileKind;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let [which, content @ ..] = bytes else { return };
    let kind = FileKind::ALL[usize::from(*which) % FileKind::ALL.len()];
    let mut given = Given::default();
    let _ = given.add("fuzz", content, Some(kind));
    let _ = given.add("fuzz", content, None);
    assert!(given.garbled.iter().all(|why| why.place.starts_with("fuzz:")));
});
