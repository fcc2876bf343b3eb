//! Programs that are to lock their memory: by which setting of their own, and what they lock then.

use std::collections::BTreeMap;

use model::{Bytes, Reading, Unread};

use super::config::Setting;
use super::config::files::{first, said};
use super::{Area, Program};
use host::Source;

/// What a program locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locks {
    /// A guest's memory, for a device of the host or by QEMU's mem-lock.
    Guest,
    /// The log of varnishd.
    Log,
    /// The memory of a node of Elasticsearch or OpenSearch, with its heap.
    Heap,
    /// The weights of a language model, which it maps.
    Model,
    /// All memory of the process.
    All,
}

/// A setting by which a program is to lock its memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lock {
    pub setting: Setting,
    pub what: Locks,
}

/// Variables, and settings of files, of which some are variables of containers too.
const NAMES: [(&str, Locks); 5] = [
    ("bootstrap.memory_lock", Locks::Heap),
    ("bootstrap.mlockall", Locks::Heap),
    ("ES_SETTING_BOOTSTRAP_MEMORY__LOCK", Locks::Heap),
    ("LLAMA_ARG_MLOCK", Locks::Model),
    ("USE_MLOCK", Locks::Model),
];

/// Options of programs: llama.cpp's and those of programs around it, memcached's and Seastar's (ScyllaDB, Redpanda), MariaDB's, etcd's.
const OPTIONS: [(&str, Locks); 8] = [
    ("-k", Locks::All),
    ("--mlock", Locks::Model),
    ("--usemlock", Locks::Model),
    ("--use_mlock", Locks::Model),
    ("--lock-memory", Locks::All),
    ("--memlock", Locks::All),
    ("--memory-mlock", Locks::All),
    ("--experimental-memory-mlock", Locks::All),
];

/// Values that switch one of them off.
const OFF: [&str; 5] = ["", "0", "false", "no", "off"];

fn is_on(value: &str) -> bool {
    let value = value.trim_matches(['"', '\'']).to_ascii_lowercase();
    // Of a variable of compose its default is known.
    let value = match value.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')) {
        Some(variable) => variable.split_once(":-").map_or("", |(_, default)| default),
        None => &value,
    };
    !OFF.contains(&value)
}

/// Such a setting by its name and value.
fn named(name: &str, value: &str) -> Option<Locks> {
    let (_, what) = NAMES.iter().find(|(own, _)| *own == name)?;
    is_on(value).then_some(*what)
}

/// `-Ebootstrap.memory_lock=true`, of old versions `-Des.bootstrap.mlockall=true`, and the same behind `-E`.
fn of_node(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let name = name
        .strip_prefix("-E")
        .or_else(|| name.strip_prefix("-Des."))
        .unwrap_or(name);
    name.starts_with("bootstrap.").then_some((name, value))
}

/// Is it an option that sets it for a node, on or off?
fn is_of_node(word: &str) -> bool {
    of_node(word).is_some_and(|(name, _)| NAMES.iter().any(|(own, _)| *own == name))
}

/// The words that such settings are made of, with the values that switch them off.
pub(crate) fn words_of(words: &[String]) -> Vec<String> {
    let is_option = |word: &str| {
        let name = word.split('=').next().unwrap_or(word);
        OPTIONS.iter().any(|(own, _)| *own == name)
    };
    let is_kept = |at: usize| {
        let word = words[at].as_str();
        let before = at.checked_sub(1).map(|at| words[at].as_str());
        let is_value = || !is_on(word) && before.is_some_and(|before| is_option(before) && !before.contains('='));
        is_option(word) || is_of_node(word) || is_value()
    };
    let kept = (0..words.len()).filter(|at| is_kept(*at));
    kept.map(|at| words[at].clone()).collect()
}

/// An option of a program of another kind: prlimit's is a limit, that of stress-ng a number of its workers.
fn is_of_other(words: &[String], option: &str) -> bool {
    let mut programs = words.iter().filter_map(|word| word.rsplit('/').next());
    match option {
        "-k" => programs.all(|name| name != "memcached"),
        // MySQL locks its memory as root alone, whom no limit binds.
        "--memlock" => programs.all(|name| name != "mariadbd"),
        _ => programs.any(|name| name == "stress-ng"),
    }
}

/// Such an option among the words of a command: its name, its value and what is locked. The last one of a name holds.
fn by_words(words: &[String]) -> Option<(&str, &str, Locks)> {
    let mut found: Option<(&str, &str, Locks)> = None;
    for (at, word) in words.iter().enumerate() {
        if let Some((name, value)) = of_node(word).filter(|_| is_of_node(word)) {
            found = named(name, value).map(|what| (name, value, what));
            continue;
        }
        let (name, own) = word
            .split_once('=')
            .map_or((word.as_str(), None), |(name, value)| (name, Some(value)));
        let Some((name, what)) = OPTIONS.iter().find(|(own, _)| *own == name) else {
            continue;
        };
        // A word behind it may be its value, or the next option.
        let next = words.get(at + 1).map(String::as_str);
        let value = own.or_else(|| next.filter(|next| !is_on(next))).unwrap_or("on");
        let is_meant = is_on(value) && !is_of_other(words, name);
        found = is_meant.then_some((*name, value, *what));
    }
    found
}

