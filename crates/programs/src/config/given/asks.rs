//! Programs in containers that ask for hugetlb pages when there are some, and how each does not.

use super::pod::{image, named};
use super::shell::file_name;
use super::starts::Start;
use super::yaml::Node;
use crate::config::Setting;
use crate::{Kind, dpdk, image_names, in_list};

/// A program that asks for hugetlb pages when there are some.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asks {
    /// `FILE:LINE` of what shows it.
    pub place: String,
    pub written: String,
    pub program: &'static str,
    /// How it is set not to ask.
    pub switch: &'static str,
}

impl Asks {
    pub(super) fn new(place: String, written: &str, program: &'static str, switch: &'static str) -> Self {
        Self {
            place,
            written: written.to_owned(),
            program,
            switch,
        }
    }

    /// Do its later releases pass over what is written?
    pub fn is_of_old_release(&self) -> bool {
        self.program == OLD_VPP
    }

    /// What becomes of it without them.
    pub fn outcome(&self) -> &'static str {
        // It catches the signal (eal_memalloc.c).
        if [DPDK, OLD_VPP].contains(&self.program) {
            "does not start"
        } else {
            "ends with SIGBUS"
        }
    }

    /// A JVM with the option, `written` so.
    fn java(place: String, written: &str) -> Self {
        Self::new(place, written, "the JVM", "-XX:-UseLargePages")
    }
}

/// The host's own hugetlbfs, at the places and by the names that guides give it: /dev/hugepages, /mnt/hugepages-1G, /var/lib/hugetlbfs.
pub(super) fn is_of_host(volume: &Node) -> bool {
    let path = volume
        .at(&["hostPath", "path"])
        .and_then(Node::text)
        .unwrap_or_default();
    let is_size =
        |rest: &str| rest.is_empty() || rest.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit());
    let is_name = |part: &str| part == "hugetlbfs" || part.strip_prefix("hugepages").is_some_and(is_size);
    let is_place = ["/dev/", "/mnt/", "/run/", "/var/lib/"]
        .iter()
        .any(|place| path.starts_with(place));
    is_place && path.split('/').any(is_name)
}

/// What maps files of the host's hugetlbfs, of whose volumes `of_host` are the names.
pub(super) fn of_mounts(mounts: &[Node], of_host: &[String]) -> Option<Asks> {
    let is_written = |mount: &Node| mount.text_of("readOnly") != Some("true");
    let mount = mounts
        .iter()
        .find(|mount| of_host.contains(&named(mount)) && is_written(mount))?;
    let program = "a program that maps files there";
    Some(Asks::new(
        mount.place(),
        "the host's hugetlbfs",
        program,
        "without that volume",
    ))
}

const LARGE: &str = "-XX:+UseLargePages";

/// Is that option within a text, and not a longer one that begins so?
fn has_large(text: &str) -> bool {
    let goes_on = |rest: &str| rest.starts_with(|c: char| c.is_ascii_alphanumeric());
    text.split(LARGE).skip(1).any(|rest| !goes_on(rest))
}

/// A JVM with the option among its variables.
pub(super) fn of_options(environment: &[Setting]) -> Option<Asks> {
    let line = environment.iter().find(|line| has_large(&line.value))?;
    Some(Asks::java(line.place.clone(), &format!("{}: {LARGE}", line.name)))
}

/// A JVM with the option in its command or environment; PostgreSQL and PHP's OPcache, which try by default.
pub(super) fn of_start(node: &Node, words: &[&Node], start: &Start) -> Option<Asks> {
    if let Some(word) = words.iter().find(|word| word.text().is_some_and(has_large)) {
        return Some(Asks::java(word.place(), LARGE));
    }
    if let Some(asks) = of_options(&start.environment) {
        return Some(asks);
    }
    let by_malloc = start.environment.iter().find_map(|line| Some((line, malloc(line)?)));
    if let Some((line, switch)) = by_malloc {
        let written = format!("{}={}", line.name, line.value);
        return Some(Asks::new(line.place.clone(), &written, "malloc", switch));
    }
    if let Some(asks) = by_program(node, words, start) {
        return Some(asks);
    }
    let image = node.get("image")?;
    let written = image.text()?;
    let is_postgres = image_names::program(written) == Some(Kind::Postgres);
    let data = data(&start.environment);
    let (shown, written, (program, switch)) = match data {
        _ if is_postgres && is_server(&start.words) => (image.place(), written, POSTGRES),
        Some(data) if is_server(&start.words) => (data.place.clone(), "PGDATA", POSTGRES),
        _ if words.is_empty() && image_names::has_opcache(written) => (image.place(), written, OPCACHE),
        _ => return None,
    };
    Some(Asks::new(shown, written, program, switch))
}

