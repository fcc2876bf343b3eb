//! Memory that programs are configured to take, of every place where it is written.

use super::super::Given;
use super::Confined;
use super::taken::{binary, decimal};
use model::Bytes;

/// What the only program of a file is configured to take, its limit, and whether that is too much.
fn confined(path: &str, text: &str) -> Option<(String, Bytes, Bytes, bool)> {
    let mut given = Given::default();
    given.add(path, text.as_bytes(), None).expect("a file");
    let all = given.confined();
    assert!(all.len() < 2, "{all:?}");
    let own = all.into_iter().next()?;
    let is_full = own.taken.exceeds(own.limit);
    Some((own.taken.set.place, own.taken.bytes, own.limit, is_full))
}

fn compose(lines: &str) -> String {
    format!("services:\n  app:\n    image: app:1\n    mem_limit: 4g\n{lines}")
}

/// What a container of 4G takes by these lines: at which line of the file, how much, and whether that is all of it.
fn of_container(cases: &[(&str, &str, Bytes, bool)]) {
    for &(lines, place, bytes, is_full) in cases {
        let own = Some((place.to_owned(), bytes, Bytes::gib(4), is_full));
        assert_eq!(confined("c/compose.yaml", &compose(lines)), own, "{lines}");
    }
}

#[test]
fn heaps_of_every_place_count_against_the_limit() {
    of_container(&[
        (
            "    command: java -Xmx4g -jar a.jar\n",
            "c/compose.yaml:5",
            Bytes::gib(4),
            true,
        ),
        (
            "    command: sh -c \"exec java -Xmx3g -jar a.jar\"\n",
            "c/compose.yaml:5",
            Bytes::gib(3),
            false,
        ),
        (
            "    environment:\n      JAVA_TOOL_OPTIONS: -XX:MaxRAMPercentage=75.0\n",
            "c/compose.yaml:6",
            Bytes::gib(3),
            false,
        ),
        (
            "    environment:\n      - JAVA_OPTS=-XX:MaxRAMFraction=1\n",
            "c/compose.yaml:6",
            Bytes::gib(4),
            true,
        ),
        (
            "    environment:\n      - SOLR_HEAP=4g\n",
            "c/compose.yaml:6",
            Bytes::gib(4),
            true,
        ),
        (
            "    environment:\n      - JAVA_OPTS=-Xmx3g -XX:MaxDirectMemorySize=1g\n",
            "c/compose.yaml:6",
            Bytes::gib(4),
            true,
        ),
    ]);
    for lines in [
        "    command: java -jar a.jar\n",
        "    command: java -XX:MaxRAMPercentage=100 -XX:-UseContainerSupport -jar a.jar\n",
    ] {
        assert_eq!(confined("c/compose.yaml", &compose(lines)), None, "{lines}");
    }
}

#[test]
fn sizes_of_other_programs_count_against_the_limit() {
    of_container(&[
        (
            "    environment:\n      - NODE_OPTIONS=--max-old-space-size=3072\n",
            "c/compose.yaml:6",
            Bytes::gib(3),
            false,
        ),
        (
            "    command: redis-server --maxmemory 4gb\n",
            "c/compose.yaml:5",
            Bytes::gib(4),
            true,
        ),
        (
            "    command: memcached -m 4096\n",
            "c/compose.yaml:5",
            Bytes::gib(4),
            true,
        ),
    ]);
}

#[test]
fn services_and_commands_have_limits_too() {
    let unit = "[Service]\nMemoryMax=2G\nEnvironment=\"OPTS=-Xms2g\"\nExecStart=/usr/bin/java -Xmx2g -jar /a.jar\n";
    let full = Some(("a.service:4".to_owned(), Bytes::gib(2), Bytes::gib(2), true));
    assert_eq!(confined("a.service", unit), full);
    assert_eq!(confined("a.service", &unit.replace("2G", "infinity")), None);
    let run = "docker run -m 1g -e JAVA_OPTS=-Xmx1g app:1\n";
    let full = Some(("run:1".to_owned(), Bytes::gib(1), Bytes::gib(1), true));
    assert_eq!(confined("run", run), full);
}

fn of_files(files: &[(&str, &str)]) -> Vec<Confined> {
    let mut given = Given::default();
    for (path, text) in files {
        given.add(path, text.as_bytes(), None).expect("a file");
    }
    given.confined()
}