impl Lock {
    /// By the words of a command and its variables; `place` is that of the words.
    pub fn asked(place: &str, words: &[String], variables: &[Setting]) -> Option<Self> {
        let of_variable = |(at, set): (usize, &Setting)| {
            let is_last = variables[at + 1..].iter().all(|later| later.name != set.name);
            let what = named(&set.name, &set.value).filter(|_| is_last)?;
            let setting = set.clone();
            Some(Self { setting, what })
        };
        let of_words = || {
            let (name, value, what) = by_words(words)?;
            let setting = Setting::new(place, name, value);
            Some(Self { setting, what })
        };
        of_words().or_else(|| variables.iter().enumerate().rev().find_map(of_variable))
    }

    /// The same of a node of Elasticsearch or OpenSearch by its file, where neither its command nor a variable says it. Of several files
    /// all have to.
    pub(crate) fn of_node(words: &[String], variables: &[Setting], files: &[Setting]) -> Option<Self> {
        let is_set = |set: &Setting| NAMES.iter().any(|(own, _)| *own == set.name);
        if words.iter().any(|word| is_of_node(word)) || variables.iter().any(is_set) {
            return None;
        }
        let locks = files.iter().map(|set| named(&set.name, &set.value));
        let what = locks.collect::<Option<Vec<Locks>>>()?.first().copied()?;
        let setting = files.first()?.clone();
        Some(Self { setting, what })
    }

    /// How much is locked at least, as far as the command shows it: memcached's memory for items (`-m`, in MiB).
    pub fn least(&self, words: &[String]) -> Option<Bytes> {
        let at = words
            .iter()
            .position(|word| word.rsplit('/').next() == Some("memcached"))?;
        let own = &words[at + 1..];
        let value = |(at, word): (usize, &String)| {
            let attached = ["--memory-limit=", "-m"]
                .iter()
                .find_map(|name| word.strip_prefix(name));
            match word.as_str() {
                "-m" | "--memory-limit" => own.get(at + 1).cloned(),
                _ => attached.map(str::to_owned),
            }
        };
        let mib = match own.iter().enumerate().rev().find_map(value) {
            Some(written) => written.parse::<u64>().ok()?,
            None => MEMCACHED,
        };
        let is_it = self.what == Locks::All;
        is_it.then_some(Bytes(mib.saturating_mul(1 << 20)))
    }

    /// What a running program has to be able to lock, as far as its options and mappings show it.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn need(&self, program: &Program) -> Result<Bytes, Unread> {
        match self.what {
            Locks::Heap => match program.jvm()?.and_then(|jvm| jvm.heap_max) {
                Some(heap) => Ok(heap),
                None => resident(program),
            },
            Locks::Model => weights(program.areas()?).map_or_else(|| resident(program), Ok),
            Locks::Guest | Locks::Log | Locks::All => resident(program),
        }
    }
}

/// Without `-m`, in MiB.
const MEMCACHED: u64 = 64;

/// Weights of a model that are mapped: its largest file that can be read, of which a part may be locked already. Addresses that the driver of a GPU reserves are no memory, and
/// libraries and devices no weights.
fn weights(areas: &[Area]) -> Option<Bytes> {
    const DEVICES: [&str; 4] = ["/dev/nvidia", "/dev/dri/", "/dev/kfd", "/dev/zero"];
    const PROGRAMS: [&str; 5] = ["/usr/lib", "/usr/bin/", "/usr/local/lib", "/usr/local/bin/", "/lib"];
    const LEAST: Bytes = Bytes::mib(64);
    let is_of_model = |area: &&Area| {
        let name: &str = &area.name;
        area.perms.starts_with('r')
            && name.starts_with('/')
            && !name.contains(".so")
            && !DEVICES.iter().chain(&PROGRAMS).any(|other| name.starts_with(other))
    };
    let mut files: BTreeMap<&str, Bytes> = BTreeMap::new();
    for area in areas.iter().filter(is_of_model) {
        let name: &str = &area.name;
        let size = files.entry(name).or_default();
        *size = Bytes(size.0.saturating_add(area.size().0));
    }
    files.into_values().max().filter(|size| *size >= LEAST)
}

