//! Scripts say what plans say, and nothing in a plan can make them say more.

use std::io::{Seek as _, Write as _};
use std::process::{Command, Stdio};

use model::plan::{Change, Layer, Mode, Owner, Plan, Risk, Sum, Target, Value};
use model::{Cause, Reading, Unread};

use super::super::super::export::shell::{comment, quoted};
use super::{ansible, difference, shell};
use crate::show::Show;
use draw::Look;

const HOSTILE: [&str; 9] = [
    "it's $(id) `id` ; id | id & id > /x",
    "a\nb\n\tc \\ \\n '\\'' \"",
    "",
    "-n",
    "{{ lookup('pipe', 'id') }} {% raw %}",
    "!unsafe \"x\": [a, b] # c",
    "caf\u{e9} \u{1f4a9} \u{202e} \u{7f} \u{1b}[31m",
    "%s %n $1 $$ !!",
    "'",
];

fn change(id: &str, target: Target, before: Value, after: &str) -> Change {
    Change {
        id: id.to_owned(),
        layer: Layer::Runtime,
        target,
        before: Reading::Known(before),
        after: Value::Text(after.to_owned()),
        why: format!("because of {after}"),
        risk: Risk::default(),
        also_written_by: Vec::new(),
        source: String::new(),
    }
}

fn plan(changes: Vec<Change>) -> Plan {
    Plan {
        goals: vec!["pool:2M=16\nreboot".to_owned()],
        changes,
        ..Plan::default()
    }
}

/// One change of each kind, with a hostile text in it.
fn hostile(text: &str) -> Plan {
    let owner = Some(Owner { uid: 0, gid: 0 });
    let file = |path: &str, mode, owner| Target::File {
        path: path.to_owned(),
        mode,
        owner,
    };
    plan(vec![
        change(
            "a",
            Target::Setting {
                path: "/sys/x".to_owned(),
            },
            Value::Text("old".to_owned()),
            text,
        ),
        change("b", file("/etc/x", Some(Mode(0o644)), owner), Value::Absent, text),
        change("c", file("/etc/y", None, None), Value::Text(text.to_owned()), "new\n"),
        change(
            "d",
            Target::Mount {
                at: "/mnt/x".to_owned(),
            },
            Value::Absent,
            "pagesize=2M",
        ),
        change("e", Target::Instruction { on: text.to_owned() }, Value::Absent, text),
    ])
}

fn sh(arguments: &[&str]) -> (bool, Vec<u8>) {
    let output = Command::new("sh")
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("a shell");
    (output.status.success(), output.stdout)
}

#[test]
fn a_shell_takes_a_quoted_word_as_it_is() {
    for text in HOSTILE {
        let (good, said) = sh(&["-c", &format!("printf '%s' {}", quoted(text))]);
        assert!(
            good && said == text.as_bytes(),
            "{text:?}: {:?}",
            String::from_utf8_lossy(&said)
        );
    }
}

#[test]
fn a_comment_never_ends_early() {
    for text in HOSTILE {
        let text = comment(&format!("{text}\r{text}\u{2028}"));
        assert!(text.lines().all(|line| line.starts_with("# ")), "{text:?}");
        assert!(
            text.chars().all(|c| c == '\n' || c.is_ascii_graphic() || c == ' '),
            "{text:?}"
        );
    }
}

#[test]
fn every_script_is_one_that_a_shell_can_read() {
    for text in HOSTILE {
        let script = shell::script(&hostile(text));
        let (good, _) = sh(&["-n", "-c", &script]);
        assert!(good, "{script}");
        assert!(script.lines().all(|line| line != "reboot"), "{script}");
        // Nothing of a file that is there but the lines that change.
        let sum = Sum::of(text).sha256;
        assert!(script.contains(&format!("edit '/etc/y' '{sum}' '1' ")), "{script}");
    }
}

#[test]
fn a_change_that_was_not_read_stops_the_script() {
    let mut unread = hostile("x");
    unread.changes[0].before = Reading::Unread(Unread::new(Cause::Denied, "/sys/x", ""));
    assert!(shell::script(&unread).contains("stop '/sys/x was not read when this was planned: (denied: /sys/x)'"));
}

