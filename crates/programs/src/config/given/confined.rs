//! What starts with a limit of memory, and how much of it the program in it is configured to take.

use model::Bytes;

use super::ini::Server;
use super::pod::{Container, Pod};
use super::shell::file_name;
use super::starts::Start;
use super::{Given, Run};
use crate::config::Setting;
use crate::{Jvm, JvmKind, Kind, image_names, size};

/// A program with a limit of memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confined {
    /// The container or service.
    pub who: String,
    pub limit: Bytes,
    /// The limit, as it is written.
    pub set: Setting,
    pub taken: Taken,
}

/// What a program is configured to take of memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    pub program: &'static str,
    /// What sets it: its place, the option or variable, and its value.
    pub set: Setting,
    pub bytes: Bytes,
    /// What the program needs beside that at least.
    pub beside: Bytes,
    /// How much of a limit does, in percent.
    pub share: u64,
    /// Is it a part of the limit, whatever that is?
    pub is_part: bool,
    /// Does the program touch all of it when it starts?
    pub at_start: bool,
    /// Does it ask for pages of a pool, which such a limit does not count?
    pub asks: bool,
}

impl Given {
    /// What containers and services with a limit of memory are configured to take.
    pub fn confined(&self) -> Vec<Confined> {
        let mut all = Vec::new();
        for pod in &self.pods {
            all.extend(pod.containers.iter().filter_map(|own| self.of_container(pod, own)));
        }
        all.extend(self.runs.iter().filter_map(|run| self.of_run(run)));
        for service in &self.services {
            let Some(set) = &service.memory else { continue };
            let starts = service.starts(&self.environment).into_iter();
            all.extend(starts.filter_map(|start| {
                let limit = binary(&set.value, 1)?;
                let taken = taken(&start.split(), "", self.server_of(&start).as_ref(), limit);
                let taken = taken.or_else(|| of_java(&self.start_of_file()?, "", limit))?;
                Some(Confined::new(service.name.clone(), limit, set.clone(), taken))
            }));
        }
        all
    }

    /// A JVM with the options of the only file of them, which belongs to the only service.
    fn start_of_file(&self) -> Option<Start> {
        let ([only], [_]) = (&self.java[..], &self.services[..]) else {
            return None;
        };
        Some(Start {
            place: only.path.clone(),
            words: only.arguments.clone(),
            environment: Vec::new(),
        })
    }

    fn of_container(&self, pod: &Pod, own: &Container) -> Option<Confined> {
        let memory = own.limits.iter().find(|limit| limit.resource == "memory")?;
        let limit = Some(Bytes(memory.amount)).filter(|limit| limit.0 > 0)?;
        let start = Start {
            place: own.place.clone(),
            words: own.words.clone(),
            environment: own.environment.clone(),
        };
        let server = own.postgres.clone().or_else(|| self.server_of(&start));
        let taken = taken(&start.split(), &own.image, server.as_ref(), limit)?;
        let is_counted = !taken.asks || own.hugetlb().is_empty();
        let set = Setting::new(&memory.place, memory.field(), &memory.written);
        let who = format!("{} of the pod {}", own.name, pod.name);
        is_counted.then(|| Confined::new(who, limit, set, taken))
    }

    fn of_run(&self, run: &Run) -> Option<Confined> {
        let set = run.memory.clone()?;
        let limit = binary(&set.value, 1)?;
        let start = Start {
            place: run.started.as_ref().unwrap_or(&run.place).clone(),
            ..run.start()
        };
        let taken = taken(&start.split(), &run.image, self.server_of(&start).as_ref(), limit)?;
        Some(Confined::new(run.name.clone(), limit, set, taken))
    }

    /// The server that is started, with the settings of the only file of its kind.
    fn server_of(&self, start: &Start) -> Option<Server> {
        let kinds = [Kind::Postgres, Kind::Mysql].into_iter();
        let mut started = kinds.filter_map(|kind| Some((kind, start.server(kind)?)));
        let (kind, own) = started.next()?;
        match &self.servers(kind)[..] {
            [only] => Some(only.clone()),
            _ => Some(own),
        }
    }
}

impl Confined {
    fn new(who: String, limit: Bytes, set: Setting, taken: Taken) -> Self {
        Self { who, limit, set, taken }
    }
}

impl Start {
    /// Its words as a shell takes them, and `java` in front of options alone.
    fn split(&self) -> Self {
        let apart = |word: &String| shlex::split(word).unwrap_or_else(|| vec![word.clone()]);
        let mut words: Vec<String> = self.words.iter().flat_map(apart).collect();
        if words.first().is_some_and(|word| word.starts_with("-X")) {
            words.insert(0, "java".to_owned());
        }
        Self { words, ..self.clone() }
    }
}

