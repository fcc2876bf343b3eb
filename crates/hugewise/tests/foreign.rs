//! What processes of other users name: files that do not answer, that are none, or that their users could not read.

mod common;

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use common::{compiled, hugewise, sent, skipped, told};

/// The ordinary user's id, the same on all distributions.
const ORDINARY: u32 = 65534;
/// Far more than any command takes here, and an end to those that would wait for good.
const FOR_GOOD: Duration = Duration::from_secs(120);

/// Files of root and of an ordinary user, which a server of that user names.
struct Stage {
    temp: tempfile::TempDir,
    program: PathBuf,
    /// A user whose file got no answer is not asked again, and all stages have the same user.
    _alone: MutexGuard<'static, ()>,
}

static ALONE: Mutex<()> = Mutex::new(());

impl Stage {
    /// `None` without root.
    fn set() -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            skipped("a process of another user needs root");
            return None;
        }
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let temp = tempfile::tempdir().expect("a directory");
        fs::set_permissions(temp.path(), Permissions::from_mode(0o755)).expect("chmod");
        // A shell of that name.
        let program = temp.path().join("postgres");
        fs::copy("/bin/sh", &program).expect("a copy");
        Some(Self {
            temp,
            program,
            _alone: alone,
        })
    }

    /// A data directory of an ordinary user.
    fn data(&self, name: &str) -> PathBuf {
        let data = self.temp.path().join(name);
        fs::create_dir(&data).expect("a directory");
        chown(&data, Some(ORDINARY), Some(ORDINARY)).expect("chown");
        data
    }

    fn serves(&self, data: &Path, uid: u32) -> Server {
        let mut command = Command::new(&self.program);
        command
            .args(["-c", "echo up; read nothing", "postgres", "-D"])
            .arg(data)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .uid(uid)
            .gid(uid);
        let mut child = command.spawn().expect("it starts");
        let mut line = String::new();
        let out = child.stdout.take().expect("its output");
        BufReader::new(out).read_line(&mut line).expect("a line");
        assert_eq!(line, "up\n");
        Server(child)
    }

    /// A server in a mount namespace of its own, whose `/etc` holds `my.cnf` alone; `None` where nothing can be mounted.
    fn contains(&self, name: &str, file: &str, option: &str) -> Option<Server> {
        let program = self.temp.path().join(name);
        fs::copy("/bin/sh", &program).expect("a copy");
        let file_there = self.temp.path().join("my.cnf");
        fs::write(&file_there, file).expect("a file");
        let script = format!(
            "mount -t tmpfs none /etc && cp {0} /etc/my.cnf && exec {1} -c 'echo up; read nothing' {name} {option}",
            file_there.display(),
            program.display()
        );
        Server::contained(&script)
    }

    /// The capture that is taken beside such a server: what it says of the server's file.
    fn captured(&self, server: &Server, data: &Path) -> String {
        let file = self.temp.path().join("capture.tree");
        let mut command = hugewise(&["snapshot", file.to_str().expect("a plain path"), "--yes"]);
        assert!(ended(command.stderr(Stdio::null())).success());
        let wanted = format!("/proc/{}/root{}/postgresql.conf", server.0.id(), data.display());
        let text = fs::read_to_string(file).expect("a capture");
        let said = text.split_once(&wanted).map(|(before, after)| {
            let kind = before.rsplit('\n').next().unwrap_or_default();
            let content = after.split("\nline /").next().unwrap_or_default();
            let content = content.split("\nfile /").next().unwrap_or_default();
            let content = content.split("\ndenied /").next().unwrap_or_default();
            format!("{kind}{content}")
        });
        said.unwrap_or_default()
    }
}

struct Server(Child);

