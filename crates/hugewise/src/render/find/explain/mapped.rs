//! Code and mapped files: what backs them, why not more, and what would change that.

use std::collections::BTreeSet;

use doctor::explain::{Mapped, MappedFile, MappedSort};
use host::processes::Reason;
use host::snapshot::Feature;
use model::Bytes;

use super::super::ps::percent;
use draw::{Sheet, columns, joined, or};

/// Less code is not worth a line.
const WORTH: Bytes = Bytes::mib(1);

fn title(sort: MappedSort) -> &'static str {
    match sort {
        MappedSort::ProgramText => "program text",
        MappedSort::LibraryText => "library text",
        MappedSort::JitCode => "JIT code",
        MappedSort::Data => "data",
    }
}

/// `program text 5.1M (0 % on huge pages) + library text 2.7M (0 %)`.
pub(super) fn code(mapped: &Mapped) -> Option<String> {
    let code = || mapped.sums.iter().filter(|(sort, _)| **sort != MappedSort::Data);
    let all: Bytes = code().map(|(_, backing)| backing.total()).sum();
    let sums = code().enumerate().map(|(at, (sort, backing))| {
        let on = if at == 0 { " on huge pages" } else { "" };
        format!("{} {} ({}{on})", title(*sort), backing.total(), percent(backing))
    });
    (all >= WORTH).then(|| joined(sums, " + "))
}

/// The largest of them, and below it what would change each reason.
pub(super) fn sheet(mapped: &Mapped) -> Sheet {
    let fields = columns![|file| &MappedFile;
        "what" => title(file.sort),
        "file system" => or(file.file_system.as_ref(), if file.file.is_some() { "?" } else { "" }),
        "#resident" => file.backing.total(), "#huge" => percent(&file.backing), "why not" => file.why.map(Reason::short)?,
        "file" => file.file.as_ref()?,
    ];
    let mut sheet = Sheet::of("Mapped files and code", fields, mapped.largest.iter());
    let notes: BTreeSet<String> = mapped.largest.iter().filter_map(|file| note(file, mapped)).collect();
    notes.into_iter().for_each(|note| sheet.note(note));
    sheet
}

/// What a reason is, and what would change it.
fn note(file: &MappedFile, mapped: &Mapped) -> Option<String> {
    let reason = file.why?;
    let is_code = file.sort != MappedSort::Data;
    let change = match reason {
        Reason::FileNotAdvised if is_code => {
            "Code: write its file in pieces of a huge page (`dd bs=2M`), which lasts until its page cache is dropped".to_owned()
        }
        Reason::FileNotAdvised | Reason::FileCached => {
            "Data: call MADV_HUGEPAGE before it is read the first time, or write the file in pieces of a huge page (`dd bs=2M`)"
                .to_owned()
        }
        Reason::FileUnaligned if is_code => "Code: link it with -Wl,-z,max-page-size=2097152".to_owned(),
        Reason::FileUnaligned => {
            "Data: map it at an address that fits, which the kernel chooses by itself on ext4, xfs and btrfs, on no overlay"
                .to_owned()
        }
        Reason::FileSystem => since(file.file_system.as_deref()?)? + option(is_code, mapped),
        Reason::OfTmpfs | Reason::TmpfsNotAdvised => "Mount it with huge=within_size".to_owned(),
        _ => return None,
    };
    Some(format!("{}: {reason}. {change}.", reason.short()))
}

/// `ext4 has huge pages of files since Linux 6.16`.
fn since(file_system: &str) -> Option<String> {
    let [major, minor, _] = Feature::of_file_system(file_system)?.since();
    Some(format!(
        "{file_system} has huge pages of files since Linux {major}.{minor}"
    ))
}

/// The other way, of kernels that have it.
fn option(is_code: bool, mapped: &Mapped) -> &'static str {
    match is_code && mapped.may_collapse_code != Some(false) {
        true => {
            ", and a kernel with CONFIG_READ_ONLY_THP_FOR_FS collapses code of files that no process has open for writing"
        }
        false => "",
    }
}
