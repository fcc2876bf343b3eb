//! Which points there are, on which CPUs, and in which order. Pure.

use std::fmt;

use chase::kernelops::{CHURN, PROCESS, WORKER};
use model::kernelops::{Cores, Op};
use model::{Bytes, NotMeasured, PageKind};

use super::spec::Spec;
use crate::distinct;

/// One point to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Target {
    pub(super) op: Op,
    pub(super) workers: u32,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} x {}", self.op, self.workers)
    }
}

/// Memory that is mapped, written and unmapped in one operation: one PMD-mapped page on x86-64.
const TOUCHED: Bytes = Bytes::mib(2);

/// All operations, each on the page kinds where they matter: `live` processes for pcd, `resident` memory for fw.
pub fn usual(kinds: &[PageKind], live: u32, resident: Bytes) -> Vec<Op> {
    let fixed = [
        Op::Segv,
        Op::Pcd { live: 0 },
        Op::Pcd { live },
        Op::Nps { cores: Cores::Same },
        Op::Nps { cores: Cores::Cross },
        Op::Fw,
        Op::Vfork,
        Op::Exec,
        Op::Cow,
        Op::FileRead,
        Op::Mmap,
        Op::Migrate,
    ];
    let of_kind = |&kind: &PageKind| {
        let bytes = TOUCHED.round_up_to(kind.pool().unwrap_or(TOUCHED));
        let all = [
            Op::FwResident { kind, bytes: resident },
            Op::AnonWrite { kind },
            Op::MmapTouch { kind, bytes },
        ];
        // Pages from a pool have no page of zeros that is shared.
        let zeros = kind.pool().is_none().then_some(Op::ZeroRead { kind });
        all.into_iter().chain(zeros)
    };
    distinct(fixed.into_iter().chain(kinds.iter().flat_map(of_kind)))
}

/// The CPUs that may be used, in an order in which workers do not share a core before they must: first one thread of each of
/// `cores` (the threads of one core each), then the others.
pub(super) fn in_order(allowed: &[u32], cores: &[Vec<u32>]) -> Vec<u32> {
    let mut cpus = allowed.to_vec();
    let turn = |cpu: u32| {
        let core = cores.iter().find(|core| core.contains(&cpu));
        core.map_or(0, |core| {
            core.iter()
                .filter(|&&other| other < cpu && allowed.contains(&other))
                .count()
        })
    };
    cpus.sort_by_key(|&cpu| (turn(cpu), cpu));
    cpus
}

/// Every combination that the spec asks for, once.
pub(super) fn targets(spec: &Spec) -> Vec<Target> {
    let of = |&op: &Op| spec.workers.iter().map(move |&workers| Target { op, workers });
    distinct(spec.ops.iter().flat_map(of).filter(|target| target.workers > 0))
}

/// Where the workers go: the CPU of each, and another one for whom it talks to. There are enough CPUs unless it is [`impossible`].
pub(super) fn places(target: &Target, cpus: &[u32]) -> impl Iterator<Item = (u32, u32)> {
    let (workers, each) = (target.workers as usize, target.op.cpus() as usize);
    let cpus = cpus.iter().copied();
    let others = cpus.clone().cycle().skip(workers * (each - 1));
    cpus.zip(others).take(workers)
}

/// What one of the workers does: processes that are to be there in all are shared out.
pub(super) fn share(op: Op, worker: u32, workers: u32) -> Op {
    match op {
        Op::Pcd { live } => Op::Pcd {
            live: live / workers + u32::from(worker < live % workers),
        },
        other => other,
    }
}

/// Why a point cannot be tried here at all.
pub(super) fn impossible(target: &Target, spec: &Spec) -> Option<NotMeasured> {
    let Target { op, workers } = *target;
    let needed = workers * op.cpus();
    if needed as usize > spec.cpus.len() {
        let allowed = spec.cpus.len();
        return Some(NotMeasured::TooFewCpus { needed, allowed });
    }
    let needed = memory(op, workers);
    let limit = limit(spec.available);
    (needed > limit).then_some(NotMeasured::TooMuchMemory { needed, limit })
}

/// What all workers of an operation may take.
fn limit(available: Bytes) -> Bytes {
    Bytes(available.0 / 2)
}

fn memory(op: Op, workers: u32) -> Bytes {
    let each = |worker| chase::kernelops::memory(share(op, worker, workers)).0;
    Bytes((0..workers).map(each).sum())
}

/// So many idle processes and so much memory in a forking one, or as much of it as so many workers may take.
pub fn within(available: Bytes, workers: u32, live: u32, resident: Bytes) -> (u32, Bytes) {
    let workers = u64::from(workers.max(1));
    let left = limit(available).0.saturating_sub(workers * (WORKER.0 + CHURN.0));
    let live = u64::from(live).min(left / PROCESS.0) as u32;
    let most = left / workers / TOUCHED.0 * TOUCHED.0;
    (live, Bytes(resident.0.min(most.max(TOUCHED.0))))
}

