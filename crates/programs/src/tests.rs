//! Programs are known by their names, their options and what they mapped.

use model::{Bytes, Cause};

use super::{JvmKind, Kind, Limit, Program, parse_maps, programs};
use host::{Snapshot, Source, Tree};

const STATUS: &str = "PPid:\t1\nUid:\t7\t7\t7\t7\nGid:\t7\t8\t7\t7\nGroups:\t9 10\nVmRSS:\t90000 kB\nRssAnon:\t90000 kB\nVmPTE:\t9 kB\n\
                      HugetlbPages:\t0 kB\nTHP_enabled:\t1\nThreads:\t5\nCapEff:\t0000000000004000\nMems_allowed_list:\t0-1\n";

fn tree(name: &str, arguments: &str, environment: &str) -> Tree {
    Tree::new()
        .file("/proc/5/status", format!("Name:\t{name}\n{STATUS}"))
        .file("/proc/5/cmdline", arguments.replace(' ', "\0") + "\0")
        .file("/proc/5/environ", environment.replace(' ', "\0"))
        .file(
            "/proc/5/limits",
            "Limit  Soft  Hard  Units\nMax locked memory         65536   unlimited  bytes\n",
        )
        .line("/proc/5/cgroup", "0::/system.slice/app.service")
        .line("/proc/5/stat", format!("5 (a) b) S 1 {} 4200 0", "0 ".repeat(17)))
}

fn one(tree: Tree) -> Program {
    let source = Source::from_tree("test", tree);
    let found = programs(&source, &Snapshot::take(&source))
        .into_result()
        .expect("programs");
    found.into_iter().next().expect("a program")
}

#[test]
fn programs_are_known_by_name_arguments_or_options() {
    let kind = |name: &str, arguments: &str| {
        let arguments: Vec<String> = arguments.split(' ').map(str::to_owned).collect();
        Kind::of(name, &arguments)
    };
    assert_eq!(kind("java", "/opt/jdk/bin/java -version"), Some(Kind::Jvm));
    assert_eq!(kind("postgres", "postgres: checkpointer"), Some(Kind::Postgres));
    assert_eq!(
        kind("qemu-system-x86", "/usr/bin/qemu-system-x86_64 -m 4G"),
        Some(Kind::Qemu)
    );
    assert_eq!(kind("cloud-hyperviso", "cloud-hypervisor"), Some(Kind::CloudHypervisor));
    assert_eq!(kind("redis-server", "/usr/bin/redis-server *:6379"), Some(Kind::Redis));
    assert_eq!(kind("ora_pmon_ORCL", "ora_pmon_ORCL"), Some(Kind::Oracle));
    assert_eq!(kind("l3fwd", "./l3fwd --file-prefix=a"), Some(Kind::Dpdk));
    assert_eq!(kind("bash", "bash java"), None);
}

#[test]
fn redis_says_by_its_title_where_it_takes_connections() {
    let listens = |title: &str| super::redis::listens(&one(tree("redis-server", title, "HOME=/x")));
    let at = |port, socket: Option<&str>| Some((port, socket.map(str::to_owned)));
    for (title, wanted) in [
        ("redis-server *:5621", at(Some(5621), None)),
        ("/usr/bin/redis-server 127.0.0.1:6379 [cluster]", at(Some(6379), None)),
        ("redis-server unixsocket:/run/r.sock", at(None, Some("/run/r.sock"))),
        ("redis-server", None),
    ] {
        let found = listens(title).map(|found| (found.port, found.socket));
        assert_eq!(found, wanted, "{title}");
    }
    let live = |port: &str| Kind::live_options("Redis", &|_, _| port.to_owned());
    assert!(live(" -p 5621").is_some_and(|options| options.contains("redis-benchmark -p 5621 -q")));
    assert_eq!(live(""), None, "another server may answer");
}

