//! How a pool is made larger: in the file that sets it, or as the machine is set up.

use std::fmt::Display;

use model::Bytes;
use programs::Evidence;
use programs::config::{BootForm, BootLine, Distribution, PoolRequest, PoolWrite, is_packaged};

use super::Requests;
use crate::facts::{default_size, distribution};
use crate::kept::{apply_again, boot_fix, by_unit, filled_from_cma, keep_pool, pool_path};
use crate::remedy::{Count, Need};
use crate::rule::Case;

/// Does a pool come with the kernel's start?
pub(super) fn is_at_boot(evidence: &Evidence, page: Bytes, default: Bytes) -> bool {
    let file = FileLine::of(evidence, page, default);
    // sysctl sets the pool of the default size only.
    file.map_or(page >= Bytes::gib(1) || page != default, |file| file.is_boot)
}

/// How so many pages are requested: where a file of those given sets the pool, or one of the machine's own, in its place.
pub(super) fn ask(evidence: &Evidence, page: Bytes, default: Bytes, pages: impl Display + Copy) -> String {
    let (name, is_boot) = ("vm.nr_hugepages", is_at_boot(evidence, page, default));
    let file = FileLine::of(evidence, page, default);
    let machine = evidence.has_machine.then(|| distribution(evidence));
    if let Some(pool) = filled_from_cma(evidence, page).filter(|_| is_boot) {
        let own = file.map(|file| file.own).or(machine);
        return by_unit(own.unwrap_or(Distribution::Other), &pool, pages);
    }
    match (file, machine) {
        (Some(file), None) => file.ask(page, pages),
        (Some(file), Some(_)) => {
            let apply = apply_again(evidence, &file.place);
            let apply = apply.map_or_else(|| "that".to_owned(), |command| format!("this: {command}"));
            format!("{}, and start it again after {apply}", file.ask(page, pages))
        }
        (None, Some(_)) if is_boot => boot_fix(evidence, &parameters(page, pages)),
        (None, Some(machine)) if machine.is_configured_whole() || evidence.config.is_sysctl_unread => {
            machine.keep_setting(name, pages)
        }
        (None, None) if is_boot => format!("{} on the boot command line", parameters(page, pages)),
        (None, _) => format!("{name} = {pages} in /etc/sysctl.d"),
    }
}

impl Case {
    /// With the pool that holds so many pages more, now and after the next boot: before what makes a program fail without them.
    pub(crate) fn raise(self, evidence: &Evidence, page: Bytes, more: u64) -> Self {
        let pool = evidence.snapshot.pool(page);
        let counts = pool.and_then(|pool| Some((pool, *pool.nr.known()?, pool.taken()?.saturating_add(more))));
        let Some((pool, _, all)) = counts.filter(|(_, has, all)| all > has) else {
            return self;
        };
        let all = Count::of(page, all);
        self.fill_more(pool, more, |command| command)
            .fix_with(Need::More(page, more), kept(evidence, page, all))
    }
}

/// How so many pages, which are there now, are there after the next boot too: by the line that sets the pool, where one does.
fn kept(evidence: &Evidence, page: Bytes, pages: Count) -> String {
    let default = default_size(evidence).unwrap_or(page);
    match FileLine::of(evidence, page, default) {
        Some(file) => format!("to keep it: {}", file.ask(page, pages)),
        None => keep_pool(evidence, page, pages),
    }
}

fn parameters(page: Bytes, pages: impl Display) -> String {
    format!("hugepagesz={} hugepages={pages}", page.exact())
}

/// A line of a file that was given, for the size of a pool.
struct FileLine {
    place: String,
    /// The pages that it sets; `None` of a boot line that sets other pools.
    old: Option<u64>,
    /// Are these the pages of several nodes or entries?
    is_sum: bool,
    is_boot: bool,
    /// What reads the file.
    own: Distribution,
}

impl FileLine {
    /// The one that counts: sysctl's is applied after those of the boot command line. Of a machine it is the line of its own files that may be
    /// edited.
    fn of(evidence: &Evidence, page: Bytes, default: Bytes) -> Option<Self> {
        if let Some(line) = Self::written(evidence, page, default).filter(|_| !evidence.has_machine) {
            return Some(line);
        }
        let is_whole = distribution(evidence).is_configured_whole() || evidence.config.is_sysctl_unread;
        let own = evidence.config.sysctl.known().filter(|_| !is_whole);
        let lines = match evidence.has_machine {
            true => own,
            false => Some(&evidence.files.sysctl),
        };
        let set = lines.and_then(|lines| lines.number("vm.nr_hugepages").ok().flatten());
        let set = set.filter(|(_, line)| !evidence.has_machine || (page < Bytes::gib(1) && !is_packaged(&line.place)));
        if let Some((pages, line)) = set.filter(|_| page == default) {
            return Some(Self {
                place: line.place.clone(),
                old: Some(pages),
                is_sum: false,
                is_boot: false,
                own: Distribution::Other,
            });
        }
        let given = Some(&evidence.files).filter(|_| !evidence.has_machine)?;
        let lines = || given.boot.iter().rev();
        let pages = |line: &BootLine| line.boot.pages_of(page, Some(default));
        let line = lines().find(|line| pages(line).is_some());
        let line = line.or_else(|| lines().next().filter(|_| page != default))?;
        let by_node = line.boot.request_of(page, Some(default));
        let is_by_node = matches!(by_node, Some(PoolRequest::ByNode(_)));
        Some(Self {
            place: line.place.clone(),
            old: pages(line),
            is_sum: is_by_node,
            is_boot: true,
            own: match line.form {
                BootForm::Settings => Distribution::Bottlerocket,
                _ => Distribution::Other,
            },
        })
    }

    /// What is written to the pool's file, or to those of nodes.
    fn written(evidence: &Evidence, page: Bytes, default: Bytes) -> Option<Self> {
        let written = PoolWrite::left(&evidence.files.pool_writes, default).into_iter();
        let mut own = written.filter(|line| line.size.unwrap_or(default) == page);
        let line = own.find(|line| line.is_by_node || page == default)?;
        let all = Requests::of(evidence).ok()?.by_size.remove(&page)?;
        Some(Self {
            place: line.place,
            old: Some(all.pages),
            is_sum: line.is_by_node,
            is_boot: line.is_by_node && page >= Bytes::gib(1),
            own: Distribution::Other,
        })
    }

    /// So many pages there.
    fn ask(&self, page: Bytes, pages: impl Display) -> String {
        let (place, all) = (&self.place, if self.is_sum { " in all" } else { "" });
        let settings = || self.own.keep_files(&[(pool_path(page), pages.to_string())]);
        match self.old {
            Some(old) if self.is_boot || self.is_sum => format!("{pages}{all} in place of {old}{all} in {place}"),
            Some(old) => format!("vm.nr_hugepages = {pages} in place of {old} in {place}"),
            None => {
                let more = settings().unwrap_or_else(|| parameters(page, pages));
                format!("{more}, beside what {place} sets")
            }
        }
    }
}
