//! What a plan asks for at the next boot and from now on, held against the memory that this machine has: a value that it would not
//! survive is refused before anything is changed.

use std::collections::BTreeMap;

use host::snapshot::hugetlb::size_in_name;
use model::Bytes;

use super::access::Access;
use super::error::SetupError;
use super::survey::Task;
use crate::place::{Place, State};
use crate::pool;

/// More than this share of memory set aside by `vm.min_free_kbytes` leaves programs to the OOM killer.
const MOST_FREE_SHARE: u64 = 20;

/// Pages by size, as one place asks for them.
type Pools = BTreeMap<Bytes, u64>;

/// Does memory hold what the plan would set, with what is always left to other programs?
pub(super) fn check(access: &Access<'_>, tasks: &[&Task]) -> Result<(), SetupError> {
    if !tasks.iter().any(|task| may_take_memory(&task.place)) {
        return Ok(());
    }
    let total = pool::total(access.sink())?;
    let left = access.leave.unwrap_or(pool::left_of(total));
    let most = Bytes(total.0.saturating_sub(left.0));
    // The machine's usual page size is only missing where there are no pools.
    let usual = pool::usual_page(access.sink()).unwrap_or(Bytes::mib(2));
    let mut all: BTreeMap<Bytes, (u64, &Place)> = BTreeMap::new();
    for task in tasks {
        let (pools, free) = asked(task, usual);
        if let Some(kib) = free.filter(|kib| kib.saturating_mul(1024) > total.0 / MOST_FREE_SHARE) {
            let most = Bytes(total.0 / MOST_FREE_SHARE);
            let what = format!("vm.min_free_kbytes = {kib}");
            return Err(too_much(&task.place, what, most, total));
        }
        for (page, pages) in pools {
            // What one place asks for at boot and another now is the same pool.
            let largest = all.entry(page).or_insert((0, &task.place));
            if pages >= largest.0 {
                *largest = (pages, &task.place);
            }
        }
    }
    let bytes = |(page, (pages, _)): (&Bytes, &(u64, &Place))| page.0.saturating_mul(*pages);
    let sum = all.iter().map(bytes).fold(0, u64::saturating_add);
    let largest = all
        .iter()
        .max_by_key(|(page, (pages, _))| page.0.saturating_mul(*pages));
    match largest {
        Some((page, (pages, place))) if sum > most.0 => {
            let what = format!("{pages} pages of {}", page.exact());
            Err(too_much(place, what, most, total))
        }
        _ => Ok(()),
    }
}

fn too_much(place: &Place, what: String, most: Bytes, total: Bytes) -> SetupError {
    let place = place.clone();
    SetupError::TooMuch {
        place,
        what,
        most,
        total,
    }
}

fn may_take_memory(place: &Place) -> bool {
    match place {
        Place::Setting(path) => path.ends_with("hugepages") || path.ends_with("/min_free_kbytes"),
        Place::File(_) => true,
        Place::Directory(_) | Place::Mount(_) => false,
    }
}

/// The pools that a place would make, and the memory that it would keep free, in KiB. What stands there already counts only where the
/// plan raises it.
fn asked(task: &Task, usual: Bytes) -> (Pools, Option<u64>) {
    match (&task.place, &task.to) {
        (Place::Setting(path), State::Text(value)) => setting(path, value, task.from.number().unwrap_or(0), usual),
        (Place::File(path), State::File(file)) => {
            let (after, free) = text(path, &file.text, usual);
            let before = match &task.from {
                State::File(before) => text(path, &before.text, usual),
                _ => Default::default(),
            };
            let raised = after
                .into_iter()
                .filter(|(page, pages)| before.0.get(page).is_none_or(|before| pages > before));
            (raised.collect(), free.filter(|_| free != before.1))
        }
        _ => Default::default(),
    }
}

fn setting(path: &str, value: &str, from: u64, usual: Bytes) -> (Pools, Option<u64>) {
    let number = value.parse::<u64>().ok();
    if path.ends_with("/min_free_kbytes") {
        return (Pools::new(), number);
    }
    // A pool grows only as far as memory has room; how many pages may come on demand is bounded by nothing else.
    let is_limit = path.ends_with("/nr_overcommit_hugepages");
    let page = size_of(path).unwrap_or(usual);
    let pages = number.filter(|pages| is_limit && *pages > from);
    (pages.map(|pages| (page, pages)).into_iter().collect(), None)
}

