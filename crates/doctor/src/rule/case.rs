//! One time that a rule finds something, and how it is reported: what it costs, the lines that show it, what to do.

use std::fmt;

use host::snapshot::{Feature, Pool};
use model::findings::{Confidence, Proof, Severity};
use model::{Bytes, PageKind};
use programs::config::Setting;
use programs::{Area, Evidence, Program};

use crate::facts::{pool_file, range, shown_in, thp_file};
use crate::quoted::Quoted;
use crate::remedy::{Count, Need, Remedy};

/// One time that a rule finds something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Case {
    pub(super) severity: Option<Severity>,
    pub(super) confidence: Confidence,
    pub(super) evidence: Vec<Proof>,
    pub(super) consequence: String,
    pub(super) fix: Vec<Remedy>,
    /// The page size of a pool that its program is to have.
    pub(crate) wants: Option<Bytes>,
    /// Where to read more of this product, in place of the rule's link.
    pub(super) link: Option<&'static str>,
}

impl Case {
    /// Something was found that costs this.
    pub(crate) fn new(confidence: Confidence, consequence: impl Into<String>) -> Self {
        Self {
            severity: None,
            confidence,
            evidence: Vec::new(),
            consequence: consequence.into(),
            fix: Vec::new(),
            wants: None,
            link: None,
        }
    }

    /// The fault itself was read.
    pub(crate) fn sure(consequence: impl Into<String>) -> Self {
        Self::new(Confidence::High, consequence)
    }

    /// It follows from several facts.
    pub(crate) fn likely(consequence: impl Into<String>) -> Self {
        Self::new(Confidence::Medium, consequence)
    }

    pub(crate) fn hint(consequence: impl Into<String>) -> Self {
        Self::new(Confidence::Low, consequence)
    }

    /// With a line of evidence. A reading that was not read is none.
    pub(crate) fn seen(mut self, source: impl Into<String>, field: impl Into<String>, value: impl Quoted) -> Self {
        let value = value.quoted();
        self.evidence
            .extend(value.map(|value| Proof::new(source, field, value)));
        self
    }

    /// With a line of a file.
    pub(crate) fn seen_line(self, line: &Setting) -> Self {
        self.seen(&line.place, &line.name, &line.value)
    }

    /// With what a value adds, if there is one.
    pub(crate) fn with<T>(self, value: Option<T>, add: impl FnOnce(Self, T) -> Self) -> Self {
        match value {
            Some(value) => add(self, value),
            None => self,
        }
    }

    /// With what this adds, if that is so.
    pub(crate) fn when(self, is_so: bool, add: impl FnOnce(Self) -> Self) -> Self {
        match is_so {
            true => add(self),
            false => self,
        }
    }

    /// A program is to have this pool: no other finding advises to free it.
    pub(crate) fn wants(mut self, page: Bytes) -> Self {
        self.wants = Some(page);
        self
    }

    /// With the page of the product itself, where the rule is for several.
    pub(crate) fn link(mut self, link: Option<&'static str>) -> Self {
        self.link = link;
        self
    }

    /// With something to do, which every machine takes.
    pub(crate) fn fix(self, step: impl Into<String>) -> Self {
        self.remedy(Remedy::new(step))
    }

    /// With something to do where the machine has what it needs.
    pub(crate) fn remedy(mut self, remedy: Remedy) -> Self {
        self.fix.push(remedy);
        self
    }

    /// With something to do where the machine has that.
    pub(crate) fn fix_with(self, need: Need, step: impl Into<String>) -> Self {
        self.remedy(Remedy::new(step).need(need))
    }

    /// With something to do if that is so.
    pub(crate) fn fix_if(self, is_so: bool, step: impl Into<String>) -> Self {
        self.when(is_so, |case| case.fix(step))
    }

    /// With what does in place of the fixes before it, if anything does.
    pub(crate) fn instead(self, step: Option<impl Into<String>>) -> Self {
        self.with(step, |case, step| case.remedy(Remedy::new(step).instead()))
    }

    /// With something to do where nothing else can be taken.
    pub(crate) fn otherwise(self, step: impl Into<String>) -> Self {
        self.remedy(Remedy::new(step).last())
    }

    /// A THP setting to write.
    pub(crate) fn write(self, name: &str, value: &str) -> Self {
        self.write_as(name, value, |command| command)
    }

    /// The THP policy `madvise`: by a plan, or to write.
    pub(crate) fn madvise(self) -> Self {
        self.plan("thp=madvise").write("enabled", "madvise")
    }

