//! What matters here of an ELF file: what loads it, what it needs.

use object::Endianness;
use object::elf::{DT_NEEDED, FileHeader64, PT_NOTE};
use object::read::elf::{Dyn, FileHeader, ProgramHeader};

type Header = FileHeader64<Endianness>;

/// A 64-bit ELF file.
#[derive(Debug)]
pub(crate) struct Elf {
    /// The loader that it names; a static program has none.
    pub(crate) loader: Option<String>,
    pub(crate) needed: Vec<String>,
    /// Did Go's linker leave its note?
    pub(crate) has_go_note: bool,
}

impl Elf {
    /// Parts that cannot be read, such as those behind the end of a file's beginning, are left out; `None` of what is no
    /// 64-bit ELF file.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let header = Header::parse(bytes).ok()?;
        let endian = header.endian().ok()?;
        let mut elf = Self {
            loader: None,
            needed: needed(header, endian, bytes).unwrap_or_default(),
            has_go_note: false,
        };
        for segment in header.program_headers(endian, bytes).unwrap_or_default() {
            if let Ok(Some(loader)) = segment.interpreter(endian, bytes) {
                elf.loader = Some(String::from_utf8_lossy(loader).into_owned());
            }
            let note = (segment.p_type(endian) == PT_NOTE)
                .then(|| segment.data(endian, bytes).ok())
                .flatten();
            elf.has_go_note |= note.is_some_and(|note| note.windows(4).any(|name| name == b"Go\0\0"));
        }
        Some(elf)
    }
}

fn needed(header: &Header, endian: Endianness, bytes: &[u8]) -> Option<Vec<String>> {
    let sections = header.sections(endian, bytes).ok()?;
    let (entries, link) = sections.dynamic(endian, bytes).ok()??;
    let strings = sections.strings(endian, bytes, link).ok()?;
    let needed = entries.iter().filter(|entry| entry.tag(endian) == DT_NEEDED);
    let names = needed.filter_map(|entry| entry.string(endian, strings).ok());
    Some(names.map(|name| String::from_utf8_lossy(name).into_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::Elf;

    #[test]
    fn this_test_names_its_loader_and_its_c_library_and_its_beginning_the_loader_alone() {
        let own = std::fs::read(std::env::current_exe().expect("a path")).expect("readable");
        let whole = Elf::read(&own).expect("a 64-bit program");
        assert!(whole.needed.iter().any(|name| name.starts_with("libc.so")), "{whole:?}");
        assert!(whole.loader.is_some() && !whole.has_go_note, "{whole:?}");
        let beginning = Elf::read(&own[..64 << 10]).expect("a 64-bit program");
        assert_eq!((beginning.loader, beginning.needed), (whole.loader, Vec::new()));
        assert!(Elf::read(b"#!/bin/sh\n").is_none());
    }
}
