//! Values of postgresql.conf as the server takes them: what its scanner (guc-file.l) and its units (guc.c) refuse is refused here.

use model::{Bytes, Cause, Unread};

use crate::config::Setting;

/// `huge_pages`, whose words the server compares without regard to case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HugePages {
    Off,
    /// The server does not start without its pages.
    On,
    /// It falls back to base pages in silence.
    #[default]
    Try,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    HugePages(HugePages),
    Bytes(Bytes),
    /// A number of things.
    Count(u64),
    /// `-1`: the server chooses.
    Automatic,
}

/// What a setting may be: a number of units, from the least to the most.
struct Range {
    /// Bytes of a number without a unit; none for plain counts.
    unit: Option<u64>,
    least: i64,
    most: i64,
}

const INT_MAX: i64 = i32::MAX as i64;
/// `MAX_BACKENDS`.
const BACKENDS: i64 = 0x3_FFFF;
const BLOCK: u64 = 8 << 10;
/// The largest units first; `B` came with version 11.
const UNITS: [(&str, u64); 5] = [
    ("TB", 1 << 40),
    ("GB", 1 << 30),
    ("MB", 1 << 20),
    ("kB", 1 << 10),
    ("B", 1),
];

/// The settings that decide on pages, as in guc.c of PostgreSQL 15 to 18.
fn range(name: &str) -> Option<Range> {
    let (unit, least, most) = match name {
        "shared_buffers" => (Some(BLOCK), 16, INT_MAX / 2),
        "wal_buffers" => (Some(BLOCK), -1, INT_MAX / 8192),
        "track_activity_query_size" => (Some(1), 100, 1 << 20),
        "min_dynamic_shared_memory" => (Some(1 << 20), 0, INT_MAX),
        "huge_page_size" => (Some(1 << 10), 0, INT_MAX),
        "max_connections" | "autovacuum_max_workers" | "autovacuum_worker_slots" => (None, 1, BACKENDS),
        "max_worker_processes" | "max_wal_senders" | "max_prepared_transactions" => (None, 0, BACKENDS),
        "max_locks_per_transaction" | "max_pred_locks_per_transaction" => (None, 10, INT_MAX),
        _ => return None,
    };
    Some(Range { unit, least, most })
}

/// The value of a setting that decides on pages; `None` for another setting.
///
/// # Errors
/// What the server wants in place of a value that it refuses at its start.
pub fn value(name: &str, text: &str) -> Result<Option<Value>, &'static str> {
    if name == "huge_pages" {
        let huge_pages = HugePages::of(text).ok_or("off, on or try")?;
        return Ok(Some(Value::HugePages(huge_pages)));
    }
    let Some(range) = range(name) else { return Ok(None) };
    let refused = match range.unit {
        Some(BLOCK) => {
            "a size that PostgreSQL takes, such as 8GB (units: B, kB, MB, GB, TB, in this case), or a number of blocks of 8kB"
        }
        Some(_) => "a size that PostgreSQL takes, such as 1GB (units: B, kB, MB, GB, TB, in this case)",
        None => "a whole number in its range",
    };
    let number = integer(text, range.unit)
        .filter(|number| (range.least..=range.most).contains(number))
        .ok_or(refused)?;
    Ok(Some(match (u64::try_from(number), range.unit) {
        (Err(_), _) => Value::Automatic,
        (Ok(number), Some(unit)) => Value::Bytes(Bytes(number.saturating_mul(unit))),
        (Ok(number), None) => Value::Count(number),
    }))
}

/// A parameter that it does not have, and the one of its own that is meant.
pub(crate) fn misspelt(set: &Setting) -> Option<Unread> {
    const KNOWN: [&str; 5] = [
        "huge_pages",
        "huge_page_size",
        "huge_pages_status",
        "shared_buffers",
        "shared_memory_size_in_huge_pages",
    ];
    let name = set.name.as_str();
    // Those with a point are of extensions.
    if KNOWN.contains(&name) || name.contains('.') {
        return None;
    }
    let is_of_pages = ["huge", "large_page", "largepage"]
        .iter()
        .any(|word| name.contains(word));
    let meant = match is_of_pages {
        true if name.contains("size") => "huge_page_size",
        true => "huge_pages",
        false if name.starts_with("share") && name.contains("buffer") => "shared_buffers",
        false => return None,
    };
    let why = format!(
        "PostgreSQL has no parameter {name}: {meant} is meant. The server does not start with it, or Patroni leaves it out"
    );
    Some(Unread::new(Cause::Garbled, &set.place, why))
}

