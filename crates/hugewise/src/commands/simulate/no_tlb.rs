//! The warning that no TLB is known for pages of some size.

use model::{Bytes, Warning};

/// It, about a machine's `entries`: what one covers, and what all of them cover.
pub(in crate::commands) fn warning(machine: &str, entries: impl Iterator<Item = (Bytes, Bytes)>) -> Option<Warning> {
    let unknown = entries.filter(|(_, reach)| reach.0 == 0);
    let mut pages: Vec<Bytes> = unknown.map(|(entry, _)| entry).collect();
    pages.sort();
    pages.dedup();
    let named: Vec<String> = pages.iter().map(|page| page.exact()).collect();
    (!named.is_empty()).then(|| {
        let named = named.join(" and ");
        let text = format!(
            "no TLB entries for pages of {named} are known of {machine}: every access to them counts as a miss, so that those rows mean \
             nothing (run `hugewise measure tlb` again, or name the entries in a file for --machine)"
        );
        Warning::new("no-tlb", text)
    })
}
