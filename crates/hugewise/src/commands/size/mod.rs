//! `hugewise size`: how many, and how far it reaches, with the arithmetic shown.

pub(super) mod server;

use std::path::PathBuf;

use anyhow::Context;
use host::{Input, Snapshot, Source};
use model::{Bytes, Warning};
use programs::auto_conf;
use programs::size::database::{self, Innodb};
use programs::size::jvm::{self, Jvm};
use programs::size::machine;
use programs::size::postgres::{self, Postgres};
use studies::size::{Sizing, esx, gain, ksm, pages};

use super::desk::Desk;
use crate::cli::typed::{self, Format, Size};
use crate::results::ReachTable;
use crate::ui::Outcome;

pub(super) fn run(desk: &mut Desk<'_>, typed: &Size) -> anyhow::Result<Outcome> {
    if let Size::Reach(typed) = typed {
        return reach(desk, typed);
    }
    let form = desk.form::<Sizing>(Format::Text)?;
    let (sizing, warnings) = match typed {
        Size::Postgres(typed) => postgres(&desk.source, typed)?,
        other => (calculated(other)?, Vec::new()),
    };
    let result = desk.about(&Snapshot::take(&desk.source), warnings, sizing);
    desk.give(&result, form)
}

fn reach(desk: &mut Desk<'_>, typed: &typed::Reach) -> anyhow::Result<Outcome> {
    let form = desk.form::<ReachTable>(Format::Text)?;
    let table = ReachTable {
        rows: translation::reach::table(&typed.pages, &typed.entries, &typed.working_set),
    };
    desk.give_here(table, form)
}

/// Everything that needs no look at any file.
fn calculated(typed: &Size) -> anyhow::Result<Sizing> {
    Ok(match typed {
        Size::Pages(typed) => pages::pages(typed.bytes, typed.pages)?,
        Size::Memlock(typed) => pages::memlock(typed.bytes, typed.pages)?,
        Size::Shmmax(typed) => pages::shmmax(typed.segment, typed.base)?,
        Size::Jvm(typed) => jvm::jvm(&jvm_of(typed))?,
        Size::Oracle(typed) => database::oracle(one_of(typed.size, typed.sga), typed.instances, typed.pages)?,
        Size::Innodb(typed) => database::innodb(&innodb_of(typed), typed.pages)?,
        Size::Redis(typed) => database::redis(
            one_of(typed.size, typed.maxmemory),
            typed.written,
            Bytes::kib(4),
            typed.pages,
        )?,
        Size::Vm(typed) => machine::vm(one_of(typed.size, typed.memory), typed.count, typed.nodes, typed.pages)?,
        Size::Dpdk(typed) => machine::dpdk(&typed.socket_mem, typed.mbufs, typed.pages)?,
        Size::EsxCpu(typed) => match typed.vcpus {
            Some(vcpus) => esx::latency_sensitive(vcpus, typed.smt, typed.ghz),
            // Both are required then.
            None => esx::cpu(
                typed.cores.unwrap_or_default(),
                typed.ghz,
                typed.reserved_mhz.unwrap_or_default(),
            )?,
        },
        Size::EsxMemory(typed) => esx::memory(typed.total, typed.reserved, typed.step)?,
        Size::EsxBacking(typed) => esx::backing(typed.memory, typed.pages_1g, typed.pages_2m),
        Size::EsxMinfree(typed) => esx::min_free_sizing(typed.memory),
        Size::IdleTax(typed) => esx::idle_tax(typed.shares, typed.pages, typed.active, typed.tax)?,
        Size::Ksm(typed) => ksm::sizing(
            typed.pages_to_scan,
            typed.sleep_ms,
            typed.pages_sharing,
            typed.rmap_items,
            typed.memory,
        )?,
        Size::Gain(typed) => gain::sizing(&typed.old, &typed.new)?,
        Size::Reach(_) | Size::Postgres(_) => Sizing::default(),
    })
}

/// The size as a word, or behind its flag: one of both is required.
fn one_of(word: Option<Bytes>, flag: Option<Bytes>) -> Bytes {
    word.or(flag).unwrap_or(Bytes(0))
}

fn jvm_of(typed: &typed::Jvm) -> Jvm {
    Jvm {
        heap: one_of(typed.size, typed.heap),
        code_cache: typed.code_cache,
        metaspace: typed.metaspace,
        threads: typed.threads,
        collector: typed.collector,
        jdk: typed.jdk,
        page: typed.pages,
    }
}

fn innodb_of(typed: &typed::Innodb) -> Innodb {
    Innodb {
        chunk: typed.chunk,
        instances: typed.instances,
        is_mariadb: typed.mariadb,
        ..Innodb::new(one_of(typed.size, typed.buffer_pool))
    }
}

/// What the server says, or an estimate from its file, with the warning that it is one.
fn postgres(source: &Source, typed: &typed::Postgres) -> anyhow::Result<(Sizing, Vec<Warning>)> {
    let mut settings = Postgres::default();
    let mut warnings = Vec::new();
    if let Some(file) = &typed.file {
        let name = file.display().to_string();
        let text = Input::Configuration.text(file);
        let text = text.with_context(|| format!("size postgres {name}"))?;
        settings = Postgres::parse(&name, &text)?;
        let over = PathBuf::from(auto_conf(&name, &text));
        if over.is_file() {
            let name = over.display().to_string();
            settings = settings.and(&name, &Input::Configuration.text(&over).with_context(|| name.clone())?)?;
        }
        if !typed.estimate && typed.shared_buffers.is_none() {
            let page = settings.page.unwrap_or(typed.pages);
            match server::pages(source, file, page) {
                Ok((pages, origin)) => return Ok((postgres::told(pages, page, origin)?, warnings)),
                Err(why) => warnings.push(estimated(&why)),
            }
        }
    }
    settings.shared_buffers = typed.shared_buffers.unwrap_or(settings.shared_buffers);
    Ok((postgres::postgres(&settings, typed.pages)?, warnings))
}

/// Notes on page counts that the server did not report itself.
pub(super) fn estimated(why: &str) -> Warning {
    let text = format!("the server could not be asked ({why}); the pages are an estimate, a few per cent too many");
    Warning::new("estimated", text)
}
