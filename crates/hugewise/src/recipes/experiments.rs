//! The experiments of `workloads/experiments.toml`: which workload, which arms, and what was published.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, bail};
use model::Bytes;
use model::suite::{Experiment, Published};
use serde::Deserialize;

use super::choose;
use crate::cli::meaning;

const TEXT: &str = include_str!("../../../../workloads/experiments.toml");

/// An experiment, and what it takes.
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    pub(crate) experiment: Experiment,
    /// Those of the recipe that are judged; all where there are none.
    pub(crate) metrics: Vec<String>,
    /// What it may take.
    pub(crate) time: Duration,
    /// What has to be available.
    pub(crate) memory: Bytes,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// Sources by the names that experiments have for them.
    sources: BTreeMap<String, String>,
    experiment: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    title: String,
    workload: String,
    arms: Vec<String>,
    #[serde(default)]
    metrics: Vec<String>,
    time: String,
    memory: String,
    published: Published,
    differs: Vec<String>,
}

/// Those that were asked for, by name or by the beginning of a name before a hyphen; all where none is.
///
/// # Errors
/// If a name is none of them; says which there are.
pub(crate) fn planned(only: &[String]) -> anyhow::Result<Vec<Planned>> {
    let all = all()?;
    for asked in only {
        if !all.iter().any(|planned| is_named(planned, asked)) {
            let names: Vec<&str> = all.iter().map(|planned| planned.experiment.name.as_str()).collect();
            bail!(
                "--only {asked}: there is no such experiment (write {})",
                names.join(", ")
            );
        }
    }
    let is_asked = |planned: &Planned| only.is_empty() || only.iter().any(|asked| is_named(planned, asked));
    Ok(all.into_iter().filter(is_asked).collect())
}

fn is_named(planned: &Planned, asked: &str) -> bool {
    let rest = planned.experiment.name.strip_prefix(asked);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

fn all() -> anyhow::Result<Vec<Planned>> {
    let file: File = toml::from_str(TEXT).context("workloads/experiments.toml")?;
    let sources = file.sources;
    let entries = file.experiment.into_iter();
    entries.map(|entry| entry.planned(&sources)).collect()
}

impl Entry {
    fn planned(self, sources: &BTreeMap<String, String>) -> anyhow::Result<Planned> {
        let named = |what: &str| format!("experiment {}: {what}", self.name);
        let source = sources.get(&self.published.source);
        let source = source.with_context(|| named("its source"))?.clone();
        let time = meaning::duration(&self.time).map_err(anyhow::Error::msg);
        let chosen = choose(&self.workload)?;
        Ok(Planned {
            time: time.with_context(|| named("its time"))?,
            memory: self.memory.parse().with_context(|| named("its memory"))?,
            metrics: self.metrics,
            experiment: Experiment {
                notice: chosen.notice().map(str::to_owned),
                name: self.name,
                title: self.title,
                workload: self.workload,
                arms: self.arms,
                published: Published {
                    source,
                    ..self.published
                },
                differs: self.differs,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{all, planned};

    #[test]
    fn every_experiment_names_a_recipe_its_metrics_and_its_source() {
        let all = all().expect("experiments");
        for (at, planned) in all.iter().enumerate() {
            let name = &planned.experiment.name;
            let chosen = super::choose(&planned.experiment.workload).expect("a recipe");
            let known = chosen.metric_names().expect("metrics");
            assert!(planned.metrics.iter().all(|metric| known.contains(metric)), "{name}");
            assert!(
                planned.experiment.arms.len() > 1 && !planned.experiment.differs.is_empty(),
                "{name}"
            );
            assert!(
                all[..at].iter().all(|other| other.experiment.name != *name),
                "{name} is there twice"
            );
        }
    }

    #[test]
    fn a_name_stands_for_itself_and_for_those_that_begin_with_it() {
        let names = |only: &str| -> Vec<String> {
            let planned = planned(&[only.to_owned()]).expect("experiments");
            planned.into_iter().map(|planned| planned.experiment.name).collect()
        };
        assert_eq!(names("compile"), ["compile", "compile-httpd"]);
        assert_eq!(names("jbb-flip"), ["jbb-flip"]);
        assert!(names("jbb").len() > 10 && names("oltp").len() == 4);
        let error = planned(&["jb".to_owned()]).expect_err("none").to_string();
        assert!(
            error.contains("--only jb: there is no such experiment (write jbb-parallel-1g,"),
            "{error}"
        );
    }
}
