//! Shared memory of PostgreSQL: from its configuration file, close to what the server itself says.

use model::Bytes;

use super::value::{self, HugePages, Value};
use crate::config::files::said;
use crate::config::{Setting, Settings};
use model::sizing::pages_for;
use model::sizing::{SizeError, Sizing};

/// The settings that decide its shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Postgres {
    pub shared_buffers: Bytes,
    /// `wal_buffers`; without, a 32nd of the shared buffers, from 64 KiB to 16 MiB.
    pub wal_buffers: Option<Bytes>,
    pub max_connections: u64,
    /// `autovacuum_max_workers`.
    pub autovacuum_workers: u64,
    /// `max_worker_processes`.
    pub worker_processes: u64,
    /// `max_wal_senders`.
    pub wal_senders: u64,
    /// `max_prepared_transactions`.
    pub prepared_transactions: u64,
    /// `max_locks_per_transaction`.
    pub locks: u64,
    /// `max_pred_locks_per_transaction`.
    pub predicate_locks: u64,
    /// `track_activity_query_size`.
    pub activity: Bytes,
    /// `min_dynamic_shared_memory`.
    pub dynamic: Bytes,
    /// `huge_page_size`; without, the system's.
    pub page: Option<Bytes>,
    pub huge_pages: HugePages,
}

/// A line of postgresql.conf whose value could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConfError(String);

/// Sizes of structures of PostgreSQL 15 on 64 bits. What they do not account for is fitted to what 15.20 says of itself over 45
/// configurations (see the tests).
const BUFFER: u64 = 8192;
/// Beside a buffer: its descriptor, condition variable and slot of a checkpoint's order.
const PER_BUFFER: u64 = 64 + 16 + 20;
/// A request to the checkpointer, one for each buffer, up to so many (15.14 and its sisters; those before had no limit).
const REQUEST: u64 = 24;
const REQUESTS_MAX: u64 = 10_000_000;
/// Entries of the hash tables: of buffers, locks, their holders, predicate locks, theirs, and serializable transactions.
const BUFFER_ENTRY: u64 = 24;
const BUFFER_PARTITIONS: u64 = 128;
const LOCK_ENTRY: u64 = 152;
const HOLDER_ENTRY: u64 = 64;
const PREDICATE_ENTRY: u64 = 32;
const PREDICATE_HOLDER_ENTRY: u64 = 56;
const TRANSACTION_ENTRY: u64 = 16;
const TRANSACTIONS_PER_BACKEND: u64 = 10;
/// Of a backend and of a prepared transaction alike, and of a backend alone.
const PER_PROCESS: u64 = 5570;
const PER_BACKEND: u64 = 950;
/// Processes of the server's own, which have a status, too.
const AUXILIARY: u64 = 6;
const REST: u64 = 1_760_000;

/// What a hash table of so many entries takes: dynahash's hash_estimate_size().
fn hash(entries: u64, entry: u64) -> u64 {
    let buckets = entries.max(1).next_power_of_two();
    let segments = (buckets.saturating_sub(1) / 256 + 1).next_power_of_two();
    let element = 16 + entry.next_multiple_of(8);
    let mut space = 32;
    while space / element < 32 {
        space *= 2;
    }
    let at_once = space / element;
    let elements = entries.max(1).div_ceil(at_once) * at_once;
    768 + segments.max(256) * 8 + segments * 256 * 8 + elements.saturating_mul(element)
}

impl Default for Postgres {
    fn default() -> Self {
        Self {
            shared_buffers: Bytes::mib(128),
            wal_buffers: None,
            max_connections: 100,
            autovacuum_workers: 3,
            worker_processes: 8,
            wal_senders: 10,
            prepared_transactions: 0,
            locks: 64,
            predicate_locks: 64,
            activity: Bytes::kib(1),
            dynamic: Bytes(0),
            page: None,
            huge_pages: HugePages::Try,
        }
    }
}

impl Postgres {
    /// From the text of postgresql.conf; `file` is named in errors. The last line of a setting holds, as in the server.
    ///
    /// # Errors
    /// When a value of one of these settings cannot be read; other settings are not looked at.
    pub fn parse(file: &str, text: &str) -> Result<Self, ConfError> {
        Self::default().and(file, text)
    }

