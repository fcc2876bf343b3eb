//! The file of points: one writer at a time, a line in one system call, and in the end all lines in their order.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use host::Input;
use rustix::fs::FlockOperation;
use rustix::io::Errno;
use sim::translation::sweep::{self, Found, Head, Plan, Point, Shard};

use crate::files::{self, Access, Existing, Target};

/// A file of points that is begun or gone on with.
pub(super) struct Points {
    path: PathBuf,
    file: File,
    head: Head,
    points: BTreeMap<u64, (Point, String)>,
    is_in_order: bool,
}

impl Points {
    /// Opens it for a shard or a whole sweep, with the points that are in it.
    pub(super) fn open(path: &Path, plan: &Plan, shard: Option<Shard>) -> anyhow::Result<(Self, Found)> {
        let name = path.display().to_string();
        let is_new = !files::exists(path);
        let file = OpenOptions::new().write(true).create_new(is_new).open(path);
        let mut file =
            file.with_context(|| format!("{name}: points cannot be kept there (--points names another file)"))?;
        lock(&file, &name)?;
        let found = match is_new {
            true => Found {
                is_in_order: true,
                ..Found::default()
            },
            false => {
                let bytes = Input::Points.read(path).with_context(|| name.clone())?;
                sweep::read(&name, &bytes, plan, Some(shard))?
            }
        };
        let head = Head {
            shard,
            ..plan.head.clone()
        };
        // What was cut off makes way for the next line.
        file.set_len(found.kept)
            .and_then(|()| file.seek(SeekFrom::End(0)))
            .with_context(|| name.clone())?;
        if found.kept == 0 {
            let line = sweep::text(&head, &BTreeMap::new())?;
            file.write_all(line.as_bytes()).with_context(|| name.clone())?;
        }
        let points = Self {
            path: path.to_owned(),
            file,
            head,
            points: found.points.clone(),
            is_in_order: found.is_in_order,
        };
        Ok((points, found))
    }

    /// How many are done.
    pub(super) fn count(&self) -> usize {
        self.points.len()
    }

    /// Adds finished points.
    pub(super) fn add(&mut self, new: Vec<Point>) -> anyhow::Result<()> {
        let mut lines = String::new();
        for point in new {
            let line = serde_json::to_string(&point)?;
            // As it will be read, whose last bits may differ: the result is the same whether a sweep was gone on with or not.
            let point: Point = serde_json::from_str(&line)?;
            lines.push_str(&line);
            lines.push('\n');
            let last = self.points.last_key_value().map(|(&last, _)| last);
            self.is_in_order &= last.is_none_or(|last| last < point.point);
            self.points.insert(point.point, (point, line));
        }
        let written = self.file.write_all(lines.as_bytes());
        written.with_context(|| self.path.display().to_string())
    }

    /// Puts the lines into their order, and gives the points.
    pub(super) fn finish(self) -> anyhow::Result<Vec<Point>> {
        if !self.is_in_order {
            let text = sweep::text(&self.head, &self.points)?;
            put(&self.path, &text)?;
        }
        Ok(self.points.into_values().map(|(point, _)| point).collect())
    }
}

/// The lock goes with the process, however it ends. File systems without locks have one user.
fn lock(file: &File, name: &str) -> anyhow::Result<()> {
    match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => bail!("{name}: another hugewise works on it (name another file with --points)"),
        _ => Ok(()),
    }
}

/// Writes a whole file of points; one that is there must be of the same sweep.
pub(super) fn replace(path: &Path, plan: &Plan, text: &str) -> anyhow::Result<()> {
    if files::exists(path) {
        let name = path.display().to_string();
        let bytes = Input::Points.read(path).with_context(|| name.clone())?;
        sweep::read(&name, &bytes, plan, Some(None))?;
    }
    put(path, text)
}

fn put(path: &Path, text: &str) -> anyhow::Result<()> {
    let put = Target::open(path, Access::Usual).and_then(|mut target| target.put(text.as_bytes(), Existing::Replace));
    put.map(drop).with_context(|| path.display().to_string())
}
