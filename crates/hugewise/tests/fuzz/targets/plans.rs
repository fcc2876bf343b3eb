//! Goals, plans and journals: whatever a plan says, what passes writes only what these rules allow.

use std::sync::LazyLock;

use host::{Source, Tree};
use model::plan::{Change, Plan, Target, Value};
use model::{Bytes, Envelope, Reading};
use plan::goal::Goal;
use plan::{Facts, Host, Need, Wanted};

use super::seeds::{choosing, chosen};

/// A machine on which every recipe has something to change.
static MACHINE: LazyLock<Source> = LazyLock::new(|| {
    let pool = "/sys/kernel/mm/hugepages/hugepages-2048kB";
    let tree = Tree::new()
        .line("/proc/sys/kernel/osrelease", "5.10.0")
        .file(
            "/proc/meminfo",
            "MemTotal: 16000000 kB\nMemAvailable: 12000000 kB\nHugepagesize: 2048 kB\n",
        )
        .line(&format!("{pool}/nr_hugepages"), 0)
        .line(&format!("{pool}/free_hugepages"), 0)
        .line(&format!("{pool}/resv_hugepages"), 0)
        .line(&format!("{pool}/surplus_hugepages"), 0)
        .line("/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages", 0)
        .line("/sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never")
        .line("/proc/sys/kernel/shmmax", 33_554_432)
        .line("/proc/sys/kernel/shmall", 2_097_152)
        .line("/proc/sys/vm/hugetlb_shm_group", 0)
        .file("/proc/self/mounts", "proc /proc proc rw 0 0\n")
        .file("/etc/passwd", "jboss:x:501:501::/:/bin/sh\nmysql:x:27:27::/:/bin/sh\n")
        .file("/etc/group", "jboss:x:501:\nkvm:x:36:\nmysql:x:27:\n")
        .file("/etc/os-release", "ID=debian\n")
        .file("/etc/systemd/system.conf", "")
        .file("/etc/default/grub.d/init.cfg", "")
        .file("/srv/pg/postgresql.conf", POSTGRES)
        .file("/srv/my.cnf", MYSQL);
    Source::from_tree("fuzz", tree)
});

const POSTGRES: &str = "# x\nshared_buffers = 1GB\nhuge_pages = try # default\nport = 5432\n";
const MYSQL: &str = "[client]\nport=3306\n[mysqld]\nport=3306\n";

/// Goals that change every sort of file.
pub(crate) const GOALS: [&str; 9] = [
    "pool:2M=16,group=kvm,mount=/mnt/huge-2M",
    "pool:1G=4",
    "thp=madvise",
    "thp=never,service=redis",
    "jvm:heap=1g,user=jboss,kind=openj9,service=app",
    "postgres:/srv/pg/postgresql.conf",
    "innodb:/srv/my.cnf,service=db",
    "oracle:sga=1G,user=jboss",
    "redis",
];

/// The plan for a goal.
pub(crate) fn planned(goal: Goal) -> Option<Plan> {
    let how = String::new();
    let needs = vec![Need {
        page: Bytes::mib(2),
        node: None,
        pages: 8,
        how,
        own: 0,
        asks: false,
    }];
    let program = Facts::default();
    plan::plan(&Host::look(&MACHINE), &[Wanted { goal, needs, program }]).ok()
}

/// A goal, or a file of goals: refused, or a plan within the rules.
pub(crate) fn goals(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let _ = Goal::from_toml("fuzz", &text);
    if let Ok(goal) = text.parse::<Goal>()
        && let Some(plan) = planned(goal)
    {
        assert_eq!(plan.check(), Ok(()));
        must_be_closed(&plan);
    }
}

pub(crate) fn all_goals() -> Vec<Vec<u8>> {
    let table = "[[goal]]\nfor = \"jvm\"\nheap = \"6g\"\nuser = \"jboss\"\n";
    GOALS
        .iter()
        .chain(&[table])
        .map(|text| text.as_bytes().to_vec())
        .collect()
}

/// A result of `plan`, or anything else: refused, or a plan within the rules that comes back from its JSON.
pub(crate) fn plan(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let Ok(read) = Plan::from_json(&text) else { return };
    must_be_closed(&read.data);
    let again = Plan::from_json(&serde_json::to_string(&read).expect("JSON")).expect("as it was");
    assert_eq!(again.data, read.data);
}

/// Plans for each goal, as `hugewise plan --json` writes them but for the machine.
pub(crate) fn made() -> Vec<Vec<u8>> {
    let plans = GOALS.iter().filter_map(|goal| planned(goal.parse().ok()?));
    plans
        .map(|plan| serde_json::to_vec(&result(plan)).expect("JSON"))
        .collect()
}

/// A plan as a result.
pub(crate) fn result(plan: Plan) -> Envelope<Plan> {
    Envelope {
        schema: model::plan::SCHEMA.to_owned(),
        tool: model::Tool {
            name: "hugewise".to_owned(),
            version: "0".to_owned(),
        },
        machine: host::Snapshot::take(&MACHINE).machine(),
        command: Vec::new(),
        seed: 0,
        started: String::new(),
        warnings: Vec::new(),
        data: plan,
    }
}

