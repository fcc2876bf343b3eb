//! Each rule of `databases` where it fires and where it must not.

use model::findings::Severity;

use crate::machines::*;

fn postmaster(mib: u64) -> Process {
    process(100, "postgres")
        .arg("-D")
        .arg("/var/lib/pg")
        .area(shared(mib, "/dev/zero (deleted)").resident(10))
}

#[test]
fn f01_shared_buffers_on_base_pages() {
    assert_eq!(found("F01", postmaster(256).on(machine())).severity, Severity::Info);
    assert_eq!(found("F01", postmaster(4096).on(machine())).severity, Severity::Warning);
    // A session that touched more of it than the postmaster shows how much is there.
    let touched = shared(4096, "/dev/zero (deleted)").resident(3000);
    let session = process(101, "postgres").parent(100).area(touched);
    let finding = found("F01", session.on(postmaster(4096).on(machine())));
    assert!(
        finding.consequence.contains(" of 4G of shared memory of postgres"),
        "{finding:?}"
    );
    let small_pool = pool(machine(), "2048kB", 10, 10, 0);
    assert_eq!(found("F01", postmaster(256).on(small_pool)).severity, Severity::Warning);
    let conf = |text: &str| {
        postmaster(256)
            .on(machine())
            .file("/proc/100/root/var/lib/pg/postgresql.conf", text)
    };
    assert_eq!(found("F01", conf("huge_pages = try # x\n")).severity, Severity::Warning);
    clear("F01", conf("#huge_pages = try\nhuge_pages = off\n"));
    let included = "/proc/100/root/var/lib/pg/conf.d/own.conf";
    clear(
        "F01",
        conf("include_dir = 'conf.d'\n").file(included, "huge_pages = off\n"),
    );
    let large = process(100, "postgres").area(hugetlb(256, 2048).perms("rw-s").not_there());
    clear("F01", large.on(machine()));
    not_judged(
        "F01",
        conf("").denied("/proc/100/root/var/lib/pg/postgresql.conf"),
        "denied",
    );
}

#[test]
fn f01_asks_the_postmaster_alone() {
    let session = process(101, "postgres")
        .parent(100)
        .area(shared(4096, "/dev/zero (deleted)"));
    let quiet = process(100, "postgres").area(hugetlb(256, 2048).perms("rw-s"));
    clear("F01", session.on(quiet.on(machine())));
}

#[test]
fn f03_oracle_with_automatic_memory_management() {
    let oracle = |name: &str| process(102, "ora_pmon_ORCL").area(shared(1024, name));
    let idle = || pool(machine(), "2048kB", 600, 600, 0);
    found("F03", oracle("/dev/shm/ora_ORCL_0").on(idle()));
    clear("F03", oracle("/SYSV00000000 (deleted)").on(idle()));
    clear("F03", oracle("/dev/shm/ora_ORCL_0").on(machine()));
}

#[test]
fn f05_mysql_without_the_pages_it_asked_for() {
    let mysql = |option: &str| process(103, "mysqld").arg(option).area(anonymous(512));
    found("F05", mysql("--large-pages").on(machine()));
    clear("F05", mysql("--large-pages=0").on(machine()));
    clear("F05", mysql("--port=1").on(machine()));
    clear(
        "F05",
        process(103, "mysqld")
            .arg("--large-pages")
            .area(hugetlb(512, 2048))
            .area(anonymous(20))
            .on(machine()),
    );
    // Rights: a capability, the group, or before Linux 5.16 a memlock limit.
    let on = |release: &str, server: Process| {
        server.on(pool(
            machine().line("/proc/sys/kernel/osrelease", release),
            "2048kB",
            700,
            700,
            0,
        ))
    };
    let large = || mysql("--large-pages").memlock("65536");
    for release in ["5.15.0", "6.1.0"] {
        let finding = found("F05", on(release, large()));
        assert!(finding.consequence.contains("no right to SHM_HUGETLB"), "{finding:?}");
        assert!(finding.fix[0].contains("plan --for mysql:pid=103"), "{finding:?}");
        let allowed = found("F05", on(release, large().locks())).fix;
        assert!(allowed[0].starts_with("restart it"), "{allowed:?}");
    }
    let by_limit = |release: &str| found("F05", on(release, mysql("--large-pages").memlock("8589934592"))).consequence;
    assert!(!by_limit("5.15.0").contains("no right") && by_limit("6.1.0").contains("no right"));
    // 6 of 8 chunks of the buffer pool.
    let chunks =
        |count: u64, chunk: fn() -> Mapped, mysql: Process| (0..count).fold(mysql, |mysql, _| mysql.area(chunk()));
    let part = chunks(2, || hugetlb(128, 2048), process(103, "mysqld").arg("--large-pages"));
    let part = chunks(6, || anonymous(128), part);
    let text = found("F05", part.on(pool(machine(), "2048kB", 128, 0, 0))).consequence;
    assert!(text.contains("6 of its 8 large allocations (768M)"), "{text}");
}

#[test]
fn f06_many_sessions_on_base_pages_with_lazy_preemption() {
    let server = |release: &str, line: &str, sessions: u32| {
        let tree = postmaster(16 << 10).on(machine().line("/proc/sys/kernel/osrelease", release));
        let tree = (0..sessions).fold(tree, |tree, at| process(200 + at, "postgres").parent(100).on(tree));
        tree.line("/proc/cmdline", line)
    };
    let finding = found("F06", server("7.0.3", "quiet", 40));
    assert!(finding.consequence.contains("40 processes"), "{finding:?}");
    found("F06", server("6.18.44", "preempt=lazy", 40));
    for release in [
        "4.18.0-553.el8.x86_64",
        "5.14.0-427.el9",
        "6.1.0",
        "6.8.0-31",
        "6.12.10",
    ] {
        clear("F06", server(release, "quiet", 40));
    }
    // What it was built with is not known.
    not_judged("F06", server("6.18.44", "quiet", 40), "sched/preempt");
    clear("F06", server("5.14.0", "preempt=lazy", 40));
    clear("F06", server("7.0.3", "quiet", 4));
    clear("F06", server("7.0.3", "preempt=full", 40));
    let huge = process(100, "postgres").area(hugetlb(16 << 10, 2048).perms("rw-s").not_there());
    clear("F06", huge.on(machine().line("/proc/sys/kernel/osrelease", "7.0.3")));
}

#[test]
fn f05_mariadb_needs_what_the_calculator_says_and_no_group() {
    let server = |spare| {
        process(104, "mariadbd")
            .arg("--port=1")
            .area(anonymous(1024))
            .on(pool(machine(), "2048kB", spare, spare, 0))
            .file("/etc/my.cnf", "[mariadbd]\nlarge-pages\ninnodb_buffer_pool_size = 1G\n")
    };
    let fix = found("F05", server(200)).fix.join("\n");
    assert!(fix.contains("it needs 646 pages of 2M, and 200 are spare"), "{fix}");
    assert!(!fix.contains("hugetlb_shm_group"), "{fix}");
    let fix = found("F05", server(700)).fix.join("\n");
    assert!(fix.starts_with("restart it") && !fix.contains("plan --for"), "{fix}");
}
