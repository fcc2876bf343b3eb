//! A made machine for tests: hugetlb pools that behave as the kernel's do, settings, files and mounts, and processes that can
//! die at any write.

mod pool;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::Bytes;

use crate::place::{Place, State};
use crate::sink::Sink;
use pool::pool_file;
pub(crate) use pool::{Node, Pool};

/// All that processes share.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct World {
    pub(crate) pools: BTreeMap<Bytes, Pool>,
    /// Other files of the kernel's.
    pub(crate) files: BTreeMap<String, String>,
    /// Files and directories on disk.
    pub(crate) disk: BTreeMap<String, State>,
    /// Mount points of hugetlbfs and their options.
    pub(crate) mounts: BTreeMap<String, String>,
    /// Every write that was made: path and value.
    pub(crate) written: Vec<(String, String)>,
}

impl World {
    /// All that a plan can change.
    pub(crate) fn set_up(&self) -> Self {
        let mut world = self.clone();
        world.files.retain(|path, _| !path.ends_with("/stat"));
        world.written.clear();
        world
    }

    fn write(&mut self, path: &str, value: &str) -> io::Result<()> {
        if path.ends_with("/compact") || path.ends_with("/compact_memory") {
            let nodes = self.pools.values_mut().flat_map(|pool| &mut pool.nodes);
            nodes.for_each(|node| node.room += std::mem::take(&mut node.broken));
            return Ok(());
        }
        if let Some((page, node, file)) = pool_file(path) {
            let pool = self.pools.get_mut(&page).ok_or(io::ErrorKind::NotFound)?;
            let pages = |pool: &Pool| pool.nodes.iter().map(Node::total).sum::<u64>();
            let before = pages(pool);
            let written = pool.write(node, file, value.parse().expect("a number"));
            let after = pages(pool);
            self.take(page.0 / 1024 * after, page.0 / 1024 * before);
            return written;
        }
        let text = self.files.get_mut(path).ok_or(io::ErrorKind::NotFound)?;
        *text = match text.contains('[') {
            true => chosen(text, value).ok_or(io::ErrorKind::InvalidInput)?,
            false => format!("{value}\n"),
        };
        let is_switch = ["/hugepages-2048kB/enabled", "/transparent_hugepage/enabled"];
        if is_switch.iter().any(|end| path.ends_with(end)) && value != "never" {
            self.start_khugepaged();
        }
        Ok(())
    }

    /// It wants a larger reserve, which stays when it ends if an administrator once set one.
    fn start_khugepaged(&mut self) {
        if let Some(reserve) = self.files.get_mut("/proc/sys/vm/min_free_kbytes") {
            let kib: u64 = reserve.trim().parse().expect("a number");
            *reserve = format!("{}\n", kib.max(67_584));
        }
    }

    /// Pools of `after` kB, where there were `before`: the rest of memory follows.
    fn take(&mut self, after: u64, before: u64) {
        let Some(meminfo) = self.files.get_mut("/proc/meminfo") else {
            return;
        };
        let line = |line: &str| match line
            .strip_prefix("MemAvailable: ")
            .and_then(|rest| rest.strip_suffix(" kB"))
        {
            Some(kib) => format!(
                "MemAvailable: {} kB\n",
                kib.parse::<u64>().expect("a number") + before - after
            ),
            None => format!("{line}\n"),
        };
        *meminfo = meminfo.lines().map(line).collect();
    }

    fn look(&self, place: &Place) -> io::Result<State> {
        let there = match place {
            Place::Setting(path) => return Ok(State::setting(self.files.get(path).ok_or(io::ErrorKind::NotFound)?)),
            Place::File(path) | Place::Directory(path) => self.disk.get(path).cloned(),
            Place::Mount(at) => self.mounts.get(at).cloned().map(State::Mounted),
        };
        Ok(there.unwrap_or(State::Absent))
    }

    fn put(&mut self, place: &Place, state: &State) -> io::Result<()> {
        let inside = |path: &str, disk: &BTreeMap<String, State>| {
            let inside = format!("{path}/");
            disk.keys().any(|other| other.starts_with(&inside))
        };
        match (place, state) {
            (Place::Setting(path), State::Text(value)) => return self.write(path, value),
            (Place::Mount(at), State::Mounted(options)) => {
                self.mounts.insert(at.clone(), options.clone());
            }
            (Place::Mount(at), _) => {
                self.mounts.remove(at);
            }
            (Place::Directory(path), State::Absent) if inside(path, &self.disk) => {
                return Err(io::ErrorKind::DirectoryNotEmpty.into());
            }
            (place, State::Absent) => {
                self.disk.remove(place.path());
            }
            (place, state) => {
                let above = place.path().rsplit_once('/').map_or("", |(above, _)| above);
                if self.disk.get(above) != Some(&State::Directory) && !above.is_empty() {
                    return Err(io::ErrorKind::NotFound.into());
                }
                self.disk.insert(place.path().to_owned(), state.clone());
            }
        }
        Ok(())
    }
}

/// A list such as `always [madvise] never` with another word chosen, if it has that word.
fn chosen(list: &str, word: &str) -> Option<String> {
    let words: Vec<&str> = list
        .split_whitespace()
        .map(|word| word.trim_matches(['[', ']']))
        .collect();
    let mark = |&each: &&str| match each == word {
        true => format!("[{each}]"),
        false => each.to_owned(),
    };
    let text = words.iter().map(mark).collect::<Vec<_>>().join(" ") + "\n";
    words.contains(&word).then_some(text)
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

impl Process {
    /// Changes the world, unless a fault hits.
    fn act(&self, path: &str, value: &str, work: impl FnOnce(&mut World) -> io::Result<()>) -> io::Result<()> {
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
        let mut world = self.machine.world();
        world.written.push((path.to_owned(), value.to_owned()));
        let result = work(&mut world);
        drop(world);
        if fault.is_some() {
            self.die();
        }
        result
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
        let path = path.to_str().expect("UTF-8");
        self.act(path, value, |world| world.write(path, value))
    }

    fn look(&self, place: &Place) -> io::Result<State> {
        self.alive()?;
        self.machine.world().look(place)
    }

    fn put(&self, place: &Place, from: &State, to: &State) -> io::Result<()> {
        let is_file = matches!(place, Place::File(_));
        self.act(place.path(), &to.to_string(), |world| {
            match is_file && world.look(place)? != *from {
                true => Err(io::Error::other("changed meanwhile")),
                false => world.put(place, to),
            }
        })
    }
}
