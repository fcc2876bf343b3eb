//! Whether a program uses huge pages: the answer, its numbers, the reasons and the next commands.

use doctor::usage::{
    Asked, Command, Database, HugetlbPages, InUse, Part, PartKind, PoolState, Server, Step, Usage, Why,
};
use model::{Backing, Bytes, Cause, PageKind, Reading};

use crate::render::fix::plan::quoted;
use crate::results::Explain;
use crate::show::{Shape, Show, wrapped};
use draw::axis::number;
use draw::columns;
use draw::layout::behind;
use draw::look::Look;
use draw::safe::printable;
use draw::sheet::Sheet;
use draw::table::{self, Field, Lines};
use draw::words::{counted, or, or_empty};

impl Shape for Explain {
    const NAME: &'static str = "explain";
}

impl Show for Explain {
    fn title(&self) -> String {
        format!("Huge pages of {}", self.target)
    }

    fn headlines(&self) -> Vec<String> {
        self.programs.iter().map(answer).collect()
    }

    fn sheets(&self) -> Vec<Sheet> {
        let programs = self.programs.iter();
        programs.flat_map(|usage| sheets(usage, &self.target)).collect()
    }

    fn text(&self, look: Look) -> String {
        let programs = self.programs.iter().map(|usage| text(usage, &self.target, look));
        programs.collect::<Vec<_>>().join("\n")
    }

    fn csv(&self) -> Lines<'_> {
        table::lines(fields(), self.programs.iter().flat_map(parts))
    }
}

fn parts(usage: &Usage) -> impl Iterator<Item = (&Usage, &Part)> {
    usage.parts.iter().map(move |part| (usage, part))
}

fn fields<'a>() -> [Field<(&'a Usage, &'a Part)>; 12] {
    columns![|(usage, part)| (&Usage, &Part);
        pid => usage.pid, name => usage.name, in_use => usage.in_use, part => title(part.what), size => part.size.0,
        touched => part.touched.known()?.0, page => part.hugetlb?.page.0, pages => part.hugetlb?.total,
        touched_pages => part.hugetlb?.touched?, reserved_pages => part.hugetlb?.reserved()?,
        needs_pages => part.needs?.pages, backing => part.backing.known()?,
    ]
}

/// Columns of a label and the blanks behind it.
const LABEL: usize = 16;

/// The answer and its numbers first, then settings and findings, then the commands.
fn text(usage: &Usage, target: &str, look: Look) -> String {
    let mut text = format!("{}\n", printable(&name(usage)));
    for (label, line) in facts(usage) {
        let lines = wrapped(&printable(&line), look.width.saturating_sub(LABEL as u16 + 2));
        let lines = lines.lines().map(str::to_owned);
        text += &behind(&format!("  {label}"), LABEL + 2, lines);
    }
    let tables = tables(usage).into_iter().map(|sheet| format!("\n{}", sheet.text(look)));
    text.extend(tables);
    let steps = next(usage, target);
    if steps.is_empty() {
        return text;
    }
    text += "\nNext\n";
    let steps = steps.into_iter();
    text.extend(steps.map(|step| format!("  {}\n", printable(&step))));
    text
}

/// What a reader wants to know first, each under a label.
fn facts(usage: &Usage) -> Vec<(String, String)> {
    let fact = |label: &str, text: String| (label.to_owned(), text);
    let parts = usage.parts.iter();
    let parts = parts.map(|part| {
        (
            title(part.what).to_owned(),
            in_numbers(part) + &of_processes(usage, part),
        )
    });
    let asked = usage.of_process.as_ref().map(|process| {
        let backing = match &process.backing {
            Reading::Known(backing) => format!("{} without shared memory: {}", backing.total(), mixed(backing)),
            Reading::Unread(why) => format!("could not be read: {why}"),
        };
        (
            format!("process {}", process.pid),
            format!("{}, {backing}", process.name),
        )
    });
    let resident = resident(usage).map(|text| fact("resident", text));
    let pools = usage.pools.iter().filter(|pool| matters(usage, pool));
    let pools = pools.map(|one| (format!("{} pool", one.page), pool(one)));
    let why = usage.why.iter().enumerate();
    let why = why.map(|(number, why)| fact(if number == 0 { "why base" } else { "" }, reason(why)));
    std::iter::once(fact("in use?", short(usage)))
        .chain(parts)
        .chain(asked)
        .chain(resident)
        .chain(pools)
        .chain(why)
        .collect()
}

