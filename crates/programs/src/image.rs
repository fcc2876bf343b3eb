//! Executables at rest: whether the code of a file can ever be on huge pages, by how it was linked.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fs::{DirEntry, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use host::input;
use model::{Address, Bytes, Cause, Unread};
use object::Endianness;
use object::elf::{ET_DYN, ET_EXEC, FileHeader32, FileHeader64, PF_X, PT_INTERP, PT_LOAD};
use object::read::elf::{FileHeader, ProgramHeader};
use object::read::{FileKind, ReadCache, ReadRef};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// More names are no directory of programs.
const MOST_NAMES: usize = 1 << 20;
/// Of files that could not be read, so many are named.
const MOST_UNREAD: usize = 8;

/// The executable segments of a file, or of all files below a directory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Images {
    /// The file or directory.
    pub path: String,
    /// The size of a huge page.
    pub page: Bytes,
    /// Programs and libraries that were found.
    pub files: u64,
    /// Files that are neither.
    pub others: u64,
    /// Segments of code, the largest first.
    pub segments: Vec<Segment>,
    /// Files and directories that could not be read, the first of them.
    pub unread: Vec<Unread>,
    /// All of those.
    pub unread_count: u64,
}

/// A loadable segment with code (`PT_LOAD` with `PF_X`), and what its place says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Segment {
    /// The file.
    pub file: String,
    /// What it is.
    pub kind: ImageKind,
    /// Its place in the file (`p_offset`).
    pub offset: Address,
    /// Its address, before the file is placed (`p_vaddr`).
    pub address: Address,
    /// Bytes in the file (`p_filesz`).
    pub size: Bytes,
    /// Its own alignment (`p_align`).
    pub align: Bytes,
    /// Whole aligned huge pages of the file in it.
    pub pages: u64,
    /// Can it be on huge pages?
    pub fit: Fit,
}

/// What an ELF file is for a loader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ImageKind {
    /// A program whose addresses are fixed (`ET_EXEC`).
    Fixed,
    /// A program that the kernel places at a random multiple of its alignment.
    Pie,
    /// A library, which the loader places where the kernel maps it.
    Library,
}

/// Can a segment be on huge pages?
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Fit {
    /// Wherever the file is loaded.
    Yes,
    /// Where the kernel maps the library at a multiple of a huge page, which its own alignment does not ask for.
    IfMappedSo,
    /// Never: its address and its place in the file differ within a huge page, or its alignment leaves that to chance.
    Alignment,
    /// Never: it is smaller than a huge page.
    Size,
}

model::shown_by_name!(ImageKind);
model::shown_by_name!(Fit);

/// What is read of an ELF file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elf {
    pub kind: ImageKind,
    /// The largest alignment of its segments, which decides where it is placed.
    pub align: u64,
    /// Its segments of code: place in the file, address, bytes in the file, alignment.
    pub code: Vec<[u64; 4]>,
}

impl Elf {
    /// `None` of what is neither a program nor a library.
    pub fn parse<'d, R: ReadRef<'d>>(data: R) -> Option<Self> {
        match FileKind::parse(data).ok()? {
            FileKind::Elf32 => Self::of::<FileHeader32<Endianness>, R>(data),
            FileKind::Elf64 => Self::of::<FileHeader64<Endianness>, R>(data),
            _ => None,
        }
    }

    fn of<'d, E: FileHeader<Endian = Endianness>, R: ReadRef<'d>>(data: R) -> Option<Self> {
        let header = E::parse(data).ok()?;
        let endian = header.endian().ok()?;
        let all = header.program_headers(endian, data).ok()?;
        let has_loader = all.iter().any(|one| one.p_type(endian) == PT_INTERP);
        let kind = match header.e_type(endian) {
            ET_EXEC => ImageKind::Fixed,
            ET_DYN if has_loader => ImageKind::Pie,
            ET_DYN => ImageKind::Library,
            _ => return None,
        };
        let loaded = || all.iter().filter(|one| one.p_type(endian) == PT_LOAD);
        let code = loaded().filter(|one| one.p_flags(endian).0 & PF_X.0 != 0);
        let numbers = |one: &E::ProgramHeader| {
            let (offset, size) = one.file_range(endian);
            [offset, one.p_vaddr(endian).into(), size, one.p_align(endian).into()]
        };
        Some(Self {
            kind,
            align: loaded().map(|one| one.p_align(endian).into()).max()?,
            code: code.map(numbers).collect(),
        })
    }

