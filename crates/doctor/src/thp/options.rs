//! Options of command lines that ask for huge pages of one size, and what their programs lack.

use host::snapshot::Pool;
use model::Bytes;
use programs::config::Setting;
use programs::{Area, Evidence, HUGEPAGE_SIZE, Program, RANDOMX_1G, page_options};

use super::glibc::{rooms, unmet_by};
use super::told::Told;
use crate::facts::{default_size, known, pages_for, persistent, running};
use crate::pools::places;
use crate::rule::Reason;

/// What RandomX keeps: its data set and its cache.
const RANDOMX: Bytes = Bytes::mib(2080 + 256);
const XMRIG: Option<&str> = Some("https://xmrig.com/docs/miner/hugepages");

/// What such an option asks for.
pub(super) fn told_by(name: &str, value: &str) -> Option<Told> {
    match name {
        HUGEPAGE_SIZE => {
            let kib = value.parse::<u64>().ok().filter(|kib| *kib > 0 && *kib != 2048)?;
            let instead = "or leave --hugepage-size out, and restart it: it is the size of a page in kB (2048), no number of pages";
            Some(Told {
                page: Some(Bytes(kib.saturating_mul(1 << 10))),
                pages: 0,
                source: "cmdline",
                link: XMRIG,
                ..Told::new(HUGEPAGE_SIZE, value, "the memory", instead)
            })
        }
        RANDOMX_1G => {
            let instead = "or leave --randomx-1gb-pages out, and restart it: it takes pages of 2M by itself";
            Some(Told {
                page: Some(Bytes::gib(1)),
                pages: pages_for(RANDOMX, Bytes::gib(1)),
                source: "cmdline",
                falls_to: "pages of 2M, or base pages",
                link: XMRIG,
                ..Told::new(RANDOMX_1G, "set", "the data set", instead)
            })
        }
        _ => None,
    }
}

/// What options of a program ask for. Of pages of 1G that the CPU does not have A15 says so.
pub(super) fn told(evidence: &Evidence, program: &Program) -> Result<Vec<Told>, Reason> {
    let has_1g = || evidence.snapshot.cpu.has("pdpe1gb").known() == Some(&true);
    known(&program.arguments)?;
    let mut all = told_of(program);
    // Its data set and its cache have the pages of 1G that it may have.
    let has_pages = program.hugetlb().is_ok_and(|has| has.0 > 0);
    let by_size = all
        .iter_mut()
        .filter(|told| has_pages && told.variable == HUGEPAGE_SIZE);
    by_size.for_each(|told| told.what = "the memory of the scratchpads");
    all.retain(|told| told.page != Some(Bytes::gib(1)) || evidence.snapshot.pool(Bytes::gib(1)).is_some() || has_1g());
    Ok(all)
}

fn told_of(program: &Program) -> Vec<Told> {
    let words = program.arguments.known().map_or(&[][..], Vec::as_slice);
    let options = page_options(words).into_iter();
    options.filter_map(|(name, value)| told_by(name, &value)).collect()
}

/// The line of a file that was given which starts a program with this option.
pub(super) fn line_of(evidence: &Evidence, told: &Told) -> Option<Setting> {
    let is_it = |line: &Setting| told_by(&line.name, &line.value).is_some_and(|own| own.is_same(told));
    evidence.files.page_options().into_iter().find(is_it)
}

/// Such lines with what they ask for. Of a program that runs its process shows it.
pub(super) fn in_files(evidence: &Evidence) -> Vec<(Setting, Told)> {
    let lines = evidence.files.page_options().into_iter();
    let told = lines.filter_map(|line| Some((told_by(&line.name, &line.value)?, line)));
    let runs = |asked: &Told| running(evidence).any(|program| told_of(program).iter().any(|own| own.is_same(asked)));
    told.filter(|(asked, _)| !runs(asked))
        .map(|(asked, line)| (line, asked))
        .collect()
}

/// Does a program run that would take pages of this pool, and asks for a size that the machine does not have?
pub(crate) fn is_missed(evidence: &Evidence, pool: &Pool) -> bool {
    let Ok(rooms) = rooms(evidence) else { return false };
    let lacks = |told: &Told| told.page.is_some_and(|page| evidence.snapshot.pool(page).is_none());
    let misses = |program: &Program| {
        let unmet = unmet_by(evidence, &rooms, program);
        unmet.is_ok_and(|unmet| unmet.is_some_and(|(told, _)| lacks(&told)))
    };
    default_size(evidence).ok() == Some(pool.size) && running(evidence).any(misses)
}

/// How many pages of the default size do once the data set of RandomX has pages of 1G.
pub(super) fn lowered(evidence: &Evidence, program: &Program, told: &Told) -> Option<String> {
    let size = default_size(evidence).ok().filter(|_| told.variable == RANDOMX_1G)?;
    let areas = program.areas().ok()?.iter();
    let mapped: Bytes = areas
        .filter(|area| area.hugetlb_page() == Some(size))
        .map(Area::size)
        .sum();
    let pool = evidence.snapshot.pool(size).filter(|_| mapped >= RANDOMX)?;
    let rest = pool.taken()?.checked_sub(pages_for(RANDOMX, size))?;
    let (has, size) = (persistent(pool).ok()?, size.exact());
    let request = places(evidence, pool).map_or_else(String::new, |places| format!(" in {places}"));
    Some(format!(
        "first lower the request{request} to {rest} pages of {size}, or a few more, in place of {has}: those of 1G replace the rest"
    ))
}