#[test]
fn a_playbook_quotes_every_text_and_lets_nothing_be_a_template() {
    for text in HOSTILE {
        let quoted = ansible::scalar(text);
        let inner = quoted.strip_prefix("!unsafe ").expect("marked");
        assert!(inner.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{inner}");
        // Below U+10000 a double-quoted scalar of YAML is a string of JSON.
        if text.chars().all(|c| u32::from(c) <= 0xffff) {
            assert_eq!(serde_json::from_str::<String>(inner).expect("a string"), *text);
        }
        let playbook = ansible::playbook(&hostile(text));
        let templates = playbook
            .lines()
            .filter(|line| line.contains("{{") && !line.trim_start().starts_with('#'));
        assert!(templates.into_iter().all(|line| line.contains("!unsafe")), "{playbook}");
        assert!(playbook.lines().all(|line| line.trim() != "reboot"), "{playbook}");
    }
}

/// Reads a playbook as Ansible does, `!unsafe` being a text, and says what it copies.
const READ: &str = "
import sys, yaml
yaml.SafeLoader.add_constructor('!unsafe', lambda loader, node: loader.construct_scalar(node))
tasks = yaml.safe_load(sys.stdin)[0]['tasks']
[new] = [task for task in tasks if 'ansible.builtin.copy' in task]
sys.stdout.buffer.write(new['ansible.builtin.copy']['content'].encode())
";

#[test]
#[allow(clippy::print_stderr)]
fn a_playbook_is_yaml_and_holds_each_text_as_it_is() {
    for text in HOSTILE {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(ansible::playbook(&hostile(text)).as_bytes())
            .expect("written");
        file.rewind().expect("rewound");
        let python = Command::new("python3").args(["-c", READ]).stdin(file).output();
        match python {
            Ok(output) if output.status.success() => {
                assert_eq!(String::from_utf8_lossy(&output.stdout), *text);
            }
            Ok(output) if String::from_utf8_lossy(&output.stderr).contains("No module named 'yaml'") => {
                return testing::missing("python3-yaml");
            }
            Ok(output) => panic!("{}", String::from_utf8_lossy(&output.stderr)),
            Err(why) => return testing::missing(&format!("python3 ({why})")),
        }
    }
}

#[test]
fn text_shows_each_change_and_never_steers_a_terminal() {
    let look = Look::plain(100);
    for text in HOSTILE {
        let text = hostile(text).text(look);
        assert!(
            !text.contains('\u{1b}') && text.contains(" 5 runtime") && text.contains("why"),
            "{text}"
        );
    }
}

#[test]
fn of_a_file_only_what_changes_is_shown() {
    let text = |text: &str| Value::Text(text.to_owned());
    let lines = difference(Some(&text("a\nb = 1\nc\n")), &text("a\nb = 2\nc\nd\n"));
    assert_eq!(lines, ["- b = 1", "+ b = 2", "+ d"]);
    assert_eq!(difference(Some(&Value::Absent), &text("x\n")), ["+ x"]);
}

/// A server's file with a secret in it, of which one line changes.
fn with_secret() -> Plan {
    let before = "primary_conninfo = 'password=TOPSECRET'\n[mysqld]\nhuge_pages = try\nport = 1\n";
    let after = "primary_conninfo = 'password=TOPSECRET'\n[mysqld]\nhuge_pages = on\nport = 1\nx = 2\n";
    let target = Target::File {
        path: "/srv/pg/postgresql.conf".to_owned(),
        mode: None,
        owner: None,
    };
    let mut change = change("pg", target, Value::Text(before.to_owned()), after);
    change.why = "no start without the pool".to_owned();
    plan(vec![change]).with_edits()
}

#[test]
fn no_form_of_a_plan_holds_a_line_that_does_not_change() {
    let plan = with_secret();
    let json = serde_json::to_string(&plan).expect("JSON");
    let look = Look::plain(100);
    for form in [json, shell::script(&plan), ansible::playbook(&plan), plan.text(look)] {
        assert!(!form.contains("TOPSECRET") && !form.contains("port = 1"), "{form}");
        assert!(form.contains("huge_pages = on") && form.contains("x = 2"), "{form}");
    }
    assert!(!ansible::playbook(&plan).contains("builtin.copy"));
}

#[test]
fn a_script_edits_the_lines_of_the_file_that_it_was_made_for_and_of_no_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("postgresql.conf");
    let path = path.to_str().expect("a name");
    for (before, after) in [
        ("a\nb = 1\nc", "a\nb = 2\nc\nd $(id) `x` \\n %s\n"),
        ("a\na\nb\n", "b\nz\n"),
        ("", "new\n"),
    ] {
        let target = Target::File {
            path: path.to_owned(),
            mode: None,
            owner: None,
        };
        let change = change("x", target, Value::Text(before.to_owned()), after);
        let script = shell::script(&plan(vec![change]).with_edits());
        // As any user: the file is one's own.
        let script = script.replace("[ \"$(id -u)\" = 0 ]", "true");
        std::fs::write(path, before).expect("written");
        assert!(sh(&["-c", &script]).0, "{script}");
        assert_eq!(std::fs::read_to_string(path).expect("read"), *after);
        assert!(!sh(&["-c", &script]).0, "it is another file now");
        assert_eq!(std::fs::read_to_string(path).expect("read"), *after);
    }
}