    /// Whole aligned pages of the file in a segment, and whether it can be on them.
    pub fn fit(&self, [offset, address, size, _]: [u64; 4], page: u64) -> (u64, Fit) {
        let end = offset.saturating_add(size);
        let pages = offset
            .checked_next_multiple_of(page)
            .map_or(0, |first| end.saturating_sub(first) / page);
        let fit = match self.kind {
            _ if size < page => Fit::Size,
            _ if pages == 0 || !address.wrapping_sub(offset).is_multiple_of(page) => Fit::Alignment,
            ImageKind::Fixed => Fit::Yes,
            _ if self.align >= page => Fit::Yes,
            ImageKind::Library => Fit::IfMappedSo,
            ImageKind::Pie => Fit::Alignment,
        };
        (pages, fit)
    }
}

impl Images {
    /// Of a file, or of all below a directory: links are not followed, and other file systems not entered.
    ///
    /// # Errors
    /// If there is no such file, or it is neither a program nor a library.
    pub fn read(path: &Path, page: Bytes) -> Result<Self, Unread> {
        let mut images = Self {
            path: path.display().to_string(),
            page,
            files: 0,
            others: 0,
            segments: Vec::new(),
            unread: Vec::new(),
            unread_count: 0,
        };
        let found = std::fs::metadata(path).map_err(|why| failed(path, &why))?;
        if found.is_dir() {
            images.below(path, &found)?;
        } else {
            match elf(path)? {
                Some(elf) => images.add(path, &elf),
                None => {
                    return Err(Unread::new(
                        Cause::Garbled,
                        &images.path,
                        "it is no ELF program or library",
                    ));
                }
            }
        }
        images.segments.sort_by_key(|segment| Reverse(segment.size));
        Ok(images)
    }

    fn below(&mut self, top: &Path, found: &Metadata) -> Result<(), Unread> {
        let (mut names, mut seen) = (0, BTreeSet::new());
        let mut left = vec![top.to_owned()];
        while let Some(directory) = left.pop() {
            let entries = match std::fs::read_dir(&directory) {
                Ok(entries) => entries,
                Err(why) if directory == top => return Err(failed(top, &why)),
                Err(why) => {
                    self.leave_out(failed(&directory, &why));
                    continue;
                }
            };
            for entry in entries.flatten() {
                names += 1;
                if names > MOST_NAMES {
                    let why = format!("it has more than {MOST_NAMES} files below it: name a directory of programs");
                    return Err(Unread::new(Cause::Failed, top.display().to_string(), why));
                }
                let Ok(kind) = entry.file_type() else { continue };
                if kind.is_dir() && entry.metadata().is_ok_and(|entered| entered.dev() == found.dev()) {
                    left.push(entry.path());
                } else if kind.is_file() && entry.metadata().is_ok_and(|file| seen.insert(file.ino())) {
                    self.look_at(&entry);
                }
            }
        }
        Ok(())
    }

    fn look_at(&mut self, entry: &DirEntry) {
        match elf(&entry.path()) {
            Ok(Some(elf)) => self.add(&entry.path(), &elf),
            Ok(None) => self.others += 1,
            Err(why) => self.leave_out(why),
        }
    }

    fn add(&mut self, path: &Path, elf: &Elf) {
        self.files += 1;
        let file = path.display().to_string();
        let segments = elf.code.iter().map(|&code| {
            let (pages, fit) = elf.fit(code, self.page.0);
            let [offset, address, size, align] = code;
            Segment {
                file: file.clone(),
                kind: elf.kind,
                offset: Address(offset),
                address: Address(address),
                size: Bytes(size),
                align: Bytes(align),
                pages,
                fit,
            }
        });
        self.segments.extend(segments);
    }

    fn leave_out(&mut self, why: Unread) {
        self.unread_count += 1;
        if self.unread.len() < MOST_UNREAD {
            self.unread.push(why);
        }
    }

    /// The segments of one answer.
    pub fn that(&self, fit: Fit) -> impl Iterator<Item = &Segment> {
        self.segments.iter().filter(move |segment| segment.fit == fit)
    }
}

