//! The real machine as these tests use it: plans for places of their own, and a picture of everything that a plan may change.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::common::{Run, done, hugewise, skipped, told, valid};

pub(crate) const THP: &str = "/sys/kernel/mm/transparent_hugepage";
pub(crate) const SHM_GROUP: &str = "/proc/sys/vm/hugetlb_shm_group";
pub(crate) const MOUNTS: &str = "/proc/self/mounts";
const NODE: &str = "/sys/devices/system/node/node0/hugepages/hugepages-2048kB";
pub(crate) const POOL: &str = "/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages";
const SLEEP: &str = "/sys/kernel/mm/transparent_hugepage/khugepaged/scan_sleep_millisecs";

/// These tests change the same settings, so they take turns.
static TURN: Mutex<()> = Mutex::new(());

/// A place to work at: a turn, a state directory, and names that nothing else has.
pub(crate) struct Bench {
    temp: TempDir,
    name: String,
    _turn: MutexGuard<'static, ()>,
}

/// Everything that a plan may change, path by path.
pub(crate) type Picture = BTreeMap<String, String>;

impl Bench {
    /// `None` where such tests cannot be made; it has said why.
    pub(crate) fn set_up() -> Option<Self> {
        let why = if !rustix::process::geteuid().is_root() {
            "changing the machine needs root"
        } else if fs::OpenOptions::new().write(true).open(POOL).is_err() {
            "there is no pool of 2M pages on node 0 that can be changed"
        } else if fs::metadata(THP).is_err() || fs::metadata("/etc/sysctl.d").is_err() {
            "no transparent huge pages, or no /etc/sysctl.d"
        } else {
            let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
            let bench = Self {
                temp: tempfile::tempdir().expect("a directory"),
                name: format!("hugewise-test-{}", std::process::id()),
                _turn: turn,
            };
            bench.plant();
            return Some(bench);
        };
        skipped(why);
        None
    }

    /// A file that a plan replaces, with a mode and an owner of its own.
    fn plant(&self) {
        let limits = self.limits();
        fs::create_dir_all(Path::new(&limits).parent().expect("a directory")).expect("limits.d");
        fs::write(&limits, "# old\n").expect("written");
        chown(&limits, Some(1), Some(2)).expect("chown");
        fs::set_permissions(&limits, fs::Permissions::from_mode(0o640)).expect("chmod");
    }

    pub(crate) fn directory(&self) -> &Path {
        self.temp.path()
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = hugewise(words);
        command.env("HUGEWISE_STATE_DIR", self.temp.path().join("state"));
        command
    }

    pub(crate) fn run(&self, words: &[&str]) -> Run {
        told(self.command(words).output().expect("the program starts"))
    }

    /// Applies a plan; `None` if it was refused because others changed the pool after the plan was made.
    pub(crate) fn apply(&self, plan: &str, more: &[&str]) -> Option<Run> {
        let run = self.run(&[&["apply", plan, "--yes", "--json"], more].concat());
        if run.code == Some(2) && run.err.contains(&format!("{POOL}: planned over")) {
            skipped("other programs changed the pool during the test");
            return None;
        }
        Some(run)
    }

    /// Undoes everything: place by place what came of it. Only the pool may stay, if other programs changed it during the test.
    pub(crate) fn undo(&self) -> Vec<(String, String)> {
        let run = self.run(&["undo", "--json"]);
        let steps = valid(&run.out)["data"]["steps"].take();
        let word = |step: &Value, key: &str| step[key].as_str().expect("a word").to_owned();
        let steps = steps.as_array().expect("steps").iter();
        let steps: Vec<_> = steps.map(|step| (word(step, "place"), word(step, "outcome"))).collect();
        if run.code == Some(1) && steps.contains(&(POOL.to_owned(), "changed".to_owned())) {
            skipped("other programs changed the pool during the test");
            assert_eq!(self.run(&["undo", "--forget"]).code, Some(0));
        } else {
            assert_eq!(run.code, Some(0), "{} {}", run.out, run.err);
        }
        steps.into_iter().filter(|(place, _)| place != POOL).collect()
    }