/// Private memory is that of all processes.
fn of_processes(usage: &Usage, part: &Part) -> String {
    let all = usage.others + 1;
    match part.what {
        PartKind::PrivateMemory | PartKind::MappedFiles if all > 1 && part.backing.known().is_some() => {
            let counted = match usage.counted {
                counted if counted >= all => format!("all {all}"),
                counted => format!("{counted} of {all}"),
            };
            format!(" (of {counted} processes)")
        }
        _ => String::new(),
    }
}

/// `269M, 80.2 % on huge pages: private 3.1M (0 %) + files 266M (81.2 %)`.
fn resident(usage: &Usage) -> Option<String> {
    let coverage = usage.resident.known()?;
    let sorts = [
        ("private", &coverage.private),
        ("shared", &coverage.shared),
        ("files", &coverage.file),
    ];
    let share = |backing: &Backing| format!("{} %", number(backing.coverage().unwrap_or(0.0) * 100.0));
    let sorts: Vec<String> = sorts
        .into_iter()
        .filter(|(_, backing)| backing.total().0 > 0)
        .map(|(name, backing)| format!("{name} {} ({})", backing.total(), share(backing)))
        .collect();
    let all = coverage.all();
    (all.total().0 > 0).then(|| format!("{}, {} on huge pages: {}", all.total(), share(&all), sorts.join(" + ")))
}

/// `PostgreSQL, postgres (4711) and 5 more processes`.
fn name(usage: &Usage) -> String {
    let program = or_empty(usage.program.as_ref().map(|program| format!("{program}, ")));
    let others = match usage.others {
        0 => String::new(),
        1 => " and 1 more process".to_owned(),
        others => format!(" and {others} more processes"),
    };
    format!("{program}{} ({}){others}", usage.name, usage.pid)
}

fn answer(usage: &Usage) -> String {
    format!("{}: {}", name(usage), short(usage))
}

/// `no: shared memory is backed by base pages`.
fn short(usage: &Usage) -> String {
    let what = usage.parts.first().map_or("its memory", |part| title(part.what));
    let kinds = usage.parts.first().map_or_else(String::new, kinds);
    let denied = usage.parts.first().is_some_and(|part| part.backing.unread().is_some());
    match (usage.in_use, usage.hugetlb) {
        (InUse::Yes, Some(bytes)) if denied => {
            return format!("yes: {bytes} is backed by hugetlb pages; what backs the rest takes root to read");
        }
        _ => {}
    }
    match usage.in_use {
        InUse::Yes => format!("yes: {what} is backed by {kinds}"),
        InUse::Partly => format!("in part: {what} is backed by {kinds}"),
        InUse::No => format!("no: {what} is backed by {kinds}"),
        InUse::Unknown if usage.parts.first().is_some_and(is_absent) => format!("unknown: {what} was not found"),
        InUse::Unknown if denied => "unknown: its mappings could not be read".to_owned(),
        InUse::Unknown => format!("unknown: {what} could not be read or is not touched yet"),
    }
}

fn is_absent(part: &Part) -> bool {
    part.backing.unread().is_some_and(|why| why.unread == Cause::Absent)
}

fn title(what: PartKind) -> &'static str {
    match what {
        PartKind::SharedMemory => "shared memory",
        PartKind::JavaHeap => "Java heap",
        PartKind::GuestMemory => "guest memory",
        PartKind::PrivateMemory => "private memory",
        PartKind::MappedFiles => "file memory",
    }
}