/// Headers alone are read, of a regular file.
fn elf(path: &Path) -> Result<Option<Elf>, Unread> {
    let failed = |why: &dyn ToString| Unread::new(Cause::Failed, path.display().to_string(), why.to_string());
    match input::stream(path).map_err(|why| failed(&why))? {
        (file, Some(_)) => Ok(Elf::parse(&ReadCache::new(file))),
        (_, None) => Err(failed(&"it is a pipe, expected a regular file")),
    }
}

fn failed(path: &Path, why: &io::Error) -> Unread {
    let cause = match why.kind() {
        io::ErrorKind::NotFound => Cause::Absent,
        io::ErrorKind::PermissionDenied => Cause::Denied,
        _ => Cause::Failed,
    };
    Unread::new(cause, path.display().to_string(), why.to_string())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Elf, Fit, ImageKind, Images};
    use model::{Bytes, Cause};

    const M: u64 = 1 << 20;

    fn fit(kind: ImageKind, align: u64, [offset, address, size]: [u64; 3]) -> (u64, Fit) {
        let elf = Elf {
            kind,
            align,
            code: Vec::new(),
        };
        elf.fit([offset, address, size, align], 2 * M)
    }

    #[test]
    fn alignment_and_size_decide() {
        use ImageKind::{Fixed, Library, Pie};
        for (kind, align, place, expected) in [
            // Linked for huge pages.
            (Pie, 2 * M, [2 * M, 2 * M, 5 * M], (2, Fit::Yes)),
            (Library, 2 * M, [2 * M, 4 * M, 5 * M], (2, Fit::Yes)),
            (Fixed, 0x1000, [0x1000, 0x40_1000, 5 * M], (1, Fit::Yes)),
            // As linkers do it by themselves.
            (Library, 0x1000, [0x25_1000, 0x25_1000, 13 * M], (5, Fit::IfMappedSo)),
            (Pie, 0x1000, [0xc_d000, 0xc_d000, 5 * M], (1, Fit::Alignment)),
            (Pie, 2 * M, [2 * M, 2 * M + 0x1000, 5 * M], (2, Fit::Alignment)),
            (Library, 0x1000, [0x67_1600, 0x67_2600, 18 * M], (8, Fit::Alignment)),
            // As long as a huge page, and none of the file's lies in it.
            (Pie, 2 * M, [0x1000, 0x1000, 2 * M], (0, Fit::Alignment)),
            (Pie, 2 * M, [0, 0, 2 * M - 1], (0, Fit::Size)),
            (Fixed, 0, [u64::MAX - 1, 0, u64::MAX], (0, Fit::Alignment)),
        ] {
            assert_eq!(fit(kind, align, place), expected, "{kind} {align:#x} {place:x?}");
        }
    }

    #[test]
    fn this_test_is_one_program_and_a_text_is_none() {
        let own = std::env::current_exe().expect("a path");
        let images = Images::read(&own, Bytes::mib(2)).expect("a program");
        assert_eq!((images.files, images.segments.len()), (1, 1), "{images:?}");
        let text = tempfile::NamedTempFile::new().expect("a file");
        let why = Images::read(text.path(), Bytes::mib(2)).expect_err("no program");
        assert_eq!(why.unread, Cause::Garbled);
        let absent = Images::read("/no/such/file".as_ref(), Bytes::mib(2)).expect_err("nothing");
        assert_eq!(absent.unread, Cause::Absent);
        let beside = tempfile::tempdir().expect("a directory");
        std::fs::hard_link(&own, beside.path().join("a"))
            .or_else(|_| std::fs::copy(&own, beside.path().join("a")).map(drop))
            .expect("a program");
        std::os::unix::fs::symlink(beside.path(), beside.path().join("circle")).expect("a link");
        std::fs::write(beside.path().join("notes"), "no program").expect("written");
        let all = Images::read(beside.path(), Bytes::mib(2)).expect("a directory");
        assert_eq!((all.files, all.others, all.unread_count), (1, 1, 0), "{all:?}");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400), class in 1_u8..3) {
            let mut elf = vec![0x7f, b'E', b'L', b'F', class, 1, 1];
            elf.extend(bytes);
            if let Some(elf) = Elf::parse(&elf[..]) {
                for &code in &elf.code {
                    let (pages, _) = elf.fit(code, 2 << 20);
                    prop_assert!(pages <= code[2] >> 21);
                }
            }
        }
    }
}