/// What a JVM that does little takes beside its heap and the tables of its collector.
const BESIDE_HEAP: Bytes = Bytes::mib(64);

impl Taken {
    /// A JVM with a heap of that size and a limit: the heap, and the buffers beside it that it was given a size for.
    pub fn of_jvm(jvm: &Jvm, heap: Bytes, set: Setting, limit: Bytes) -> Self {
        // A size above the limit is to be no limit at all.
        let direct = jvm
            .direct
            .filter(|direct| *direct <= limit)
            .map_or(0, |direct| direct.0);
        let tables = match jvm.kind {
            JvmKind::HotSpot => {
                let page = Bytes::mib(2);
                size::jvm::Jvm::known(heap, page, jvm.collector, jvm.version, jvm.code_cache).tables()
            }
            JvmKind::OpenJ9 | JvmKind::Zing => Bytes(0),
        };
        let rest = BESIDE_HEAP.min(Bytes(limit.0 / 10));
        Self {
            program: "the JVM",
            set,
            bytes: Bytes(heap.0.saturating_add(direct)),
            beside: Bytes(tables.0.saturating_add(rest.0)),
            share: if limit < Bytes::gib(4) { 75 } else { 80 },
            is_part: jvm.heap_max.is_none() && jvm.part_of_ram.is_some(),
            at_start: jvm.pretouch,
            asks: jvm.wants_hugetlb(),
        }
    }

    /// The option or variable that sets it.
    pub fn option(&self) -> &str {
        match self.set.value.as_str() {
            value if value.starts_with("-Xmx") => "-Xmx",
            value if value.starts_with('-') => value.split('=').next().unwrap_or(value),
            _ => &self.set.name,
        }
    }

    /// Does the program not fit into a limit?
    pub fn exceeds(&self, limit: Bytes) -> bool {
        self.bytes.0.saturating_add(self.beside.0) >= limit.0
    }
}

/// What a command takes: a JVM, a server whose settings are known, or a program with an option for it.
fn taken(start: &Start, image: &str, server: Option<&Server>, limit: Bytes) -> Option<Taken> {
    of_java(start, image, limit)
        .or_else(|| of_server(server?))
        .or_else(|| of_option(start, image))
}

/// Options of the largest heap: sizes, and parts of the memory.
const SIZES: [&str; 2] = ["-Xmx", "-XX:MaxHeapSize="];
const PARTS: [&str; 2] = ["-XX:MaxRAMPercentage=", "-XX:MaxRAMFraction="];

/// Variables of images and of scripts that hold the size of the heap alone; a bare number is of MiB.
const HEAPS: [&str; 14] = [
    "ES_HEAP_SIZE",
    "HADOOP_HEAPSIZE",
    "HADOOP_HEAPSIZE_MAX",
    "HBASE_HEAPSIZE",
    "JVM_MAXIMUM_MEMORY",
    "LS_HEAP_SIZE",
    "MAX_HEAP_SIZE",
    "NEO4J_dbms_memory_heap_max__size",
    "NEO4J_server_memory_heap_max__size",
    "NIFI_JVM_HEAP_MAX",
    "SOLR_HEAP",
    "YARN_HEAPSIZE",
    "YARN_HEAPSIZE_MAX",
    "ZK_SERVER_HEAP",
];

fn of_java(start: &Start, image: &str, limit: Bytes) -> Option<Taken> {
    let java = start.java();
    let jvm = java.as_ref().map_or_else(Jvm::default, |java| java.jvm.clone());
    let heap = jvm.heap_within(limit).zip(java.as_ref());
    if let Some((heap, java)) = heap {
        let names = if jvm.heap_max.is_some() { SIZES } else { PARTS };
        let set = written(start, &java.arguments, &names)?;
        return Some(Taken::of_jvm(&jvm, heap, set, limit));
    }
    let of_minecraft = image_names::name(image) == "minecraft-server";
    let holds_heap = |set: &&Setting| {
        HEAPS.contains(&set.name.as_str()) || (of_minecraft && matches!(&*set.name, "MEMORY" | "MAX_MEMORY"))
    };
    let set = start.environment.iter().rev().find(holds_heap)?;
    let heap = binary(&set.value, 1 << 20)?;
    Some(Taken::of_jvm(&jvm, heap, set.clone(), limit))
}

/// The option that holds, at the variable that has it or at the command.
fn written(start: &Start, arguments: &[String], names: &[&str]) -> Option<Setting> {
    let is_named = |word: &&String| names.iter().any(|name| word.starts_with(name));
    let option = arguments.iter().rev().find(is_named)?;
    let mut variables = start.environment.iter().rev();
    Some(match variables.find(|set| set.value.contains(option.as_str())) {
        Some(set) => Setting::new(&set.place, &set.name, option),
        None => Setting::new(&start.place, "its command", option),
    })
}

