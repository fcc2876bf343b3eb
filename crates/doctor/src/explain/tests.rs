//! What captured machines say about their programs.

use std::path::Path;

use host::processes::Reason;
use host::{Snapshot, Source};
use model::{Bytes, Cause, Reading};
use programs::Evidence;
use programs::{Target, TargetError, targets};

use super::{Asked, HugetlbPages, InUse, Needs, PartKind, Step, Usage, Why, usage};
use crate::machines::{Mapped, anonymous, hugetlb, machine, pool, process, shared};

fn source(machine: &str) -> Source {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../fixtures/machines/{machine}.tree"));
    Source::open(&path).expect("a machine")
}

pub(super) fn all(source: &Source, word: &str) -> Result<Vec<Usage>, TargetError> {
    let snapshot = Snapshot::take(source);
    let targets = targets(source, &snapshot, word)?;
    let one = |target: &Target| {
        let alone = Reading::Known(vec![target.main.clone()]);
        usage(&Evidence::of(source, snapshot.clone(), alone), target)
    };
    Ok(targets.iter().map(one).collect())
}

fn one(machine: &str, word: &str) -> Usage {
    let mut all = all(&source(machine), word).expect("found");
    assert_eq!(all.len(), 1, "{word} on {machine}");
    all.remove(0)
}

#[test]
fn a_database_on_its_pool_has_pages_touched_and_reserved() {
    let usage = one("postgres-good", "postgres");
    assert_eq!((usage.in_use, usage.others), (InUse::Yes, 4));
    let shared = &usage.parts[0];
    assert_eq!(shared.what, PartKind::SharedMemory);
    let pages = HugetlbPages {
        page: Bytes::mib(2),
        total: 970,
        touched: Some(600),
    };
    assert_eq!(
        shared.hugetlb,
        Some(pages),
        "by the pool, which nothing else draws from"
    );
    assert_eq!(pages.reserved(), Some(370));
    assert_eq!(usage.pools[0].spare, Some(54));
    let [
        Step::Compare {
            server: Some(server), ..
        },
    ] = usage.next.as_slice()
    else {
        panic!("a comparison that starts the server: {:?}", usage.next);
    };
    assert_eq!(server.database, "postgres");
    assert!(server.arguments[0].ends_with("postgres"), "{server:?}");
    assert!(usage.why.is_empty() && usage.findings.is_empty(), "{usage:?}");
}

#[test]
fn a_guest_on_a_pool_of_1g_pages_is_found_by_its_own_name() {
    for word in ["guest0", "qemu", "4711"] {
        let usage = one("pool-1g", word);
        assert_eq!((usage.name.as_str(), usage.in_use), ("guest0", InUse::Yes), "{word}");
        let pages = usage.parts[0].hugetlb.expect("hugetlb");
        assert_eq!(
            (pages.page, pages.total, pages.reserved()),
            (Bytes::gib(1), 16, Some(0))
        );
        assert_eq!(usage.next, [Step::MeasureGuest]);
    }
}

/// It waits for a migration, or for `cont`: QEMU mapped its memory at the start, and a restart would change nothing.
#[test]
fn a_guest_that_touched_nothing_is_on_the_pool_that_it_mapped() {
    let usage = |flags: &'static str| {
        let memory = hugetlb(256, 2048)
            .named("/memfd:memory-backend-memfd (deleted)")
            .perms("rw-s");
        let guest = process(90, "qemu-system-x86_64")
            .arg("-name")
            .arg("n1")
            .arg("-m")
            .arg("256M")
            .arg("-object");
        let guest = guest
            .arg("memory-backend-memfd,id=m,size=256M,hugetlb=on,share=on")
            .arg("-machine");
        let guest = guest
            .arg("memory-backend=m")
            .area(memory.not_there().flags(flags))
            .area(anonymous(32));
        let tree = guest.on(pool(machine(), "2048kB", 512, 512, 128));
        all(&Source::from_tree("made", tree), "90").expect("found").remove(0)
    };
    let pages = |touched| HugetlbPages {
        page: Bytes::mib(2),
        total: 128,
        touched,
    };
    let waiting = usage("rd wr sh mr mw me ms ht");
    assert_eq!(
        (waiting.in_use, waiting.parts[0].hugetlb),
        (InUse::Yes, Some(pages(Some(0))))
    );
    let open = usage("rd wr sh mr mw me ms nr ht");
    assert_eq!(open.in_use, InUse::Yes);
    for usage in [waiting, open] {
        assert_eq!(usage.parts[0].needs, None);
        assert!(
            !usage.why.iter().any(|why| matches!(why, Why::Restart { .. })),
            "{:?}",
            usage.why
        );
        assert!(
            !usage.next.iter().any(|step| matches!(step, Step::Restart { .. })),
            "{:?}",
            usage.next
        );
    }
}

