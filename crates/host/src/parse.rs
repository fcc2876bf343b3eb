//! What the small parsers share: a garbled place is named by path, line, item and wanted type.

use std::str::FromStr;

use model::{Bytes, Cause, Unread};

/// `path:line`: `seen` is not `wanted`. Line numbers count from 0 here, from 1 in the text.
pub fn garbled(path: &str, index: usize, item: &str, wanted: &str, seen: &str) -> Unread {
    let seen: String = seen.chars().take(40).collect();
    let item = if item.is_empty() {
        String::new()
    } else {
        format!("{item}: ")
    };
    let why = format!("{item}`{seen}` is not {wanted}");
    Unread::new(Cause::Garbled, format!("{path}:{}", index + 1), why)
}

/// One value of a line, or where and why it is garbled.
pub fn value<T: FromStr>(path: &str, index: usize, item: &str, wanted: &str, seen: &str) -> Result<T, Unread> {
    seen.trim()
        .parse()
        .map_err(|_| garbled(path, index, item, wanted, seen))
}

/// A number of KiB, as in `MemTotal: 24684092 kB`, without its unit.
pub fn kib(path: &str, index: usize, item: &str, seen: &str) -> Result<Bytes, Unread> {
    let number: u64 = value(path, index, item, "a number of kB", seen)?;
    number
        .checked_mul(1024)
        .map(Bytes)
        .ok_or_else(|| garbled(path, index, item, "a number of kB that fits", seen))
}

/// Text, or the line (counted from 1) that is none.
pub fn utf8(bytes: Vec<u8>) -> Result<String, usize> {
    String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        1 + valid.iter().filter(|&&byte| byte == b'\n').count()
    })
}

/// A number that is finite and not negative.
pub fn amount(text: &str) -> Option<f64> {
    text.parse()
        .ok()
        .filter(|number: &f64| number.is_finite() && *number >= 0.0)
}

/// A number as the kernel's simple_strtoull() reads it, decimal, `0x` or octal with a `0` in front; and what follows it.
pub fn kernel_number(text: &str) -> Option<(u64, &str)> {
    let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) if hex.starts_with(|c: char| c.is_ascii_hexdigit()) => (hex, 16),
        _ if text.starts_with('0') => (text, 8),
        _ => (text, 10),
    };
    let (number, rest) = digits.split_at(digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len()));
    Some((u64::from_str_radix(number, radix).ok()?, rest))
}

/// By how many bits the letter of a unit shifts a number: K, M, G, T, P or E.
pub fn shift(letter: char) -> Option<u32> {
    let at = "KMGTPE".find(letter.to_ascii_uppercase())?;
    Some(10 * (at as u32 + 1))
}

/// A size as the kernel's memparse() reads it: such a number, then K, M, G, T, P or E or
/// nothing; what follows is not looked at.
pub fn memparse(text: &str) -> Option<Bytes> {
    let (number, rest) = kernel_number(text)?;
    let shift = rest.chars().next().and_then(shift).unwrap_or(0);
    number.checked_mul(1 << shift).map(Bytes)
}
