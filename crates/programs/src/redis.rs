//! Redis, Valkey and KeyDB.

use model::Bytes;
use model::sizing::{SizeError, Sizing, pages_for};

use super::kind::Known;
use super::{Listens, Program};

pub(crate) const KNOWN: Known = Known {
    live: Some(|at| {
        let at = at("-p ", "-s ");
        // Without either, another server may answer.
        let load = format!("redis-benchmark{at} -q -t get -n 200000");
        (!at.is_empty()).then(|| format!("--load '{load}' --metric 'get=GET: ([0-9.]+) requests,higher'"))
    }),
    ..Known::new(
        "Redis",
        &["redis", "valkey", "keydb"],
        &["redis-server", "valkey-server", "keydb-server"],
    )
};

/// Where a running server takes connections, by its title: `redis-server *:6379 [cluster]` or `redis-server unixsocket:/run/redis.sock`.
pub(super) fn listens(program: &Program) -> Option<Listens> {
    let title = program.arguments.known()?.join(" ");
    title.split_whitespace().skip(1).find_map(|word| {
        let (host, end) = word.rsplit_once(':')?;
        let socket = (host == "unixsocket").then(|| end.to_owned());
        let port = end.parse().ok();
        (socket.is_some() || port.is_some()).then_some(Listens { port, socket })
    })
}

/// `size redis`: no pool pages, but what copying costs at worst while a child saves: each write of a cache line to a page of its own.
///
/// # Errors
/// When the page is none.
pub fn redis(maxmemory: Bytes, written: Bytes, base: Bytes, large: Bytes) -> Result<Sizing, SizeError> {
    pages_for(written, base)?;
    pages_for(maxmemory, large)?;
    let writes = written.0.div_ceil(64);
    let worst = |page: Bytes| Bytes(writes.saturating_mul(page.0).min(maxmemory.0));
    let copied = |page: Bytes| format!("{writes} writes of 64 B, each copies {}, at most all", page.exact());
    let source = "Redis documentation, Diagnosing latency issues; Linux 5.8, commit 3917c80280c9";
    Ok(Sizing::new(format!("Redis with maxmemory of {maxmemory}"), source)
    .step("pages", "Redis takes no pages from a pool", 0u64, "pages")
    .step("copied", copied(base), worst(base), "B")
    .step("copied_before_5_8", format!("with THP: {}", copied(large)), worst(large), "B")
    .trap(
        "since Linux 5.8 the first write to a huge page after a fork splits it and copies a base page, with THP as without; \
         before, it copies the huge page: leave THP on madvise there, or disable-thp yes (the default since 6.2)",
    )
    .trap("memory needed at worst is maxmemory plus what is copied"))
}

#[cfg(test)]
mod tests {
    use super::redis;
    use model::Bytes;

    #[test]
    fn redis_copies_by_base_pages_since_5_8_and_never_more_than_it_has() {
        let sizing = redis(Bytes::mib(256), Bytes::kib(8), Bytes::kib(4), Bytes::mib(2)).expect("a size");
        // 128 writes: measured on Linux 6.18 as 512 KiB of Private_Dirty.
        assert_eq!(sizing.whole("copied"), Some(Bytes::kib(512).0));
        assert_eq!(sizing.whole("copied_before_5_8"), Some(Bytes::mib(256).0));
        let all = redis(Bytes::gib(8), Bytes::gib(1), Bytes::kib(4), Bytes::mib(2)).expect("a size");
        assert_eq!(all.whole("copied"), Some(Bytes::gib(8).0));
    }
}
