//! Huge pages for a process that runs: seen in its smaps, or the reason why not.

mod common;

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use common::{hugewise, refused, skipped, valid};

/// A shell that holds 32 MiB on base pages, until its input ends.
struct Holder(Child);

impl Holder {
    /// `None` where it got huge pages unasked.
    fn start() -> Option<Self> {
        let holds = "x=$(head -c 32000000 /dev/zero | tr '\\0' a); read end";
        let shell = Command::new("/bin/sh")
            .args(["-c", holds])
            .stdin(Stdio::piped())
            .spawn();
        let holder = Self(shell.expect("a shell"));
        // The shell frees what it read with once it has the text.
        let mut last = 0;
        loop {
            std::thread::sleep(Duration::from_millis(300));
            let now = holder.kib("Anonymous:");
            if now > 30_000 && now == last {
                return (holder.base_kib() > 30_000).then_some(holder);
            }
            last = now;
        }
    }

    fn base_kib(&self) -> u64 {
        self.kib("Anonymous:") - self.kib("AnonHugePages:")
    }

    fn kib(&self, name: &str) -> u64 {
        let smaps = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", self.0.id())).unwrap_or_default();
        let line = smaps.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok())
            .unwrap_or(0)
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

#[test]
fn a_running_shell_gets_large_pages_and_its_smaps_prove_it() {
    let Some(holder) = Holder::start() else {
        return skipped("memory of this process became huge by itself");
    };
    let before = holder.base_kib();
    let pid = holder.0.id().to_string();
    let out = hugewise(&["collapse", &pid, "--json"]).output().expect("hugewise");
    if !out.status.success() {
        return skipped(String::from_utf8_lossy(&out.stderr).trim());
    }
    let data = valid(&String::from_utf8_lossy(&out.stdout))["data"].take();
    let large = data["pieces"]["large"].as_u64().expect("a number");
    if large == 0 {
        return skipped(&format!("the kernel refused every piece: {}", data["refused"]));
    }
    assert!(large >= 10, "{data}");
    assert!(holder.base_kib() + large * 2048 <= before + 2048, "{data}");
    assert!(data["after"]["thp"].as_u64() >= Some(large << 21), "{data}");
}

#[test]
fn the_code_tells_what_was_done_where_it_cannot_be_printed() {
    let Some(holder) = Holder::start() else {
        return skipped("memory of this process became huge by itself");
    };
    let pid = holder.0.id().to_string();
    if !hugewise(&["collapse", &pid])
        .output()
        .expect("hugewise")
        .status
        .success()
    {
        return skipped("this kernel collapses nothing of another process");
    }
    let full = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .expect("a device");
    let out = hugewise(&["collapse", &pid]).stdout(full).output().expect("hugewise");
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(0), "{said}");
    assert!(
        said.contains("it was done, but the account of it could not be written"),
        "{said}"
    );
}

#[test]
fn nobody_and_nonsense_are_named() {
    assert!(refused(&["collapse", "4000000"]).contains("4000000"));
    assert!(refused(&["collapse", "1", "--range", "stack"]).contains("--range"));
    assert!(refused(&["collapse", "1", "--budget", "5s"]).contains("50ms/s"));
}