const DPDK: &str = "DPDK";
const OLD_VPP: &str = "VPP before 19.04";

/// Programs that ask by default, and how each does not.
const OPCACHE: (&str, &str) = (
    "PHP's OPcache",
    "opcache.memory_consumption of an odd number of MB, such as 127 (OPcache asks for whole pages of 2M), or opcache.enable=0",
);
const POSTGRES: (&str, &str) = ("PostgreSQL (huge_pages = try)", "huge_pages = off");

/// The data directory of PostgreSQL, which images of any name take from this variable.
pub(super) fn data(environment: &[Setting]) -> Option<&Setting> {
    environment.iter().find(|set| set.name == "PGDATA")
}

/// Does the command start the server, or the directory's preparation, which starts it too? An image without a command does; its other programs
/// copy, wait for a server or ask one.
fn is_server(words: &[String]) -> bool {
    let name = |word: &str| file_name(word.trim_matches([';', '&', '|', '(', ')', '"', '\''])).to_owned();
    let is_one = |word: &String| {
        let name = name(word);
        SERVERS.contains(&name.as_str()) || name.ends_with("entrypoint.sh") || word.ends_with("/bin/postgres")
    };
    // Elsewhere it may be the name of a user or of a database.
    let is_started = |pair: &[String]| {
        let before = name(&pair[0]);
        let is_before = BEFORE.contains(&before.as_str()) || pair[0].ends_with([';', '&', '|']);
        is_before && name(&pair[1]) == "postgres"
    };
    match words.first() {
        None => true,
        Some(first) if first.starts_with('-') => true,
        Some(_) => called(words) == Some("postgres") || words.iter().any(is_one) || words.windows(2).any(is_started),
    }
}

/// Words behind which `postgres` is the program: those of shells, and the user of gosu, who has the same name.
const BEFORE: [&str; 8] = ["exec", "gosu", "su-exec", "then", "do", "else", "--", "postgres"];

/// Programs and scripts of images that start it.
const SERVERS: [&str; 11] = [
    "initdb",
    "launch.sh",
    "patroni",
    "pg_autoctl",
    "pg_ctl",
    "pg_ctlcluster",
    "postmaster",
    "run-postgresql",
    "run-postgresql-master",
    "run-postgresql-slave",
    "stolon-keeper",
];

