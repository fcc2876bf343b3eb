//! The version of a C library: from its file's name, or from the sentence that every glibc carries.

use model::{Bytes, Cause, Reading, Unread};

use super::areas::Area;
use host::Source;

/// `GNU C Library (...) stable release version 2.36.`
const SENTENCE: &[u8] = b"release version ";

/// The version of the glibc that a process mapped.
pub(super) fn version(source: &Source, pid: u32, areas: &[Area]) -> Reading<(u32, u32)> {
    let Some(path) = library(areas) else {
        return Reading::absent(format!("/proc/{pid}/maps: no glibc is mapped"));
    };
    in_name(path).map_or_else(|| of_file(source, pid, path), Reading::Known)
}

/// The C library among the mappings.
pub fn library(areas: &[Area]) -> Option<&str> {
    mapped(areas).map(|area| &*area.name)
}

/// Its first mapping.
pub(super) fn mapped(areas: &[Area]) -> Option<&Area> {
    let is_libc = |area: &&Area| {
        let file = area.name.rsplit('/').next().unwrap_or_default();
        // An update of the package deletes the file that is mapped.
        let file = file.strip_suffix(" (deleted)").unwrap_or(file);
        file == "libc.so.6" || (file.starts_with("libc-2.") && file.ends_with(".so"))
    };
    areas.iter().find(is_libc)
}

/// The part of the library's file that holds its version, for a capture; nothing if there is none.
pub(crate) fn telling_part(bytes: &[u8]) -> Vec<u8> {
    in_bytes(bytes).map_or_else(Vec::new, |(major, minor)| {
        let sentence = String::from_utf8_lossy(SENTENCE);
        format!("GNU C Library {sentence}{major}.{minor}.\n").into_bytes()
    })
}

/// `libc-2.31.so`, as files were named until glibc 2.34.
fn in_name(path: &str) -> Option<(u32, u32)> {
    let version = path.rsplit('/').next()?.strip_prefix("libc-")?.strip_suffix(".so")?;
    pair(version)
}

/// In the process's own root first: a container's library has the same path as another on the host.
fn of_file(source: &Source, pid: u32, path: &str) -> Reading<(u32, u32)> {
    let inside = format!("/proc/{pid}/root{path}");
    let mut bytes = source.bytes_within(&inside, Bytes::mib(16));
    // A capture has no such links.
    if bytes.is_absent() && source.follows_processes() {
        bytes = source.bytes_within(path, Bytes::mib(16));
    }
    let absent = || Unread::new(Cause::Absent, path, "it holds no version of glibc");
    bytes.and_then(|bytes| in_bytes(&bytes).ok_or_else(absent))
}

fn in_bytes(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut from = 0;
    while let Some(at) = bytes[from..].iter().position(|&byte| byte == SENTENCE[0]) {
        from += at;
        if let Some(rest) = bytes[from..].strip_prefix(SENTENCE) {
            return pair(&String::from_utf8_lossy(&rest[..rest.len().min(16)]));
        }
        from += 1;
    }
    None
}

/// Major and minor number at the beginning of a text.
pub(super) fn pair(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split(|c: char| !c.is_ascii_digit());
    Some((
        numbers.next()?.parse().ok()?,
        numbers.next().and_then(|minor| minor.parse().ok()).unwrap_or(0),
    ))
}