/// Carries out the commands and the edits of a playbook as Ansible does, and says what each command changed.
const PLAY: &str = "
import re, subprocess, sys, yaml
yaml.SafeLoader.add_constructor('!unsafe', lambda loader, node: loader.construct_scalar(node))
for task in yaml.safe_load(sys.stdin)[0]['tasks']:
    if 'ansible.builtin.command' in task:
        done = subprocess.run(task['ansible.builtin.command']['argv'], capture_output=True, text=True)
        if done.returncode: sys.exit(3)
        stdout = {task.get('register'): done.stdout.strip()}.get('hugewise')
        if task['changed_when'] == \"hugewise.stdout == 'changed'\": print('changed' if stdout == 'changed' else 'ok')
        continue
    edit = task['ansible.builtin.lineinfile']
    lines = open(edit['path']).read().splitlines()
    found = [n for n, line in enumerate(lines) if 'regexp' in edit and re.search(edit['regexp'], line)]
    if edit.get('state') == 'absent':
        lines = [line for n, line in enumerate(lines) if n not in found]
    elif edit['line'] in lines:
        pass
    elif found:
        lines[found[-1]] = edit['line']
    else:
        heads = [n for n, line in enumerate(lines) if edit.get('insertafter', 'EOF') != 'EOF' and re.search(edit['insertafter'], line)]
        lines.insert(heads[-1] + 1 if heads else len(lines), edit['line'])
    open(edit['path'], 'w').write(''.join(line + chr(10) for line in lines))
";

/// How a playbook ended, and what was printed; `None` where none can be read.
fn played(playbook: &str) -> Option<(Option<i32>, String)> {
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(playbook.as_bytes()).expect("written");
    file.rewind().expect("rewound");
    let output = match Command::new("python3").args(["-c", PLAY]).stdin(file).output() {
        Ok(output) => output,
        Err(why) => {
            testing::missing(&format!("python3 ({why})"));
            return None;
        }
    };
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    if said.contains("No module named 'yaml'") {
        testing::missing("python3-yaml");
        return None;
    }
    Some((output.status.code(), said))
}

#[test]
fn a_playbook_says_changed_where_it_changed_something_alone() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let path = file.path().to_str().expect("a name");
    let setting = |before: Value, after| {
        let target = Target::Setting { path: path.to_owned() };
        Change {
            after,
            ..change("x", target, before, "")
        }
    };
    let text = |text: &str| Value::Text(text.to_owned());
    for (change, there, ends) in [
        (
            setting(text("madvise"), text("always")),
            "madvise\n",
            [(0, "changed\n"), (0, "ok\n")],
        ),
        (setting(text("madvise"), text("always")), "never\n", [(3, ""), (3, "")]),
        (
            setting(Value::Pages(0), Value::Pages(16)),
            "0\n",
            [(0, "changed\n"), (0, "ok\n")],
        ),
        (
            setting(Value::Pages(0), Value::Pages(16)),
            "20\n",
            [(0, "ok\n"), (0, "ok\n")],
        ),
    ] {
        std::fs::write(path, there).expect("written");
        let playbook = ansible::playbook(&plan(vec![change]));
        for (code, printed) in ends {
            let Some(end) = played(&playbook) else { return };
            assert_eq!(end, (Some(code), printed.to_owned()), "{playbook}");
        }
    }
}

#[test]
fn a_playbook_edits_lines_of_each_host_s_own_file_and_checks_what_was_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("my.cnf");
    let path = path.to_str().expect("a name");
    let before = "[client]\nx\n[mysqld]\n#large-pages = [OFF] (?)\na\n";
    let after = "[client]\nx\n[mysqld]\nlarge-pages\na\n";
    let target = Target::File {
        path: path.to_owned(),
        mode: None,
        owner: None,
    };
    let change = change("x", target, Value::Text(before.to_owned()), after);
    let playbook = ansible::playbook(&plan(vec![change]).with_edits());
    let other = "[client]\npassword = theirs\n[mysqld]\n#large-pages = [OFF] (?)\nb\n";
    for (there, then) in [
        (before, Some(after.to_owned())),
        (other, Some(other.replace("#large-pages = [OFF] (?)", "large-pages"))),
        ("[mysqld]\nlarge-pages = OFF\n", None),
    ] {
        std::fs::write(path, there).expect("written");
        let Some((code, said)) = played(&playbook) else { return };
        let now = std::fs::read_to_string(path).expect("read");
        match then {
            Some(then) => assert_eq!((code, now), (Some(0), then), "{said}"),
            None => assert_eq!((code, now.as_str()), (Some(3), there), "{said}"),
        }
    }
}
