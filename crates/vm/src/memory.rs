//! Host memory that a guest may use: borrowed from its owner, or the guest's own.

use std::marker::PhantomData;
use std::ptr::NonNull;

use chase::Mapping;

use crate::Error;

const PAGE: u64 = 4096;

/// Memory lent to a guest for `'m`: whole pages that stay mapped that long.
#[derive(Clone, Copy, Debug)]
pub struct Memory<'m> {
    start: NonNull<u8>,
    len: usize,
    lent: PhantomData<&'m [std::cell::UnsafeCell<u8>]>,
}

impl Memory<'_> {
    /// Lends `len` bytes from `start`.
    ///
    /// # Safety
    /// The range must be mapped readable and writable for all of `'m`, and while a guest made from it runs, nothing else may
    /// hold a Rust reference to it: the guest reads and writes there.
    pub unsafe fn from_raw(start: NonNull<u8>, len: usize) -> Result<Self, Error> {
        let memory = Self {
            start,
            len,
            lent: PhantomData,
        };
        let refuse = |why| Error::Memory {
            start: memory.start(),
            len: memory.len(),
            why,
        };
        if memory.is_empty() {
            return Err(refuse("it is empty"));
        }
        if !memory.start().is_multiple_of(PAGE) || !memory.len().is_multiple_of(PAGE) {
            return Err(refuse("it is not made of whole 4 KiB pages"));
        }
        Ok(memory)
    }

    /// First address.
    pub fn start(&self) -> u64 {
        self.start.as_ptr() as u64
    }

    pub fn len(&self) -> u64 {
        self.len as u64
    }

    /// Stores words from the start on; what has no room is left out.
    pub(crate) fn store(&self, words: &[u64]) {
        let count = words.len().min(self.len / 8);
        debug_assert_eq!(count, words.len(), "the plan checked the room");
        // SAFETY: within the lent range, which is writable and to which no reference exists (`from_raw`).
        unsafe { std::ptr::copy_nonoverlapping(words.as_ptr(), self.start.as_ptr().cast(), count) };
    }

    /// Never: an empty range is refused.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// Zeroed memory on base pages that belongs to a guest; given back when dropped.
#[derive(Debug)]
pub(crate) struct Owned(Mapping);

impl Owned {
    /// Maps `len` bytes (rounded up to whole pages), on base pages whatever the machine's default is.
    pub(crate) fn new(len: u64) -> Result<Self, Error> {
        let len = len.next_multiple_of(PAGE) as usize;
        let mapping = Mapping::on_base_pages(len).map_err(|source| Error::OutOfMemory {
            bytes: len as u64,
            source,
        })?;
        Ok(Self(mapping))
    }

    pub(crate) fn start(&self) -> u64 {
        self.0.start() as u64
    }

    pub(crate) fn len(&self) -> u64 {
        self.0.size() as u64
    }

    /// Copies bytes to an offset. The caller has laid the memory out; a range outside it is a bug and is cut off.
    pub(crate) fn write(&mut self, offset: u64, bytes: &[u8]) {
        let offset = (offset as usize).min(self.0.size());
        let count = bytes.len().min(self.0.size() - offset);
        debug_assert_eq!(count, bytes.len(), "written past the guest's own memory");
        // SAFETY: `offset + count` lies within the mapping, which nothing else refers to while `self` is borrowed mutably
        // (the guest is stopped then).
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.0.start().add(offset), count) };
    }

    pub(crate) fn write_words(&mut self, offset: u64, words: &[u64]) {
        for (index, word) in words.iter().enumerate() {
            self.write(offset + 8 * index as u64, &word.to_ne_bytes());
        }
    }

    /// `count` words from an offset that is a multiple of 8, as the guest left them.
    pub(crate) fn words(&self, offset: u64, count: usize) -> Vec<u64> {
        let first = self.0.start().wrapping_add(offset as usize).cast::<u64>();
        let room = self.0.size().saturating_sub(offset as usize) / 8;
        (0..count.min(room))
            // SAFETY: within the mapping and aligned; volatile, because the guest wrote it behind the compiler's back.
            .map(|index| unsafe { first.add(index).read_volatile() })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::ptr::NonNull;

    use super::{Memory, Owned};
    use crate::Error;

    #[test]
    fn only_whole_pages_are_lent() {
        let own = Owned::new(3 * 4096).expect("three pages");
        for (offset, len, fine) in [(0, 8192, true), (8, 4096, false), (0, 4095, false), (0, 0, false)] {
            let start = NonNull::new((own.start() + offset) as *mut u8).expect("not null");
            // SAFETY: inside `own`, which outlives the borrow and no other reference exists to it.
            let lent = unsafe { Memory::from_raw(start, len) };
            assert_eq!(lent.is_ok(), fine, "{offset} {len}");
            assert!(fine || matches!(lent, Err(Error::Memory { .. })));
        }
    }

    #[test]
    fn what_was_written_is_read() {
        let mut own = Owned::new(100).expect("a page");
        assert_eq!(own.len(), 4096);
        own.write_words(4080, &[7, 9]);
        assert_eq!(own.words(4072, 9), [0, 7, 9]);
    }
}
