//! Shared memory of PostgreSQL: from its configuration file, close to what the server itself says.

use model::Bytes;

use super::{SizeError, Sizing};
use model::sizing::pages_for;

/// The settings that decide its shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Postgres {
    /// `shared_buffers`.
    pub shared_buffers: Bytes,
    /// `wal_buffers`; without, a 32nd of the shared buffers, from 64 KiB to 16 MiB.
    pub wal_buffers: Option<Bytes>,
    /// `max_connections`.
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
}

/// A line of postgresql.conf whose value could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {name}: `{value}` is not {wanted}")]
pub struct ConfError {
    /// The file.
    pub file: String,
    /// Its line, counted from 1.
    pub line: usize,
    /// The setting.
    pub name: String,
    /// The value.
    pub value: String,
    /// What it should be.
    pub wanted: &'static str,
}

impl ConfError {
    fn new((file, line): (&str, usize), (name, value): (&str, &str), wanted: &'static str) -> Self {
        Self {
            file: file.to_owned(),
            line,
            name: name.to_owned(),
            value: value.to_owned(),
            wanted,
        }
    }
}

/// Bytes beside the buffers, fitted to what PostgreSQL 15.18 says of itself over 18 configurations (see the tests):
/// descriptor, checkpoint slot and look-up entry of a buffer; the fixed part of a backend; its locks; and the rest.
const PER_BUFFER: u64 = 180;
const BUFFER: u64 = 8192;
const PER_BACKEND: u64 = 8 << 10;
const PER_LOCK: u64 = 400;
const PER_PREDICATE_LOCK: u64 = 256;
const REST: u64 = 8 << 20;

impl Default for Postgres {
    /// The server's own defaults.
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

    /// From settings in the order in which they are read, each with its place (`FILE:LINE`), name and value.
    ///
    /// # Errors
    /// As [`Postgres::parse`].
    pub fn of<'a>(set: impl IntoIterator<Item = [&'a str; 3]>) -> Result<Self, ConfError> {
        let mut settings = Self::default();
        for [place, name, value] in set {
            let (file, line) = place.rsplit_once(':').unwrap_or((place, ""));
            let taken = settings.take(name, value);
            taken.map_err(|wanted| ConfError::new((file, line.parse().unwrap_or(1)), (name, value), wanted))?;
        }
        Ok(settings)
    }

    /// The same settings with those of another file over them, as `postgresql.auto.conf` is read last.
    ///
    /// # Errors
    /// As [`Postgres::parse`].
    pub fn and(mut self, file: &str, text: &str) -> Result<Self, ConfError> {
        for (number, line) in (1..).zip(text.lines()) {
            let Some((name, value)) = setting(line) else { continue };
            let taken = self.take(&name, &value);
            taken.map_err(|wanted| ConfError::new((file, number), (&name, &value), wanted))?;
        }
        Ok(self)
    }

    fn take(&mut self, name: &str, value: &str) -> Result<(), &'static str> {
        let count = || {
            value
                .parse::<u64>()
                .ok()
                .filter(|&count| count < 1 << 24)
                .ok_or("a whole number")
        };
        let blocks = || size(value, BUFFER).ok_or("a size such as 8GB, or a number of blocks of 8kB");
        let mib = || size(value, 1 << 20).ok_or("a size such as 1GB, or a number of MB");
        match name {
            "shared_buffers" => self.shared_buffers = blocks()?,
            "wal_buffers" => self.wal_buffers = if value == "-1" { None } else { Some(blocks()?) },
            "max_connections" => self.max_connections = count()?,
            "autovacuum_max_workers" | "autovacuum_worker_slots" => self.autovacuum_workers = count()?,
            "max_worker_processes" => self.worker_processes = count()?,
            "max_wal_senders" => self.wal_senders = count()?,
            "max_prepared_transactions" => self.prepared_transactions = count()?,
            "max_locks_per_transaction" => self.locks = count()?,
            "max_pred_locks_per_transaction" => self.predicate_locks = count()?,
            "track_activity_query_size" => {
                self.activity = size(value, 1).ok_or("a size such as 1kB, or a number of bytes")?;
            }
            "min_dynamic_shared_memory" => self.dynamic = mib()?,
            "huge_page_size" => {
                let page = size(value, 1 << 10).ok_or("a size such as 1GB, or a number of kB")?;
                self.page = Some(page).filter(|page| page.0 > 0);
            }
            _ => {}
        }
        Ok(())
    }

    fn wal(&self) -> Bytes {
        let usual = Bytes(self.shared_buffers.0 / 32).clamp(Bytes::kib(64), Bytes::mib(16));
        self.wal_buffers.unwrap_or(usual)
    }

    fn backends(&self) -> u64 {
        self.max_connections
            + self.autovacuum_workers
            + 1
            + self.worker_processes
            + self.wal_senders
            + self.prepared_transactions
    }

    /// Shared memory, an estimate that is rather too large than too small.
    pub fn shared_memory(&self) -> Bytes {
        let descriptors = (self.shared_buffers.0 / BUFFER).saturating_mul(PER_BUFFER);
        let parts = [
            self.shared_buffers.0,
            descriptors,
            self.wal().0,
            self.backends().saturating_mul(self.per_backend()),
            self.dynamic.0,
            REST,
        ];
        Bytes(parts.into_iter().fold(0, u64::saturating_add))
    }

    fn per_backend(&self) -> u64 {
        PER_BACKEND + self.activity.0 + self.locks * PER_LOCK + self.predicate_locks * PER_PREDICATE_LOCK
    }
}

