//! The embedded library itself: what it exports, what it needs, and that nothing in it panics.

use std::collections::BTreeSet;

use object::Endianness;
use object::elf::FileHeader64;
use object::read::elf::{FileHeader, Sym};

use super::LIBRARY;

/// Names of its dynamic symbols: defined here, or needed from elsewhere.
fn symbols(defined: bool) -> BTreeSet<String> {
    let header = FileHeader64::<Endianness>::parse(LIBRARY).expect("an ELF file");
    let endian = header.endian().expect("an order of bytes");
    let sections = header.sections(endian, LIBRARY).expect("sections");
    let table = sections.symbols(endian, LIBRARY, object::elf::SHT_DYNSYM);
    let table = table.expect("dynamic symbols");
    let strong = table
        .iter()
        .filter(|symbol| symbol.st_bind() == object::elf::STB_GLOBAL);
    let asked = strong.filter(|symbol| symbol.is_undefined(endian) != defined);
    let names = asked.filter_map(|symbol| table.symbol_name(endian, symbol).ok());
    names.map(|name| String::from_utf8_lossy(name).into_owned()).collect()
}

#[test]
fn nothing_in_it_can_panic() {
    let mark = b"hugewise-preload: can panic here";
    assert!(!LIBRARY.windows(mark.len()).any(|bytes| bytes == mark));
    for word in ["panicking", "rust_eh_personality", "_Unwind_"] {
        assert!(
            !LIBRARY.windows(word.len()).any(|bytes| bytes == word.as_bytes()),
            "{word}"
        );
    }
}

#[test]
fn it_exports_the_hooks_and_nothing_else() {
    let hooks = [
        "brk", "madvise", "mmap", "mmap64", "mprotect", "mremap", "munmap", "sbrk", "shmat", "shmget",
    ];
    assert_eq!(symbols(true), hooks.map(str::to_owned).into());
}

#[test]
fn it_calls_nothing_that_allocates_locks_or_looks_symbols_up() {
    let harmless = ["__errno_location", "__sbrk", "environ", "memcpy", "memset", "strlen"].map(str::to_owned);
    let needed = symbols(false);
    assert!(needed.is_subset(&harmless.into()), "{needed:?}");
}
