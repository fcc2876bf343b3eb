//! The settings of MySQL and MariaDB that decide InnoDB's pages: from option files and from the command line.

use model::Bytes;

use super::conf;

const POOL: &str = "innodb_buffer_pool_size";
pub(super) const POOL_MAX: &str = "innodb_buffer_pool_size_max";
pub(super) const POOL_CHUNK: &str = "innodb_buffer_pool_chunk_size";

/// Settings that MySQL 5.7 no longer has. It refuses to start with them, and before it there are no chunks.
const UP_TO_5_6: [&str; 5] = [
    "innodb_additional_mem_pool_size",
    "innodb_mirrored_log_groups",
    "innodb_use_sys_malloc",
    "storage_engine",
    "thread_concurrency",
];

/// The settings that decide InnoDB's pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Innodb {
    /// `innodb_buffer_pool_size`.
    pub pool: Bytes,
    /// `innodb_buffer_pool_size_max` of MariaDB, if it is set; its default counts for base pages alone.
    pub pool_max: Option<Bytes>,
    /// `innodb_buffer_pool_chunk_size`.
    pub chunk: Bytes,
    /// `innodb_buffer_pool_instances`; without, 8 from 1 GiB on, else 1.
    pub instances: Option<u64>,
    /// `innodb_log_buffer_size`.
    pub log_buffer: Bytes,
    /// `key_buffer_size`, for MyISAM, if it is set.
    pub key_buffer: Option<Bytes>,
    /// `aria_pagecache_buffer_size`, of MariaDB, if it is set.
    pub aria: Option<Bytes>,
    /// MariaDB puts more of its memory on huge pages than the buffer pool.
    pub is_mariadb: bool,
}

impl Innodb {
    /// With the server's defaults.
    pub fn new(pool: Bytes) -> Self {
        Self {
            pool,
            pool_max: None,
            chunk: Bytes::mib(128),
            instances: None,
            log_buffer: Bytes::mib(16),
            key_buffer: None,
            aria: None,
            is_mariadb: false,
        }
    }

    /// From what the server's files set, names with underscores: values are bytes, or have K, M, G or T. What cannot be read is as if
    /// it were not there, which the server would refuse at its start.
    pub fn of<'a>(set: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let (mut settings, mut is_old) = (Self::new(Bytes::mib(128)), false);
        for (name, value) in set {
            settings.take(name, value);
            is_old |= UP_TO_5_6.contains(&name);
        }
        if is_old {
            // Each instance is one allocation.
            let each = settings.pool.0.div_ceil(settings.parts().max(1));
            settings.chunk = Bytes(each.max(1)).round_up_to(Bytes::mib(1));
        }
        settings
    }

    /// Parts of the buffer pool with locks of their own: below 1 GiB there is one, whatever is set.
    pub(super) fn parts(&self) -> u64 {
        if self.pool < Bytes::gib(1) {
            return self.instances.map_or(1, |set| set.min(1));
        }
        self.instances.unwrap_or(8)
    }

    /// With the options of the command line, which win over any file: `--innodb-buffer-pool-size=8G`.
    #[must_use]
    pub fn with_options(mut self, arguments: &[String]) -> Self {
        let set = conf::set_by(arguments);
        set.iter().for_each(|(name, value)| self.take(name, value));
        self
    }

    /// Does the command line give the buffer pool a size?
    pub fn is_pool_among(arguments: &[String]) -> bool {
        conf::set_by(arguments).iter().any(|(name, _)| name == POOL)
    }

    /// What MariaDB maps at its start: with `large-pages` all that the buffer pool may grow to (my_large_virtual_alloc).
    pub fn mapped(&self) -> Bytes {
        let max = self.pool_max.filter(|_| self.is_mariadb);
        max.map_or(self.pool, |max| max.max(self.pool))
    }

    /// The setting that decides how large the buffer pool is.
    pub fn decides(&self) -> &'static str {
        if self.mapped() > self.pool { POOL_MAX } else { POOL }
    }

    fn take(&mut self, name: &str, value: &str) {
        let size = || conf::size(value);
        match name {
            POOL => self.pool = size().unwrap_or(self.pool),
            POOL_MAX => self.pool_max = size(),
            POOL_CHUNK => self.chunk = size().unwrap_or(self.chunk),
            conf::INSTANCES => self.instances = value.parse().ok(),
            "innodb_log_buffer_size" => self.log_buffer = size().unwrap_or(self.log_buffer),
            "key_buffer_size" => self.key_buffer = size(),
            "aria_pagecache_buffer_size" => self.aria = size(),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Innodb;
    use model::Bytes;

    #[test]
    fn sizes_are_bytes_or_have_a_unit_and_what_is_no_size_is_not_there() {
        let settings = Innodb::of([
            ("innodb_buffer_pool_size", "8G"),
            ("innodb_buffer_pool_instances", "4"),
            ("innodb_buffer_pool_chunk_size", "268435456"),
            ("innodb_log_buffer_size", "much"),
        ]);
        assert_eq!(
            (settings.pool, settings.chunk, settings.instances, settings.log_buffer),
            (Bytes::gib(8), Bytes::mib(256), Some(4), Bytes::mib(16))
        );
        assert_eq!(Innodb::of([]), Innodb::new(Bytes::mib(128)));
        let old = [("innodb_buffer_pool_size", "1100M"), ("innodb_use_sys_malloc", "1")];
        assert_eq!(Innodb::of(old).chunk, Bytes::mib(138), "a part of eight, and no chunk");
    }

    #[test]
    fn options_of_the_command_line_win_over_the_file() {
        let arguments = [
            "mysqld",
            "--innodb_buffer_pool_size=2G",
            "--innodb-buffer-pool-instances=2",
        ];
        let arguments = arguments.map(str::to_owned);
        let settings = Innodb::of([("innodb_buffer_pool_size", "8G")]).with_options(&arguments);
        assert_eq!((settings.pool, settings.instances), (Bytes::gib(2), Some(2)));
        assert!(Innodb::is_pool_among(&arguments) && !Innodb::is_pool_among(&arguments[..1]));
        let words = [
            "mysqld",
            "--innodb-buffer-pool-size",
            "16G",
            "--key_buffer_size",
            "1G",
            "--innodb-buffer-pool-instances",
            "4",
            "--skip-name-resolve",
            "--aria-pagecache-buffer-size",
        ];
        let words = words.map(str::to_owned);
        let file = Innodb::of([("innodb_buffer_pool_size", "8G"), ("aria_pagecache_buffer_size", "2G")]);
        let settings = file.with_options(&words);
        assert_eq!(
            (settings.pool, settings.key_buffer, settings.instances, settings.aria),
            (Bytes::gib(16), Some(Bytes::gib(1)), Some(4), Some(Bytes::gib(2)))
        );
        assert!(Innodb::is_pool_among(&words) && !Innodb::is_pool_among(&words[..2]));
    }
}
