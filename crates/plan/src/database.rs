//! PostgreSQL, InnoDB, Oracle and Redis: their own settings, and what they ask of the system.

use model::Reading;
use model::plan::{Layer, Value};
use programs::Kind;
use programs::config::mysql::{Options, is_on};
use programs::config::postgres::Configuration;
use programs::config::{Setting, Settings};
use programs::postgres::{no_mmap, page};

use super::draft::{Draft, Drafts};
use super::files::{sets, with_line, with_line_in};
use super::goal::{DatabaseGoal, OracleGoal};
use super::limits::{Shared, shared};
use super::{Facts, Need, thp};

/// What the server's own files shall say.
pub(super) fn draft(
    drafts: &mut Drafts<'_>,
    database: &DatabaseGoal,
    needs: &[Need],
    program: &Facts,
) -> Result<(), String> {
    must_be_there(drafts, &database.file)?;
    match database.kind {
        Kind::Postgres => postgres(drafts, database, &program.typed),
        Kind::Mysql => mysql(drafts, database, needs, program),
        other => Err(format!("no lines are known for {}", other.title())),
    }
}

/// `huge_pages = on`: no start without the pool, instead of a silent fall-back. Shared memory of another type than mmap takes no huge pages, and with it
/// the server does not start then.
fn postgres(drafts: &mut Drafts<'_>, database: &DatabaseGoal, typed: &Settings) -> Result<(), String> {
    let over = programs::auto_conf(&database.file, &drafts.host.text(&database.file));
    let overriding = drafts.host.text(&over);
    let set = Configuration::read(drafts.host.source, "", &database.file).unwrap_or_default();
    let falls_back = "with `try` the server silently uses base pages when the pool is too small";
    let mut lines = vec![("huge_pages", "on".to_owned(), falls_back)];
    if let Some(page) = database.page {
        lines.push(("huge_page_size", format!("{}kB", page.0 >> 10), falls_back));
    }
    if no_mmap(&set.settings.with(typed)).is_some() {
        let why = "shared memory of another type takes no huge pages, and the server does not start then";
        lines.push(("shared_memory_type", "mmap".to_owned(), why));
    }
    for (name, value, why) in lines {
        must_be_typed_so(drafts, database, typed, (name, &value))?;
        let line = format!("{name} = {value}");
        let is_it = |found: &str| sets(&found.to_ascii_lowercase(), name);
        let is_overridden = overriding.lines().any(is_it);
        let (draft, why) = if is_overridden {
            let text = format!("ALTER SYSTEM SET {name} = '{value}';");
            let on = "the server, in psql as a superuser";
            let draft = Draft::instruction(Layer::Application, "postgresql-auto-conf", on, text);
            let why = format!("`{line}`: {over} sets {name} too and comes last; it is written by ALTER SYSTEM only");
            (draft, why)
        } else {
            let with = |text: &str| with_line(text, &line, is_it);
            let draft = drafts.edit(Layer::Application, "postgresql-conf", &database.file, with);
            (draft, format!("`{line}`: {why}"))
        };
        let source = "PostgreSQL documentation, huge_pages";
        drafts.add(draft.restart(restart(database)), why, source);
        let included = set.settings.last_outside(&database.file, name);
        if let Some(other) = included.filter(|other| other.value != value && !is_overridden) {
            drafts.note(overridden(&database.file, other));
        }
    }
    Ok(())
}

/// That the command line of the running server sets the same, as it wins over every file; else the instruction to take it out there.
///
/// # Errors
/// Where the server would not start with that beside what its file is to say.
fn must_be_typed_so(
    drafts: &mut Drafts<'_>,
    database: &DatabaseGoal,
    typed: &Settings,
    (name, value): (&str, &str),
) -> Result<(), String> {
    let set = typed.last(name).filter(|set| !set.value.eq_ignore_ascii_case(value));
    let is_size = name == "huge_page_size";
    let Some(set) = set.filter(|_| !is_size || page(typed) != database.page) else {
        return Ok(());
    };
    if is_size || name == "shared_memory_type" {
        return Err(format!(
            "the command line of the running server sets {name} to {} ({}), which wins over its files, and the server would not start: \
             start it without that, and plan again",
            set.value, set.place
        ));
    }
    untyped(drafts, database, set);
    Ok(())
}

fn untyped(drafts: &mut Drafts<'_>, database: &DatabaseGoal, set: &Setting) {
    let Setting { place, name, value } = set;
    let text = format!("start the server without {name} = {value} on its command line");
    let draft = Draft::instruction(Layer::Application, "command-line", "what starts the server", text);
    let why = format!("{place} sets {name} to {value}, and the command line wins over every file");
    let source = "PostgreSQL documentation, Setting Parameters; MySQL Reference Manual, Specifying Program Options";
    drafts.add(draft.restart(restart(database)), why, source);
}

