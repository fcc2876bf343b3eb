//! Words, texts and signs, which the languages of NixOS and of TOML have alike.

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

    /// A word, or what is in quotes.
    pub(super) fn text(&self) -> Option<&str> {
        match &self.what {
            What::Word(text) | What::Text(text) => Some(text),
            What::Sign(_) => None,
        }
    }
}

/// Without comments.
pub(super) fn tokens(text: &str, is_nix: bool) -> Vec<Token> {
    let long: &[&str] = if is_nix { &["''"] } else { &["'''", "\"\"\""] };
    let (mut tokens, mut line, mut rest) = (Vec::new(), 1, text);
    while let Some(first) = rest.chars().next() {
        let mark = long.iter().find(|mark| rest.starts_with(**mark));
        let (what, length) = match (first, mark) {
            (_, Some(mark)) => {
                let inside = &rest[mark.len()..];
                let (end, after) = closed_long(inside, mark);
                (Some(What::Text(inside[..end].to_owned())), mark.len() + after)
            }
            ('#', _) => (None, rest.find('\n').unwrap_or(rest.len())),
            ('/', _) if rest.starts_with("/*") => (None, rest.find("*/").map_or(rest.len(), |end| end + 2)),
            (quote @ ('"' | '\''), _) => {
                let end = closed(&rest[1..], quote);
                (Some(What::Text(rest[1..=end].to_owned())), (end + 2).min(rest.len()))
            }
            (c, _) if is_word(c) => {
                // As in Nix' `foldl'`.
                let goes_on = |c: char| is_word(c) || (is_nix && c == '\'');
                let end = rest.find(|c| !goes_on(c)).unwrap_or(rest.len());
                (Some(What::Word(rest[..end].to_owned())), end)
            }
            (c, _) if c.is_whitespace() => (None, c.len_utf8()),
            (c, _) => (Some(What::Sign(c)), c.len_utf8()),
        };
        tokens.extend(what.map(|what| Token { line, what }));
        line += rest[..length].matches('\n').count();
        rest = &rest[length..];
    }
    tokens
}

/// Where a text ends that began before; one that is open goes on to the end. Only double quotes have escapes in them.
fn closed(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    let end = text.char_indices().find(|(_, c)| {
        let ends = *c == quote && !is_escaped;
        is_escaped = *c == '\\' && !is_escaped && quote == '"';
        ends
    });
    end.map_or(text.len(), |(at, _)| at)
}

/// Where a text of several lines ends, and where what follows it begins. In Nix `''$`, `'''` and `''\` are characters of the text. In TOML
/// two more quotes at the end are, and so is one behind a backslash.
fn closed_long(text: &str, mark: &str) -> (usize, usize) {
    let is_nix = mark.len() == 2;
    let mut at = 0;
    while let Some(found) = text[at..].find(mark) {
        let (end, after) = (at + found, at + found + mark.len());
        let escapes = text[..end].bytes().rev().take_while(|byte| *byte == b'\\').count();
        if is_nix && text[after..].starts_with(['$', '\'', '\\']) {
            at = after + 1;
        } else if mark == "\"\"\"" && escapes % 2 == 1 {
            at = end + 1;
        } else {
            let more = text[after..]
                .chars()
                .take(2)
                .take_while(|c| !is_nix && mark.starts_with(*c));
            let more = more.count();
            return (end + more, after + more);
        }
    }
    (text.len(), text.len())
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')
}
