//! The files that a program maps, and its code: how much of each is on huge pages, and why the rest is not.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use host::processes::{Coverage, Ground, Reason, Sort, file_system, is_counted};
use model::{Backing, Bytes};
use programs::{Area, Target};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::parts::base_by_reason;

/// The largest files alone are named.
const MOST: usize = 12;

/// Code and mapped files of a program, all its processes together, each page once.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Mapped {
    /// What backs each sort.
    pub sums: BTreeMap<MappedSort, Backing>,
    /// Those with a huge page or more resident, the largest first.
    pub largest: Vec<MappedFile>,
    /// May khugepaged collapse code of files here, if the kernel was built with CONFIG_READ_ONLY_THP_FOR_FS? `null` if the
    /// kernel's release is not known.
    pub may_collapse_code: Option<bool>,
}

/// The sorts of mapped files and code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MappedSort {
    /// Code of the program's own file.
    ProgramText,
    /// Code of libraries.
    LibraryText,
    /// Code without a file: made while the program runs, or moved there.
    JitCode,
    /// Files without their code.
    Data,
}

/// One file, or all code without one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MappedFile {
    /// Its path as the process sees it; `null` of code without a file.
    pub file: Option<String>,
    /// What it is.
    pub sort: MappedSort,
    /// The type of its file system, below an overlay that of its layers; `null` where that is not known.
    pub file_system: Option<String>,
    /// Resident bytes by page kind.
    pub backing: Backing,
    /// Why most of it is on base pages; `null` if none of it is.
    pub why: Option<Reason>,
}

impl Mapped {
    /// `None` where its mappings could not be counted.
    pub(super) fn of(target: &Target, ground: &Ground<'_>) -> Option<Self> {
        let all = target.main.areas().ok()?.iter().chain(target.family.iter().flatten());
        let all: Vec<&Area> = all.collect();
        if !is_counted(all.iter().copied()) {
            return None;
        }
        let mut sorts: BTreeMap<MappedSort, Vec<&Area>> = BTreeMap::new();
        let mut files: BTreeMap<(MappedSort, Option<&str>), Vec<&Area>> = BTreeMap::new();
        for area in all {
            let Some(sort) = MappedSort::of(area) else { continue };
            let file = Some(&*area.name).filter(|_| sort != MappedSort::JitCode);
            sorts.entry(sort).or_default().push(area);
            files.entry((sort, file)).or_default().push(area);
        }
        let sums = sorts.into_iter().map(|(sort, areas)| (sort, Coverage::of(areas).all()));
        let worth = ground.thp.known().and_then(|thp| thp.pmd_size.known().copied());
        let worth = worth.unwrap_or(Bytes::mib(2));
        let files = files.into_iter().map(|((sort, file), areas)| MappedFile {
            file: file.map(str::to_owned),
            sort,
            file_system: file
                .and_then(|file| file_system(ground.mounts, file))
                .map(str::to_owned),
            why: base_by_reason(&areas, target, ground)
                .into_iter()
                .max_by_key(|(_, bytes)| *bytes)
                .map(|(reason, _)| reason),
            backing: Coverage::of(areas).all(),
        });
        let mut largest: Vec<MappedFile> = files.filter(|file| file.backing.total() >= worth).collect();
        largest.sort_by_key(|file| Reverse(file.backing.total()));
        largest.truncate(MOST);
        Some(Self {
            sums: sums
                .filter(|(_, backing): &(_, Backing)| backing.total() > Bytes(0))
                .collect(),
            largest,
            may_collapse_code: ground.kernel.may_collapse_code(),
        })
    }
}

impl MappedSort {
    fn of(area: &Area) -> Option<Self> {
        let is_code = area.perms.contains('x');
        let is_file = Sort::of(area) == Sort::File && !area.name.starts_with("/memfd:");
        match (is_code, is_file) {
            (true, true) if is_library(&area.name) => Some(Self::LibraryText),
            (true, true) => Some(Self::ProgramText),
            // The kernel's own code has a name in brackets.
            (true, false) => (!area.name.starts_with("[v")).then_some(Self::JitCode),
            (false, true) => Some(Self::Data),
            (false, false) => None,
        }
    }
}

