//! The formats of other tools: how each is recognised, and one record of each.

use std::io::{self, Read};

use super::bytes::Bytes;
use super::error::{Reason, TraceError};
use super::{Next, Trace, TraceFormat, own};
use translation::{ADDRESS_BITS, Access, Side};

/// The longest line of a text.
const LINE: usize = 4096;
/// Bytes of ChampSim's record of an instruction.
const INSTRUCTION: usize = 64;
/// Bytes of a record of drmemtrace.
const SIZE: usize = 12;
/// Records of drmemtrace by their type.
mod record {
    pub(super) const READ: u16 = 0;
    pub(super) const WRITE: u16 = 1;
    pub(super) const INSTRUCTION: u16 = 10;
    pub(super) const LAST_BRANCH: u16 = 16;
    pub(super) const BUNDLE: u16 = 17;
    pub(super) const HEADER: u16 = 25;
    pub(super) const FOOTER: u16 = 26;
    pub(super) const TAKEN: u16 = 48;
    pub(super) const UNTAKEN: u16 = 49;
    /// No version so far has a type above.
    pub(super) const LAST: u16 = 63;
}
/// Beginnings of packed files.
const PACKED: [(&[u8], &str); 4] = [
    (&[0x1f, 0x8b], "gzip"),
    (&[0xfd, b'7', b'z', b'X', b'Z'], "xz"),
    (&[0x28, 0xb5, 0x2f, 0xfd], "zstd"),
    (b"BZh", "bzip2"),
];

/// The format of content that begins so.
pub(super) fn recognised(start: &[u8]) -> Result<TraceFormat, Reason> {
    if start.is_empty() {
        return Err(Reason::Empty);
    }
    if let Some((_, tool)) = PACKED.iter().find(|(magic, _)| start.starts_with(magic)) {
        return Err(Reason::Compressed(tool));
    }
    if start.starts_with(own::ANY) && !start.starts_with(own::MAGIC) {
        return Err(Reason::OtherVersion);
    }
    let fits = |format| begins_as(start, format).is_ok();
    if fits(TraceFormat::Hugewise) {
        return Ok(TraceFormat::Hugewise);
    }
    if fits(TraceFormat::Drmemtrace) {
        return Ok(TraceFormat::Drmemtrace);
    }
    let is_text = |byte: &u8| matches!(byte, b'\n' | b'\t' | b' '..=b'~');
    if start.iter().all(is_text) {
        return Ok(TraceFormat::Lackey);
    }
    match (is_champsim(start), are_addresses(start)) {
        (true, true) => Err(Reason::Ambiguous),
        (true, false) => Ok(TraceFormat::Champsim),
        (false, true) => Ok(TraceFormat::U64),
        (false, false) => Err(Reason::Unknown),
    }
}

/// May a trace of the format begin so?
pub(super) fn begins_as(start: &[u8], format: TraceFormat) -> Result<(), Reason> {
    let (fits, expected) = match format {
        TraceFormat::Hugewise => (start.starts_with(own::MAGIC), "the first line `hugewise trace 3`"),
        TraceFormat::Drmemtrace => (
            start.starts_with(&[25, 0, 0, 0]),
            "a drmemtrace header (a record of type 25)",
        ),
        TraceFormat::Lackey | TraceFormat::Champsim | TraceFormat::U64 => (true, ""),
    };
    fits.then_some(()).ok_or(Reason::Magic(expected))
}

/// Two flags of a branch, and addresses of an instruction and of memory in each record.
fn is_champsim(start: &[u8]) -> bool {
    let fits = |record: &[u8; INSTRUCTION]| {
        let is_flag = |at: usize| record[at] <= 1;
        let is_code = word(record, 0) != 0 && Access::canonical(word(record, 0)).is_some();
        is_flag(8) && is_flag(9) && is_code && (2..8).all(|at| Access::canonical(word(record, at)).is_some())
    };
    let (records, _) = start.as_chunks::<INSTRUCTION>();
    !records.is_empty() && records.iter().all(fits)
}

