//! Programs that are to lock their memory: by which setting of their own, and what they lock then.

use std::collections::BTreeMap;

use model::{Bytes, Reading, Unread};

use super::config::Setting;
use super::config::files::{content, said};
use super::{Area, Program};
use host::Source;

/// What a program locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locks {
    /// A guest's memory, for a device of the host.
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

/// Options of programs: llama.cpp's and those of programs around it, memcached's and Seastar's (ScyllaDB, Redpanda), MySQL's.
const OPTIONS: [(&str, Locks); 6] = [
    ("-k", Locks::All),
    ("--mlock", Locks::Model),
    ("--usemlock", Locks::Model),
    ("--use_mlock", Locks::Model),
    ("--lock-memory", Locks::All),
    ("--memlock", Locks::All),
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

/// `-Ebootstrap.memory_lock=true`, and the same behind `-E`.
fn of_node(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let name = name.strip_prefix("-E").unwrap_or(name);
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
        "--memlock" => programs.all(|name| !matches!(name, "mysqld" | "mariadbd")),
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

/// Weights of a model that are mapped: its largest file that can be read. Addresses that the driver of a GPU reserves are no memory, and
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
    let sizes = areas.iter().filter(is_of_model).map(Area::size);
    sizes.max().filter(|size| *size >= LEAST)
}

fn resident(program: &Program) -> Result<Bytes, Unread> {
    program.pages.resident.as_ref().into_result().copied()
}

/// How a running program is to lock its memory, if it is: by its arguments, its variables, or the file of a node.
pub(super) fn of_program(source: &Source, program: &Program) -> Reading<Option<Lock>> {
    by_settings(source, program).into()
}

fn by_settings(source: &Source, program: &Program) -> Result<Option<Lock>, Unread> {
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
        None => of_file(source, program, &arguments),
    }
}

/// The file of a node of Elasticsearch or OpenSearch, in its own root.
pub(crate) fn file(arguments: &[String]) -> Option<String> {
    let directory = |of: &str| arguments.iter().find_map(|word| word.strip_prefix(of));
    let elastic = || Some(format!("{}/elasticsearch.yml", directory("-Des.path.conf=")?));
    let open = || Some(format!("{}/opensearch.yml", directory("-Dopensearch.path.conf=")?));
    elastic().or_else(open)
}

