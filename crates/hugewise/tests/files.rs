//! Mapped files: what `explain` says of them against smaps, in the cases that this machine can make cheaply (`benches/files.py` has all).

mod common;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use common::{compiled, done, missing, skipped, valid};

const SIZE: u64 = 8 << 20;
const HUGE: u64 = 2 << 20;
/// A place where nothing is mapped, at a multiple of a huge page.
const FITS: u64 = 0x2000_0000_0000;
const SHIFTED: u64 = FITS + 4096;
/// MADV_HUGEPAGE and MADV_NOHUGEPAGE (asm-generic/mman-common.h).
const ADVISED: u64 = 14;
const REFUSED: u64 = 15;

/// A process that holds a mapping of a file.
struct Held {
    child: Child,
    start: String,
}

impl Held {
    /// `None` where it did not come so far, as without the right to mount.
    fn started(command: &mut Command) -> Option<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("starts");
        let mut start = String::new();
        let out = child.stdout.take().expect("a pipe");
        BufReader::new(out).read_line(&mut start).expect("an address");
        let held = Self {
            child,
            start: start.trim().to_owned(),
        };
        (!held.start.is_empty()).then_some(held)
    }

    /// Bytes that PMD entries map of it.
    fn mapped(&self) -> u64 {
        let smaps = std::fs::read_to_string(format!("/proc/{}/smaps", self.child.id())).expect("its mappings");
        let from = smaps
            .lines()
            .skip_while(|line| !line.starts_with(&format!("{}-", self.start)));
        let own = from.take_while(|line| !line.starts_with("VmFlags"));
        let pmd = own.filter(|line| line.starts_with("FilePmdMapped") || line.starts_with("ShmemPmdMapped"));
        pmd.map(|line| {
            line.split_whitespace()
                .nth(1)
                .expect("kB")
                .parse::<u64>()
                .expect("a number")
                << 10
        })
        .sum()
    }

    /// What explain says of its file, with all that is resident held against the sum of its sorts.
    fn explained(&self, file: &Path) -> Value {
        let result = valid(&done(&["explain", &self.child.id().to_string(), "--json"]).out);
        let program = &result["data"]["programs"][0];
        let bytes = |kinds: &Value| -> u64 {
            let kinds = kinds.as_object().expect("kinds");
            kinds.values().map(|bytes| bytes.as_u64().expect("bytes")).sum()
        };
        let sums = program["mapped"]["sums"].as_object().expect("sums");
        let of_files: u64 = ["program-text", "library-text", "data"]
            .iter()
            .filter_map(|sort| sums.get(*sort))
            .map(bytes)
            .sum();
        let coverage = bytes(&program["resident"]["file"]);
        assert!(
            coverage.abs_diff(of_files) <= coverage / 50,
            "code and data are the file memory: {of_files} of {coverage}"
        );
        let files = program["mapped"]["largest"].as_array().expect("files");
        let own = files
            .iter()
            .find(|one| one["file"] == file.to_str().expect("a plain path"));
        own.unwrap_or_else(|| panic!("{}: {program}", file.display())).clone()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// The share is that of smaps within one huge page; its reason.
#[track_caller]
fn reason(held: &Held, file: &Path) -> (u64, Option<String>, Option<String>) {
    let (before, told) = (held.mapped(), held.explained(file));
    let huge = told["backing"]["thp"].as_u64().unwrap_or(0);
    assert!(huge.abs_diff(before) <= HUGE, "{huge} of {before}: {told}");
    let text = |key: &str| told[key].as_str().map(str::to_owned);
    assert_eq!(
        text("why").is_none(),
        told["backing"]["base"].as_u64().unwrap_or(0) == 0,
        "{told}"
    );
    (huge, text("why"), text("file_system"))
}

fn holder(folder: &Path) -> Option<std::path::PathBuf> {
    let program = folder.join("hold");
    compiled("files/hold.c", &program).map(|()| program)
}

#[test]
fn a_mapped_file_has_the_share_of_smaps_and_the_reason_of_its_place_and_advice() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = holder(folder.path()) else { return };
    let folder = folder.path().canonicalize().expect("a path");
    let file = folder.join("data");
    for (place, advice) in [
        (0, 0),
        (FITS, 0),
        (FITS, ADVISED),
        (FITS, REFUSED),
        (SHIFTED, 0),
        (SHIFTED, ADVISED),
    ] {
        let mut command = Command::new(&program);
        command.arg(&file).args([place, advice].map(|word| word.to_string()));
        let held = Held::started(&mut command).expect("a mapping");
        let (huge, why, file_system) = reason(&held, &file);
        let why = why.as_deref();
        if matches!(
            why,
            Some("file-system" | "of-file" | "of-tmpfs" | "tmpfs-not-advised" | "policy-unread")
        ) {
            // Nothing else matters there.
            assert!(file_system.is_some() || why == Some("of-file"), "{why:?}");
            continue;
        }
        match (place, advice) {
            (SHIFTED, _) => assert_eq!((huge, why), (0, Some("file-unaligned")), "{file_system:?}"),
            (_, REFUSED) => assert_eq!((huge, why), (0, Some("advised-against")), "{file_system:?}"),
            _ if huge == SIZE => assert_eq!(why, None),
            // Some of its folios are smaller, as where memory is fragmented.
            (_, ADVISED) => assert!(matches!(why, Some("file-cached" | "not-given")), "{why:?}"),
            _ => assert!(
                matches!(why, Some("file-not-advised" | "file-unaligned" | "not-given")),
                "{why:?}"
            ),
        }
    }
}

#[test]
fn a_file_of_a_tmpfs_has_the_reason_of_the_mount_that_its_process_sees() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = holder(folder.path()) else { return };
    let at = folder.path().canonicalize().expect("a path").join("mount");
    std::fs::create_dir(&at).expect("a folder");
    let file = at.join("data");
    let policy = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/shmem_enabled").unwrap_or_default();
    if !policy.contains('[') || policy.contains("[deny]") || policy.contains("[force]") {
        return skipped("the policy of all tmpfs overrides that of each");
    }
    for (huge, place, advice, expected) in [
        ("never", FITS, 0, "of-tmpfs"),
        ("always", SHIFTED, 0, "file-unaligned"),
        ("always", FITS, REFUSED, "advised-against"),
        ("advise", FITS, 0, "tmpfs-not-advised"),
        ("always", FITS, 0, "none"),
    ] {
        let script = "mount -t tmpfs -o huge=$1,size=32M none \"$2\" && exec \"$3\" \"$2/data\" $4 $5";
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-c", script, "sh", huge]);
        command
            .args([&at, &program])
            .args([place, advice].map(|word| word.to_string()));
        if Command::new("unshare").arg("--version").output().is_err() {
            return missing("unshare");
        }
        let Some(held) = Held::started(&mut command) else {
            return skipped("this user may mount nothing");
        };
        let (mapped, why, file_system) = reason(&held, &file);
        assert_eq!(file_system.as_deref(), Some("tmpfs"));
        match (expected, why.as_deref()) {
            // Without a free huge page it gets small ones.
            ("none", why) => assert!(mapped == SIZE && why.is_none() || why == Some("not-given"), "{why:?}"),
            (expected, why) => assert_eq!(why, Some(expected), "huge={huge}, {place:x}, advice {advice}"),
        }
    }
}
