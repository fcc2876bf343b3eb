//! Each rule of `databases` where it fires and where it must not.

use model::findings::Severity;
use programs::config::Given;

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
fn f01_the_fixes_of_several_servers_are_one_pool() {
    let fixes = |servers: &[(u32, u64)]| {
        let tree = pool(machine(), "2048kB", 10, 10, 0);
        let server = |tree, (pid, mib): &(u32, u64)| {
            process(*pid, "postgres")
                .area(shared(*mib, "/dev/zero (deleted)").resident(10))
                .on(tree)
        };
        let diagnosis = crate::judge(&evidence(servers.iter().fold(tree, server)));
        diagnosis
            .of("F01")
            .map(|finding| finding.fix.clone())
            .collect::<Vec<_>>()
    };
    let has = |fix: &[String], words: &str| fix.iter().any(|own| own.contains(words));
    let both = fixes(&[(100, 256), (200, 512)]);
    assert_eq!(both.len(), 2);
    for fix in &both {
        // 128 and 256 pages.
        assert!(has(fix, "echo 384 > ") && has(fix, "vm.nr_hugepages=384"), "{fix:?}");
        assert!(
            has(fix, "pages of 2M: the sum for all findings of this report"),
            "{fix:?}"
        );
    }
    let [one] = &fixes(&[(100, 256)])[..] else {
        panic!("one finding")
    };
    assert!(has(one, "echo 128 > ") && !has(one, "for all findings"), "{one:?}");
}

