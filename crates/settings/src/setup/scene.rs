//! What the tests of the set-up start from: a made machine with settings, files and mounts, and a plan that changes them all.

use std::path::PathBuf;

use model::plan::{Change, Layer, Mode, Owner, Plan, Risk, Target, Value};
use model::process::ProcessPages;
use model::setup::{Applied, Undone};
use model::{Bytes, Reading};
use tempfile::TempDir;

use super::{How, Setup, SetupError, Which};
use crate::fake::{Fault, Machine, Process};
use crate::place::{FileState, Place, State};
use crate::scene::{journals, quick_directory};
use crate::writer::Writer;

pub(super) const M2: Bytes = Bytes::mib(2);
pub(super) const THP: &str = "/sys/kernel/mm/transparent_hugepage";
pub(super) const SYSCTL_D: &str = "/etc/sysctl.d/60-hugewise.conf";
pub(super) const LIMITS_D: &str = "/etc/security/limits.d/60-hugewise.conf";
pub(super) const DROP_IN: &str = "/etc/systemd/system/jboss.service.d/hugewise.conf";
pub(super) const MOUNT: &str = "/mnt/huge/jboss";

/// The pool of 2M pages on a node.
pub(super) fn pool(node: u32) -> String {
    format!("/sys/devices/system/node/node{node}/hugepages/hugepages-2048kB/nr_hugepages")
}

pub(super) fn change(id: &str, target: Target, before: Value, after: Value) -> Change {
    Change {
        id: id.to_owned(),
        layer: Layer::Runtime,
        target,
        before: Reading::Known(before),
        after,
        why: String::new(),
        risk: Risk::default(),
        also_written_by: Vec::new(),
        source: String::new(),
    }
}

pub(super) fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

pub(super) fn setting(id: &str, path: &str, before: Value, after: Value) -> Change {
    change(id, Target::Setting { path: path.to_owned() }, before, after)
}

pub(super) fn file(id: &str, path: &str, before: Value, after: &str) -> Change {
    let target = Target::File {
        path: path.to_owned(),
        mode: None,
        owner: None,
    };
    change(id, target, before, text(after))
}

/// A plan that changes something of every sort.
pub(super) fn plan() -> Plan {
    let owned = Target::File {
        path: DROP_IN.to_owned(),
        mode: Some(Mode(0o600)),
        owner: Some(Owner { uid: 0, gid: 0 }),
    };
    let mount = Target::Mount { at: MOUNT.to_owned() };
    let on = Target::Instruction {
        on: "the JVM".to_owned(),
    };
    let changes = vec![
        setting("thp", &format!("{THP}/enabled"), text("madvise"), text("always")),
        setting(
            "defrag",
            &format!("{THP}/defrag"),
            text("madvise"),
            text("defer+madvise"),
        ),
        setting(
            "scan",
            &format!("{THP}/khugepaged/pages_to_scan"),
            text("4096"),
            text("8192"),
        ),
        setting(
            "shmmax",
            "/proc/sys/kernel/shmmax",
            text("33554432"),
            text("8589934592"),
        ),
        setting("group", "/proc/sys/vm/hugetlb_shm_group", text("0"), text("71")),
        setting("pool-0", &pool(0), Value::Pages(5), Value::Pages(16)),
        setting("pool-1", &pool(1), Value::Pages(5), Value::Pages(8)),
        setting("overcommit", OVERCOMMIT, Value::Pages(2), Value::Pages(12)),
        file("sysctl", SYSCTL_D, Value::Absent, "vm.nr_hugepages = 24\n"),
        file("limits", LIMITS_D, text("old\n"), "old\njboss - memlock 49152\n"),
        change("unit", owned, Value::Absent, text("[Service]\nLimitMEMLOCK=48M\n")),
        change(
            "mount",
            mount,
            Value::Absent,
            text("pagesize=2M,uid=70,gid=71,mode=0770"),
        ),
        change("jvm", on, Value::Absent, text("java -XX:+UseLargePages")),
    ];
    Plan {
        goals: vec!["jvm:heap=32m,user=jboss".to_owned()],
        changes,
        ..Plan::default()
    }
}

