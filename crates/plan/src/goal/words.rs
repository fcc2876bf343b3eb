//! A goal as words: its kind, and pairs of key and value, from the command line or from a table of TOML.

use std::fmt::Display;
use std::str::FromStr;

use super::error::GoalError;

/// Longer ones are no goals.
const LONGEST: usize = 400;

/// The words of one goal; keys are taken out one by one, and what is left over is an error.
#[derive(Clone, Debug)]
pub(super) struct Words {
    place: String,
    pub(super) kind: String,
    pairs: Vec<(String, String)>,
}

impl Words {
    /// `KIND`, `KIND:VALUE,KEY=VALUE,..` or `KIND=VALUE,..`.
    pub(super) fn parse(text: &str) -> Result<Self, GoalError> {
        let shown: String = text.escape_debug().take(LONGEST).collect();
        let place = format!("goal `{shown}`");
        if text.len() > LONGEST || !text.chars().all(|c| c.is_ascii_graphic()) {
            let wanted = "a goal of printable characters without blanks, such as pool:2M=16";
            return Err(GoalError::new(&place, "", &shown, wanted));
        }
        let end = text.find([':', '=']).unwrap_or(text.len());
        let (kind, rest) = text.split_at(end);
        let mut words = Self {
            place,
            kind: kind.to_owned(),
            pairs: Vec::new(),
        };
        let parts = rest.get(1..).unwrap_or_default().split(',');
        let parts = parts.filter(|part| !part.is_empty());
        for (nth, part) in parts.enumerate() {
            let pair = match part.split_once('=') {
                Some((key, value)) => (key.to_owned(), value.to_owned()),
                // The first word may go without its key: `postgres:FILE`.
                None if nth == 0 => (String::new(), part.to_owned()),
                None => return Err(words.fail(part, "", "KEY=VALUE")),
            };
            words.put(pair)?;
        }
        Ok(words)
    }

    /// A table of TOML: `for` is the kind.
    pub(super) fn of_table(place: String, table: &toml::Table) -> Result<Self, GoalError> {
        let mut words = Self {
            place,
            kind: String::new(),
            pairs: Vec::new(),
        };
        for (key, value) in table {
            let value = match value {
                toml::Value::String(text) => text.clone(),
                toml::Value::Integer(number) => number.to_string(),
                other => return Err(words.fail(key, other.type_str(), "a text or a whole number")),
            };
            if !value.chars().all(|c| c.is_ascii_graphic() && c != ',') || value.len() > LONGEST {
                return Err(words.fail(key, &value, "printable characters without blanks and commas"));
            }
            match key.as_str() {
                "for" => words.kind = value,
                _ => words.put((key.clone(), value))?,
            }
        }
        Ok(words)
    }

    fn put(&mut self, (key, value): (String, String)) -> Result<(), GoalError> {
        if self.pairs.iter().any(|(known, _)| *known == key) {
            return Err(self.fail(&key, &value, "to be given once"));
        }
        self.pairs.push((key, value));
        Ok(())
    }

    /// The goal as one can type it.
    pub(super) fn text(&self) -> String {
        let pair = |(key, value): &(String, String)| match key.as_str() {
            "" => value.clone(),
            key => format!("{key}={value}"),
        };
        let pairs: Vec<String> = self.pairs.iter().map(pair).collect();
        match pairs.is_empty() {
            true => self.kind.clone(),
            false => format!("{}:{}", self.kind, pairs.join(",")),
        }
    }

    /// Gives the word without a key its key.
    pub(super) fn name_first(&mut self, key: &str) {
        if let Some(first) = self.pairs.iter_mut().find(|(known, _)| known.is_empty()) {
            key.clone_into(&mut first.0);
        }
    }

    /// Takes a value that is of a type.
    pub(super) fn typed<T: FromStr>(&mut self, key: &str, wanted: &str) -> Result<Option<T>, GoalError> {
        self.checked(key, |text| text.parse().ok(), wanted)
    }

    /// Takes a value that passes a check.
    pub(super) fn checked<T>(
        &mut self,
        key: &str,
        check: impl Fn(&str) -> Option<T>,
        wanted: &str,
    ) -> Result<Option<T>, GoalError> {
        let Some(at) = self.pairs.iter().position(|(known, _)| known == key) else {
            return Ok(None);
        };
        let (_, text) = self.pairs.remove(at);
        check(&text).map(Some).ok_or_else(|| self.fail(key, &text, wanted))
    }

    /// Takes a value that must be there, and passes a check.
    pub(super) fn needed<T>(&mut self, key: &str, check: fn(&str) -> Option<T>, wanted: &str) -> Result<T, GoalError> {
        let value = self.checked(key, check, wanted)?;
        value.ok_or_else(|| self.fail(key, "", wanted))
    }

    /// Takes all pairs whose key passes a check.
    pub(super) fn drain<K>(&mut self, key: impl Fn(&str) -> Option<K>) -> Vec<(K, String)> {
        let mut taken = Vec::new();
        self.pairs.retain(|(name, value)| match key(name) {
            Some(key) => {
                taken.push((key, value.clone()));
                false
            }
            None => true,
        });
        taken
    }

    /// Nothing may be left over.
    pub(super) fn finish(&self, known: &str) -> Result<(), GoalError> {
        match self.pairs.first() {
            None => Ok(()),
            Some((key, _)) if known.is_empty() => {
                Err(self.fail(key, "", format!("`{}` alone, as it has no keys", self.kind)))
            }
            Some((key, _)) => Err(self.fail(key, "", format!("one of {known}"))),
        }
    }

    pub(super) fn fail(&self, key: &str, text: &str, wanted: impl Display) -> GoalError {
        GoalError::new(&self.place, key, text, &wanted.to_string())
    }
}
