//! How many pages InnoDB needs, of MySQL and MariaDB.

use model::Bytes;

pub use super::settings::Innodb;
use super::settings::{POOL_CHUNK, POOL_MAX};
use model::sizing::{SizeError, Sizing, pages_for};

/// Bytes of bookkeeping that InnoDB keeps with each of its pages: a chunk of 128 MiB asks for 137,428,992 bytes.
const INNODB_BLOCK: u64 = 392;
const INNODB_PAGE: u64 = 16 << 10;

/// The buffer pool that InnoDB makes of what is asked for: a multiple of chunk x instances.
fn innodb_pool(asked: Bytes, chunk: Bytes, instances: u64) -> Bytes {
    let unit = chunk.0.saturating_mul(instances).max(1);
    Bytes(asked.0.div_ceil(unit).saturating_mul(unit))
}

/// A chunk with the bookkeeping of its pages.
fn with_blocks(chunk: Bytes) -> Bytes {
    let blocks = chunk.0 / INNODB_PAGE;
    Bytes(chunk.0.saturating_add(blocks.saturating_mul(INNODB_BLOCK)))
}

/// What else comes from the pool: the names of the step and the setting, how often, and the bytes that are mapped at once.
type Beside = (&'static str, &'static str, u64, Bytes);

impl Innodb {
    /// Memory beside the buffer pool, where it is set or the server is MariaDB: that has 128 MiB for both caches, and puts their blocks on
    /// huge pages without what it keeps of each block. The shares are those of 10.11.19, which asks for 106M, 124M and twice 16M.
    fn beside(&self) -> Vec<Beside> {
        let cache = |set: Option<Bytes>, share: u64| match self.is_mariadb {
            true => Some(Bytes(
                (u128::from(set.unwrap_or(Bytes::mib(128)).0) * u128::from(share) / 10_000) as u64,
            )),
            false => set,
        };
        let log_buffers = self.is_mariadb.then_some(self.log_buffer);
        let all = [
            ("key_buffer", "key_buffer_size", 1, cache(self.key_buffer, 8183)),
            ("aria_cache", "aria_pagecache_buffer_size", 1, cache(self.aria, 9570)),
            ("log_buffers", "innodb_log_buffer_size", 2, log_buffers),
        ];
        all.into_iter()
            .filter_map(|(name, setting, times, bytes)| Some((name, setting, times, bytes?)))
            .collect()
    }

    /// How it needs fewer pages for the same buffer pool.
    pub fn fewer(&self, page: Bytes) -> Option<String> {
        if self.mapped() > self.pool {
            return Some(format!(
                "or leave {POOL_MAX} out: MariaDB takes pages for all of it at its start"
            ));
        }
        if self.is_mariadb || with_blocks(self.chunk) > page {
            return None;
        }
        let chunk = Bytes::mib(self.pool.0.div_ceil(1 << 20));
        let one = Self {
            chunk,
            instances: Some(1),
            ..*self
        };
        let pages = |settings: &Self| innodb(settings, page).ok()?.whole("pages");
        let (now, then) = (pages(self)?, pages(&one)?);
        (then < now).then(|| {
            format!(
                "or use larger chunks, as each of {} takes a whole page: with {POOL_CHUNK} = {} and innodb_buffer_pool_instances = 1 it needs {then}",
                self.chunk.exact(),
                chunk.exact()
            )
        })
    }
}

/// `size innodb`: MySQL maps each chunk of the buffer pool with its bookkeeping, MariaDB the whole pool.
///
/// # Errors
/// When the page is none, or a chunk is no multiple of 1 MiB.
pub fn innodb(settings: &Innodb, page: Bytes) -> Result<Sizing, SizeError> {
    let (sizing, pool) = match settings.is_mariadb {
        true => mariadb_pool(settings, page)?,
        false => mysql_pool(settings, page)?,
    };
    let (mut sizing, mut sum, mut pages) = (sizing, pool.0, pool.1);
    for (name, setting, times, bytes) in settings.beside() {
        // What is smaller than a page is not asked for from the pool.
        let own = match bytes < page && settings.is_mariadb {
            true => 0,
            false => pages_for(bytes, page)?.saturating_mul(times),
        };
        let how = format!("{times} x {} of {setting}, / {} rounded up", bytes, page.exact());
        sizing = sizing.step(name, how, own, "pages");
        sum += &format!(" + {own}");
        pages = pages.saturating_add(own);
    }
    let sizing = sizing.step("pages", sum, pages, "pages");
    Ok(match settings.is_mariadb {
        true => sizing.trap(
            "large-pages in [mariadbd] falls back memory by memory: `Couldn't allocate ... bytes (Large/HugeTLB memory page size ...); errno 12`; \
             too few pages for the whole buffer pool leave all of it on base pages",
        ),
        false => sizing
            .trap("large-pages in [mysqld] falls back chunk by chunk: `InnoDB: HugeTLB: Warning: Failed to allocate ...`")
            .trap("shmget(SHM_HUGETLB): the mysql user needs the group of vm.hugetlb_shm_group")
            .trap("key_buffer_size and the query cache come from the pool too where they are large"),
    })
}

