//! Lines of `Key:   value` as /proc prints them, read from bytes, with the place kept for errors.

use model::{Bytes, Cause, Unread};

/// One line and where it stands.
#[derive(Clone, Copy)]
pub(super) struct Line<'a> {
    path: &'a str,
    number: usize,
    /// The line without its newline.
    pub(super) text: &'a [u8],
    /// Did a newline end it? Every line of /proc does; a cut capture's last line does not.
    pub(super) whole: bool,
}

/// All lines of a file; `path` is named in errors only.
pub(super) fn lines<'a>(path: &'a str, bytes: &'a [u8]) -> impl Iterator<Item = Line<'a>> {
    lines_after(path, 0, bytes)
}

/// The lines of a piece of a file that has so many lines before it.
pub(super) fn lines_after<'a>(path: &'a str, before: usize, bytes: &'a [u8]) -> impl Iterator<Item = Line<'a>> {
    bytes
        .split_inclusive(|&byte| byte == b'\n')
        .zip(before + 1..)
        .map(move |(raw, number)| {
            let stripped = raw.strip_suffix(b"\n");
            Line {
                path,
                number,
                text: stripped.unwrap_or(raw),
                whole: stripped.is_some(),
            }
        })
}

impl<'a> Line<'a> {
    /// Key and value of a `Key: value` line; the value is all that follows the colon, blanks too (a name may begin
    /// with one).
    pub(super) fn key_value(&self) -> Option<(&'a [u8], &'a [u8])> {
        let colon = self.text.iter().position(|&byte| byte == b':' || byte == b' ')?;
        let (key, rest) = self.text.split_at(colon);
        let value = rest.strip_prefix(b":")?;
        Some((key, value))
    }

    /// The reason for not reading `item` here.
    pub(super) fn garbled(&self, item: &str, value: &[u8], wanted: &str) -> Unread {
        let shown: String = String::from_utf8_lossy(value).chars().take(40).collect();
        Unread::new(
            Cause::Garbled,
            format!("{}:{}", self.path, self.number),
            format!("{item} is {shown:?}, wanted {wanted}"),
        )
    }

    /// A value such as `1764 kB`.
    pub(super) fn kib(&self, item: &[u8], value: &[u8]) -> Result<Bytes, Unread> {
        value
            .trim_ascii_start()
            .strip_suffix(b" kB")
            .and_then(decimal)
            .and_then(|kib| kib.checked_mul(1024))
            .map(Bytes)
            .ok_or_else(|| self.garbled(&String::from_utf8_lossy(item), value, "a size in kB"))
    }

    /// A value that is `0` or `1`.
    pub(super) fn flag(&self, item: &str, value: &[u8]) -> Result<bool, Unread> {
        match value.trim_ascii() {
            b"0" => Ok(false),
            b"1" => Ok(true),
            _ => Err(self.garbled(item, value, "0 or 1")),
        }
    }
}

/// A decimal number, digits only.
pub(super) fn decimal(text: &[u8]) -> Option<u64> {
    digits(text, 10)
}

/// A hexadecimal number without `0x`.
pub(super) fn hex(text: &[u8]) -> Option<u64> {
    digits(text, 16)
}

fn digits(text: &[u8], radix: u32) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0_u64, |value, &byte| {
        let digit = char::from(byte).to_digit(radix)?;
        value.checked_mul(u64::from(radix))?.checked_add(u64::from(digit))
    })
}