/// `hugepages-2048kB` in a path.
fn size_of(path: &str) -> Option<Bytes> {
    path.split('/').find_map(size_in_name)
}

/// The pools that a file of settings, a unit or a command line asks for.
fn text(path: &str, text: &str, usual: Bytes) -> (Pools, Option<u64>) {
    let mut pools = Pools::new();
    let mut free = None;
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';'])) {
        if let Some((page, pages)) = filled(line) {
            // One line for each node.
            let sum = pools.entry(page).or_default();
            *sum = u64::saturating_add(*sum, pages);
            continue;
        }
        if path.contains("/grub.d/") || path.ends_with("/cmdline") {
            command_line(line, usual, &mut pools);
        }
        let Some((name, value)) = line.split_once('=') else {
            continue;
        };
        let Ok(value) = value.trim().parse::<u64>() else {
            continue;
        };
        match name.trim().trim_start_matches('-').replace('/', ".").as_str() {
            "vm.nr_hugepages" | "vm.nr_hugepages_mempolicy" | "vm.nr_overcommit_hugepages" => {
                let most = pools.entry(usual).or_default();
                *most = value.max(*most);
            }
            "vm.min_free_kbytes" => free = Some(value),
            _ => {}
        }
    }
    (pools, free)
}

/// A unit's `echo PAGES > .../hugepages-2048kB/nr_hugepages`, or a line of tmpfiles.d that writes there.
fn filled(line: &str) -> Option<(Bytes, u64)> {
    if let Some((_, rest)) = line.split_once("echo ") {
        let (pages, path) = rest.split_once(" > ")?;
        return Some((size_of(path)?, pages.parse().ok()?));
    }
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [kind, path, .., value] = &fields[..] else {
        return None;
    };
    let is_pool = kind.starts_with('w') && path.ends_with("hugepages");
    Some((size_of(path).filter(|_| is_pool)?, value.parse().ok()?))
}

/// `hugepagesz=1G hugepages=4`, or by node `hugepages=0:2,1:2`.
fn command_line(line: &str, usual: Bytes, pools: &mut Pools) {
    let mut page = usual;
    let words = line.split(|c: char| c.is_whitespace() || c == '"');
    for (name, value) in words.filter_map(|word| word.split_once('=')) {
        match name {
            "hugepagesz" => page = value.parse().unwrap_or(usual),
            "hugepages" => {
                let count = |part: &str| part.rsplit(':').next()?.parse::<u64>().ok();
                let pages = value.split(',').filter_map(count).fold(0, u64::saturating_add);
                let sum = pools.entry(page).or_default();
                *sum = sum.saturating_add(pages);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use model::Bytes;

    use super::{Pools, text};

    #[test]
    fn every_way_to_ask_for_pages_at_boot_is_counted() {
        let two = Bytes::mib(2);
        let pool = "/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages";
        let fill = format!("ExecStart=/bin/sh -c 'echo 8 > {pool} && test \"$(cat {pool})\" -ge 8'\n");
        for (path, content, page, pages) in [
            (
                "/etc/sysctl.conf",
                "# vm.nr_hugepages = 1\n-vm/nr_hugepages = 16\n".to_owned(),
                two,
                16,
            ),
            ("/etc/systemd/system/hugewise-pools.service", fill.repeat(2), two, 16),
            (
                "/etc/tmpfiles.d/60-hugewise.conf",
                format!("w {pool} - - - - 9\n"),
                two,
                9,
            ),
            (
                "/etc/kernel/cmdline",
                "quiet hugepages=7 hugepagesz=1G hugepages=0:2,1:3\n".to_owned(),
                Bytes::gib(1),
                5,
            ),
            (
                "/etc/default/grub.d/60-hugewise.cfg",
                "GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX hugepagesz=1G hugepages=4\"\n".to_owned(),
                Bytes::gib(1),
                4,
            ),
        ] {
            let (pools, free): (Pools, _) = text(path, &content, two);
            assert_eq!((pools.get(&page), free), (Some(&pages), None), "{path}");
        }
        assert_eq!(text("/etc/sysctl.conf", "vm.min_free_kbytes = 5\n", two).1, Some(5));
    }
}
