//! Any bytes are an archive that survives its own text, or an error that names a line.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    match host::Tree::parse("fuzz.tree", bytes) {
        Ok(tree) => {
            let again = host::Tree::parse("fuzz.tree", tree.to_text().as_bytes());
            assert_eq!(again.as_ref(), Ok(&tree));
        }
        Err(error) => assert!(error.line > 0),
    }
});
