//! `hugewise size`: how many, and how far it reaches, with the arithmetic shown.

pub(super) mod ask_postgres;

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use host::{Input, Snapshot, Source};
use model::{Bytes, Warning};
use programs::auto_conf;
use programs::config::postgres::Configuration;
use programs::config::vmware;
use programs::size::jvm::{self, Jvm};
use programs::size::machine;
use programs::size::mysql::{Innodb, innodb};
use programs::size::oracle;
use programs::size::pages;
use programs::size::postgres::{self, Postgres};
use programs::size::redis;
use studies::size::{Sizing, esx, gain, ksm};

use super::session::Session;
use crate::cli::args::{self, Size};
use crate::results::ReachTable;
use crate::ui::Outcome;

pub(super) fn run(session: &mut Session<'_>, args: &Size) -> anyhow::Result<Outcome> {
    if let Size::Reach(args) = args {
        return reach(session, args);
    }
    let form = session.form::<Sizing>()?;
    let (sizing, warnings) = match args {
        Size::Postgres(args) => postgres(&session.source, args)?,
        other => (calculated(other)?, Vec::new()),
    };
    session.give_about(&Snapshot::take(&session.source), warnings, sizing, form)
}

fn reach(session: &mut Session<'_>, args: &args::Reach) -> anyhow::Result<Outcome> {
    let form = session.form::<ReachTable>()?;
    let table = ReachTable {
        rows: translation::reach::table(&args.pages, &args.entries, &args.working_set),
    };
    session.give_here(table, form)
}

/// Everything but what a server of this machine may be asked for.
fn calculated(args: &Size) -> anyhow::Result<Sizing> {
    Ok(match args {
        Size::Pages(args) => pages::pages(args.bytes, args.pages)?,
        Size::Memlock(args) => pages::memlock(args.bytes, args.pages)?,
        Size::Shmmax(args) => pages::shmmax(args.segment, args.base)?,
        Size::Jvm(args) => jvm::jvm(&jvm_of(args))?,
        Size::Oracle(args) => oracle(one_of(args.size, args.sga), args.instances, args.pages)?,
        Size::Innodb(args) => innodb(&innodb_of(args), args.pages)?,
        Size::Redis(args) => redis(
            one_of(args.size, args.maxmemory),
            args.written,
            Bytes::kib(4),
            args.pages,
        )?,
        Size::Vm(args) => machine::vm(one_of(args.size, args.memory), args.count, args.nodes, args.pages)?,
        Size::Dpdk(args) => machine::dpdk(&args.socket_mem, args.mbufs, args.pages)?,
        Size::EsxCpu(args) => match args.vcpus {
            Some(vcpus) => esx::latency_sensitive(vcpus, args.smt, args.ghz),
            // Both are required then.
            None => esx::cpu(
                args.cores.unwrap_or_default(),
                args.ghz,
                printed(args.sched_stats.as_deref(), args.reserved_mhz, vmware::reserved_mhz)?,
            )?,
        },
        Size::EsxMemory(args) => esx::memory(args.total, args.reserved, args.step)?,
        Size::EsxBacking(args) => {
            let typed = args.pages_1g.map(|pages_1g| (pages_1g, 0));
            let (pages_1g, pages_2m) = printed(args.vsish.as_deref(), typed, vmware::page_backings)?;
            esx::backing(args.memory, pages_1g, args.pages_2m.unwrap_or(pages_2m))
        }
        Size::EsxMinfree(args) => esx::min_free_sizing(args.memory),
        Size::IdleTax(args) => esx::idle_tax(args.shares, args.pages, args.active, args.tax)?,
        Size::Ksm(args) => ksm::sizing(
            args.pages_to_scan,
            args.sleep_ms,
            args.pages_sharing,
            args.rmap_items,
            args.memory,
        )?,
        Size::Gain(args) => gain::sizing(&args.old, &args.new)?,
        Size::Reach(_) | Size::Postgres(_) => Sizing::default(),
    })
}

/// A number as typed, or as it stands in a file that a tool of ESX printed; one of both is required.
fn printed<T>(
    file: Option<&Path>,
    typed: Option<T>,
    read: impl Fn(&str) -> Result<T, &'static str>,
) -> anyhow::Result<T> {
    let Some(file) = file else {
        return typed.context("a number is required");
    };
    let bytes = Input::Configuration
        .read(file)
        .with_context(|| file.display().to_string())?;
    read(&String::from_utf8_lossy(&bytes)).map_err(|why| anyhow!("{}: {why}", file.display()))
}

