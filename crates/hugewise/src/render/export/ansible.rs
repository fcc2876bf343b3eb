//! A plan as an Ansible playbook; every text is marked so that nothing in it is taken for a template.

use model::plan::{Change, Edit, Mode, Owner, Plan, Target, Value};

use super::shell::{comment, head};
use draw::joined;

/// What stands above the tasks.
const PLAY: &str = "\
- name: hugewise plan
  hosts: all
  become: true
  gather_facts: false
  tasks:
";

pub(crate) fn playbook(plan: &Plan) -> String {
    let head = head(plan);
    let tasks: String = plan.changes.iter().map(task).collect();
    let tasks = if tasks.is_empty() { "    []\n".to_owned() } else { tasks };
    format!("---\n{head}{PLAY}{tasks}")
}

fn task(change: &Change) -> String {
    let why = comment(&change.why);
    let why: String = why.lines().map(|line| format!("    {line}\n")).collect();
    let tasks = modules(change);
    let named = tasks
        .into_iter()
        .map(|(what, module)| format!("    - name: {}{what}\n{module}", change.id));
    why + &named.collect::<String>()
}

/// The tasks of a change, each with what its name says beside the change's own: what is there is checked first.
fn modules(change: &Change) -> Vec<(&'static str, String)> {
    let after = change.after.text().unwrap_or_default();
    let before = change.before.known();
    match (&change.target, before, &change.after) {
        (Target::Setting { path }, Some(Value::Pages(_)), _) => {
            vec![("", command(POOL, &[path, &after], true))]
        }
        (Target::Setting { path }, _, _) => {
            let before = before.and_then(Value::text).unwrap_or_default();
            vec![("", command(SETTING, &[path, &before, &after], true))]
        }
        (Target::File { path, .. }, _, Value::Edit(edit)) => edits(path, edit),
        (Target::File { path, .. }, Some(Value::Text(before)), _) => edits(path, &Edit::between(before, &after)),
        (Target::File { path, mode, owner }, _, _) => {
            vec![
                (", check", command(NEW, &[path, &after], false)),
                ("", new_file(path, &after, *mode, *owner)),
            ]
        }
        (Target::Mount { at }, _, _) => vec![(
            "",
            format!(
                "      ansible.posix.mount:\n        path: {}\n        src: none\n        fstype: \
                 hugetlbfs\n        opts: {}\n        state: ephemeral\n",
                scalar(at),
                scalar(&after)
            ),
        )],
        (Target::Instruction { on }, _, _) => {
            let message = scalar(&format!("{on}: {after}"));
            vec![("", format!("      ansible.builtin.debug:\n        msg: {message}\n"))]
        }
    }
}

/// Writes a setting that has the value that it was planned over, and says so; one that has the new value already is left alone.
const SETTING: &str = "now() { v=$(cat \"$1\"); case $v in *\"[\"*) v=${v#*\"[\"}; v=${v%%\"]\"*};; esac; printf %s \"$v\"; }; \
                       case $(now \"$1\") in \"$3\") exit 0;; \"$2\") ;; *) echo \"$1 is $(now \"$1\"), not $2 as planned\" >&2; exit 1;; esac; \
                       printf \"%s\\n\" \"$3\" > \"$1\" && [ \"$(now \"$1\")\" = \"$3\" ] && echo changed";
const POOL: &str = "[ \"$(cat \"$1\")\" -ge \"$2\" ] && exit 0; printf \"%s\\n\" \"$2\" > \"$1\"; [ \"$(cat \"$1\")\" -ge \"$2\" ] && echo changed";
/// A file that is not there, or is there already as planned.
const NEW: &str = "[ ! -e \"$1\" ] || printf %s \"$2\" | cmp -s - \"$1\"";
/// The line that is to go is there, or the one that comes already.
const LINES: &str = "grep -qxF -e \"$2\" \"$1\" || grep -qxF -e \"$3\" \"$1\"";
const THERE: &str = "[ -f \"$1\" ]";

fn command(script: &str, words: &[&str], changes: bool) -> String {
    let words = joined(words.iter().map(|word| scalar(word)), ", ");
    let script = script.replace('\'', "''");
    let when = match changes {
        true => "      register: hugewise\n      changed_when: hugewise.stdout == 'changed'\n",
        false => "      changed_when: false\n",
    };
    format!("      ansible.builtin.command:\n        argv: [sh, -c, !unsafe '{script}', sh, {words}]\n{when}")
}

fn new_file(path: &str, text: &str, mode: Option<Mode>, owner: Option<Owner>) -> String {
    let mode = mode.unwrap_or(Mode(0o644));
    let Owner { uid, gid } = owner.unwrap_or(Owner { uid: 0, gid: 0 });
    format!(
        "      ansible.builtin.copy:\n        dest: {}\n        content: {}\n        mode: \"{mode}\"\n        owner: \"{uid}\"\n        \
         group: \"{gid}\"\n",
        scalar(path),
        scalar(text)
    )
}

/// Line by line: all others of each host's own file stay as they are there.
fn edits(path: &str, edit: &Edit) -> Vec<(&'static str, String)> {
    let mut tasks = Vec::new();
    for hunk in &edit.edits {
        let gone = &hunk.removes;
        // The last one that goes gives its place to the one that comes.
        let place = gone.last().filter(|_| !hunk.adds.is_empty());
        for line in gone.iter().filter(|line| Some(*line) != place) {
            tasks.push((
                "",
                lineinfile(path, &format!("regexp: {}", exactly(line)), "state: absent"),
            ));
        }
        for (nth, line) in hunk.adds.iter().enumerate() {
            let new = format!("line: {}", scalar(line));
            match place.filter(|_| nth == 0) {
                Some(old) => {
                    tasks.push((", check", command(LINES, &[path, old, line], false)));
                    tasks.push(("", lineinfile(path, &format!("regexp: {}", exactly(old)), &new)));
                }
                None => {
                    let behind = hunk
                        .section
                        .as_ref()
                        .map_or_else(|| "EOF".to_owned(), |head| exactly(head));
                    tasks.push((", check", command(THERE, &[path], false)));
                    tasks.push(("", lineinfile(path, &format!("insertafter: {behind}"), &new)));
                }
            }
        }
    }
    tasks
}

fn lineinfile(path: &str, place: &str, what: &str) -> String {
    format!(
        "      ansible.builtin.lineinfile:\n        path: {}\n        {place}\n        {what}\n        backup: true\n",
        scalar(path)
    )
}

/// A regular expression of Python's that this line alone matches.
fn exactly(line: &str) -> String {
    let mut escaped = String::from("^");
    for c in line.chars() {
        if !c.is_alphanumeric() && !matches!(c, '_' | ' ') && c.is_ascii() {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    scalar(&(escaped + "$"))
}

/// A text in double quotes in which YAML and Jinja see nothing of their own.
pub(in crate::render) fn scalar(text: &str) -> String {
    let mut quoted = String::from("!unsafe \"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            ' '..='~' => quoted.push(c),
            c if u32::from(c) <= 0xffff => quoted.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => quoted.push_str(&format!("\\U{:08x}", u32::from(c))),
        }
    }
    quoted + "\""
}
