//! Plans for databases: their own files, and ALTER SYSTEM.

use host::Source;
use model::plan::Target;
use programs::config::Setting;

use super::{TWO, after, failed, planned, small, wanted};
use crate::{Facts, Wanted};

#[test]
fn a_setting_that_alter_system_made_is_changed_by_alter_system() {
    let conf = "data_directory = '/var/lib/postgresql/15/main'\nhuge_pages = try\n";
    let tree = small().file("/etc/postgresql/15/main/postgresql.conf", conf).file(
        "/var/lib/postgresql/15/main/postgresql.auto.conf",
        "huge_pages = 'try'\n",
    );
    let source = Source::from_tree("test", tree);
    let goal = "postgres:/etc/postgresql/15/main/postgresql.conf,service=none";
    let plan = planned(&source, &[wanted(goal, &[(TWO, 540)])]);
    let last = plan.changes.last().expect("a change");
    assert!(matches!(&last.target, Target::Instruction { .. }), "{last:?}");
    assert_eq!(
        last.after.text().as_deref(),
        Some("ALTER SYSTEM SET huge_pages = 'on';")
    );
    assert!(
        last.why.contains("/var/lib/postgresql/15/main/postgresql.auto.conf"),
        "{}",
        last.why
    );
    assert_eq!(
        last.risk.restart,
        ["the server that reads /etc/postgresql/15/main/postgresql.conf"]
    );
}

#[test]
fn a_file_that_postgresql_conf_includes_and_that_sets_huge_pages_otherwise_is_named() {
    let notes = |included: &str| {
        let tree = small()
            .file("/pg/postgresql.conf", "huge_pages = on\ninclude_dir 'conf.d'\n")
            .file("/pg/conf.d/a.conf", included);
        let source = Source::from_tree("test", tree);
        planned(&source, &[wanted("postgres:/pg/postgresql.conf", &[(TWO, 66)])]).notes
    };
    let off = notes("\nhuge_pages = off\n");
    assert!(
        off.iter().any(|note| note.starts_with("/pg/conf.d/a.conf:2")),
        "{off:?}"
    );
    let on = notes("huge_pages = on\n");
    assert!(!on.iter().any(|note| note.contains("a.conf")), "{on:?}");
}

#[test]
fn shared_memory_of_another_type_becomes_mmap() {
    let tree = small().file("/pg/postgresql.conf", "shared_memory_type = sysv\nhuge_pages = on\n");
    let source = Source::from_tree("test", tree);
    let plan = planned(&source, &[wanted("postgres:/pg/postgresql.conf", &[(TWO, 66)])]);
    let text = after(&plan, "/pg/postgresql.conf");
    assert_eq!(text, "shared_memory_type = mmap\nhuge_pages = on\n");
}

#[test]
fn a_file_that_my_cnf_includes_and_that_switches_large_pages_off_is_named() {
    let notes = |included: &str| {
        let tree = small()
            .file(
                "/etc/mysql/my.cnf",
                "[mysqld]\nlarge-pages\n!includedir /etc/mysql/conf.d\n",
            )
            .file("/etc/mysql/conf.d/a.cnf", included)
            .file("/etc/passwd", "mysql:x:27:27::/:/bin/sh\n")
            .file("/etc/group", "mysql:x:27:\n");
        let source = Source::from_tree("test", tree);
        planned(&source, &[wanted("innodb:/etc/mysql/my.cnf", &[(TWO, 66)])]).notes
    };
    let off = notes("[mysqld]\nport = 1\nskip-large-pages\n");
    assert!(
        off.iter().any(|note| note.starts_with("/etc/mysql/conf.d/a.cnf:3")),
        "{off:?}"
    );
    let tree = small()
        .file("/srv/my.cnf", "[mysqld]\nport=1\n[mysqld-8.0]\nlarge_pages=OFF\n")
        .file("/etc/passwd", "mysql:x:27:27::/:/bin/sh\n")
        .file("/etc/group", "mysql:x:27:\n");
    let source = Source::from_tree("test", tree);
    let later = planned(&source, &[wanted("innodb:/srv/my.cnf", &[(TWO, 66)])]).notes;
    let wins = "/srv/my.cnf:5 sets it to OFF in a later group";
    assert!(later.iter().any(|note| note.starts_with(wins)), "{later:?}");
    let on = notes("[mysqld]\nlarge-pages\n[mysqldump]\nlarge-pages = 0\n");
    let there = "/etc/mysql/conf.d/a.cnf:2 requests huge pages already";
    assert!(on.iter().any(|note| note == there), "{on:?}");
}

