//! What a command may leave on a machine: processes, directories, mounts, System V memory, and pages in a pool.
#![allow(unreachable_pub)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{left_behind, noted};

/// What a command of this test started carries this variable.
pub const MARK: &str = "HUGEWISE_TEST_SUITE";
/// What is ended may take so long on a busy machine, and loans of other programs as well.
const GONE_WITHIN: Duration = Duration::from_secs(60);
const POLL_PERIOD: Duration = Duration::from_millis(100);
/// Where workloads of root write, and those of PostgreSQL below.
const OF_ROOT: &str = "/var/cache/hugewise";
const OLTP: &str = "oltp";
const POOL: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB";

/// The machine before a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Before {
    mounts: BTreeSet<String>,
    shared: usize,
    pool: [String; 2],
}

impl Before {
    pub fn now() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let mounts = read("/proc/self/mounts");
        let mounts = mounts
            .lines()
            .filter(|line| line.contains("hugewise") || line.contains("hugetlbfs"));
        Self {
            mounts: mounts.map(str::to_owned).collect(),
            shared: read("/proc/sysvipc/shm").lines().count(),
            pool: ["nr_hugepages", "nr_overcommit_hugepages"].map(|file| read(&format!("{POOL}/{file}"))),
        }
    }

    /// Nothing of the command is left, at once or after a moment.
    pub fn assert_same(&self, of: &str, folder: &Path) {
        let began = Instant::now();
        loop {
            let left = self.left(folder);
            if left.is_empty() {
                return;
            }
            let is_of_others = left.iter().all(|what| what.starts_with("pool")) && others_run();
            if is_of_others && began.elapsed() > GONE_WITHIN {
                return noted(&format!("{of}: {left:?}, and another hugewise is at work"));
            }
            assert!(began.elapsed() < GONE_WITHIN, "{of}: {left:?}");
            thread::sleep(POLL_PERIOD);
        }
    }

    fn left(&self, folder: &Path) -> Vec<String> {
        let now = Self::now();
        let mut left = marked();
        left.extend(
            directories(&folder.join("cache"))
                .iter()
                .map(|path| path.display().to_string()),
        );
        left.extend(
            journals(&folder.join("pools"))
                .iter()
                .map(|path| path.display().to_string()),
        );
        left.extend(now.mounts.difference(&self.mounts).cloned());
        if now.shared > self.shared {
            left.push(format!("{} segments of System V memory", now.shared - self.shared));
        }
        if now.pool != self.pool {
            left.push(format!("pool {:?} for {:?}", now.pool, self.pool));
        }
        left
    }
}

/// Processes of this test: by their environment, or by their working directory, as servers of recipes get none of it.
pub fn marked() -> Vec<String> {
    let mut marked = left_behind(MARK);
    let processes = fs::read_dir("/proc").expect("/proc").flatten();
    marked.extend(processes.filter_map(|process| {
        let place = fs::read_link(process.path().join("cwd")).ok()?;
        let is_ours = place.starts_with(OF_ROOT) && place.to_string_lossy().contains(OLTP);
        let name = fs::read_to_string(process.path().join("comm")).unwrap_or_default();
        is_ours.then(|| {
            format!(
                "{} {} in {}",
                name.trim_end(),
                process.path().display(),
                place.display()
            )
        })
    }));
    marked
}

fn directories(cache: &Path) -> Vec<PathBuf> {
    let folders = [Path::new(OF_ROOT).to_owned(), cache.join("hugewise/work")];
    let entries = folders.iter().filter_map(|folder| fs::read_dir(folder).ok());
    let paths = entries.flatten().flatten().map(|entry| entry.path());
    paths.filter(|path| path.to_string_lossy().contains(OLTP)).collect()
}

/// Loans that were not given back.
fn journals(state: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(state).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    paths
        .filter(|path| path.extension().is_some_and(|kind| kind == "jsonl"))
        .collect()
}

fn others_run() -> bool {
    let processes = fs::read_dir("/proc").expect("/proc").flatten();
    let mut names = processes.filter_map(|process| fs::read_to_string(process.path().join("comm")).ok());
    names.any(|name| name.starts_with("hugewise"))
}
