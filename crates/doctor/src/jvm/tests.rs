//! Each rule of `jvm` where it fires and where it must not.

use crate::machines::*;
use model::findings::Severity;

fn java(options: &[&str]) -> Process {
    options
        .iter()
        .fold(process(90, "java"), |process, option| process.arg(option))
        .arg("-cp")
        .arg("/opt/app")
        .arg("Main")
}

fn version(process: Process, home: &str) -> Process {
    process.area(
        anonymous(2)
            .named(&format!("{home}/lib/server/libjvm.so"))
            .perms("r-xp"),
    )
}

#[test]
fn e01_a_heap_on_base_pages() {
    let large = || java(&["-XX:+UseLargePages", "-Xmx1g"]);
    let finding = found("E01", large().area(anonymous(1024)).on(machine()));
    assert!(finding.consequence.contains("100 %"), "{}", finding.consequence);
    assert!(
        finding.fix[0].starts_with("hugewise plan --for jvm:pid="),
        "{:?}",
        finding.fix
    );
    assert!(finding.fix[1].contains("642 pages of 2M"), "{:?}", finding.fix);
    let part = large()
        .area(hugetlb(256, 2048).at(0xc000_0000, 0))
        .area(anonymous(768).at(0xd000_0000, 0))
        .area(anonymous(1100))
        .on(pool(machine(), "2048kB", 128, 0, 0));
    let part = found("E01", part).consequence;
    assert!(part.contains("75 % of its heap (768M of 1G)"), "{part}");
    clear(
        "E01",
        large()
            .area(hugetlb(1024, 2048))
            .area(anonymous(100))
            .on(pool(machine(), "2048kB", 512, 0, 0)),
    );
    clear("E01", java(&["-Xmx1g"]).area(anonymous(1024)).on(machine()));
    clear(
        "E01",
        java(&["-XX:+UseLargePages", "-XX:+UseTransparentHugePages"])
            .area(anonymous(1024))
            .on(machine()),
    );
    clear(
        "E01",
        java(&["-XX:+UseLargePages", "-XX:-UseLargePages"])
            .area(anonymous(1024))
            .on(machine()),
    );
}

/// Before 17 a JVM tries a page of the default size first, whatever size its options name.
#[test]
fn e01_an_old_jvm_beside_pages_of_1g_alone() {
    let with = |home: &str, small: u64| {
        let options = ["-XX:+UseLargePages", "-XX:LargePageSizeInBytes=1g", "-Xmx2g"];
        let tree = pool(pool(machine(), "1048576kB", 8, 8, 0), "2048kB", small, small, 0);
        found("E01", version(java(&options), home).area(anonymous(2048)).on(tree))
            .fix
            .join("\n")
    };
    let old = with("/usr/lib/jvm/jdk-16.0.2", 0);
    assert!(
        old.contains("JDK-8261636") && old.contains("echo 1 > ") && old.contains("default_hugepagesz=1G"),
        "{old}"
    );
    for other in [with("/usr/lib/jvm/jdk-17.0.1", 0), with("/usr/lib/jvm/jdk-16.0.2", 4)] {
        assert!(!other.contains("JDK-8261636"), "{other}");
    }
    // JDK 11 and older take pages of the default size alone: one of it makes them ask for all of that size.
    for (home, small) in [("jdk-11.0.20", 0), ("jdk-11.0.20", 1), ("jdk1.8.0_392", 0)] {
        let older = with(&format!("/usr/lib/jvm/{home}"), small);
        assert!(
            older.contains("no effect on Linux") && older.contains("default_hugepagesz=1G") && !older.contains("echo"),
            "{older}"
        );
    }
}

/// A surplus page serves as the one that is tried first.
#[test]
fn e01_an_old_jvm_beside_surplus_pages() {
    let options = ["-XX:+UseLargePages", "-XX:LargePageSizeInBytes=1g", "-Xmx2g"];
    let with = |surplus: u64| {
        let tree = pool(pool(machine(), "1048576kB", 8, 8, 0), "2048kB", 0, 0, 0);
        let tree = pool_line(tree, "2048kB", "nr_overcommit_hugepages", surplus);
        let jvm = version(java(&options), "/usr/lib/jvm/jdk-16.0.2").area(anonymous(2048));
        found("E01", jvm.on(tree)).fix.join("\n")
    };
    assert!(with(0).contains("JDK-8261636"));
    assert!(!with(512).contains("JDK-8261636"), "{}", with(512));
}

