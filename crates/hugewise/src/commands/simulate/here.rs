//! `--machine here`: this machine as measured. Results are given, or those of the last checkup, or measured now.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use host::{Input, Snapshot};
use model::latency::Latency;
use model::tlb::{Tlb, Verdict};
use model::{Bytes, Envelope, Warning};
use translation::machine::Machine;
use translation::measured::{Measured, here};

use super::super::report::{Named, named};
use super::super::session::Session;
use super::super::stop::Stop;
use super::super::{latency, measuring, tlb};
use super::machine::Asked;
use crate::files;
use crate::results::Checkup;
use crate::show::{Shape, schema_name};

/// Where a checkup leaves its result if nothing else is asked for.
const LAST_CHECKUP: &str = "result.json";
/// Time for latency when it is measured now.
const BUDGET: Duration = Duration::from_secs(14);

#[derive(Default)]
struct Results {
    tlb: Option<(Tlb, String)>,
    latency: Option<(Latency, String)>,
    /// Those of the results.
    warnings: Vec<Warning>,
}

/// This machine; `table` is its row of the CPU table. `None` if the user stopped measuring it.
pub(super) fn measured(
    session: &Session<'_>,
    files: &[PathBuf],
    snapshot: &Snapshot,
    table: Option<Machine>,
) -> anyhow::Result<Option<Asked>> {
    let mut results = Results::default();
    for file in files {
        results
            .read(file, snapshot)
            .with_context(|| format!("--measured {}", file.display()))?;
    }
    if files.is_empty() && session.source.is_live() {
        results.last_checkup(session, snapshot);
    }
    if files.is_empty() && session.source.is_live() && !results.measure(session, snapshot)? {
        return Ok(None);
    }
    let name = snapshot.cpu.model_name.known().map_or("this machine", String::as_str);
    let measured = Measured {
        name,
        tlb: results.tlb.as_ref().map(|(tlb, source)| (tlb, source.as_str())),
        latency: results
            .latency
            .as_ref()
            .map(|(latency, source)| (latency, source.as_str())),
        caches: caches(snapshot),
        base_page: snapshot.base_page().into_result().context("the size of base pages")?,
        // Without THP no kind needs it; the value only has to be a size.
        pmd_page: snapshot.pmd_page().known().copied().unwrap_or(Bytes::mib(2)),
        host_page: results
            .tlb
            .as_ref()
            .and_then(|(tlb, _)| host_page(tlb.host_backing.verdict)),
    };
    Ok(Some(Asked {
        machine: here(table, &measured)?,
        warnings: results.warnings,
    }))
}

/// The host's page as timing shows it.
fn host_page(verdict: Verdict) -> Option<Bytes> {
    match verdict {
        Verdict::Huge => Some(Bytes::gib(1)),
        other => other.parts(),
    }
}

/// Sizes and ways of the data caches, as far as the machine reports both.
fn caches(snapshot: &Snapshot) -> Vec<(Bytes, u32)> {
    let cache = |level| {
        let cache = snapshot.cpu.data_cache(level)?;
        let ways = cache.ways.known().and_then(|&ways| u32::try_from(ways).ok())?;
        Some((*cache.size.known()?, ways))
    };
    (1..=3).map_while(cache).collect()
}

impl Results {
    /// Takes what a file holds; a later file counts more.
    fn read(&mut self, path: &Path, snapshot: &Snapshot) -> anyhow::Result<()> {
        let bytes = Input::Result.read(path)?;
        let Named { schema } = named(path, &bytes)?;
        let name = path.display().to_string();
        if schema == schema_name::<Tlb>() {
            self.tlb = Some((self.of_this_machine(&bytes, snapshot)?, name));
        } else if schema == schema_name::<Latency>() {
            self.latency = Some((self.of_this_machine(&bytes, snapshot)?, name));
        } else if schema == schema_name::<Checkup>() {
            let checkup: Checkup = self.of_this_machine(&bytes, snapshot)?;
            self.tlb = checkup.tlb.map(|tlb| (tlb, name.clone())).or(self.tlb.take());
            self.latency = checkup.latency.map(|latency| (latency, name)).or(self.latency.take());
        } else {
            bail!("`{schema}` measures no machine: expected a result of `measure tlb`, `measure latency` or `checkup`");
        }
        Ok(())
    }

