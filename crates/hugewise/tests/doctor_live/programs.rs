//! Programs with a fault, ended again when the test ends.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::common::hugewise;

/// A program that is ended and waited for, however the test ends: its input ends with this process at the latest.
pub(crate) struct Planted {
    child: Child,
    _output: Option<BufReader<ChildStdout>>,
    signal: &'static str,
}

impl Drop for Planted {
    fn drop(&mut self) {
        let pid = self.child.id().to_string();
        let _ = Command::new("kill").args([self.signal, &pid]).status();
        let _ = self.child.wait();
    }
}

impl Planted {
    /// Starts it, and waits until it has printed a line of its own: then its memory is there. A JVM warns of pages that it does not
    /// get on the same output, before it has any memory.
    pub(crate) fn start(command: &mut Command) -> Option<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let mut output = BufReader::new(child.stdout.take()?);
        let is_own = |line: &str| !line.starts_with('[');
        let ready = output.by_ref().lines().map_while(Result::ok).any(|line| is_own(&line));
        let planted = Self {
            child,
            _output: Some(output),
            signal: "-KILL",
        };
        ready.then_some(planted)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// As doctor names it: `java (1234)`.
    pub(crate) fn title(&self) -> String {
        let name = fs::read_to_string(format!("/proc/{}/comm", self.pid())).unwrap_or_default();
        format!("{} ({})", name.trim(), self.pid())
    }
}

/// What a program printed, up to its first line, once it has ended.
pub(crate) fn output(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output
        .status
        .success()
        .then(|| text.lines().next().unwrap_or_default().to_owned())
}

/// A line of its status in KiB.
pub(crate) fn status_kib(program: &Planted, name: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{}/status", program.pid())).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse().ok())
        .unwrap_or(0)
}

/// A JVM with -XX:+UseLargePages, with 200 MiB in its heap.
pub(crate) fn java(options: &[&str]) -> Option<Planted> {
    let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join("Sleeper.java");
    let program = "class Sleeper { public static void main(String[] a) throws Exception { \
                   byte[][] keep = new byte[200][]; for (int i = 0; i < 200; i++) keep[i] = new byte[1 << 20]; \
                   System.out.println(keep.length); System.in.read(); } }";
    fs::write(&source, program).ok()?;
    let mut command = Command::new("java");
    command.arg("-XX:+UseLargePages").args(options).arg(&source);
    Planted::start(&mut command)
}

/// A PostgreSQL server of an ordinary user, in a directory of its own.
pub(crate) struct Postgres {
    server: Planted,
    programs: PathBuf,
    directory: TempDir,
}

impl Postgres {
    pub(crate) fn start(options: &[&str]) -> Option<Self> {
        let programs = newest_postgres()?;
        let directory = tempfile::tempdir().ok()?;
        let data = directory.path().join("data");
        let own = Command::new("chown")
            .arg("nobody")
            .arg(directory.path())
            .status()
            .ok()?;
        let as_nobody = |program: &str| {
            let mut command = Command::new("setpriv");
            command.args(["--reuid=nobody", "--regid=nogroup", "--clear-groups"]);
            command
                .arg(programs.join(program))
                .arg("-D")
                .arg(&data)
                .current_dir("/");
            command
        };
        let mut initdb = as_nobody("initdb");
        let made = initdb
            .args(["-A", "trust", "--no-sync"])
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if !own.success() || !made.status().is_ok_and(|status| status.success()) {
            return None;
        }
        let mut command = as_nobody("postgres");
        let sockets = directory.path().display().to_string();
        command.args(options).args(["-c", "listen_addresses=", "-k", &sockets]);
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let server = Planted {
            child,
            _output: None,
            // A fast shutdown: a server that is killed leaves a segment behind.
            signal: "-INT",
        };
        let ready = || fs::read_to_string(data.join("postmaster.pid")).is_ok_and(|text| text.contains("ready"));
        wait_for(ready).then_some(Self {
            server,
            programs,
            directory,
        })
    }

    pub(crate) fn file(&self) -> String {
        self.directory.path().join("data/postgresql.conf").display().to_string()
    }

    /// A setting as the server itself shows it; `None` if it does not know it.
    pub(crate) fn setting(&self, name: &str) -> Option<u64> {
        let mut command = Command::new(self.programs.join("psql"));
        command.arg("-h").arg(self.directory.path());
        command.args(["-U", "nobody", "-d", "postgres", "-Atc", &format!("show {name}")]);
        output(&mut command)?.parse().ok()
    }

