//! Real programs under the preload library: their own tests find no new fault.

#[path = "preload/armed.rs"]
mod armed;

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use compare::preload::Armed;
use model::{Bytes, PageKind};

use self::armed::{armed, bytes, missing, run, skipped};

#[test]
fn pythons_own_test_of_mmap_passes() {
    let test = |command: &mut Command| command.args(["-m", "test", "-q", "test_mmap"]).output();
    let alone = test(&mut Command::new("python3"));
    if !alone.is_ok_and(|output| output.status.success()) {
        return skipped("python3 with a passing test_mmap is not here");
    }
    for layout in ["thp,min=64K", "hugetlb-2M"] {
        let (output, _) = run(Command::new("python3").args(["-m", "test", "-q", "test_mmap"]), layout);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
}

#[test]
fn a_java_virtual_machine_runs_with_its_reservations_left_alone() {
    let java = |command: &mut Command| command.args(["-Xmx128m", "-version"]).output();
    if !java(&mut Command::new("java")).is_ok_and(|output| output.status.success()) {
        return missing("java");
    }
    for layout in ["thp", "hugetlb-2M"] {
        let (output, report) = run(Command::new("java").args(["-Xmx128m", "-version"]), layout);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(
            report.served.values().all(|tally| tally.bytes < Bytes::mib(128)),
            "{report:?}"
        );
    }
}

#[test]
fn stressors_of_memory_find_no_fault() {
    let stress = |command: &mut Command| {
        let jobs = "--vm 1 --vm-bytes 64M --mmap 1 --mmap-bytes 32M --mremap 1 --mremap-bytes 16M --madvise 1";
        command
            .args(jobs.split(' '))
            .args(["--verify", "--timeout", "3s", "-q"]);
        command.current_dir(env!("CARGO_TARGET_TMPDIR")).output()
    };
    if Command::new("stress-ng").arg("--version").output().is_err() {
        return missing("stress-ng");
    }
    for layout in ["thp", "hugetlb-2M"] {
        let armed = armed(layout);
        let output = stress(Command::new("stress-ng").envs(armed.env.iter().cloned())).expect("it starts");
        if !output.status.success() && !stress(&mut Command::new("stress-ng")).is_ok_and(|alone| alone.status.success())
        {
            return skipped("stress-ng fails without the library, too");
        }
        assert!(
            output.status.success(),
            "{layout}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

/// A server of the test's own that ends with it, however it ends.
struct Redis {
    folder: PathBuf,
    server: Child,
}

impl Redis {
    fn start(armed: &Armed) -> Option<Self> {
        let folder = std::env::temp_dir().join(format!("hugewise-redis-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let options = "--port 0 --unixsocket socket --enable-debug-command yes --disable-thp no --save";
        let started = Command::new("redis-server")
            .args(options.split(' '))
            .arg("")
            .current_dir(&folder)
            .envs(armed.env.iter().cloned())
            .stdout(Stdio::null())
            .spawn();
        started.ok().map(|server| Self { folder, server })
    }

    fn ask(&self, line: &str) -> String {
        let mut command = Command::new("redis-cli");
        command
            .args(["-s", "socket"])
            .args(line.split(' '))
            .current_dir(&self.folder);
        let output = command.output();
        output.map_or_else(
            |_| String::new(),
            |output| String::from_utf8_lossy(&output.stdout).into_owned(),
        )
    }

    /// Asks until the answer holds a part, for 20 s at most.
    fn answers(&self, line: &str, part: &str) -> bool {
        (0..400).any(|_| {
            std::thread::sleep(Duration::from_millis(50));
            self.ask(line).contains(part)
        })
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        // Fails if it has ended, and a folder that stays behind does no harm.
        let _ = self.server.kill();
        let _ = self.server.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn redis_keeps_its_data_through_saving_and_loading() {
    let armed = armed("thp");
    let Some(mut redis) = Redis::start(&armed) else {
        return missing("redis-server");
    };
    if !redis.answers("ping", "PONG") {
        return skipped("redis-server does not start with these options, or there is no redis-cli");
    }
    redis.ask("debug populate 100000 key 200");
    let before = redis.ask("debug digest");
    assert!(redis.ask("debug reload").contains("OK"));
    assert!(redis.ask("bgsave").contains("started"));
    assert!(redis.answers("info persistence", "rdb_bgsave_in_progress:0"));
    let (after, told) = (redis.ask("debug digest"), redis.ask("info persistence"));
    assert!(told.contains("rdb_last_bgsave_status:ok"), "{told}");
    assert!(before.len() > 20 && before == after, "{before} {after}");
    redis.ask("shutdown nosave");
    assert!(redis.server.wait().expect("ended").success());
    let report = armed.report().expect("counts");
    assert!(bytes(&report, PageKind::Thp) >= Bytes::mib(16), "{report:?}");
}
