//! The mappings of a process with their bytes (smaps) or, where counting those would hold it up, without (maps).

use std::ops::Range;
use std::sync::Arc;

use model::process::MappingPages;
use model::texts::Texts;
use model::{Bytes, Cause, PageKind, Reading, Unread};

use crate::Source;
use crate::processes::smaps::{self, Counts};
use crate::source::whole_lines;

/// At 90 bytes a mapping, a million and a half fit.
const LARGEST_MAPS: Bytes = Bytes::mib(128);

/// One mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Area {
    /// First address.
    pub start: u64,
    /// One past the last address.
    pub end: u64,
    /// Permissions such as `rw-p`. This and the other texts are shared between mappings, of which there may be very many.
    pub perms: Arc<str>,
    /// Offset in the file.
    pub offset: u64,
    /// Device and inode of the file; inode 0 for memory without a file.
    pub file: (Arc<str>, u64),
    /// File, `[heap]`, or nothing.
    pub name: Arc<str>,
    /// What smaps counts; `None` if only maps was read.
    pub counted: Option<Counted>,
}

/// What only smaps tells of a mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    /// Bytes that are there.
    pub counts: Counts,
    /// `KernelPageSize`.
    pub kernel_page: Option<Bytes>,
    /// `THPeligible`.
    pub thp_eligible: Option<bool>,
    /// `VmFlags`.
    pub flags: Arc<str>,
}

impl Area {
    /// Its length.
    pub fn size(&self) -> Bytes {
        Bytes(self.end - self.start)
    }

    /// Is a two-letter flag of VmFlags set? `None` if only maps was read.
    pub fn has(&self, flag: &str) -> Option<bool> {
        self.counted
            .as_ref()
            .map(|counted| counted.flags.split(' ').any(|set| set == flag))
    }

    /// Does it draw from a hugetlb pool? Without smaps the name alone can tell.
    pub fn is_hugetlb(&self) -> bool {
        self.has("ht")
            .unwrap_or_else(|| self.name.starts_with("/anon_hugepage"))
            || self
                .counted
                .as_ref()
                .is_some_and(|counted| counted.counts.hugetlb().0 > 0)
    }

    /// Bytes that are there, hugetlb included; `None` if only maps was read.
    pub fn resident(&self) -> Option<Bytes> {
        let counts = self.counted.as_ref()?.counts;
        Some(Bytes(counts.rss.0.saturating_add(counts.hugetlb().0)))
    }

    /// Bytes on base pages (mTHP among them); `None` if only maps was read.
    pub fn base(&self) -> Option<Bytes> {
        Some(self.counted.as_ref()?.counts.transparent().of(PageKind::Base))
    }

    /// May it be written, and is it of this process alone?
    pub fn is_private_data(&self) -> bool {
        self.perms.starts_with("rw") && self.perms.ends_with('p')
    }

    /// May it be written, and is it shared with others?
    pub fn is_shared_data(&self) -> bool {
        self.perms.starts_with("rw") && self.perms.ends_with('s')
    }

    /// Is it memory without a file: anonymous, named by prctl, or the heap?
    pub fn is_anonymous(&self) -> bool {
        self.name.is_empty() || &*self.name == "[heap]" || self.name.starts_with("[anon:")
    }

    /// As results show it, for [`why_base`](crate::processes::why_base); `None` if only maps was read.
    pub fn to_pages(&self) -> Option<MappingPages> {
        let counted = self.counted.as_ref()?;
        let mut backing = counted.counts.transparent();
        if let Some(page) = counted.kernel_page.filter(|_| self.is_hugetlb()) {
            backing.add(PageKind::Hugetlb(page), counted.counts.hugetlb());
        }
        Some(MappingPages {
            start: format!("{:x}", self.start),
            end: format!("{:x}", self.end),
            perms: self.perms.to_string(),
            name: self.name.to_string(),
            size: self.size(),
            backing,
            thp_eligible: counted.thp_eligible,
            flags: counted.flags.split_ascii_whitespace().map(str::to_owned).collect(),
        })
    }
}

/// Mappings with their bytes.
pub(super) fn counted(source: &Source, pid: u32) -> Reading<Vec<Area>> {
    let path = format!("/proc/{pid}/smaps");
    let (mut areas, mut texts) = (Vec::new(), Texts::default());
    let read = smaps::each(source, &path, |mapping| {
        areas.push(area(&path, mapping, &mut texts)?);
        Ok(())
    });
    read.map(|()| areas).into()
}

