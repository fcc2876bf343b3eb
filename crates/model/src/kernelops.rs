//! The shape of what the kernel's own memory and process operations cost, natively, with real processes.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::latency::{Backed, Bound};
use crate::{Bytes, Estimate, PageKind};

/// One operation of the kernel. The first four names are those of the microbenchmarks in VMware's study of EPT.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "op", rename_all = "kebab-case")]
pub enum Op {
    /// A load from a page without access rights: fault, signal, handler, return.
    Segv,
    /// A process created and destroyed, in groups, while `live` others exist.
    Pcd {
        /// Idle processes that exist at the same time, over all workers.
        live: u32,
    },
    /// A byte to another process and back through two pipes: two switches of process.
    Nps {
        /// Where the other process runs.
        cores: Cores,
    },
    /// A fork of a small process whose child ends at once, and the wait for it.
    Fw,
    /// The same with memory in the parent, whose page tables the fork duplicates.
    FwResident {
        /// The page kind of that memory.
        kind: PageKind,
        /// How much of it.
        bytes: Bytes,
    },
    /// A child that borrows the parent's memory, and the wait for it.
    Vfork,
    /// A vfork whose child executes the smallest of programs, and the wait for it.
    Exec,
    /// The first write to a page of anonymous memory.
    AnonWrite {
        /// Its kind.
        kind: PageKind,
    },
    /// The first read of a page of anonymous memory: it gets the page of zeros.
    ZeroRead {
        /// Its kind.
        kind: PageKind,
    },
    /// The first write to a base page that is shared with a child since a fork.
    Cow,
    /// The first read of a mapped file whose pages are in the page cache: one fault maps several.
    FileRead,
    /// 64 KiB mapped and unmapped, never touched.
    Mmap,
    /// Memory mapped, every base page of it written, and unmapped.
    MmapTouch {
        /// Its kind.
        kind: PageKind,
        /// How much of it.
        bytes: Bytes,
    },
    /// The calling thread moves itself to another CPU.
    Migrate,
}

/// Where two processes run that talk to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cores {
    /// Both on one CPU.
    Same,
    /// Each on a CPU of its own.
    Cross,
}

impl Op {
    /// The name in results and tables.
    pub fn name(self) -> &'static str {
        self.row().0
    }

    /// What one operation is, in words.
    pub fn what(self) -> &'static str {
        self.row().1
    }

    /// Does no other process take part? Then a worker that was switched out has been disturbed.
    pub fn is_alone(self) -> bool {
        self.row().2
    }

    fn row(self) -> (&'static str, &'static str, bool) {
        match self {
            Self::Segv => ("segv", "fault, signal handler, return", true),
            Self::Pcd { .. } => ("pcd", "create and destroy a process", false),
            Self::Nps { .. } => ("nps", "pipe round trip: two process switches", false),
            Self::Fw => ("fw", "fork and wait, small parent", false),
            Self::FwResident { .. } => ("fw-resident", "fork and wait, parent with memory", false),
            Self::Vfork => ("vfork", "vfork and wait", false),
            Self::Exec => ("exec", "vfork, exec of a tiny program, wait", false),
            Self::AnonWrite { .. } => ("anon-write", "first write to an anonymous page", true),
            Self::ZeroRead { .. } => ("zero-read", "first read of an anonymous page (page of zeros)", true),
            Self::Cow => ("cow", "first write after a fork (copy)", true),
            Self::FileRead => ("file-read", "first read of a cached file's pages (one fault)", true),
            Self::Mmap => ("mmap", "map and unmap 64K, untouched", true),
            Self::MmapTouch { .. } => ("mmap-touch", "map, write every page, unmap", true),
            Self::Migrate => ("migrate", "move to another CPU", false),
        }
    }

    /// The page kind it is about, where one matters.
    pub fn kind(self) -> Option<PageKind> {
        match self {
            Self::FwResident { kind, .. }
            | Self::AnonWrite { kind }
            | Self::ZeroRead { kind }
            | Self::MmapTouch { kind, .. } => Some(kind),
            Self::Cow => Some(PageKind::Base),
            _ => None,
        }
    }

    /// CPUs that one worker needs.
    pub fn cpus(self) -> u32 {
        match self {
            Self::Nps { cores: Cores::Cross } | Self::Migrate => 2,
            _ => 1,
        }
    }

    /// What distinguishes it from others of its name: `4000 live`, `same core`, `256M thp`; empty if nothing does.
    pub fn variant(self) -> String {
        match self {
            Self::Pcd { live } => format!("{live} live"),
            Self::Nps { cores: Cores::Same } => "same core".to_owned(),
            Self::Nps { cores: Cores::Cross } => "cross core".to_owned(),
            Self::FwResident { kind, bytes } | Self::MmapTouch { kind, bytes } => format!("{bytes} {kind}"),
            Self::AnonWrite { kind } | Self::ZeroRead { kind } => kind.to_string(),
            _ => String::new(),
        }
    }
}