impl HugePages {
    /// The word, as config_enum_lookup_by_name() compares it.
    pub fn of(text: &str) -> Option<Self> {
        Some(match text.to_ascii_lowercase().as_str() {
            "off" | "false" | "no" | "0" => Self::Off,
            "on" | "true" | "yes" | "1" => Self::On,
            "try" => Self::Try,
            _ => return None,
        })
    }

    /// As the documentation writes it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::On => "on",
            Self::Try => "try",
        }
    }
}

/// parse_int(): a number as strtol() or, with a point or an exponent, strtod() reads it, and a unit. Rounded to units of the setting.
fn integer(text: &str, base: Option<u64>) -> Option<i64> {
    let text = text.trim_start_matches(is_space);
    let (number, rest) = number(text)?;
    let unit = rest.trim_matches(is_space);
    let value = match (unit, base) {
        ("", _) => number,
        (_, None) => return None,
        (unit, Some(base)) => in_units(number, unit, base)?,
    };
    // rint(), and int is what the server keeps.
    let rounded = value.round_ties_even();
    (rounded.abs() <= INT_MAX as f64 + 1.0)
        .then_some(rounded as i64)
        .filter(|number| *number <= INT_MAX)
}

/// convert_to_base_unit(): a fraction is rounded to the next smaller unit first.
fn in_units(number: f64, unit: &str, base: u64) -> Option<f64> {
    let at = UNITS.iter().position(|(name, _)| *name == unit)?;
    let of = |(_, bytes): &(&str, u64)| *bytes as f64 / base as f64;
    let value = number * of(&UNITS[at]);
    Some(
        UNITS
            .get(at + 1)
            .map_or(value, |smaller| (value / of(smaller)).round_ties_even() * of(smaller)),
    )
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{b}' | '\u{c}')
}

/// The number at the beginning, and what follows it.
fn number(text: &str) -> Option<(f64, &str)> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let sign = if text.starts_with('-') { -1.0 } else { 1.0 };
    let hex = unsigned.strip_prefix("0x").or_else(|| unsigned.strip_prefix("0X"));
    if let Some(digits) = hex {
        let (digits, rest) = split(digits, |c| c.is_ascii_hexdigit());
        return Some((sign * i64::from_str_radix(digits, 16).ok()? as f64, rest));
    }
    let (whole, rest) = split(unsigned, |c| c.is_ascii_digit());
    if rest.starts_with(['.', 'e', 'E']) {
        return real(unsigned).map(|(number, rest)| (sign * number, rest));
    }
    // A zero in front is octal, as for strtol() with base 0; 08 ends behind its zero.
    let is_octal = whole.len() > 1 && whole.starts_with('0');
    let (digits, rest) = match is_octal {
        true => split(unsigned, |c| c.is_digit(8)),
        false => (whole, rest),
    };
    let number = i64::from_str_radix(digits, if is_octal { 8 } else { 10 });
    let number = number.map_or_else(|_| digits.parse::<f64>().ok(), |number| Some(number as f64))?;
    Some((sign * number, rest))
}

/// What strtod() takes: digits with a point, and an exponent if digits follow its letter.
fn real(text: &str) -> Option<(f64, &str)> {
    let (mantissa, rest) = split(text, |c| c.is_ascii_digit() || c == '.');
    let exponent = rest.strip_prefix(['e', 'E']).map_or(0, |after| {
        let sign = usize::from(after.starts_with(['+', '-']));
        let digits = split(&after[sign..], |c| c.is_ascii_digit()).0.len();
        if digits > 0 { 1 + sign + digits } else { 0 }
    });
    let (number, rest) = text.split_at(mantissa.len() + exponent);
    let number: f64 = number.parse().ok()?;
    number.is_finite().then_some((number, rest))
}

