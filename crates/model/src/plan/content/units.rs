//! systemd's files: units of hugewise's own to the letter, and of drop-ins the few settings that it knows.

use std::fmt::Write as _;

use super::super::hugetlbfs::{MOUNTS, is_mount_point, mount_options};
use super::super::settings;
use super::parsed::{Line, known, only, set};
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
            set(key, !value.contains('%'), "a description holds no `%`")
        }
        (Sort::Mount | Sort::Pools, "[Unit]", "DefaultDependencies") => only(key, value, "no"),
        (Sort::Mount, "[Unit]", "Before") => only(key, value, "local-fs.target"),
        (Sort::Mount, "[Mount]", "What" | "Type") => only(key, value, "hugetlbfs"),
        (Sort::Mount, "[Mount]", "Where") => {
            let is_its_own = path == format!("/etc/systemd/system/{}", mount_unit(value));
            let why = format!("a unit is named for its mount point, and {MOUNTS}");
            set(key, is_its_own && is_mount_point(value), &why)
        }
        (Sort::Mount, "[Mount]", "Options") => known(key, mount_options(value)),
        (Sort::Pools, "[Unit]", "Before") => only(key, value, "sysinit.target"),
        (Sort::Pools, "[Service]", "Type") => only(key, value, "oneshot"),
        (Sort::Pools, "[Service]", "RemainAfterExit") => only(key, value, "yes"),
        // Its commands are these, to the letter.
        (Sort::Pools, "[Service]", "ExecStart") => {
            filled(value).map_or(Line::Other, |path| known(format!("{key} {path}"), Ok(())))
        }
        _ => Line::Other,
    }
}

/// Settings of a drop-in: how much a service may lock, where it runs (systemd.exec(5)), and its policy (systemd.resource-control(5)).
fn service(key: &str, value: &str) -> Line {
    match key {
        "CPUAffinity" | "AllowedCPUs" => set(key, is_list(value), "write CPUs such as 0-3,8-11"),
        "NUMAPolicy" => only(key, value, "bind"),
        "NUMAMask" => set(key, is_list(value), "write nodes such as 0"),
        "LimitMEMLOCK" => {
            let digits = value.trim_end_matches(['K', 'M', 'G', 'T']);
            let is_amount = value.len() - digits.len() <= 1 && settings::number(digits).is_some();
            let is_right = is_amount || value == "infinity";
            set(key, is_right, "write a number of bytes, or infinity")
        }
        "MemoryTHP" => {
            let words = ["disable", "madvise", "system"];
            set(key, words.contains(&value), "write disable, madvise or system")
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