    /// The data of a result that was measured on a machine like this; its warnings are kept.
    fn of_this_machine<T: Shape>(&mut self, bytes: &[u8], snapshot: &Snapshot) -> anyhow::Result<T> {
        let result: Envelope<T> = serde_json::from_slice(bytes).context("not of the shape that its schema says")?;
        let (theirs, ours) = (&result.machine.cpu, &snapshot.machine().cpu);
        let name = |cpu: &model::Reading<String>| cpu.known().cloned().unwrap_or_else(|| "an unknown CPU".to_owned());
        if theirs.known() != ours.known() {
            bail!(
                "it was measured on {}, and this machine has {}",
                name(theirs),
                name(ours)
            );
        }
        self.warnings.extend(result.warnings);
        Ok(result.data)
    }

    /// The result that a checkup left in this directory, if it is of this machine.
    fn last_checkup(&mut self, session: &Session<'_>, snapshot: &Snapshot) {
        let path = Path::new(LAST_CHECKUP);
        if !files::exists(path) {
            return;
        }
        match self.read(path, snapshot) {
            Ok(()) => session.ui.note(&format!(
                "taking what {LAST_CHECKUP} of a checkup measured (--measured names other results)"
            )),
            Err(why) => session.ui.note(&format!("{LAST_CHECKUP} is not used: {why:#}")),
        }
    }

    /// Measures what no result has; not done if the user stops it.
    fn measure(&mut self, session: &Session<'_>, snapshot: &Snapshot) -> anyhow::Result<bool> {
        if self.tlb.is_some() && self.latency.is_some() {
            return Ok(true);
        }
        let stop = Stop::on_signals()?;
        if self.tlb.is_none() {
            let spec = tlb::spec(tlb::usual(snapshot), true, snapshot)?;
            let Some((tlb, warnings)) = tlb::measure(&session.ui, &stop, &spec, true)? else {
                return Ok(false);
            };
            self.warnings.extend(warnings);
            self.tlb = Some((tlb, "now (measure tlb --quick)".to_owned()));
        }
        if self.latency.is_none() {
            let spec = spec(session, snapshot)?;
            let Some((latency, warnings)) = latency::measure(&session.ui, &stop, &spec, true)? else {
                return Ok(false);
            };
            self.warnings.extend(warnings);
            self.latency = Some((latency, "now (measure latency)".to_owned()));
        }
        Ok(true)
    }
}

/// One working set in the middle of each place: half of a cache, or its middle in octaves, and two well beyond the last, on base pages and
/// huge ones: the walk costs of both distinguish page-table reads from loads.
fn spec(session: &Session<'_>, snapshot: &Snapshot) -> anyhow::Result<measure::latency::Spec> {
    let sizes: Vec<u64> = caches(snapshot).iter().map(|(size, _)| size.0).collect();
    let mut wanted: Vec<u64> = sizes.first().map(|first| first / 2).into_iter().collect();
    wanted.extend(
        sizes
            .windows(2)
            .map(|pair| ((pair[0] * 2) as f64 * (pair[1] / 2) as f64).sqrt() as u64),
    );
    let largest = sizes.last().map_or(1 << 30, |last| (last * 16).max(1 << 29));
    let room = measuring::room(snapshot)?;
    wanted.extend([largest.min(room.0) / 4, largest.min(room.0)]);
    let usual = latency::usual(snapshot, session.seed)?;
    Ok(measure::latency::Spec {
        kinds: usual
            .kinds
            .iter()
            .copied()
            .filter(|kind| kind.pool().is_none())
            .collect(),
        // Whole base pages.
        sizes: wanted
            .into_iter()
            .map(|size| Bytes((size >> 12).max(1) << 12))
            .collect(),
        budget: Some(BUDGET),
        ..usual
    })
}
