//! Option files against what `mariadbd --print-defaults` and `--verbose --help` make of them.

use std::path::Path;
use std::process::Command;

use programs::config::mysql::{Options, is_on, size};

/// The option, a file, and what MariaDB 10.11 makes of it: `TRUE`, `FALSE`, bytes, or nothing where it does not start with it.
const FILES: [(&str, &str, &str); 36] = [
    ("large-pages", "[mysqld]\nlarge-pages", "TRUE"),
    ("large-pages", "[mysqld]\nlarge_pages=1", "TRUE"),
    ("large-pages", "[server]\nLARGE-PAGES", "TRUE"),
    ("large-pages", "[mariadb]\nlarge-pages=on", "TRUE"),
    ("large-pages", "[mariadbd]\nlarge_pages = 'ON'", "TRUE"),
    ("large-pages", "[mysqld-10.11]\nlarge-pages=true", "TRUE"),
    ("large-pages", "[mariadb-10.11]\nlarge-pages", "TRUE"),
    ("large-pages", "[client-server]\nlarge-pages", "TRUE"),
    ("large-pages", "[galera]\nlarge-pages", "TRUE"),
    ("large-pages", "[mysqld]\nloose-large-pages=1", "TRUE"),
    ("large-pages", "[mysqld]\nenable-large-pages", "TRUE"),
    ("large-pages", "[mysqld]\nlarge-pages = on # why", "TRUE"),
    ("large-pages", "[mysqld]\nlarge-pages = on# why", "TRUE"),
    ("large-pages", "[mysqld]\nskip-large-pages=0", "TRUE"),
    ("large-pages", "[MYSQLD]\nlarge-pages", "TRUE"),
    ("large-pages", "[mysqld]\nlarge-pages\nskip-large-pages=OFF", "FALSE"),
    ("large-pages", "[mysqld]\nlarge-pages=0", "FALSE"),
    ("large-pages", "[mysqld]\nlarge-pages=OFF", "FALSE"),
    ("large-pages", "[mysqld]\nlarge-pages=2", "FALSE"),
    ("large-pages", "[mysqld]\nlarge-pages=maybe", "FALSE"),
    ("large-pages", "[mysqld]\nlarge-pages\nskip-large-pages", "FALSE"),
    ("large-pages", "[mysqld]\nlarge-pages\nloose-skip-large-pages", "FALSE"),
    ("large-pages", "[mysqld]\nlarge-pages\ndisable-large-pages", "FALSE"),
    ("large-pages", "[mysqld]\n#large-pages\n;large-pages", "FALSE"),
    ("large-pages", "[mysqld_safe]\nlarge-pages", "FALSE"),
    ("large-pages", "[client]\nlarge-pages", "FALSE"),
    ("large-pages", "[mysqld]\n[other]\nlarge-pages", "FALSE"),
    (
        "innodb-buffer-pool-size",
        "[mysqld]\ninnodb_buffer_pool_size = 8G",
        "8589934592",
    ),
    (
        "innodb-buffer-pool-size",
        "[mysqld]\ninnodb-buffer-pool-size=8g",
        "8589934592",
    ),
    (
        "innodb-buffer-pool-size",
        "[mysqld]\ninnodb-buffer-pool-size=8GB",
        "8589934592",
    ),
    (
        "innodb-buffer-pool-size",
        "[mysqld]\ninnodb-buffer-pool-size=\"512M\"",
        "536870912",
    ),
    (
        "innodb-buffer-pool-size",
        "[mysqld]\ninnodb-buffer-pool-size=134217728",
        "134217728",
    ),
    ("innodb-buffer-pool-size", "[mysqld]\ninnodb-buffer-pool-size=1.5G", ""),
    (
        "innodb-buffer-pool-size",
        "[mysqld]\ninnodb-buffer-pool-size=0x8000000",
        "",
    ),
    ("innodb-buffer-pool-size", "[mysqld]\ninnodb-buffer-pool-size=8 G", ""),
    ("innodb-buffer-pool-size", "[mysqld]\ninnodb-buffer-pool-size=abc", ""),
];

fn read(option: &str, file: &str) -> String {
    let options = Options::parse("my.cnf", file);
    let setting = options.settings.last(&option.replace('-', "_"));
    match (option, setting) {
        ("large-pages", setting) => {
            let is_on = setting.is_some_and(|setting| is_on(&setting.value));
            is_on.to_string().to_uppercase()
        }
        (_, setting) => match setting.and_then(|setting| size(&setting.value)) {
            Some(bytes) => bytes.0.to_string(),
            None => {
                assert_eq!(options.refused.len(), 1, "{file}: said");
                String::new()
            }
        },
    }
}

#[test]
fn files_are_read_as_version_10_11_reads_them() {
    for (option, file, said) in FILES {
        assert_eq!(read(option, file), said, "{file}");
    }
}

fn ask(file: &Path, option: &str) -> Option<String> {
    let mut command = Command::new("mariadbd");
    let output = command
        .arg(format!("--defaults-file={}", file.display()))
        .args(["--verbose", "--help"]);
    let output = output.output().ok()?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let refused = String::from_utf8_lossy(&output.stderr).contains("Unknown suffix");
    let line = said
        .lines()
        .find_map(|line| line.strip_prefix(option)?.split_whitespace().next());
    Some(if refused {
        String::new()
    } else {
        line.unwrap_or_default().to_owned()
    })
}

#[test]
fn files_are_read_as_the_installed_server_reads_them() {
    let version = Command::new("mariadbd").arg("--version").output();
    let Ok(version) = version else {
        return testing::missing("mariadbd");
    };
    if !String::from_utf8_lossy(&version.stdout).contains(" 10.11.") {
        return testing::skipped("mariadbd is not of version 10.11, which the groups name");
    }
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("my.cnf");
    for (option, file, _) in FILES {
        std::fs::write(&path, format!("{file}\n")).expect("written");
        assert_eq!(ask(&path, option).as_deref(), Some(&*read(option, file)), "{file}");
    }
}
