//! A plan as an Ansible playbook; every text is marked so that nothing in it is taken for a template.

use std::fmt::Write as _;

use model::plan::{Change, Plan, Target};

use super::shell::{comment, head};

/// What stands above the tasks.
const PLAY: &str = "\
- name: hugewise plan
  hosts: all
  become: true
  gather_facts: false
  tasks:
";

/// The playbook.
pub(super) fn playbook(plan: &Plan) -> String {
    let head = head(plan);
    let tasks: String = plan.changes.iter().map(task).collect();
    let tasks = if tasks.is_empty() { "    []\n".to_owned() } else { tasks };
    format!("---\n{head}{PLAY}{tasks}")
}

fn task(change: &Change) -> String {
    let why = comment(&change.why);
    let why: String = why.lines().map(|line| format!("    {line}\n")).collect();
    format!("{why}    - name: {}\n{}", change.id, module(change))
}

fn module(change: &Change) -> String {
    let after = change.after.text().unwrap_or_default();
    match &change.target {
        Target::Setting { path } => format!(
            "      ansible.builtin.command:\n        argv: [sh, -c, 'printf \"%s\\n\" \"$2\" > \
             \"$1\" && cat \"$1\"', sh, {}, {}]\n",
            scalar(path),
            scalar(&after)
        ),
        Target::File { path, mode, owner } => {
            let mut text = format!(
                "      ansible.builtin.copy:\n        dest: {}\n        content: {}\n        backup: true\n",
                scalar(path),
                scalar(&after)
            );
            if let (Some(mode), Some(owner)) = (mode, owner) {
                let _ = writeln!(
                    text,
                    "        mode: \"{mode}\"\n        owner: \"{}\"\n        group: \"{}\"",
                    owner.uid, owner.gid
                );
            }
            text
        }
        Target::Mount { at } => format!(
            "      ansible.posix.mount:\n        path: {}\n        src: none\n        fstype: \
             hugetlbfs\n        opts: {}\n        state: ephemeral\n",
            scalar(at),
            scalar(&after)
        ),
        Target::Instruction { on } => {
            format!(
                "      ansible.builtin.debug:\n        msg: {}\n",
                scalar(&format!("{on}: {after}"))
            )
        }
    }
}

/// A text in double quotes in which YAML and Jinja see nothing of their own.
pub(super) fn scalar(text: &str) -> String {
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