/// A heap that fell back and is on THP is on huge pages; what lies beside it is no heap.
#[test]
fn e01_counts_the_mappings_of_the_heap_alone() {
    let large = || java(&["-XX:+UseLargePages", "-Xmx256m"]);
    let beside = |process: Process| process.area(anonymous(600).at(0x7f00_0000_0000, 0));
    let heap = |thp| anonymous(256).thp(thp).at(0xf000_0000, 0);
    clear("E01", beside(large().area(heap(254))).on(machine()));
    let text = found("E01", beside(large().area(heap(128))).on(machine())).consequence;
    assert!(text.contains("50 % of its heap (128M of 256M)"), "{text}");
    // What the heap only set aside is no memory on base pages.
    let reserved = anonymous(128).not_there().perms("---p").at(0xf800_0000, 0);
    let part = large().area(hugetlb(128, 2048).at(0xf000_0000, 0)).area(reserved);
    clear("E01", beside(part).on(pool(machine(), "2048kB", 64, 0, 0)));
    // No mapping is as long as the heap: that none is on pages of a pool is known all the same.
    let text = found("E01", large().area(anonymous(100)).on(machine())).consequence;
    assert!(text.contains("no page of a pool"), "{text}");
}

/// The counters that a JVM keeps in a file: the most that the old generation may grow to.
fn counters(most: u64) -> Vec<u8> {
    let name = b"sun.gc.generation.1.maxCapacity\0";
    let mut bytes = vec![0xca, 0xfe, 0xc0, 0xc0, 1];
    bytes.resize(24, 0);
    for number in [32_i32, 1, 64, 20, 0] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend([b'J', 0, 2, 1]);
    bytes.extend(56_i32.to_le_bytes());
    bytes.extend(name);
    bytes.resize(32 + 56, 0);
    bytes.extend(most.to_le_bytes());
    bytes
}

#[test]
fn e01_a_heap_that_the_jvm_made_smaller() {
    let heap = |bit: u32| {
        let file = hugetlb(832, 2048)
            .perms("rw-s")
            .flags("rd wr sh ht")
            .named("/memfd:java_heap.hugetlb (deleted)");
        file.at(1 << bit, 0)
    };
    let jvm = (42..45).fold(java(&["-XX:+UseZGC", "-XX:+UseLargePages", "-Xmx2g"]), |java, bit| {
        java.area(heap(bit))
    });
    let jvm = jvm.area(shared(1, "/tmp/hsperfdata_app/90"));
    let on = |mib: u64| {
        jvm.on(machine())
            .file("/proc/90/root/tmp/hsperfdata_app/90", counters(mib << 20))
    };
    let finding = found("E01", on(832));
    assert!(
        finding.consequence.contains("lowered the maximum of its heap to 832M"),
        "{}",
        finding.consequence
    );
    clear("E01", on(2048));
}

#[test]
fn e01_options_from_the_environment() {
    found(
        "E01",
        java(&[])
            .env("JAVA_TOOL_OPTIONS=-Xmx1g -XX:+UseLargePages")
            .area(anonymous(512))
            .on(machine()),
    );
    let taken_back = java(&["-XX:+UseLargePages"]).env("_JAVA_OPTIONS=-XX:-UseLargePages");
    clear("E01", taken_back.area(anonymous(512)).on(machine()));
    // What comes after the main class is the program's own.
    clear(
        "E01",
        java(&[]).arg("-XX:+UseLargePages").area(anonymous(512)).on(machine()),
    );
    not_judged(
        "E01",
        process(90, "java").area(anonymous(512)).on(machine()),
        "no arguments",
    );
    not_judged("E01", java(&[]).on(machine()).denied("/proc/90/cmdline"), "denied");
}

#[test]
fn e02_smaller_pages_than_asked() {
    let asked = || java(&["-XX:+UseLargePages", "-XX:LargePageSizeInBytes=1g", "-Xmx1g"]);
    found(
        "E02",
        asked()
            .area(hugetlb(1024, 2048))
            .on(pool(machine(), "2048kB", 512, 0, 0)),
    );
    clear(
        "E02",
        asked()
            .area(hugetlb(1024, 1 << 20))
            .on(pool(machine(), "1048576kB", 1, 0, 0)),
    );
    clear("E02", asked().area(anonymous(1024)).on(machine()));
}

