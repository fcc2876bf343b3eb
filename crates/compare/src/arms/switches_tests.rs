//! Where switches of known programs are put, and where they are not.

use std::ffi::OsString;

use super::{Known, Own, known, known_in_line, set, set_in_line};
use model::Bytes;

fn words(line: &[&str]) -> Vec<OsString> {
    line.iter().map(OsString::from).collect()
}

#[track_caller]
fn assert_set(line: &[&str], expected: &[&str]) {
    assert_eq!(set(&words(line), Own::Off), words(expected));
}

#[test]
fn a_database_is_set_at_the_end_of_its_arguments() {
    assert_set(
        &["/usr/lib/postgresql/15/bin/postgres", "-D", "/data"],
        &["/usr/lib/postgresql/15/bin/postgres", "-D", "/data", "--huge_pages=off"],
    );
    let pool = set(&words(&["postgres", "-D", "x"]), Own::Pool(Bytes::mib(2)));
    assert_eq!(pool.last(), Some(&OsString::from("--huge_pages=on")));
    let pool = set(&words(&["postgres"]), Own::Pool(Bytes::gib(1)));
    assert_eq!(
        pool,
        words(&["postgres", "--huge_pages=on", "--huge_page_size=1048576kB"])
    );
    assert_set(&["mysqld", "--user=x"], &["mysqld", "--user=x", "--large-pages=0"]);
}

#[test]
fn a_server_behind_an_option_without_a_value_is_no_value() {
    for line in [
        &["setpriv", "--reuid=104", "--regid=110", "--init-groups", "mariadbd"][..],
        &["setpriv", "--init-groups", "postgres"],
        &["numactl", "--interleave", "all", "mysqld"],
        &["sudo", "-E", "postgres"],
        &["nohup", "-x", "mysqld_safe"],
    ] {
        let known = known(&words(line)).map(|(_, word)| word);
        assert_eq!(
            known.as_deref(),
            Some(words(&line[line.len() - 1..])[0].as_os_str()),
            "{line:?}"
        );
    }
    assert_eq!(known(&words(&["sudo", "-u", "postgres", "true"])), None);
}

#[test]
fn launchers_and_shells_are_looked_through_and_the_names_of_users_are_no_programs() {
    assert_set(
        &[
            "setpriv",
            "--reuid",
            "postgres",
            "--clear-groups",
            "/bin/postgres",
            "-D",
            "x",
        ],
        &[
            "setpriv",
            "--reuid",
            "postgres",
            "--clear-groups",
            "/bin/postgres",
            "-D",
            "x",
            "--huge_pages=off",
        ],
    );
    assert_set(
        &["su", "postgres", "-c", "exec /usr/bin/postgres -D '/a b'"],
        &[
            "su",
            "postgres",
            "-c",
            "exec /usr/bin/postgres -D '/a b' --huge_pages=off",
        ],
    );
    assert_set(
        &["runuser", "-u", "postgres", "--", "postgres", "-D", "x"],
        &[
            "runuser",
            "-u",
            "postgres",
            "--",
            "postgres",
            "-D",
            "x",
            "--huge_pages=off",
        ],
    );
    for other in [
        &["sudo", "-u", "postgres", "./server"][..],
        &["tail", "-f", "/var/log/postgres"],
        &["sh", "-c", "echo postgres"],
        &["pg_ctl", "status"],
    ] {
        assert_set(other, other);
    }
}

#[test]
fn in_a_line_of_the_shell_only_the_command_that_starts_it_is_set() {
    let off = |line: &str| set_in_line(line, Own::Off);
    assert_eq!(
        off("pg_ctl -D /d -w start >/dev/null 2>&1 && pgbench -T5; true"),
        "pg_ctl -D /d -w start >/dev/null 2>&1 -o --huge_pages=off && pgbench -T5; true"
    );
    assert_eq!(
        off("su postgres -c 'pg_ctl -D /d start' | cat"),
        "su postgres -c 'pg_ctl -D /d start -o --huge_pages=off' | cat"
    );
    assert_eq!(off("pg_isready -h /tmp"), "pg_isready -h /tmp");
    assert_eq!(off("PGDATA=/x postgres &"), "PGDATA=/x postgres --huge_pages=off &");
}

#[test]
fn the_program_is_named_wherever_it_stands() {
    let found = |line: &[&str]| known(&words(line)).map(|(known, word)| (known, word.into_string().expect("text")));
    assert_eq!(
        found(&["/jdk/bin/java", "-jar", "x"]),
        Some((Known::Jvm, "/jdk/bin/java".to_owned()))
    );
    assert_eq!(
        found(&["su", "app", "-c", "cd /app; java -jar x"]),
        Some((Known::Jvm, "java".to_owned()))
    );
    assert_eq!(found(&["echo", "java"]), None);
    assert_eq!(
        known_in_line("true && mysqld_safe &").map(|found| found.0),
        Some(Known::Mysql)
    );
}
