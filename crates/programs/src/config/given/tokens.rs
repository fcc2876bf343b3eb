//! Words, texts and signs of the language of NixOS.

/// A piece of the language.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) line: usize,
    pub(super) what: What,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum What {
    /// A name with its dots, or a number.
    Word(String),
    /// What is in quotes.
    Text(String),
    Sign(char),
}

impl Token {
    pub(super) fn is(&self, sign: char) -> bool {
        self.what == What::Sign(sign)
    }
}

/// Without comments.
pub(super) fn tokens(text: &str) -> Vec<Token> {
    let (mut tokens, mut line, mut rest) = (Vec::new(), 1, text);
    while let Some(first) = rest.chars().next() {
        let (what, length) = match first {
            '\'' if rest.starts_with(LONG) => {
                let (end, after) = closed_long(&rest[LONG.len()..]);
                let inside = &rest[LONG.len()..LONG.len() + end];
                (Some(What::Text(inside.to_owned())), LONG.len() + after)
            }
            '#' => (None, rest.find('\n').unwrap_or(rest.len())),
            '/' if rest.starts_with("/*") => (None, rest.find("*/").map_or(rest.len(), |end| end + 2)),
            '"' => {
                let end = closed(&rest[1..]);
                (Some(What::Text(rest[1..=end].to_owned())), (end + 2).min(rest.len()))
            }
            c if is_word(c) => {
                // As in `foldl'`.
                let end = rest.find(|c| !is_word(c) && c != '\'').unwrap_or(rest.len());
                (Some(What::Word(rest[..end].to_owned())), end)
            }
            c if c.is_whitespace() => (None, c.len_utf8()),
            c => (Some(What::Sign(c)), c.len_utf8()),
        };
        tokens.extend(what.map(|what| Token { line, what }));
        line += rest[..length].matches('\n').count();
        rest = &rest[length..];
    }
    tokens
}

/// Where a text ends that began before; one that is open goes on to the end.
fn closed(text: &str) -> usize {
    let mut is_escaped = false;
    let end = text.char_indices().find(|(_, c)| {
        let ends = *c == '"' && !is_escaped;
        is_escaped = *c == '\\' && !is_escaped;
        ends
    });
    end.map_or(text.len(), |(at, _)| at)
}

/// Around a text of several lines.
const LONG: &str = "''";

/// Where such a text ends, and where what follows it begins. `''$`, `'''` and `''\` are characters of the text.
fn closed_long(text: &str) -> (usize, usize) {
    let mut at = 0;
    while let Some(found) = text[at..].find(LONG) {
        let (end, after) = (at + found, at + found + LONG.len());
        if !text[after..].starts_with(['$', '\'', '\\']) {
            return (end, after);
        }
        at = after + 1;
    }
    (text.len(), text.len())
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')
}