#[test]
fn e05_and_e06_transparent_pages_that_are_off() {
    let never = "always madvise [never]";
    let shmem_never = "always within_size advise [never] deny force";
    let transparent = || java(&["-XX:+UseTransparentHugePages"]).area(anonymous(512));
    found("E05", transparent().on(thp(machine(), "enabled", never)));
    // Advised, or with some of it on huge pages already, the option is in effect.
    let advised = |area: Mapped| java(&["-XX:+UseTransparentHugePages", "-Xmx512m"]).area(area);
    let heap = || anonymous(512).at(0xe000_0000, 0);
    clear("E05", advised(heap().flags("rd wr mr mw me ac hg")).on(machine()));
    clear("E05", advised(heap().thp(400)).on(machine()));
    let finding = found("E05", advised(heap()).on(machine()));
    assert!(finding.consequence.contains("or it could not read them"), "{finding:?}");
    let sandbox = "tmpfs / tmpfs ro 0 0\nproc /proc proc rw 0 0\nsysfs /sys/block sysfs ro 0 0\n";
    let finding = found("E05", advised(heap()).on(machine()).file("/proc/90/mounts", sandbox));
    assert!(
        finding.consequence.contains("it cannot see the files of THP"),
        "{finding:?}"
    );
    let zgc = || java(&["-XX:+UseZGC", "-XX:+UseTransparentHugePages"]).area(shared(512, "/memfd:java_heap (deleted)"));
    found("E06", zgc().on(thp(machine(), "shmem_enabled", shmem_never)));
    clear("E06", zgc().on(machine()));
    // JDK 21 looks at the policy of anonymous memory too.
    let under_never = |home: &str| version(zgc(), home).on(thp(machine(), "enabled", never));
    let finding = found("E05", under_never("/usr/lib/jvm/java-21-openjdk-amd64"));
    assert!(finding.fix.iter().any(|fix| fix.contains("JDK 22")), "{finding:?}");
    clear("E05", under_never("/usr/lib/jvm/java-22-openjdk-amd64"));
    clear("E06", transparent().on(thp(machine(), "shmem_enabled", shmem_never)));
    // Zing's heap is shared memory too, and its UseLargePages switches THP off.
    let library = || {
        anonymous(20)
            .named("/opt/zing/zing-jdk17/lib/server/libjvm.so")
            .perms("r-xp")
    };
    let zing = |options: &[&str]| java(options).area(library()).area(shared(512, "/memfd:heap (deleted)"));
    let both = || zing(&["-XX:+UseTransparentHugePages", "-XX:+UseLargePages"]);
    let finding = found("E06", both().on(thp(machine(), "shmem_enabled", shmem_never)));
    assert!(finding.fix[0].contains("leave -XX:+UseLargePages out"), "{finding:?}");
    found("E06", both().on(machine()));
    clear("E06", zing(&["-XX:+UseTransparentHugePages"]).on(machine()));
    let private = java(&["-XX:+UseTransparentHugePages"]).area(library());
    clear("E06", private.on(thp(machine(), "shmem_enabled", shmem_never)));
}

#[test]
fn e07_stacks_on_large_pages() {
    let old = || thp(machine(), "enabled", "[always] madvise never").line("/proc/sys/kernel/osrelease", "5.15.0");
    let jvm = |home: &str| version(java(&[]).threads(300).area(anonymous(512)), home);
    found("E07", jvm("/usr/lib/jvm/jdk-17.0.1").on(old()));
    clear("E07", jvm("/opt/jdk-21.0.2").on(old()));
    clear(
        "E07",
        jvm("/opt/jdk-17.0.2").on(old().line("/proc/sys/kernel/osrelease", "6.8.0")),
    );
    found(
        "E07",
        jvm("/opt/jdk-17.0.2").on(old().line("/proc/sys/kernel/osrelease", "6.7.0")),
    );
    clear(
        "E07",
        jvm("/opt/jdk-17.0.2").on(machine().line("/proc/sys/kernel/osrelease", "5.15.0")),
    );
    not_judged("E07", java(&[]).threads(300).on(old()), "version");
    let told = jvm("/opt/java").on(old());
    found(
        "E07",
        told.file("/opt/java/release", "IMPLEMENTOR=\"X\"\nJAVA_VERSION=\"11.0.20\"\n"),
    );
}

#[test]
fn e08_pretouch_that_breaks_the_heap_up() {
    let jvm = |home: &str, thp| {
        version(
            java(&["-XX:+AlwaysPreTouch", "-XX:+UseTransparentHugePages"]).area(anonymous(1024).thp(thp)),
            home,
        )
    };
    found("E08", jvm("/opt/jdk-17.0.2", 100).on(machine()));
    clear("E08", jvm("/opt/jdk-17.0.2", 1000).on(machine()));
    clear("E08", jvm("/opt/jdk-25", 100).on(machine()));
}

