//! What a helper can reach, and how it ends.

use std::path::Path;
use std::time::{Duration, Instant};

use process::Done;
use process::rights::{ShutIn, User};

use super::run;

fn shell(script: &str, timeout: Duration) -> Result<Done, String> {
    let shut_in = ShutIn {
        directory: "/".into(),
        environment: vec![("PATH".into(), "/usr/bin:/bin".into()), ("A".into(), "b".into())],
        ..ShutIn::default()
    };
    run(Path::new("/bin/sh"), &["-c".into(), script.into()], &shut_in, timeout)
}

fn text(script: &str) -> String {
    let done = shell(script, Duration::from_secs(60)).expect("it ends");
    assert!(done.ended.status.success(), "{}", done.outputs.errors());
    done.outputs.output()
}

/// Is a process there that is no zombie?
fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ")
        .next()
        .is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}

#[test]
fn a_helper_has_a_session_of_its_own_and_no_terminal() {
    // Fields of stat: pid, name, state, parent, group, session, terminal.
    let stat = text("cat /proc/$$/stat");
    let fields: Vec<&str> = stat.split(' ').collect();
    assert_eq!((fields[4], fields[5], fields[6]), (fields[0], fields[0], "0"), "{stat}");
    assert_eq!(text("(: </dev/tty) 2>/dev/null || echo none"), "none\n");
}

#[test]
fn a_helper_inherits_nothing_but_what_it_is_given() {
    let file = tempfile::tempfile().expect("a file");
    let inherited = rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty());
    inherited.expect("a descriptor that would be inherited");
    let open = text("for f in /proc/$$/fd/*; do echo ${f##*/}; done");
    // The shell may hold one of its own, at 10 or above.
    let few: Vec<u32> = open
        .lines()
        .filter_map(|name| name.parse().ok())
        .filter(|fd| *fd < 10)
        .collect();
    let lists_itself = |fd: &u32| *fd > 2;
    assert!(few.iter().filter(|fd| lists_itself(fd)).count() <= 1, "{open}");
    assert_eq!(text("readlink /proc/$$/fd/0"), "/dev/null\n");
    // The guardian's mark is no secret.
    assert_eq!(
        text("env | grep -v -e ^HUGEWISE_GUARD_ -e ^PWD= -e ^SHLVL= -e ^_= -e ^OLDPWD= | sort"),
        "A=b\nPATH=/usr/bin:/bin\n"
    );
    assert_eq!(text("grep NoNewPrivs /proc/$$/status; umask"), "NoNewPrivs:\t1\n0077\n");
}

#[test]
fn a_helper_that_does_not_end_is_ended_with_what_it_started() {
    let temp = tempfile::tempdir().expect("a directory");
    let pids = temp.path().join("pids");
    let script = format!("sleep 600 & echo $! $$ > {}; wait", pids.display());
    let error = shell(&script, Duration::from_secs(2)).err().expect("it never ends");
    assert!(error.contains("no answer within 2s"), "{error}");
    let pids = std::fs::read_to_string(pids).expect("it had begun");
    for pid in pids.split_whitespace() {
        let began = Instant::now();
        while is_alive(pid) && began.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(!is_alive(pid), "{pid}");
    }
}

#[test]
fn what_a_helper_leaves_behind_is_ended_too() {
    let pid = text("sleep 600 >/dev/null 2>&1 & echo $!");
    let began = Instant::now();
    while is_alive(pid.trim()) && began.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(!is_alive(pid.trim()));
}

#[test]
fn a_helper_that_prints_without_end_is_ended() {
    let error = shell(
        "while :; do echo 0123456789012345678901234567890123456789; done",
        Duration::from_secs(600),
    );
    assert!(error.err().expect("too much").contains("more than 64 KiB"));
}

#[test]
fn a_helper_of_another_user_has_none_of_root_s_groups() {
    if !rustix::process::geteuid().is_root() {
        return testing::skipped("running as another user needs root");
    }
    let shut_in = ShutIn {
        directory: "/".into(),
        user: Some(User { uid: 65534, gid: 65534 }),
        ..ShutIn::default()
    };
    let (program, arguments) = (Path::new("/bin/cat"), ["/proc/self/status".into()]);
    let done = run(program, &arguments, &shut_in, Duration::from_secs(60)).expect("it ends");
    let status = done.outputs.output();
    let has = |line: &str| status.lines().any(|seen| seen.trim_end() == line);
    assert!(has("Uid:\t65534\t65534\t65534\t65534"), "{status}");
    assert!(has("Gid:\t65534\t65534\t65534\t65534") && has("Groups:"), "{status}");
    assert!(has("CapEff:\t0000000000000000"), "{status}");
}