/// `libc.so.6`, `libjvm.so`, `plugin.so (deleted)`.
fn is_library(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    let name = name.strip_suffix(" (deleted)").unwrap_or(name);
    name.ends_with(".so") || name.contains(".so.")
}

#[cfg(test)]
mod tests {
    use host::Source;
    use host::processes::Reason;
    use model::Bytes;

    use super::{MappedSort, is_library};
    use crate::explain::tests::all;
    use crate::machines::{Mapped, anonymous, machine, process, shared};

    fn file(size: u64, name: &str, perms: &'static str) -> Mapped {
        shared(size, name).perms(perms).flags("rd mr me").not_eligible()
    }

    #[test]
    fn code_and_files_are_sums_of_coverage_with_their_reasons() {
        let own = file(20, "/usr/bin/db", "r-xp").at(0x5500_0000_0000, 0x1000);
        let library = file(8, "/usr/lib/libx.so.1", "r-xp").at(0x7f00_0000_0000, 0).thp(6);
        let weights = |start| file(64, "/srv/weights", "r--s").at(start, 0).thp(32);
        let jit = anonymous(4).perms("rwxp").at(0x7f80_0000_0000, 0);
        let program = process(40, "db").area(own).area(library).area(jit);
        let program = program.area(weights(0x7f90_0000_0000)).area(weights(0x7fa0_0000_0000));
        let tree = machine().line("/proc/sys/kernel/osrelease", "6.18.1");
        let tree = program.on(tree).file("/proc/40/mounts", "/dev/vda / ext4 rw 0 0\n");
        let usage = all(&Source::from_tree("made", tree), "40").expect("found").remove(0);
        let mapped = usage.mapped.expect("counted");
        let sum = |sort| {
            let backing = &mapped.sums[&sort];
            (backing.total(), backing.large())
        };
        assert_eq!(sum(MappedSort::ProgramText), (Bytes::mib(20), Bytes(0)));
        assert_eq!(sum(MappedSort::LibraryText), (Bytes::mib(8), Bytes::mib(6)));
        assert_eq!(sum(MappedSort::JitCode), (Bytes::mib(4), Bytes(0)));
        assert_eq!(
            sum(MappedSort::Data),
            (Bytes::mib(64), Bytes::mib(32)),
            "two views of one file"
        );
        let files = [MappedSort::ProgramText, MappedSort::LibraryText, MappedSort::Data];
        let of_files: u64 = files.map(|sort| mapped.sums[&sort].total().0).iter().sum();
        let coverage = usage.resident.known().expect("counted");
        assert_eq!(coverage.file.total(), Bytes(of_files), "the shares add up");
        let reasons: Vec<_> = mapped.largest.iter().map(|file| (file.sort, file.why)).collect();
        assert_eq!(
            reasons,
            [
                (MappedSort::Data, Some(Reason::FileNotAdvised)),
                (MappedSort::ProgramText, Some(Reason::FileUnaligned)),
                (MappedSort::LibraryText, Some(Reason::FileNotAdvised)),
                (MappedSort::JitCode, Some(Reason::NotAdvised)),
            ]
        );
        assert_eq!(mapped.largest[0].file_system.as_deref(), Some("ext4"));
        assert_eq!(mapped.may_collapse_code, Some(true));
    }

    #[test]
    fn libraries_are_known_by_their_names() {
        for (path, expected) in [
            ("/usr/lib/libc.so.6", true),
            ("/a/libjvm.so (deleted)", true),
            ("/opt/so.d/program", false),
            ("/usr/bin/postgres", false),
        ] {
            assert_eq!(is_library(path), expected, "{path}");
        }
    }
}
