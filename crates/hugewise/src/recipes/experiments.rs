//! The experiments of `workloads/experiments.toml`, or of a file of the user's: which workload, which arms, and what was published.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use compare::policy::Policy;
use host::Input;
use model::Bytes;
use model::suite::{Experiment, Published};
use serde::Deserialize;
use studies::claims::{self, Claim, Measure};
use toml::Spanned;
use translation::toml_file::{FileError, TomlFile};

use super::recipe::{filled, names};
use super::{Chosen, choose};
use crate::cli::values;
use crate::trusted::to_be_run;

const TEXT: &str = include_str!("../../../../workloads/experiments.toml");

/// Where experiments stand.
#[derive(Clone, Debug, Default)]
pub(crate) struct Place {
    /// The user's file; the built-in ones without it.
    pub(crate) file: Option<PathBuf>,
    /// What the paths of workloads begin from.
    folder: PathBuf,
}

/// An experiment, and what it takes.
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    pub(crate) experiment: Experiment,
    /// Those of the recipe that are judged; all where there are none.
    pub(crate) metrics: Vec<String>,
    /// What it may take.
    pub(crate) time: Duration,
    pub(crate) memory: Bytes,
    /// Its recipe.
    pub(crate) chosen: Chosen,
}

/// A text of the file, whose line an error names.
type Text = Spanned<String>;
/// Values by the names that the texts of an entry have for them.
type Row = BTreeMap<String, String>;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// Sources by the names that experiments have for them.
    #[serde(default)]
    sources: BTreeMap<String, String>,
    /// What experiments that quote claims measure, by such names.
    #[serde(default)]
    measures: BTreeMap<String, Measure>,
    /// Sentences of `differs` by such names.
    #[serde(default)]
    differences: BTreeMap<String, String>,
    experiment: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: Text,
    title: Text,
    workload: Text,
    arms: Spanned<Vec<Text>>,
    #[serde(default)]
    metrics: Vec<Text>,
    time: Text,
    memory: Text,
    published: Option<PublishedEntry>,
    #[serde(default)]
    differs: Vec<Text>,
    /// The entry stands for an experiment with each row of these lists, in all combinations.
    #[serde(default)]
    each: Vec<Vec<Row>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PublishedEntry {
    figure: Option<Text>,
    source: Option<Text>,
    /// Claims of `workloads/claims.toml` by id, in place of both.
    #[serde(default)]
    claims: Vec<Text>,
    /// What the experiment itself measures.
    measure: Option<Text>,
}

impl Place {
    /// The built-in experiments, or those of a file that only this user and root can change.
    ///
    /// # Errors
    /// If there is no such file, or others could change it.
    pub(crate) fn of(file: Option<&Path>) -> anyhow::Result<Self> {
        let Some(file) = file else { return Ok(Self::default()) };
        let file = to_be_run(file).with_context(|| format!("--experiments {}", file.display()))?;
        Ok(Self {
            folder: file.parent().map(Path::to_owned).unwrap_or_default(),
            file: Some(file),
        })
    }

    fn all(&self) -> anyhow::Result<Vec<Planned>> {
        let Some(file) = &self.file else {
            return self.parse("workloads/experiments.toml", TEXT);
        };
        let name = file.display().to_string();
        let text = Input::Recipe.text(file).with_context(|| name.clone())?;
        self.parse(&name, &text)
    }

    fn parse(&self, name: &str, text: &str) -> anyhow::Result<Vec<Planned>> {
        let typed = TomlFile { name, text };
        let file: File = typed.read()?;
        let mut all: Vec<Planned> = Vec::new();
        for entry in &file.experiment {
            for row in entry.rows() {
                let reader = Reader {
                    typed,
                    file: &file,
                    row,
                    folder: &self.folder,
                };
                let planned = reader.planned(entry)?;
                let name = &planned.experiment.name;
                if all.iter().any(|other| other.experiment.name == *name) {
                    let why = format!("there are two experiments `{name}`: expected different names");
                    typed.fail(&entry.name, why)?;
                }
                all.push(planned);
            }
        }
        Ok(all)
    }
}