/// `size postgres`: pages for a server with these settings; `system` is the page size that it takes by default.
///
/// # Errors
/// When the page is none.
pub fn postgres(settings: &Postgres, system: Bytes) -> Result<Sizing, SizeError> {
    let page = settings.page.unwrap_or(system);
    let memory = settings.shared_memory();
    let pages = pages_for(memory, page)?;
    let backends = settings.backends();
    let about = format!(
        "pages of {} for PostgreSQL with shared_buffers of {}",
        page.exact(),
        settings.shared_buffers
    );
    let descriptors = settings.shared_buffers.0 / BUFFER;
    Ok(Sizing::new(
        about,
        "PostgreSQL documentation, 19.4.5 Linux Huge Pages; fitted to what PostgreSQL 15.18 says \
         of itself",
    )
    .step("shared_buffers", "shared_buffers", settings.shared_buffers, "B")
    .step(
        "descriptors",
        format!("{descriptors} buffers x {PER_BUFFER} B"),
        descriptors.saturating_mul(PER_BUFFER),
        "B",
    )
    .step(
        "wal_buffers",
        "wal_buffers, or shared_buffers / 32 from 64K to 16M",
        settings.wal(),
        "B",
    )
    .step(
        "backends",
        format!(
            "{backends} x ({} + {} locks x {PER_LOCK} + {} x {PER_PREDICATE_LOCK}) B",
            PER_BACKEND + settings.activity.0,
            settings.locks,
            settings.predicate_locks
        ),
        backends.saturating_mul(settings.per_backend()),
        "B",
    )
    .step("shared_memory", "the sum with 8M for the rest", memory, "B")
    .rounded_up("pages", memory, page, pages)
    .trap(
        "an estimate, up to a few per cent too large: `postgres -D DIR -C \
         shared_memory_size_in_huge_pages` (since 15, before the server starts) says it exactly",
    )
    .trap("huge_pages = try falls back silently; huge_pages = on refuses to start when the pool is short")
    .trap(
        "extensions such as pg_stat_statements and TimescaleDB take shared memory of their own; \
         included files are not read here",
    ))
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
    Ok(Sizing::new(
        format!("pages of {} for PostgreSQL, as the server reports them", page.exact()),
        &origin.formula(),
    )
    .step("pages", origin.formula(), pages, "pages")
    .step("pool", format!("{pages} x {}", page.exact()), pool, "B")
    .trap("huge_pages = try falls back silently; huge_pages = on refuses to start when the pool is short"))
}

/// `name = value`, quotes and comments taken off.
fn setting(line: &str) -> Option<(String, String)> {
    let line = line.trim_start();
    let end = line.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '.'))?;
    let (name, rest) = line.split_at(end);
    let rest = rest.trim_start();
    let rest = rest.strip_prefix('=').unwrap_or(rest).trim_start();
    let value = match rest.strip_prefix('\'') {
        Some(quoted) => quoted.split('\'').next(),
        None => rest.split([' ', '\t', '#']).next(),
    };
    (!name.is_empty()).then(|| (name.to_ascii_lowercase(), value.unwrap_or_default().trim().to_owned()))
}

/// A size with PostgreSQL's units (B, kB, MB, GB, TB), or a number of `unit`s.
fn size(text: &str, unit: u64) -> Option<Bytes> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: u64 = digits.trim().parse().ok()?;
    let factor = match &text[digits.len()..] {
        "" => unit,
        "B" => 1,
        "kB" => 1 << 10,
        "MB" => 1 << 20,
        "GB" => 1 << 30,
        "TB" => 1 << 40,
        _ => return None,
    };
    // The server itself takes no more than 2^31 blocks.
    number.checked_mul(factor).filter(|&bytes| bytes <= 1 << 44).map(Bytes)
}

#[cfg(test)]
#[path = "postgres_tests.rs"]
mod tests;