#[test]
fn one_look_takes_status_limits_groups_and_start() {
    let program = one(tree("app", "app", "HOME=/x"));
    assert_eq!(program.groups.known(), Some(&vec![8, 9, 10]));
    assert_eq!((program.may_lock(), program.threads.known()), (Ok(true), Some(&5)));
    assert_eq!(program.nodes.known().map(ToString::to_string), Some("0-1".to_owned()));
    let details = program.details.as_ref().expect("90 MB are looked into");
    assert_eq!(details.memlock.known(), Some(&Limit::Bytes(65536)));
    assert_eq!(details.started.known(), Some(&42.0));
    let groups = details.cgroup.known().expect("groups");
    assert_eq!(
        (groups.service.as_deref(), groups.is_container),
        (Some("app.service"), false)
    );
    assert_eq!(details.areas.unread().map(|why| why.unread), Some(Cause::Absent));
}

#[test]
fn only_known_variables_are_kept() {
    let program = one(tree(
        "app",
        "app",
        "PASSWORD=x GLIBC_TUNABLES=glibc.malloc.hugetlb=1 LD_PRELOAD=y",
    ));
    let kept: Vec<&String> = program.tunables.known().expect("tunables").keys().collect();
    assert_eq!(kept, ["GLIBC_TUNABLES", "LD_PRELOAD"]);
}

#[test]
fn options_of_a_jvm_end_at_its_main_class() {
    let java = "java -Xmx4g -XX:+UseLargePages -XX:LargePageSizeInBytes=1g -XX:+UseZGC -cp /a:/b Main -XX:-UseLargePages -Xmx1g";
    let program = one(tree("java", java, "JAVA_TOOL_OPTIONS=-Xmx2g"));
    let jvm = program.jvm().expect("readable").expect("a JVM");
    assert_eq!((jvm.kind, jvm.collector), (JvmKind::HotSpot, Some(model::Collector::Z)));
    assert_eq!(
        (jvm.heap_max, jvm.page_size),
        (Some(Bytes::gib(4)), Some(Bytes::gib(1)))
    );
    assert!(jvm.wants_hugetlb() && !jvm.shm);
    let maps =
        "7f0000000000-7f0000001000 r-xp 00000000 08:01 5 /opt/ibm/jdk8/jre/lib/amd64/compressedrefs/libj9vm29.so\n";
    let j9 = one(tree(
        "java",
        "java -Xlp:objectheap:pagesize=4K -jar a.jar",
        "JAVA_VERSION=jdk-17.0.9+9",
    )
    .file("/proc/5/maps", maps));
    let jvm = j9.jvm().expect("readable").expect("a JVM");
    assert_eq!(
        (jvm.kind, jvm.large_pages, jvm.version),
        (JvmKind::OpenJ9, false, Some(17))
    );
    let planned = "java -Xlp:objectheap:pagesize=1g -Xlp:codecache:pagesize=2m -jar a.jar";
    let planned = one(tree("java", planned, "").file("/proc/5/maps", maps));
    let jvm = planned.jvm().expect("readable").expect("a JVM");
    assert_eq!((jvm.large_pages, jvm.page_size), (true, Some(Bytes::gib(1))));
}

