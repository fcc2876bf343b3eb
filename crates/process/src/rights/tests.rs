//! What a program that is shut in can reach, and what it cannot.

use std::ffi::OsString;
use std::path::PathBuf;

use super::{ShutIn, User, unused};
use crate::{Attention, Order, Process};

/// Of a shell's script that runs as this user, started with these variables.
fn said(script: &str, user: Option<User>) -> String {
    let shut_in = ShutIn {
        user,
        directory: PathBuf::from("/"),
        environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
        accounts: None,
    };
    let words: Vec<OsString> = ["/bin/sh", "-c", script].map(Into::into).into();
    let env = [("GIVEN".into(), "1".into())];
    let order = Order {
        shut_in: Some(&shut_in),
        env: &env,
        ..Order::plain(&words)
    };
    let mut process = Process::start(&order, Attention::Free, true).expect("starts");
    process.wait(None, &|| false, &mut || {}).expect("ends");
    process.end().expect("accounts").outputs.all()
}

fn nobody_else() -> Option<User> {
    if !rustix::process::geteuid().is_root() {
        testing::skipped("running as another user needs root");
        return None;
    }
    match unused(&host::Source::live(), &|_| false) {
        Ok(user) => Some(user),
        Err(why) => {
            testing::skipped(&why);
            None
        }
    }
}

#[test]
fn it_leads_a_session_without_a_terminal_and_has_only_the_variables_that_it_is_given() {
    for user in [None, nobody_else()] {
        let all = said(
            "cut -d' ' -f1,5-7 /proc/$$/stat; env | grep -c HOME; env | grep GIVEN; (: </dev/tty) 2>/dev/null || echo none",
            user,
        );
        let lines: Vec<&str> = all.lines().collect();
        let fields: Vec<&str> = lines[0].split(' ').collect();
        assert!(
            fields[..3].iter().all(|field| *field == fields[0]) && fields[3] == "0",
            "{all}"
        );
        assert_eq!(lines[1..], ["0", "GIVEN=1", "none"], "{all}");
    }
}

#[test]
fn it_is_a_user_that_nobody_else_is_without_rights_limits_or_keys_of_this_process() {
    let Some(user) = nobody_else() else { return };
    let before = std::fs::read_to_string("/proc/self/oom_score_adj").expect("a number");
    let all = said(
        "cat /proc/self/status; cat /proc/self/oom_score_adj; ulimit -Hn; ulimit -Hl; ulimit -c; cat /proc/keys 2>/dev/null | grep -c _ses; umask",
        Some(user),
    );
    let has = |line: &str| all.lines().any(|seen| seen.trim_end() == line);
    let uid = user.uid;
    for line in [
        &*format!("Uid:\t{uid}\t{uid}\t{uid}\t{uid}"),
        &*format!("Gid:\t{uid}\t{uid}\t{uid}\t{uid}"),
        "Groups:",
        "CapInh:\t0000000000000000",
        "CapPrm:\t0000000000000000",
        "CapEff:\t0000000000000000",
        "CapAmb:\t0000000000000000",
        "NoNewPrivs:\t1",
        "0077",
    ] {
        assert!(has(line), "{line:?} is not in {all}");
    }
    let numbers: Vec<u64> = all.lines().rev().take(6).filter_map(|line| line.parse().ok()).collect();
    // From the last: umask, keyrings, core, memory that may be locked (KiB), files, the score.
    assert!(
        numbers[2] == 0 && numbers[3] <= 8192 && numbers[4] <= 1 << 19 && numbers[5] == 0,
        "{all}"
    );
    assert_eq!(
        std::fs::read_to_string("/proc/self/oom_score_adj").expect("a number"),
        before,
        "this process's own stays"
    );
}
