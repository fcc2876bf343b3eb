//! A hugetlbfs of a plan: where it may be mounted, and the options that it takes.

use std::fmt;

use super::settings;
use crate::Bytes;

/// The options that distinguish one hugetlbfs from another; sizes are left out, the kernel rounds and rewrites them.
pub struct MountOptions {
    page: Option<Bytes>,
    uid: u32,
    gid: u32,
    mode: u32,
}

impl MountOptions {
    /// As typed, or as the kernel lists them: it leaves out root and its own default mode.
    pub fn parse(options: &str) -> Self {
        let find = |name: &str| {
            let mut values = options.split(',').filter_map(|option| option.split_once('='));
            values.find(|(key, _)| *key == name).map(|(_, value)| value)
        };
        let id = |name| find(name).and_then(|id| id.parse().ok()).unwrap_or(0);
        let mode = find("mode").and_then(|mode| u32::from_str_radix(mode, 8).ok());
        Self {
            page: find("pagesize").and_then(|size| size.parse().ok()),
            uid: id("uid"),
            gid: id("gid"),
            mode: mode.unwrap_or(0o755),
        }
    }

    /// Are both the same? A size that is not named is the kernel's own.
    pub fn is(&self, other: &Self) -> bool {
        let same_page = self.page.zip(other.page).is_none_or(|(one, two)| one == two);
        same_page && (self.uid, self.gid, self.mode) == (other.uid, other.gid, other.mode)
    }
}

impl fmt::Display for MountOptions {
    /// In one order, with those that the kernel leaves out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { page, uid, gid, mode } = self;
        let page = page.map_or_else(String::new, |page| format!("pagesize={},", page.exact()));
        write!(f, "{page}uid={uid},gid={gid},mode={mode:04o}")
    }
}

/// Where a hugetlbfs may be mounted, in words.
pub(super) const MOUNTS: &str =
    "hugetlbfs goes on /dev/hugepages*, /hugepages*, /mnt/huge*, /run/hugepages* or below /var/lib/hugetlbfs";

/// How those places begin: no other program reads there, so that nothing which an owner of the mount puts there is believed by one.
const BEGINNINGS: [&str; 5] = [
    "/dev/hugepages",
    "/hugepages",
    "/mnt/huge",
    "/run/hugepages",
    "/var/lib/hugetlbfs/",
];

/// Longer ones are no settings.
const LONGEST_SETTING: usize = 4096;

/// May a hugetlbfs be mounted there?
pub(super) fn is_mount_point(path: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/_.+-@".contains(c);
    is_clean(path)
        && path.chars().all(is_plain)
        && !path.ends_with('/')
        && BEGINNINGS.iter().any(|beginning| path.starts_with(beginning))
}

/// Is it absolute, without `..`, empty parts or control characters?
pub(super) fn is_clean(path: &str) -> bool {
    let parts = path.strip_prefix('/').unwrap_or("..").split('/');
    path.len() < LONGEST_SETTING
        && !path.chars().any(char::is_control)
        && parts.into_iter().all(|part| !matches!(part, "" | "." | ".."))
}

/// hugetlbfs takes these options, each with a value of its type.
pub(super) fn mount_options(text: &str) -> Result<(), String> {
    let fail = |option: &str, why: &str| Err(format!("`{option}`: {why}"));
    for option in text.split(',') {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        let is_right = match name {
            "pagesize" => is_size(value),
            "size" | "min_size" => is_amount(value),
            "nr_inodes" => settings::number(value).is_some(),
            "uid" | "gid" => value.parse::<u32>().is_ok_and(|id| id < u32::MAX) && settings::number(value).is_some(),
            "mode" => {
                u32::from_str_radix(value, 8).is_ok_and(|mode| mode & !0o775 == 0) && settings::number(value).is_some()
            }
            _ => {
                return fail(
                    option,
                    "hugetlbfs takes pagesize, size, min_size, nr_inodes, uid, gid and mode",
                );
            }
        };
        if !is_right {
            return fail(
                option,
                "it wants a plain value of its kind, and a mode that lets not everybody write (0775 at most)",
            );
        }
    }
    Ok(())
}

/// A page size: a power of two, as the kernel takes it.
pub(super) fn is_size(text: &str) -> bool {
    let (digits, shift) = suffixed(text);
    let bytes = settings::number(digits).and_then(|number| number.checked_mul(1 << shift));
    bytes.is_some_and(|bytes| Bytes(bytes).is_page())
}

/// A number of bytes, or a share of the pool.
fn is_amount(text: &str) -> bool {
    let (digits, _) = suffixed(text.strip_suffix('%').unwrap_or(text));
    settings::number(digits).is_some()
}

/// Digits, and by how many bits the letter behind them shifts.
fn suffixed(text: &str) -> (&str, u32) {
    for (letter, shift) in [('K', 10), ('M', 20), ('G', 30)] {
        if let Some(digits) = text.strip_suffix(letter) {
            return (digits, shift);
        }
    }
    (text, 0)
}