#[test]
fn options_of_a_jvm_come_to_what_it_makes_of_them() {
    let jvm = |options: &str| {
        let program = one(tree("java", &format!("java {options}"), ""));
        program.jvm().expect("readable").expect("a JVM").clone()
    };
    let heap = Some(Bytes::gib(4));
    for values in [
        "--add-opens java.base/java.lang=ALL-UNNAMED",
        "--add-modules java.se",
        "-cp classes",
        "-p mods -classpath lib/*",
    ] {
        let own = jvm(&format!("{values} -Xmx4g -XX:+UseLargePages Main"));
        assert_eq!((own.heap_max, own.large_pages), (heap, true), "{values}");
    }
    for program in [
        "-jar a.jar",
        "-m a/b.Main",
        "--module=a/b.Main",
        "-cp a:b Main",
        "/a.java",
    ] {
        let own = jvm(&format!("-Xmx4g {program} -Xmx8g -XX:+UseLargePages"));
        assert_eq!((own.heap_max, own.large_pages), (heap, false), "{program}");
    }
    let (large, thp) = ("-XX:+UseLargePages", "-XX:+UseTransparentHugePages");
    for (flags, expected) in [
        (format!("-XX:-UseLargePages {thp}"), (false, false)),
        (format!("{thp} -XX:-UseLargePages"), (false, false)),
        (format!("{thp} -XX:-UseLargePages {large}"), (true, true)),
    ] {
        let own = jvm(&flags);
        assert_eq!((own.large_pages, own.transparent), expected, "{flags}");
    }
    let zgc = "-XX:+UseZGC -XX:-UseZGC";
    assert_eq!(jvm(zgc).collector, None);
    assert_eq!(
        jvm(&format!("{zgc} -XX:+UseSerialGC -XX:-UseG1GC")).collector,
        Some(model::Collector::Serial)
    );
    for (option, is_refused) in [
        ("-XX:HeapDumpPath=/mnt/hugepages/dumps", false),
        ("-XX:AllocateHeapAt=/dev/hugepages", false),
        ("-XX:+UseHugePages", true),
        ("-XX:+UseHugePages -XX:+IgnoreUnrecognizedVMOptions", false),
        ("-XX:+UseLargePages=true", true),
        ("-XX:+IgnoreUnrecognizedVMOptions -XX:+UseLargePages=true", true),
        ("-XX:UseLargePages", true),
        ("-XX:+LargePageSizeInBytes", true),
        ("-Xmx4096", true),
        ("-Xmx4096 -Xmx2m", false),
    ] {
        assert_eq!(!jvm(option).refused.is_empty(), is_refused, "{option}");
    }
}

/// Until JDK 21 the methods that are named decide: JDK 17 logs `UseLargePages disabled` for each of these, whatever the pool holds.
#[test]
fn options_that_switch_off_the_huge_pages_of_a_jvm_are_known() {
    let jvm = |release: &str, options: &str| {
        let release = format!("JAVA_VERSION={release}");
        let program = one(tree("java", &format!("java {options} Main"), &release).file("/proc/5/maps", HOTSPOT));
        let jvm = program.jvm().expect("readable").expect("a JVM").clone();
        (jvm.large_pages, jvm.transparent, jvm.shm, jvm.off)
    };
    let (large, thp) = ("-XX:+UseLargePages", "-XX:+UseTransparentHugePages");
    for off in ["-XX:-UseTransparentHugePages", "-XX:-UseHugeTLBFS", "-XX:-UseSHM"] {
        let expected = (true, false, false, Some(off.to_owned()));
        assert_eq!(jvm("17.0.9", &format!("{large} {off}")), expected);
        assert_eq!(jvm("25.0.1", &format!("{large} {off}")), (true, false, false, None));
    }
    for on in ["-XX:+UseSHM", "-XX:+UseSHM -XX:-UseHugeTLBFS"] {
        assert_eq!(jvm("17.0.9", on), (true, false, true, None), "{on}");
        assert_eq!(jvm("25.0.1", on), (false, false, false, None), "{on}");
    }
    let both = "-XX:+UseHugeTLBFS -XX:+UseSHM -XX:-UseTransparentHugePages";
    assert_eq!(jvm("17.0.9", both), (true, false, false, None));
    let none = "-XX:-UseLargePages".to_owned();
    for options in [format!("{thp} {none}"), format!("{none} {thp}")] {
        assert_eq!(jvm("25.0.1", &options), (false, false, false, Some(none.clone())));
    }
    assert_eq!(jvm("25.0.1", &none), (false, false, false, None));
}

const HOTSPOT: &str = "7f0000000000-7f0000001000 r-xp 00000000 08:01 5 /opt/java/lib/server/libjvm.so\n";

