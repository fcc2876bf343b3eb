//! A plan as a shell script that stops at the first value that is not what the plan found.

use model::plan::{Change, Mode, Owner, Plan, Target, Value};

/// What the script does with each kind of target.
const FUNCTIONS: &str = r#"set -eu

stop() { echo "stopped: $1" >&2; exit 1; }

# Of a list such as `always [madvise] never` the word in brackets.
now() {
    value=$(cat "$1")
    case $value in *'['*']'*) value=${value#*'['}; value=${value%%']'*} ;; esac
    printf '%s' "$value"
}

# setting FILE BEFORE AFTER
setting() {
    [ "$(now "$1")" = "$2" ] || stop "$1 is $(now "$1"), not $2 as planned"
    printf '%s\n' "$3" > "$1"
    [ "$(now "$1")" = "$3" ] || stop "$1 is $(now "$1") after writing $3"
}

# pool FILE PAGES
pool() {
    printf '%s\n' "$2" > "$1"
    [ "$(cat "$1")" -ge "$2" ] || stop "$1 has $(cat "$1") pages, not $2: memory is too fragmented or too full"
}

# new FILE MODE OWNER CONTENT
new() {
    [ ! -e "$1" ] || stop "$1 exists already"
    mkdir -p "$(dirname "$1")"
    (umask 077; printf '%s' "$4" > "$1.new")
    chmod "$2" "$1.new"; chown "$3" "$1.new"; mv "$1.new" "$1"
}

# edit FILE BEFORE AFTER: permissions and owner stay
edit() {
    printf '%s' "$2" | cmp -s - "$1" || stop "$1 is not as planned"
    printf '%s' "$3" > "$1"
}

# hugetlbfs DIRECTORY OPTIONS
hugetlbfs() {
    mkdir -p "$1"
    mount -t hugetlbfs -o "$2" none "$1"
}

[ "$(id -u)" = 0 ] || stop 'this needs root: run it with sudo'
"#;

/// The script.
pub(super) fn script(plan: &Plan) -> String {
    let goals = comment(&format!(
        "Made by hugewise {} for {}",
        env!("CARGO_PKG_VERSION"),
        plan.goals.join(" and ")
    ));
    let changes: Vec<String> = plan.changes.iter().map(step).collect();
    format!("#!/bin/sh\n{goals}{FUNCTIONS}\n{}", changes.join("\n"))
}

fn step(change: &Change) -> String {
    let why = comment(&format!("{}: {}", change.id, change.why));
    format!("{why}{}", command(change))
}

fn command(change: &Change) -> String {
    let after = change.after.text().unwrap_or_default();
    let before = change.before.known();
    match (&change.target, before) {
        (Target::Instruction { on }, _) => comment(&format!("Not done here, but on {on}:\n{after}")),
        (target, None) => format!(
            "stop {}\n",
            quoted(&format!(
                "{target} was not read when this was planned: {}",
                change.before
            ))
        ),
        (Target::Setting { path }, Some(Value::Pages(_))) => call("pool", &[path, &after]),
        (Target::Setting { path }, Some(before)) => {
            call("setting", &[path, &before.text().unwrap_or_default(), &after])
        }
        (Target::File { path, mode, owner }, Some(Value::Absent)) => {
            let mode = mode.unwrap_or(Mode(0o644)).to_string();
            let Owner { uid, gid } = owner.unwrap_or(Owner { uid: 0, gid: 0 });
            call("new", &[path, &mode, &format!("{uid}:{gid}"), &after])
        }
        (Target::File { path, .. }, Some(before)) => call("edit", &[path, &before.text().unwrap_or_default(), &after]),
        (Target::Mount { at }, _) => call("hugetlbfs", &[at, &after]),
    }
}

fn call(function: &str, words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    format!("{function} {}\n", words.join(" "))
}

/// A word that no shell looks into.
pub(in crate::render) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Lines that are not run: only plain characters, because YAML ends lines at more of the others than shells do.
pub(super) fn comment(text: &str) -> String {
    let plain = |line: &str| -> String {
        let escaped = line.chars().map(|c| match c {
            ' '..='~' => c.to_string(),
            other => other.escape_default().to_string(),
        });
        escaped.collect()
    };
    text.lines().map(|line| format!("# {}\n", plain(line))).collect()
}
