//! The mappings of a process with their bytes (smaps) or, where counting those would hold it up, without (maps).

use std::sync::Arc;

use model::texts::Texts;
use model::{Bytes, Cause, Reading, Unread};

use super::limits::{Limits, is_without_steps};
use super::lines::lines;
use super::mapping::{Counted, Mapping};
use super::scan;
use super::smaps::{self, Visit};
use super::status::Status;
use crate::Source;

/// A mapping whose texts are shared with the others of its process.
pub type Area = Mapping<Arc<str>>;

/// Mappings with their bytes.
pub fn counted(source: &Source, pid: u32) -> Reading<Vec<Area>> {
    let path = format!("/proc/{pid}/smaps");
    collected(&path, |visit| smaps::each(source, &path, visit)).into()
}

/// The same of a process of any size: one that is too large to be walked at once is walked in steps, and shows no flags then.
pub fn counted_within(source: &Source, pid: u32, limits: Limits) -> Reading<Vec<Area>> {
    let path = format!("/proc/{pid}/smaps");
    collected(&path, |visit| each_mapping(source, pid, limits, visit)).into()
}

/// Mappings without their bytes: cheap, whatever the size of the process.
pub fn named(source: &Source, pid: u32) -> Reading<Vec<Area>> {
    let path = format!("/proc/{pid}/maps");
    collected(&path, |visit| smaps::each_named(source, pid, visit)).into()
}

/// Those of files, of which there are few.
pub fn of_files(source: &Source, pid: u32) -> Reading<Vec<Area>> {
    let path = format!("/proc/{pid}/maps");
    let files = collected(&path, |visit| {
        smaps::each_named(source, pid, &mut |mapping| match mapping.name.starts_with(b"/") {
            true => visit(mapping),
            false => Ok(()),
        })
    });
    files.into()
}

/// Visits every mapping of a process, in the order of addresses: it may have hundreds of thousands, and smaps has 750 bytes for each.
///
/// One too large to be walked at once is walked in steps; then the kernel's flags are missing. If it has hugetlb pages
/// too, which the steps cannot distinguish, it is left out with the reason.
///
/// # Errors
/// Why they cannot be read, or not to the end.
pub fn each_mapping(
    source: &Source,
    pid: u32,
    limits: Limits,
    visit: impl FnMut(&Mapping<&[u8]>) -> Result<(), Unread>,
) -> Result<(), Unread> {
    if source.is_live() {
        let status = Status::read(source, pid)?;
        if let Err(too_dear) = limits.allow_whole(source, pid, &status) {
            return match status.hugetlb.known() {
                Some(Bytes(0)) => match scan::each_mapping(pid, limits, visit) {
                    Err(why) if is_without_steps(&why) => Err(too_dear),
                    walked => walked,
                },
                _ => Err(too_dear),
            };
        }
    }
    smaps::each(source, &format!("/proc/{pid}/smaps"), visit)
}

/// Reads a maps file; `path` is only for the reasons.
///
/// # Errors
/// A line that is not `START-END PERMS OFFSET DEVICE INODE NAME`.
pub fn parse_maps(path: &str, bytes: &[u8]) -> Result<Vec<Area>, Unread> {
    collected(path, |visit| smaps::headers(lines(path, bytes), visit))
}

/// Every mapping that a walk visits; `path` is only for the reasons.
fn collected(path: &str, walk: impl FnOnce(&mut Visit<'_>) -> Result<(), Unread>) -> Result<Vec<Area>, Unread> {
    let mut areas = Areas {
        path,
        texts: Texts::default(),
        all: Vec::new(),
    };
    walk(&mut |mapping| areas.add(mapping))?;
    Ok(areas.all)
}

/// What mapped files stand for, by the beginnings of their names.
pub fn known_files<T: Copy>(areas: &[Area], known: &[(&str, T)]) -> impl Iterator<Item = T> {
    let files = areas.iter().filter_map(|area| Some(area.name.rsplit_once('/')?.1));
    files.filter_map(|file| Some(known.iter().find(|(beginning, _)| file.starts_with(beginning))?.1))
}

/// Mappings that share their texts.
struct Areas<'a> {
    path: &'a str,
    texts: Texts,
    all: Vec<Area>,
}

impl Areas<'_> {
    fn add(&mut self, mapping: &Mapping<&[u8]>) -> Result<(), Unread> {
        let counted = match &mapping.counted {
            None => None,
            Some(counted) => Some(Counted {
                counts: counted.counts,
                kernel_page: counted.kernel_page,
                thp_eligible: counted.thp_eligible,
                flags: self.shared(counted.flags)?,
            }),
        };
        let area = Area {
            range: mapping.range.clone(),
            perms: self.shared(mapping.perms)?,
            offset: mapping.offset,
            device: self.shared(mapping.device)?,
            inode: mapping.inode,
            name: self.shared(mapping.name)?,
            counted,
        };
        self.all.push(area);
        Ok(())
    }

    fn shared(&mut self, text: &[u8]) -> Result<Arc<str>, Unread> {
        self.texts.of(&String::from_utf8_lossy(text)).ok_or_else(|| {
            let why = format!("the names of its mappings have more than {}", Texts::MOST);
            Unread::new(Cause::Failed, self.path, why)
        })
    }
}
