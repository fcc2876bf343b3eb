//! /proc/PID/smaps and smaps_rollup: what backs each mapping, and their sum, read under its memory lock.
//!
//! Hand-written over bytes: a process may have hundreds of thousands of mappings of 27 lines each.

use std::ops::Range;

use model::process::MappingPages;
use model::{Backing, Bytes, Cause, PageKind, Unread};

use super::lines::{Line, decimal, hex, lines, lines_after};
use crate::Source;
use crate::source::whole_lines;

/// The resident bytes that smaps counts, of one mapping or of a whole process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// `Rss`: resident pages of every kind except hugetlb.
    pub rss: Bytes,
    /// `AnonHugePages`: anonymous memory mapped by PMD entries; smaller transparent sizes are not in it.
    pub anon_huge: Bytes,
    /// `ShmemPmdMapped`: shared memory mapped by PMD entries.
    pub shmem_pmd: Bytes,
    /// `FilePmdMapped`: page cache mapped by PMD entries.
    pub file_pmd: Bytes,
    /// `Shared_Hugetlb`: hugetlb pages mapped by others too.
    pub shared_hugetlb: Bytes,
    /// `Private_Hugetlb`: hugetlb pages mapped here only.
    pub private_hugetlb: Bytes,
}

impl Counts {
    /// PMD-mapped transparent pages of all three origins.
    pub fn thp(&self) -> Bytes {
        let parts = [self.anon_huge, self.shmem_pmd, self.file_pmd];
        Bytes(parts.iter().fold(0, |sum, part| sum.saturating_add(part.0)))
    }

    /// hugetlb pages, shared or not.
    pub fn hugetlb(&self) -> Bytes {
        Bytes(self.shared_hugetlb.0.saturating_add(self.private_hugetlb.0))
    }

    /// Resident bytes outside hugetlb as base and thp.
    pub fn transparent(&self) -> Backing {
        let thp = Bytes(self.thp().0.min(self.rss.0));
        [(PageKind::Base, Bytes(self.rss.0 - thp.0)), (PageKind::Thp, thp)]
            .into_iter()
            .collect()
    }

    /// Takes a line if it is one of these counts.
    fn take(&mut self, line: &Line<'_>, key: &[u8], value: &[u8]) -> Result<(), Unread> {
        let field = match key {
            b"Rss" => &mut self.rss,
            b"AnonHugePages" => &mut self.anon_huge,
            b"ShmemPmdMapped" => &mut self.shmem_pmd,
            b"FilePmdMapped" => &mut self.file_pmd,
            b"Shared_Hugetlb" => &mut self.shared_hugetlb,
            b"Private_Hugetlb" => &mut self.private_hugetlb,
            _ => return Ok(()),
        };
        *field = line.kib(key, value)?;
        Ok(())
    }
}

/// One mapping as smaps shows it; texts are borrowed from the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping<'a> {
    /// First address, and one past the last.
    pub range: Range<u64>,
    /// Permissions such as `rw-p`.
    pub perms: &'a [u8],
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// Device as `major:minor`, in hex.
    pub device: &'a [u8],
    /// Inode; 0 for memory without a file.
    pub inode: u64,
    /// File, `[heap]`, `[anon:...]` or nothing. A newline in a file name reads `\012`; other bytes are as they are.
    pub name: &'a [u8],
    /// `KernelPageSize`: the size of a hugetlb page, elsewhere the base page.
    pub kernel_page: Option<Bytes>,
    /// `MMUPageSize`.
    pub mmu_page: Option<Bytes>,
    /// `THPeligible`: may some enabled transparent size be used here?
    pub thp_eligible: Option<bool>,
    /// `VmFlags` as printed: two letters each, with blanks between.
    pub flags: &'a [u8],
    /// The resident bytes.
    pub counts: Counts,
}

/// A file with lines for each mapping: at 750 bytes a mapping, a million of them still fit.
pub(super) const LARGEST: Bytes = Bytes::gib(1);

