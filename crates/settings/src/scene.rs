//! What most tests of the writer start from: a made machine, a state directory, and the processes that use them.

use std::fs;
use std::path::{Path, PathBuf};

use model::Bytes;
use tempfile::TempDir;

use crate::fake::{Machine, Process};
use crate::writer::Writer;

pub(crate) const M2: Bytes = Bytes::mib(2);
pub(crate) const G1: Bytes = Bytes::gib(1);

/// A directory for thousands of syncs: in memory where there is such a place.
pub(crate) fn quick_directory() -> TempDir {
    let memory = Some(Path::new("/dev/shm")).filter(|dir| dir.is_dir());
    let temp = memory.map_or_else(tempfile::tempdir, tempfile::tempdir_in);
    temp.expect("a directory")
}

/// The journals in a state directory.
pub(crate) fn journals(state: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(state) else {
        return Vec::new();
    };
    let paths = entries.map(|entry| entry.expect("entry").path());
    paths.filter(|path| path.extension().is_some()).collect()
}

/// A machine and a state directory.
pub(crate) struct Scene {
    pub(crate) machine: Machine,
    temp: TempDir,
}

impl Scene {
    pub(crate) fn new(nodes: usize, gigantic: u64) -> Self {
        let machine = Machine::new(nodes, gigantic);
        let temp = tempfile::tempdir().expect("tempdir");
        Self { machine, temp }
    }

    /// The state directory, which does not exist yet.
    pub(crate) fn state(&self) -> PathBuf {
        self.temp.path().join("state")
    }

    pub(crate) fn run(&self, pid: u32) -> (Process, Writer) {
        let process = self.machine.process(pid);
        let writer = Writer::new(self.state(), Box::new(process.clone()));
        (process, writer)
    }

    pub(crate) fn overcommit(&self) -> u64 {
        self.machine.pool(M2, |pool| pool.overcommit)
    }

    pub(crate) fn persistent(&self, page: Bytes) -> Vec<u64> {
        self.machine
            .pool(page, |pool| pool.nodes.iter().map(|node| node.persistent).collect())
    }

    pub(crate) fn journals(&self) -> Vec<PathBuf> {
        journals(&self.state())
    }

    /// The next run gives back; the sentences it has to say.
    pub(crate) fn recover(&self) -> Vec<String> {
        let (_, writer) = self.run(9999);
        let told = writer.recover().expect("recovered");
        told.iter().map(ToString::to_string).collect()
    }

    /// Puts a file into the state directory.
    pub(crate) fn plant(&self, name: &str, text: &str) -> PathBuf {
        let path = self.state().join(name);
        fs::create_dir_all(self.state()).expect("state directory");
        fs::write(&path, text).expect("planted");
        path
    }
}

/// The only one of a list.
pub(crate) fn only<T>(mut list: Vec<T>) -> T {
    assert_eq!(list.len(), 1);
    list.remove(0)
}
