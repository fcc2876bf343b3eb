//! Lines of the form `name = value`, in the order in which they hold, each with the place where it stands.

use model::Unread;

use super::sysctl_files;
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
        self.lines(name).next_back()
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
        let mut lines = self.lines(name).rev();
        match lines.find_map(|line| Some((line.value.parse().ok()?, line))) {
            Some(found) => Ok(Some(found)),
            None => Err(line.garbled("a whole number")),
        }
    }

    /// Every setting of a name, in order.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Setting> {
        self.lines(name)
    }

    /// Every one that the kernel takes, and those that only a run shows, in order: what it refuses leaves the one before it as it was.
    pub fn taken<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Setting> {
        let is_open = |line: &Setting| line.value.contains('$');
        self.lines(name)
            .filter(move |line| is_open(line) || sysctl_files::refused(line).is_none())
    }

    /// The pool of the default size has a second file, which differs only for a writer that is bound to some nodes.
    fn lines<'a>(&'a self, name: &str) -> impl DoubleEndedIterator<Item = &'a Setting> + use<'a> {
        let second = (name == sysctl_files::POOL).then_some(sysctl_files::BY_POLICY);
        let name = name.to_owned();
        self.0
            .iter()
            .filter(move |line| line.name == name || Some(line.name.as_str()) == second)
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

impl FromIterator<Setting> for Settings {
    fn from_iter<T: IntoIterator<Item = Setting>>(all: T) -> Self {
        Self(all.into_iter().collect())
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