/// `base pages`, or each kind with its bytes.
fn kinds(part: &Part) -> String {
    if let Some(pages) = part.hugetlb {
        let kind = PageKind::Hugetlb(pages.page);
        return match part.in_use() {
            InUse::Yes => format!("{kind} pages"),
            _ => format!(
                "{kind} {}{}",
                Bytes(pages.total.saturating_mul(pages.page.0)),
                beside(&part.backing)
            ),
        };
    }
    match &part.backing {
        Reading::Unread(why) => format!("pages that could not be read: {why}"),
        Reading::Known(backing) => mixed(backing),
    }
}

fn mixed(backing: &Backing) -> String {
    let kinds: Vec<_> = backing.iter().filter(|(_, bytes)| bytes.0 > 0).collect();
    match kinds.as_slice() {
        [] => "no page yet".to_owned(),
        [(kind, _)] => format!("{kind} pages"),
        several => {
            let each = several.iter().map(|(kind, bytes)| format!("{kind} {bytes}"));
            each.collect::<Vec<_>>().join(", ")
        }
    }
}

/// `1.0G: hugetlb-2M, 537 pages: 325 touched + 212 reserved`.
fn in_numbers(part: &Part) -> String {
    if let (None, Some(why)) = (part.hugetlb, part.backing.unread()) {
        return match why.unread {
            Cause::Absent => format!("not found in {}: {}", why.place, why.why),
            _ => format!("could not be read: {why}"),
        };
    }
    let size = part.size;
    let body = match (part.hugetlb, &part.backing) {
        (Some(pages), backing) => format!("{}{}", hugetlb(&pages), beside(backing)),
        (None, Reading::Unread(_)) => String::new(),
        (None, Reading::Known(backing)) => {
            let needs = part.needs.filter(|_| part.in_use() != InUse::Yes);
            let needs = needs.map_or_else(String::new, |needs| {
                let pages = counted(needs.pages as usize, "page");
                let beside = match part.what {
                    PartKind::JavaHeap => " with code cache and collector tables",
                    _ => "",
                };
                format!("; {pages} of {} would hold it{beside}", PageKind::Hugetlb(needs.page))
            });
            format!("{}{needs}", mixed(backing))
        }
    };
    let touched = part.touched.known().filter(|_| part.hugetlb.is_none());
    let touched = touched.map_or_else(String::new, |bytes| format!(", {bytes} touched"));
    format!("{size}{touched}: {body}")
}

/// What of a part lies beside the pages of a pool.
fn beside(backing: &Reading<Backing>) -> String {
    let other = backing.known().into_iter().flat_map(Backing::iter);
    let other: Vec<String> = other
        .filter(|(kind, bytes)| kind.pool().is_none() && bytes.0 > 0)
        .map(|(kind, bytes)| format!(", {kind} {bytes}"))
        .collect();
    other.concat()
}

fn hugetlb(pages: &HugetlbPages) -> String {
    let kind = PageKind::Hugetlb(pages.page);
    let total = counted(pages.total as usize, "page");
    match (pages.touched, pages.reserved()) {
        (Some(touched), Some(reserved)) => format!("{kind}, {total}: {touched} touched + {reserved} reserved"),
        _ => {
            format!("{kind}, {total}; how many are touched is not known (root can read it, a capture does not hold it)")
        }
    }
}

/// Does the pool hold pages, or could it have served the program?
fn matters(usage: &Usage, pool: &PoolState) -> bool {
    let pages = |part: &Part| [part.needs.map(|needs| needs.page), part.hugetlb.map(|pages| pages.page)];
    let is_filled = pool.pages.known().is_some_and(|pages| *pages > 0);
    is_filled || usage.parts.iter().flat_map(pages).any(|page| page == Some(pool.page))
}