/// How the pages of the buffer pool are worked out, and how many they are.
type Pool = (Sizing, (String, u64));

/// MariaDB rounds the pool up to what grows at once, and maps it as a whole (10.11.12 and later). Where that mapping does not begin at a
/// multiple of as much, it maps the pool anew with as many pages more as that takes: none in some starts, all of them in others.
fn mariadb_pool(settings: &Innodb, page: Bytes) -> Result<Pool, SizeError> {
    const EXTENT: u64 = 8 << 20;
    let asked = settings.mapped();
    let pool = Bytes(asked.0.div_ceil(EXTENT).saturating_mul(EXTENT));
    let pages = pages_for(pool, page)?;
    let aligned = EXTENT.saturating_sub(page.0) / page.0.max(1);
    let about = format!(
        "pages of {} for MariaDB with a buffer pool of {}",
        page.exact(),
        settings.pool
    );
    let how = match asked > settings.pool {
        true => format!("{asked} of {POOL_MAX} rounded up to 8M"),
        false => format!("{asked} rounded up to 8M"),
    };
    let source = "mappings of MariaDB 10.11.19 as strace shows them, and HugePages_Total";
    let most = "at most, so that the pool begins at a multiple of 8M";
    let sizing = Sizing::new(about, source)
        .step("buffer_pool", how, pool, "B")
        .rounded_up("pool_pages", pool, page, pages)
        .step("alignment", most, aligned, "pages");
    Ok((sizing, (format!("{pages} + {aligned}"), pages.saturating_add(aligned))))
}

fn mysql_pool(settings: &Innodb, page: Bytes) -> Result<Pool, SizeError> {
    let asked = settings.pool;
    let instances = settings.parts();
    check_innodb(settings.chunk, instances)?;
    // A chunk is no larger than the part of the pool that it is in (srv_start).
    let part = Bytes(asked.0.div_ceil(instances)).round_up_to(Bytes::mib(1));
    let chunk = settings.chunk.min(part);
    let pool = innodb_pool(asked, chunk, instances);
    let chunks = pool.0 / chunk.0;
    let blocks = chunk.0 / INNODB_PAGE;
    let with_blocks = with_blocks(chunk);
    let each = pages_for(with_blocks, page)?;
    let source = "MySQL Reference Manual, InnoDB Buffer Pool; bookkeeping as logged in docker-library/mysql#248";
    let about = format!("pages of {} for InnoDB with a buffer pool of {asked}", page.exact());
    let rounded = format!("{asked} rounded up to {} x {instances}", chunk.exact());
    let whole = format!("{} + {blocks} blocks x {INNODB_BLOCK} B", chunk.exact());
    let sizing = Sizing::new(about, source)
        .step("buffer_pool", rounded, pool, "B")
        .step("chunks", format!("{pool} / {}", chunk.exact()), chunks, "chunks")
        .step("chunk", whole, with_blocks, "B")
        .rounded_up("chunk_pages", with_blocks, page, each);
    Ok((sizing, (format!("{chunks} x {each}"), chunks.saturating_mul(each))))
}

