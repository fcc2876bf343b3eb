//! The estimate against what PostgreSQL says of itself, and what its file may hold.

use super::{Postgres, postgres};
use model::Bytes;

/// `postgres -C shared_memory_size` (MiB) of PostgreSQL 15.18 (Debian 12, x86-64), an untouched postgresql.conf of initdb
/// with the lines at the left added: recorded for this test.
const SAID: [(&str, u64); 18] = [
    ("", 143),
    ("shared_buffers = 1GB", 1074),
    ("shared_buffers = 8GB", 8399),
    ("shared_buffers = 64GB", 67004),
    ("max_connections = 1000", 184),
    ("max_connections = 5000", 378),
    ("shared_buffers = 8GB\nmax_connections = 500", 8419),
    ("wal_buffers = 64MB", 203),
    ("max_locks_per_transaction = 1024", 186),
    ("max_prepared_transactions = 1000", 190),
    ("max_worker_processes = 1000", 192),
    ("max_wal_senders = 500", 167),
    ("autovacuum_max_workers = 100", 148),
    ("max_pred_locks_per_transaction = 1024", 170),
    ("min_dynamic_shared_memory = 1GB", 1167),
    ("shared_buffers = 16MB", 24),
    ("track_activity_query_size = 65536", 151),
    ("shared_buffers = 16MB\nmax_connections = 2000", 111),
];

#[test]
fn the_estimate_is_enough_and_at_most_a_twentieth_or_16_mib_too_large() {
    for (text, said) in SAID {
        let estimate = Postgres::parse("postgresql.conf", text)
            .expect("settings")
            .shared_memory();
        let said = Bytes::mib(said);
        assert!(estimate >= said, "{text}: {estimate} for {said}");
        assert!(
            estimate.0 <= said.0 + (said.0 / 20).max(16 << 20),
            "{text}: {estimate} for {said}"
        );
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