    /// From settings in the order in which they are read.
    ///
    /// # Errors
    /// As [`Postgres::parse`].
    pub fn of(set: &Settings) -> Result<Self, ConfError> {
        Self::default().with(set)
    }

    /// The same settings with these over them, such as those of a command line.
    ///
    /// # Errors
    /// As [`Postgres::parse`].
    pub fn with(mut self, set: &Settings) -> Result<Self, ConfError> {
        for Setting { place, name, value } in set.iter() {
            self.take(place, name, value)?;
        }
        Ok(self)
    }

    /// The same settings with those of another file over them, as `postgresql.auto.conf` is read last.
    ///
    /// # Errors
    /// As [`Postgres::parse`].
    pub fn and(mut self, file: &str, text: &str) -> Result<Self, ConfError> {
        for line in said(file, text, &['#']) {
            let garbled = |()| ConfError(format!("{}: line: `{}` is not `name = value`", line.place(), line.text));
            let (name, value) = value::line(line.text).map_err(garbled)?;
            self.take(&line.place(), &name, &value)?;
        }
        Ok(self)
    }

    fn take(&mut self, place: &str, name: &str, value: &str) -> Result<(), ConfError> {
        let refused = |wanted| ConfError(format!("{place}: {name}: `{value}` is not {wanted}"));
        match (value::value(name, value).map_err(refused)?, name) {
            (Some(Value::Bytes(bytes)), name) => match name {
                "shared_buffers" => self.shared_buffers = bytes,
                "wal_buffers" => self.wal_buffers = Some(bytes),
                "track_activity_query_size" => self.activity = bytes,
                "min_dynamic_shared_memory" => self.dynamic = bytes,
                _ => self.page = Some(bytes).filter(|page| page.0 > 0),
            },
            (Some(Value::Count(count)), name) => match name {
                "max_connections" => self.max_connections = count,
                "autovacuum_max_workers" | "autovacuum_worker_slots" => self.autovacuum_workers = count,
                "max_worker_processes" => self.worker_processes = count,
                "max_wal_senders" => self.wal_senders = count,
                "max_prepared_transactions" => self.prepared_transactions = count,
                "max_locks_per_transaction" => self.locks = count,
                _ => self.predicate_locks = count,
            },
            (Some(Value::Automatic), _) => self.wal_buffers = None,
            (Some(Value::HugePages(huge_pages)), _) => self.huge_pages = huge_pages,
            (None, _) => {}
        }
        Ok(())
    }

    fn wal(&self) -> Bytes {
        let usual = Bytes(self.shared_buffers.0 / 32).clamp(Bytes::kib(64), Bytes::mib(16));
        self.wal_buffers.unwrap_or(usual)
    }

    /// Processes that serve, with the launcher of autovacuum.
    fn backends(&self) -> u64 {
        self.max_connections + self.autovacuum_workers + 1 + self.worker_processes + self.wal_senders
    }