/// Visits the mappings of a smaps file in the order of addresses, without ever holding all of it.
pub(crate) fn each(
    source: &Source,
    path: &str,
    mut visit: impl FnMut(&Mapping<'_>) -> Result<(), Unread>,
) -> Result<(), Unread> {
    source.pieces(path, LARGEST, last_header, |before, piece| {
        parse_each(lines_after(path, before, piece), |mapping| visit(&mapping))
    })
}

/// The same of a maps file, or of the headers in a smaps file: without counts.
pub(crate) fn each_named(
    source: &Source,
    path: &str,
    mut visit: impl FnMut(&Mapping<'_>) -> Result<(), Unread>,
) -> Result<(), Unread> {
    source.pieces(path, LARGEST, whole_lines, |before, piece| {
        // `AnonHugePages:` begins like an address.
        let mut headers = lines_after(path, before, piece).filter(|line| line.key_value().is_none());
        headers.try_for_each(|line| header(&line)?.map_or(Ok(()), |mapping| visit(&mapping)))
    })
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
pub fn parse<'a>(path: &'a str, bytes: &'a [u8]) -> Result<Vec<Mapping<'a>>, Unread> {
    let mut mappings = Vec::new();
    parse_each(lines(path, bytes), |mapping| {
        mappings.push(mapping);
        Ok(())
    })?;
    Ok(mappings)
}

fn parse_each<'a>(
    lines: impl Iterator<Item = Line<'a>>,
    mut visit: impl FnMut(Mapping<'a>) -> Result<(), Unread>,
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
        } else if let Some(mapping) = header(&line)? {
            close(open.take(), &mut visit)?;
            open = Some(Draft {
                mapping,
                line,
                rss_seen: false,
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
    mapping: Mapping<'a>,
    line: Line<'a>,
    rss_seen: bool,
}

impl<'a> Draft<'a> {
    fn take(&mut self, line: &Line<'a>, key: &[u8], value: &'a [u8]) -> Result<(), Unread> {
        match key {
            b"KernelPageSize" => self.mapping.kernel_page = Some(line.kib(key, value)?),
            b"MMUPageSize" => self.mapping.mmu_page = Some(line.kib(key, value)?),
            b"THPeligible" => self.mapping.thp_eligible = Some(line.flag("THPeligible", value)?),
            b"VmFlags" => self.mapping.flags = value.trim_ascii(),
            _ => {
                self.rss_seen |= key == b"Rss";
                self.mapping.counts.take(line, key, value)?;
            }
        }
        Ok(())
    }
}

/// Hands out a finished mapping. Every kernel prints its Rss: without it the file was cut between two lines.
fn close<'a>(
    draft: Option<Draft<'a>>,
    visit: &mut impl FnMut(Mapping<'a>) -> Result<(), Unread>,
) -> Result<(), Unread> {
    let Some(draft) = draft else { return Ok(()) };
    if !draft.rss_seen {
        return Err(draft
            .line
            .garbled("the mapping", draft.line.text, "an Rss line after it"));
    }
    visit(draft.mapping)
}

/// Reads `start-end perms offset device inode    name`. Lines that do not begin like an address belong to no known
/// form and are passed over.
fn header<'a>(line: &Line<'a>) -> Result<Option<Mapping<'a>>, Unread> {
    if !is_header(line) {
        return Ok(None);
    }
    header_fields(line.text)
        .map(Some)
        .ok_or_else(|| line.garbled("the line", line.text, "START-END PERMS OFFSET DEVICE INODE NAME"))
}

/// Does it begin like an address?
fn is_header(line: &Line<'_>) -> bool {
    line.text.first().is_some_and(u8::is_ascii_hexdigit)
}

fn header_fields(text: &[u8]) -> Option<Mapping<'_>> {
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
        kernel_page: None,
        mmu_page: None,
        thp_eligible: None,
        flags: b"",
        counts: Counts::default(),
    })
}

impl Mapping<'_> {
    /// Length in bytes.
    pub fn size(&self) -> Bytes {
        Bytes(self.range.end - self.range.start)
    }

    /// Is a two-letter flag set?
    pub fn has_flag(&self, flag: &str) -> bool {
        self.flags.split(|&byte| byte == b' ').any(|set| set == flag.as_bytes())
    }

    /// The hugetlb page size, if this mapping draws from a pool.
    pub fn hugetlb_page(&self) -> Option<Bytes> {
        (self.has_flag("ht") || self.counts.hugetlb().0 > 0)
            .then_some(self.kernel_page)
            .flatten()
    }

    /// Resident bytes by page kind. Smaller transparent sizes count as base: smaps does not tell them apart.
    pub fn backing(&self) -> Backing {
        let mut backing = self.counts.transparent();
        if let Some(page) = self.hugetlb_page() {
            backing.add(PageKind::Hugetlb(page), self.counts.hugetlb());
        }
        backing
    }

    /// As results show it.
    pub fn to_pages(&self) -> MappingPages {
        let lossy = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
        MappingPages {
            start: format!("{:x}", self.range.start),
            end: format!("{:x}", self.range.end),
            perms: lossy(self.perms),
            name: lossy(self.name),
            size: self.size(),
            backing: self.backing(),
            thp_eligible: self.thp_eligible,
            flags: lossy(self.flags).split_ascii_whitespace().map(str::to_owned).collect(),
        }
    }
}

#[cfg(test)]
#[path = "smaps_tests.rs"]
mod tests;
