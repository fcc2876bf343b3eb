//! A shell script in its pieces (sh(1)): words with their variables, signs, and texts of several lines.

use std::mem;

/// A piece of a script, with its line, counted from 1.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) line: usize,
    pub(super) what: What,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum What {
    Word(Vec<Part>),
    /// `;`, `>` and others.
    Sign(&'static str),
    /// The lines behind `<<END`, each with its number.
    Text(Vec<(usize, String)>),
}

/// A part of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Plain(String),
    /// A variable. Out of quotes its value may be several words.
    Variable {
        name: String,
        /// What it is where it has no value.
        default: Option<String>,
        is_quoted: bool,
    },
    /// What only a run shows, as written: `$(nproc)`, `$1`.
    Run(String),
}

/// The longest first.
const SIGNS: [&str; 25] = [
    "2>&1", "1>&2", "&>>", "2>>", "1>>", "<<<", "<<-", "&>", "2>", "1>", ">>", ">|", ">&", "<&", "<<", ";;", "&&",
    "||", ">", "<", ";", "&", "|", "(", ")",
];

/// `None` where a quote, a parenthesis or a here-document is not closed.
pub(super) fn tokens(text: &str) -> Option<Vec<Token>> {
    let mut lexer = Lexer { rest: text, line: 1 };
    let (mut tokens, mut ends) = (Vec::new(), Vec::<String>::new());
    while let Some(first) = lexer.rest.chars().next() {
        let line = lexer.line;
        let sign = SIGNS.into_iter().find(|sign| lexer.rest.starts_with(sign));
        let what = match (first, sign) {
            ('(', _) if lexer.arithmetic().is_some() => {
                let length = lexer.arithmetic()?;
                What::Word(vec![Part::Run(lexer.skip(length).to_owned())])
            }
            ('\n', _) => {
                lexer.skip(1);
                for end in mem::take(&mut ends) {
                    let what = What::Text(lexer.text_to(&end)?);
                    tokens.push(Token { line, what });
                }
                What::Sign("\n")
            }
            (c, _) if c.is_whitespace() || c == '#' || lexer.rest.starts_with("\\\n") => {
                lexer.skip_between(c);
                continue;
            }
            (_, Some(sign @ ("<<" | "<<-"))) => {
                lexer.skip(sign.len());
                ends.push(lexer.end());
                What::Sign("<<")
            }
            (_, Some(sign)) => {
                lexer.skip(sign.len());
                What::Sign(sign)
            }
            (_, None) => What::Word(lexer.word()?),
        };
        tokens.push(Token { line, what });
    }
    ends.is_empty().then_some(tokens)
}

/// Does it end a word?
fn is_end(c: char) -> bool {
    c.is_whitespace() || ";&|<>()".contains(c)
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

struct Lexer<'a> {
    rest: &'a str,
    line: usize,
}

