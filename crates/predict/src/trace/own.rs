//! Our own format: a head in text, then windows of a program's run, each access a few bytes.
//!
//! `hugewise trace 3`, a line of JSON ([`Head`]), then for each window four numbers (instructions in it, microseconds of the program's processor
//! time before it, base pages that were used since the window before, accesses) and its accesses. A number is LEB128; no pages stand for what is not known. An
//! access is one number: its side in the two low bits, above them the zigzag difference to the last address of that side in the window.

use std::io::{self, Read, Write};

use model::latency::Frames;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bytes::Bytes;
use super::error::Reason;
use translation::Access;

/// The first line.
pub(super) const MAGIC: &[u8] = b"hugewise trace 3\n";
/// What it begins with in any version.
pub(super) const ANY: &[u8] = b"hugewise trace ";
/// The longest line of the head.
const HEAD: usize = 1 << 16;
/// Accesses of one window, all of which are in memory at a time.
pub const MOST_OF_A_WINDOW: u64 = 1 << 22;

/// How a trace was made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Head {
    /// How accesses were seen.
    pub method: Method,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// What the trace cannot show.
    pub blind_spots: Vec<BlindSpot>,
    /// Where the program's pages lay in memory, if frame numbers could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frames: Option<Frames>,
    /// Microseconds of the program's processor time in all, if it ended by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_us: Option<u64>,
}

/// How the accesses of a program were seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// One thread was stepped instruction by instruction for windows of the run (ptrace).
    #[default]
    Steps,
}

/// What a trace cannot show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BlindSpot {
    /// What the kernel accesses for the program.
    Kernel,
    /// What other threads do during a window.
    OtherThreads,
    /// What lies between the windows.
    BetweenWindows,
    /// Addresses of gathers, scatters, XSAVE and the like.
    SpecialInstructions,
    /// All behind the last window: the time for capturing was up.
    AfterBudget,
}

/// A window of a program's run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Window {
    pub instructions: u64,
    /// Microseconds of the program's processor time before it.
    pub at_us: u64,
    /// Base pages that the program used since the window before, or since its start, as the kernel counts them; none if it was not asked.
    pub used_pages: Option<u64>,
    pub accesses: Vec<Access>,
}

/// Writes a trace.
///
/// # Errors
/// As the writer.
pub fn write(head: &Head, windows: &[Window], out: &mut dyn Write) -> io::Result<()> {
    out.write_all(MAGIC)?;
    serde_json::to_writer(&mut *out, head)?;
    out.write_all(b"\n")?;
    let mut bytes = Vec::new();
    for window in windows {
        bytes.clear();
        let [used, accesses] = [window.used_pages.unwrap_or(0), window.accesses.len() as u64];
        for number in [window.instructions, window.at_us, used, accesses] {
            put(number, &mut bytes);
        }
        let mut last = [0; 3];
        for access in &window.accesses {
            let (side, address) = (access.side() as usize, access.address());
            let step = address.wrapping_sub(last[side]).cast_signed();
            last[side] = address;
            put(zigzag(step) << 2 | side as u64, &mut bytes);
        }
        out.write_all(&bytes)?;
    }
    Ok(())
}

fn zigzag(step: i64) -> u64 {
    (step << 1 ^ step >> 63).cast_unsigned()
}

/// A step again.
pub(super) fn step(zigzag: u64) -> u64 {
    (zigzag >> 1) ^ (zigzag & 1).wrapping_neg()
}

fn put(mut number: u64, bytes: &mut Vec<u8>) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// What heads a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Told {
    pub instructions: u64,
    /// Microseconds of the program's processor time before it.
    pub at_us: u64,
    /// Base pages that were used since the window before, if that is known.
    pub used_pages: Option<u64>,
}

/// The head, of which the first line was seen.
pub(super) fn head<R: Read>(bytes: &mut Bytes<R>) -> Result<Head, Reason> {
    const EXPECTED: Reason =
        Reason::Malformed("the second line is not the head of a trace: expected JSON of at most 64 KiB");
    bytes.take(MAGIC.len());
    let start = bytes.peek(HEAD)?;
    let end = start.iter().position(|&byte| byte == b'\n').ok_or(EXPECTED)?;
    let head = serde_json::from_slice(&start[..end]).map_err(|_| EXPECTED)?;
    bytes.take(end + 1);
    Ok(head)
}