/// A mapping of which only the beginning is locked: that, and the rest behind it.
pub fn cut_off(areas: &[Area]) -> Option<(&Area, &Area)> {
    let is_one = |first: &Area, rest: &Area| {
        first.range.end == rest.range.start
            && (&first.name, first.inode, &first.perms) == (&rest.name, rest.inode, &rest.perms)
    };
    let ends = areas.windows(2).filter_map(|two| Some((two.first()?, two.last()?)));
    let cut = ends
        .filter(|(first, rest)| is_one(first, rest) && first.has("lo") == Some(true) && rest.has("lo") == Some(false));
    cut.max_by_key(|(_, rest)| rest.size())
}

fn resident(program: &Program) -> Result<Bytes, Unread> {
    program.pages.resident.as_ref().into_result().copied()
}

/// How a running program is to lock its memory, if it is: by its arguments, its variables, or the file of a node.
pub(super) fn of_program(source: &Source, program: &Program, is_container: bool) -> Reading<Option<Lock>> {
    by_settings(source, program, is_container).into()
}

fn by_settings(source: &Source, program: &Program, is_container: bool) -> Result<Option<Lock>, Unread> {
    let arguments = program.arguments.or_if_absent(Vec::new())?;
    let place = program.file("environ");
    let variables = program.tunables.or_if_absent(BTreeMap::new())?.into_iter();
    let variables: Vec<Setting> = variables
        .map(|(name, value)| Setting::new(&place, name, value))
        .collect();
    match Lock::asked(&program.file("cmdline"), &arguments, &variables) {
        Some(lock) => Ok(Some(lock)),
        // Switched off by an option, which holds before the file.
        None if arguments.iter().any(|word| is_of_node(word)) => Ok(None),
        None => of_file(source, program, &arguments, is_container),
    }
}

/// Options that name the directory of a node's settings, or the home that it is in, and the file there; the first that is given holds.
const NODES: [(&str, &str); 8] = [
    ("-Des.config=", ""),
    ("-Des.path.conf=", "/elasticsearch.yml"),
    ("-Epath.conf=", "/elasticsearch.yml"),
    ("-Des.default.path.conf=", "/elasticsearch.yml"),
    ("-Edefault.path.conf=", "/elasticsearch.yml"),
    ("-Dopensearch.path.conf=", "/opensearch.yml"),
    ("-Des.path.home=", "/config/elasticsearch.yml"),
    ("-Dopensearch.path.home=", "/config/opensearch.yml"),
];

/// The file of a node of Elasticsearch or OpenSearch, in its own root.
pub(crate) fn file(arguments: &[String]) -> Option<String> {
    NODES.iter().find_map(|(option, file)| {
        let named = arguments.iter().find_map(|word| word.strip_prefix(*option))?;
        Some(format!("{named}{file}"))
    })
}

/// A capture has the file of a program outside of containers where the machine has it.
fn of_file(
    source: &Source,
    program: &Program,
    arguments: &[String],
    is_container: bool,
) -> Result<Option<Lock>, Unread> {
    let Some(path) = file(arguments) else { return Ok(None) };
    let own = program.file(&format!("root{path}"));
    let places = [Some(own), Some(path).filter(|_| !is_container)];
    let (path, text) = first(source, places.into_iter().flatten())?.unwrap_or_default();
    let lock = in_file(&path, &text).and_then(|setting| {
        let what = named(&setting.name, &setting.value)?;
        Some(Lock { setting, what })
    });
    Ok(lock)
}

/// The setting of such a file that holds.
pub(crate) fn in_file(path: &str, text: &str) -> Option<Setting> {
    let settings = said(path, text, &['#']).filter_map(|line| {
        let (name, value) = setting(line.text)?;
        Some(line.setting(name, value))
    });
    settings.last()
}

/// Names of such files.
pub(crate) const NODE_FILES: [&str; 2] = ["elasticsearch.yml", "opensearch.yml"];

/// Is it the text of one, by a setting that stands alone at the beginning of a line?
pub(crate) fn is_node_file(text: &str) -> bool {
    let names = ["bootstrap.memory_lock", "bootstrap.mlockall", "cluster.name"];
    let mut set = text.lines().filter_map(|line| Some(line.split_once(':')?.0));
    set.any(|name| names.contains(&name))
}

/// The setting on a line of such a file, which may be below `bootstrap:`.
pub(crate) fn setting(line: &str) -> Option<(&'static str, &str)> {
    let (name, value) = line.split_once(':')?;
    let bare = name.trim();
    let is_it = |own: &str| own == bare || own.strip_prefix("bootstrap.") == Some(bare);
    let (own, _) = NAMES
        .iter()
        .find(|(own, _)| own.starts_with("bootstrap.") && is_it(own))?;
    let value = value.split('#').next().unwrap_or_default();
    Some((*own, value.trim()))
}

#[cfg(test)]
#[path = "locks_tests.rs"]
mod tests;