pub(super) const OVERCOMMIT: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_overcommit_hugepages";

pub(super) fn only(change: Change) -> Plan {
    Plan {
        changes: vec![change],
        ..Plan::default()
    }
}

pub(super) fn nobody() -> Reading<Vec<ProcessPages>> {
    Reading::Known(Vec::new())
}

/// A machine that the plan fits, and a state directory.
pub(super) struct Scene {
    pub(super) machine: Machine,
    temp: TempDir,
    next_pid: std::cell::Cell<u32>,
}

impl Scene {
    pub(super) fn new() -> Self {
        let machine = Machine::new(2, 4);
        machine.pool(M2, |pool| {
            pool.nodes.iter_mut().for_each(|node| node.set_persistent(5));
            pool.overcommit = 2;
        });
        for (path, text) in [
            (format!("{THP}/enabled"), "always [madvise] never\n"),
            (format!("{THP}/defrag"), "always defer defer+madvise [madvise] never\n"),
            (format!("{THP}/khugepaged/pages_to_scan"), "4096\n"),
            ("/proc/sys/kernel/shmmax".to_owned(), "33554432\n"),
            ("/proc/sys/vm/hugetlb_shm_group".to_owned(), "0\n"),
        ] {
            machine.set_file(&path, text);
        }
        for path in [
            "/etc",
            "/etc/sysctl.d",
            "/etc/security",
            "/etc/security/limits.d",
            "/etc/systemd",
            "/etc/systemd/system",
            "/mnt",
        ] {
            machine.world().disk.insert(path.to_owned(), State::Directory);
        }
        let limits = FileState {
            text: "old\n".to_owned(),
            mode: 0o640,
            uid: 0,
            gid: 42,
        };
        machine.world().disk.insert(LIMITS_D.to_owned(), State::File(limits));
        Self {
            machine,
            temp: quick_directory(),
            next_pid: 1.into(),
        }
    }

    pub(super) fn leases(&self) -> PathBuf {
        self.temp.path().join("leases")
    }

    /// Where applied plans are recorded.
    pub(super) fn home(&self) -> PathBuf {
        self.temp.path().join("plans")
    }

    pub(super) fn run(&self) -> (Process, Setup) {
        let process = self.machine.process(self.next_pid.replace(self.next_pid.get() + 1));
        let writer = Writer::new(self.leases(), Box::new(process.clone()));
        (process, Setup::new(writer, [self.home()]))
    }

    /// A process that is struck by a fault while it applies the plan.
    pub(super) fn apply_with(&self, plan: &Plan, fault: Fault) -> Result<Applied, SetupError> {
        let (process, setup) = self.run();
        process.expect(fault);
        let applied = setup.apply(plan, &how());
        process.die();
        applied
    }

    pub(super) fn apply(&self, plan: &Plan) -> Result<Applied, SetupError> {
        self.run().1.apply(plan, &how())
    }

    /// The next process undoes one plan.
    pub(super) fn undo_plan(&self, plan: &Plan) -> Undone {
        let which = Which::Plan(Box::new(plan.clone()));
        self.run().1.undo(Some(&which), false).expect("undone")
    }

    /// The next process undoes.
    pub(super) fn undo(&self) -> Undone {
        self.run().1.undo(None, false).expect("undone")
    }

    pub(super) fn look(&self, place: &Place) -> State {
        use crate::sink::Sink;
        self.machine.process(9999).look(place).expect("looked")
    }

    pub(super) fn journals(&self) -> Vec<PathBuf> {
        journals(&self.home())
    }
}

/// The usual way.
pub(super) fn how() -> How<'static> {
    How {
        exact: false,
        leave: None,
        stop: &|| false,
    }
}