impl fmt::Display for Op {
    /// `nps, same core`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let variant = self.variant();
        if variant.is_empty() {
            f.pad(self.name())
        } else {
            f.pad(&format!("{}, {variant}", self.name()))
        }
    }
}

/// The whole measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KernelOps {
    /// One entry per operation and number of workers, measured or not.
    pub points: Vec<Point>,
    /// Time stamp counter, in GHz: the clock behind every ns.
    pub tsc_ghz: f64,
    /// CPUs the workers were pinned to, in the order in which they were taken.
    pub cpus: Vec<u32>,
    /// Rounds through all points.
    pub rounds: u32,
    /// Seconds from start to end, set-up included.
    pub seconds: f64,
}

/// One operation, done by so many workers at the same time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// The operation.
    #[serde(flatten)]
    pub op: Op,
    /// Processes that do it at the same time, each pinned to a CPU (or two) of its own.
    pub workers: u32,
    /// Time of one operation as a worker sees it, in ns; `null` if it could not be done as named, or had not converged.
    pub ns: Option<Estimate>,
    /// Between which ns the converged time lies, of a point that did not converge within its visits; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
    /// `true`: the 95 % interval came within 2 % of the median; `false`: its time was spent first.
    pub settled: bool,
    /// Operations that were timed.
    pub operations: u64,
    /// What the kernel and the operation itself counted, per operation: `faults` (minor, children included), `signals`,
    /// `children` (waited for), `switches` (voluntary), `preemptions`, `pages-per-fault`.
    pub per_operation: BTreeMap<String, f64>,
    /// Where a page kind matters: asked, and proved.
    pub backing: Option<Backed>,
    /// Samples thrown away because the worker was switched out.
    pub dropped: u64,
    /// Why there is neither `ns` nor `bound`, in one sentence that says what to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_measured: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::{Cores, KernelOps, Op, Point};
    use crate::{Bytes, PageKind};

    fn ops() -> Vec<Op> {
        vec![
            Op::Segv,
            Op::Pcd { live: 4000 },
            Op::Nps { cores: Cores::Cross },
            Op::FwResident {
                kind: PageKind::Thp,
                bytes: Bytes::mib(256),
            },
            Op::AnonWrite { kind: PageKind::Base },
        ]
    }

    fn point(op: Op) -> Point {
        Point {
            op,
            workers: 2,
            ns: None,
            bound: None,
            settled: false,
            operations: 0,
            per_operation: [("faults".to_owned(), 1.0)].into(),
            backing: None,
            dropped: 0,
            not_measured: Some("because".to_owned()),
        }
    }

    #[test]
    fn results_are_read_as_written_and_their_names_are_the_tables_names() {
        let whole = KernelOps {
            points: ops().into_iter().map(point).collect(),
            tsc_ghz: 2.0,
            cpus: vec![0, 1],
            rounds: 3,
            seconds: 1.0,
        };
        let json = serde_json::to_value(&whole).expect("json");
        for (op, written) in ops().into_iter().zip(json["points"].as_array().expect("points")) {
            assert_eq!(written["op"], op.name());
        }
        assert_eq!(json["points"][3]["kind"], "thp");
        assert_eq!(serde_json::from_value::<KernelOps>(json).expect("shape"), whole);
    }

    #[test]
    fn variants_tell_operations_of_one_name_apart() {
        let texts: Vec<String> = ops().iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "segv",
                "pcd, 4000 live",
                "nps, cross core",
                "fw-resident, 256M thp",
                "anon-write, base"
            ]
        );
    }
}