/// Those that were asked for, by name or by the beginning of a name before a hyphen; all where none is.
///
/// # Errors
/// If a name is none of them; says which there are.
pub(crate) fn planned(only: &[String], place: &Place) -> anyhow::Result<Vec<Planned>> {
    let all = place.all()?;
    for asked in only {
        if !all.iter().any(|planned| is_named(planned, asked)) {
            let names: Vec<&str> = all.iter().map(|planned| planned.experiment.name.as_str()).collect();
            let names = names.join(", ");
            bail!("--only {asked}: there is no such experiment (write {names})");
        }
    }
    let is_asked = |planned: &Planned| only.is_empty() || only.iter().any(|asked| is_named(planned, asked));
    Ok(all.into_iter().filter(is_asked).collect())
}

fn is_named(planned: &Planned, asked: &str) -> bool {
    let rest = planned.experiment.name.strip_prefix(asked);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

impl Entry {
    /// All combinations of its rows; one without values if it has none.
    fn rows(&self) -> Vec<Row> {
        let both = |before: &Row, row: &Row| before.clone().into_iter().chain(row.clone()).collect::<Row>();
        let mut all = vec![Row::new()];
        for rows in &self.each {
            let with = |before: &Row| rows.iter().map(|row| both(before, row)).collect::<Vec<Row>>();
            all = all.iter().flat_map(with).collect();
        }
        all
    }
}

/// Reads one experiment of an entry.
struct Reader<'a> {
    typed: TomlFile<'a>,
    file: &'a File,
    row: Row,
    folder: &'a Path,
}

