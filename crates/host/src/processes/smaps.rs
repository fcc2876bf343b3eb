//! /proc/PID/smaps and smaps_rollup: what backs each mapping, and their sum, read under its memory lock.
//!
//! Hand-written over bytes: a process may have hundreds of thousands of mappings of 27 lines each.

use model::{Bytes, Cause, Unread};

use super::lines::{Line, decimal, hex, lines, lines_after};
use super::mapping::{Counted, Counts, Mapping};
use crate::Source;
use crate::source::whole_lines;

impl Counts {
    /// Takes a line if it is one of these counts.
    fn take(&mut self, line: &Line<'_>, key: &[u8], value: &[u8]) -> Result<(), Unread> {
        let field = match key {
            b"Rss" => &mut self.rss,
            b"Pss" => &mut self.pss,
            b"AnonHugePages" => &mut self.anon_huge,
            b"ShmemPmdMapped" => &mut self.shmem_pmd,
            b"FilePmdMapped" => &mut self.file_pmd,
            b"Shared_Hugetlb" | b"Private_Hugetlb" => {
                self.hugetlb = [self.hugetlb, line.kib(key, value)?].into_iter().sum();
                return Ok(());
            }
            _ => return Ok(()),
        };
        *field = line.kib(key, value)?;
        Ok(())
    }
}

/// A file with lines for each mapping: at 750 bytes a mapping, a million of them still fit.
pub(super) const LARGEST: Bytes = Bytes::gib(1);
/// A file with one line for each mapping: at 90 bytes a line, a million and a half fit.
const LARGEST_MAPS: Bytes = Bytes::mib(128);

/// Visits the mappings of a smaps file in the order of addresses, without ever holding all of it.
pub(crate) fn each(
    source: &Source,
    path: &str,
    mut visit: impl FnMut(&Mapping<&[u8]>) -> Result<(), Unread>,
) -> Result<(), Unread> {
    source.pieces(path, LARGEST, last_header, |before, piece| {
        parse_each(lines_after(path, before, piece), |mapping| visit(&mapping))
    })
}

/// What is done with each mapping, whose texts are borrowed from the file.
pub(super) type Visit<'a> = dyn FnMut(&Mapping<&[u8]>) -> Result<(), Unread> + 'a;

/// Visits the mappings of a process without counts. A capture may have smaps where it has no maps.
pub(crate) fn each_named(source: &Source, pid: u32, visit: &mut Visit<'_>) -> Result<(), Unread> {
    let mut read = |name: &str, limit| {
        let path = format!("/proc/{pid}/{name}");
        source.pieces(&path, limit, whole_lines, |before, piece| {
            headers(lines_after(&path, before, piece), visit)
        })
    };
    match read("maps", LARGEST_MAPS) {
        Err(why) if why.unread == Cause::Absent => read("smaps", LARGEST).map_err(|_| why),
        read => read,
    }
}

/// Visits the mappings in lines of such a file.
pub(super) fn headers<'a>(lines: impl Iterator<Item = Line<'a>>, visit: &mut Visit<'_>) -> Result<(), Unread> {
    // `AnonHugePages:` begins like an address.
    let mut headers = lines.filter(|line| line.key_value().is_none());
    headers.try_for_each(|line| visit(&header(&line)?))
}

/// Where the last mapping begins whose lines may still be missing.
fn last_header(bytes: &[u8]) -> usize {
    let mut end = whole_lines(bytes);
    while let Some(before) = bytes[..end].split_last().map(|(_, before)| before) {
        let start = whole_lines(before);
        let line = lines("", &bytes[start..end]).next();
        if line.is_some_and(|line| line.key_value().is_none() && is_header(&line)) {
            return start;
        }
        end = start;
    }
    0
}

/// Reads a whole smaps file, in the order of addresses; `path` is named in the reasons only.
pub fn parse<'a>(path: &'a str, bytes: &'a [u8]) -> Result<Vec<Mapping<&'a [u8]>>, Unread> {
    let mut mappings = Vec::new();
    parse_each(lines(path, bytes), |mapping| {
        mappings.push(mapping);
        Ok(())
    })?;
    Ok(mappings)
}

fn parse_each<'a>(
    lines: impl Iterator<Item = Line<'a>>,
    mut visit: impl FnMut(Mapping<&'a [u8]>) -> Result<(), Unread>,
) -> Result<(), Unread> {
    let mut open: Option<Draft<'a>> = None;
    for line in lines {
        if !line.whole {
            return Err(line.garbled("the last line", line.text, "a whole line: the file was cut"));
        }
        if let Some((key, value)) = line.key_value() {
            if let Some(draft) = &mut open {
                draft.take(&line, key, value)?;
            }
        } else if is_header(&line) {
            close(open.take(), &mut visit)?;
            open = Some(Draft {
                mapping: header(&line)?,
                counted: Counted::default(),
                line,
                rss_seen: false,
                hugetlb_seen: false,
            });
        }
    }
    close(open, &mut visit)
}

