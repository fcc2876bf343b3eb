//! Bytes of a trace, a bounded number of them in memory, with their offset.

use std::io::{self, Read};

/// Bytes that are looked at to recognise a format.
pub(super) const PEEK: usize = 4096;
/// Bytes in memory; no record and no line is longer than half of it.
const CAPACITY: usize = 1 << 17;

pub(super) struct Bytes<R> {
    read: R,
    buffer: Vec<u8>,
    from: usize,
    to: usize,
    before: u64,
}

impl<R: Read> Bytes<R> {
    pub(super) fn new(read: R) -> Self {
        Self {
            read,
            buffer: vec![0; CAPACITY],
            from: 0,
            to: 0,
            before: 0,
        }
    }

    /// Bytes that were taken.
    pub(super) fn offset(&self) -> u64 {
        self.before + self.from as u64
    }

    /// So many of the next bytes, at most half of the capacity; fewer only at the end.
    pub(super) fn peek(&mut self, wanted: usize) -> io::Result<&[u8]> {
        while self.to - self.from < wanted {
            if self.from > 0 && self.to + wanted > CAPACITY {
                self.buffer.copy_within(self.from..self.to, 0);
                self.before += self.from as u64;
                (self.from, self.to) = (0, self.to - self.from);
            }
            match self.read.read(&mut self.buffer[self.to..]) {
                Ok(0) => break,
                Ok(read) => self.to += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let end = self.to.min(self.from + wanted);
        Ok(&self.buffer[self.from..end])
    }

    /// What is in memory, which may be nothing.
    pub(super) fn at_hand(&self) -> &[u8] {
        &self.buffer[self.from..self.to]
    }

    /// Passes over bytes that were peeked at.
    pub(super) fn take(&mut self, bytes: usize) {
        self.from = (self.from + bytes).min(self.to);
    }

    /// The next so many bytes, at most 64; none at the end, an error of a few.
    #[inline]
    pub(super) fn record<const N: usize>(&mut self) -> io::Result<Option<[u8; N]>> {
        if self.to - self.from < N && self.peek(N)?.len() < N {
            return match self.to - self.from {
                0 => Ok(None),
                _ => Err(io::ErrorKind::UnexpectedEof.into()),
            };
        }
        let record = self.buffer[self.from..].first_chunk().copied();
        self.from += N;
        Ok(record)
    }
}