    /// The journals of plans that are applied.
    pub(crate) fn journals(&self) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(self.temp.path().join("state/plans")) else {
            return Vec::new();
        };
        let paths = entries.map(|entry| entry.expect("an entry").path());
        paths.filter(|path| path.extension().is_some()).collect()
    }

    pub(crate) fn sysctl(&self) -> String {
        format!("/etc/sysctl.d/99-{}.conf", self.name)
    }

    pub(crate) fn limits(&self) -> String {
        format!("/etc/security/limits.d/{}.conf", self.name)
    }

    pub(crate) fn mount_point(&self) -> String {
        format!("/run/hugepages-{}/2M", self.name)
    }

    pub(crate) fn other_thp(&self) -> &'static str {
        match chosen(&format!("{THP}/enabled")).as_str() {
            "madvise" => "always",
            _ => "madvise",
        }
    }

    pub(crate) fn setting(&self, id: &str, path: &str, before: Value, after: Value) -> Value {
        change(id, json!({"kind": "setting", "path": path}), before, after)
    }

    pub(crate) fn file(&self, id: &str, path: &str, before: Value, after: &str) -> Value {
        let target = json!({"kind": "file", "path": path, "mode": null, "owner": null});
        change(id, target, before, json!(after))
    }

    pub(crate) fn more_pages(&self) -> Value {
        let now = persistent();
        self.setting("pool", POOL, json!(now), json!(now + more()))
    }

    /// Changes that no other program on the machine notices: a setting, files, directories, a pool, a mount.
    pub(crate) fn quiet_layers(&self) -> Vec<Value> {
        let drop_in = format!("/etc/systemd/system/{}.service.d/60-hugewise.conf", self.name);
        let mount = json!({"kind": "mount", "at": self.mount_point()});
        vec![
            self.setting("group", SHM_GROUP, json!(chosen(SHM_GROUP)), json!("4711")),
            self.file("sysctl", &self.sysctl(), Value::Null, "# vm.nr_hugepages = 8\n"),
            self.file(
                "limits",
                &self.limits(),
                json!("# old\n"),
                "# old\n# nobody - memlock 65536\n",
            ),
            self.file("unit", &drop_in, Value::Null, "[Service]\nLimitMEMLOCK=64M\n"),
            self.more_pages(),
            change("mount", mount, Value::Null, json!("pagesize=2M,uid=0,gid=2,mode=0770")),
        ]
    }

    /// These, how memory is given to everybody, and something that is not for this host.
    pub(crate) fn every_layer(&self) -> Vec<Value> {
        let thp = format!("{THP}/enabled");
        let sleep: u64 = chosen(SLEEP).parse().expect("a number");
        let mut changes = self.quiet_layers();
        changes.extend([
            self.setting("thp", &thp, json!(chosen(&thp)), json!(self.other_thp())),
            self.setting(
                "khugepaged",
                SLEEP,
                json!(sleep.to_string()),
                json!((sleep + 1000).to_string()),
            ),
            change(
                "jvm",
                json!({"kind": "instruction", "on": "the JVM"}),
                Value::Null,
                json!("-XX:+UseLargePages"),
            ),
        ]);
        changes
    }

    /// A plan in a file; what makes it a result is taken from another result of this machine.
    pub(crate) fn plan(&self, changes: impl Into<Value>) -> String {
        self.plan_for("pool:2M=8", "plan.json", changes)
    }

    /// The same for a goal of its own, in a file of its own.
    pub(crate) fn plan_for(&self, goal: &str, file: &str, changes: impl Into<Value>) -> String {
        let mut result: Value = serde_json::from_str(&done(&["size", "reach", "--json"]).out).expect("JSON");
        result["schema"] = json!("hugewise/plan/3");
        result["data"] = json!({"goals": [goal], "changes": changes.into(), "notes": []});
        let file = self.temp.path().join(file);
        fs::write(&file, result.to_string()).expect("written");
        file.to_str().expect("a plain path").to_owned()
    }

    /// What is not as in an earlier picture.
    pub(crate) fn changed_since(&self, before: &Picture) -> Vec<String> {
        let now = self.picture();
        let paths: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
        let differs = |path: &&&String| match path.as_str() {
            // Others may have changed the pool; what counts is that it does not still have our pages.
            POOL => before[POOL]
                .parse::<u64>()
                .is_ok_and(|pages| persistent() == pages + more()),
            path => before.get(path) != now.get(path),
        };
        let changed = paths.iter().filter(differs);
        changed
            .map(|path| format!("{path}: {:?} -> {:?}", before.get(*path), now.get(*path)))
            .collect()
    }

    /// Everything that a plan may change. Of the pool only persistent pages: others come and go with surplus ones.
    pub(crate) fn picture(&self) -> Picture {
        let mut picture = Picture::new();
        for directory in [THP, "/sys/kernel/mm/ksm", "/proc/sys/vm"] {
            settings(Path::new(directory), &mut picture);
        }
        files(Path::new("/etc"), &mut picture);
        picture.insert(POOL.to_owned(), persistent().to_string());
        let mounts = fs::read_to_string(MOUNTS).expect("mounts");
        let mounts = mounts.lines().filter(|line| line.contains(" hugetlbfs "));
        picture.insert(MOUNTS.to_owned(), mounts.collect());
        let run = Path::new("/run").join(format!("hugepages-{}", self.name)).exists();
        picture.insert("/run".to_owned(), run.to_string());
        picture
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        // Whatever a failed test left is put back; a failure here has been reported by the test.
        self.run(&["undo"]);
        let _ = fs::remove_file(self.limits());
    }
}