/// Files of each sort.
pub(crate) const FILES: [&str; 11] = [
    "/etc/sysctl.d/60-hugewise.conf",
    "/etc/security/limits.d/60-hugewise.conf",
    "/etc/tmpfiles.d/60-hugewise.conf",
    "/etc/default/grub.d/60-hugewise.cfg",
    "/etc/kernel/cmdline",
    "/etc/systemd/system/app.service.d/60-hugewise.conf",
    "/etc/systemd/system/local-fs.target.d/60-hugewise.conf",
    "/etc/systemd/system/mnt-huge.mount",
    "/etc/systemd/system/hugewise-pools.service",
    "/srv/pg/postgresql.conf",
    "/srv/my.cnf",
];

/// What stands in a file and what a plan writes there, apart by a line of `=`: what passes is within the rules.
pub(crate) fn plan_file(bytes: &[u8]) {
    let Some((path, content)) = chosen(&FILES, bytes) else {
        return;
    };
    let text = String::from_utf8_lossy(content);
    let (before, after) = text.split_once("=\n=\n").unwrap_or(("", &text));
    let plan = Plan {
        goals: ["postgres:/srv/pg/postgresql.conf", "innodb:/srv/my.cnf"]
            .map(str::to_owned)
            .into(),
        changes: vec![file(path, before, after)],
        ..Plan::default()
    };
    if plan.check().is_ok() {
        must_be_closed(&plan);
    }
}

/// A change of a file; nothing before stands for no file.
pub(crate) fn file(path: &str, before: &str, after: &str) -> Change {
    let target = Target::File {
        path: path.to_owned(),
        mode: None,
        owner: None,
    };
    let text = |text: &str| Value::Text(text.to_owned());
    let before = if before.is_empty() { Value::Absent } else { text(before) };
    Change {
        id: "fuzz".to_owned(),
        layer: model::plan::Layer::Persistence,
        target,
        before: Reading::Known(before),
        after: text(after),
        why: String::new(),
        risk: model::plan::Risk::default(),
        also_written_by: Vec::new(),
        source: String::new(),
    }
}

pub(crate) fn contents() -> Vec<Vec<u8>> {
    let mut seeds = choosing([
        (
            4,
            "root=/dev/sda quiet=\n=\nroot=/dev/sda quiet hugepagesz=1G hugepages=0:1,1:2\n",
        ),
        (
            5,
            "[Unit]\nAfter=x\n=\n=\n[Unit]\nAfter=x\n[Service]\nLimitMEMLOCK=64M\nMemoryTHP=disable\n",
        ),
        (
            0,
            "vm.swappiness = 1\nnet.x = 2\n=\n=\nvm.swappiness = 60\nnet.x = 2\nvm.nr_hugepages = 8\n",
        ),
    ]);
    for plan in GOALS.iter().filter_map(|goal| planned(goal.parse().ok()?)) {
        for change in plan.changes {
            let which = FILES.iter().position(|path| change.target.path() == Some(path));
            let texts =
                [change.before.known().and_then(Value::text), change.after.text()].map(Option::unwrap_or_default);
            if let Some(which) = which {
                seeds.push([&[which as u8], texts[0].as_bytes(), b"=\n=\n", texts[1].as_bytes()].concat());
            }
        }
    }
    seeds
}

/// The journals that `undo` and the next command read.
pub(crate) fn journal(bytes: &[u8]) {
    settings::fuzz::journals(bytes);
}

pub(crate) fn journals() -> Vec<Vec<u8>> {
    let pool = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_overcommit_hugepages";
    let loan = format!(
        "{{\"run\":{{\"format\":1,\"boot\":\"b\",\"pid\":7,\"start\":9,\"version\":\"0\",\"time\":\"t\"}}}}\n\
         {{\"write\":{{\"path\":\"{pool}\",\"before\":0,\"after\":8,\"base\":0}}}}\n{{\"done\":{{\"path\":\"{pool}\",\"share\":8}}}}\n"
    );
    let plan = planned("thp=madvise".parse().expect("a goal")).expect("a plan");
    let plan = serde_json::to_string(&plan).expect("JSON");
    let setting = "{\"setting\":\"/sys/kernel/mm/transparent_hugepage/enabled\"}";
    let applied = format!(
        "{{\"plan\":{{\"format\":1,\"boot\":\"b\",\"pid\":7,\"version\":\"0\",\"time\":\"t\",\"plan\":{plan}}}}}\n\
         {{\"set\":{{\"place\":{setting},\"from\":{{\"text\":\"always\"}},\"to\":{{\"text\":\"madvise\"}}}}}}\n\
         {{\"now\":{{\"place\":{setting},\"state\":{{\"text\":\"madvise\"}}}}}}\n\"complete\"\n"
    );
    vec![loan.into_bytes(), applied.into_bytes()]
}