    /// To collapse the memory of a process, where the kernel can.
    pub(crate) fn collapse(self, words: &str, pid: impl fmt::Display) -> Self {
        self.fix_with(
            Need::Feature(Feature::Collapse),
            format!("{words}: hugewise collapse {pid}"),
        )
    }

    /// A pool to fill by hand.
    pub(crate) fn fill(self, pool: &Pool, pages: u64) -> Self {
        self.fill_as(pool, pages, |command| command)
    }

    /// A pool to fill by hand, within a sentence. One that grows has the pages that other findings want of it, too.
    pub(crate) fn fill_as(self, pool: &Pool, pages: u64, sentence: impl FnOnce(String) -> String) -> Self {
        let need = Need::Pool(pool.size, pages);
        match pool.nr.known().is_some_and(|now| pages > *now) {
            true => self.fix_with(need, sentence(filling(pool, Count::of(pool.size, pages)))),
            false => self.fix_with(need, sentence(filling(pool, pages))),
        }
    }

    /// So many pages more than are in use, for the program of this case, to fill by hand, within a sentence.
    pub(crate) fn fill_more(self, pool: &Pool, more: u64, sentence: impl FnOnce(String) -> String) -> Self {
        let all = pool.taken().unwrap_or(0).saturating_add(more);
        self.fix_with(
            Need::More(pool.size, more),
            sentence(filling(pool, Count::of(pool.size, all))),
        )
    }

    /// A THP setting to write, within a sentence.
    pub(crate) fn write_as(self, name: &str, value: &str, sentence: impl FnOnce(String) -> String) -> Self {
        let command = format!("echo {value} > {}", thp_file(name));
        self.fix_with(Need::thp(name, value), sentence(command))
    }

    /// A plan does it: its goal as `hugewise plan --for` takes it.
    pub(crate) fn plan(self, goal: impl fmt::Display) -> Self {
        self.remedy(Remedy::plan(&goal.to_string()))
    }

    /// A plan does it, if the pools have room.
    pub(crate) fn plan_with(self, need: Need, goal: impl fmt::Display) -> Self {
        self.remedy(Remedy::plan(&goal.to_string()).need(need))
    }

    /// Not as severe as the rule's findings usually are, or more so.
    pub(crate) fn severity(mut self, severity: Severity) -> Self {
        self.severity = Some(severity);
        self
    }

    /// No more than worth knowing, if that is so.
    pub(crate) fn info_if(self, is_so: bool) -> Self {
        self.when(is_so, |case| case.severity(Severity::Info))
    }
}

fn filling(pool: &Pool, pages: impl fmt::Display) -> String {
    format!("echo {pages} > {}", pool_file(pool, "nr_hugepages"))
}

/// Lines of evidence that several rules have.
impl Case {
    /// With the hugetlb pages of a process, each once: its status counts a page for each mapping of it.
    pub(crate) fn seen_hugetlb(self, program: &Program, bytes: Bytes) -> Self {
        match program.pages.segments.iter().any(|segment| segment.page.is_some()) {
            true => self.seen(program.file("smaps"), "hugetlb pages, each once", bytes),
            false => self.seen(program.file("status"), "HugetlbPages", bytes),
        }
    }

    /// With a mapping and its size.
    pub(crate) fn seen_mapping(self, program: &Program, area: &Area) -> Self {
        let field = format!("{} {}", range(&area.range), area.name);
        self.seen(shown_in(program, area), field, area.size())
    }

    /// With what backs a process, in the file that shows it.
    pub(crate) fn seen_backing(self, program: &Program, kind: PageKind, bytes: Bytes) -> Self {
        let field = match kind {
            PageKind::Base => "backed by base pages",
            _ => "backed by THP",
        };
        self.seen(program.file(program.pages.shown_in), field, bytes)
    }

    /// With a process's RSS, likewise.
    pub(crate) fn seen_rss(self, program: &Program) -> Self {
        let field = if program.pages.shown_in == "status" {
            "VmRSS"
        } else {
            "Rss"
        };
        self.seen(program.file(program.pages.shown_in), field, &program.pages.rss)
    }

    /// With the free pages of each pool.
    pub(crate) fn seen_free(self, evidence: &Evidence) -> Self {
        let pools = evidence.snapshot.pools.known().into_iter().flatten();
        pools.fold(self, |case, pool| {
            case.seen(pool_file(pool, "free_hugepages"), "", &pool.free)
        })
    }
}
