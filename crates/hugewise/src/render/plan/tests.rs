//! Scripts say what plans say, and nothing in a plan can make them say more.

use std::io::{Seek as _, Write as _};
use std::process::{Command, Stdio};

use model::plan::{Change, Layer, Mode, Owner, Plan, Risk, Target, Value};
use model::{Cause, Reading, Unread};

use super::shell::{comment, quoted};
use super::{ansible, difference, shell};
use crate::render::look::Look;
use crate::show::Show;

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
        notes: Vec::new(),
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
        assert!(
            script.contains(&format!("edit '/etc/y' {} 'new\n'\n", quoted(text))),
            "{script}"
        );
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

/// Reads a playbook as Ansible does, `!unsafe` being a text, and says what the second task writes.
const READ: &str = "
import sys, yaml
yaml.SafeLoader.add_constructor('!unsafe', lambda loader, node: loader.construct_scalar(node))
tasks = yaml.safe_load(sys.stdin)[0]['tasks']
sys.stdout.buffer.write(tasks[1]['ansible.builtin.copy']['content'].encode())
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
    let look = Look {
        width: 100,
        color: false,
        plot: false,
    };
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
