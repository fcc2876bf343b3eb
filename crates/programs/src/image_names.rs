//! Container images by the program that they hold.

use crate::Kind;

/// The program of an image such as `registry.example.com/crunchy-postgres:centos8-13.5-0`.
pub(crate) fn program(image: &str) -> Option<Kind> {
    let name = name(image);
    Kind::of_image(name).or_else(|| Kind::of_image(without_version(name)))
}

/// PHP applications whose images switch OPcache on: it maps its memory by MAP_HUGETLB where a pool has the pages (php-src, shared_alloc_mmap.c).
const WITH_OPCACHE: [&str; 8] = [
    "drupal",
    "joomla",
    "matomo",
    "mediawiki",
    "nextcloud",
    "passbolt",
    "phpmyadmin",
    "wordpress",
];

pub(crate) fn has_opcache(image: &str) -> bool {
    // Images of a command-line tool run PHP without OPcache.
    WITH_OPCACHE.contains(&name(image)) && !image.contains(":cli")
}

/// Is it one of Elasticsearch or OpenSearch?
pub(crate) fn is_node(image: &str) -> bool {
    const NAMES: [&str; 5] = [
        "elasticsearch",
        "elasticsearch-oss",
        "elasticsearch-wolfi",
        "opendistro-for-elasticsearch",
        "opensearch",
    ];
    NAMES.contains(&name(image))
}

/// What such an image of a server runs if it is given options alone.
pub(crate) fn command(image: &str) -> Option<&'static str> {
    let kind = program(image).filter(|kind| kind.server().is_some())?;
    match name(image).starts_with("mariadb") {
        true => Some("mariadbd"),
        false => Some(kind.executable()),
    }
}

/// The `max_connections` that an image of PostgreSQL sets in place of the default one.
pub(crate) fn max_connections(image: &str) -> Option<&'static str> {
    (name(image) == "harbor-db").then_some("1024")
}

/// The major version of PostgreSQL in an image of it, by its name (`spilo-17`) or its tag (`16.2-alpine`, `ubi8-16.2-0`, `pg16`).
pub(crate) fn postgres_version(image: &str) -> Option<u32> {
    // The numbers of Citus are its own.
    program(image).filter(|kind| *kind == Kind::Postgres && name(image) != "citus")?;
    let path = image.split('@').next().unwrap_or(image);
    let last = path.rsplit('/').next().unwrap_or(path);
    let mut parts = last.split([':', '-']);
    parts.find_map(|part| {
        let number = part.strip_prefix("pg").unwrap_or(part).split('.').next()?;
        number.parse().ok().filter(|major| (9..40).contains(major))
    })
}

/// The last part of an image's path, without tag and digest.
pub fn name(image: &str) -> &str {
    let path = image.split('@').next().unwrap_or(image);
    let last = path.rsplit('/').next().unwrap_or(path);
    last.split(':').next().unwrap_or(last)
}

/// What follows a dash and a digit is a version: `postgresql-16-c9s`, `spilo-17`.
fn without_version(name: &str) -> &str {
    let is_version = |at: &usize| name[at + 1..].starts_with(|c: char| c.is_ascii_digit());
    let dash = name.match_indices('-').map(|(at, _)| at).find(is_version);
    dash.map_or(name, |at| &name[..at])
}

#[cfg(test)]
mod tests {
    use super::{Kind, command, postgres_version, program};

    #[test]
    fn the_version_of_postgresql_in_an_image() {
        for (image, version) in [
            ("ghcr.io/cloudnative-pg/postgresql:14.9", Some(14)),
            ("ghcr.io/zalando/spilo-17:4.0-p2", Some(17)),
            ("crunchydata/crunchy-postgres:ubi8-16.2-0", Some(16)),
            ("timescale/timescaledb:2.11.1-pg13", Some(13)),
            ("goharbor/harbor-db:v2.9.1", None),
            ("citusdata/citus:12.1.2", None),
            ("postgres", None),
            ("mysql:16", None),
        ] {
            assert_eq!(postgres_version(image), version, "{image}");
        }
    }

    #[test]
    fn images_of_vendors_and_operators() {
        for image in [
            "postgres",
            "postgres:17-alpine",
            "bitnami/postgresql:16",
            "docker.io/bitnami/postgresql-repmgr@sha256:0a",
            "ghcr.io/cloudnative-pg/postgresql:17.2",
            "registry.developers.crunchydata.com/crunchydata/crunchy-postgres:ubi8-16.2-0",
            "percona/percona-distribution-postgresql:16.4",
            "timescale/timescaledb-ha:pg16",
            "ghcr.io/zalando/spilo-17:4.0-p2",
            "quay.io/sclorg/postgresql-16-c9s",
            "localhost:5000/postgis/postgis:16-3.4",
            "goharbor/harbor-db:v2.9.1",
        ] {
            assert_eq!(
                (program(image), command(image)),
                (Some(Kind::Postgres), Some("postgres")),
                "{image}"
            );
        }
        for image in ["mysql:8.4", "percona/percona-xtradb-cluster:8.0", "rhel9/mysql-80"] {
            assert_eq!(command(image), Some("mysqld"), "{image}");
        }
        for image in ["mariadb:lts", "bitnami/mariadb-galera:11", "rhel9/mariadb-105"] {
            assert_eq!(command(image), Some("mariadbd"), "{image}");
        }
        for image in [
            "postgres-exporter",
            "prom/mysqld-exporter",
            "pgbouncer:1",
            "postgres-operator:v1",
            "",
            "redis:7",
        ] {
            assert_eq!(program(image), None, "{image}");
        }
    }
}