/// The buffers of a database.
fn of_server(server: &Server) -> Option<Taken> {
    let (program, name, share) = match server.kind {
        Kind::Postgres => ("PostgreSQL", "shared_buffers", 40),
        Kind::Mysql => ("InnoDB", "innodb_buffer_pool_size", 70),
        _ => return None,
    };
    let set = server.settings.last(name)?;
    let bytes = match server.kind {
        Kind::Postgres => server.postgres().ok()?.shared_buffers,
        _ => server.mysql_bytes(name).ok()??,
    };
    Some(Taken {
        program,
        set: set.clone(),
        bytes,
        beside: Bytes(0),
        share,
        is_part: false,
        at_start: false,
        asks: server.asks(),
    })
}

/// An option that says how much memory a program takes.
struct SizeOption {
    program: &'static str,
    /// Names of the program and of its images; none where the option is its alone.
    names: &'static [&'static str],
    options: &'static [&'static str],
    /// Bytes of a bare number.
    unit: u64,
}

const SIZED: [SizeOption; 4] = [
    SizeOption {
        program: "Redis",
        names: &[
            "redis-server",
            "redis",
            "valkey-server",
            "valkey",
            "keydb-server",
            "keydb",
        ],
        options: &["--maxmemory"],
        unit: 1,
    },
    SizeOption {
        program: "MongoDB",
        names: &["mongod", "mongo"],
        options: &["--wiredTigerCacheSizeGB"],
        unit: 1 << 30,
    },
    SizeOption {
        program: "Memcached",
        names: &["memcached"],
        options: &["--memory-limit", "-m"],
        unit: 1 << 20,
    },
    SizeOption {
        program: "Node.js",
        names: &[],
        options: &["--max-old-space-size", "--max_old_space_size"],
        unit: 1 << 20,
    },
];

fn of_option(start: &Start, image: &str) -> Option<Taken> {
    let variables = start.environment.iter().filter(|set| set.name == "NODE_OPTIONS");
    let of_variables = variables.flat_map(|set| set.value.split_whitespace().map(str::to_owned));
    let words: Vec<String> = start.words.iter().cloned().chain(of_variables).collect();
    let is_started = |own: &&SizeOption| {
        own.names.is_empty()
            || own.names.contains(&image_names::name(image))
            || words.iter().any(|word| own.names.contains(&file_name(word)))
    };
    SIZED.iter().filter(is_started).find_map(|own| {
        let (option, value) = own
            .options
            .iter()
            .find_map(|option| Some((*option, value(&words, option)?)))?;
        let set = match own.names {
            [] => written(start, &words, own.options)?,
            _ => Setting::new(&start.place, option, value),
        };
        Some(Taken {
            program: own.program,
            set,
            bytes: decimal(value, own.unit)?,
            beside: Bytes(0),
            share: 75,
            is_part: false,
            at_start: false,
            asks: false,
        })
    })
}

/// The value of an option, behind it or in the same word.
fn value<'w>(words: &'w [String], option: &str) -> Option<&'w str> {
    let mut words = words.iter().map(String::as_str);
    let rest = words.find_map(|word| {
        let rest = word.strip_prefix(option)?;
        (rest.is_empty() || rest.starts_with('=')).then_some(rest)
    })?;
    rest.strip_prefix('=').or_else(|| words.next())
}

/// Sizes of containers, of systemd and of heaps: units are powers of 1024.
fn binary(text: &str, bare: u64) -> Option<Bytes> {
    let number = text.trim().trim_end_matches(['b', 'B', 'i']);
    let has_unit = number.ends_with(|c: char| c.is_ascii_alphabetic());
    match has_unit {
        true => decimal(&format!("{number}b"), bare),
        false => decimal(number, if number == text.trim() { bare } else { 1 }),
    }
}

/// Sizes of which `1kb` is 1024 bytes and `1k` 1000, as Redis has them.
fn decimal(text: &str, bare: u64) -> Option<Bytes> {
    let text = text.trim().to_ascii_lowercase();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" => bare,
        "b" => 1,
        "k" => 1000,
        "kb" => 1 << 10,
        "m" => 1_000_000,
        "mb" => 1 << 20,
        "g" => 1_000_000_000,
        "gb" => 1 << 30,
        "tb" => 1 << 40,
        _ => return None,
    };
    let bytes = digits.parse::<f64>().ok()? * unit as f64;
    (bytes >= 1.0).then_some(Bytes(bytes as u64))
}

#[cfg(test)]
mod tests;