/// The server that fell back, beside its own file, is one server: 128 pages for its segment, and a few more by the file.
#[test]
fn f01_a_server_that_runs_and_its_file_are_one() {
    let conf = "shared_buffers = 256MB\nhuge_pages = try\n";
    let fixes = |tree: host::Tree| -> Vec<String> {
        let mut files = Given::default();
        files.add("postgresql.conf", conf.as_bytes(), None).expect("a file");
        let diagnosis = crate::judge(&evidence(tree).with_files(files));
        diagnosis.of("F01").flat_map(|finding| finding.fix.clone()).collect()
    };
    let requested = |fixes: &[String]| -> Option<u64> {
        let mut numbers = fixes
            .iter()
            .filter_map(|fix| fix.strip_prefix("request ")?.split(' ').next());
        numbers.next()?.parse().ok()
    };
    let empty = || pool(machine(), "2048kB", 10, 10, 0);
    let pages = requested(&fixes(empty())).expect("a request for what is to be started");
    let server = postmaster(256).on(empty().file("/proc/100/root/var/lib/pg/postgresql.conf", conf));
    let both = fixes(server);
    assert_eq!(requested(&both), Some(pages), "{both:?}");
    let echo = format!("echo {pages} > ");
    assert!(both.iter().any(|fix| fix.starts_with(&echo)), "{both:?}");
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

#[test]
fn f01_takes_the_page_size_that_the_server_asks_for() {
    let with = |server: Process, text: &str| {
        let tree = server.on(pool(machine(), "2048kB", 100, 100, 0));
        found("F01", tree.file("/proc/100/root/var/lib/pg/postgresql.conf", text))
            .fix
            .join("\n")
    };
    let typed = postmaster(256).arg("-c").arg("huge_page_size=1GB");
    for fix in [with(postmaster(256), "huge_page_size = 1GB\n"), with(typed, "")] {
        assert!(fix.contains("it needs 1 pages of 1G, and 0 are spare"), "{fix}");
        assert!(!fix.contains("2048kB"), "{fix}");
    }
}

#[test]
fn f01_names_the_place_where_huge_pages_is_set() {
    let fix = |server: Process, name: &str| {
        let tree = server.on(pool(machine(), "2048kB", 300, 300, 0));
        found(
            "F01",
            tree.file(&format!("/proc/100/root/var/lib/pg/{name}"), "huge_pages = try\n"),
        )
        .fix
    };
    let typed = || postmaster(256).arg("-c").arg("huge_pages=try");
    for (server, name, place) in [
        (postmaster(256), "postgresql.conf", "in postgresql.conf"),
        (postmaster(256), "postgresql.auto.conf", "by ALTER SYSTEM"),
        (typed(), "postgresql.conf", "on its command line"),
    ] {
        let fix = fix(server, name);
        assert!(fix[0].starts_with(&format!("huge_pages = on {place},")), "{fix:?}");
    }
}

#[test]
fn f01_no_pool_helps_memory_of_system_v() {
    let segment = shared(4096, "/SYSV009c814b (deleted)");
    let server = process(100, "postgres").arg("-D").arg("/var/lib/pg").area(segment);
    let tree = server.on(machine()).file(
        "/proc/100/root/var/lib/pg/postgresql.conf",
        "shared_memory_type = sysv\n",
    );
    let finding = found("F01", tree);
    assert!(
        finding.fix[0].starts_with("leave shared_memory_type out"),
        "{finding:?}"
    );
    assert_eq!((finding.fix.len(), &finding.plan), (1, &None), "{finding:?}");
}

#[test]
fn f01_a_release_whose_memory_is_all_system_v_is_to_be_upgraded() {
    let segment = shared(4096, "/SYSV0052e2c1 (deleted)");
    let server = process(100, "postgres").arg("-D").arg("/var/lib/pg").area(segment);
    let conf = "/proc/100/root/var/lib/pg/postgresql.conf";
    let finding = found("F01", server.on(machine()).file(conf, "shared_buffers = 4GB\n"));
    assert!(finding.fix[0].starts_with("upgrade it"), "{finding:?}");
    assert_eq!((finding.fix.len(), &finding.plan), (1, &None), "{finding:?}");
    // It has no such setting.
    assert!(
        !finding.evidence.iter().any(|proof| proof.field == "huge_pages"),
        "{finding:?}"
    );
}

/// A limit of reservations fails a mapping as a pool does that is too small.
#[test]
fn limits_of_control_groups_are_raised_before_a_server_is_restarted() {
    let limit = "/sys/fs/cgroup/db/hugetlb.2MB.rsvd.max";
    let on = |server: Process, limit_of: u64| {
        let server = server.cgroup("/db");
        let tree = server.on(pool(machine(), "2048kB", 700, 700, 0));
        tree.line("/sys/fs/cgroup/db/hugetlb.2MB.max", "max")
            .line(limit, limit_of)
    };
    let fix = found("F01", on(postmaster(256), 100 << 20)).fix;
    assert_eq!(fix[0], format!("echo {} > {limit}", 256 << 20));
    assert!(fix.last().is_some_and(|last| last.contains("restart it")), "{fix:?}");
    // With pages in use limited, reservations get the same limit, which their own finding would set to the low one.
    let used = "/sys/fs/cgroup/db/hugetlb.2MB.max";
    let open = on(postmaster(256), 0).line(used, 0).line(limit, "max");
    let fix = found("F01", open).fix;
    let echo = |file: &str| format!("echo {} > {file}", 256 << 20);
    assert_eq!(fix[..2], [echo(used), echo(limit)]);
    let fix = found("F01", on(postmaster(256), 256 << 20)).fix;
    assert!(fix[0].starts_with("huge_pages = on"), "{fix:?}");
    let mariadb = process(104, "mariadbd").arg("--large-pages").area(anonymous(1024));
    let tree = on(mariadb, 100 << 20).file("/etc/my.cnf", "[mysqld]\ninnodb_buffer_pool_size = 1G\n");
    let fix = found("F05", tree).fix;
    assert!(fix[0].starts_with("echo ") && fix[0].ends_with(limit), "{fix:?}");
}

#[test]
fn f05_pages_that_are_reserved_for_a_server_are_its_own() {
    let server = process(104, "mariadbd")
        .arg("--large-pages")
        .area(hugetlb(230, 2048).not_there())
        .area(anonymous(1024));
    let tree = server.on(pool(machine(), "2048kB", 200, 200, 115));
    let finding = found(
        "F05",
        tree.file("/etc/my.cnf", "[mysqld]\ninnodb_buffer_pool_size = 1G\n"),
    );
    assert!(
        finding.consequence.contains("1 of its 2 large allocations (1G)"),
        "{finding:?}"
    );
    let fix = finding.fix.join("\n");
    assert!(fix.contains("echo 646 > "), "what it needs, and no more: {fix}");
}

#[test]
fn f01_a_server_with_huge_pages_on_was_started_before_it_was_set() {
    let tree = postmaster(256).on(pool(machine(), "2048kB", 300, 300, 0));
    let conf = "/proc/100/root/var/lib/pg/postgresql.conf";
    let fix = found("F01", tree.file(conf, "huge_pages = on\n")).fix;
    let restart = "restart it: it was started before huge_pages = on was set (/var/lib/pg/postgresql.conf:1)";
    assert_eq!(fix, [restart]);
}