/// `large-pages` in `[mysqld]`, and what shmget(SHM_HUGETLB) asks for.
fn mysql(drafts: &mut Drafts<'_>, database: &DatabaseGoal, needs: &[Need], program: &Facts) -> Result<(), String> {
    let is_it = |found: &str| sets(found, "large-pages") || sets(found, "large_pages");
    let set = Options::read(drafts.host.source, "", &database.file).unwrap_or_default();
    let typed = program.typed.last("large_pages");
    if let Some(off) = typed.filter(|set| !is_on(&set.value)) {
        untyped(drafts, database, off);
    }
    let last = set.settings.last("large_pages");
    match typed.into_iter().chain(last).find(|set| is_on(&set.value)) {
        Some(set) => drafts.note(format!("{} requests huge pages already", set.place)),
        None => {
            let with = |text: &str| with_line_in(text, "[mysqld]", "large-pages", is_it);
            let after = Options::parse(&database.file, &with(&drafts.host.text(&database.file)));
            let off = after.settings.last("large_pages").filter(|last| !is_on(&last.value));
            if let Some(later) = off {
                let text = format!(
                    "{} sets it to {} in a later group, which wins: take that line out",
                    later.place, later.value
                );
                drafts.note(text);
            }
            let draft = drafts.edit(Layer::Application, "my-cnf", &database.file, with);
            let why = "requests huge pages for the buffer pool";
            let source = "MySQL Reference Manual, Enabling Large Page Support";
            drafts.add(draft.restart(restart(database)), why, source);
        }
    }
    let included = set.settings.last_outside(&database.file, "large_pages");
    if let Some(other) = included.filter(|other| !is_on(&other.value)) {
        drafts.note(overridden(&database.file, other));
    }
    if program.is_mariadb {
        drafts.note("MariaDB maps its memory since 10.5.3 (mmap(MAP_HUGETLB)): it needs no group and no memlock limit");
        return Ok(());
    }
    shared(drafts, &sharer(&database.user, database.service.as_deref(), needs))
}

/// That a file that another one includes may win over the line that a plan puts into that one.
fn overridden(file: &str, other: &Setting) -> String {
    let Setting { place, name, value } = other;
    format!(
        "{place}, which {file} includes, sets {name} to {value}: take that out, as it wins if it comes after the line in {file}"
    )
}

fn restart(database: &DatabaseGoal) -> String {
    match &database.service {
        Some(service) => format!("systemctl restart {service}"),
        None => format!("the server that reads {}", database.file),
    }
}

/// `use_large_pages=ONLY` without automatic memory management, and what shmget(SHM_HUGETLB) asks for.
pub(super) fn oracle(drafts: &mut Drafts<'_>, oracle: &OracleGoal, needs: &[Need]) -> Result<(), String> {
    let text = format!(
        "ALTER SYSTEM SET use_large_pages=ONLY SCOPE=SPFILE;\n\
         -- ORA-32010 is no fault here: the parameter is not in the spfile\n\
         ALTER SYSTEM RESET memory_target SCOPE=SPFILE;\nALTER SYSTEM RESET memory_max_target SCOPE=SPFILE;\n\
         ALTER SYSTEM SET sga_max_size={0} SCOPE=SPFILE;\nALTER SYSTEM SET sga_target={0} SCOPE=SPFILE;",
        oracle.sga.exact()
    );
    let draft = Draft::instruction(Layer::Application, "oracle-spfile", "each instance, as SYSDBA", text);
    let why = "memory_target puts the SGA on /dev/shm; with ONLY the instance does not start on base pages";
    let source = "Oracle Database Administrator's Reference for Linux; MOS 749851.1";
    drafts.add(draft.restart("the instances"), why, source);
    shared(drafts, &sharer(&oracle.user, None, needs))
}

/// No THP for all memory: after a fork each first write would copy a huge page.
pub(super) fn redis(drafts: &mut Drafts<'_>) -> Result<(), String> {
    match thp::policy(drafts).as_deref() {
        Some("always") => {
            let why = "Redis forks to save, and advises against THP for all memory: up to Linux 5.7 each first write copies a whole huge page";
            // A size that is off stays so.
            thp::set(drafts, "enabled", "madvise", &["never"], why)?;
        }
        _ => drafts.note(
            "Redis does not use hugetlb pages, and THP is not enabled for all memory here: \
             nothing to set",
        ),
    }
    let draft = Draft::instruction(Layer::Application, "redis-conf", "redis.conf", "disable-thp yes");
    let why = "the default since 6.2: Redis switches THP off for itself, whatever the policy";
    let source = "Redis documentation, Diagnosing latency issues";
    drafts.add(draft.restart("redis"), why, source);
    Ok(())
}

fn sharer<'g>(user: &'g str, service: Option<&'g str>, needs: &[Need]) -> Shared<'g> {
    Shared {
        user: Some(user),
        group: None,
        service,
        bytes: needs.iter().map(Need::bytes).sum(),
    }
}

fn must_be_there(drafts: &Drafts<'_>, file: &str) -> Result<(), String> {
    match drafts.host.file(file) {
        Reading::Known(Value::Text(_)) => Ok(()),
        Reading::Known(_) => Err(format!("{file} is not there (name the server's configuration file)")),
        Reading::Unread(why) => Err(format!("{why} (try with sudo)")),
    }
}
