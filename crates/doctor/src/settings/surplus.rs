//! Surplus pages of 1 GiB and more, which kernels before 6.19 refuse.

use host::snapshot::Feature;
use host::snapshot::hugetlb::file_of_pool;
use model::Bytes;
use programs::Evidence;
use programs::config::{Setting, Settings};

use super::not_taken;
use crate::facts::{persistent, pool_file};
use crate::kept::boot_pages;
use crate::remedy::Need;
use crate::rule::answers::each;
use crate::rule::{Answer, Case, Reason};

/// Of sysctl it is the setting of the default size, of other files that of the size which they name.
const NAME: &str = "nr_overcommit_hugepages";

pub(super) fn gigantic_surplus(evidence: &Evidence, sysctl: &Settings, default: &Result<Bytes, Reason>) -> Answer {
    if evidence.snapshot.kernel.has(Feature::GiganticSurplus) == Some(true) {
        return Ok(Vec::new());
    }
    let is_it = |line: &&Setting| line.name.ends_with(NAME) && sysctl.last(&line.name) == Some(*line);
    let lines = sysctl.iter().filter(is_it).filter(|line| line.value != "0");
    each(lines, |line| {
        let named = file_of_pool(&line.name).map(|(size, _)| size);
        let page = named.map_or(default.clone(), Ok)?;
        Ok((page >= Bytes::gib(1)).then(|| match named {
            Some(page) => of_size(evidence, line, page),
            None => of_default(line),
        }))
    })
}

fn of_default(line: &Setting) -> Case {
    let why = "it is for the default size, and pages of 1G and more cannot be surplus pages before Linux 6.19";
    not_taken(line, why)
        .fix("set the pool itself: hugepages= on the boot line, or vm.nr_hugepages; or make 2M the default size")
}

/// With the pool that has as many pages itself, where the machine shows it.
fn of_size(evidence: &Evidence, line: &Setting, page: Bytes) -> Case {
    let case = not_taken(
        line,
        "pages of 1G and more cannot be surplus pages before Linux 6.19 (EINVAL)",
    );
    let pool = evidence.snapshot.pool(page);
    let all = pool.and_then(|pool| persistent(pool).ok()?.checked_add(line.value.parse().ok()?));
    let size = page.exact();
    match pool.zip(all) {
        Some((pool, all)) => case
            .seen(pool_file(pool, NAME), "", &pool.overcommit)
            .seen(pool_file(pool, "nr_hugepages"), "", &pool.nr)
            .fill_as(pool, all, |command| format!("set the pool itself: {command}"))
            .fix_with(
                Need::Pool(page, all),
                format!("to keep it: {}", boot_pages(evidence, page, all)),
            )
            .otherwise(format!(
                "take the line out: the machine has no room for {all} pages of {size}"
            )),
        None => case.fix(format!(
            "set the pool itself: hugepages= behind hugepagesz={size} on the boot line"
        )),
    }
}
