//! Servers of recipes that root starts: what they, as a hostile program in their place, can do to root.

mod common;

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Command;

use common::{compiled, skipped, told};

/// A recipe whose server writes down what it is and plants links where root's commands write.
const RECIPE: &str = "\
about = 'a server that attacks root'
unprivileged = true
command = ['/bin/sh', '-c', '''
{ id -u; cut -d' ' -f1,5-7 /proc/$$/stat; env | grep -c SECRET; grep -c hugewise-secret /proc/keys; cat /proc/self/oom_score_adj; } > @/new$$ && mv @/new$$ @/report
ln -sf @/victim '{scratch}/asked'
touch '{scratch}/up'
while :; do sleep 0.1; done''']
metrics = ['n=n: ([0-9]+),higher']
[server]
ready = \"test -e '{scratch}/up'\"
load = \"(echo overwritten > '{scratch}/asked') 2>/dev/null; echo n: 1\"
";

#[test]
fn a_server_is_nobody_else_and_root_follows_none_of_its_links() {
    if !rustix::process::geteuid().is_root() {
        return skipped("a server of another user needs root");
    }
    let temp = tempfile::tempdir().expect("a directory");
    let path = |name: &str| temp.path().join(name);
    fs::set_permissions(temp.path(), Permissions::from_mode(0o755)).expect("chmod");
    for (name, mode) in [("recipe", 0o755), ("out", 0o777)] {
        fs::create_dir(path(name)).expect("a directory");
        fs::set_permissions(path(name), Permissions::from_mode(mode)).expect("chmod");
    }
    let victim = path("out/victim");
    fs::write(&victim, "secret").expect("a file");
    fs::set_permissions(&victim, Permissions::from_mode(0o600)).expect("chmod");
    let recipe = RECIPE.replace('@', path("out").to_str().expect("a plain path"));
    fs::write(path("recipe/recipe.toml"), recipe).expect("a recipe");
    let Some(()) = compiled("keyring.c", &path("keyring")) else {
        return;
    };
    let mut command = Command::new(path("keyring"));
    command
        .arg(env!("CARGO_BIN_EXE_hugewise"))
        .args(["compare", "--workload"])
        .arg(path("recipe"));
    command.args(["--arms", "base,thp", "--runs", "2"]).env("SECRET", "x");
    let run = told(command.output().expect("it starts"));
    if run.err.contains("no user id from") {
        return skipped("no user id is free in this user namespace");
    }
    assert_eq!(fs::read_to_string(&victim).expect("there"), "secret", "{}", run.err);
    let report = fs::read_to_string(path("out/report")).unwrap_or_default();
    let lines: Vec<&str> = report.lines().collect();
    let [uid, stat, secrets, keys, score] = lines[..] else {
        panic!("{report}{}{}", run.out, run.err);
    };
    let uid: u32 = uid.parse().expect("a number");
    assert!((61184..=65519).contains(&uid), "{report}");
    let accounts = fs::read_to_string("/etc/passwd").expect("accounts");
    assert!(!accounts.contains(&format!(":{uid}:")), "{report}");
    let fields: Vec<&str> = stat.split(' ').collect();
    assert!(
        fields[1] == fields[0] && fields[2] == fields[0] && fields[3] == "0",
        "a session without a terminal: {report}"
    );
    assert_eq!((secrets, keys, score), ("0", "0", "0"), "{report}");
    assert_eq!(fs::metadata(path("out/report")).expect("there").uid(), uid);
}
