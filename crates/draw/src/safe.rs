//! Text that others wrote (names, arguments, results of other machines) made harmless for each form it is shown in.

use std::borrow::Cow;
use std::io::{self, Write};

use super::json::{Layout, ToJson};

/// Does it steer a terminal, or change what a reader sees of the text around it? Control characters (C0, DEL and C1),
/// line and paragraph separators, overrides of the writing direction, and characters without any width.
pub fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Text for one line: what steers becomes `\u{1b}` and the like.
pub fn printable(text: &str) -> String {
    escaped(text, |_| false, in_braces).into_owned()
}

/// Text of several lines, whose ends stay.
pub fn printable_lines(text: &str) -> String {
    escaped(text, is_end, in_braces).into_owned()
}

fn is_end(c: char) -> bool {
    c == '\n'
}

fn in_braces(c: char, safe: &mut String) {
    safe.extend(c.escape_default());
}

/// The text with escapes for what steers and does not stay; most texts have nothing of that.
fn escaped(text: &str, stays: fn(char) -> bool, escape: fn(char, &mut String)) -> Cow<'_, str> {
    let is_harmless = |c: char| !steers(c) || stays(c);
    if text.chars().all(is_harmless) {
        return text.into();
    }
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match is_harmless(c) {
            true => safe.push(c),
            false => escape(c, &mut safe),
        }
    }
    safe.into()
}

/// Text that means itself in Markdown, within a table too, and holds no HTML.
pub fn markdown(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in printable(text).chars() {
        match c {
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '&' => safe.push_str("&amp;"),
            '\\' | '|' | '*' | '_' | '`' | '[' | ']' | '~' => safe.extend(['\\', c]),
            c => safe.push(c),
        }
    }
    safe
}

/// The same for a paragraph: its first character begins neither a heading nor a list nor a rule.
pub fn markdown_paragraph(text: &str) -> String {
    let safe = markdown(text);
    let is_mark = safe.starts_with(['#', '-', '+', '=', ':']);
    if is_mark { format!("\\{safe}") } else { safe }
}

/// A cell of CSV: none begins a formula when a spreadsheet opens the file, and a terminal shows it as it is. Text that begins
/// as formulas do gets an apostrophe in front; numbers stay as they are. Quoted where RFC 4180 asks for it: line ends are
/// escapes here.
pub fn csv_cell(text: &str) -> String {
    let mut safe = printable(text);
    let formula = ['=', '+', '-', '@', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}'];
    if safe.starts_with(formula) && !is_number(&safe) {
        safe.insert(0, '\'');
    }
    if safe.contains([',', '"']) {
        safe = format!("\"{}\"", safe.replace('"', "\"\""));
    }
    safe
}

/// Digits with a sign, a point or an exponent; neither `-inf` nor `-1+cmd`.
fn is_number(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.' | 'e' | 'E');
    text.chars().all(is_plain) && text.parse::<f64>().is_ok()
}

/// JSON that says the same without characters that steer. Those outside of strings are the writer's own line ends.
pub fn json(text: &str) -> Cow<'_, str> {
    escaped(text, is_end, |c, safe| {
        let mut units = [0; 2];
        let units = c.encode_utf16(&mut units).iter();
        safe.extend(units.map(|unit| format!("\\u{unit:04x}")));
    })
}

/// A writer that gives text to a function, piece by piece: each piece is whole characters.
pub struct Pieces<F>(pub F);

impl<F: FnMut(&str) -> io::Result<()>> Write for Pieces<F> {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        (self.0)(std::str::from_utf8(piece).map_err(io::Error::other)?)?;
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// [`json`] for what a serializer writes.
pub fn json_to(out: &mut dyn Write) -> impl Write {
    Pieces(|text: &str| out.write_all(json(text).as_bytes()))
}

/// [`printable_lines`] for what a template writes.
pub fn lines_to(out: &mut dyn Write) -> impl Write {
    Pieces(|text: &str| out.write_all(escaped(text, is_end, in_braces).as_bytes()))
}

/// Does a text anywhere in a result steer? Ends of lines and tabs do not count: files of configuration have them.
///
/// # Errors
/// If the result has no JSON form.
pub fn is_hostile(result: &dyn ToJson) -> serde_json::Result<bool> {
    let mut is_hostile = false;
    // A text without escapes, or one escape.
    let mut watch = Pieces(|piece: &str| {
        let is_control = ["\\u", "\\b", "\\f", "\\r"]
            .iter()
            .any(|escape| piece.starts_with(escape));
        is_hostile |= is_control || piece.contains(steers);
        Ok(())
    });
    result.write_json(Layout::Line, &mut watch)?;
    Ok(is_hostile)
}