fn split(text: &str, is_part: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !is_part(c)).unwrap_or(text.len()))
}

/// What a line of the file is to the server's scanner: `name = value` or `name value`. An error is a syntax error, with which
/// the server does not start.
pub(crate) fn line(text: &str) -> Result<(String, String), ()> {
    let text = text.trim_matches(is_blank);
    let (name, rest) = split(text, is_in_name);
    let mut parts = name.split('.');
    let is_name = |part: &str| part.starts_with(|c: char| !c.is_ascii_digit()) && !part.is_empty();
    if !parts.clone().take(2).all(is_name) || parts.by_ref().count() > 2 {
        return Err(());
    }
    let rest = rest.trim_start_matches(is_blank);
    let rest = rest.strip_prefix('=').unwrap_or(rest).trim_start_matches(is_blank);
    let (value, rest) = match rest.strip_prefix('\'') {
        Some(quoted) => string(quoted).ok_or(())?,
        None => unquoted(rest).ok_or(())?,
    };
    let rest = rest.trim_start_matches(is_blank);
    match rest.is_empty() || rest.starts_with('#') {
        true => Ok((name.to_ascii_lowercase(), value)),
        false => Err(()),
    }
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r')
}

fn is_in_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '.' || !c.is_ascii()
}

/// The value of a quoted string, and what follows it (GUC_scanstr()).
fn string(text: &str) -> Option<(String, &str)> {
    let (mut value, mut rest) = (String::new(), text);
    loop {
        let at = rest.find(['\'', '\\'])?;
        value.push_str(&rest[..at]);
        let (mark, after) = rest[at..].split_at(1);
        let next = after.chars().next();
        rest = match (mark, next) {
            ("'", Some('\'')) => {
                value.push('\'');
                &after[1..]
            }
            ("'", _) => return Some((value, after)),
            (_, Some(escaped)) => {
                let digits = after.len() - after.trim_start_matches(|c: char| c.is_digit(8)).len();
                let octal = &after[..digits.min(3)];
                match u32::from_str_radix(octal, 8) {
                    Ok(code) => {
                        value.extend(char::from_u32(code));
                        &after[octal.len()..]
                    }
                    Err(_) => {
                        let plain = [('b', '\u{8}'), ('f', '\u{c}'), ('n', '\n'), ('r', '\r'), ('t', '\t')];
                        let known = plain.iter().find(|(letter, _)| *letter == escaped);
                        value.push(known.map_or(escaped, |(_, meant)| *meant));
                        &after[escaped.len_utf8()..]
                    }
                }
            }
            (_, None) => return None,
        };
    }
}

/// The scanner's forms without quotes: a word, or a number. Letters may follow a whole one.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let is_letter = |c: char| c.is_ascii_alphabetic() || c == '_' || !c.is_ascii();
    let (own, rest) = split(text, |c| !is_blank(c) && c != '#');
    let is_in_word = |c: char| is_letter(c) || c.is_ascii_digit() || "-._:/".contains(c);
    let is_word = own.starts_with(is_letter) && own.chars().all(is_in_word);
    let number = own.strip_prefix(['+', '-']).unwrap_or(own);
    let has_unit = |(digits, unit): (&str, &str)| !digits.is_empty() && unit.chars().all(|c| c.is_ascii_alphabetic());
    let is_hex = || {
        let hex = number.strip_prefix("0x");
        hex.is_some_and(|hex| has_unit(split(hex, |c| c.is_ascii_hexdigit())))
    };
    let is_whole = || has_unit(split(number, |c| c.is_ascii_digit())) || is_hex();
    let is_real = || number.contains('.') && real(number).is_some_and(|(_, rest)| rest.is_empty());
    (is_word || is_whole() || is_real()).then(|| (own.to_owned(), rest))
}

#[cfg(test)]
#[path = "value_tests.rs"]
mod tests;
