//! Files that may be very long, such as smaps of a process with hundreds of thousands of mappings: read piece by piece.

use std::fs::File;
use std::io::{self, Cursor, Read};

use model::{Bytes, Cause, Unread};

use super::patience::{self, Reader};
use super::{Root, Source, from_io, open};

/// How much is read before it is looked at.
const PIECE: usize = 256 << 10;
/// The longest part that has to be whole: a mapping of smaps has 27 lines, one of which names a file in at most 16 KiB.
const LONGEST_PART: Bytes = Bytes::mib(1);

struct Pieces<'a> {
    file: Box<dyn Read + 'a>,
    /// What was read and not handed out.
    bytes: Vec<u8>,
    left: u64,
}

impl Source {
    /// Hands out a file of at most `limit` bytes in pieces, each with the number of lines before it. `cut` finds where the last
    /// whole part ends in what was read so far; the end of the file ends the last part.
    ///
    /// # Errors
    /// If it cannot be read, or is larger, and what `take` answers.
    pub fn pieces(
        &self,
        path: &str,
        limit: Bytes,
        cut: impl Fn(&[u8]) -> usize,
        mut take: impl FnMut(usize, &[u8]) -> Result<(), Unread>,
    ) -> Result<(), Unread> {
        let mut pieces = Pieces {
            file: self.long_file(path)?,
            bytes: Vec::with_capacity(PIECE + PIECE / 4),
            left: limit.0,
        };
        let mut lines = 0;
        loop {
            let is_last = from_io(path, pieces.more())?;
            if pieces.left == 0 && from_io(path, pieces.goes_on())? {
                return Err(Unread::new(Cause::Failed, path, format!("it is larger than {limit}")));
            }
            let end = if is_last {
                pieces.bytes.len()
            } else {
                cut(&pieces.bytes)
            };
            if end == 0 && pieces.bytes.len() as u64 > LONGEST_PART.0 {
                let why = format!("a part of it is larger than {LONGEST_PART}");
                return Err(Unread::new(Cause::Garbled, format!("{path}:{}", lines + 1), why));
            }
            take(lines, &pieces.bytes[..end])?;
            lines += pieces.bytes[..end].iter().filter(|&&byte| byte == b'\n').count();
            pieces.bytes.drain(..end);
            if is_last {
                return Ok(());
            }
        }
    }

    /// A file that is not read at once. An archive's is in memory.
    fn long_file(&self, path: &str) -> Result<Box<dyn Read + '_>, Unread> {
        match &*self.root {
            Root::Live => Ok(Box::new(Patient {
                next: Some(Next::At(path.to_owned())),
                ready: Cursor::default(),
            })),
            Root::Directory(root) => Ok(Box::new(from_io(path, open::file_below(root, path))?)),
            Root::Tree(tree) => Ok(Box::new(tree.content(path)?)),
        }
    }
}

impl Pieces<'_> {
    /// Reads on; the answer is whether the file ends there. /proc gives a page at a time, whatever it is asked for.
    fn more(&mut self) -> io::Result<bool> {
        let wanted = (PIECE as u64).min(self.left);
        let read = self.file.by_ref().take(wanted).read_to_end(&mut self.bytes)? as u64;
        self.left -= read;
        Ok(read < wanted || wanted == 0)
    }

    /// Is there more than was allowed?
    fn goes_on(&mut self) -> io::Result<bool> {
        Ok(self.file.read(&mut [0])? > 0)
    }
}

/// A file of the running kernel that needs the memory lock of a process: each piece is read by another thread, and waited for
/// within a bound.
struct Patient {
    next: Option<Next>,
    ready: Cursor<Vec<u8>>,
}

/// Where the next piece comes from.
enum Next {
    At(String),
    Of(File),
}

thread_local! {
    static READER: Reader<Next, io::Result<(Next, Vec<u8>)>> = const { Reader::new() };
}

impl Read for Patient {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.ready.position() == self.ready.get_ref().len() as u64 {
            let gone = || io::Error::other("it could not be read before");
            let next = self.next.take().ok_or_else(gone)?;
            let read = READER.with(|reader| reader.within(patience::MEMORY, next, piece));
            let (next, bytes) = read.map_err(io::Error::other)??;
            (self.next, self.ready) = (Some(next), Cursor::new(bytes));
        }
        self.ready.read(into)
    }
}

fn piece(next: Next) -> io::Result<(Next, Vec<u8>)> {
    let file = match next {
        Next::At(path) => open::kernel_file(&path)?,
        Next::Of(file) => file,
    };
    let mut bytes = Vec::with_capacity(PIECE);
    (&file).take(PIECE as u64).read_to_end(&mut bytes)?;
    Ok((Next::Of(file), bytes))
}

/// The end of the last whole line.
pub fn whole_lines(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1)
}

#[cfg(test)]
mod tests {
    use model::{Bytes, Cause, Unread};
    use proptest::prelude::*;

    use super::whole_lines;
    use crate::{Source, Tree};

    fn lines_of(text: &[u8], limit: Bytes) -> Result<Vec<(usize, Vec<u8>)>, Unread> {
        let source = Source::from_tree("made", Tree::new().file("/proc/5/maps", text));
        let mut lines = Vec::new();
        source.pieces("/proc/5/maps", limit, whole_lines, |before, piece| {
            lines.extend((before..).zip(piece.split_inclusive(|&byte| byte == b'\n').map(<[u8]>::to_vec)));
            Ok(())
        })?;
        Ok(lines)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn pieces_are_the_file_and_number_its_lines(lengths in prop::collection::vec(0_usize..100_000, 0..30), ends in any::<bool>()) {
            let lines: Vec<Vec<u8>> = lengths.iter().map(|&length| [vec![b'x'; length], vec![b'\n']].concat()).collect();
            let mut text = lines.concat();
            if !ends {
                text.pop();
            }
            let whole: Vec<Vec<u8>> = text.split_inclusive(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect();
            let found = lines_of(&text, Bytes(text.len() as u64)).expect("read");
            prop_assert_eq!(found, (0..).zip(whole).collect::<Vec<_>>());
            if !text.is_empty() {
                let why = lines_of(&text, Bytes(text.len() as u64 - 1)).expect_err("too large");
                prop_assert!(why.why.starts_with("it is larger than"));
            }
        }
    }

    #[test]
    fn a_line_without_an_end_is_given_up() {
        let why = lines_of(&vec![b'x'; 3 << 20], Bytes::gib(1)).expect_err("garbled");
        assert_eq!((why.unread, why.place.as_str()), (Cause::Garbled, "/proc/5/maps:1"));
    }
}
