//! A server's own configuration file: one that a goal names, that looks like that server's, and of it the settings of huge pages.

use super::super::hugetlbfs::is_size;
use super::parsed::{Line, set};
use super::sort::Sort;

/// Settings that only PostgreSQL has: a file of its settings holds one of them, set or as a comment.
const POSTGRES: [&str; 14] = [
    "autovacuum",
    "data_directory",
    "dynamic_shared_memory_type",
    "effective_cache_size",
    "hba_file",
    "huge_page_size",
    "huge_pages",
    "ident_file",
    "maintenance_work_mem",
    "max_connections",
    "max_wal_size",
    "shared_buffers",
    "wal_level",
    "work_mem",
];

/// Sections of my.cnf: programs of MySQL and MariaDB.
const MYSQL: [&str; 9] = [
    "client",
    "galera",
    "mariadb",
    "mariadbd",
    "mysql",
    "mysqld",
    "mysqldump",
    "mysqld_safe",
    "server",
];

/// The sort of a file that a goal names (`postgres:PATH` or `mysql:PATH,...`, by any of the words for either).
pub(super) fn named(goal: &str, path: &str) -> Option<Sort> {
    let (kind, rest) = goal.split_once(':')?;
    let (sort, ending) = match kind {
        "postgres" | "postgresql" | "pg" => (Sort::Postgres, ".conf"),
        "innodb" | "mysql" | "mariadb" => (Sort::Mysql, ".cnf"),
        _ => return None,
    };
    let named = rest.split(',').next().unwrap_or_default();
    let is_it = named == path && path.ends_with(ending) && may_be_a_server_s(path);
    is_it.then_some(sort)
}

/// Can a server's file be there? No kernel interface, program or hidden directory holds one, and of /etc only the directories of
/// database servers.
fn may_be_a_server_s(path: &str) -> bool {
    let foreign = ["/proc/", "/sys/", "/dev/", "/boot/", "/usr/", "/bin/", "/sbin/", "/lib"];
    let servers = ["postgres", "pgsql", "mysql", "mariadb", "my.cnf", "percona"];
    let below_etc = path.strip_prefix("/etc/").and_then(|below| below.split('/').next());
    !foreign.iter().any(|root| path.starts_with(root))
        && !path.contains("/.")
        && below_etc.is_none_or(|first| servers.iter().any(|server| first.contains(server)))
}

/// Why the file that is there is not that server's; `None` if it is.
pub(super) fn foreign(sort: Sort, text: &str) -> Option<&'static str> {
    match sort {
        Sort::Postgres if !is_postgres(text) => Some(
            "what stands there is not a configuration file of PostgreSQL: every line is NAME = VALUE, and one of them is \
             known from there, such as shared_buffers",
        ),
        Sort::Mysql if !is_mysql(text) => {
            Some("the text is not a my.cnf: every setting is in a section, and one of them is known, such as [mysqld]")
        }
        _ => None,
    }
}

fn is_postgres(text: &str) -> bool {
    let settings = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    let name = |line: &str| {
        line.split(['=', ' ', '\t'])
            .next()
            .unwrap_or_default()
            .to_ascii_lowercase()
    };
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.'))
    };
    let all_set = settings()
        .filter(|line| !line.starts_with('#'))
        .all(|line| is_name(&name(line)));
    all_set && settings().any(|line| POSTGRES.contains(&name(line.trim_start_matches(['#', ' '])).as_str()))
}

fn is_mysql(text: &str) -> bool {
    let mut lines = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with(['#', ';']));
    let is_head = |line: &str| line.starts_with('[') || line.starts_with("!include");
    let is_known = |line: &str| {
        let name = line.strip_prefix('[').and_then(|line| line.strip_suffix(']'));
        line.starts_with("!include") || name.is_some_and(|name| MYSQL.contains(&name))
    };
    lines.clone().next().is_some_and(is_head) && lines.any(is_known)
}

/// `huge_pages = on`, `huge_page_size = 2048kB`.
pub(super) fn postgres(line: &str) -> Line {
    let end = line.find(['=', ' ', '\t']).unwrap_or(line.len());
    let (name, rest) = line.split_at(end);
    let rest = rest.trim_start();
    let value = rest.strip_prefix('=').unwrap_or(rest).trim();
    match name.to_ascii_lowercase().as_str() {
        name @ "huge_pages" => set(name, matches!(value, "on" | "off" | "try"), "write on, off or try"),
        name @ "shared_memory_type" => set(name, value == "mmap", "write mmap: no other type takes huge pages"),
        name @ "huge_page_size" => {
            let size = value.strip_suffix("kB").map(|kib| format!("{kib}K"));
            let is_right = value == "0" || size.is_some_and(|size| is_size(&size));
            set(name, is_right, "write a page size in kB, or 0")
        }
        _ => Line::Other,
    }
}

/// `large-pages`, in the server's section.
pub(super) fn mysql(section: &str, line: &str) -> Line {
    let (name, value) = line
        .split_once('=')
        .map_or((line, ""), |(name, value)| (name, value.trim()));
    if section != "[mysqld]" || name.trim().replace('_', "-") != "large-pages" {
        return Line::Other;
    }
    let is_switch = value.is_empty() || matches!(value.to_ascii_lowercase().as_str(), "on" | "off" | "0" | "1");
    set("large-pages", is_switch, "write large-pages, or large-pages=ON or OFF")
}