/// How many pages these tests add to the pool: seldom as many as others would.
fn more() -> u64 {
    3 + u64::from(std::process::id()) % 60
}

#[expect(clippy::needless_pass_by_value, reason = "values are made where it is called")]
fn change(id: &str, target: Value, before: Value, after: Value) -> Value {
    json!({
        "id": id, "layer": "runtime", "target": target, "before": before, "after": after, "why": "",
        "risk": {"reboot": false, "takes": null, "restart": []}, "also_written_by": [], "source": ""
    })
}

/// The value of a setting; of a list the chosen word.
pub(crate) fn chosen(path: &str) -> String {
    let text = fs::read_to_string(path).expect("a setting");
    let word = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    word.map_or(text.trim(), |(word, _)| word).to_owned()
}

/// Pages of the 2M pool on node 0 that stay when no program uses them.
pub(crate) fn persistent() -> u64 {
    let number = |file: &str| chosen(&format!("{NODE}/{file}")).parse::<u64>().expect("a number");
    number("nr_hugepages").saturating_sub(number("surplus_hugepages"))
}

/// Settings below a directory; the pools' are left out, since other programs change them during the test, and so is what only counts.
fn settings(directory: &Path, picture: &mut Picture) {
    for entry in fs::read_dir(directory).expect("a directory").flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_setting = entry.metadata().is_ok_and(|meta| meta.mode() & 0o200 != 0);
        if path.is_dir() && name != "stats" {
            settings(&path, picture);
        } else if is_setting && !name.starts_with("nr_") {
            let text = fs::read_to_string(&path).unwrap_or_else(|error| error.to_string());
            picture.insert(path.display().to_string(), text);
        }
    }
}

/// Every file below a directory with its mode, owner and content.
fn files(directory: &Path, picture: &mut Picture) {
    for entry in fs::read_dir(directory).expect("a directory").flatten() {
        let (path, meta) = (entry.path(), entry.metadata().expect("metadata"));
        let content = match meta.file_type() {
            kind if kind.is_file() => fs::read(&path).expect("content"),
            kind if kind.is_symlink() => fs::read_link(&path)
                .expect("a target")
                .into_os_string()
                .into_encoded_bytes(),
            _ => Vec::new(),
        };
        let text = format!(
            "{:o} {}:{} {}",
            meta.mode(),
            meta.uid(),
            meta.gid(),
            String::from_utf8_lossy(&content)
        );
        picture.insert(path.display().to_string(), text);
        if meta.is_dir() {
            files(&path, picture);
        }
    }
}
