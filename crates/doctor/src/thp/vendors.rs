//! Products whose vendors ask for a THP policy.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use host::snapshot::Snapshot;
use model::{Bytes, PageKind};
use programs::{Evidence, Kind, Program};
use serde::Deserialize;

use super::databases::{is_old_mongo, wants_no_empty_pages};
use super::dormant::dormant;
use super::stalls::most_advised;
use crate::facts::{known, largest, policy, programs, running, sum, thp_file, unread_program};
use crate::remedy::Need;
use crate::rule::answers::{each, readable};
use crate::rule::{Answer, Case, Reason};

/// What a vendor asks for: a row of `vendors.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Product {
    title: String,
    names: Vec<String>,
    #[serde(default)]
    sign: String,
    /// The vendor's words.
    asks: String,
    /// What does for its service alone, if anything does.
    #[serde(default)]
    alone: String,
    /// What does not start under `always`, and images that start it, by the last parts of their names.
    #[serde(default)]
    refuses: String,
    #[serde(default)]
    images: Vec<String>,
    /// The policies under which THP is on as its vendor asks; none where it advises against `always`.
    #[serde(default)]
    kept_on: Vec<String>,
    /// Parts of the kernel's release on systems for which that is not so, or is so alone.
    #[serde(default)]
    not_on: Vec<String>,
    #[serde(default)]
    only_on: Vec<String>,
    /// Where it says so.
    link: String,
}

impl Product {
    /// Does its vendor ask for that on this system?
    fn is_for(&self, snapshot: &Snapshot) -> bool {
        let release = snapshot.kernel.release.known().map_or("", String::as_str);
        let is_of = |parts: &[String]| parts.iter().any(|part| release.contains(part));
        !is_of(&self.not_on) && (self.only_on.is_empty() || is_of(&self.only_on))
    }

    /// Is it a process of this product?
    fn has(&self, program: &Program) -> Result<bool, Reason> {
        let is_named = self.names.iter().any(|name| program.pages.name.starts_with(name));
        if !is_named || self.sign.is_empty() {
            return Ok(is_named);
        }
        Ok(known(&program.arguments)?.iter().any(|word| word.contains(&self.sign)))
    }

    /// Its processes, each with that of its memory, and the first reason why one could not be read.
    fn processes<'e>(
        &self,
        all: &'e [Program],
        memory: impl Fn(&Program) -> Result<Bytes, Reason>,
    ) -> (Vec<(&'e Program, Bytes)>, Option<Reason>) {
        let (own, unread) = readable(all.iter().map(|program| {
            let own = self.has(program)?.then(|| memory(program)).transpose()?;
            Ok(own.map(|memory| (program, memory)))
        }));
        (own.into_iter().flatten().collect(), unread)
    }
}

static ALL: LazyLock<Vec<Product>> = LazyLock::new(|| {
    let table: Result<BTreeMap<String, Vec<Product>>, _> = toml::from_str(include_str!("vendors.toml"));
    table.expect("a table of products").into_values().flatten().collect()
});

/// Those of this system.
fn products(snapshot: &Snapshot) -> impl Iterator<Item = &'static Product> {
    ALL.iter().filter(move |product| product.is_for(snapshot))
}

/// What of an image does not start under `always`, if anything does not, and where its vendor says so.
pub(super) fn refusing(image: &str) -> Option<(&'static str, &'static str)> {
    let mut all = ALL.iter();
    let product = all.find(|product| product.images.iter().any(|own| own == image))?;
    Some((&product.refuses, &product.link))
}

/// Those whose vendors advise against `always`.
fn against(snapshot: &Snapshot) -> impl Iterator<Item = &'static Product> {
    products(snapshot).filter(|product| product.kept_on.is_empty())
}

/// The product of a program whose vendor advises against `always`, and what it asks for.
pub(super) fn asked_by_vendor(snapshot: &Snapshot, program: &Program) -> Option<(&'static str, &'static str)> {
    let product = against(snapshot).find(|product| product.has(program) == Ok(true))?;
    Some((&product.title, &product.asks))
}

/// Policies that take THP from programs which do not advise.
const OFF: [&str; 2] = ["madvise", "never"];

/// Which of them does for a product whose vendor asks in these words: `never` where that is asked for, or is allowed and set in a file,
/// and no program is to have THP.
pub(super) fn off_for(evidence: &Evidence, asks: &str) -> &'static str {
    let lines = evidence.config.thp_policy.known();
    let is_set = || {
        lines
            .and_then(|lines| lines.last())
            .is_some_and(|line| line.value == "never")
    };
    let is_meant = || is_set() || dormant(evidence, &["never"]).next().is_some();
    let is_asked = asks.starts_with("never") || (asks.contains("never") && is_meant());
    match is_asked && !is_used(evidence) {
        true => "never",
        false => "madvise",
    }
}

/// Is THP for a program that runs, by its vendor or its own advice? One that could not be read may be such a program.
fn is_used(evidence: &Evidence) -> bool {
    let mut kept_on = products(&evidence.snapshot).filter(|product| !product.kept_on.is_empty());
    let is_of_vendor = kept_on.any(|product| running(evidence).any(|program| product.has(program).unwrap_or(true)));
    is_of_vendor
        || wants_no_empty_pages(evidence).is_some()
        || most_advised(evidence).map_or(true, |program| program.is_some())
}