#[test]
fn options_of_a_jvm_in_files_are_read_wherever_they_are_named() {
    let heap = "# no comment\n-XX:+UseLargePages \"-Xmx4g\"\n";
    for (arguments, environment, place) in [
        ("-XX:VMOptionsFile=heap", "", "/srv/heap"),
        ("Main", "JAVA_TOOL_OPTIONS=-XX:VMOptionsFile=/srv/heap", "/srv/heap"),
        ("Main", "JDK_JAVA_OPTIONS=@heap", "/srv/heap"),
        ("-XX:Flags=flags", "", "/srv/flags"),
        ("@arguments", "", "/srv/heap"),
    ] {
        let tree = tree("java", &format!("java {arguments}"), environment)
            .link("/proc/5/cwd", "/srv")
            .file("/srv/heap", heap)
            .line("/srv/arguments", "-XX:VMOptionsFile=heap")
            .file("/srv/flags", "+UseLargePages\nMaxHeapSize=4g # heap\n");
        let program = one(tree);
        let jvm = program.jvm().expect("readable").expect("a JVM");
        let read = (jvm.large_pages, jvm.heap_max);
        assert_eq!(read, (true, Some(Bytes::gib(4))), "{arguments} {environment}");
        assert_eq!(jvm.places["UseLargePages"], place, "{arguments} {environment}");
    }
    // The command line goes before such a file, wherever it names it.
    let flags = tree("java", "java -XX:-UseLargePages -XX:Flags=/srv/flags", "");
    let program = one(flags.file("/srv/flags", "+UseLargePages\n"));
    assert!(!program.jvm().expect("readable").expect("a JVM").large_pages);
    // The machine knows no file of the launcher.
    let machine = tree("java", "java Main", "JAVA_TOOL_OPTIONS=@/srv/heap");
    let program = one(machine.file("/srv/heap", heap));
    assert!(!program.jvm().expect("readable").expect("a JVM").large_pages);
}

#[test]
fn maps_are_read_to_the_last_field_and_garbled_by_line() {
    let text =
        b"7f00-8f00 rw-s 0000a000 00:0f 77                  /dev/zero (deleted)\n9f00-af00 rw-p 00000000 00:00 0 \n";
    let areas = parse_maps("/proc/5/maps", text).expect("two areas");
    assert_eq!(
        (&*areas[0].name, areas[0].offset, areas[0].inode),
        ("/dev/zero (deleted)", 0xa000, 77)
    );
    assert!(areas[0].is_shared_data() && areas[1].is_private_data() && areas[1].is_anonymous());
    assert_eq!((areas[0].resident(), areas[0].has("ht")), (None, None));
    let garbled = parse_maps("/proc/5/maps", b"7f00-8f00 rw-s 0 0:0 0\nx\n").expect_err("garbled");
    assert_eq!(garbled.place, "/proc/5/maps:2");
}

#[test]
fn a_capture_without_processes_is_absent() {
    let source = Source::from_tree("test", Tree::new().line("/proc/cmdline", ""));
    let none = programs(&source, &Snapshot::take(&source));
    assert_eq!(none.unread().map(|why| why.unread), Some(Cause::Absent));
}

#[test]
fn a_jvm_inside_another_program_is_known_by_its_library() {
    let maps = "7f0000000000-7f0000001000 r-xp 00000000 08:01 5 /opt/zing/lib/server/libjvm.so\n";
    let environment = "JAVA_TOOL_OPTIONS=-XX:+UseLargePages";
    let program = one(tree("launcher", "launcher -x", environment).file("/proc/5/maps", maps));
    assert_eq!(program.is(Kind::Jvm), Ok(true));
    let jvm = program.jvm().expect("readable").expect("a JVM");
    assert!(jvm.kind == JvmKind::Zing && jvm.large_pages);
    let maps = "7f0000000000-7f0000001000 r-xp 00000000 08:01 5 /usr/lib/librte_eal.so.24\n";
    let program = one(tree("router", "router", "GODEBUG=x").file("/proc/5/maps", maps));
    assert_eq!(program.is(Kind::Dpdk), Ok(true));
}