impl<'a> Lexer<'a> {
    /// Goes on behind so many bytes, which are the answer.
    fn skip(&mut self, bytes: usize) -> &'a str {
        let (own, rest) = self.rest.split_at(bytes);
        self.line += own.matches('\n').count();
        self.rest = rest;
        own
    }

    /// White space, a comment, or the end of a line that goes on.
    fn skip_between(&mut self, first: char) {
        let bytes = match first {
            '#' => self.rest.find('\n').unwrap_or(self.rest.len()),
            '\\' => 2,
            c => c.len_utf8(),
        };
        self.skip(bytes);
    }

    /// The word that ends a text of several lines.
    fn end(&mut self) -> String {
        let blanks = self.rest.len() - self.rest.trim_start_matches([' ', '\t']).len();
        self.skip(blanks);
        let quote = self.rest.chars().next().filter(|c| matches!(c, '"' | '\''));
        let closed = quote.and_then(|quote| Some(self.rest[1..].find(quote)? + 2));
        let length = closed.unwrap_or_else(|| self.rest.find(is_end).unwrap_or(self.rest.len()));
        self.skip(length).replace(['"', '\'', '\\'], "")
    }

    /// `((...))`; nested subshells end otherwise.
    fn arithmetic(&self) -> Option<usize> {
        let rest = self.rest.starts_with("((").then_some(self.rest)?;
        let most = rest.char_indices().nth(LONGEST_SUM).map_or(rest.len(), |(at, _)| at);
        closed(&rest[..most]).filter(|end| rest[..*end].ends_with("))"))
    }

    /// The lines up to that word, if it comes.
    fn text_to(&mut self, end: &str) -> Option<Vec<(usize, String)>> {
        let mut lines = Vec::new();
        while !self.rest.is_empty() {
            let number = self.line;
            let length = self.rest.find('\n').map_or(self.rest.len(), |at| at + 1);
            let own = self.skip(length).trim_end();
            if own.trim_start_matches('\t') == end {
                return Some(lines);
            }
            lines.push((number, own.to_owned()));
        }
        None
    }

    fn word(&mut self) -> Option<Vec<Part>> {
        let mut parts = Vec::new();
        while let Some(first) = self.rest.chars().next().filter(|c| !is_end(*c)) {
            match first {
                '\'' => {
                    self.skip(1);
                    let length = self.rest.find('\'')?;
                    let own = self.skip(length);
                    push(&mut parts, own);
                    self.skip(1);
                }
                '"' => self.quoted(&mut parts)?,
                '\\' => self.escaped(&mut parts),
                '$' | '`' => parts.push(self.value(false)?),
                c => {
                    let own = self.skip(c.len_utf8());
                    push(&mut parts, own);
                }
            }
        }
        Some(parts)
    }

    /// What is in double quotes.
    fn quoted(&mut self, parts: &mut Vec<Part>) -> Option<()> {
        self.skip(1);
        push(parts, "");
        loop {
            match self.rest.chars().next()? {
                '"' => {
                    self.skip(1);
                    return Some(());
                }
                '\\' if self.rest[1..].starts_with(['"', '$', '`', '\\', '\n']) => self.escaped(parts),
                '$' | '`' => parts.push(self.value(true)?),
                c => {
                    let own = self.skip(c.len_utf8());
                    push(parts, own);
                }
            }
        }
    }

    /// A character behind a backslash; a line that ends so goes on.
    fn escaped(&mut self, parts: &mut Vec<Part>) {
        self.skip(1);
        if let Some(next) = self.rest.chars().next() {
            let own = self.skip(next.len_utf8());
            push(parts, if next == '\n' { "" } else { own });
        }
    }

    /// What `$` or a backquote begins; `None` where it is not closed.
    fn value(&mut self, is_quoted: bool) -> Option<Part> {
        let rest = self.rest;
        let after = &rest[1..];
        if rest.starts_with('`') {
            let length = after.find('`')? + 2;
            return Some(Part::Run(self.skip(length).to_owned()));
        }
        if after.starts_with('(') {
            let length = closed(after)? + 1;
            return Some(Part::Run(self.skip(length).to_owned()));
        }
        if let Some(after) = after.strip_prefix('{') {
            let length = after.find('}')? + 3;
            return Some(braced(self.skip(length), is_quoted));
        }
        let length = after.find(|c| !is_name(c)).unwrap_or(after.len());
        if is_variable(&after[..length]) {
            let name = self.skip(length + 1)[1..].to_owned();
            let default = None;
            return Some(Part::Variable {
                name,
                default,
                is_quoted,
            });
        }
        Some(
            match after.starts_with(|c: char| c.is_ascii_digit() || "@*#?$!-".contains(c)) {
                true => Part::Run(self.skip(2).to_owned()),
                false => Part::Plain(self.skip(1).to_owned()),
            },
        )
    }
}

/// `${NAME}`, `${NAME:-DEFAULT}`; what else is in braces only a run shows.
fn braced(whole: &str, is_quoted: bool) -> Part {
    let inner = &whole[2..whole.len() - 1];
    let (name, default) = match inner.split_once(":-") {
        Some((name, default)) => (name, Some(default.to_owned())),
        None => (inner, None),
    };
    let is_plain = is_variable(name) && default.as_ref().is_none_or(|text| !text.contains(['$', '`']));
    match is_plain {
        true => Part::Variable {
            name: name.to_owned(),
            default,
            is_quoted,
        },
        false => Part::Run(whole.to_owned()),
    }
}

/// Is it a name that a script gives?
pub(super) fn is_variable(name: &str) -> bool {
    !name.is_empty() && name.chars().all(is_name) && !name.starts_with(|c: char| c.is_ascii_digit())
}

