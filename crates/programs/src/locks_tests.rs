//! How programs are found that lock their memory, and what they lock.

use std::slice::from_ref;

use host::{Source, Tree};
use model::Bytes;

use super::{Lock, Locks, cut_off, file, in_file, is_node_file, setting, weights, words_of};
use crate::areas::counted;
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
        ("/usr/sbin/mariadbd --memlock", Locks::All),
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
        ("java -Des.bootstrap.mlockall=true Main", Locks::Heap),
        ("etcd --experimental-memory-mlock --name a", Locks::All),
    ] {
        assert_eq!(asked(line), Some(what), "{line}");
    }
    for line in [
        "llama-server -m x.gguf",
        "USE_MLOCK=0 | python3 -m llama_cpp.server",
        "scylla --lock-memory 0 --smp 4",
        "prlimit --memlock=unlimited redis-server",
        "stress-ng --mlock 2",
        "mysqld --memlock",
        "server -k",
        "java Main -Ebootstrap.memory_lock=false",
        "java Main -Ebootstrap.memory_lock=true -Ebootstrap.memory_lock=false",
        "bootstrap.memory_lock=false | eswrapper",
        "etcd --memory-mlock=false --name a",
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
fn a_part_of_a_file_that_is_locked_is_a_part() {
    let half = |start: &str, end: &str, flags: &str| {
        format!("{start}-{end} r--s 00000000 00:0f 811 /home/dev/model.gguf\nRss: 0 kB\nVmFlags: rd mr me ms {flags}\n")
    };
    let of = |text: String| {
        let source = Source::from_tree("maps", Tree::new().file("/proc/7/smaps", text));
        counted(&source, 7).known().expect("mappings").clone()
    };
    let cut = of(half("7a0000000000", "7a0040000000", "lo sd") + &half("7a0040000000", "7a0060000000", "sd"));
    assert_eq!(weights(&cut), Some(Bytes::mib(1536)));
    let sizes = cut_off(&cut).map(|(first, rest)| (first.size(), rest.size()));
    assert_eq!(sizes, Some((Bytes::mib(1024), Bytes::mib(512))));
    let apart = of(half("7a0000000000", "7a0040000000", "lo sd") + &half("7a0050000000", "7a0060000000", "sd"));
    assert_eq!(cut_off(&apart), None);
    let whole = of(half("7a0000000000", "7a0040000000", "lo sd") + &half("7a0040000000", "7a0060000000", "lo"));
    assert_eq!(cut_off(&whole), None);
}

#[test]
fn a_node_s_file_is_named_by_several_options() {
    let of = |line: &str| {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        file(&words)
    };
    for (line, path) in [
        (
            "java -Des.path.home=/h -Des.path.conf=/etc/es",
            "/etc/es/elasticsearch.yml",
        ),
        (
            "java -Des.path.home=/h -Des.default.path.conf=/etc/es",
            "/etc/es/elasticsearch.yml",
        ),
        ("java -Des.path.home=/h Main", "/h/config/elasticsearch.yml"),
        ("java -Des.config=/a/b.yml", "/a/b.yml"),
        ("java -Dopensearch.path.home=/h", "/h/config/opensearch.yml"),
    ] {
        assert_eq!(of(line).as_deref(), Some(path), "{line}");
    }
    assert_eq!(of("java -jar app.jar"), None);
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

#[test]
fn a_file_of_a_node_holds_where_nothing_else_says_it() {
    let file = |text: &str| in_file("n.yml", text).expect(text);
    let on = file("# bootstrap.memory_lock: false\nbootstrap:\n  memory_lock: true # locks\n");
    let off = file("bootstrap.memory_lock: true\nbootstrap.memory_lock: false\n");
    let locks = |words: &str, variable: &str, files: &[Setting]| {
        let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        let set: Vec<Setting> = variable
            .split_once('=')
            .map(|(name, value)| Setting::new("x", name, value))
            .into_iter()
            .collect();
        Lock::of_node(&words, &set, files).map(|lock| lock.setting.place)
    };
    assert_eq!(
        locks("elasticsearch", "A=b", &[on.clone(), on.clone()]),
        Some("n.yml:3".to_owned())
    );
    for (words, variable, files) in [
        ("elasticsearch -Ebootstrap.memory_lock=false", "", from_ref(&on)),
        ("elasticsearch", "bootstrap.memory_lock=false", from_ref(&on)),
        ("elasticsearch", "", &[on.clone(), off.clone()]),
        ("elasticsearch", "", &[off]),
        ("elasticsearch", "", &[]),
    ] {
        assert_eq!(locks(words, variable, files), None, "{words} {variable} {files:?}");
    }
    assert!(is_node_file("# of a node\ncluster.name: a\n"));
    assert!(!is_node_file("elasticsearch.yml: |\n  cluster.name: a\n"));
}