fn check_innodb(chunk: Bytes, instances: u64) -> Result<(), SizeError> {
    if chunk.0 == 0 || !chunk.0.is_multiple_of(1 << 20) {
        let wanted = "innodb_buffer_pool_chunk_size, a multiple of 1M such as 128M";
        return Err(SizeError::out_of_range("--chunk", chunk, wanted));
    }
    if !(1..=64).contains(&instances) {
        let wanted = "innodb_buffer_pool_instances, from 1 to 64";
        return Err(SizeError::out_of_range("--instances", instances, wanted));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Innodb, innodb, innodb_pool};
    use model::Bytes;

    #[test]
    fn an_innodb_chunk_asks_for_what_the_server_logs() {
        // docker-library/mysql#248: `InnoDB: mmap(137428992 bytes) failed`, a chunk of 128M in MySQL 5.7.17.
        let sizing = innodb(&Innodb::new(Bytes::gib(8)), Bytes::mib(2)).expect("a size");
        assert_eq!(sizing.whole("chunk"), Some(137_428_992));
        assert_eq!(sizing.whole("pages"), Some(64 * 66));
        assert_eq!(
            innodb_pool(Bytes::gib(9), Bytes::mib(128), 16),
            Bytes::gib(10),
            "the manual's example"
        );
        let of = |pool, chunk, instances| Innodb {
            chunk,
            instances: Some(instances),
            ..Innodb::new(pool)
        };
        for (chunk, instances) in [(Bytes(0), 8), (Bytes::mib(128), 0)] {
            assert!(innodb(&of(Bytes::gib(8), chunk, instances), Bytes::mib(2)).is_err());
        }
        let pages = |settings: &Innodb| innodb(settings, Bytes::mib(2)).expect("a size").whole("pages");
        let large = of(Bytes::gib(2), Bytes::gib(1), 4);
        assert_eq!(pages(&large), Some(4 * 263), "the manual's example: chunks of 512M");
        let small = of(Bytes::mib(512), Bytes::mib(128), 8);
        assert_eq!(pages(&small), Some(4 * 66), "one instance below 1G");
    }

    #[test]
    fn mariadb_takes_the_pages_that_it_asks_the_kernel_for() {
        let pages = |set: &[(&str, &str)]| {
            let settings = Innodb::of(set.iter().copied());
            let sizing = innodb(
                &Innodb {
                    is_mariadb: true,
                    ..settings
                },
                Bytes::mib(2),
            )
            .expect("a size");
            sizing.whole("pages")
        };
        // Mappings of 10.11.19 under strace: 106M + 124M + the pool + 2 x 16M. What it took of the pool in several starts was this much, or
        // 1 to 3 pages less: 195; 259, 262; 283; 390; 643.
        for (pool, most) in [("128M", 198), ("256M", 262), ("300M", 286), ("512M", 390), ("1G", 646)] {
            assert_eq!(pages(&[("innodb_buffer_pool_size", pool)]), Some(most), "{pool}");
        }
        // 838M + 980M + 1000M + 6M + 2 x 64M.
        let large = [
            ("innodb_buffer_pool_size", "1000M"),
            ("key_buffer_size", "1G"),
            ("aria_pagecache_buffer_size", "1G"),
            ("innodb_log_buffer_size", "64M"),
        ];
        assert_eq!(pages(&large), Some(419 + 490 + 500 + 3 + 64));
        // 210M + 246M + 104M.
        let odd = [
            ("innodb_buffer_pool_size", "100M"),
            ("key_buffer_size", "256M"),
            ("aria_pagecache_buffer_size", "256M"),
        ];
        assert_eq!(pages(&odd), Some(105 + 123 + 52 + 3 + 16));
        let small = [
            ("innodb_buffer_pool_size", "128M"),
            ("key_buffer_size", "16K"),
            ("aria_pagecache_buffer_size", "1M"),
        ];
        assert_eq!(
            pages(&small),
            Some(64 + 3 + 16),
            "what is below a page comes from elsewhere"
        );
        let set = Innodb::of([("innodb_buffer_pool_size", "128M"), ("key_buffer_size", "16K")]);
        let of_mysql = innodb(&set, Bytes::mib(2)).expect("a size");
        assert_eq!(of_mysql.whole("pages"), Some(66 + 1));
    }

    #[test]
    fn mariadb_takes_pages_for_all_that_its_pool_may_grow_to() {
        // MariaDB/server, mysys/my_largepage.c: one mapping of innodb_buffer_pool_size_max with MAP_HUGETLB and MAP_POPULATE.
        let set = [
            ("innodb_buffer_pool_size", "8G"),
            ("innodb_buffer_pool_size_max", "24G"),
        ];
        let of = |is_mariadb| Innodb {
            is_mariadb,
            ..Innodb::of(set)
        };
        let two = Bytes::mib(2);
        let pages = |settings: &Innodb| innodb(settings, two).expect("a size").whole("pages");
        let plain = Innodb {
            is_mariadb: true,
            ..Innodb::of([("innodb_buffer_pool_size", "24G")])
        };
        assert_eq!(pages(&of(true)), pages(&plain));
        assert_eq!(of(true).decides(), "innodb_buffer_pool_size_max");
        assert!(of(true).fewer(two).is_some_and(|text| text.contains("size_max out")));
        // MySQL has no such setting, and the pool is not below itself.
        assert_eq!(pages(&of(false)), Some(64 * 66));
        assert_eq!(plain.fewer(two), None);
    }

    #[test]
    fn chunks_below_a_page_take_a_page_each() {
        let settings = Innodb::new(Bytes::gib(8));
        let large = Bytes::mib(512);
        let sizing = innodb(&settings, large).expect("a size");
        assert_eq!(sizing.whole("pages"), Some(64));
        let fewer = settings.fewer(large).expect("a way");
        assert!(fewer.contains("chunk_size = 8G"), "{fewer}");
        assert!(fewer.ends_with("needs 17"), "{fewer}");
        assert_eq!(settings.fewer(Bytes::mib(2)), None);
    }
}