/// Words that a line which a plan adds may begin with: said once more here, without the checks that it is to hold against.
const BEGINNINGS: [&str; 30] = [
    "#",
    ";",
    "[Unit]",
    "[Service]",
    "[Mount]",
    "[mysqld]",
    "kernel.numa_balancing",
    "kernel.shm",
    "vm.compaction_proactiveness",
    "vm.hugetlb_",
    "vm.max_map_count",
    "vm.min_free_kbytes",
    "vm.nr_",
    "vm.swappiness",
    "vm.zone_reclaim_mode",
    "w /sys/kernel/mm/",
    "GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX hugepagesz=",
    "LimitMEMLOCK",
    "MemoryTHP",
    "Wants=",
    "Description",
    "DefaultDependencies",
    "Before",
    "What",
    "Type",
    "Where",
    "Options",
    "RemainAfterExit",
    "huge_page",
    "large",
];

/// Whatever a plan is that passed: each file that it writes is one of a few, and each line that it adds begins with a known word and
/// holds nothing that a shell, systemd or a kernel would run.
pub(crate) fn must_be_closed(plan: &Plan) {
    for change in &plan.changes {
        match &change.target {
            Target::Setting { path } => {
                assert!(
                    path.starts_with("/proc/sys/vm/")
                        || path.starts_with("/proc/sys/kernel/")
                        || path.starts_with("/sys/")
                );
                assert!(
                    !path.contains("core_pattern") && !path.contains("..") && !path.contains("modprobe"),
                    "{path}"
                );
            }
            Target::File { path, mode, owner } => {
                assert!(
                    mode.is_none_or(|mode| mode.0 & 0o133 == 0) && owner.is_none_or(|owner| owner.uid == 0),
                    "{path}"
                );
                must_be_a_known_file(path, &plan.goals);
                must_be_known_lines(path, change);
            }
            Target::Mount { at } => assert!(
                [
                    "/dev/hugepages",
                    "/hugepages",
                    "/mnt/huge",
                    "/run/hugepages",
                    "/var/lib/hugetlbfs/"
                ]
                .iter()
                .any(|root| at.starts_with(root))
            ),
            Target::Instruction { .. } => {}
        }
    }
}

fn must_be_a_known_file(path: &str, goals: &[String]) {
    let is_named = goals.iter().any(|goal| goal.contains(path)) && (path.ends_with(".conf") || path.ends_with(".cnf"));
    let is_own = path.rsplit('/').next().is_some_and(|name| name.contains("hugewise"));
    let is_mount = path.starts_with("/etc/systemd/system/") && path.ends_with(".mount");
    let is_one = ["/etc/sysctl.conf", "/etc/security/limits.conf", "/etc/kernel/cmdline"].contains(&path);
    assert!(
        is_named || is_mount || is_one || (is_own && path.starts_with("/etc/")),
        "{path}"
    );
    assert!(
        !path.contains("modprobe") && !path.contains("cron") && !path.contains("/.."),
        "{path}"
    );
}

fn must_be_known_lines(path: &str, change: &Change) {
    let [before, after] =
        [change.before.known().and_then(Value::text), change.after.text()].map(Option::unwrap_or_default);
    if path == "/etc/kernel/cmdline" {
        let known: Vec<&str> = before.split_whitespace().collect();
        let is_right = |word: &str| known.contains(&word) || word.starts_with("hugepages");
        return assert!(after.split_whitespace().all(is_right), "{path}: {after:?}");
    }
    let known: Vec<&str> = before.lines().collect();
    for line in after
        .lines()
        .filter(|line| !known.contains(line) && !line.trim().is_empty())
    {
        let line = line.trim();
        let is_fill = path.ends_with("/hugewise-pools.service") && line.starts_with("ExecStart=/bin/sh -c 'echo ");
        let is_limit = path.contains("/security/limits") && line.split_whitespace().nth(2) == Some("memlock");
        let begins =
            |word: &&str| line.starts_with(*word) || line.trim_start_matches('-').replace('/', ".").starts_with(*word);
        assert!(
            is_fill || is_limit || BEGINNINGS.iter().any(begins) || is_postgres(line),
            "{path}: {line:?}"
        );
        let is_comment = line.starts_with(['#', ';']);
        let is_run = ['|', '`', ';', '&', '\\'].iter().any(|c| line.contains(*c))
            || line.matches('$').count() > 1
            || line.contains("$(");
        assert!(
            is_comment || is_fill || path.ends_with(".mount") || path.contains("local-fs.target.d") || !is_run,
            "{path}: {line:?}"
        );
    }
    let gone = before
        .lines()
        .filter(|line| line.contains("core_pattern") || line.contains("Exec"));
    assert!(
        gone.into_iter().all(|line| after.lines().any(|kept| kept == line)),
        "{path}: {after:?}"
    );
}

fn is_postgres(line: &str) -> bool {
    line.to_ascii_lowercase().starts_with("huge_page")
}
