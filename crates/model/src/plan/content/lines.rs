//! The lines of a file of settings: which of them hugewise knows, and what is wrong with their values.

use super::super::hugetlbfs::is_size;
use super::super::settings;
use super::parsed::{Line, Parsed, known, set};
use super::sort::Sort;
use super::{server, units};

/// What may be written, for the error about a line that may not.
pub(super) const ALLOWED: &str = "a plan adds only lines that set what hugewise knows: settings of its list, memlock, \
                                  MemoryTHP, where a service runs, pools, hugetlbfs, a server's huge pages";

/// The lines of a file.
pub(super) fn parse<'a>(sort: Sort, path: &str, text: &'a str) -> Vec<Parsed<'a>> {
    let mut section = "";
    let line = |(nth, text): (usize, &'a str)| {
        let trimmed = text.trim();
        let is_head = trimmed.starts_with('[') && !sort.sections().is_empty();
        if is_head {
            section = trimmed;
        }
        let what = match is_head {
            true if sort.sections().contains(&trimmed) => Line::Section,
            true => Line::Other,
            false if trimmed.is_empty() || trimmed.starts_with(sort.comments()) => Line::Comment,
            false => what(sort, path, section, trimmed),
        };
        Parsed {
            nth,
            section,
            text,
            what,
        }
    };
    text.lines().enumerate().map(line).collect()
}

fn what(sort: Sort, path: &str, section: &str, line: &str) -> Line {
    match sort {
        Sort::Sysctl => sysctl(line),
        Sort::Limits => limit(line),
        Sort::Tmpfiles => tmpfile(line),
        Sort::Grub => grub(line),
        Sort::Postgres => server::postgres(line),
        Sort::Mysql => server::mysql(section, line),
        Sort::Service | Sort::Wants | Sort::Mount | Sort::Pools => units::line(sort, path, section, line),
        Sort::Cmdline => Line::Other,
    }
}

/// `vm.nr_hugepages = 16`.
fn sysctl(line: &str) -> Line {
    let end = line.find(['=', ' ', '\t']).unwrap_or(line.len());
    let name = line[..end].trim_start_matches('-').replace('/', ".");
    let path = format!("/proc/sys/{}", name.replace('.', "/"));
    if !settings::is_known(&path) {
        return Line::Other;
    }
    let is_whole = |key: &str| key.trim() == &line[..end];
    let value = line.split_once('=').filter(|(key, _)| is_whole(key));
    let value = value.map(|(_, value)| value.trim());
    let right = value
        .ok_or_else(|| "write NAME = VALUE".to_owned())
        .and_then(|value| settings::check(&path, value));
    known(name, right)
}

/// `oracle soft memlock 1048576`.
fn limit(line: &str) -> Line {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [who, kind, "memlock", value @ ..] = &fields[..] else {
        return Line::Other;
    };
    let is_amount = matches!(value, [value] if *value == "unlimited" || settings::number(value).is_some());
    let is_right =
        matches!(*kind, "soft" | "hard" | "-") && is_account(who.strip_prefix('@').unwrap_or(who)) && is_amount;
    let why = "write USER or @GROUP, soft, hard or -, memlock, and KiB or unlimited";
    set(format!("{who} {kind}"), is_right, why)
}

/// `w /sys/kernel/mm/transparent_hugepage/enabled - - - - madvise`.
fn tmpfile(line: &str) -> Line {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [kind, path, rest @ ..] = &fields[..] else {
        return Line::Other;
    };
    if !kind.starts_with('w') || !settings::is_known(path) {
        return Line::Other;
    }
    let right = match rest {
        ["-", "-", "-", "-", value] if *kind == "w" => settings::check(path, value),
        _ => Err("write w PATH - - - - VALUE".to_owned()),
    };
    known(*path, right)
}

/// `GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX hugepagesz=1G hugepages=4"`, to the letter: GRUB's defaults are a script.
fn grub(line: &str) -> Line {
    let words = line.strip_prefix("GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX ");
    let words = words
        .and_then(|rest| rest.strip_suffix('"'))
        .map(|words| words.split(' ').collect::<Vec<_>>());
    match words.as_deref() {
        Some([size, pages]) if is_pool_size(size) && is_pool_pages(pages) => known(*size, Ok(())),
        _ => Line::Other,
    }
}

/// `hugepagesz=1G`.
pub(super) fn is_pool_size(word: &str) -> bool {
    word.strip_prefix("hugepagesz=").is_some_and(is_size)
}

/// `hugepages=16`, or by node: `hugepages=0:8,1:8`.
pub(super) fn is_pool_pages(word: &str) -> bool {
    let Some(counts) = word.strip_prefix("hugepages=") else {
        return false;
    };
    let is_count = |text: &str| settings::number(text).is_some_and(|pages| pages <= 1 << 34);
    let of_node =
        |(node, count): (&str, &str)| is_count(count) && settings::number(node).is_some_and(|node| node < 1024);
    is_count(counts) || counts.split(',').all(|part| part.split_once(':').is_some_and(of_node))
}

/// A user's or group's name, as useradd(8) takes it.
fn is_account(name: &str) -> bool {
    name.len() <= 32
        && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b))
}