fn are_addresses(start: &[u8]) -> bool {
    let (words, _) = start.as_chunks::<8>();
    !words.is_empty()
        && words
            .iter()
            .all(|word| Access::canonical(u64::from_le_bytes(*word)).is_some())
}

fn word(record: &[u8; INSTRUCTION], at: usize) -> u64 {
    let bytes = record[8 * at..].first_chunk();
    bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// An end within a record is a truncated trace.
fn ended(error: io::Error, within: &'static str) -> Reason {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => Reason::Truncated(within),
        _ => error.into(),
    }
}

impl<R: Read> Trace<R> {
    pub(super) fn word(&mut self, block: &mut Vec<Access>) -> Result<Next, TraceError> {
        let record = self.bytes.record::<8>();
        match record.map_err(|error| self.at(0, ended(error, "an address of 8 bytes")))? {
            Some(word) => self.add(block, u64::from_le_bytes(word), Side::Load),
            None => return Ok(Next::End),
        }
        .map_err(|reason| self.at(8, reason))?;
        Ok(Next::More)
    }

    pub(super) fn instruction(&mut self, block: &mut Vec<Access>) -> Result<Next, TraceError> {
        let record = self.bytes.record::<INSTRUCTION>();
        let record = record.map_err(|error| self.at(0, ended(error, "an instruction of 64 bytes")))?;
        let Some(record) = record else {
            return Ok(Next::End);
        };
        let mut all = || {
            if record[8] > 1 || record[9] > 1 {
                return Err(Reason::Malformed(
                    "no ChampSim instruction: its two branch flags are 0 or 1",
                ));
            }
            self.add(block, word(&record, 0), Side::Fetch)?;
            // Memory that is read stands behind what is written, and is read first.
            for at in [4, 5, 6, 7, 2, 3] {
                let side = if at < 4 { Side::Store } else { Side::Load };
                match word(&record, at) {
                    0 => {}
                    address => self.add(block, address, side)?,
                }
            }
            Ok(())
        };
        all().map_err(|reason| self.at(INSTRUCTION as u64, reason))?;
        Ok(Next::More)
    }

    /// Loads and stores of drmemtrace up to any other record, a strange address, or the end of what is in memory.
    pub(super) fn loads_and_stores(&mut self, block: &mut Vec<Access>, most: usize) {
        let (records, _) = self.bytes.at_hand().as_chunks::<SIZE>();
        let records = &records[..records.len().min(most)];
        let fields =
            |&[a, b, _, _, ref address @ ..]: &[u8; SIZE]| (u16::from_le_bytes([a, b]), u64::from_le_bytes(*address));
        let is_other = |record: &[u8; SIZE]| {
            let (kind, address) = fields(record);
            kind > record::WRITE || address >> ADDRESS_BITS != 0
        };
        // Looked at first, so that a list of known length is added without a question in between.
        let added = records.iter().position(is_other).unwrap_or(records.len());
        block.extend(records[..added].iter().map(|record| {
            let (kind, address) = fields(record);
            let side = if kind == record::READ { Side::Load } else { Side::Store };
            Access::new(address, side)
        }));
        self.told.data += added as u64;
        self.bytes.take(added * SIZE);
    }