    pub(crate) fn server(&self) -> &Planted {
        &self.server
    }
}

fn newest_postgres() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?;
    let programs = versions.filter_map(|entry| Some(entry.ok()?.path().join("bin")));
    programs.filter(|bin| bin.join("initdb").is_file()).max()
}

fn wait_for(ready: impl Fn() -> bool) -> bool {
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(20) {
        if ready() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    false
}

/// A control group of cgroup v2, removed again.
pub(crate) struct Group(PathBuf);

impl Group {
    pub(crate) fn new(path: &str) -> Option<Self> {
        let roots = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].map(Path::new);
        let root = roots.into_iter().find(|root| root.join("cgroup.procs").exists())?;
        let group = Self(root.join(path));
        fs::create_dir_all(&group.0).ok().map(|()| group)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The parent goes only if it was made for this group: it is not empty otherwise.
        wait_for(|| fs::remove_dir(&self.0).is_ok() || !self.0.exists());
        self.0.parent().map(fs::remove_dir);
    }
}

/// A Python program as a service of an ordinary user in that group, with 64 KiB of memory that it may lock.
pub(crate) fn as_nobody(group: &Group, script: &str) -> Command {
    let mut command = Command::new("sh");
    let start = "echo $$ >\"$1/cgroup.procs\" && exec prlimit --memlock=65536 setpriv --reuid=nobody --regid=nogroup --clear-groups \"$2\" -c \"$3\"";
    let whole = format!("{script}\nprint('ready', flush=True)\nimport sys\nsys.stdin.read()\n");
    let python = if Path::new("/usr/bin/python3").exists() {
        "/usr/bin/python3"
    } else {
        "python3"
    };
    command.args(["-c", start, "sh"]).arg(&group.0).args([python, &whole]);
    command
}

/// May sizes below the usual one be used, whatever the policy of that one says?
pub(crate) fn another_size_is_allowed() -> bool {
    let sizes = fs::read_dir("/sys/kernel/mm/transparent_hugepage")
        .into_iter()
        .flatten()
        .flatten();
    let policy = |entry: fs::DirEntry| fs::read_to_string(entry.path().join("enabled")).unwrap_or_default();
    sizes
        .map(policy)
        .any(|policy| policy.contains("[always]") || policy.contains("[madvise]"))
}

/// A measurement that holds borrowed pages.
pub(crate) struct Lease {
    _measurement: Planted,
    state: TempDir,
    raised: String,
}

impl Lease {
    pub(crate) fn start() -> Option<Self> {
        let state = tempfile::tempdir().ok()?;
        let words = [
            "measure",
            "latency",
            "--pages",
            "hugetlb-2M",
            "--sizes",
            "64M,128M",
            "--budget",
            "60s",
        ];
        let mut child = hugewise(&words)
            .env("HUGEWISE_STATE_DIR", state.path())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .ok()?;
        let mut told = BufReader::new(child.stderr.take()?);
        let measurement = Planted {
            child,
            _output: None,
            signal: "-INT",
        };
        let (mut line, mut raised) = (String::new(), None);
        // What comes of the loan is reported after what is measured.
        while !line.contains("for this measurement: ")
            && !line.contains("could not be borrowed")
            && !line.contains("are needed")
        {
            line.clear();
            if told.read_line(&mut line).ok()? == 0 {
                return None;
            }
            raised = line
                .trim()
                .rsplit_once("nr_overcommit_hugepages of 2M pages 0 -> ")
                .map(|(_, to)| to.to_owned())
                .or(raised);
        }
        // The rest is not read; the pipe must stay open until the measurement ends.
        std::thread::spawn(move || std::io::copy(&mut told, &mut std::io::sink()));
        let _measurement = measurement;
        raised.map(|raised| Self {
            _measurement,
            state,
            raised,
        })
    }

    /// Are the pages of this measurement the only ones on loan?
    pub(crate) fn is_alone(&self) -> bool {
        let now = fs::read_to_string("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_overcommit_hugepages");
        now.is_ok_and(|now| now.trim() == self.raised)
    }

    pub(crate) fn state(&self) -> &Path {
        self.state.path()
    }
}