fn pool(pool: &PoolState) -> String {
    let pages = pool.pages.known().map(|pages| counted(*pages as usize, "page"));
    let pages = or(pages, "size unknown");
    let spare = or(pool.spare.map(|spare| format!("{spare} spare")), "spare unknown");
    let on_demand = or_empty(pool.on_demand.map(|added| {
        let which = match pool.spare == Some(added) {
            true => String::new(),
            false => format!(" {added} of them"),
        };
        format!(",{which} added by the kernel on demand if it finds memory")
    }));
    format!("{pages}, {spare}{on_demand}")
}

fn reason(why: &Why) -> String {
    match why {
        Why::NotAsked { setting } => format!("it does not ask for huge pages ({setting})"),
        Why::PoolShort { needs, spare } => format!(
            "the {} pool has room for {spare} of {} needed, and the program fell back to base pages",
            needs.page,
            counted(needs.pages as usize, "page")
        ),
        Why::Restart { needs, spare } => format!(
            "the {} pool has {spare} spare pages of {} needed now; such memory is taken at the start only: restart it",
            needs.page, needs.pages
        ),
        Why::HeapFile { directory } => format!(
            "its heap is a file in {directory} (-XX:AllocateHeapAt): the file system decides how far huge pages back it"
        ),
        Why::Thp { part, reason, bytes } => format!("{bytes} of {}: {reason}", title(*part)),
    }
}

/// Pages of a pool cannot change under a running program; other memory can.
fn compare(usage: &Usage, server: Option<&Server>, command: Option<&Command>) -> Vec<String> {
    let pages = usage.parts.first().and_then(|part| part.hugetlb);
    let Some(pages) = pages else { return Vec::new() };
    let kind = PageKind::Hugetlb(pages.page);
    match (server, command) {
        (Some(server), _) => served(usage, server, kind),
        (None, Some(command)) => vec![format!(
            "sudo hugewise compare --arms base,{kind} -- {}",
            started(command.ids, &command.arguments)
        )],
        (None, None) => vec![format!("sudo hugewise compare --arms base,{kind} -- COMMAND")],
    }
}

/// In the running process, with what shows how much it does: its users know that.
fn live(usage: &Usage) -> Vec<String> {
    let by = match usage.program.as_deref() {
        Some("Redis") => "--load 'redis-benchmark -q -t get -n 200000' --metric 'get=GET: ([0-9.]+) requests,higher'",
        _ => "--load 'COMMAND THAT USES IT'",
    };
    vec![format!("sudo hugewise compare --live {} {by}", usage.pid)]
}

/// As root starts it with the rights that it has.
fn started((user, group): (u32, u32), arguments: &[String]) -> String {
    let rights = format!("setpriv --reuid={user} --regid={group} --init-groups");
    let arguments = arguments.iter().map(|argument| word(argument));
    let rights = (user != 0).then_some(rights);
    rights.into_iter().chain(arguments).collect::<Vec<_>>().join(" ")
}

/// The server is stopped, and started by the comparison as it was, with a load that can be replaced.
fn served(usage: &Usage, server: &Server, kind: PageKind) -> Vec<String> {
    let at = |port: &str, socket: &str| {
        let port = server.port.map(|number| format!(" {port}{number}"));
        let socket = server.socket.as_ref().map(|path| format!(" {socket}{}", word(path)));
        socket.unwrap_or_default() + &port.unwrap_or_default()
    };
    let (ready, load, metric) = match server.database {
        Database::Postgres => {
            let at = at("-p ", "-h ");
            let load = format!("pgbench{at} -U postgres -n -S -c 2 -T 10 postgres");
            (format!("pg_isready{at}"), load, "tps=tps = ([0-9.]+),higher")
        }
        Database::Mysql => {
            let at = at("--port=", "--socket=");
            let load = format!("mysqlslap{at} --auto-generate-sql --concurrency=2 --number-of-queries=20000");
            (
                format!("mysqladmin{at} ping"),
                load,
                "seconds=seconds to run all queries: ([0-9.]+),lower",
            )
        }
    };
    let stop = match &usage.unit {
        Some(unit) => format!("sudo systemctl stop {unit}"),
        None => format!("stop {} ({})", usage.name, usage.pid),
    };
    let first = match server.database {
        Database::Postgres => Some(format!("pgbench{} -U postgres -i -s 50 postgres", at("-p ", "-h "))),
        Database::Mysql => None,
    };
    let compare = format!(
        "sudo hugewise compare --arms base,{kind} --ready {} --load {} --metric {} -- {}",
        word(&ready),
        word(&load),
        word(metric),
        started(server.ids, &server.arguments)
    );
    first.into_iter().chain([stop, compare]).collect()
}