#[test]
fn a_jvm_on_transparent_pages_has_a_heap_of_its_own() {
    let usage = one("jvm-madvise", "2000");
    let heap = &usage.parts[0];
    assert_eq!((heap.what, heap.size), (PartKind::JavaHeap, Bytes::gib(8)));
    assert_eq!(usage.in_use, InUse::Yes);
    let needs = Needs {
        page: Bytes::mib(2),
        pages: 4368,
    };
    assert_eq!(heap.needs, Some(needs));
}

#[test]
fn what_could_not_be_read_is_unknown_and_not_zero() {
    let usage = one("denied", "mysql");
    assert_eq!(usage.in_use, InUse::Unknown);
    assert!(usage.parts[0].backing.unread().is_some());
}

#[test]
fn a_program_that_does_not_ask_is_told_what_to_set() {
    let usage = one("kubernetes-node", "java");
    assert_eq!(usage.in_use, InUse::No);
    assert!(matches!(usage.why[0], Why::NotAsked { .. }), "{:?}", usage.why);
    let steps = &usage.next;
    assert!(steps.iter().any(|step| matches!(step, Step::Set { .. })), "{steps:?}");
    assert!(steps.contains(&Step::Explain), "{steps:?}");
    // Without a restart too.
    assert_eq!(steps.last(), Some(&Step::Collapse));
}

#[test]
fn a_word_that_nothing_goes_by_names_what_runs() {
    let error = all(&source("postgres-good"), "oracel").expect_err("a misspelling");
    let text = error.to_string();
    assert!(
        text.contains("`oracel`") && text.contains("running: postgres"),
        "{text}"
    );
}

#[test]
fn a_setting_that_could_not_be_read_is_neither_set_nor_unset() {
    let tree = |name: &str| std::fs::read_to_string(name).expect("an archive");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/machines/postgres-good.tree");
    let tree = host::Tree::parse("made", tree(path.to_str().expect("a path")).as_bytes()).expect("a tree");
    let source = Source::from_tree("made", tree.denied("/proc/812/cmdline"));
    let usage = all(&source, "812").expect("found").remove(0);
    let setting = usage
        .asked
        .iter()
        .find(|asked| asked.setting == "huge_pages")
        .expect("asked");
    assert!(setting.value.unread().is_some(), "{setting:?}");
}

/// A JVM of 512 MiB at most under ZGC, whose heap has so many mappings of its file, each at an address of its own.
fn zgc(options: &[&str], views: &[(u64, u64)]) -> Usage {
    zgc_on(machine(), options, views)
}

fn zgc_on(machine: host::Tree, options: &[&str], views: &[(u64, u64)]) -> Usage {
    let java = std::iter::once(&"-XX:+UseZGC").chain(options);
    let java = java.fold(process(90, "java"), |java, option| java.arg(option));
    let heap = |resident: u64| {
        let file = shared(64, "/memfd:java_heap (deleted)");
        file.resident(resident).not_eligible()
    };
    let java = views.iter().fold(java, |java, (start, resident)| {
        java.area(heap(*resident).at(*start, 0))
            .area(heap(*resident).at(*start + (1 << 30), 64 << 20))
    });
    // Tables of the collector that end where the next mapping begins: as long a run as any.
    let java = java.area(anonymous(600)).arg("-cp").arg("/opt/app").arg("Main");
    let source = Source::from_tree("made", java.on(machine));
    all(&source, "90").expect("found").remove(0)
}