/// Programs that map RandomX's memory by MAP_HUGETLB where a pool is: their names, images that start them, and how each does not.
type OfRandomX = (&'static str, &'static [&'static str], &'static str, &'static str);
const OF_RANDOMX: [OfRandomX; 2] = [
    (
        "monerod",
        &["monerod", "simple-monerod"],
        "monerod",
        "MONERO_RANDOMX_UMASK=1 in its environment",
    ),
    ("xmrig", &["xmrig"], "XMRig", "--no-huge-pages"),
];

/// The program of a command, behind a shell or numactl; none where there are options alone.
fn called(command: &[String]) -> Option<&str> {
    let is_before = |word: &String| {
        word.starts_with('-')
            || word.contains('=')
            || ["sh", "bash", "ash", "exec", "numactl"].contains(&file_name(word))
    };
    let program = command.iter().find(|word| !is_before(word))?;
    Some(file_name(program)).filter(|_| !command[0].starts_with('-'))
}

/// By its command, or by its image where it has none: programs of RandomX, and Ray, whose object store is configured to take them.
fn by_program(node: &Node, words: &[&Node], start: &Start) -> Option<Asks> {
    let is_called = |name: &str| called(&start.words) == Some(name);
    let of_ray = words
        .iter()
        .find(|word| is_called("ray") && word.text().is_some_and(|text| text.contains("--huge-pages")));
    if let Some(word) = of_ray {
        let switch = "without --huge-pages and --plasma-directory";
        return Some(Asks::new(word.place(), "--huge-pages", "Ray's object store", switch));
    }
    if let Some(set) = start.socket_mem() {
        let written = format!("{} {}", set.name, set.value);
        let (program, switch) = match dpdk::is_of_vpp(&set) {
            true => (OLD_VPP, "no-hugetlb in its section dpdk"),
            false => (DPDK, "--no-huge"),
        };
        return Some(Asks::new(set.place, &written, program, switch));
    }
    let image = image(node).unwrap_or_default();
    let has_command = start.words.first().is_some_and(|word| !word.starts_with('-'));
    let is_image = |names: &[&str]| !has_command && names.contains(&image_names::name(image));
    let (name, _, program, switch) = OF_RANDOMX
        .into_iter()
        .find(|(name, images, ..)| is_called(name) || is_image(images))?;
    // Its first bit is that of huge pages. It may be hexadecimal.
    let masks = |line: &Setting| {
        let last = line.value.chars().next_back().and_then(|digit| digit.to_digit(16));
        line.name == "MONERO_RANDOMX_UMASK" && last.is_some_and(|digit| digit % 2 == 1)
    };
    if start.words.iter().any(|word| word == switch) || (name == "monerod" && start.environment.iter().any(masks)) {
        return None;
    }
    let written = if is_called(name) { name } else { image };
    let shown = words.first().copied().or_else(|| node.get("image"))?;
    Some(Asks::new(shown.place(), written, program, switch))
}

/// Does a variable make malloc ask for pages of a pool? How it does not.
fn malloc(line: &Setting) -> Option<&'static str> {
    match line.name.as_str() {
        "HUGETLB_MORECORE" if !matches!(&*line.value, "no" | "thp") => Some("without HUGETLB_MORECORE"),
        // A size of its own may be that of another pool.
        "GLIBC_TUNABLES" if in_list(&line.value, "glibc.malloc.hugetlb") == Some("2") => {
            Some("glibc.malloc.hugetlb=1, which asks for THP")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{has_large, is_server};

    #[test]
    fn an_option_that_begins_as_another_is_not_that_one() {
        assert!(has_large("-Xmx1g -XX:+UseLargePages") && has_large("exec java '-XX:+UseLargePages' Main"));
        assert!(!has_large("-XX:+UseLargePagesIndividualAllocation -Xmx1g"));
    }

    #[test]
    fn tools_of_postgresql_are_not_the_server() {
        let is = |line: &str| {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            is_server(&words)
        };
        for line in [
            "",
            "-c max_connections=200",
            "postgres -c huge_pages=try",
            "/usr/lib/postgresql/16/bin/postgres -D /data",
            "docker-entrypoint.sh postgres",
            "numactl --interleave=all postgres",
            "patroni /etc/patroni",
            "gosu postgres postgres -D /data",
            "tini -- postgres",
            "sh -c chown -R postgres /data && exec docker-entrypoint.sh postgres",
            "bash -c mkdir -p /data; postgres -D /data",
            "sh -c initdb -D /data",
            "run-postgresql",
        ] {
            assert!(is(line), "{line}");
        }
        for line in [
            "wal-g backup-push /var/lib/postgresql/data",
            "pg_restore -d app /b/app.dump",
            "pgbackrest --stanza=db backup",
            "barman receive-wal db",
            "vacuumdb --all -U postgres",
            "psql -U postgres -d postgres",
            "chown -R postgres /data",
            "sh -c until pg_isready -U postgres; do sleep 1; done",
            "sh -c pg_dump -U postgres app > /b/app.sql && ls /docker-entrypoint-initdb.d",
            "/bin/sh",
            "sleep infinity",
        ] {
            assert!(!is(line), "{line}");
        }
    }
}
