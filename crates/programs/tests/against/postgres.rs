//! 70 lines of postgresql.conf against what `postgres -C` of version 15 printed for them, and against the server that is installed.

use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use programs::config::Given;
use programs::config::given::FileKind;
use programs::postgres::value::{Value, value};

/// The setting, a line, and what the server makes of it: a number in the setting's own unit, a word, or nothing, where it does not start.
const LINES: [(&str, &str, &str); 70] = [
    ("huge_pages", "huge_pages = on", "on"),
    ("huge_pages", "huge_pages = ON", "on"),
    ("huge_pages", "huge_pages = On", "on"),
    ("huge_pages", "huge_pages = true", "on"),
    ("huge_pages", "huge_pages = 'yes'", "on"),
    ("huge_pages", "huge_pages = 1", "on"),
    ("huge_pages", "huge_pages = t", ""),
    ("huge_pages", "huge_pages = tru", ""),
    ("huge_pages", "huge_pages = OFF", "off"),
    ("huge_pages", "huge_pages = no", "off"),
    ("huge_pages", "huge_pages = False", "off"),
    ("huge_pages", "huge_pages = 0", "off"),
    ("huge_pages", "huge_pages = try", "try"),
    ("huge_pages", "HUGE_PAGES TRY # comment", "try"),
    ("huge_pages", "huge_pages = 'on '", ""),
    ("huge_pages", "huge_pages = 2", ""),
    ("huge_pages", "huge_pages = auto", ""),
    ("huge_pages", "huge_pages =", ""),
    ("huge_pages", "huge_pages = on off", ""),
    ("huge_pages", "huge_pages on;", ""),
    ("shared_buffers", "shared_buffers = 8GB", "1048576"),
    ("shared_buffers", "shared_buffers = 8G", ""),
    ("shared_buffers", "shared_buffers = 8gb", ""),
    ("shared_buffers", "shared_buffers = 8Gb", ""),
    ("shared_buffers", "shared_buffers = 8 GB", ""),
    ("shared_buffers", "shared_buffers = '8 GB'", "1048576"),
    ("shared_buffers", "shared_buffers = ' 8GB '", "1048576"),
    ("shared_buffers", "shared_buffers = \"8GB\"", ""),
    ("shared_buffers", "shared_buffers 1TB", "134217728"),
    ("shared_buffers", "shared_buffers = 512MB# comment", "65536"),
    ("shared_buffers", "shared_buffers = 524288kB", "65536"),
    ("shared_buffers", "shared_buffers = 524288KB", ""),
    ("shared_buffers", "shared_buffers = 536870912B", "65536"),
    ("shared_buffers", "shared_buffers = 536870912", "536870912"),
    ("shared_buffers", "shared_buffers = 16384", "16384"),
    ("shared_buffers", "shared_buffers = 3.9GB", ""),
    ("shared_buffers", "shared_buffers = '3.9GB'", "511232"),
    ("shared_buffers", "shared_buffers = '0.5 GB'", "65536"),
    ("shared_buffers", "shared_buffers = '1e6kB'", "125000"),
    ("shared_buffers", "shared_buffers = 0x4000", "16384"),
    ("shared_buffers", "shared_buffers = 040000", "16384"),
    ("shared_buffers", "shared_buffers = 2000.7", "2001"),
    ("shared_buffers", "shared_buffers = '.5GB'", "65536"),
    ("shared_buffers", "shared_buffers = -1", ""),
    ("shared_buffers", "shared_buffers = 15", ""),
    ("shared_buffers", "shared_buffers = 16TB", ""),
    ("shared_buffers", "shared_buffers = 8TB", ""),
    ("shared_buffers", "shared_buffers = 100%", ""),
    ("shared_buffers", "shared_buffers = 4,096MB", ""),
    ("shared_buffers", "shared_buffers = 25kB", ""),
    ("wal_buffers", "wal_buffers = -1", "-1"),
    ("wal_buffers", "wal_buffers = 64MB", "8192"),
    ("wal_buffers", "wal_buffers = 2GB", ""),
    ("wal_buffers", "wal_buffers = -2", ""),
    ("max_connections", "max_connections = 500", "500"),
    ("max_connections", "max_connections = 1k", ""),
    ("max_connections", "max_connections = 1e3", ""),
    ("max_connections", "max_connections = '1e3'", "1000"),
    ("max_connections", "max_connections = 262144", ""),
    ("max_connections", "max_connections = 10.5", "10"),
    ("max_locks_per_transaction", "max_locks_per_transaction = 9", ""),
    ("max_locks_per_transaction", "max_locks_per_transaction = 512", "512"),
    ("track_activity_query_size", "track_activity_query_size = 16kB", "16384"),
    (
        "track_activity_query_size",
        "track_activity_query_size = 16384",
        "16384",
    ),
    ("track_activity_query_size", "track_activity_query_size = 2MB", ""),
    ("min_dynamic_shared_memory", "min_dynamic_shared_memory = 2GB", "2048"),
    ("min_dynamic_shared_memory", "min_dynamic_shared_memory = 256", "256"),
    ("huge_page_size", "huge_page_size = 1GB", "1048576"),
    ("huge_page_size", "huge_page_size = 2048", "2048"),
    ("huge_page_size", "huge_page_size = 0", "0"),
];