/// What explains a heap of ZGC with THP on base pages, and the steps, where this is the policy of shared memory.
fn zgc_with_thp(shmem_enabled: &str) -> (Vec<Why>, Vec<Step>) {
    let policy = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";
    let usage = zgc_on(
        machine().line(policy, shmem_enabled),
        &["-Xmx512m", "-XX:+UseTransparentHugePages"],
        &[(1 << 42, 2), (1 << 43, 40), (1 << 44, 3)],
    );
    let policy_of_shared_memory = |asked: &Asked| asked.place == policy && asked.value.known().is_some();
    assert!(usage.asked.iter().any(policy_of_shared_memory), "{:?}", usage.asked);
    (usage.why, usage.next)
}

#[test]
fn the_policy_of_shared_memory_is_why_a_heap_of_zgc_is_on_base_pages() {
    let heap = |reason| Why::Thp {
        part: PartKind::JavaHeap,
        reason,
        bytes: Bytes::mib(80),
    };
    let restart = [Step::Restart { unit: None }, Step::Explain];
    let (why, next) = zgc_with_thp("always within_size advise [never] deny force");
    assert_eq!(why[0], heap(Reason::SharedNever));
    let goal = "thp:shmem_enabled=advise".to_owned();
    assert_eq!((&next[0], &next[1..]), (&Step::Plan { goal }, &restart[..]));
    // The policy was another when the JVM started: a plan would change nothing.
    let (why, next) = zgc_with_thp("always within_size [advise] never deny force");
    assert_eq!((&why[0], next), (&heap(Reason::HeapNotAdvised), restart.to_vec()));
}

const SHMEM_ENABLED: &str = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";

/// A program of no known kind, started by this path, with this memory.
fn unknown(path: &str, tunables: &[&str], area: Mapped, shmem_enabled: &str) -> Usage {
    let app = tunables
        .iter()
        .fold(process(90, "app").path(path), |app, tunable| app.env(tunable));
    let tree = app.area(area).on(machine().line(SHMEM_ENABLED, shmem_enabled));
    all(&Source::from_tree("made", tree), "90").expect("found").remove(0)
}

#[test]
fn shared_memory_of_any_program_is_on_base_pages_by_its_own_policy() {
    let never = "always within_size advise [never] deny force";
    let restart = [Step::Restart { unit: None }, Step::Explain];
    for (flags, policy) in [
        ("rd wr sh mr mw me ms hg", "advise"),
        ("rd wr sh mr mw me ms", "within_size"),
    ] {
        let memory = || {
            shared(64, "/memfd:x (deleted)")
                .flags(flags)
                .resident(64)
                .not_eligible()
        };
        let usage = unknown("/srv/app", &[], memory(), never);
        assert!(
            usage.asked.iter().any(|asked| asked.place == SHMEM_ENABLED),
            "{:?}",
            usage.asked
        );
        let why = Why::Thp {
            part: PartKind::SharedMemory,
            reason: Reason::SharedNever,
            bytes: Bytes::mib(64),
        };
        assert_eq!(usage.why, [why]);
        let goal = format!("thp:shmem_enabled={policy}");
        assert_eq!((&usage.next[0], &usage.next[1..]), (&Step::Plan { goal }, &restart[..]));
    }
    // A program that does not ask for it can do so alone.
    let usage = unknown(
        "/srv/app",
        &[],
        shared(64, "/memfd:x (deleted)").resident(64).not_eligible(),
        "always within_size [advise] never deny force",
    );
    let reason = |why: &Why| matches!(why, Why::Thp { reason, .. } if *reason == Reason::SharedNotAdvised);
    assert!(
        usage.why.iter().all(reason) && !usage.why.is_empty() && usage.next.is_empty(),
        "{usage:?}"
    );
}

#[test]
fn a_program_that_maps_hugetlb_by_itself_is_not_to_be_compared_with_base_pages() {
    let next = |path: &str, tunables: &[&str]| {
        let usage = unknown(
            path,
            tunables,
            hugetlb(128, 2048),
            "always within_size advise [never] deny force",
        );
        assert_eq!(usage.in_use, InUse::Yes);
        usage.next
    };
    assert_eq!(next("/srv/app", &[]), []);
    // An arm sets this variable itself.
    let by_tunables = next("/srv/app", &["GLIBC_TUNABLES=glibc.malloc.hugetlb=2"]);
    let [
        Step::Compare {
            server: None,
            command: Some(command),
        },
    ] = by_tunables.as_slice()
    else {
        panic!("{by_tunables:?}");
    };
    assert_eq!(command.arguments, ["/srv/app"]);
    // Below the directory of another process.
    let relative = next("bin/app", &["GLIBC_TUNABLES=glibc.malloc.hugetlb=2"]);
    assert!(
        matches!(relative.as_slice(), [Step::Compare { command: None, .. }]),
        "{relative:?}"
    );
}

