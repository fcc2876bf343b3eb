//! systemd's files: units of hugewise's own to the letter, and of drop-ins the few settings that it knows.

use std::fmt::Write as _;

use super::super::hugetlbfs::{MOUNTS, is_mount_point, mount_options};
use super::super::settings;
use super::parsed::{Line, known, must};
use super::sort::{Sort, is_own};

/// The unit that fills pools at boot.
const POOLS: &str = "hugewise-pools.service";

/// What a file below systemd's directory is.
pub(super) fn sort(below: &str) -> Option<Sort> {
    if below == POOLS {
        return Some(Sort::Pools);
    }
    match below.split_once('/') {
        None => unit_path(below)
            .is_some_and(|at| is_mount_point(&at))
            .then_some(Sort::Mount),
        Some(("sysinit.target.d" | "local-fs.target.d", name)) => is_own(name, ".conf").then_some(Sort::Wants),
        Some((unit, name)) => {
            let service = unit.strip_suffix(".service.d").is_some_and(is_service);
            (service && is_own(name, ".conf")).then_some(Sort::Service)
        }
    }
}

fn is_service(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"@_.-\\:".contains(&b))
}

/// A line of a unit or a drop-in.
pub(super) fn line(sort: Sort, path: &str, section: &str, line: &str) -> Line {
    let Some((key, value)) = line.split_once('=').map(|(key, value)| (key.trim(), value.trim())) else {
        return Line::Other;
    };
    match (sort, section, key) {
        (Sort::Service, "[Service]", _) => service(key, value),
        (Sort::Wants, "[Unit]", "Wants") if is_wanted(path, value) => known(line, Ok(())),
        (Sort::Mount | Sort::Pools, "[Unit]", "Description") => {
            known(key, must(!value.contains('%'), "a description holds no `%`"))
        }
        (Sort::Mount | Sort::Pools, "[Unit]", "DefaultDependencies") => known(key, must(value == "no", "write no")),
        (Sort::Mount, _, _) => mount(path, section, key, value),
        (Sort::Pools, _, _) => pools(section, key, value),
        _ => Line::Other,
    }
}

/// Settings of a drop-in: how much a service may lock, where it runs (systemd.exec(5)), and its policy (systemd.resource-control(5)).
fn service(key: &str, value: &str) -> Line {
    match key {
        "CPUAffinity" | "AllowedCPUs" => known(key, must(is_list(value), "write CPUs such as 0-3,8-11")),
        "NUMAPolicy" => known(key, must(value == "bind", "write bind")),
        "NUMAMask" => known(key, must(is_list(value), "write nodes such as 0")),
        "LimitMEMLOCK" => {
            let digits = value.trim_end_matches(['K', 'M', 'G', 'T']);
            let is_amount = value.len() - digits.len() <= 1 && settings::number(digits).is_some() && !digits.is_empty();
            known(
                key,
                must(is_amount || value == "infinity", "write a number of bytes, or infinity"),
            )
        }
        "MemoryTHP" => {
            let words = ["disable", "madvise", "system"];
            known(key, must(words.contains(&value), "write disable, madvise or system"))
        }
        _ => Line::Other,
    }
}

/// Numbers and ranges of them, such as `0-3,8`; not empty, which would lift a restriction.
fn is_list(value: &str) -> bool {
    let number = |text: &str| (1..=4).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    value.split(',').all(|part| match part.split_once('-') {
        None => number(part),
        Some((first, last)) => number(first) && number(last),
    })
}

/// Does the target of this drop-in want this unit of hugewise's?
fn is_wanted(path: &str, unit: &str) -> bool {
    match path.contains("/sysinit.target.d/") {
        true => unit == POOLS,
        false => unit_path(unit).is_some_and(|at| is_mount_point(&at)),
    }
}

/// The unit of a hugetlbfs, named for where it is mounted.
fn mount(path: &str, section: &str, key: &str, value: &str) -> Line {
    let right = match (section, key) {
        ("[Unit]", "Before") => must(value == "local-fs.target", "write local-fs.target"),
        ("[Mount]", "What" | "Type") => must(value == "hugetlbfs", "write hugetlbfs"),
        ("[Mount]", "Where") => must(
            path == format!("/etc/systemd/system/{}", mount_unit(value)) && is_mount_point(value),
            &format!("a unit is named for its mount point, and {MOUNTS}"),
        ),
        ("[Mount]", "Options") => mount_options(value),
        _ => return Line::Other,
    };
    known(key, right)
}

/// The unit that fills pools; its commands are these, to the letter.
fn pools(section: &str, key: &str, value: &str) -> Line {
    let right = match (section, key) {
        ("[Unit]", "Before") => must(value == "sysinit.target", "write sysinit.target"),
        ("[Service]", "Type") => must(value == "oneshot", "write oneshot"),
        ("[Service]", "RemainAfterExit") => must(value == "yes", "write yes"),
        ("[Service]", "ExecStart") => {
            return filled(value).map_or(Line::Other, |path| known(format!("{key} {path}"), Ok(())));
        }
        _ => return Line::Other,
    };
    known(key, right)
}

/// The pool that a command fills: `/bin/sh -c 'echo 8 > PATH && test "$(cat PATH)" -ge 8'`.
fn filled(command: &str) -> Option<&str> {
    let (pages, rest) = command.strip_prefix("/bin/sh -c 'echo ")?.split_once(" > ")?;
    let (path, _) = rest.split_once(' ')?;
    let is_right = settings::is_pool(path)
        && settings::check(path, pages).is_ok()
        && command == format!("/bin/sh -c 'echo {pages} > {path} && test \"$(cat {path})\" -ge {pages}'");
    is_right.then_some(path)
}

/// The unit that mounts a path: what `systemd-escape --path --suffix=mount` makes of it.
pub fn mount_unit(path: &str) -> String {
    let mut name = String::new();
    for (nth, byte) in path.trim_start_matches('/').bytes().enumerate() {
        match byte {
            b'/' => name.push('-'),
            b'.' if nth == 0 => name.push_str("\\x2e"),
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b':' | b'_' | b'.' => name.push(char::from(byte)),
            other => {
                let _ = write!(name, "\\x{other:02x}");
            }
        }
    }
    name + ".mount"
}

/// The path that a unit mounts; `None` of a name that no path has.
fn unit_path(unit: &str) -> Option<String> {
    let mut path = vec![b'/'];
    let mut rest = unit.strip_suffix(".mount")?.as_bytes();
    while let [first, after @ ..] = rest {
        let escaped = after
            .strip_prefix(b"x")
            .and_then(|after| after.get(..2))
            .filter(|_| *first == b'\\');
        let byte = escaped.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        path.push(match (first, byte) {
            (b'-', _) => b'/',
            (b'\\', Some(byte)) => byte,
            (b'\\', None) => return None,
            (plain, _) => *plain,
        });
        rest = if byte.is_some() { &after[3..] } else { after };
    }
    let path = String::from_utf8(path).ok()?;
    (mount_unit(&path) == unit).then_some(path)
}
