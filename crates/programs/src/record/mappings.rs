//! Files over the mappings of a process: read only where that holds no process up, and where they are not too long to be kept.

use model::{Bytes, Cause, Unread};

use super::recorder::Recorder;
use super::table::whole;
use crate::{MOST_TABLES, Program};
use host::Source;
use host::source::whole_lines;

/// A file of one process; smaps of a process with 10,000 mappings has about 12 MiB.
pub(super) const LARGEST_FILE: Bytes = Bytes::mib(16);

/// With more mappings smaps is longer than that: one has 500 bytes at least.
pub(super) const MOST_COUNTED: usize = LARGEST_FILE.as_usize() / 512;

/// Memory by node of one process, unless it is recorded or would hold the process up.
pub(super) fn record_nodes(recorder: &mut Recorder<'_>, program: &Program) {
    let path = program.file("numa_maps");
    let is_long = || has_more_mappings(recorder.source, &program.file("maps"), MOST_COUNTED);
    if !recorder.tree.is_file(&path) && is_affordable(recorder, program) && !is_long() {
        recorder.file(&path, LARGEST_FILE, whole);
    }
}

/// May the kernel walk all page tables of it for a file? That of a capture costs nothing.
pub(super) fn is_affordable(recorder: &Recorder<'_>, program: &Program) -> bool {
    let tables = program.pages.page_tables.known();
    !recorder.source.is_live() || tables.is_some_and(|tables| *tables <= MOST_TABLES)
}

/// Would its smaps be longer than what is kept of a process? Writing it would take the kernel seconds, to be thrown away. That
/// of a capture was kept already.
pub(super) fn has_more_mappings(source: &Source, maps: &str, most: usize) -> bool {
    let enough = || Unread::new(Cause::Failed, maps, "");
    let count = |before: usize, piece: &[u8]| {
        let lines = before + piece.iter().filter(|&&byte| byte == b'\n').count();
        if lines > most { Err(enough()) } else { Ok(()) }
    };
    source.is_live() && source.pieces(maps, Bytes::gib(1), whole_lines, count) == Err(enough())
}

#[cfg(test)]
mod tests {
    use super::has_more_mappings;
    use host::Source;

    #[test]
    fn a_process_with_more_mappings_than_can_be_kept_is_known_before_smaps_is_read() {
        let own = "/proc/self/maps";
        let some = std::fs::read_to_string(own).expect("maps").lines().count();
        assert!(has_more_mappings(&Source::live(), own, some / 2));
        assert!(!has_more_mappings(&Source::live(), own, some * 2 + 1000));
        assert!(
            !has_more_mappings(&Source::live(), "/proc/0/maps", 0),
            "that none can be counted is no answer"
        );
    }
}
