//! What a program is configured to take of memory, by its options, variables and files.

use model::Bytes;

use super::super::ini::Server;
use super::super::starts::Start;
use crate::config::Setting;
use crate::config::files::file_name;
use crate::page_options::value_of;
use crate::postgres::value::HugePages;
use crate::{Jvm, JvmKind, Kind, image_names, size};

/// What a program is configured to take of memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    pub program: &'static str,
    /// What sets it: its place, the option or variable, and its value.
    pub set: Setting,
    pub bytes: Bytes,
    /// What of that is a JVM's direct memory, and what sets it.
    pub direct: Option<(Setting, Bytes)>,
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

/// What a JVM that does little takes beside its heap and the tables of its collector.
const BESIDE_HEAP: Bytes = Bytes::mib(64);

impl Taken {
    /// What a command takes: a JVM, a server whose settings are known, or a program with an option for it.
    pub(super) fn of(start: &Start, image: &str, server: Option<&Server>, limit: Bytes) -> Option<Self> {
        of_java(start, image, limit)
            .or_else(|| of_server(server?))
            .or_else(|| of_option(start, image))
    }

    /// A JVM with a heap of that size and a limit: the heap, and the direct memory beside it, with what sets both.
    pub fn of_jvm(jvm: &Jvm, heap: Bytes, limit: Bytes, set: Setting, direct: Option<Setting>) -> Self {
        // A size above the limit is to be no limit at all.
        let direct = direct.zip(jvm.direct.filter(|direct| *direct <= limit));
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
            bytes: Bytes(heap.0.saturating_add(direct.as_ref().map_or(0, |(_, direct)| direct.0))),
            direct,
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

    /// The most that it does well to take of a limit.
    pub fn most(&self, limit: Bytes) -> Bytes {
        Bytes(limit.0.saturating_mul(self.share) / 100)
    }

    /// Does the program not fit into a limit, and take more of it than that?
    pub fn exceeds(&self, limit: Bytes) -> bool {
        self.bytes > self.most(limit) && self.bytes.0.saturating_add(self.beside.0) >= limit.0
    }

    /// A size as its option takes it, rounded down.
    pub fn written(&self, size: Bytes) -> String {
        let mib = size.0 >> 20;
        let is_bare = self.set.value.ends_with(|c: char| c.is_ascii_digit());
        match self.program {
            "PostgreSQL" => format!("{mib}MB"),
            "Redis" => format!("{mib}mb"),
            // It takes no less than 0.25.
            "MongoDB" => {
                let mib = mib.max(256);
                format!("{}.{:02}", mib >> 10, ((mib & 1023) * 100) >> 10)
            }
            // It rounds up to whole chunks.
            "InnoDB" => format!("{}M", mib / 128 * 128),
            "Memcached" | "Node.js" => mib.to_string(),
            "the JVM" if is_bare && HEAPS.contains(&self.option()) => mib.to_string(),
            _ => format!("{mib}M"),
        }
    }
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

pub(super) fn of_java(start: &Start, image: &str, limit: Bytes) -> Option<Taken> {
    // Of several, the command does not show which is the large one.
    if start.words.iter().filter(|word| file_name(word) == "java").count() > 1 {
        return None;
    }
    let (jvm, arguments) = start.java().map(|java| (java.jvm, java.arguments)).unwrap_or_default();
    let direct = written(start, &arguments, &["-XX:MaxDirectMemorySize="]);
    if let Some(heap) = jvm.heap_within(limit) {
        let names = if jvm.heap_max.is_some() { SIZES } else { PARTS };
        let set = written(start, &arguments, &names)?;
        return Some(Taken::of_jvm(&jvm, heap, limit, set, direct));
    }
    let of_minecraft = image_names::name(image) == "minecraft-server";
    let holds_heap = |set: &&Setting| {
        HEAPS.contains(&set.name.as_str()) || (of_minecraft && matches!(&*set.name, "MEMORY" | "MAX_MEMORY"))
    };
    let set = start.environment.iter().rev().find(holds_heap)?;
    let heap = binary(&set.value, 1 << 20)?;
    Some(Taken::of_jvm(&jvm, heap, limit, set.clone(), direct))
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
        // With `on` it starts with pages of a pool alone, which the limit does not count.
        Kind::Postgres => {
            let postgres = server.postgres().ok()?;
            (!matches!(postgres.huge_pages, HugePages::On)).then_some(postgres.shared_buffers)?
        }
        _ => server.mysql_bytes(name).ok()??,
    };
    Some(Taken {
        program,
        set: set.clone(),
        bytes,
        share,
        asks: server.asks(),
        ..Taken::default()
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
            .find_map(|option| Some((*option, value_of(&words, option)?)))?;
        let set = match own.names {
            [] => written(start, &words, own.options)?,
            _ => Setting::new(&start.place, option, value),
        };
        Some(Taken {
            program: own.program,
            set,
            bytes: decimal(value, own.unit)?,
            share: 75,
            ..Taken::default()
        })
    })
}

/// Sizes of containers, of systemd and of heaps: units are powers of 1024.
pub(super) fn binary(text: &str, bare: u64) -> Option<Bytes> {
    let number = text.trim().trim_end_matches(['b', 'B', 'i']);
    let has_unit = number.ends_with(|c: char| c.is_ascii_alphabetic());
    match has_unit {
        true => decimal(&format!("{number}b"), bare),
        false => decimal(number, if number == text.trim() { bare } else { 1 }),
    }
}

/// Sizes of which `1kb` is 1024 bytes and `1k` 1000, as Redis has them.
pub(super) fn decimal(text: &str, bare: u64) -> Option<Bytes> {
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
