//! The kernel's command line as a file: of its words only those about pools change, and those that a plan adds stand last.

use super::super::error::Flaw;
use super::lines::{is_pool_pages, is_pool_size};

/// May this command line stand where `before` stands now?
pub(super) fn check(path: &str, before: &str, after: &str) -> Result<(), Flaw> {
    let fail = |text: &str, why: &str| Err(Flaw::of_line(path, 0, text, why));
    if after.trim_end().contains('\n') || after.chars().any(|c| c.is_control() && c != '\n') {
        return fail(
            after,
            "the kernel's command line is one line without control characters",
        );
    }
    let [old, new] = [before, after].map(words);
    let about_pools = |word: &&str| word.starts_with("hugepagesz=") || word.starts_with("hugepages=");
    let mut left = old.iter().filter(|word| !about_pools(word));
    for word in new.iter().filter(|word| !about_pools(word)) {
        if left.next() != Some(word) {
            return fail(
                word,
                "a plan adds only hugepagesz=SIZE hugepages=NUMBER to the command line",
            );
        }
    }
    if let Some(word) = left.next() {
        return fail(word, "the file has this word now, and a plan does not remove it");
    }
    match new
        .iter()
        .find(|word| about_pools(word) && !old.contains(word) && !is_pool_size(word) && !is_pool_pages(word))
    {
        Some(word) => fail(
            word,
            "write hugepagesz=SIZE and hugepages=NUMBER, or hugepages=NODE:NUMBER,..",
        ),
        None => Ok(()),
    }
}

/// Words as the kernel separates them: blanks within double quotes belong to a word.
fn words(line: &str) -> Vec<&str> {
    let mut is_quoted = false;
    let apart = |c: char| {
        is_quoted ^= c == '"';
        c.is_whitespace() && !is_quoted
    };
    line.split(apart).filter(|word| !word.is_empty()).collect()
}