/// A program that runs and is not to have THP by the policy `always`; with `or_unknown` also one that may be such a program.
pub(super) fn against_always(evidence: &Evidence, or_unknown: bool) -> Option<&Program> {
    let is_against = |program: &Program| -> Result<bool, Reason> {
        for product in against(&evidence.snapshot) {
            if product.has(program)? {
                return Ok(true);
            }
        }
        Ok(program.is(Kind::Redis)? || is_old_mongo(program)?)
    };
    // What has THP switched off for itself gets none by a policy.
    let takes = |program: &&Program| program.pages.thp_enabled.known() != Some(&false);
    let mut all = evidence.programs.known()?.iter().filter(takes);
    all.find(|program| is_against(program).unwrap_or(or_unknown))
}

/// Less on huge pages, or on base pages, shows nothing of a policy's effect.
const WORTH: Bytes = Bytes::gib(1);

pub(super) fn vendors(evidence: &Evidence) -> Answer {
    let policy = policy(evidence)?;
    let is_off = |product: &&Product| !product.kept_on.is_empty() && !product.kept_on.contains(&policy);
    let off: Vec<&'static Product> = products(&evidence.snapshot).filter(is_off).collect();
    let cases = match &*policy {
        "always" => not_always(evidence)?,
        _ if off.is_empty() => return Ok(Vec::new()),
        _ => kept_on(evidence, &policy, off)?,
    };
    // One whose name could not be read may be of any product.
    programs(evidence)?;
    match unread_program(evidence) {
        Some(reason) if cases.is_empty() => Err(reason),
        _ => Ok(cases),
    }
}

/// THP of its own: what its processes share would count once for each of them.
pub(super) fn private_thp(program: &Program) -> Result<Bytes, Reason> {
    let areas = program.areas().unwrap_or_default();
    let own: Option<Vec<Bytes>> = areas.iter().map(|area| Some(area.counts()?.anon_huge)).collect();
    if let Some(own) = own.filter(|own| !own.is_empty()) {
        return Ok(own.into_iter().sum());
    }
    let segments = program.pages.segments.iter().filter(|segment| segment.page.is_none());
    let shared: Bytes = segments.map(|segment| segment.resident).sum();
    let private = known(&program.pages.rss)?.0.saturating_sub(shared.0);
    Ok(program.thp()?.min(Bytes(private)))
}

/// All processes of a product together: a database of many small ones has its memory in their sum.
fn not_always(evidence: &Evidence) -> Answer {
    let all = programs(evidence)?;
    each(against(&evidence.snapshot), |product| {
        let (own, unread) = product.processes(all, private_thp);
        let sum = sum(&own);
        let largest = own.iter().max_by_key(|(_, huge)| *huge);
        let Some((largest, huge)) = largest.filter(|_| sum >= WORTH) else {
            return unread.map_or(Ok(None), Err);
        };
        let who = match own.len() {
            1 => format!("{} has", largest.title()),
            many => format!("{many} processes of {} have", product.title),
        };
        Ok(Some(
            taken_off(evidence, product, &format!("{who} {sum}")).seen_backing(largest, PageKind::Thp, *huge),
        ))
    })
}

fn taken_off(evidence: &Evidence, product: &'static Product, has: &str) -> Case {
    let off = off_for(evidence, &product.asks);
    let values: Vec<&str> = OFF.into_iter().filter(|value| product.asks.contains(value)).collect();
    Case::likely(format!(
        "{has} backed by THP under the policy `always`; the vendor of {} asks for {}",
        product.title, product.asks
    ))
    .link(Some(&product.link))
    .seen(thp_file("enabled"), "", "always")
    .plan(format!("thp={off}"))
    .write("enabled", off)
    .with_dormant(evidence, &values)
    .fix_with(
        Need::thp("enabled", off),
        format!(
            "then restart {}: a process keeps the huge pages that it has",
            product.title
        ),
    )
    .fix_if(
        !product.alone.is_empty(),
        format!("or in the environment of its service alone: {}", product.alone),
    )
    .otherwise("this kernel's policy offers no `madvise`: `never`")
}

fn kept_on(evidence: &Evidence, policy: &str, off: Vec<&'static Product>) -> Answer {
    let all = programs(evidence)?;
    each(off, |product| {
        let (own, unread) = product.processes(all, |program| Ok(*known(&program.pages.rss)?));
        let Some((program, resident)) = largest(own).filter(|(_, resident)| *resident >= WORTH) else {
            return unread.map_or(Ok(None), Err);
        };
        let case = Case::likely(format!(
            "{} has {resident} of memory under the policy `{policy}`; the vendor of {} asks for {}",
            program.title(),
            product.title,
            product.asks
        ))
        .link(Some(&product.link))
        .seen(thp_file("enabled"), "", policy)
        .seen(program.file("status"), "VmRSS", resident);
        let does_without = product.kept_on.iter().any(|policy| policy == "madvise");
        Ok(Some(match against_always(evidence, does_without) {
            None => case.plan("thp=always").write("enabled", "always"),
            Some(other) if does_without => case.plan("thp=madvise").write_as("enabled", "madvise", |command| {
                format!("{command} (not `always`, for the sake of {})", other.title())
            }),
            Some(other) => case.fix(apart_from(other)),
        }))
    })
}

/// In place of the policy `always`.
pub(super) fn apart_from(other: &Program) -> String {
    format!(
        "run it apart from {}, which is not to have the policy `always`, or leave the policy as it is",
        other.title()
    )
}