    /// The parts of its shared memory: name, how it is worked out, bytes.
    fn parts(&self) -> [(&'static str, String, u64); 7] {
        let buffers = self.shared_buffers.0 / BUFFER;
        let requests = buffers.min(REQUESTS_MAX) * REQUEST;
        let beside =
            buffers * PER_BUFFER + requests + hash(buffers + BUFFER_PARTITIONS, BUFFER_ENTRY) + caches(buffers);
        let wal = self.wal().0;
        let (backends, processes) = (self.backends(), self.backends() + self.prepared_transactions);
        let locks = |each: u64, entry, holder| {
            let entries = each.saturating_mul(processes);
            let tables = hash(entries, entry).saturating_add(hash(entries.saturating_mul(2), holder));
            tables.saturating_add(tables / 10)
        };
        let transactions = hash(processes * TRANSACTIONS_PER_BACKEND, TRANSACTION_ENTRY);
        let own = processes * PER_PROCESS + backends * PER_BACKEND + (backends + AUXILIARY) * self.activity.0;
        let how = format!(
            "{processes} processes, {} of each for its current statement",
            self.activity
        );
        let of = |each: u64| format!("{each} x {processes}, two holders each, and a tenth");
        [
            ("shared_buffers", "shared_buffers".to_owned(), self.shared_buffers.0),
            (
                "descriptors",
                format!("{buffers} buffers: descriptors, requests, hash table"),
                beside,
            ),
            (
                "wal_buffers",
                "wal_buffers, or shared_buffers / 32 from 64K to 16M".to_owned(),
                wal + wal / BUFFER * 8,
            ),
            ("locks", of(self.locks), locks(self.locks, LOCK_ENTRY, HOLDER_ENTRY)),
            (
                "predicate_locks",
                of(self.predicate_locks),
                locks(self.predicate_locks, PREDICATE_ENTRY, PREDICATE_HOLDER_ENTRY),
            ),
            ("backends", how, own.saturating_add(transactions)),
            (
                "rest",
                "min_dynamic_shared_memory and the rest".to_owned(),
                self.dynamic.0.saturating_add(REST),
            ),
        ]
    }

    /// Shared memory, rather too large than too small for version 15.
    pub fn shared_memory(&self) -> Bytes {
        Bytes(
            self.parts()
                .iter()
                .fold(0, |sum, (_, _, bytes)| sum.saturating_add(*bytes)),
        )
    }
}

/// The caches of transactions' states, whose size follows the buffers.
fn caches(buffers: u64) -> u64 {
    2 * BUFFER * (buffers / 512).clamp(4, 128) + BUFFER * (buffers / 256).clamp(4, 256)
}

/// `size postgres`: pages for a server with these settings; `system` is the page size that it takes by default.
///
/// # Errors
/// When the page is none.
pub fn postgres(settings: &Postgres, system: Bytes) -> Result<Sizing, SizeError> {
    let page = settings.page.unwrap_or(system);
    let memory = settings.shared_memory();
    let pages = pages_for(memory, page)?;
    let (size, buffers) = (page.exact(), settings.shared_buffers);
    let about = format!("pages of {size} for PostgreSQL with shared_buffers of {buffers}");
    let source = "PostgreSQL documentation, 19.4.5 Linux Huge Pages; structures of PostgreSQL 15, fitted to what 15.20 says of itself";
    let mut sizing = Sizing::new(about, source);
    for (name, how, bytes) in settings.parts() {
        sizing = sizing.step(name, how, Bytes(bytes), "B");
    }
    Ok(sizing
        .step("shared_memory", "the sum", memory, "B")
        .rounded_up("pages", memory, page, pages)
        .trap(
            "worked out for version 15; others differ by up to a few per mille: `postgres -D DIR -C \
         shared_memory_size_in_huge_pages` (since 15, before the server starts) says it exactly",
        )
        .trap("huge_pages = try falls back silently; huge_pages = on refuses to start when the pool is short")
        .trap("extensions such as pg_stat_statements and TimescaleDB take shared memory of their own"))
}

/// Where an exact number of pages is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The server's program printed it.
    Program,
    /// The shared memory of the running server with this PID.
    Running(u32),
}

impl Origin {
    fn formula(self) -> String {
        match self {
            Self::Program => "postgres -C shared_memory_size_in_huge_pages".to_owned(),
            Self::Running(pid) => format!("shared memory of the running server ({pid}) / page, rounded up"),
        }
    }
}

/// Exactly, from the server itself.
///
/// # Errors
/// When the page is none, or the pool is beyond 64 bits.
pub fn told(pages: u64, page: Bytes, origin: Origin) -> Result<Sizing, SizeError> {
    model::sizing::check_page(page)?;
    let pool = pages.checked_mul(page.0).ok_or(SizeError::TooLarge("the pool"))?;
    let about = format!("pages of {} for PostgreSQL, as the server reports them", page.exact());
    Ok(Sizing::new(about, &origin.formula())
        .step("pages", origin.formula(), pages, "pages")
        .step("pool", format!("{pages} x {}", page.exact()), pool, "B")
        .trap("huge_pages = try falls back silently; huge_pages = on refuses to start when the pool is short"))
}

#[cfg(test)]
#[path = "need_tests.rs"]
mod tests;
