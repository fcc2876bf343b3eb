//! Faults planted on the running machine are found within one run of doctor. Whatever is planted goes again, also when a
//! test panics or is killed; a test that lacks something calls `testing::skipped`.

#[path = "../common/mod.rs"]
mod common;
mod plant;
mod programs;

use std::path::Path;

use common::skipped;
use plant::{Alone, Diagnosis, Pool, Setting, doctor, doctor_after, found_about, python};
use programs::{Lease, Planted, Postgres};

/// 80 MiB: a pool that doctor takes seriously, and that is not missed.
const PAGES: u64 = 40;
const THP: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

/// Does the pool lie idle, so that what is said about it is about our pages alone?
fn only_ours(pool: &Pool) -> bool {
    pool.read("free_hugepages") == pool.read("nr_hugepages") && pool.read("resv_hugepages") == 0
}

/// A heap that is huge by THP lacks nothing.
fn are_heaps_huge() -> bool {
    std::fs::read_to_string(THP).is_ok_and(|policies| policies.contains("[always]"))
}

#[test]
fn more_pages_asked_for_than_there_can_be() {
    let _alone = Alone::here();
    // In a mount namespace of its own, which ends with the command: no other process sees the file.
    let three_times = "pages=$(awk '/MemTotal/ {print int($2 * 3 / 2048)}' /proc/meminfo)\n\
                       mount -t tmpfs none /etc/sysctl.d && echo vm.nr_hugepages=$pages >/etc/sysctl.d/60-ask.conf";
    let Some(found) = doctor_after(three_times) else {
        return skipped("no mount namespace of one's own: not root, or no unshare");
    };
    let short = found
        .of("A01", "/etc/sysctl.d/60-ask.conf:1")
        .expect("the request is found");
    assert_eq!(short["severity"], "error", "{short}");
}

#[test]
fn a_pool_that_nobody_uses() {
    let _alone = Alone::here();
    let Some(pool) = Pool::grow(PAGES) else {
        return skipped("the pool of 2M pages cannot be grown: not root, no pool, or no unbroken memory");
    };
    let found = doctor();
    if !only_ours(&pool) {
        return skipped("another program uses the pool at the same time");
    }
    let idle = found
        .of("A02", "in the pool of 2M pages is idle")
        .expect("the idle pool is found");
    assert!(idle.to_string().contains("free_hugepages"), "{idle}");
}

#[test]
fn a_program_on_malloc_beside_a_filled_pool() {
    let _alone = Alone::here();
    let Some(pool) = Pool::grow(PAGES) else {
        return skipped("the pool of 2M pages cannot be grown: not root, no pool, or no unbroken memory");
    };
    let Some(program) = Planted::start(&mut python(
        "x = bytearray(900 << 20)\nx[::4096] = bytes([1]) * len(x[::4096])",
    )) else {
        return common::missing("python3");
    };
    let found = doctor();
    if !only_ours(&pool) {
        return skipped("another program uses the pool at the same time");
    }
    let beside = found
        .of("A24", "the program does not use it")
        .expect("some program is found");
    if !beside.to_string().contains(&program.title()) {
        return skipped(&format!(
            "a larger program runs here, and was found instead: {}",
            beside["consequence"]
        ));
    }
    assert_eq!(beside["severity"], "warning", "{beside}");
}

#[test]
fn the_default_size_is_the_wrong_one() {
    let _alone = Alone::here();
    let Some(pool) = Pool::grow(PAGES) else {
        return skipped("the pool of 2M pages cannot be grown: not root, no pool, or no unbroken memory");
    };
    if !Path::new("/sys/kernel/mm/hugepages/hugepages-1048576kB").is_dir() {
        return skipped("there are no pages of 1G that could be the default");
    }
    // The default is chosen at boot: here meminfo shows another one, in a namespace that ends with the command.
    let other = "f=$(mktemp) && sed 's/^Hugepagesize:.*/Hugepagesize: 1048576 kB/' /proc/meminfo >$f && mount --bind $f /proc/meminfo && rm $f";
    let Some(found) = doctor_after(other) else {
        return skipped("no mount namespace of one's own: not root, or no unshare");
    };
    if !only_ours(&pool) {
        return skipped("another program uses the pool at the same time");
    }
    found
        .of("A05", "name no size request pages of 1G")
        .expect("the wrong default is found");
}

#[test]
fn a_segment_that_outlived_its_program() {
    let _alone = Alone::here();
    let Some(pool) = Pool::grow(PAGES) else {
        return skipped("the pool of 2M pages cannot be grown: not root, no pool, or no unbroken memory");
    };
    // IPC_CREAT | SHM_HUGETLB | 0600, filled, and left behind.
    let leave = "import ctypes\n\
                 libc = ctypes.CDLL(None, use_errno=True)\n\
                 libc.shmat.restype = ctypes.c_void_p\n\
                 libc.shmat.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_int]\n\
                 id = libc.shmget(0, ctypes.c_size_t(20 << 20), 0o1000 | 0o4000 | 0o600)\n\
                 ctypes.memset(libc.shmat(id, None, 0), 1, 20 << 20)\n\
                 print(id)";
    let Some(id) = programs::output(&mut python(leave)).and_then(|id| id.trim().parse::<u64>().ok()) else {
        return skipped("there is no python3, or no System V segment of huge pages");
    };
    let _segment = plant::undone_by("ipcrm -m \"$1\"", &[&id.to_string()]);
    assert!(
        pool.read("free_hugepages") < pool.read("nr_hugepages"),
        "its pages are held"
    );
    let found = doctor();
    let orphan = found
        .of("A20", &format!("shmid {id} nattch 0"))
        .expect("the orphan is found");
    assert!(orphan.to_string().contains(&format!("ipcrm -m {id}")), "{orphan}");
}