impl Reader<'_> {
    fn planned(&self, entry: &Entry) -> anyhow::Result<Planned> {
        let workload = self.text(&entry.workload)?;
        let chosen =
            choose(&workload, self.folder).or_else(|error| self.typed.fail(&entry.workload, format!("{error:#}")))?;
        let differs = entry.differs.iter().map(|differs| self.difference(differs));
        let differs = differs.collect::<Result<Vec<_>, _>>()?;
        let published = |published| self.published(published, &entry.name);
        let published = entry.published.as_ref().map(published).transpose()?;
        Ok(Planned {
            time: self.parsed(&entry.time, values::duration)?,
            memory: self.parsed(&entry.memory, str::parse::<Bytes>)?,
            metrics: self.metrics(&entry.metrics, &chosen)?,
            experiment: Experiment {
                notice: chosen.notice().map(str::to_owned),
                name: self.parsed(&entry.name, name)?,
                title: self.text(&entry.title)?,
                workload,
                arms: self.arms(&entry.arms)?,
                published,
                // A row may have nothing to say.
                differs: differs.into_iter().filter(|sentence| !sentence.is_empty()).collect(),
            },
            chosen,
        })
    }

    fn text(&self, at: &Text) -> Result<String, FileError> {
        filled(self.typed, at, &self.row)
    }

    fn parsed<T>(&self, at: &Text, parse: impl Fn(&str) -> Result<T, String>) -> Result<T, FileError> {
        parse(&self.text(at)?).or_else(|why| self.typed.fail(at, why))
    }

    fn arms(&self, arms: &Spanned<Vec<Text>>) -> Result<Vec<String>, FileError> {
        let policy = |name: &str| name.parse::<Policy>().map(|_| name.to_owned());
        let parsed = |arm| self.parsed(arm, |name| policy(name).map_err(|error| error.to_string()));
        let names = arms.get_ref().iter().map(parsed).collect::<Result<Vec<_>, _>>()?;
        if names.len() < 2 {
            self.typed
                .fail(arms, "expected two arms at least, the reference first".to_owned())?;
        }
        Ok(names)
    }

    fn metrics(&self, metrics: &[Text], chosen: &Chosen) -> anyhow::Result<Vec<String>> {
        let known: Vec<String> = chosen.metrics()?.into_iter().map(|asked| asked.wanted.name).collect();
        let checked = metrics.iter().map(|metric| {
            self.parsed(metric, |name| match known.iter().any(|known| known == name) {
                true => Ok(name.to_owned()),
                false => Err(format!(
                    "`{name}` is no metric of the recipe: expected one of {}",
                    known.join(", ")
                )),
            })
        });
        Ok(checked.collect::<Result<_, _>>()?)
    }

    fn published(&self, entry: &PublishedEntry, at: &Text) -> Result<Published, FileError> {
        match (&entry.figure, &entry.source, &entry.measure) {
            (Some(figure), Some(source), None) if entry.claims.is_empty() => {
                let name = self.text(source)?;
                Ok(Published {
                    figure: self.text(figure)?,
                    source: self.named(&self.file.sources, name, source, "sources")?,
                })
            }
            (None, None, Some(measure)) if !entry.claims.is_empty() => self.quoted(&entry.claims, measure),
            _ => {
                let why = "published: expected figure and source, or claims and measure".to_owned();
                self.typed.fail(at, why)
            }
        }
    }

    /// The figures of claims of the experiment's measure, and the names of the others. Where all are others, each says so.
    fn quoted(&self, ids: &[Text], measure: &Text) -> Result<Published, FileError> {
        let name = self.text(measure)?;
        let Some(own) = self.file.measures.get(&name) else {
            return self.typed.fail(measure, format!("`{name}` is not in [measures]"));
        };
        let claims = ids.iter().map(|id| {
            let found = |name: &str| {
                claims::by_id(name).ok_or_else(|| format!("there is no claim `{name}` (see suite --claims)"))
            };
            self.parsed(id, found)
        });
        let claims: Vec<&Claim> = claims.collect::<Result<_, _>>()?;
        let (mut shown, others): (Vec<&Claim>, Vec<&Claim>) = claims.iter().partition(|claim| claim.measure == *own);
        let named: Vec<&str> = others.iter().map(|claim| claim.id.as_str()).collect();
        let more = format!("of other quantities: {} (hugewise suite --claims)", named.join(", "));
        let more = (!shown.is_empty() && !others.is_empty()).then_some(more);
        if shown.is_empty() {
            shown = others;
        }
        let figures: Vec<String> = shown.iter().map(|claim| figure(claim, own)).chain(more).collect();
        Ok(Published {
            figure: figures.join("; "),
            source: shown.first().map(|claim| claim.source.clone()).unwrap_or_default(),
        })
    }

    fn difference(&self, at: &Text) -> Result<String, FileError> {
        let text = self.text(at)?;
        self.named(&self.file.differences, text, at, "differences")
    }

    /// A single word is a name in a table; anything else stands for itself.
    fn named(
        &self,
        table: &BTreeMap<String, String>,
        text: String,
        at: &Text,
        title: &str,
    ) -> Result<String, FileError> {
        match table.get(&text) {
            Some(sentence) => Ok(sentence.clone()),
            None if text.is_empty() || text.contains(' ') => Ok(text),
            None => {
                let known = names(table);
                let why = format!("`{text}` is not in [{title}]: expected a text, or one of {known}");
                self.typed.fail(at, why)
            }
        }
    }
}

/// A claim in a sentence: what, how much, and whether it can be compared.
fn figure(claim: &Claim, own: &Measure) -> String {
    let Measure { quantity, of, unit } = &claim.measure;
    let (what, figure) = (&claim.what, &claim.figure);
    let said = format!("{what}: {figure} ({quantity}, {of}, {unit})");
    match claim.measure == *own {
        true => said,
        false => format!("{said}, which cannot be compared with {} of {}", own.quantity, own.of),
    }
}

/// The name of an experiment, which files are called after.
fn name(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    match !text.is_empty() && text.len() <= 64 && text.chars().all(is_plain) && !text.starts_with('-') {
        true => Ok(text.to_owned()),
        false => Err(format!(
            "`{text}` cannot be the name of an experiment: expected a-z, 0-9 and -"
        )),
    }
}

#[cfg(test)]
#[path = "experiments_tests.rs"]
mod tests;
