//! `hugewise simulate sweep`: the points of a file, simulated in part or whole, or merged.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use anyhow::{Context, bail};
use host::{Input, Snapshot};
use model::Warning;
use sim::translation::patterns::Pattern;
use sim::translation::sweep::{self, Digest, Found, Plan, Point, RunError, Shard, Sweep, SweepResult};

use super::super::desk::Desk;
use super::points::Points;
use super::{machine, overlap};
use crate::cli::typed::{self, Format};
use crate::ui::Outcome;

/// The seed of a sweep that has none: its shards must agree on one.
const SEED: u32 = 1;

/// Runs the command.
pub(super) fn run(desk: &mut Desk<'_>, typed: &typed::Sweep) -> anyhow::Result<Outcome> {
    let form = desk.form::<SweepResult>(Format::Text)?;
    let plan = plan(desk, &typed.file)?;
    desk.seed = plan.head.seed;
    let path = typed.points.clone().unwrap_or_else(|| beside(&typed.file, typed.shard));
    let points = match typed.merge.as_slice() {
        [] => simulated(desk, typed, &plan, &path)?,
        files => merged(&plan, files, &path)?,
    };
    let result = plan.result(typed.shard, points);
    let snapshot = Snapshot::take(&desk.source);
    let result = desk.about(&snapshot, warnings(&result), result);
    desk.give(&result, form)
}

/// Everything that the file asks for.
fn plan(desk: &Desk<'_>, path: &Path) -> anyhow::Result<Plan> {
    let name = path.display().to_string();
    let text = Input::Sweep.text(path).with_context(|| name.clone())?;
    let sweep = Sweep::parse(&name, &text)?;
    let directory = path.parent().unwrap_or(Path::new(""));
    let seed = desk.global.seed.or(sweep.seed).unwrap_or(SEED);
    let machine = |name: &str| machine::beside(directory, name).map_err(|why| format!("{why:#}"));
    let digest = |name: &str| digest(&directory.join(name)).map_err(|why| format!("{why:#}"));
    Ok(Plan::new(sweep, seed.into(), machine, digest)?)
}

/// `sweep.jsonl`, or `sweep.1-of-4.jsonl`.
fn beside(file: &Path, shard: Option<Shard>) -> PathBuf {
    let ending = shard.map_or("jsonl".to_owned(), |shard| {
        format!("{}-of-{}.jsonl", shard.index, shard.of)
    });
    file.with_extension(ending)
}

/// A trace that is read for each of its points.
fn trace(path: &Path) -> anyhow::Result<File> {
    let (file, length) = host::input::stream(path).with_context(|| path.display().to_string())?;
    if length.is_none() {
        bail!(
            "{}: it is a pipe, expected a regular file: a sweep reads it many times",
            path.display()
        );
    }
    Ok(file)
}

fn digest(path: &Path) -> anyhow::Result<Digest> {
    let mut file = trace(path)?;
    let (mut digest, mut piece) = (Digest::default(), vec![0; 64 << 10]);
    loop {
        match file.read(&mut piece).with_context(|| path.display().to_string())? {
            0 => return Ok(digest),
            read => digest = digest.with(&piece[..read]),
        }
    }
}

fn simulated(desk: &Desk<'_>, typed: &typed::Sweep, plan: &Plan, path: &Path) -> anyhow::Result<Vec<Point>> {
    let (points, found) = Points::open(path, plan, typed.shard)?;
    let all = plan.numbers(typed.shard).count();
    notes(desk, path, &found, all);
    let threads = typed
        .threads
        .map_or_else(|| thread::available_parallelism().map_or(1, usize::from), usize::from);
    let directory = typed.file.parent().unwrap_or(Path::new(""));
    let (progress, begun) = (Mutex::new(desk.ui.progress()), Instant::now());
    let points = Mutex::new(points);
    let before = found.points.len();
    let keep = |new: Vec<Point>| -> anyhow::Result<()> {
        let done = {
            let mut points = points.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            points.add(new)?;
            points.count()
        };
        let left = begun
            .elapsed()
            .mul_f64((all - done) as f64 / (done - before).max(1) as f64);
        if let Ok(progress) = progress.lock() {
            progress.show(done as f64 / all as f64, left, "simulating");
        }
        Ok(())
    };
    let open = |name: &str| trace(&directory.join(name));
    match sweep::run(plan, typed.shard, &found.points, threads, &open, &keep) {
        Ok(()) => {}
        Err(RunError::Point(why)) => return Err(why.into()),
        Err(RunError::Other(why)) => return Err(why),
    }
    points
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
        .finish()
}

fn notes(desk: &Desk<'_>, path: &Path, found: &Found, all: usize) {
    let name = path.display();
    if found.is_torn {
        desk.ui.note(&format!(
            "{name}: the end of its last line is missing: what that line was for is simulated again"
        ));
    }
    match found.points.len() {
        0 => desk.ui.note(&format!(
            "points are kept in {name}: the same command goes on from there"
        )),
        done => desk.ui.note(&format!("{done} of {all} points are in {name} already")),
    }
}

/// The points of all files, which the file of points then holds.
fn merged(plan: &Plan, files: &[PathBuf], path: &Path) -> anyhow::Result<Vec<Point>> {
    let read = |file: &PathBuf| -> anyhow::Result<(String, Found)> {
        let name = file.display().to_string();
        let bytes = Input::Points.read(file).with_context(|| format!("--merge {name}"))?;
        let found = sweep::read(&name, &bytes, plan, None).context("--merge")?;
        Ok((name, found))
    };
    let files = files.iter().map(read).collect::<anyhow::Result<Vec<_>>>()?;
    let points = sweep::merged(plan, files).context("--merge")?;
    let text = sweep::text(&plan.head, &points)?;
    super::points::replace(path, plan, &text)?;
    Ok(points.into_values().map(|(point, _)| point).collect())
}

/// What a reader has to know before believing the cycles.
fn warnings(result: &SweepResult) -> Vec<Warning> {
    let patterns = &result.sweep.patterns;
    let overlaps = !result.sweep.traces.is_empty() || !patterns.iter().all(|&pattern| Pattern::is_dependent(pattern));
    overlaps
        .then(|| overlap::warning("accesses of a trace or of an independent pattern"))
        .into_iter()
        .collect()
}
