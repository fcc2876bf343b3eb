//! Readers of foreign bytes that nothing outside of this crate needs, for the fuzz targets of `parsers`.

use crate::elf::Elf;
use crate::text;

/// The file of a program.
pub fn elf(bytes: &[u8]) {
    let _ = Elf::read(bytes);
}

/// What a server answers to a question by HTTP: its body, or why there is none.
///
/// # Errors
/// Why it is no answer, after the address.
pub fn answer(text: &str) -> Result<String, String> {
    text::body("http://fuzz/", text)
}

/// Finished runs, as `--resume` reads them.
pub fn runs(text: &str) {
    crate::runlog::read_any(text);
}

/// Arms of one's own, as `--arms-file` has them.
pub fn arms(text: &str) {
    crate::arms::read_any(text);
}
