//! The estimate against what PostgreSQL says of itself, and what its file may hold.

use super::{Postgres, postgres};
use model::Bytes;

/// `postgres -C shared_memory_size` (MiB) of PostgreSQL 15.20 (Debian 12, x86-64), an untouched postgresql.conf of initdb
/// with the lines at the left added: recorded for this test.
const SAID: [(&str, u64); 45] = [
    ("", 143),
    ("shared_buffers = 131072", 1074),
    ("shared_buffers = 524288", 4213),
    ("shared_buffers = 1048576", 8399),
    ("shared_buffers = 1966080", 15711),
    ("shared_buffers = 2097152", 16771),
    ("shared_buffers = 2228224", 17816),
    ("shared_buffers = 8388608", 67004),
    ("shared_buffers = 13107200", 104535),
    ("shared_buffers = 14680064", 117033),
    ("shared_buffers = 16646144", 132655),
    ("shared_buffers = 16777216", 133825),
    ("shared_buffers = 16908288", 134867),
    ("shared_buffers = 33554432", 267394),
    ("shared_buffers = 65536000", 521520),
    ("shared_buffers = 16", 8),
    ("shared_buffers = 2048", 24),
    ("max_connections = 10", 139),
    ("max_connections = 1000", 184),
    ("max_connections = 2000", 230),
    ("max_connections = 5000", 378),
    ("max_connections = 10000", 617),
    ("max_connections = 50000", 2476),
    ("max_locks_per_transaction = 10", 141),
    ("max_locks_per_transaction = 512", 163),
    ("max_locks_per_transaction = 1024", 186),
    ("max_locks_per_transaction = 4096", 325),
    ("max_locks_per_transaction = 20000", 1086),
    ("max_prepared_transactions = 100", 148),
    ("max_prepared_transactions = 1000", 190),
    ("max_prepared_transactions = 10000", 602),
    ("max_prepared_transactions = 50000", 2385),
    ("max_worker_processes = 1000", 192),
    ("max_wal_senders = 500", 167),
    ("max_pred_locks_per_transaction = 1024", 170),
    ("max_pred_locks_per_transaction = 8192", 369),
    ("track_activity_query_size = 65536", 151),
    ("track_activity_query_size = 1048576", 271),
    ("wal_buffers = 8192", 203),
    ("wal_buffers = 131072", 1164),
    ("autovacuum_max_workers = 100", 148),
    ("min_dynamic_shared_memory = 1024", 1167),
    ("shared_buffers = 14680064\nmax_locks_per_transaction = 512", 117053),
    ("shared_buffers = 511180\nmax_connections = 2000", 4192),
    ("shared_buffers = 2048\nmax_connections = 2000", 111),
];

#[test]
fn what_is_worked_out_is_enough_and_less_than_a_mib_too_large() {
    for (text, said) in SAID {
        let settings = Postgres::parse("postgresql.conf", text).expect("settings");
        let memory = settings.shared_memory();
        assert!(memory.0 > (said - 1) << 20, "{text}: {memory} for {said}M");
        assert!(memory.0 <= (said + 1) << 20, "{text}: {} for {}", memory.0, said << 20);
    }
}

#[test]
fn pages_are_those_that_the_server_asks_for() {
    for (text, said) in [
        ("shared_buffers = 8GB", 4200),
        ("shared_buffers = 112GB\nmax_locks_per_transaction = 512", 58527),
        ("shared_buffers = 112GB", 58517),
        // The server: 2096.
        ("shared_buffers = '3.9GB'\nmax_connections = 2000", 2097),
        ("shared_buffers = 1GB", 537),
        ("", 72),
    ] {
        let settings = Postgres::parse("postgresql.conf", text).expect("settings");
        let pages = postgres(&settings, Bytes::mib(2)).expect("a size").whole("pages");
        assert_eq!(pages, Some(said), "{text}");
    }
}

#[test]
fn the_file_is_read_as_the_server_reads_it() {
    let text = "# shared_buffers = 1GB\nshared_buffers = 16384 # blocks\n Shared_Buffers \
                '2GB'\nhuge_page_size=1GB\nwal_buffers = -1\nother.setting = 'x'\n";
    let settings = Postgres::parse("postgresql.conf", text).expect("settings");
    assert_eq!(
        (settings.shared_buffers, settings.page, settings.wal_buffers),
        (Bytes::gib(2), Some(Bytes::gib(1)), None)
    );
    assert_eq!(
        postgres(&settings, Bytes::mib(2)).expect("a size").whole("pages"),
        Some(3)
    );
}

#[test]
fn a_value_that_is_none_is_named_with_file_line_setting_and_what_is_wanted() {
    for (line, wanted) in [
        ("shared_buffers = lots", "8GB"),
        ("shared_buffers = 8gb", "8GB"),
        ("max_connections = -5", "whole number"),
        ("shared_buffers = 8 GB", "name = value"),
        ("shared_buffers = 99999999999TB", "size"),
    ] {
        let error = Postgres::parse("/etc/pg.conf", &format!("\n{line}\n"))
            .expect_err(line)
            .to_string();
        assert!(
            error.starts_with("/etc/pg.conf:2: ") && error.contains(wanted),
            "{error}"
        );
    }
}

#[test]
fn what_alter_system_wrote_is_over_the_configuration_file() {
    let file = Postgres::parse("postgresql.conf", "shared_buffers = 128MB\nmax_connections = 7\n").expect("parsed");
    let both = file
        .and("postgresql.auto.conf", "shared_buffers = '1GB'\n")
        .expect("parsed");
    assert_eq!((both.shared_buffers, both.max_connections), (Bytes::gib(1), 7));
    let error = both
        .and("postgresql.auto.conf", "\nshared_buffers = 'much'\n")
        .expect_err("no size");
    assert!(
        error.to_string().starts_with("postgresql.auto.conf:2: shared_buffers"),
        "{error}"
    );
}
