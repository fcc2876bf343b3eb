//! Which processes a word means: a PID, a known program, a name, a virtual machine, a systemd unit or a container.

use std::collections::{BTreeMap, BTreeSet};

use host::{Membership, Source};

use crate::{Kind, Program, containers, vms};

/// Fewer characters of a container's id mean too many of them.
const LEAST_ID: usize = 6;

/// That nothing goes by a word, if all processes were read, or that nothing of what was read does.
pub(super) fn nothing(word: &str, all_read: bool) -> String {
    let title = match Kind::of_word(word) {
        Some(Kind::Mysql) => "MySQL or MariaDB",
        Some(kind) => kind.title(),
        None if all_read => return format!("no process, virtual machine, unit or container is called `{word}`"),
        None => return format!("no process, virtual machine, unit or container that could be read is called `{word}`"),
    };
    let runs = if all_read { "runs here" } else { "was found" };
    format!("no {title} process {runs}, which is what `{word}` means")
}

/// The first way of reading the word that finds anything.
pub(super) fn programs<'a>(source: &Source, all: &'a [Program], word: &str) -> Vec<&'a Program> {
    if let Ok(pid) = word.parse::<u32>() {
        return all
            .iter()
            .find(|program| program.pid() == pid)
            .map_or_else(Vec::new, |asked| server(all, asked));
    }
    let kind = Kind::of_word(word);
    let of_kind = |program: &Program| kind.is_some() && program.kind.known().copied().flatten() == kind;
    let named = |program: &Program| program.pages.name == word || called(program) == Some(word);
    // Any program that holds a machine of KVM, whatever it is called.
    let runs_vm = |program: &Program| word == "vm" && vms::vm(source, program.pid()).is_some();
    let is_vm = |program: &Program| {
        let is_hypervisor = program.kind.known().copied().flatten().is_some_and(Kind::is_hypervisor);
        is_hypervisor && vms::vm(source, program.pid()).and_then(|vm| vm.name).as_deref() == Some(word)
    };
    let in_group = |program: &Program| is_in_group(source, program.pid(), word);
    // Reading the engines' files is left for words that mean nothing else so far.
    let containers = std::cell::LazyCell::new(|| containers::ids(source, word));
    let in_container = |program: &Program| {
        let membership = Membership::read(source, program.pid());
        let id = membership.known().and_then(Membership::container);
        id.is_some_and(|id| containers.iter().any(|container| container.starts_with(&id)))
    };
    let has_argument = |program: &Program| {
        let arguments = program.arguments.known().filter(|_| runs_others(program));
        arguments.is_some_and(|arguments| arguments.iter().any(|argument| file_name(argument) == word))
    };
    let ways: [&dyn Fn(&Program) -> bool; 7] = [
        &of_kind,
        &named,
        &runs_vm,
        &is_vm,
        &in_group,
        &in_container,
        &has_argument,
    ];
    let own = std::process::id();
    let others = || all.iter().filter(|program| program.pid() != own || !source.is_live());
    let mut found = ways
        .into_iter()
        .map(|way| others().filter(|program| way(program)).collect());
    found
        .find(|found: &Vec<&Program>| !found.is_empty())
        .unwrap_or_default()
}

/// All processes of the server that a process belongs to, which share its memory and its settings: those of PostgreSQL below one
/// postmaster. Of any other program the process alone.
fn server<'a>(all: &'a [Program], asked: &'a Program) -> Vec<&'a Program> {
    let is_postgres = |program: &&Program| program.kind.known() == Some(&Some(Kind::Postgres));
    if !is_postgres(&asked) {
        return vec![asked];
    }
    let postgres: Vec<&Program> = all.iter().filter(is_postgres).collect();
    let tops = tops(&postgres);
    let main = tops.get(&asked.pid());
    let is_of_it = |program: &&Program| tops.get(&program.pid()) == main;
    postgres.into_iter().filter(is_of_it).collect()
}

/// Of each of these programs the topmost one in the line of its parents that are among them.
fn tops(among: &[&Program]) -> BTreeMap<u32, u32> {
    let parents: BTreeMap<u32, Option<u32>> = among
        .iter()
        .map(|program| (program.pid(), program.parent.known().copied()))
        .collect();
    let mut tops: BTreeMap<u32, u32> = BTreeMap::new();
    for &pid in parents.keys() {
        let (mut line, mut seen) = (vec![pid], BTreeSet::from([pid]));
        let top = loop {
            let last = line[line.len() - 1];
            if let Some(&known) = tops.get(&last) {
                break known;
            }
            let parent = parents[&last].filter(|parent| parents.contains_key(parent));
            match parent {
                // A capture may hold a circle.
                Some(parent) if seen.insert(parent) => line.push(parent),
                _ => break last,
            }
        };
        tops.extend(line.into_iter().map(|pid| (pid, top)));
    }
    tops
}

/// Programs whose arguments name the program that they run.
const INTERPRETERS: [&str; 12] = [
    "java", "python", "perl", "ruby", "node", "php", "bash", "sh", "dash", "beam", "erl", "dotnet",
];

/// Is it a machine for programs of others, which go by the name of theirs?
fn runs_others(program: &Program) -> bool {
    let names = [Some(program.pages.name.as_str()), called(program)];
    let is_known = |name: &str| {
        let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        INTERPRETERS
            .iter()
            .any(|known| plain == *known || plain.starts_with(&format!("{known}.")))
    };
    program.is(Kind::Jvm).unwrap_or_default() || names.into_iter().flatten().any(is_known)
}

/// The file that it runs, without the directory.
fn called(program: &Program) -> Option<&str> {
    program.arguments.known()?.first().map(|first| file_name(first))
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// A unit by its name, with or without its type; a container by its id or the beginning of it.
fn is_in_group(source: &Source, pid: u32, word: &str) -> bool {
    let membership = Membership::read(source, pid);
    let Some(membership) = membership.known() else {
        return false;
    };
    let is_unit = membership
        .unit()
        .is_some_and(|unit| unit == word || unit.rsplit_once('.').is_some_and(|(name, _)| name == word));
    let is_id = word.len() >= LEAST_ID && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_unit || (is_id && membership.container().is_some_and(|id| id.contains(word)))
}

/// Each program that is below none of the others, with those that are below it. The largest first.
pub(super) fn families<'a>(meant: &[&'a Program]) -> Vec<(&'a Program, Vec<&'a Program>)> {
    let tops = tops(meant);
    let mut families: BTreeMap<u32, (Option<&Program>, Vec<&Program>)> = BTreeMap::new();
    for program in meant {
        let main = tops[&program.pid()];
        let family = families.entry(main).or_default();
        if main == program.pid() {
            family.0 = Some(program);
        } else {
            family.1.push(program);
        }
    }
    let mut families: Vec<_> = families
        .into_values()
        .filter_map(|(main, others)| Some((main?, others)))
        .collect();
    families.sort_by_key(|(main, _)| std::cmp::Reverse(main.pages.resident.known().map_or(0, |bytes| bytes.0)));
    families
}