#[test]
fn where_the_policy_is_never_the_plan_of_the_finding_is_next() {
    let java = process(90, "java").arg("-XX:+UseTransparentHugePages").arg("-Xmx512m");
    let java = java.area(anonymous(512).at(0xe000_0000, 0)).arg("Main");
    let never = machine().line("/sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]");
    let usage = all(&Source::from_tree("made", java.on(never)), "90")
        .expect("found")
        .remove(0);
    assert!(
        matches!(
            usage.why[0],
            Why::Thp {
                part: PartKind::JavaHeap,
                reason: Reason::PolicyNever,
                ..
            }
        ),
        "{:?}",
        usage.why
    );
    let goal = "thp=madvise".to_owned();
    assert_eq!(
        usage.next,
        [Step::Plan { goal }, Step::Restart { unit: None }, Step::Explain]
    );
}

#[test]
fn steps_without_a_restart_are_those_that_this_kernel_and_this_memory_take() {
    let in_place = |release: &str, cache: u64| {
        let java = process(90, "java").arg("-Xmx512m").arg("Main");
        let java = java.area(anonymous(512).at(0xe000_0000, 0));
        let java = java.area(shared(cache, "/memfd:cache (deleted)"));
        let tree = java.on(machine().line("/proc/sys/kernel/osrelease", release));
        let usage = all(&Source::from_tree("made", tree), "90").expect("found").remove(0);
        assert!(matches!(usage.next[0], Step::Plan { .. }), "{:?}", usage.next);
        let steps = usage.next.into_iter();
        steps
            .filter(|step| matches!(step, Step::CompareLive { .. } | Step::Collapse))
            .collect::<Vec<Step>>()
    };
    let live = Step::CompareLive {
        port: None,
        socket: None,
    };
    assert_eq!(in_place("6.12.10", 64), [live, Step::Collapse]);
    assert!(in_place("6.12.10", 2048).is_empty(), "most of its memory cannot change");
    assert_eq!(in_place("6.6.30", 64), [Step::Collapse]);
    assert!(in_place("5.15.0", 64).is_empty());
}

#[test]
fn a_heap_of_zgc_is_one_view_of_its_file() {
    let views = [(1 << 42, 2), (1 << 43, 40), (1 << 44, 3)];
    let usage = zgc(&["-Xmx512m"], &views);
    let [heap, private] = usage.parts.as_slice() else {
        panic!("the heap once, and what is private: {:?}", usage.parts);
    };
    assert_eq!((heap.what, heap.size), (PartKind::JavaHeap, Bytes::mib(128)));
    let backing = heap.backing.known().expect("counted");
    assert_eq!(backing.total(), Bytes::mib(80), "of the view that has most");
    assert_eq!((private.what, private.size), (PartKind::PrivateMemory, Bytes::mib(600)));
    assert!(heap.needs.is_some_and(|needs| needs.pages >= 256), "{:?}", heap.needs);
}

#[test]
fn a_heap_of_zgc_without_a_maximum_needs_no_false_number_of_pages() {
    let usage = zgc(&[], &[(1 << 42, 64)]);
    assert_eq!((usage.parts[0].size, usage.parts[0].needs), (Bytes::mib(128), None));
    assert!(matches!(usage.why[0], Why::NotAsked { .. }), "{:?}", usage.why);
    let plans = |step: &Step| matches!(step, Step::Plan { .. });
    assert!(!usage.next.iter().any(plans), "it would be refused: {:?}", usage.next);
}

#[test]
fn a_heap_of_zgc_whose_file_is_nowhere_is_absent_and_not_empty() {
    let usage = zgc(&["-Xmx512m"], &[]);
    assert_eq!(
        (usage.parts[0].what, usage.in_use),
        (PartKind::JavaHeap, InUse::Unknown)
    );
    let why = usage.parts[0].backing.unread().expect("no heap");
    assert_eq!(why.unread, Cause::Absent);
}