/// Mappings without their bytes: cheap, whatever the size of the process.
pub(super) fn named(source: &Source, pid: u32) -> Reading<Vec<Area>> {
    named_where(source, pid, |_| true)
}

fn named_where(source: &Source, pid: u32, keeps: impl Fn(&MapsLine<'_>) -> bool) -> Reading<Vec<Area>> {
    let path = format!("/proc/{pid}/maps");
    let (mut areas, mut texts) = (Vec::new(), Texts::default());
    let read = source.pieces(&path, LARGEST_MAPS, whole_lines, |before, piece| {
        add_maps(&path, before, piece, &mut texts, &mut areas, &keeps)
    });
    read.map(|()| areas).into()
}

/// Mappings of files, of which there are few, from whichever of the two files is there.
pub(crate) fn of_files(source: &Source, pid: u32) -> Reading<Vec<Area>> {
    let named = named_where(source, pid, |line| line.name.starts_with('/'));
    let areas = match named {
        Reading::Unread(why) if why.unread == Cause::Absent => counted(source, pid),
        named => named,
    };
    areas.map(|mut areas| {
        areas.retain(|area| area.name.starts_with('/'));
        areas
    })
}

fn area(path: &str, mapping: &smaps::Mapping<'_>, texts: &mut Texts) -> Result<Area, Unread> {
    let mut shared = |text: &[u8]| shared(path, texts, &String::from_utf8_lossy(text));
    Ok(Area {
        start: mapping.range.start,
        end: mapping.range.end,
        perms: shared(mapping.perms)?,
        offset: mapping.offset,
        file: (shared(mapping.device)?, mapping.inode),
        name: shared(mapping.name)?,
        counted: Some(Counted {
            counts: mapping.counts,
            kernel_page: mapping.kernel_page,
            thp_eligible: mapping.thp_eligible,
            flags: shared(mapping.flags)?,
        }),
    })
}

fn shared(path: &str, texts: &mut Texts, text: &str) -> Result<Arc<str>, Unread> {
    texts.of(text).ok_or_else(|| {
        let why = format!("the names of its mappings have more than {}", Texts::MOST);
        Unread::new(Cause::Failed, path, why)
    })
}

/// Reads a maps file; `path` is named in the reasons only.
///
/// # Errors
/// A line that is not `START-END PERMS OFFSET DEVICE INODE NAME`.
pub fn parse_maps(path: &str, bytes: &[u8]) -> Result<Vec<Area>, Unread> {
    let mut areas = Vec::new();
    add_maps(path, 0, bytes, &mut Texts::default(), &mut areas, &|_| true).map(|()| areas)
}

/// Adds the lines of a piece of a maps file that has so many lines before it.
fn add_maps(
    path: &str,
    before: usize,
    bytes: &[u8],
    texts: &mut Texts,
    areas: &mut Vec<Area>,
    keeps: &impl Fn(&MapsLine<'_>) -> bool,
) -> Result<(), Unread> {
    let text = String::from_utf8_lossy(bytes);
    (before..).zip(text.lines()).try_for_each(|(index, line)| {
        let wanted = "START-END PERMS OFFSET DEVICE INODE NAME";
        let fields =
            MapsLine::read(line).ok_or_else(|| crate::parse::garbled(path, index, "the line", wanted, line))?;
        if keeps(&fields) {
            areas.push(fields.area(path, texts)?);
        }
        Ok(())
    })
}

/// The fields of a line of maps.
struct MapsLine<'a> {
    range: Range<u64>,
    offset: u64,
    inode: u64,
    perms: &'a str,
    device: &'a str,
    name: &'a str,
}

impl<'a> MapsLine<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let mut fields = line.splitn(6, ' ');
        let (start, end) = fields.next()?.split_once('-')?;
        let hex = |text: &str| u64::from_str_radix(text, 16).ok();
        let (start, end) = (hex(start)?, hex(end)?);
        let perms = fields.next().filter(|perms| perms.len() == 4)?;
        let offset = hex(fields.next()?)?;
        Some(Self {
            range: start..Some(end).filter(|&end| end > start)?,
            offset,
            perms,
            device: fields.next()?,
            inode: fields.next()?.trim().parse().ok()?,
            name: fields.next().unwrap_or_default().trim_start(),
        })
    }

    fn area(self, path: &str, texts: &mut Texts) -> Result<Area, Unread> {
        Ok(Area {
            start: self.range.start,
            end: self.range.end,
            perms: shared(path, texts, self.perms)?,
            offset: self.offset,
            file: (shared(path, texts, self.device)?, self.inode),
            name: shared(path, texts, self.name)?,
            counted: None,
        })
    }
}
