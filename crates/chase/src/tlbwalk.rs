//! Translation probes: one line on each of many pages, private or all the same physical page, visited in turn and timed.

mod flush;
mod prove;
mod span;
mod tour;

pub use flush::Flush;
pub use prove::Proof;
pub use span::{Behind, Span};
use tour::Order;
pub use tour::Tour;

impl Span {
    /// Links the words at these byte offsets, all different, into a ring in this order. Brings their pages in.
    ///
    /// # Panics
    /// If an offset lies beyond the span or is no multiple of 8, if there is none, or if the span is not private.
    pub fn ring<'a>(&'a mut self, offsets: &[u64]) -> Tour<'a> {
        assert!(
            self.behind == Behind::Private && !offsets.is_empty(),
            "a ring needs memory of its own"
        );
        let words: Vec<*mut u64> = offsets.iter().map(|&offset| self.word(offset)).collect();
        link(&words)
    }

    /// As [`Span::ring`], through words of two spans in turn; what one of them has more comes at the end.
    ///
    /// # Panics
    /// As [`Span::ring`], for either span.
    pub fn ring_with<'a>(&'a mut self, offsets: &[u64], other: &'a mut Span, others: &[u64]) -> Tour<'a> {
        assert!(self.behind == Behind::Private && other.behind == Behind::Private && !offsets.is_empty());
        let both = offsets.len().min(others.len());
        let mut words = Vec::with_capacity(offsets.len() + others.len());
        for (&here, &there) in offsets.iter().zip(others) {
            words.extend([self.word(here), other.word(there)]);
        }
        words.extend(offsets[both..].iter().map(|&offset| self.word(offset)));
        words.extend(others[both..].iter().map(|&offset| other.word(offset)));
        link(&words)
    }

    /// Lists the words at these byte offsets, to be visited in this order through `list`. Brings their pages in. Words of a
    /// private span are set to zero.
    ///
    /// # Panics
    /// If an offset lies beyond the span or is no multiple of 8, if there is none, or if the list is too short.
    pub fn listed<'a>(&'a mut self, offsets: &[u64], list: &'a mut Span) -> Tour<'a> {
        assert!(!offsets.is_empty(), "nothing to visit");
        for (index, &offset) in offsets.iter().enumerate() {
            let word = self.visited(offset);
            // SAFETY: inside the list, which is borrowed mutably.
            unsafe { list.word(index as u64 * 8).write(word as u64) };
        }
        Tour {
            order: Order::Listed(list.word(0)),
            steps: offsets.len() as u64,
            _span: std::marker::PhantomData,
        }
    }
}

/// Makes a ring of words, each in a private span that the tour borrows mutably.
fn link<'a>(words: &[*mut u64]) -> Tour<'a> {
    for (here, next) in words.iter().zip(words.iter().cycle().skip(1)) {
        // SAFETY: callers pass words inside writable spans they borrow mutably, checked by `Span::word`.
        unsafe { here.write(*next as u64) };
    }
    Tour {
        order: Order::Ring(words[0]),
        steps: words.len() as u64,
        _span: std::marker::PhantomData,
    }
}

#[cfg(test)]
mod tests;
