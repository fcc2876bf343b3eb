//! Texts that occur again and again, such as permissions and names of mappings: each is kept once.

use std::collections::HashSet;
use std::sync::Arc;

use crate::Bytes;

/// All texts so far.
#[derive(Clone, Debug, Default)]
pub struct Texts {
    known: HashSet<Arc<str>>,
    bytes: u64,
}

impl Texts {
    /// The most that is kept of one process. 65,530 mappings of different files with names of 100 bytes have 6 MiB; more comes
    /// from a process that wants memory to be used up.
    pub const MOST: Bytes = Bytes::mib(32);

    /// One of them; `None` if it is new and there is no room for it.
    pub fn of(&mut self, text: &str) -> Option<Arc<str>> {
        if let Some(known) = self.known.get(text) {
            return Some(Arc::clone(known));
        }
        self.bytes = self.bytes.saturating_add(text.len() as u64);
        if self.bytes > Self::MOST.0 {
            return None;
        }
        let text: Arc<str> = text.into();
        self.known.insert(Arc::clone(&text));
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::Texts;

    #[test]
    fn a_text_is_kept_once_and_all_of_them_are_bounded() {
        let mut texts = Texts::default();
        let first = texts.of("rw-p").expect("kept");
        let kept = (0..10_000)
            .filter_map(|number| texts.of(&format!("{number:04096}")))
            .count();
        assert_eq!(kept, (32 << 20) / 4096 - 1);
        assert!(
            Arc::ptr_eq(&first, &texts.of("rw-p").expect("kept")),
            "what is known stays known"
        );
    }
}