    pub(super) fn entry(&mut self, block: &mut Vec<Access>) -> Result<Next, TraceError> {
        let record = self.bytes.record::<SIZE>();
        let record = record.map_err(|error| self.at(0, ended(error, "a record of 12 bytes")))?;
        let Some([a, b, c, d, address @ ..]) = record else {
            return match self.state.is_open {
                true => Err(self.at(0, Reason::Truncated("a file without its footer"))),
                false => Ok(Next::End),
            };
        };
        let (kind, size) = (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]));
        let added = self.entry_of(kind, size, address, block);
        added.map_err(|reason| self.at(SIZE as u64, reason))?;
        Ok(Next::More)
    }

    fn entry_of(&mut self, kind: u16, size: u16, content: [u8; 8], block: &mut Vec<Access>) -> Result<(), Reason> {
        let address = u64::from_le_bytes(content);
        match kind {
            record::READ => self.add(block, address, Side::Load),
            record::WRITE => self.add(block, address, Side::Store),
            record::INSTRUCTION..=record::LAST_BRANCH | record::TAKEN | record::UNTAKEN => {
                self.state.next_instruction = address.wrapping_add(u64::from(size));
                self.add(block, address, Side::Fetch)
            }
            record::BUNDLE => {
                // The lengths of the instructions that follow the one before.
                for &length in content.iter().take(size.into()) {
                    let next = self.state.next_instruction;
                    self.add(block, next, Side::Fetch)?;
                    self.state.next_instruction = next.wrapping_add(u64::from(length));
                }
                Ok(())
            }
            record::HEADER => {
                self.state.is_open = true;
                Ok(())
            }
            record::FOOTER => {
                self.state.is_open = false;
                Ok(())
            }
            other if other > record::LAST => Err(Reason::Record(other)),
            _ => Ok(()),
        }
    }

    pub(super) fn line(&mut self, block: &mut Vec<Access>) -> Result<Next, TraceError> {
        self.state.line += 1;
        let found = next_line(&mut self.bytes).map_err(|reason| self.at(0, reason))?;
        let Some(((sides, address), length)) = found else {
            return Ok(Next::End);
        };
        self.bytes.take(length);
        for &side in sides {
            self.add(block, address, side).map_err(|reason| self.at(0, reason))?;
        }
        Ok(Next::More)
    }
}

/// The accesses of a line, all to one address; none of valgrind's own words.
type Line = (&'static [Side], u64);

/// The next line with its length; none at the end.
fn next_line<R: Read>(bytes: &mut Bytes<R>) -> Result<Option<(Line, usize)>, Reason> {
    // Lines of accesses are short; only valgrind's own are longer.
    for most in [64, LINE] {
        let start = bytes.peek(most)?;
        if start.is_empty() {
            return Ok(None);
        }
        if let Some(length) = start.iter().position(|&byte| byte == b'\n') {
            return Ok(Some((lackey(&start[..length])?, length + 1)));
        }
        if start.len() < most {
            return Err(Reason::Truncated("a line"));
        }
    }
    Err(Reason::Malformed("a line is longer than 4096 bytes"))
}

fn lackey(line: &[u8]) -> Result<Line, Reason> {
    const EXPECTED: Reason = Reason::Malformed(
        "no line of lackey: expected `I  ADDRESS,SIZE`, ` L ADDRESS,SIZE`, ` S ...` or ` M ...`, or valgrind's `==PID==`",
    );
    let (sides, rest): (&[Side], _) = match line {
        [] | [b'=', b'=', ..] | [b'-', b'-', ..] | [b'*', b'*', ..] => return Ok((&[], 0)),
        [b'I', b' ', b' ', rest @ ..] => (&[Side::Fetch], rest),
        [b' ', b'L', b' ', rest @ ..] => (&[Side::Load], rest),
        [b' ', b'S', b' ', rest @ ..] => (&[Side::Store], rest),
        [b' ', b'M', b' ', rest @ ..] => (&[Side::Load, Side::Store], rest),
        _ => return Err(EXPECTED),
    };
    let comma = rest.iter().position(|&byte| byte == b',').ok_or(EXPECTED)?;
    let (digits, size) = (&rest[..comma], &rest[comma + 1..]);
    let is_size = !size.is_empty() && size.len() <= 6 && size.iter().all(u8::is_ascii_digit);
    if !is_size || digits.is_empty() || digits.len() > 16 {
        return Err(EXPECTED);
    }
    let mut address = 0;
    for &digit in digits {
        let digit = char::from(digit).to_digit(16).ok_or(EXPECTED)?;
        address = address << 4 | u64::from(digit);
    }
    Ok((sides, address))
}
