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