#[test]
fn a_jvm_whose_large_pages_are_not_there() {
    let _alone = Alone::here();
    if are_heaps_huge() {
        return skipped("memory of this process became huge by itself");
    }
    // More than any pool here has.
    let options = ["-Xmx6g", "-Xms256m", "-XX:+UseSerialGC"];
    let Some(java) = programs::java(&options) else {
        return skipped("there is no java here that starts so");
    };
    let fallback = match found_about("E01", &java) {
        Ok(fallback) => fallback,
        Err(why) => return skipped(&format!("the machine is too busy to be looked at: {why}")),
    };
    assert!(
        fallback["consequence"]
            .as_str()
            .is_some_and(|text| text.contains("100 % of its heap")),
        "{fallback}"
    );
}

#[test]
fn a_jvm_whose_pool_is_too_small() {
    let _alone = Alone::here();
    if are_heaps_huge() {
        return skipped("memory of this process became huge by itself");
    }
    let Some(_pool) = Pool::grow(PAGES) else {
        return skipped("the pool of 2M pages cannot be grown: not root, no pool, or no unbroken memory");
    };
    let options = [
        "-Xmx400m",
        "-Xms400m",
        "-XX:+UseSerialGC",
        "-XX:ReservedCodeCacheSize=32m",
    ];
    let Some(java) = programs::java(&options) else {
        return skipped("there is no java here that starts so");
    };
    let has = programs::status_kib(&java, "HugetlbPages");
    if has == 0 {
        return skipped("this JVM takes all or nothing, or another program was first at the pool");
    }
    let fallback = match found_about("E01", &java) {
        Ok(fallback) => fallback,
        Err(why) => return skipped(&format!("the machine is too busy to be looked at: {why}")),
    };
    // The pool's pages are those of its compiled code: they are not counted for the heap.
    let text = fallback["consequence"].as_str().expect("words").to_owned();
    assert!(text.contains("100 % of its heap"), "{text}");
}

#[test]
fn postgres_that_fell_back() {
    let _alone = Alone::here();
    // More than any pool here has.
    let Some(postgres) = Postgres::start(&["-c", "huge_pages=try", "-c", "shared_buffers=600MB"]) else {
        return skipped("no PostgreSQL server here that starts as an ordinary user");
    };
    let fell_back = doctor().about("F01", postgres.server()).expect("the fallback is found");
    assert_eq!(fell_back["severity"], "warning", "{fell_back}");
    // A public case: the pages that it lacks are as many as the server itself says.
    let own = postgres
        .setting("shared_memory_size_in_huge_pages")
        .filter(|_| fell_back["fix"].to_string().contains("it needs"));
    let Some(own) = own else {
        return skipped("PostgreSQL before 15, which does not say how many pages it needs, or no room for them here");
    };
    let says = format!("it needs {own} pages of 2M");
    assert!(fell_back["fix"].to_string().contains(&says), "{says}: {fell_back}");
}

#[test]
fn a_switch_that_a_tree_inherited() {
    let _alone = Alone::here();
    let script = "import ctypes, subprocess, sys\n\
                  if ctypes.CDLL(None).prctl(41, 1, 0, 0, 0) != 0: sys.exit(1)\n\
                  child = subprocess.Popen([sys.executable, '-c', 'import ctypes, time\\nctypes.CDLL(None).prctl(1, 9)\\nx = bytes([1]) * (40 << 20)\\nprint(1, flush=True)\\ntime.sleep(60)'], stdout=subprocess.PIPE)\n\
                  child.stdout.readline()";
    let Some(launcher) = Planted::start(&mut python(script)) else {
        return skipped("there is no python3, or no prctl");
    };
    let inherited = doctor().about("D11", &launcher).expect("the inherited switch is found");
    assert!(
        inherited["consequence"]
            .as_str()
            .is_some_and(|text| text.contains("inherited")),
        "{inherited}"
    );
}