#[test]
fn a_file_of_options_belongs_to_a_service_that_reads_it() {
    let of = |path: &str, command: &str| {
        let unit = format!("[Service]\nMemoryMax=4G\nExecStart={command}\n");
        let all = of_files(&[("a.service", &unit), (path, "-Xms4g\n-Xmx4g\n")]);
        let places = all
            .into_iter()
            .map(|own| (own.taken.set.place, own.taken.bytes.0 >> 30));
        places.collect::<Vec<_>>()
    };
    let elasticsearch = "/usr/share/elasticsearch/bin/systemd-entrypoint";
    let full = |path: &str| vec![(path.to_owned(), 4)];
    assert_eq!(of("jvm.options", elasticsearch), full("jvm.options"));
    assert_eq!(of("app.vmoptions", "/opt/app/run app.vmoptions"), full("app.vmoptions"));
    assert!(of("/etc/logstash/jvm.options", elasticsearch).is_empty());
    assert!(of("jvm.options", "/usr/sbin/nginx").is_empty());
}

#[test]
fn a_server_s_file_counts_for_a_container_that_mounts_or_names_it() {
    let file = ("conf/my.cnf", "[mysqld]\ninnodb_buffer_pool_size=8G\n");
    let of = |lines: &str| {
        let compose = format!("services:\n  db:\n    image: mysql:8\n    mem_limit: 1g\n{lines}");
        let all = of_files(&[("compose.yaml", &compose), file]);
        all.first().map(|own| own.taken.bytes)
    };
    for lines in [
        "    volumes:\n      - ./conf/my.cnf:/etc/mysql/conf.d/my.cnf:ro\n",
        "    volumes:\n      - ./conf:/etc/mysql/conf.d\n",
        "    volumes:\n      - {type: bind, source: ./conf/my.cnf, target: /etc/my.cnf}\n",
        "    command: --defaults-file=/etc/mysql/my.cnf\n",
    ] {
        assert_eq!(of(lines), Some(Bytes::gib(8)), "{lines}");
    }
    for lines in ["", "    volumes:\n      - conf:/var/lib/mysql\n"] {
        assert_eq!(of(lines), None, "{lines}");
    }
    let own = "    command: --innodb-buffer-pool-size=2G\n";
    assert_eq!(of(own), Some(Bytes::gib(2)));
}

#[test]
fn sizes_are_written_as_each_program_takes_them() {
    let of = |lines: &str| {
        let all = of_files(&[("compose.yaml", &compose(lines))]);
        all.first().map(|own| own.taken.written(Bytes::mib(1638)))
    };
    for (lines, written) in [
        ("    command: java -Xmx4294967296 -jar a.jar\n", "1638M"),
        ("    environment:\n      - HADOOP_HEAPSIZE=4096\n", "1638"),
        ("    environment:\n      - SOLR_HEAP=4g\n", "1638M"),
        (
            "    command: node --max-old-space-size=4096 a.js\n    environment: {A: b}\n",
            "1638",
        ),
        ("    command: mongod --wiredTigerCacheSizeGB 4\n", "1.59"),
        ("    command: redis-server --maxmemory 4gb\n", "1638mb"),
        ("    command: postgres -c shared_buffers=4GB\n", "1638MB"),
    ] {
        assert_eq!(of(lines).as_deref(), Some(written), "{lines}");
    }
    assert_eq!(
        of("    command: postgres -c shared_buffers=4GB -c huge_pages=on\n"),
        None
    );
}

#[test]
fn sizes_of_each_writer() {
    let both = |text: &str| (binary(text, 1), decimal(text, 1));
    assert_eq!(both("1g"), (Some(Bytes::gib(1)), Some(Bytes(1_000_000_000))));
    assert_eq!(both("10240m").0, Some(Bytes::mib(10240)));
    assert_eq!(both("1.5GiB").0, Some(Bytes(3 << 29)));
    assert_eq!(both("2gb"), (Some(Bytes::gib(2)), Some(Bytes::gib(2))));
    assert_eq!(
        (both("80%"), both("infinity"), both("-1")),
        ((None, None), (None, None), (None, None))
    );
    assert_eq!(binary("4096", 1 << 20), Some(Bytes::gib(4)));
    assert_eq!(binary("100b", 1 << 20), Some(Bytes(100)));
}
