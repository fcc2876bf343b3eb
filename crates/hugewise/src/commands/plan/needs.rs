//! The pool pages that a goal takes, worked out by the calculators of `hugewise size`.

use std::path::Path;

use anyhow::{Context, bail};
use host::Source;
use model::sizing::{Sizing, Step};
use model::{Bytes, Warning};
use plan::goal::{DatabaseGoal, Goal, Hypervisor, JvmGoal, JvmKind, Want};
use plan::{Host, Need};
use programs::config::mysql::Options;
use programs::config::postgres::Configuration;
use programs::size::jvm::{self, Jvm};
use programs::size::machine;
use programs::size::mysql::{Innodb, innodb};
use programs::size::oracle;
use programs::size::pages;
use programs::size::postgres::{self, Origin, Postgres};
use programs::{Kind, auto_conf};

use super::super::running::{self, Own};
use super::super::size::{ask_postgres, estimated};

/// Pages for the goal, beside those in use; goals that name their pages themselves need none here.
pub(super) fn needs(
    goal: &Goal,
    own: &Own,
    host: &Host<'_>,
    source: &Source,
    warnings: &mut Vec<Warning>,
) -> anyhow::Result<Vec<Need>> {
    let default = host.default_page();
    let (sizing, page, node) = match &goal.want {
        Want::Jvm(jvm) => return of_jvm(jvm, own, host),
        Want::Vm(vm) if vm.hypervisor != Hypervisor::Esx => {
            let mut sizing = machine::vm(vm.memory, vm.count, 1, vm.page)?;
            // What a node and a guest take are no parts of a sum.
            sizing.steps.retain(|step| step.name == "pages");
            (sizing, vm.page, vm.node)
        }
        Want::Oracle(goal) => (oracle(goal.sga, goal.instances, default)?, default, None),
        Want::Database(goal) => {
            let (sizing, page) = match goal.kind {
                Kind::Postgres => of_postgres(goal, own, (source, default), warnings)?,
                Kind::Mysql => of_mysql(goal, own, source, default)?,
                other => bail!("no calculator is known for {}", other.title()),
            };
            (sizing, page, None)
        }
        Want::Pool(_) | Want::Thp(_) | Want::Redis | Want::Vm(_) | Want::Kubernetes(_) | Want::Placement(_) => {
            return Ok(Vec::new());
        }
    };
    Ok(need(&sizing, "pages", page, node, own).into_iter().collect())
}

/// A step of the arithmetic as a need.
fn need(sizing: &Sizing, step: &str, page: Bytes, node: Option<u32>, own: &Own) -> Option<Need> {
    let pages = sizing.whole(step).filter(|&pages| pages > 0)?;
    let is_beside = |step: &&Step| step.name.starts_with("pages_");
    let is_part = |step: &&Step| step.unit.starts_with("pages") && step.name != "pages" && !is_beside(step);
    let parts = sizing.steps.iter().filter(is_part);
    let parts: Vec<String> = parts.map(|step| format!("{} {}", step.name, step.value)).collect();
    let how = match step {
        // The heap's pages are of another size, and so another pool's.
        "pages_2m" => format!("{pages} pages of {} for what is not the heap of that JVM", page.exact()),
        _ if parts.len() > 1 => format!("{}: {pages} ({})", sizing.about, parts.join(", ")),
        _ => format!("{}: {pages}", sizing.about),
    };
    Some(wanted(page, node, pages, how, own))
}

fn wanted(page: Bytes, node: Option<u32>, pages: u64, how: String, own: &Own) -> Need {
    Need {
        page,
        node,
        pages,
        how,
        own: own.pages(page),
        asks: own.asks,
    }
}

/// JDK 5 and 6 were sized by their heap alone, as the JBoss post does it.
fn of_jvm(goal: &JvmGoal, own: &Own, host: &Host<'_>) -> anyhow::Result<Vec<Need>> {
    let Some(page) = goal.page_on(host).map_err(anyhow::Error::msg)? else {
        return Ok(Vec::new());
    };
    if goal.kind_on(host) == JvmKind::Sun {
        let about = pages::pages(goal.heap, page)?.about;
        let pages = model::sizing::pages_for(goal.heap, page)?;
        let how = format!("{about}: {} B / {} B = {pages}", goal.heap.0, page.0);
        return Ok(vec![wanted(page, None, pages, how, own)]);
    }
    let sizing = match goal.kind_on(host) {
        JvmKind::OpenJ9 => jvm::openj9(goal.heap, page, goal.code_cache)?,
        _ => jvm::jvm(&Jvm::known(goal.heap, page, goal.collector, goal.jdk, goal.code_cache))?,
    };
    let heap = need(&sizing, "pages", page, None, own).into_iter();
    Ok(heap
        .chain(need(&sizing, "pages_2m", Bytes::mib(2), None, own))
        .collect())
}

/// What the server says; of a captured machine, or without its program, an estimate.
fn of_postgres(
    goal: &DatabaseGoal,
    own: &Own,
    (source, default): (&Source, Bytes),
    warnings: &mut Vec<Warning>,
) -> anyhow::Result<(Sizing, Bytes)> {
    let text = source.text(&goal.file).into_result();
    let text = text.context("name the server's configuration file")?;
    let read = Configuration::read(source, "", &goal.file)?;
    let mut settings = Postgres::of(&read.settings)?;
    let over = auto_conf(&goal.file, &text);
    if let Some(text) = source.text(&over).known() {
        settings = settings.and(&over, text)?;
    }
    settings = settings.with(&own.typed())?;
    let page = goal.page.or(settings.page).unwrap_or(default);
    let is_own = goal
        .page
        .is_none_or(|page| Some(page) == settings.page || page == default);
    let said = ask_postgres::pages(source, Path::new(&goal.file), page).and_then(|said| match said {
        (_, Origin::Program) if !is_own => Err("it would print the number for another page size".to_owned()),
        said => Ok(said),
    });
    let sizing = match said {
        Ok((pages, origin)) => postgres::told(pages, page, origin)?,
        Err(why) => {
            warnings.push(estimated(&why));
            postgres::postgres(
                &Postgres {
                    page: Some(page),
                    ..settings
                },
                default,
            )?
        }
    };
    Ok((sizing, page))
}

fn of_mysql(goal: &DatabaseGoal, own: &Own, source: &Source, default: Bytes) -> anyhow::Result<(Sizing, Bytes)> {
    let page = goal.page.unwrap_or(default);
    let options = Options::read(source, "", &goal.file).context("name the server's configuration file")?;
    let mut settings = Innodb::of(options.settings.with(&own.typed()).pairs());
    settings.is_mariadb = running::is_mariadb(source, goal);
    settings.pool = goal.buffer_pool.unwrap_or(settings.pool);
    Ok((innodb(&settings, page)?, page))
}
