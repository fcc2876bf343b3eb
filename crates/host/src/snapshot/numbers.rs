//! Named numbers, as directories of one-number files hold them.

use std::collections::BTreeMap;

use model::Reading;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Source;

/// Numbers by the name of their file; a file that could not be read says why.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Numbers(BTreeMap<String, Reading<i64>>);

impl Numbers {
    /// Every file of a directory that holds a number; settings of the form `always [never]` are not our business.
    pub(crate) fn of_directory(source: &Source, directory: &str) -> Reading<Self> {
        let is_choice = |path: &str| source.line(path).known().is_some_and(|line| line.contains('['));
        source.list(directory).map(|names| {
            let with_paths = names.into_iter().map(|name| (format!("{directory}/{name}"), name));
            let numbers = with_paths
                .filter(|(path, _)| !is_choice(path))
                .map(|(path, name)| (name, source.value(&path, "a whole number")));
            Self(numbers.collect())
        })
    }

    /// The number of that name.
    pub fn get(&self, name: &str) -> Reading<i64> {
        self.0.get(name).cloned().unwrap_or_else(|| Reading::absent(name))
    }

    /// Names and numbers, in order of name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Reading<i64>)> {
        self.0.iter().map(|(name, number)| (name.as_str(), number))
    }
}