#[test]
fn advice_that_the_policy_forbids() {
    let _alone = Alone::here();
    let script = "import mmap\nx = mmap.mmap(-1, 64 << 20)\nx.madvise(14)\nfor i in range(0, 64 << 20, 4096): x[i] = 1";
    let Some(_never) = Setting::change(THP, "never") else {
        return skipped("the THP policy cannot be changed: not root, or no such pages");
    };
    let Some(program) = Planted::start(&mut python(script)) else {
        return skipped("there is no python3 with mmap.madvise");
    };
    if programs::another_size_is_allowed() {
        return skipped("smaller THP sizes are allowed here, so the advice is served");
    }
    let forbidden = match found_about("D01", &program) {
        Ok(forbidden) => forbidden,
        Err(why) => return skipped(&format!("the machine is too busy to be looked at: {why}")),
    };
    assert!(forbidden.to_string().contains("VmFlags: hg"), "{forbidden}");
}

#[test]
fn malloc_that_was_told_in_a_way_that_is_dead() {
    let _alone = Alone::here();
    let mut command = std::process::Command::new("sh");
    command
        .args(["-c", "echo ready; read nothing"])
        .env("HUGETLB_MORECORE", "yes");
    let Some(program) = Planted::start(&mut command) else {
        return common::missing("sh");
    };
    match doctor().about("D18", &program) {
        Some(dead) => assert!(dead.to_string().contains("HUGETLB_MORECORE"), "{dead}"),
        None => skipped("the shell's C library is not glibc 2.34 or later, or cannot be read"),
    }
}

#[test]
fn a_service_without_the_limit_that_logins_get() {
    let _alone = Alone::here();
    let Some(group) = programs::Group::new("system.slice/hugewise-test.service") else {
        return skipped("no control group can be made: not root, or no cgroup v2");
    };
    // 100 MiB, so that it is looked into, as a service of an ordinary user with a small limit.
    let script = "x = bytearray(100 << 20)\nx[::4096] = bytes([1]) * len(x[::4096])";
    let Some(service) = Planted::start(&mut programs::as_nobody(&group, script)) else {
        return skipped("there is no python3 that an ordinary user may start, or no prlimit");
    };
    let promise = "mkdir -p /etc/security && mount -t tmpfs none /etc/security && \
                   echo 'nobody - memlock unlimited' >/etc/security/limits.conf";
    let Some(found) = doctor_after(promise) else {
        return skipped("no mount namespace of one's own: not root, or no unshare");
    };
    let unlike = found.about("B03", &service).expect("the limit is found");
    assert!(unlike.to_string().contains("hugewise-test.service"), "{unlike}");
}

#[test]
fn pages_that_hugewise_itself_has_on_loan_are_no_fault() {
    let _alone = Alone::here();
    let Some(lease) = Lease::start() else {
        return skipped("no pages to borrow: not root, no pool of 2M pages, or others have pages on loan or set aside");
    };
    let found = |state: &Path| {
        let run = common::told(
            common::hugewise(&["doctor", "--json"])
                .env("HUGEWISE_STATE_DIR", state)
                .output()
                .expect("runs"),
        );
        Diagnosis::told(&run)
    };
    if found(Path::new(common::NO_STATE)).of("A08", "").is_none() {
        return skipped("another program holds pages of the pool, so nothing could be taken for a fault");
    }
    let knowing = found(lease.state());
    if !lease.is_alone() {
        return skipped("another program has pages on loan too");
    }
    for id in ["A07", "A08", "A10", "A24"] {
        assert!(knowing.of(id, "").is_none(), "{id}: {:#}", knowing.0);
    }
}

/// PostgreSQL's own count, the kernel's counters and `explain` are three ways to the same pages.
#[test]
fn pages_of_a_database_are_counted_as_it_counts_them_itself() {
    let _alone = Alone::here();
    let Some(pool) = Pool::grow(PAGES) else {
        return skipped("the pool of 2M pages cannot be grown: not root, no pool, or no unbroken memory");
    };
    let Some(postgres) = Postgres::start(&["-c", "huge_pages=try", "-c", "shared_buffers=48MB"]) else {
        return skipped("no PostgreSQL server here that starts as an ordinary user");
    };
    let pid = postgres.server().pid().to_string();
    let usage = || common::valid(&common::done(&["explain", &pid, "--json"]).out)["data"]["programs"][0].clone();
    let usage = usage();
    if usage["in_use"] != "yes" {
        return skipped(&format!("the pool could not hold the server: {usage}"));
    }
    let pages = &usage["parts"][0]["hugetlb"];
    let (total, touched) = (
        pages["total"].as_u64().expect("pages"),
        pages["touched"].as_u64().expect("as root"),
    );
    if let Some(own) = postgres.setting("shared_memory_size_in_huge_pages") {
        assert_eq!(total, own, "{usage}");
        let size = common::valid(&common::done(&["size", "postgres", &postgres.file(), "--json"]).out);
        let steps = size["data"]["steps"].as_array().expect("steps").clone();
        let pages = steps.iter().find(|step| step["name"] == "pages").expect("pages");
        assert_eq!(pages["value"].as_f64(), Some(own as f64), "{pages}");
    }
    let used = pool.read("nr_hugepages") - pool.read("free_hugepages");
    if used + pool.read("resv_hugepages") == total {
        assert_eq!(
            (touched, total - touched),
            (used, pool.read("resv_hugepages")),
            "{usage}"
        );
    } else {
        skipped("another program uses the pool at the same time");
    }
}