#[cfg(test)]
mod tests {
    use super::{Target, impossible, in_order, places, share, targets, usual};
    use crate::kernelops::{Program, Spec};
    use model::kernelops::{Cores, Op};
    use model::{Bytes, PageKind};
    use std::time::Duration;

    fn spec(workers: Vec<u32>, cpus: Vec<u32>) -> Spec {
        Spec {
            ops: usual(
                &[PageKind::Base, PageKind::Thp, PageKind::HUGETLB_2M],
                4000,
                Bytes::mib(256),
            ),
            workers,
            cpus,
            budget: Duration::from_secs(1),
            seed: 1,
            available: Bytes::gib(1),
            program: Program::this(),
        }
    }

    #[test]
    fn every_operation_is_there_once_for_each_number_of_workers() {
        let spec = spec(vec![1, 2, 2], vec![0, 1]);
        let targets = targets(&spec);
        assert_eq!(targets.len(), 2 * spec.ops.len());
        assert_eq!(spec.ops.len(), 12 + 3 * 3 + 2, "pool pages have no page of zeros");
        assert_eq!(
            usual(&[], 0, Bytes::mib(1)).len(),
            11,
            "pcd among none is one operation"
        );
    }

    #[test]
    fn workers_have_cpus_of_their_own_and_so_have_their_partners() {
        let target = |op, workers| Target { op, workers };
        let cross = Op::Nps { cores: Cores::Cross };
        let cpus = [4, 5, 6, 7];
        assert!(places(&target(cross, 2), &cpus).eq([(4, 6), (5, 7)]));
        assert!(places(&target(Op::Segv, 4), &cpus).map(|(cpu, _)| cpu).eq(cpus));
    }

    #[test]
    fn twins_of_one_core_come_last() {
        let cores = [vec![0, 4], vec![1, 5], vec![2, 6], vec![3, 7]];
        assert_eq!(in_order(&[0, 1, 4, 5, 6, 7], &cores), [0, 1, 6, 7, 4, 5]);
        assert_eq!(in_order(&[3, 9], &[]), [3, 9], "cores unknown");
    }

    #[test]
    fn what_cannot_be_had_is_named_before_it_is_tried() {
        let spec = spec(vec![1, 2], vec![0, 1]);
        let why = |op, workers| impossible(&Target { op, workers }, &spec).map(|why| why.to_string());
        assert!(why(Op::Migrate, 2).expect("two CPUs").contains("needs 4 CPUs"));
        let cross = Op::Nps { cores: Cores::Cross };
        assert!(why(cross, 2).expect("two CPUs").contains("needs 4 CPUs"));
        assert_eq!(why(Op::Migrate, 1), None);
        let fork = |kind, bytes| Op::FwResident { kind, bytes };
        assert!(
            why(fork(PageKind::Base, Bytes::mib(300)), 2)
                .expect("too large")
                .contains("656M")
        );
        assert_eq!(why(fork(PageKind::Base, Bytes::mib(220)), 2), None);
    }

    #[test]
    fn in_a_small_control_group_everything_usual_fits_or_is_named() {
        for (available, workers) in [(28, 1), (28, 2), (80, 1), (300, 4), (4096, 2)] {
            let available = Bytes::mib(available);
            let (live, resident) = super::within(available, workers, 4000, Bytes::mib(256));
            let spec = Spec {
                available,
                ..spec(vec![workers], (0..8).collect())
            };
            for op in usual(&[PageKind::Base, PageKind::Thp], live, resident) {
                let needed = super::memory(op, workers);
                let why = impossible(&Target { op, workers }, &spec);
                assert_eq!(why.is_some(), needed.0 > available.0 / 2, "{op}: {needed}");
            }
            let crowd = Target {
                op: Op::Pcd { live },
                workers,
            };
            assert_eq!(
                impossible(&crowd, &spec).is_some(),
                u64::from(workers) * 56 > available.0 >> 20,
                "{live}"
            );
        }
        let all = super::within(Bytes::gib(4), 2, 4000, Bytes::mib(256));
        assert_eq!(all, (4000, Bytes::mib(256)), "as it was where there is room");
    }

    #[test]
    fn live_processes_are_shared_out_without_loss() {
        let live: u32 = (0..3)
            .map(|worker| match share(Op::Pcd { live: 100 }, worker, 3) {
                Op::Pcd { live } => live,
                _ => 0,
            })
            .sum();
        assert_eq!(live, 100);
        assert_eq!(share(Op::Fw, 1, 3), Op::Fw);
    }
}
