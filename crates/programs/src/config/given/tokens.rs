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
    /// What stands in quotes.
    Text(String),
    Sign(char),
}

impl Token {
    pub(super) fn is(&self, sign: char) -> bool {
        self.what == What::Sign(sign)
    }

    /// A word, or what stands in quotes.
    pub(super) fn text(&self) -> Option<&str> {
        match &self.what {
            What::Word(text) | What::Text(text) => Some(text),
            What::Sign(_) => None,
        }
    }
}

/// Without comments, and without texts of several lines.
pub(super) fn tokens(text: &str) -> Vec<Token> {
    let (mut tokens, mut line, mut rest) = (Vec::new(), 1, text);
    while let Some(first) = rest.chars().next() {
        let (what, length) = match first {
            '#' => (None, rest.find('\n').unwrap_or(rest.len())),
            '/' if rest.starts_with("/*") => (None, rest.find("*/").map_or(rest.len(), |end| end + 2)),
            '\'' if rest.starts_with("''") => (None, rest[2..].find("''").map_or(rest.len(), |end| end + 4)),
            '"' => {
                let end = closed(&rest[1..]);
                (Some(What::Text(rest[1..=end].to_owned())), (end + 2).min(rest.len()))
            }
            c if is_word(c) => {
                let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
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

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')
}