/// Reads a smaps_rollup file: the sum over all mappings.
pub fn parse_rollup(path: &str, bytes: &[u8]) -> Result<Counts, Unread> {
    let mut counts = Counts::default();
    let mut rss_seen = false;
    for line in lines(path, bytes) {
        if let Some((key, value)) = line.key_value() {
            counts.take(&line, key, value)?;
            rss_seen |= key == b"Rss";
        }
    }
    if rss_seen {
        Ok(counts)
    } else {
        Err(Unread::new(Cause::Garbled, path, "no Rss line"))
    }
}

/// A mapping whose lines are still being read.
struct Draft<'a> {
    mapping: Mapping<&'a [u8]>,
    counted: Counted<&'a [u8]>,
    line: Line<'a>,
    rss_seen: bool,
    hugetlb_seen: bool,
}

/// No machine has larger base pages, and no hugetlb pages are as small on kernels that show neither flags nor counts of them.
const LARGEST_BASE_PAGE: Bytes = Bytes::kib(64);

impl<'a> Draft<'a> {
    fn take(&mut self, line: &Line<'a>, key: &[u8], value: &'a [u8]) -> Result<(), Unread> {
        match key {
            b"KernelPageSize" => self.counted.kernel_page = Some(line.kib(key, value)?),
            b"THPeligible" => self.counted.thp_eligible = Some(line.flag("THPeligible", value)?),
            b"VmFlags" => self.counted.flags = value.trim_ascii(),
            _ => {
                self.rss_seen |= key == b"Rss";
                self.hugetlb_seen |= key.ends_with(b"_Hugetlb");
                self.counted.counts.take(line, key, value)?;
            }
        }
        Ok(())
    }

    /// Kernels before 4.4 count no hugetlb pages here: such a mapping then has at most its length of them. The flags are there since 3.8.
    fn counted(self) -> Mapping<&'a [u8]> {
        let mut mapping = Mapping {
            counted: Some(self.counted),
            ..self.mapping
        };
        let size = mapping.size();
        let is_of_pool = mapping.has("ht") == Some(true);
        if let Some(counted) = mapping.counted.as_mut().filter(|_| !self.hugetlb_seen) {
            let is_large = counted.kernel_page.is_some_and(|page| page > LARGEST_BASE_PAGE);
            if is_of_pool || counted.flags.is_empty() && is_large {
                counted.counts.hugetlb = size;
            }
        }
        mapping
    }
}

/// Hands out a finished mapping. Every kernel prints its Rss: without it the file was cut between two lines.
fn close<'a>(
    draft: Option<Draft<'a>>,
    visit: &mut impl FnMut(Mapping<&'a [u8]>) -> Result<(), Unread>,
) -> Result<(), Unread> {
    let Some(draft) = draft else { return Ok(()) };
    if !draft.rss_seen {
        return Err(draft
            .line
            .garbled("the mapping", draft.line.text, "an Rss line after it"));
    }
    visit(draft.counted())
}

/// Reads `start-end perms offset device inode    name`.
fn header<'a>(line: &Line<'a>) -> Result<Mapping<&'a [u8]>, Unread> {
    header_fields(line.text)
        .ok_or_else(|| line.garbled("the line", line.text, "START-END PERMS OFFSET DEVICE INODE NAME"))
}

/// Does it begin like an address? Other lines without a key belong to no known form and are passed over.
fn is_header(line: &Line<'_>) -> bool {
    line.text.first().is_some_and(u8::is_ascii_hexdigit)
}

fn header_fields(text: &[u8]) -> Option<Mapping<&[u8]>> {
    let mut fields = text.splitn(6, |&byte| byte == b' ');
    let mut range = fields.next()?.splitn(2, |&byte| byte == b'-');
    let (start, end) = (hex(range.next()?)?, hex(range.next()?)?);
    if start >= end {
        return None;
    }
    Some(Mapping {
        range: start..end,
        perms: fields.next().filter(|perms| perms.len() == 4)?,
        offset: hex(fields.next()?)?,
        device: fields.next()?,
        inode: decimal(fields.next()?)?,
        name: fields.next().unwrap_or_default().trim_ascii_start(),
        counted: None,
    })
}

#[cfg(test)]
#[path = "smaps_tests.rs"]
mod tests;