#[test]
fn e03_a_size_that_is_none() {
    let java = |size: &str| process(90, "java").arg("-XX:+UseLargePages").arg(size).arg("Main");
    found("E03", java("-XX:LargePageSizeInBytes=2").on(machine()));
    clear("E03", java("-XX:LargePageSizeInBytes=2m").on(machine()));
    clear(
        "E03",
        process(90, "java")
            .arg("-XX:LargePageSizeInBytes=2")
            .arg("Main")
            .on(machine()),
    );
}

#[test]
fn e13_options_of_other_times() {
    let java = |option: &str| process(90, "java").arg(option).arg("Main");
    for old in ["-XX:+UseSHM", "-XX:+UseHugeTLBFS", "-XlargePages", "-Xlp"] {
        found("E13", java(old).on(machine()));
        // Nor does it take a kernel with hugetlb pages to say so.
        found("E13", java(old).on(machine().without("/sys/kernel/mm/hugepages")));
    }
    found("E13", java("-XX:+UseLargePagesInMetaspace").on(machine()));
    clear("E13", java("-XX:+UseLargePages").on(machine()));
    clear("E13", java("-Xlp:objectheap:pagesize=2M").on(machine()));
}

#[test]
fn e13_an_option_that_another_one_overrules() {
    let both = || java(&["-XX:+UseLargePages", "-XX:+UseTransparentHugePages", "-Xmx1g"]).area(anonymous(1024));
    let finding = found("E13", both().on(pool(machine(), "2048kB", 700, 700, 0)));
    assert!(finding.consequence.contains("takes no page of the pool"), "{finding:?}");
    clear("E13", both().on(machine()));
    let alone = || java(&["-XX:LargePageSizeInBytes=2m", "-Xmx1g"]).area(anonymous(1024));
    assert_eq!(found("E13", alone().on(machine())).severity, Severity::Info);
    let beside = found("E13", alone().on(pool(machine(), "2048kB", 700, 700, 0)));
    assert!(
        beside.consequence.contains("no effect without -XX:+UseLargePages"),
        "{beside:?}"
    );
    assert_eq!(beside.severity, Severity::Warning);
}

#[test]
fn openj9_has_its_own_option_for_thp_and_ignores_that_of_hotspot() {
    let openj9 = |option: &str| {
        let library = anonymous(2).named("/opt/openj9/lib/default/libj9vm29.so").perms("r-xp");
        java(&[option, "-Xmx1g"]).area(anonymous(1024)).area(library)
    };
    let foreign = || openj9("-XX:+UseTransparentHugePages").on(thp(machine(), "enabled", "always madvise [never]"));
    let finding = found("E13", foreign());
    assert!(finding.consequence.contains("OpenJ9 ignores"), "{finding:?}");
    clear("E05", foreign());
    // A size is named by its own option.
    let size = found("E03", openj9("-Xlp:objectheap:pagesize=4M").on(machine()));
    assert!(size.fix[0].starts_with("-Xlp:objectheap:pagesize=2m"), "{size:?}");
    // It starts with either.
    for option in ["-XX:-TransparentHugePage", "-XX:+UseLargePage"] {
        clear("I01", openj9(option).on(machine()));
    }
}

#[test]
fn e01_the_pages_are_in_a_pool_of_another_size() {
    let default = meminfo(pool(machine(), "1048576kB", 0, 0, 0), &[("Hugepagesize", 1_048_576)]);
    let jvm = |option: &str| java(&["-XX:+UseLargePages", "-Xmx1g", option]).area(anonymous(1024));
    let fix = |jvm: Process| found("E01", jvm.on(pool(default.clone(), "2048kB", 700, 700, 0))).fix;
    let named = fix(version(jvm("-Xms1g"), "/usr/lib/jvm/jdk-17.0.1"));
    assert!(named[0].starts_with("-XX:LargePageSizeInBytes=2M"), "{named:?}");
    assert!(named.iter().all(|fix| !fix.contains("pages of 1G for")), "{named:?}");
    // Before JDK 17 the default size alone counts.
    let old = fix(version(jvm("-Xms1g"), "/usr/lib/jvm/jdk-11.0.1"));
    assert!(old.iter().all(|fix| !fix.contains("LargePageSizeInBytes")), "{old:?}");
}