#[test]
fn configuration_files_of_databases_are_changed_in_one_line() {
    let conf = "shared_buffers = 1GB\nhuge_pages = try # default\nport = 5432\n";
    let tree = small()
        .file("/etc/postgresql/15/main/postgresql.conf", conf)
        .file("/etc/my.cnf", "[mysqld]\nport=3306\n")
        .file("/etc/passwd", "mysql:x:27:27::/:/bin/sh\n")
        .file("/etc/group", "mysql:x:27:\n");
    let source = Source::from_tree("test", tree);
    let goals = [
        wanted("postgres:/etc/postgresql/15/main/postgresql.conf", &[(TWO, 540)]),
        wanted("innodb:/etc/my.cnf", &[(TWO, 66)]),
    ];
    let plan = planned(&source, &goals);
    let text = after(&plan, "/etc/postgresql/15/main/postgresql.conf");
    assert_eq!(text, "shared_buffers = 1GB\nhuge_pages = on\nport = 5432\n");
    assert_eq!(after(&plan, "/etc/my.cnf"), "[mysqld]\nport=3306\nlarge-pages\n");
    assert_eq!(after(&plan, "/proc/sys/vm/hugetlb_shm_group"), "27");
    let kept = plan.changes.iter().filter_map(|change| match &change.target {
        Target::File { path, mode, owner } if path.ends_with("postgresql.conf") => Some((*mode, *owner)),
        _ => None,
    });
    assert_eq!(
        kept.collect::<Vec<_>>(),
        [(None, None)],
        "mode and owner of a file that is there stay"
    );
    assert!(failed(&source, &[wanted("postgres:/etc/none.conf", &[(TWO, 1)])]).contains("is not there"));
}

/// The check of a plan knows the words of goals by a list of its own.
#[test]
fn a_plan_takes_every_word_for_a_server() {
    let tree = small()
        .file("/srv/postgresql.conf", "shared_buffers = 1GB\n")
        .file("/srv/my.cnf", "[mysqld]\nport=3306\n")
        .file("/etc/passwd", "mysql:x:27:27::/:/bin/sh\n")
        .file("/etc/group", "mysql:x:27:\n");
    let source = Source::from_tree("test", tree);
    let after = |word: &str, file: &str| {
        after(
            &planned(&source, &[wanted(&format!("{word}:{file}"), &[(TWO, 66)])]),
            file,
        )
    };
    for word in ["postgres", "postgresql", "pg"] {
        assert!(
            after(word, "/srv/postgresql.conf").contains("huge_pages = on"),
            "{word}"
        );
    }
    for word in ["mysql", "mariadb", "innodb"] {
        assert!(after(word, "/srv/my.cnf").contains("large-pages"), "{word}");
    }
}

#[test]
fn mariadb_needs_a_line_of_its_own_and_no_group() {
    let tree = small()
        .file("/srv/m/my.cnf", "[mysqld]\nport=3306\n")
        .file("/etc/passwd", "mysql:x:27:27::/:/bin/sh\n")
        .file("/etc/group", "mysql:x:27:\n");
    let program = Facts {
        is_mariadb: true,
        ..Facts::default()
    };
    let wanted = wanted("mysql:/srv/m/my.cnf,service=none", &[(TWO, 643)]);
    let plan = planned(&Source::from_tree("test", tree), &[Wanted { program, ..wanted }]);
    let targets: Vec<String> = plan.changes.iter().map(|change| change.target.to_string()).collect();
    assert!(
        targets
            .iter()
            .all(|target| !target.contains("limits") && !target.contains("shm")),
        "{targets:?}"
    );
    assert_eq!(after(&plan, "/srv/m/my.cnf"), "[mysqld]\nport=3306\nlarge-pages\n");
}

#[test]
fn what_the_command_line_of_the_running_server_sets_wins_over_its_file() {
    let source = |name: &str, text: &str| Source::from_tree("test", small().file(name, text));
    let typed = |goal: &str, (name, value): (&str, &str)| {
        let program = Facts {
            typed: [Setting::new("/proc/7/cmdline", name, value)].into_iter().collect(),
            is_mariadb: true,
            ..Facts::default()
        };
        let wanted = wanted(goal, &[(TWO, 66)]);
        [Wanted { program, ..wanted }]
    };
    let conf = source("/pg/postgresql.conf", "port = 1\nshared_buffers = 1GB\n");
    let of = |set| typed("postgres:/pg/postgresql.conf", set);
    let off = planned(&conf, &of(("huge_pages", "off")));
    let text = after(&off, "command-line");
    assert_eq!(text, "start the server without huge_pages = off on its command line");
    assert_eq!(
        after(&off, "/pg/postgresql.conf"),
        "port = 1\nshared_buffers = 1GB\nhuge_pages = on\n"
    );
    // With these it would not start.
    for set in [("shared_memory_type", "sysv"), ("huge_page_size", "1GB")] {
        let why = failed(&conf, &typed("postgres:/pg/postgresql.conf,pages=2M", set));
        assert!(
            why.contains(&format!("sets {} to {} (/proc/7/cmdline)", set.0, set.1)),
            "{why}"
        );
    }
    for set in [
        ("huge_pages", "ON"),
        ("shared_memory_type", "mmap"),
        ("huge_page_size", "1GB"),
    ] {
        assert!(
            planned(&conf, &of(set))
                .changes
                .iter()
                .all(|change| change.id != "command-line"),
            "{set:?}"
        );
    }
    let conf = source("/srv/my.cnf", "[mysqld]\nport=1\n");
    let off = planned(&conf, &typed("mysql:/srv/my.cnf", ("large_pages", "OFF")));
    assert!(
        after(&off, "command-line").contains("without large_pages = OFF"),
        "{off:?}"
    );
    assert_eq!(after(&off, "/srv/my.cnf"), "[mysqld]\nport=1\nlarge-pages\n");
    let on = planned(&conf, &typed("mysql:/srv/my.cnf", ("large_pages", "ON")));
    assert!(
        on.notes
            .iter()
            .any(|note| note == "/proc/7/cmdline requests huge pages already"),
        "{on:?}"
    );
}
