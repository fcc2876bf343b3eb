//! Lines of the form `name = value`, in the order in which they hold, each with the place where it stands.

use model::Unread;

use host::parse;

/// Every setting, in the order in which they are applied: the last one of a name holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings(pub(crate) Vec<Setting>);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Setting {
    /// `FILE:LINE`.
    pub place: String,
    /// Its name, such as `vm.nr_hugepages` or `shared_buffers`.
    pub name: String,
    /// Value as written, without quotes.
    pub value: String,
}

impl Settings {
    /// The setting that holds in the end.
    pub fn last(&self, name: &str) -> Option<&Setting> {
        self.0.iter().rev().find(|line| line.name == name)
    }

    /// The setting that holds in the end, if another file than this one makes it.
    pub fn last_outside(&self, file: &str, name: &str) -> Option<&Setting> {
        let is_inside = |line: &Setting| line.place.rsplit_once(':').is_some_and(|(path, _)| path == file);
        self.last(name).filter(|line| !is_inside(line))
    }

    /// The setting that holds in the end, as a number: a value that is none leaves the one before it as it was.
    ///
    /// # Errors
    /// Garbled if none of them is one.
    pub fn number(&self, name: &str) -> Result<Option<(u64, &Setting)>, Unread> {
        let Some(line) = self.last(name) else { return Ok(None) };
        let mut lines = self.0.iter().rev().filter(|line| line.name == name);
        match lines.find_map(|line| Some((line.value.parse().ok()?, line))) {
            Some(found) => Ok(Some(found)),
            None => Err(line.garbled("a whole number")),
        }
    }

    /// Every setting of a name, in order.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Setting> {
        self.0.iter().filter(move |line| line.name == name)
    }

    /// These, and others that are applied after them.
    #[must_use]
    pub fn with(&self, later: &Self) -> Self {
        Self(self.iter().chain(later.iter()).cloned().collect())
    }

    /// Every name with its value, in order.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.iter()
            .map(|setting| (setting.name.as_str(), setting.value.as_str()))
    }

    pub fn iter(&self) -> impl Iterator<Item = &Setting> {
        self.0.iter()
    }
}

impl Setting {
    pub fn new(place: impl Into<String>, name: impl Into<String>, value: impl Into<String>) -> Self {
        Self {
            place: place.into(),
            name: name.into(),
            value: value.into(),
        }
    }

    /// Its value is not what it should be.
    pub fn garbled(&self, wanted: &str) -> Unread {
        let (path, line) = self.place.rsplit_once(':').unwrap_or((&self.place, "1"));
        let index = line.parse::<usize>().unwrap_or(1).saturating_sub(1);
        parse::garbled(path, index, &self.name, wanted, &self.value)
    }
}