/// The size as a word, or behind its flag: one of both is required.
fn one_of(word: Option<Bytes>, flag: Option<Bytes>) -> Bytes {
    word.or(flag).unwrap_or(Bytes(0))
}

fn jvm_of(args: &args::Jvm) -> Jvm {
    Jvm {
        heap: one_of(args.size, args.heap),
        code_cache: args.code_cache,
        metaspace: args.metaspace,
        threads: args.threads,
        collector: args.collector,
        jdk: args.jdk,
        page: args.pages,
    }
}

fn innodb_of(args: &args::Innodb) -> Innodb {
    Innodb {
        chunk: args.chunk,
        instances: args.instances,
        is_mariadb: args.mariadb,
        ..Innodb::new(one_of(args.size, args.buffer_pool))
    }
}

/// What the server says, or an estimate from its file, with the warning that it is one.
fn postgres(source: &Source, args: &args::Postgres) -> anyhow::Result<(Sizing, Vec<Warning>)> {
    let mut settings = Postgres::default();
    let mut warnings = Vec::new();
    let file = match &args.file {
        Some(directory) if directory.is_dir() => {
            let file = programs::postgres::in_directory(source, &directory.to_string_lossy());
            let file = file.map_err(|why| anyhow!("size postgres {}: {why}", directory.display()))?;
            Some(PathBuf::from(file))
        }
        file => file.clone(),
    };
    if let Some(file) = &file {
        let name = file.display().to_string();
        if let Some(write) = setting(&name).filter(|_| !file.exists()) {
            bail!("size postgres {name}: expected a file, got a setting ({write})");
        }
        let text = Input::Configuration.text(file);
        let text = text.with_context(|| format!("size postgres {name}"))?;
        // A line of its own that the server refuses has the name as typed. Files that it includes are on this machine too.
        Postgres::parse(&name, &text)?;
        let path = std::path::absolute(file)?;
        let read = Configuration::of_text(&Source::live(), &path.to_string_lossy(), &text)?;
        settings = Postgres::of(&read.settings)?;
        let over = PathBuf::from(auto_conf(&name, &text));
        if over.is_file() {
            let name = over.display().to_string();
            settings = settings.and(&name, &Input::Configuration.text(&over).with_context(|| name.clone())?)?;
        }
        if !args.estimate && args.shared_buffers.is_none() {
            let page = settings.page.unwrap_or(args.pages);
            match ask_postgres::pages(source, file, page) {
                Ok((pages, origin)) => return Ok((postgres::told(pages, page, origin)?, warnings)),
                Err(why) => warnings.push(estimated(&why)),
            }
        }
    }
    if file.is_none() && args.shared_buffers.is_none() {
        warnings.extend(running(source));
    }
    settings.shared_buffers = args.shared_buffers.unwrap_or(settings.shared_buffers);
    Ok((postgres::postgres(&settings, args.pages)?, warnings))
}

/// That a server runs here, whose number is not the one of the defaults.
fn running(source: &Source) -> Option<Warning> {
    let servers = programs::targets(source, &Snapshot::take(source), "postgres").ok()?;
    let (server, file) = servers
        .iter()
        .find_map(|server| Some((server, server.configuration()?)))?;
    let text = format!(
        "these are the defaults, and a server runs here (process {}): hugewise size postgres {file}",
        server.main.pid()
    );
    Some(Warning::new("server-runs", text))
}

/// What to write in place of `KEY=VALUE`, if that is what was typed.
fn setting(typed: &str) -> Option<String> {
    let (key, value) = typed.split_once('=').filter(|(key, _)| !key.contains('/'))?;
    Some(match key.trim() {
        "shared_buffers" => format!("write --shared-buffers {}", value.trim()),
        "huge_page_size" => format!("write --pages {}", value.trim()),
        _ => "write it to a file such as postgresql.conf, and give that".to_owned(),
    })
}

/// Notes on page counts that the server did not report itself.
pub(super) fn estimated(why: &str) -> Warning {
    let text = format!("the server could not be asked ({why}); the pages are an estimate, a few per cent too many");
    Warning::new("estimated", text)
}