fn push(parts: &mut Vec<Part>, text: &str) {
    match parts.last_mut() {
        Some(Part::Plain(known)) => known.push_str(text),
        _ => parts.push(Part::Plain(text.to_owned())),
    }
}

/// Characters of `((...))`; a longer one is taken as commands.
const LONGEST_SUM: usize = 1000;

/// Where the first parenthesis is closed, if it is. Parentheses in quotes, comments and here-documents count for nothing.
fn closed(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut may_print = !text.starts_with("((");
    let (mut open, mut at) = (Vec::new(), 0);
    while let Some(&byte) = bytes.get(at) {
        let is_quoted = open.last() == Some(&b'"');
        match byte {
            b'\\' => at += 1,
            b'"' if is_quoted => {
                open.pop();
            }
            b'(' if !is_quoted || bytes[at - 1] == b'$' => open.push(byte),
            b')' if !is_quoted => {
                open.pop();
                if open.is_empty() {
                    return Some(at + 1);
                }
            }
            _ if is_quoted => {}
            b'"' => open.push(byte),
            b'\'' => at += text[at + 1..].find('\'')? + 1,
            b'#' if bytes[at - 1].is_ascii_whitespace() => at += text[at..].find('\n')?,
            b'<' if text[at..].starts_with("<<<") => at += 2,
            b'<' if may_print && text[at..].starts_with("<<") => match printed(&text[at..]) {
                Some(length) => at += length,
                None => may_print = false,
            },
            _ => {}
        }
        at += 1;
    }
    None
}

/// Where the here-document that a text begins with ends.
fn printed(text: &str) -> Option<usize> {
    let name = text.trim_start_matches(['<', '-', ' ', '"', '\'', '\\']);
    let length = name.find(|c| !is_name(c)).unwrap_or(name.len());
    let end = Some(&name[..length]).filter(|end| !end.is_empty())?;
    let mut at = text.find('\n')? + 1;
    for line in text[at..].split('\n') {
        if line.trim() == end {
            return Some(at + line.len());
        }
        at += line.len() + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{Part, What, tokens};

    /// Words as a line, variables in braces, what a run shows in angles.
    fn shown(text: &str) -> Option<String> {
        let part = |part: &Part| match part {
            Part::Plain(text) => text.clone(),
            Part::Variable { name, .. } => format!("{{{name}}}"),
            Part::Run(text) => format!("<{text}>"),
        };
        let token = |what: &What| match what {
            What::Word(parts) => parts.iter().map(part).collect(),
            What::Sign("\n") => "/".to_owned(),
            What::Sign(sign) => (*sign).to_owned(),
            What::Text(lines) => format!("{lines:?}"),
        };
        let words: Vec<String> = tokens(text)?.iter().map(|each| token(&each.what)).collect();
        Some(words.join(" "))
    }

    #[test]
    fn words_signs_and_texts() {
        for (text, expected) in [
            ("echo 10 >/a 2>/dev/null # x\n", "echo 10 > /a 2> /dev/null /"),
            ("a \\\n  'b $c' \"d $e\"\\ f", "a b $c d {e} f"),
            (
                "x=`date` y=$(a (b) c)z ${N:-4} $1 $",
                "x=<`date`> y=<$(a (b) c)>z {N} <$1> $",
            ),
            (
                "cat > /f <<'E'\nvm.x = 1\nE\nls",
                "cat > /f << [(2, \"vm.x = 1\")] / ls",
            ),
            ("cat <<\"A B\" | x\nit's\nA B\n", "cat << | x [(2, \"it's\")] /"),
            ("(( a = b << 20 ))\n((x); y)", "<(( a = b << 20 ))> / ( ( x ) ; y )"),
            (
                "n=$(grep -c '(' f) \"$(a \")\" b)\"",
                "n=<$(grep -c '(' f)> <$(a \")\" b)>",
            ),
            ("x=$(cat <<E\nit's (\nE\n) y", "x=<$(cat <<E\nit's (\nE\n)> y"),
            ("a&&b||c;d|e&", "a && b || c ; d | e &"),
        ] {
            assert_eq!(shown(text).as_deref(), Some(expected), "{text}");
        }
        for open in ["echo 'a", "echo $(a", "echo `a", "echo ${a", "cat <<E\na\n", "cat <<E"] {
            assert_eq!(shown(open), None, "{open}");
        }
    }
}
