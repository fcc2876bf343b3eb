//! A made machine for tests: hugetlb pools that behave as the kernel's do, and processes that can die at any write.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::Bytes;

use crate::sink::Sink;

/// Pages of one size on one node.
#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    pub(crate) persistent: u64,
    pub(crate) surplus: u64,
    pub(crate) in_use: u64,
    /// Unbroken memory: how many pages more could be had.
    pub(crate) room: u64,
}

/// The pool of one page size.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pool {
    pub(crate) nodes: Vec<Node>,
    pub(crate) resv: u64,
    pub(crate) overcommit: u64,
    /// Gigantic pages: no overcommit.
    pub(crate) gigantic: bool,
}

impl Node {
    fn total(&self) -> u64 {
        self.persistent + self.surplus
    }

    fn free(&self) -> u64 {
        self.total() - self.in_use
    }

    /// As `set_max_huge_pages` of mm/hugetlb.c: surplus pages are adopted first; pages in use become surplus, not free.
    pub(crate) fn set_persistent(&mut self, count: u64) {
        while self.persistent < count && self.surplus > 0 {
            self.surplus -= 1;
            self.persistent += 1;
        }
        while self.persistent < count && self.room > 0 {
            self.room -= 1;
            self.persistent += 1;
        }
        while self.persistent > count && self.free() > 0 {
            self.persistent -= 1;
            self.room += 1;
        }
        while self.persistent > count {
            self.persistent -= 1;
            self.surplus += 1;
        }
    }
}

impl Pool {
    /// Someone maps and touches a page, if there is one.
    pub(crate) fn map(&mut self) {
        let surplus: u64 = self.nodes.iter().map(|node| node.surplus).sum();
        let overcommit = self.overcommit;
        if let Some(node) = self.nodes.iter_mut().find(|node| node.free() > 0) {
            node.in_use += 1;
        } else if let Some(node) = self.nodes.iter_mut().find(|node| node.room > 0 && surplus < overcommit) {
            node.room -= 1;
            node.surplus += 1;
            node.in_use += 1;
        }
    }

    /// Someone unmaps a page; surplus pages go back to memory.
    pub(crate) fn unmap(&mut self) {
        if let Some(node) = self.nodes.iter_mut().find(|node| node.in_use > 0) {
            node.in_use -= 1;
            if node.surplus > 0 {
                node.surplus -= 1;
                node.room += 1;
            }
        }
    }

    fn read(&self, node: Option<usize>, file: &str) -> Option<u64> {
        let nodes = match node {
            Some(node) => std::slice::from_ref(self.nodes.get(node)?),
            None => &self.nodes,
        };
        let sum = |of: fn(&Node) -> u64| Some(nodes.iter().map(of).sum());
        match (file, node) {
            ("nr_hugepages", _) => sum(Node::total),
            ("free_hugepages", _) => sum(Node::free),
            ("surplus_hugepages", _) => sum(|node| node.surplus),
            ("resv_hugepages", None) => Some(self.resv),
            ("nr_overcommit_hugepages", None) => Some(self.overcommit),
            _ => None,
        }
    }

    fn write(&mut self, node: Option<usize>, file: &str, value: u64) -> io::Result<()> {
        match (file, node) {
            ("nr_hugepages", Some(node)) => self.nodes[node].set_persistent(value),
            ("nr_hugepages", None) if self.nodes.len() == 1 => self.nodes[0].set_persistent(value),
            ("nr_overcommit_hugepages", None) if self.gigantic => return Err(io::ErrorKind::InvalidInput.into()),
            ("nr_overcommit_hugepages", None) => self.overcommit = value,
            _ => return Err(io::ErrorKind::NotFound.into()),
        }
        Ok(())
    }
}

/// All that processes share.
#[derive(Debug, Default)]
pub(crate) struct World {
    pub(crate) pools: BTreeMap<Bytes, Pool>,
    /// Other files.
    pub(crate) files: BTreeMap<String, String>,
    /// Every write that was made: path and value.
    pub(crate) written: Vec<(String, String)>,
}

/// The machine. Clones are the same machine.
#[derive(Clone, Debug, Default)]
pub(crate) struct Machine(Arc<Mutex<World>>);

impl Machine {
    /// Empty pools of 2M (room for 1000 pages) and 1G (room for `gigantic` pages on each of `nodes` nodes) in 64 GiB.
    pub(crate) fn new(nodes: usize, gigantic: u64) -> Self {
        let pool = |room, gigantic| Pool {
            nodes: vec![
                Node {
                    room,
                    ..Node::default()
                };
                nodes
            ],
            gigantic,
            ..Pool::default()
        };
        let machine = Self::default();
        let mut world = machine.world();
        world.pools.insert(Bytes::mib(2), pool(1000, false));
        world.pools.insert(Bytes::gib(1), pool(gigantic, true));
        for (path, text) in [
            ("/proc/meminfo", "MemTotal: 67108864 kB\nMemAvailable: 60000000 kB\n"),
            ("/proc/sys/kernel/random/boot_id", "first-boot\n"),
            ("/sys/devices/system/node/has_memory", &format!("0-{}\n", nodes - 1)),
        ] {
            world.files.insert(path.to_owned(), text.to_owned());
        }
        drop(world);
        machine
    }

    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Works on one pool as others do.
    pub(crate) fn pool<T>(&self, page: Bytes, work: impl FnOnce(&mut Pool) -> T) -> T {
        work(self.world().pools.get_mut(&page).expect("a pool of that size"))
    }

