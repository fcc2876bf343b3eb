//! A user that nobody else is: from a range that distributions keep free of accounts.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::ops::RangeInclusive;

use host::{Accounts, Source};

/// Systemd's range for users that exist as long as a service runs (`DynamicUser=`), which no account is to have.
const RANGE: RangeInclusive<u32> = 61184..=65519;
/// Those of them that systemd has given out just now.
const OF_SYSTEMD: &str = "/run/systemd/dynamic-uid";

/// Whose rights a program has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct User {
    /// The user's number.
    pub uid: u32,
    pub gid: u32,
}

/// A user and group of one number, which no account, no delegated range and no process has, and the caller has not given out.
///
/// # Errors
/// In words: there is none, or what is taken could not be read.
pub fn unused(source: &Source, is_given: &dyn Fn(u32) -> bool) -> Result<User, String> {
    let taken = Taken::of(source)?;
    let count = RANGE.end() - RANGE.start() + 1;
    // Not the same each time: what one leaves in a shared folder is not the next one's. The standard library seeds its maps from the kernel.
    let first = RandomState::new().build_hasher().finish() as u32 % count;
    let numbers = (0..count).map(|nth| RANGE.start() + (first + nth) % count);
    let free = |number: &u32| taken.leaves(*number) && !is_given(*number);
    let (first, last) = (RANGE.start(), RANGE.end());
    numbers
        .filter(free)
        .map(|number| User { uid: number, gid: number })
        .next()
        .ok_or_else(|| {
            format!(
                "no user id from {first} to {last} is free here, which a server would run as (in a user namespace, map that range, or run hugewise as an ordinary user)"
            )
        })
}

#[derive(Debug, Default)]
struct Taken {
    numbers: BTreeSet<u32>,
    /// Ranges that are given to user namespaces.
    delegated: Vec<(u32, u32)>,
    /// Ranges that this user namespace has: of users, and of groups.
    mapped: [Vec<(u32, u32)>; 2],
}

impl Taken {
    fn of(source: &Source) -> Result<Self, String> {
        let mut taken = Self::default();
        let accounts = Accounts::read(source).into_result().map_err(|why| why.to_string())?;
        let of_users = accounts.users.iter().flat_map(|user| [Some(user.uid), user.gid]);
        let of_groups = accounts.groups.iter().map(|group| Some(group.gid));
        taken.numbers.extend(of_users.chain(of_groups).flatten());
        for ranges in ["/etc/subuid", "/etc/subgid"] {
            let text = source.text(ranges).into_result().unwrap_or_default();
            let ranges = text.lines().filter_map(|line| {
                let mut fields = line.split(':').skip(1);
                Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
            });
            taken.delegated.extend(ranges);
        }
        let of_systemd = source.list(OF_SYSTEMD).into_result().unwrap_or_default();
        taken
            .numbers
            .extend(of_systemd.iter().filter_map(|name| name.parse::<u32>().ok()));
        taken.mapped = ["/proc/self/uid_map", "/proc/self/gid_map"].map(|map| mapped(source, map));
        for pid in source.pids().into_result().map_err(|why| why.to_string())? {
            // One that has ended has none.
            let status = source
                .text(&format!("/proc/{pid}/status"))
                .into_result()
                .unwrap_or_default();
            let ids = status
                .lines()
                .filter(|line| ["Uid:", "Gid:", "Groups:"].iter().any(|key| line.starts_with(key)));
            let ids = ids.flat_map(|line| line.split_whitespace().skip(1));
            taken.numbers.extend(ids.filter_map(|id| id.parse::<u32>().ok()));
        }
        Ok(taken)
    }

    fn leaves(&self, number: u32) -> bool {
        let is_in = |&(first, count): &(u32, u32)| number >= first && number - first < count;
        !self.numbers.contains(&number)
            && !self.delegated.iter().any(is_in)
            && self.mapped.iter().all(|ranges| ranges.iter().any(is_in))
    }
}

/// `INSIDE OUTSIDE COUNT` in each line; a kernel without user namespaces has all.
fn mapped(source: &Source, map: &str) -> Vec<(u32, u32)> {
    let Ok(text) = source.text(map).into_result() else {
        return vec![(0, u32::MAX)];
    };
    let ranges = text.lines().filter_map(|line| {
        let mut fields = line.split_whitespace();
        Some((fields.next()?.parse().ok()?, fields.nth(1)?.parse().ok()?))
    });
    ranges.collect()
}

#[cfg(test)]
mod tests {
    use host::{Source, Tree};

    use super::{RANGE, unused};

    fn machine(status: &str, subuid: &str, map: &str) -> Source {
        let tree = Tree::new()
            .file(
                "/etc/passwd",
                "root:x:0:0::/root:/bin/sh\ndyn:x:61184:61185::/:/bin/false\n".as_bytes(),
            )
            .file("/etc/group", "root:x:0:\n".as_bytes())
            .file("/etc/subuid", subuid.as_bytes())
            .file("/run/systemd/dynamic-uid/61186", "x".as_bytes())
            .file("/proc/self/uid_map", map.as_bytes())
            .file("/proc/self/gid_map", "0 0 4294967295\n".as_bytes())
            .file("/proc/7/status", status.as_bytes());
        Source::from_tree("made", tree)
    }

    const ALL: &str = "0 0 4294967295\n";

    #[test]
    fn what_an_account_a_service_a_process_a_namespace_or_the_caller_has_is_not_taken() {
        let status = "Name:\tx\nUid:\t61187\t0\t0\t0\nGid:\t0\t0\t0\t0\nGroups:\t61188 61189\n";
        // All above is delegated, so that few are left.
        let source = machine(status, "user:61192:10000\n", ALL);
        for _ in 0..20 {
            let user = unused(&source, &|number| number == 61190).expect("one is left");
            assert_eq!((user.uid, user.gid), (61191, 61191));
        }
        let why = unused(&source, &|number| number >= 61190).expect_err("none is left");
        assert!(why.contains("61184 to 65519"), "{why}");
    }

    #[test]
    fn a_user_namespace_that_lacks_the_range_has_none() {
        let source = machine("", "", "0 1000 1\n");
        assert!(unused(&source, &|_| false).is_err());
        let source = machine("", "", "0 100000 65536\n");
        let user = unused(&source, &|_| false).expect("mapped");
        assert!(RANGE.contains(&user.uid) && user.uid != 65534);
    }
}