/// As a shell takes it: in quotes only where it needs them.
fn word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-=:,+@".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => quoted(text),
    }
}

/// Commands to type, in order.
fn next(usage: &Usage, target: &str) -> Vec<String> {
    let step = |step: &Step| match step {
        Step::Plan { goal } => vec![
            format!("hugewise plan --for {goal} --output plan.json"),
            "sudo hugewise apply plan.json".to_owned(),
        ],
        Step::Set { setting, place } if place.starts_with("/proc/") => {
            vec![format!("set {setting} where {} gets its options", usage.name)]
        }
        Step::Set { setting, place } => vec![format!("set {setting} ({place})")],
        Step::LeaveOut { setting, .. } => vec![format!("leave out {setting} where {} gets its options", usage.name)],
        Step::Restart { unit: Some(unit) } => vec![format!("sudo systemctl restart {unit}")],
        Step::Restart { unit: None } => vec![format!("restart {} ({})", usage.name, usage.pid)],
        Step::Explain => vec![format!("hugewise explain {target}")],
        Step::ExplainAsRoot => vec![format!("sudo hugewise explain {target}")],
        Step::CompareLive => live(usage),
        Step::Collapse => vec![format!("sudo hugewise collapse {}", usage.pid)],
        Step::Compare { server, command } => compare(usage, server.as_ref(), command.as_ref()),
        Step::MeasureGuest => vec!["sudo hugewise measure guest".to_owned()],
    };
    usage.next.iter().flat_map(step).collect()
}

fn sheets(usage: &Usage, target: &str) -> Vec<Sheet> {
    let mut account = Sheet::new(&name(usage), ["what", "state"]);
    let facts = facts(usage).into_iter();
    facts.for_each(|(label, text)| account.row([label, text]));
    let mut commands = Sheet::new("Next", ["command or step"]);
    next(usage, target).into_iter().for_each(|step| commands.row([step]));
    std::iter::once(account)
        .chain(tables(usage))
        .chain([commands])
        .collect()
}

/// What the answer rests on.
fn tables(usage: &Usage) -> Vec<Sheet> {
    let mut settings = Sheet::new("Settings that decide", ["setting", "value", "read from"]);
    for Asked { setting, value, place } in &usage.asked {
        let value = match value {
            Reading::Known(value) => value.clone().unwrap_or_else(|| "not set".to_owned()),
            Reading::Unread(why) => format!("could not be read: {why}"),
        };
        settings.row([setting, &value, place]);
    }
    let mut findings = Sheet::new("Findings", ["severity", "rule", "finding"]);
    for finding in &usage.findings {
        findings.row([&finding.severity.to_string(), &finding.id, &finding.consequence]);
    }
    let mut log = Sheet::new("Its own log", ["line", "text"]);
    usage.log.iter().for_each(|line| log.row([&line.place, &line.text]));
    for cut in &usage.log_cut {
        let (file, read, size) = (&cut.file, &cut.read, &cut.size);
        log.note(format!("{file}: only the last {read} of {size} were read"));
    }
    [settings, log, findings]
        .into_iter()
        .filter(|sheet| !sheet.rows.is_empty() || !sheet.notes.is_empty())
        .collect()
}
