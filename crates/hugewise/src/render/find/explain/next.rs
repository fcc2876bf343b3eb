//! The next steps as commands to type.

use std::collections::BTreeSet;

use doctor::explain::{Command, Server, Step, Usage};
use model::PageKind;
use programs::Kind;

use crate::render::export::word;
use draw::{joined, or, or_empty};

/// Pages of a pool cannot change under a running program; other memory can.
fn compare(usage: &Usage, server: Option<&Server>, command: Option<&Command>) -> Vec<String> {
    let pages = usage.parts.first().and_then(|part| part.hugetlb);
    let Some(pages) = pages else { return Vec::new() };
    let kind = PageKind::Hugetlb(pages.page);
    match (server, command) {
        (Some(server), _) => served(usage, server, kind),
        (None, Some(command)) => vec![format!(
            "sudo hugewise compare --arms base,{kind} -- {}",
            started(command.ids, command.arguments.iter().map(|argument| word(argument)))
        )],
        (None, None) => vec![format!("sudo hugewise compare --arms base,{kind} -- COMMAND")],
    }
}

/// In the running process, with what shows how much it does: often only its users know that.
fn live(usage: &Usage, port: Option<u16>, socket: Option<&String>) -> Vec<String> {
    let program = usage.program.as_deref();
    let by = program.and_then(|title| Kind::live_options(title, &|one, other| reached(port, socket, [one, other])));
    let by = or(by, "--load 'COMMAND THAT USES IT'");
    vec![format!("sudo hugewise compare --live {} {by}", usage.pid)]
}

/// As root starts it with the rights that it has.
fn started((user, group): (u32, u32), words: impl Iterator<Item = String>) -> String {
    let rights = format!("setpriv --reuid={user} --regid={group} --init-groups");
    let rights = (user != 0).then_some(rights).into_iter();
    joined(rights.chain(words), " ")
}

/// The options of a server's port and of its socket, as far as those are known.
fn reached(port: Option<u16>, socket: Option<&String>, [of_port, of_socket]: [&str; 2]) -> String {
    let port = port.map(|number| format!(" {of_port}{number}"));
    let socket = socket.map(|path| format!(" {of_socket}{}", word(path)));
    or_empty(socket) + &or_empty(port)
}

/// The server is stopped, and started by the comparison as it was, with a load that can be replaced.
fn served(usage: &Usage, server: &Server, kind: PageKind) -> Vec<String> {
    let at = |port: &str, socket: &str| reached(server.port, server.socket.as_ref(), [port, socket]);
    let Some((_, own)) = Kind::of_server(&server.database) else {
        return Vec::new();
    };
    let load = (own.load)(&at);
    let as_owner = |command: String| match load.as_owner {
        true => started(server.ids, std::iter::once(command)),
        false => command,
    };
    let [stop, start] = match &usage.unit {
        Some(unit) => ["stop", "start"].map(|verb| format!("sudo systemctl {verb} {}", word(unit))),
        None => [
            format!("stop {} ({})", usage.name, usage.pid),
            format!("start {} again", usage.name),
        ],
    };
    let first = load.fill.map(|fill| format!("sudo {}", as_owner(fill)));
    let compare = format!(
        "sudo hugewise compare --arms base,{kind} --ready {} --load {} --metric {} -- {}",
        word(&load.ready),
        word(&as_owner(load.load)),
        word(load.metric),
        started(server.ids, server.arguments.iter().map(|argument| word(argument)))
    );
    first.into_iter().chain([stop, compare, start]).collect()
}

/// What the program will go by: a restart gives it another PID.
fn then<'a>(usage: &'a Usage, target: &'a str) -> &'a str {
    let is_restarted = usage.next.iter().any(|step| matches!(step, Step::Restart { .. }));
    match is_restarted && target.parse::<u32>().is_ok() {
        true => usage.unit.as_deref().unwrap_or(&usage.name),
        false => target,
    }
}

/// Commands to type, in order.
pub(super) fn next(usage: &Usage, target: &str) -> Vec<String> {
    let step = |step: &Step| {
        match step {
        Step::Plan { goal } => vec![
            format!("hugewise plan --for {} --output plan.json", word(goal)),
            "sudo hugewise apply plan.json".to_owned(),
        ],
        Step::Set { setting, place } if place.starts_with("/proc/") => {
            vec![match setting.contains(" = ") {
                true => format!("set {setting} in the options of {}", usage.name),
                false => format!("add {setting} to the options of {}", usage.name),
            }]
        }
        Step::Set { setting, place } => vec![format!("set {setting} ({place})")],
        Step::LeaveOut { setting, .. } => vec![format!("remove {setting} from the options of {}", usage.name)],
        Step::Raise { file, bytes, page } if file.contains("kubepods") => vec![format!(
            "request hugepages-{}i: {}i in the pod's resources (the kubelet sets its limit)",
            page.exact(),
            bytes.exact()
        )],
        Step::Raise { file, bytes, .. } => vec![
            format!("echo {} | sudo tee {file}", bytes.0),
            "raise it also where it is configured (a unit, or the options of a container): this value is lost when the group is removed"
                .to_owned(),
        ],
        Step::Restart { unit: Some(unit) } => vec![format!("sudo systemctl restart {}", word(unit))],
        Step::Restart { unit: None } => vec![format!("restart {} ({})", usage.name, usage.pid)],
        Step::Explain => vec![format!("hugewise explain {}", word(then(usage, target)))],
        Step::ExplainAsRoot => vec![format!("sudo hugewise explain {}", word(target))],
        Step::CompareLive { port, socket } => live(usage, *port, socket.as_ref()),
        Step::Collapse => vec![format!("sudo hugewise collapse {}", usage.pid)],
        Step::Compare { server, command } => compare(usage, server.as_ref(), command.as_ref()),
        Step::MeasureGuest => vec!["sudo hugewise measure guest".to_owned()],
    }
    };
    let mut seen = BTreeSet::new();
    let steps: Vec<String> = usage.next.iter().flat_map(step).collect();
    // What several steps say stands behind the last of them.
    let once = steps.into_iter().rev().filter(|step| seen.insert(step.clone()));
    let mut once: Vec<String> = once.collect();
    once.reverse();
    once
}
