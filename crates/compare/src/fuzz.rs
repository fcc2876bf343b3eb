//! Readers of foreign bytes that nothing outside of this crate needs, for fuzzing.

use crate::elf::Elf;

/// The file of a program.
pub fn elf(bytes: &[u8]) {
    let _ = Elf::read(bytes);
}

/// Finished runs, as `--resume` reads them.
pub fn runs(text: &str) {
    crate::runlog::read_any(text);
}

/// Arms of one's own, as `--arms-file` has them.
pub fn arms(text: &str) {
    crate::arms::custom::read_any(text);
}