fn of_file(source: &Source, program: &Program, arguments: &[String]) -> Result<Option<Lock>, Unread> {
    let Some(path) = file(arguments) else { return Ok(None) };
    let path = program.file(&format!("root{path}"));
    let text = content(source, &path)?.unwrap_or_default();
    let settings = said(&path, &text, &['#']).filter_map(|line| {
        let (name, value) = setting(line.text)?;
        Some(line.setting(name, value))
    });
    let lock = settings.last().and_then(|setting| {
        let what = named(&setting.name, &setting.value)?;
        Some(Lock { setting, what })
    });
    Ok(lock)
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
mod tests {
    use model::Bytes;

    use super::{Lock, Locks, setting, weights, words_of};
    use crate::config::Setting;
    use crate::parse_maps;

    /// By a command, and a variable before it.
    fn asked(line: &str) -> Option<Locks> {
        let (variable, command) = line.split_once(" | ").unwrap_or(("", line));
        let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
        let set = variable
            .split_once('=')
            .map(|(name, value)| Setting::new("x", name, value));
        let set: Vec<Setting> = set.into_iter().collect();
        Lock::asked("x", &words, &set).map(|lock| lock.what)
    }

    #[test]
    fn programs_lock_their_memory_by_options_and_variables() {
        for (line, what) in [
            ("llama-server -m x.gguf --mlock", Locks::Model),
            ("python3 -m llama_cpp.server --use_mlock true", Locks::Model),
            ("USE_MLOCK=1 | python3 -m llama_cpp.server", Locks::Model),
            ("memcached -m 1024 --lock-memory", Locks::All),
            ("/usr/bin/memcached -k -m 1024", Locks::All),
            ("/usr/bin/scylla --lock-memory=1 --smp 4", Locks::All),
            ("mysqld --memlock", Locks::All),
            ("java Main -Ebootstrap.memory_lock=true", Locks::Heap),
            (
                "java Main -Ebootstrap.memory_lock=false -Ebootstrap.memory_lock=true",
                Locks::Heap,
            ),
            (
                "java Main -Ebootstrap.memory_lock=true -Ebootstrap.ctrlhandler=false",
                Locks::Heap,
            ),
            ("bootstrap.memory_lock=\"true\" | eswrapper", Locks::Heap),
        ] {
            assert_eq!(asked(line), Some(what), "{line}");
        }
        for line in [
            "llama-server -m x.gguf",
            "USE_MLOCK=0 | python3 -m llama_cpp.server",
            "scylla --lock-memory 0 --smp 4",
            "prlimit --memlock=unlimited redis-server",
            "stress-ng --mlock 2",
            "server -k",
            "java Main -Ebootstrap.memory_lock=false",
            "java Main -Ebootstrap.memory_lock=true -Ebootstrap.memory_lock=false",
            "bootstrap.memory_lock=false | eswrapper",
        ] {
            assert_eq!(asked(line), None, "{line}");
        }
    }

    #[test]
    fn of_variables_of_one_name_the_last_holds() {
        let set = |values: &[(&str, &str)]| {
            let set: Vec<Setting> = values
                .iter()
                .map(|(name, value)| Setting::new("x", *name, *value))
                .collect();
            Lock::asked("x", &[], &set).map(|lock| lock.what)
        };
        assert_eq!(set(&[("USE_MLOCK", "1"), ("USE_MLOCK", "0")]), None);
        assert_eq!(set(&[("USE_MLOCK", "0"), ("USE_MLOCK", "1")]), Some(Locks::Model));
        assert_eq!(set(&[("LLAMA_ARG_MLOCK", "1"), ("USE_MLOCK", "0")]), Some(Locks::Model));
    }

    #[test]
    fn a_capture_has_the_words_with_what_switches_them_off() {
        for line in [
            "python3 -m llama_cpp.server --use_mlock false --api-key x",
            "scylla --lock-memory 0 --smp 4",
            "java Main -Ebootstrap.memory_lock=true -Ebootstrap.memory_lock=false -Ekey=x",
            "llama-server --mlock --port 0",
            "scylla --lock-memory=1 0",
        ] {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let kept = [vec![words[0].clone()], words_of(&words[1..])].concat();
            assert!(kept.len() < words.len(), "{kept:?}");
            assert_eq!(asked(&kept.join(" ")), asked(line), "{line}");
        }
        let kept = words_of(&["--use_mlock".to_owned(), "false".to_owned(), "0".to_owned()]);
        assert_eq!(kept, ["--use_mlock", "false"]);
    }

    #[test]
    fn memcached_locks_its_items_at_least() {
        for (line, mib) in [
            ("/usr/bin/memcached -k -m 4096", Some(4096)),
            ("memcached -k -m32", Some(32)),
            ("memcached -m 32 --memory-limit=128 -k", Some(128)),
            ("memcached -k", Some(64)),
            ("memcached -k -m ${CACHESIZE}", None),
            ("scylla --lock-memory=1", None),
        ] {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let lock = Lock::asked("x", &words, &[]).expect(line);
            assert_eq!(lock.least(&words), mib.map(Bytes::mib), "{line}");
        }
    }

    #[test]
    fn reserved_addresses_and_libraries_are_no_weights() {
        let reserved = "200000000-4200000000 ---p 00000000 00:00 0\n\
            7f6000000000-7f6020000000 r--p 00000000 00:0f 73 /opt/cuda/libcublas.so.12\n\
            7f7000000000-7f7040000000 rw-p 00000000 00:00 0\n";
        let model = "7e0000000000-7e00fb157000 r--s 00000000 00:0f 811 /home/dev/model.bin\n";
        let of = |text: String| weights(&parse_maps("maps", text.as_bytes()).expect("maps"));
        assert_eq!(of(format!("{reserved}{model}")), Some(Bytes(0xfb15_7000)));
        assert_eq!(of(reserved.to_owned()), None);
        let program = "7e0000000000-7e0010000000 r-xp 00000000 00:0f 8 /usr/bin/ollama\n";
        assert_eq!(of(program.to_owned()), None);
        assert!(of(model.replace("/home/dev", "/usr/share/ollama/.ollama/models")).is_some());
    }

    #[test]
    fn a_file_of_a_node_has_the_setting_in_two_forms() {
        assert_eq!(
            setting("bootstrap.memory_lock: true # heap"),
            Some(("bootstrap.memory_lock", "true"))
        );
        assert_eq!(setting("memory_lock: true"), Some(("bootstrap.memory_lock", "true")));
        assert_eq!(setting("bootstrap:"), None);
        assert_eq!(setting("path.data: /var/lib"), None);
    }
}
