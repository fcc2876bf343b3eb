//! Which names a goal may hold: what goes into files and scripts is checked here, letter by letter.

use host::CpuList;
use model::Bytes;

/// A user or group, as useradd takes it.
pub(super) fn account(text: &str) -> Option<String> {
    let first = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    plain(text, 32, "_.-").filter(|_| first)
}

/// A systemd service; `.service` may be left away.
pub(super) fn service(text: &str) -> Option<String> {
    let name = text.strip_suffix(".service").unwrap_or(text);
    let first = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    let name = plain(name, 100, "@_.-").filter(|name| first && !name.contains(".."))?;
    Some(format!("{name}.service"))
}

/// A virtual machine's name.
pub(super) fn guest(text: &str) -> Option<String> {
    let first = text.starts_with(|c: char| c.is_ascii_alphanumeric());
    plain(text, 64, "_.-").filter(|_| first)
}

/// An absolute path of plain characters, without `..`.
pub(super) fn path(text: &str) -> Option<String> {
    let mut parts = text.strip_prefix('/')?.split('/');
    let clean = parts.all(|part| !matches!(part, "" | "." | ".."));
    plain(text, 255, "/._+@-").filter(|_| clean)
}

/// A size that a page can have.
pub(super) fn page(text: &str) -> Option<Bytes> {
    text.parse().ok().filter(|size: &Bytes| size.is_page())
}

/// A size above nothing, below a petabyte.
pub(super) fn size(text: &str) -> Option<Bytes> {
    let size: Bytes = text.parse().ok()?;
    (1..1 << 50).contains(&size.0).then_some(size)
}

pub(super) fn pages(text: &str) -> Option<u64> {
    text.parse().ok().filter(|&pages| pages < 1 << 34)
}

/// A node number; kernels have at most 1024.
pub(super) fn node(text: &str) -> Option<u32> {
    text.parse().ok().filter(|&node| node < 1024)
}

/// CPUs as the kernel lists them, with `+` instead of commas, which end a word.
pub(super) fn cpus(text: &str) -> Option<CpuList> {
    let known = text.chars().all(|c| c.is_ascii_digit() || "+-".contains(c));
    let list: CpuList = text.replace('+', ",").parse().ok().filter(|_| known)?;
    (!list.is_empty()).then_some(list)
}

fn plain(text: &str, longest: usize, others: &str) -> Option<String> {
    let known = |c: char| c.is_ascii_alphanumeric() || others.contains(c);
    let good = !text.is_empty() && text.len() <= longest && text.chars().all(known);
    good.then(|| text.to_owned())
}