impl Server {
    /// Started by a script in a mount namespace of its own; `None` where nothing can be mounted.
    fn contained(script: &str) -> Option<Self> {
        let mut command = Command::new("unshare");
        command.args(["-m", "/bin/sh", "-c", script]);
        let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut server = Self(started.expect("unshare starts"));
        let mut line = String::new();
        let out = server.0.stdout.take().expect("its output");
        BufReader::new(out).read_line(&mut line).expect("a line");
        (line == "up\n").then_some(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.0.kill().expect("it can be ended");
        self.0.wait().expect("it ends");
    }
}

/// How it ends, which it must.
fn ended(command: &mut Command) -> ExitStatus {
    let mut child = command.stdout(Stdio::null()).spawn().expect("it starts");
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("a status") {
            return status;
        }
        if began.elapsed() > FOR_GOOD {
            child.kill().expect("killed");
            child.wait().expect("it ends");
            panic!("it waits for good");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn what_is_no_file_is_not_opened_and_nothing_waits_for_it() {
    let Some(stage) = Stage::set() else { return };
    let pipe = stage.data("pipe");
    let made = Command::new("mkfifo").arg(pipe.join("postgresql.conf")).status();
    assert!(made.expect("mkfifo").success());
    let linked = |name: &str, target: &str| {
        let data = stage.data(name);
        symlink(target, data.join("postgresql.conf")).expect("a link");
        data
    };
    let terminal = linked("terminal", "/dev/tty");
    let zeros = linked("zeros", "/dev/zero");
    let messages = linked("messages", "/proc/kmsg");
    let own = linked("own", "/proc/self/fd/0");
    let cases = [
        (pipe, "it is a pipe"),
        (terminal, "it is a device"),
        (zeros, "it is a device"),
        (messages, "it is a file of the kernel"),
        (own, ""),
    ];
    for (data, why) in cases {
        let server = stage.serves(&data, ORDINARY);
        assert!(ended(hugewise(&["doctor"]).stderr(Stdio::null())).code().is_some());
        let said = stage.captured(&server, &data);
        assert!(
            said.contains("failed") && said.contains(why),
            "{}: {said}",
            data.display()
        );
    }
}

#[test]
fn a_file_that_its_user_could_not_read_is_not_read_for_him() {
    let Some(stage) = Stage::set() else { return };
    let secret = stage.temp.path().join("secret");
    fs::write(&secret, "huge_pages = leaked1\n").expect("a file");
    fs::set_permissions(&secret, Permissions::from_mode(0o600)).expect("chmod");
    let linked = stage.data("linked");
    symlink(&secret, linked.join("postgresql.conf")).expect("a link");
    // Below a directory that only root may enter.
    let closed = stage.temp.path().join("closed");
    fs::create_dir(&closed).expect("a directory");
    fs::set_permissions(&closed, Permissions::from_mode(0o700)).expect("chmod");
    fs::write(closed.join("file"), "huge_pages = leaked2\n").expect("a file");
    let below = stage.data("below");
    symlink(closed.join("file"), below.join("postgresql.conf")).expect("a link");
    for data in [&linked, &below] {
        let server = stage.serves(data, ORDINARY);
        let said = stage.captured(&server, data);
        assert!(said.starts_with("denied ") && !said.contains("leaked"), "{said}");
    }
    // Its own file, and a file of root's that all may read, are read; so is root's own for a server of root's.
    let own = stage.data("own");
    fs::write(own.join("postgresql.conf"), "huge_pages = seen\n").expect("a file");
    fs::set_permissions(own.join("postgresql.conf"), Permissions::from_mode(0o600)).expect("chmod");
    chown(own.join("postgresql.conf"), Some(ORDINARY), Some(ORDINARY)).expect("chown");
    let said = stage.captured(&stage.serves(&own, ORDINARY), &own);
    assert!(said.contains("huge_pages = seen"), "{said}");
    let said = stage.captured(&stage.serves(&linked, 0), &linked);
    assert!(said.contains("leaked1"), "root may read it: {said}");
}

/// A server in a mount namespace of its own, as in a container: its file is another than the host's of the same path.
#[test]
fn a_plan_does_not_take_the_host_s_file_for_that_of_a_server_in_a_container() {
    let Some(stage) = Stage::set() else { return };
    let data = stage.data("data");
    fs::write(data.join("postgresql.conf"), "shared_buffers = 16MB\n").expect("the host's file");
    let script = format!(
        "mount -t tmpfs none {0} && echo 'shared_buffers = 1GB' >{0}/postgresql.conf && \
         exec {1} -c 'echo up; read nothing' postgres -D {0}",
        data.display(),
        stage.program.display()
    );
    let Some(server) = Server::contained(&script) else {
        return skipped("nothing can be mounted here");
    };
    let goal = format!("postgres:pid={}", server.0.id());
    let run = told(hugewise(&["plan", "--for", &goal]).output().expect("starts"));
    let is_named = run.err.contains("runs in a container") && run.err.contains("--for pool:2M=");
    assert!(run.code == Some(2) && is_named, "{}{}", run.out, run.err);
}

/// The size stands on the command line or in the container's file; else the message says where the server has it.
#[test]
fn the_pages_of_a_mysql_in_a_container_are_calculated_from_what_it_was_started_with() {
    let Some(stage) = Stage::set() else { return };
    let file = "[mysqld]\ninnodb_buffer_pool_size = 512M\n";
    for (file, option, pages) in [
        (file, "", Some("for a buffer pool of 512M")),
        (
            file,
            "--innodb-buffer-pool-size=256M",
            Some("for a buffer pool of 256M"),
        ),
        ("[mysqld]\n", "", Some("for a buffer pool of 128M")),
        (
            "[mysqld]\n!includedir /etc/mysql/nowhere/\n",
            "",
            Some("for a buffer pool of 128M"),
        ),
        // What may decide is not read.
        ("[mysqld]\n!include /proc/version\n", "", None),
    ] {
        let Some(server) = stage.contains("mysqld", file, option) else {
            return skipped("nothing can be mounted here");
        };
        let goal = format!("mysql:pid={}", server.0.id());
        let run = told(hugewise(&["plan", "--for", &goal]).output().expect("starts"));
        assert!(
            run.code == Some(2) && run.err.contains("runs in a container"),
            "{}",
            run.err
        );
        let Some(pages) = pages else {
            let says_how = run.err.contains("PAGES is the number") && run.err.contains("@@innodb_buffer_pool_size");
            assert!(says_how, "{}", run.err);
            continue;
        };
        let goal = run.err.split("--for ").find(|part| part.starts_with("pool:2M="));
        let goal = goal.expect("a goal").split(',').next().expect("it");
        assert!(run.err.contains(pages), "{option}: {}", run.err);
        if !plans_are_made() {
            continue;
        }
        let planned = told(hugewise(&["plan", "--for", goal]).output().expect("starts"));
        assert_eq!(planned.code, Some(0), "{goal}: {}", planned.err);
    }
}

/// Where the kernel's settings are on read-only mounts, as in a container, every plan for this machine is refused.
fn plans_are_made() -> bool {
    let run = told(hugewise(&["plan", "--for", "pool:2M=1"]).output().expect("starts"));
    let is_refused = run.err.contains("is mounted read-only here");
    if is_refused {
        skipped(&run.err);
    }
    !is_refused
}

/// As Debian and Red Hat lay out their configuration.
#[test]
fn a_plan_takes_the_buffer_pool_from_a_file_that_is_included() {
    if !plans_are_made() {
        return;
    }
    let temp = tempfile::Builder::new().prefix("mysql").tempdir().expect("a directory");
    let at = |name: &str| temp.path().join(name);
    fs::create_dir(at("conf.d")).expect("a directory");
    let write = |name: &str, text: &str| fs::write(at(name), text).expect("a file");
    // A link, as Debian has it: a plan changes what it leads to.
    std::os::unix::fs::symlink("server.cnf", at("my.cnf")).expect("a link");
    write(
        "server.cnf",
        &format!("[mysqld]\n!includedir {}/\n", at("conf.d").display()),
    );
    write("conf.d/50-server.cnf", "[mariadbd]\ninnodb_buffer_pool_size = 256M\n");
    fs::copy("/bin/sh", at("mysqld")).expect("a copy");
    let mut command = Command::new(at("mysqld"));
    command.args(["-c", "read nothing", "mysqld"]);
    command.arg(format!("--defaults-file={}", at("my.cnf").display()));
    let server = Server(command.stdin(Stdio::piped()).spawn().expect("it starts"));
    let pid = server.0.id().to_string();
    let file = at("my.cnf").display().to_string();
    for goal in [
        format!("mysql:pid={pid},user=root"),
        format!("mysql:{file},user=root,service=none"),
    ] {
        let run = told(hugewise(&["plan", "--for", &goal]).output().expect("starts"));
        assert_eq!(run.code, Some(0), "{}", run.err);
        for wanted in ["buffer pool of 256M", "aria_cache 62", "/server.cnf [my-cnf]"] {
            assert!(run.out.contains(wanted), "{wanted}: {}", run.out);
        }
    }
    let setting = || {
        let run = told(hugewise(&["explain", &pid, "--json"]).output().expect("starts"));
        let explained: serde_json::Value = serde_json::from_str(&run.out).expect("JSON");
        let asked = explained["data"]["programs"][0]["asked"]
            .as_array()
            .expect("settings")
            .clone();
        let is_it = |setting: &&serde_json::Value| setting["setting"] == "large-pages";
        (
            asked.iter().find(is_it).cloned().unwrap_or_default(),
            explained["data"]["programs"][0]["why"].to_string(),
        )
    };
    let (before, why) = setting();
    assert!(before["value"].is_null() && why.contains("not-asked"), "{before} {why}");
    write("conf.d/90-pages.cnf", "[mysqld]\nlarge-pages\n");
    let (after, why) = setting();
    assert!(after["value"] == "ON" && !why.contains("not-asked"), "{after} {why}");
    assert!(
        after["place"]
            .as_str()
            .is_some_and(|place| place.contains("90-pages.cnf")),
        "{after}"
    );
}

#[test]
fn a_plan_takes_the_buffer_pool_that_a_running_mysql_was_started_with() {
    if !plans_are_made() {
        return;
    }
    // A plan names no file in a hidden directory.
    let temp = tempfile::Builder::new().prefix("mysql").tempdir().expect("a directory");
    let [program, file] = ["mysqld", "my.cnf"].map(|name| temp.path().join(name));
    fs::copy("/bin/sh", &program).expect("a copy");
    fs::write(&file, "[mysqld]\n").expect("a file");
    let mut command = Command::new(&program);
    command.args(["-c", "read nothing", "mysqld", "--innodb-buffer-pool-size=256M"]);
    command.arg(format!("--defaults-file={}", file.display()));
    let server = Server(command.stdin(Stdio::piped()).spawn().expect("it starts"));
    let goal = format!("mysql:pid={},user=root", server.0.id());
    let run = told(hugewise(&["plan", "--for", &goal]).output().expect("starts"));
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert!(run.out.contains("buffer pool of 256M: 132"), "{}", run.out);
    let goal = format!("mysql:pid={},user=root,service=own.service", server.0.id());
    let run = told(hugewise(&["plan", "--for", &goal]).output().expect("starts"));
    assert!(
        run.out.contains("own.service"),
        "what is typed wins: {}{}",
        run.out,
        run.err
    );
    let goal = format!("mysql:pid={},user=root", server.0.id());
    // MariaDB has caches beside it that take pages first.
    fs::write(&file, "[mysqld]\nkey_buffer_size = 1M\n[mariadb]\n").expect("a file");
    let run = told(hugewise(&["plan", "--for", &goal]).output().expect("starts"));
    assert!(
        run.out.contains("209 (pool_pages 128, alignment 3, key_buffer 0,"),
        "{}{}",
        run.out,
        run.err
    );
}

/// A mount that is taken away again.
struct Mounted(PathBuf, Child);

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").args(["-l"]).arg(&self.0).status();
        let _ = self.1.kill();
        let _ = self.1.wait();
    }
}

/// A file system that does not answer; `None` where there can be none.
fn silent(stage: &Stage) -> Option<Mounted> {
    let program = stage.temp.path().join("silent");
    compiled("foreign/silent.c", &program)?;
    let data = stage.data("silent-data");
    let mut child = Command::new(&program)
        .arg(&data)
        .stdout(Stdio::piped())
        .spawn()
        .expect("starts");
    let mut line = String::new();
    let out = child.stdout.take().expect("its output");
    BufReader::new(out).read_line(&mut line).expect("a line");
    let mounted = Mounted(data, child);
    if line != "ready\n" {
        skipped("no file system in user space can be mounted here");
        return None;
    }
    Some(mounted)
}

#[test]
fn a_file_system_that_does_not_answer_holds_nothing_up() {
    let Some(stage) = Stage::set() else { return };
    let Some(mounted) = silent(&stage) else { return };
    let server = stage.serves(&mounted.0, ORDINARY);
    let said = stage.captured(&server, &mounted.0);
    assert!(
        said.contains("failed") && said.contains("file system in user space (fuse.silent)"),
        "{said}"
    );
}

/// The kernel reads arguments out of anonymous memory only (CVE-2018-1120, Linux 4.17); before, it would wait for the file.
#[test]
fn arguments_in_a_file_that_does_not_answer_hold_nothing_up_nor_does_a_signal_wait_for_them() {
    let Some(stage) = Stage::set() else { return };
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").expect("a release");
    let numbers: Vec<u32> = release
        .split(['.', '-'])
        .take(2)
        .filter_map(|part| part.trim().parse().ok())
        .collect();
    if numbers < vec![4, 17] {
        return skipped("before Linux 4.17 such arguments are waited for");
    }
    let Some(mounted) = silent(&stage) else { return };
    let program = stage.temp.path().join("arguments");
    if compiled("foreign/arguments.c", &program).is_none() {
        return;
    }
    let mut command = Command::new(&program);
    command
        .arg(mounted.0.join("postgresql.conf"))
        .arg("a".repeat(4 * rustix::param::page_size()));
    let mut server = Server(command.stdout(Stdio::piped()).spawn().expect("starts"));
    let mut line = String::new();
    let out = server.0.stdout.take().expect("its output");
    BufReader::new(out).read_line(&mut line).expect("a line");
    assert_eq!(line, "up\n");
    for words in [&["vm"][..], &["doctor"], &["snapshot", "--yes", "/dev/null"]] {
        assert!(
            ended(hugewise(words).stderr(Stdio::null())).code().is_some(),
            "{words:?}"
        );
        let started = hugewise(words).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut child = started.expect("starts");
        sent("-TERM", &child);
        child.wait().expect("ends");
    }
}

#[test]
fn a_signal_ends_a_checkup_while_it_reads() {
    let temp = tempfile::tempdir().expect("a directory");
    let args = [
        "checkup", "--skip", "latency", "--skip", "tlb", "--skip", "guest", "--report",
    ];
    let mut command = hugewise(&args);
    let report = temp.path().join("report.html");
    let started = command.arg(report).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let mut child = started.expect("starts");
    let mut err = BufReader::new(child.stderr.take().expect("stderr"));
    let mut line = String::new();
    while !line.contains("reading the machine") {
        line.clear();
        assert_ne!(err.read_line(&mut line).expect("a line"), 0, "it reads the machine");
    }
    sent("-TERM", &child);
    let status = child.wait().expect("it ends");
    if status.success() {
        skipped("it had read the machine before the signal came");
        return;
    }
    assert_eq!(status.code(), Some(130), "interrupted");
}

/// A file system that never answers, below an overlay: not known by its kind, and a thread that waits for it cannot be killed.
#[test]
fn a_file_system_that_never_answers_below_an_overlay_holds_nothing_up() {
    let Some(stage) = Stage::set() else { return };
    let silent = stage.temp.path().join("silent");
    let Some(()) = compiled("silent.c", &silent) else {
        return;
    };
    let folder = stage.data("folder");
    let mut command = Command::new(&silent);
    command
        .arg(&folder)
        .arg(ORDINARY.to_string())
        .arg(&stage.program)
        .arg("80");
    let mut server = Server(command.stdout(Stdio::piped()).spawn().expect("it starts"));
    let mut line = String::new();
    let out = server.0.stdout.take().expect("its output");
    BufReader::new(out).read_line(&mut line).expect("a line");
    if line != "up\n" {
        return skipped(&format!("no file system in user space: {}", line.trim()));
    }
    for arguments in [&["doctor"][..], &["explain", "postgres"]] {
        let mut command = hugewise(arguments);
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let began = Instant::now();
        while child.try_wait().expect("a status").is_none() {
            if began.elapsed() > FOR_GOOD {
                // Only this ends what waits for it.
                drop(server);
                child.kill().expect("killed");
                child.wait().expect("it ends");
                panic!("{arguments:?} waits for good");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    let file = stage.temp.path().join("capture.tree");
    let mut command = hugewise(&["snapshot", file.to_str().expect("a plain path"), "--yes"]);
    assert!(ended(command.stderr(Stdio::null())).success());
    let text = fs::read(file).expect("a capture");
    let text = String::from_utf8_lossy(&text);
    assert!(text.contains("got no answer"), "what is lost is said");
}