/// A JVM of 512 MiB with this mapping, of which 96 MiB are there.
fn with_heap(options: &[&str], file: &str, start: u64) -> Usage {
    let java = options
        .iter()
        .fold(process(90, "java"), |java, option| java.arg(option));
    let java = java
        .arg("-Xmx512m")
        .area(shared(128, file).resident(96).at(start, 0))
        .area(anonymous(600));
    let source = Source::from_tree("made", java.arg("Main").on(machine()));
    all(&source, "90").expect("found").remove(0)
}

#[test]
fn a_heap_of_zgc_in_a_file_of_another_name_is_known_by_its_address() {
    for file in ["/memfd:heap (deleted)", "/dev/shm/#1795 (deleted)"] {
        let usage = with_heap(&["-XX:+UseZGC"], file, 1 << 42);
        let [heap, private] = usage.parts.as_slice() else {
            panic!("the heap once, and what is private: {:?}", usage.parts);
        };
        assert_eq!((heap.what, heap.size), (PartKind::JavaHeap, Bytes::mib(128)));
        assert_eq!((usage.in_use, private.what), (InUse::No, PartKind::PrivateMemory));
    }
    let elsewhere = with_heap(&["-XX:+UseZGC"], "/dev/shm/#1795 (deleted)", 0x7f00 << 32);
    assert_eq!(elsewhere.in_use, InUse::Unknown, "{:?}", elsewhere.parts);
}

#[test]
fn a_heap_that_is_kept_in_a_directory_is_found_there_whatever_the_collector() {
    for collector in ["-XX:+UseG1GC", "-XX:+UseZGC"] {
        let options = [
            collector,
            "-XX:+UseTransparentHugePages",
            "-XX:AllocateHeapAt=/srv/heap/",
        ];
        let usage = with_heap(&options, "/srv/heap/#77 (deleted)", 0xec00_0000);
        let heap = &usage.parts[0];
        assert_eq!((heap.what, heap.size), (PartKind::JavaHeap, Bytes::mib(128)));
        let directory = "/srv/heap/".to_owned();
        assert_eq!(usage.why[0], Why::HeapFile { directory });
        assert!(matches!(usage.next[0], Step::LeaveOut { .. }), "{:?}", usage.next);
        assert!(usage.findings.is_empty(), "{:?}", usage.findings);
    }
}

#[test]
fn options_of_a_jvm_are_named_with_the_place_where_they_stand() {
    let java = process(90, "java").arg("@/srv/app.args").arg("Main");
    let java = java.env("JAVA_TOOL_OPTIONS=-XX:+UseLargePages").area(anonymous(512));
    let tree = java
        .on(machine())
        .file("/srv/app.args", "# heap\n-Xmx512m -XX:+UseTransparentHugePages\n");
    let usage = all(&Source::from_tree("made", tree), "90").expect("found").remove(0);
    let place = |setting: &str| {
        let mut asked = usage.asked.iter().filter(|asked| asked.setting == setting);
        asked.next().expect(setting).place.as_str()
    };
    assert_eq!(place("-XX:+UseLargePages"), "JAVA_TOOL_OPTIONS in /proc/90/environ");
    assert_eq!(place("-XX:+UseTransparentHugePages"), "/srv/app.args");
    assert_eq!(place("-Xmx"), "/srv/app.args");
}

#[test]
fn a_line_of_thousands_of_parents_is_one_program() {
    let jvm = |pid: u32, parent: u32| process(pid, "java").parent(parent).arg("-Xmx1g").arg("Main");
    let line = (100..8100).fold(machine(), |tree, pid| jvm(pid, pid - 1).on(tree));
    let line = all(&Source::from_tree("made", line), "java").expect("found");
    assert_eq!((line.len(), line[0].pid, line[0].others), (1, 100, 7999));
    // Two that are each other's parents, as a capture may hold, and one below.
    let circle = [(100, 101), (101, 100), (102, 101)];
    let circle = circle
        .iter()
        .fold(machine(), |tree, &(pid, parent)| jvm(pid, parent).on(tree));
    let circle = all(&Source::from_tree("made", circle), "java").expect("found");
    assert_eq!((circle.len(), circle[0].others), (1, 2));
}
