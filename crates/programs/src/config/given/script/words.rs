//! Words with the values of their variables, as far as the script itself shows them.

use std::collections::BTreeMap;

use super::commands::assignment;
use crate::config::given::shell_tokens::Part;

/// Bytes of a value; a longer one is not kept.
const LONGEST: usize = 4 << 10;
/// Bytes of values in one command; those beyond are not put in.
pub(super) const MOST: usize = 256 << 10;

/// A word with the values of its variables.
#[derive(Clone, Debug, Default)]
pub(super) struct Word {
    pub(super) text: String,
    /// What of it only a run shows, and how that comes about.
    pub(super) open: String,
}

impl Word {
    pub(super) fn plain(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            open: String::new(),
        }
    }

    /// A variable of which only a run shows the value.
    fn of_variable(name: &str) -> Self {
        Self {
            text: format!("${{{name}}}"),
            open: format!("${name} "),
        }
    }

    pub(super) fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    pub(super) fn is_about_pages(&self) -> bool {
        self.text.contains("hugepage") || self.open.contains("hugepage")
    }

    pub(super) fn join(words: &[Self], by: &str) -> Self {
        let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
        Self {
            text: texts.join(by),
            open: words.iter().map(|word| word.open.as_str()).collect(),
        }
    }
}

/// Known values; of others how they come about is in `open`.
#[derive(Default)]
pub(super) struct Variables(BTreeMap<String, Word>);

impl Variables {
    pub(super) fn get(&self, name: &str) -> Option<&Word> {
        self.0.get(name)
    }

    /// Variables whose names are in a text have values from here on that only a run shows.
    pub(super) fn lose(&mut self, text: &str) {
        for name in text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
            if let Some(known) = self.0.get_mut(name) {
                *known = Word::of_variable(name);
            }
        }
    }

    pub(super) fn set(&mut self, name: String, value: Word) {
        self.0.insert(name, value);
    }

    /// A value that is set in a branch or a loop is not known behind it.
    pub(super) fn assign(&mut self, word: &[Part], is_sure: bool) {
        let Some((name, adds, value)) = assignment(word) else {
            return;
        };
        let mut value = self.whole(&value);
        if let Some(known) = self.0.get(&name).filter(|_| adds) {
            value = Word::join(&[known.clone(), value], "");
        }
        if !is_sure && !value.is_open() {
            value.open = format!("{} ", value.text);
        }
        if value.text.len() + value.open.len() > LONGEST {
            value.open = "a long text ".to_owned();
        }
        if value.is_open() {
            value.text = format!("${{{name}}}");
        }
        self.0.insert(name, value);
    }

    /// A word as the words that the shell makes of it, with so many bytes of values left to put in.
    pub(super) fn expanded(&self, word: &[Part], left: &mut usize) -> Vec<Word> {
        let mut words = vec![Word::default()];
        let mut is_there = false;
        for part in word {
            let value = self.value(part, left);
            let may_split = matches!(part, Part::Variable { is_quoted: false, .. }) && !value.is_open();
            is_there |= !matches!(part, Part::Variable { is_quoted: false, .. }) || !value.text.trim().is_empty();
            let pieces: Vec<&str> = match may_split {
                true => value.text.split_whitespace().collect(),
                false => vec![value.text.as_str()],
            };
            for (nth, piece) in pieces.into_iter().enumerate() {
                if nth > 0 {
                    words.push(Word::default());
                }
                if let Some(last) = words.last_mut() {
                    last.text.push_str(piece);
                    last.open.push_str(&value.open);
                }
            }
        }
        words.retain(|_| is_there);
        words
    }

    /// A word that stays one.
    pub(super) fn whole(&self, word: &[Part]) -> Word {
        let mut left = MOST;
        let parts: Vec<Word> = word.iter().map(|part| self.value(part, &mut left)).collect();
        Word::join(&parts, "")
    }

    fn value(&self, part: &Part, left: &mut usize) -> Word {
        match part {
            Part::Plain(text) => Word::plain(text),
            Part::Run(text) => Word {
                text: text.clone(),
                open: text.clone(),
            },
            Part::Variable { name, default, .. } => {
                let Some(known) = self.0.get(name) else {
                    let default = default.as_deref().map(Word::plain);
                    return default.unwrap_or_else(|| Word::of_variable(name));
                };
                match left.checked_sub(known.text.len() + known.open.len()) {
                    Some(rest) => {
                        *left = rest;
                        known.clone()
                    }
                    None => Word::of_variable(name),
                }
            }
        }
    }
}
