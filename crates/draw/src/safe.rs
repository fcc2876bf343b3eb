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
    shown(text, |_| false)
}

/// Text of several lines, whose ends stay.
pub fn printable_lines(text: &str) -> String {
    shown(text, |c| c == '\n')
}

fn shown(text: &str, stays: impl Fn(char) -> bool) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        if steers(c) && !stays(c) {
            safe.extend(c.escape_default());
        } else {
            safe.push(c);
        }
    }
    safe
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
    if !text.chars().any(|c| steers(c) && c != '\n') {
        return text.into();
    }
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        if steers(c) && c != '\n' {
            let mut units = [0; 2];
            let units = c.encode_utf16(&mut units).iter();
            safe.extend(units.map(|unit| format!("\\u{unit:04x}")));
        } else {
            safe.push(c);
        }
    }
    safe.into()
}

/// [`json`] for what a serializer writes piece by piece: each piece is whole characters.
pub struct Json<W>(pub W);

impl<W: Write> Write for Json<W> {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        if piece.iter().all(|&byte| matches!(byte, b' '..=b'~' | b'\n')) {
            // Most pieces.
            self.0.write_all(piece)?;
            return Ok(piece.len());
        }
        let text = std::str::from_utf8(piece).map_err(io::Error::other)?;
        self.0.write_all(json(text).as_bytes())?;
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// [`printable_lines`] for what is written piece by piece: each piece is whole characters.
pub struct Lines<W>(pub W);

impl<W: Write> Write for Lines<W> {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        let text = std::str::from_utf8(piece).map_err(io::Error::other)?;
        match text.chars().any(|c| steers(c) && c != '\n') {
            true => self.0.write_all(printable_lines(text).as_bytes())?,
            false => self.0.write_all(piece)?,
        }
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Does a text anywhere in a result steer? Ends of lines and tabs do not count: files of configuration have them.
///
/// # Errors
/// If the result has no JSON form.
pub fn is_hostile(result: &dyn ToJson) -> serde_json::Result<bool> {
    let mut watch = Watch { is_hostile: false };
    result.write_json(Layout::Line, &mut watch)?;
    Ok(watch.is_hostile)
}

/// Looks at every piece of JSON that passes, and writes nothing: a text without escapes, or one escape.
struct Watch {
    is_hostile: bool,
}

impl Write for Watch {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        let text = std::str::from_utf8(piece).map_err(io::Error::other)?;
        let is_control = ["\\u", "\\b", "\\f", "\\r"]
            .iter()
            .any(|escape| text.starts_with(escape));
        self.is_hostile |= is_control || text.contains(steers);
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
