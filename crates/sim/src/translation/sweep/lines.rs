//! The file of points: a head that says which sweep it is of, then a line of JSON for each finished point.

use std::collections::BTreeMap;

use super::Point;
use super::head::{Head, SCHEMA_START};
use super::plan::Plan;
use super::shard::Shard;

/// Why a file of points is not gone on with.
#[derive(Debug, thiserror::Error)]
pub enum LinesError {
    /// It is no such file.
    #[error("{0}: line 1: this is no file of points: expected the head of a sweep")]
    NoHead(String),
    /// It is of another sweep.
    #[error("{file}: it holds points of another sweep: {what} (name another file with --points, or remove it)")]
    OtherSweep {
        /// Its name.
        file: String,
        /// What differs.
        what: String,
    },
    /// A line is no point of it.
    #[error("{file}: line {line}: {why} (remove the line: its point is then simulated again)")]
    Line {
        /// Its name.
        file: String,
        /// From 1.
        line: usize,
        /// What is wrong.
        why: String,
    },
    /// Two files have one point in two ways.
    #[error("{file}: line {line}: point {point} is there already, with other values")]
    Differs {
        /// Its name.
        file: String,
        /// From 1.
        line: usize,
        /// Its number.
        point: u64,
    },
    /// Not all points are there.
    #[error("{missing} of {of} points are in none of the files, the first one is point {first}: {hint}")]
    Incomplete {
        /// How many.
        missing: u64,
        /// Of how many.
        of: u64,
        /// The first of them.
        first: u64,
        /// What to do.
        hint: String,
    },
}

/// What a file of points holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// Its finished points by number, with their lines as they stand there.
    pub points: BTreeMap<u64, (Point, String)>,
    /// The length of its whole lines: what is behind them was cut off while it was written.
    pub kept: u64,
    /// Was something cut off?
    pub is_torn: bool,
    /// Do the points stand in their order?
    pub is_in_order: bool,
}

/// What a file of points holds that is for a shard or a whole sweep; `shard` is `None` for any of them (merging).
///
/// # Errors
/// If it is of another sweep or shard, or a line is no point of it.
pub fn read(file: &str, bytes: &[u8], plan: &Plan, shard: Option<Option<Shard>>) -> Result<Found, LinesError> {
    let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
    let mut found = Found {
        kept: whole as u64,
        is_torn: whole < bytes.len(),
        is_in_order: true,
        ..Found::default()
    };
    let mut lines = bytes[..whole].split(|&byte| byte == b'\n').enumerate();
    let Some((_, first)) = lines.next().filter(|(_, line)| !line.is_empty()) else {
        // Nothing of it was written: not even the head. Anything else that has no line is not ours to overwrite.
        let is_cut_head = whole == 0 && SCHEMA_START.starts_with(&bytes[..bytes.len().min(SCHEMA_START.len())]);
        return if is_cut_head {
            Ok(found)
        } else {
            Err(LinesError::NoHead(file.to_owned()))
        };
    };
    let head: Head = serde_json::from_slice(first).map_err(|_| LinesError::NoHead(file.to_owned()))?;
    matches(file, &head, plan, shard)?;
    for (number, line) in lines.filter(|(_, line)| !line.is_empty()) {
        add(file, number + 1, line, plan, &mut found)?;
    }
    Ok(found)
}

fn matches(file: &str, head: &Head, plan: &Plan, shard: Option<Option<Shard>>) -> Result<(), LinesError> {
    let part = |shard: Option<Shard>| shard.map_or("the whole sweep".to_owned(), |shard| format!("shard {shard}"));
    let wrong_part = shard
        .filter(|&shard| shard != head.shard)
        .map(|shard| format!("it is for {}, expected {}", part(head.shard), part(shard)));
    match plan.head.difference(head).or(wrong_part) {
        Some(what) => Err(LinesError::OtherSweep {
            file: file.to_owned(),
            what,
        }),
        None => Ok(()),
    }
}

fn add(file: &str, line: usize, bytes: &[u8], plan: &Plan, found: &mut Found) -> Result<(), LinesError> {
    let wrong = |why: String| LinesError::Line {
        file: file.to_owned(),
        line,
        why,
    };
    let text = std::str::from_utf8(bytes).map_err(|_| wrong("it is not UTF-8 text".to_owned()))?;
    let point: Point = serde_json::from_str(text).map_err(|why| wrong(format!("it is no point: {why}")))?;
    if !plan.has(&point) {
        return Err(wrong(format!("point {} of this sweep has other inputs", point.point)));
    }
    let number = point.point;
    let last = found.points.last_key_value().map(|(&last, _)| last);
    found.is_in_order &= last.is_none_or(|last| last < number);
    match found.points.insert(number, (point, text.to_owned())) {
        Some((_, before)) if before != text => Err(LinesError::Differs {
            file: file.to_owned(),
            line,
            point: number,
        }),
        Some(_) => {
            found.is_in_order = false;
            Ok(())
        }
        None => Ok(()),
    }
}

/// The file of points with these, in their order.
///
/// # Errors
/// None in practice: its parts can be written as JSON.
pub fn text(head: &Head, points: &BTreeMap<u64, (Point, String)>) -> serde_json::Result<String> {
    let mut text = serde_json::to_string(head)?;
    text.push('\n');
    for (_, line) in points.values() {
        text.push_str(line);
        text.push('\n');
    }
    Ok(text)
}

/// All points of a sweep out of several files, of which each is named and read.
///
/// # Errors
/// If they contradict each other, or a point is in none of them.
pub fn merged(plan: &Plan, files: Vec<(String, Found)>) -> Result<BTreeMap<u64, (Point, String)>, LinesError> {
    let mut all: BTreeMap<u64, (Point, String)> = BTreeMap::new();
    for (file, read) in files {
        for (place, (number, (point, line))) in read.points.into_iter().enumerate() {
            match all.get(&number) {
                Some((_, before)) if *before != line => {
                    return Err(LinesError::Differs {
                        file,
                        line: place + 2,
                        point: number,
                    });
                }
                Some(_) => {}
                None => _ = all.insert(number, (point, line)),
            }
        }
    }
    let missing: Vec<u64> = plan.numbers(None).filter(|number| !all.contains_key(number)).collect();
    match missing.first() {
        None => Ok(all),
        Some(&first) => Err(LinesError::Incomplete {
            missing: missing.len() as u64,
            of: plan.head.points,
            first,
            hint: "give the files of all shards to --merge, and let each shard end".to_owned(),
        }),
    }
}