    pub(crate) fn set_file(&self, path: &str, text: &str) {
        self.world().files.insert(path.to_owned(), text.to_owned());
    }

    /// Starts a process.
    pub(crate) fn process(&self, pid: u32) -> Process {
        self.set_file(&format!("/proc/{pid}/stat"), &stat(pid, 'S', 0));
        Process {
            machine: self.clone(),
            pid,
            fate: Arc::default(),
        }
    }
}

/// A line of /proc/PID/stat.
pub(crate) fn stat(pid: u32, state: char, pending: u64) -> String {
    let mut fields = vec!["0".to_owned(); 52];
    fields[0] = pid.to_string();
    fields[1] = "(hugewise)".to_owned();
    fields[2] = state.to_string();
    fields[21] = (u64::from(pid) * 10).to_string();
    fields[30] = pending.to_string();
    fields.join(" ")
}

/// What happens at the n-th write from now (0 is the next).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The process dies before the write.
    DieBefore(u64),
    /// It dies after it.
    DieAfter(u64),
    /// The write fails, and the process lives on.
    Fail(u64, io::ErrorKind),
}

#[derive(Debug, Default)]
struct Fate {
    fault: Option<Fault>,
    dead: bool,
}

/// One process on the machine. Clones are the same process.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    machine: Machine,
    pid: u32,
    fate: Arc<Mutex<Fate>>,
}

impl Process {
    pub(crate) fn expect(&self, fault: Fault) {
        self.fate().fault = Some(fault);
    }

    /// Is gone: from now on nothing that it does has any effect, so that dropping its leases does nothing.
    pub(crate) fn die(&self) {
        self.fate().dead = true;
        let path = format!("/proc/{}/stat", self.pid);
        self.machine.world().files.remove(&path);
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.fate().dead
    }

    fn fate(&self) -> MutexGuard<'_, Fate> {
        self.fate.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn alive(&self) -> io::Result<()> {
        if self.is_dead() {
            return Err(io::Error::other("this process is dead"));
        }
        Ok(())
    }

    /// The fault that hits now, if one does.
    fn next_fault(&self) -> Option<Fault> {
        let mut fate = self.fate();
        let fault = fate.fault?;
        let (Fault::DieBefore(n) | Fault::DieAfter(n) | Fault::Fail(n, _)) = fault;
        fate.fault = match (n, fault) {
            (0, _) => None,
            (n, Fault::DieBefore(_)) => Some(Fault::DieBefore(n - 1)),
            (n, Fault::DieAfter(_)) => Some(Fault::DieAfter(n - 1)),
            (n, Fault::Fail(_, kind)) => Some(Fault::Fail(n - 1, kind)),
        };
        (n == 0).then_some(fault)
    }
}

impl Sink for Process {
    fn read(&self, path: &Path) -> io::Result<String> {
        self.alive()?;
        let path = path.to_str().expect("UTF-8");
        let own = format!("/proc/{}/stat", self.pid);
        let path = if path == "/proc/self/stat" { &own } else { path };
        let world = self.machine.world();
        if let Some((page, node, file)) = pool_file(path) {
            let value = world.pools.get(&page).and_then(|pool| pool.read(node, file));
            return value
                .map(|value| format!("{value}\n"))
                .ok_or_else(|| io::ErrorKind::NotFound.into());
        }
        let text = world.files.get(path).cloned();
        text.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn write(&self, path: &Path, value: &str) -> io::Result<()> {
        self.alive()?;
        let fault = self.next_fault();
        match fault {
            Some(Fault::DieBefore(_)) => {
                self.die();
                self.alive()?;
            }
            Some(Fault::Fail(_, kind)) => return Err(kind.into()),
            Some(Fault::DieAfter(_)) | None => {}
        }
        let path = path.to_str().expect("UTF-8");
        let mut world = self.machine.world();
        world.written.push((path.to_owned(), value.to_owned()));
        let (page, node, file) = pool_file(path).ok_or(io::ErrorKind::NotFound)?;
        let pool = world.pools.get_mut(&page).ok_or(io::ErrorKind::NotFound)?;
        let result = pool.write(node, file, value.parse().expect("a number"));
        drop(world);
        if fault.is_some() {
            self.die();
        }
        result
    }
}

/// Page size, node and file name of a pool's file.
fn pool_file(path: &str) -> Option<(Bytes, Option<usize>, &str)> {
    let (home, rest) = path.split_once("/hugepages/hugepages-")?;
    let (kib, file) = rest.split_once("kB/")?;
    let node = match home {
        "/sys/kernel/mm" => None,
        node => Some(node.strip_prefix("/sys/devices/system/node/node")?.parse().ok()?),
    };
    Some((Bytes::kib(kib.parse().ok()?), node, file))
}
