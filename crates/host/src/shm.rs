//! `/proc/sysvipc/shm`: System V shared memory segments.

use model::{Bytes, Reading, Unread};

use crate::{Source, parse};

const SHM: &str = "/proc/sysvipc/shm";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its id, for `ipcrm -m`.
    pub id: u64,
    pub size: Bytes,
    /// How many mappings it has; a segment outlives the last one.
    pub attached: u64,
    /// Its owner's user id.
    pub uid: u32,
    /// The process that made it.
    pub creator: u32,
    /// Resident bytes; hugetlb segments have whole pages of their pool here.
    pub resident: Bytes,
}

pub fn read(source: &Source) -> Reading<Vec<Segment>> {
    source.text(SHM).and_then(|text| parse(&text))
}

/// Columns: key shmid perms size cpid lpid nattch uid gid cuid cgid atime dtime ctime rss swap.
fn parse(text: &str) -> Result<Vec<Segment>, Unread> {
    text.lines()
        .enumerate()
        .skip(1)
        .filter(|(_, line)| !line.trim().is_empty())
        .map(segment)
        .collect()
}

fn segment((index, line): (usize, &str)) -> Result<Segment, Unread> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let number = |column: usize, item: &str| -> Result<u64, Unread> {
        let seen = words.get(column).copied().unwrap_or_default();
        parse::value(SHM, index, item, "a whole number", seen)
    };
    Ok(Segment {
        id: number(1, "shmid")?,
        size: Bytes(number(3, "size")?),
        attached: number(6, "nattch")?,
        uid: u32::try_from(number(7, "uid")?).unwrap_or(u32::MAX),
        creator: u32::try_from(number(4, "cpid")?).unwrap_or(0),
        resident: Bytes(number(14, "rss")?),
    })
}