/// Bytes of a number without a unit.
fn unit(name: &str) -> u64 {
    match name {
        "shared_buffers" | "wal_buffers" => 8192,
        "min_dynamic_shared_memory" => 1 << 20,
        "huge_page_size" => 1 << 10,
        _ => 1,
    }
}

/// What our reader makes of it, in the server's form.
fn read(name: &str, line: &str) -> String {
    let mut given = Given::default();
    given
        .add("postgresql.conf", line.as_bytes(), Some(FileKind::Postgres))
        .expect("a file");
    let servers = given.servers(programs::Kind::Postgres);
    let server = &servers[0];
    let Some(setting) = server.settings.last(name).filter(|_| given.garbled.is_empty()) else {
        assert!(
            !given.garbled.is_empty() && server.settings.last(name).is_none_or(|_| server.postgres().is_err()),
            "{line}"
        );
        return String::new();
    };
    match value(name, &setting.value).expect("a value").expect("a known setting") {
        Value::HugePages(huge_pages) => huge_pages.word().to_owned(),
        Value::Bytes(bytes) => (bytes.0 / unit(name)).to_string(),
        Value::Count(count) => count.to_string(),
        Value::Automatic => "-1".to_owned(),
    }
}

#[test]
fn lines_are_read_as_version_15_reads_them() {
    for (name, line, said) in LINES {
        assert_eq!(read(name, line), said, "{line}");
    }
}

fn program() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    versions
        .map(|entry| entry.path().join("bin/postgres"))
        .find(|path| path.is_file())
}

/// It never runs as root; nobody may read the directory.
fn ask(program: &Path, directory: &Path, name: &str, line: &str) -> String {
    let file = directory.join("postgresql.conf");
    std::fs::write(&file, format!("{line}\n")).expect("written");
    let mut command = Command::new(program);
    command.args(["-D"]).arg(directory).args(["-C", name]);
    if rustix::process::geteuid().is_root() {
        chown(&file, Some(65534), Some(65534)).expect("its owner");
        command.uid(65534).gid(65534);
    }
    let output = command.output().expect("postgres");
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if output.status.success() { said } else { String::new() }
}

#[test]
fn lines_are_read_as_the_installed_server_reads_them() {
    let Some(program) = program() else {
        return testing::missing("postgres");
    };
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).expect("open");
    if ask(&program, directory.path(), "shared_buffers", "shared_buffers = 1GB") != "131072" {
        return testing::skipped("postgres -C does not answer here");
    }
    for (name, line, _) in LINES {
        assert_eq!(read(name, line), ask(&program, directory.path(), name, line), "{line}");
    }
}
