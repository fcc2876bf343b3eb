//! Operations of the kernel measured by real workers: what they did, and that nothing of them is left.

use std::cell::Cell;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Failed, Trial};
use measure::Error;
use measure::kernelops::{Program, Spec, run, serve_if_asked, usual};
use model::kernelops::{KernelOps, Op, Point};
use model::{Bytes, PageKind};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// Makes this program measure until it is ended.
const UNTIL_KILLED: &str = "measure-until-killed";

fn main() -> ExitCode {
    if let Some(code) = serve_if_asked() {
        return code;
    }
    if std::env::args().nth(1).as_deref() == Some(UNTIL_KILLED) {
        let crowd = spec(vec![Op::Pcd { live: 60 }], Duration::from_secs(60));
        let _ = run(&crowd, &mut (), &|| false);
        return ExitCode::SUCCESS;
    }
    let trial = |name: &str, test: fn()| {
        Trial::test(name, move || {
            test();
            Ok::<(), Failed>(())
        })
    };
    let trials = vec![
        trial("every_operation_is_done_as_named_or_says_why_not", every_operation),
        trial("a_stop_ends_the_workers", a_stop_ends_the_workers),
        trial("a_killed_measurement_leaves_no_process", || {
            left_by(|pid| kill_process(pid, Signal::KILL));
        }),
        trial("an_interrupted_terminal_leaves_no_process", || {
            left_by(|pid| kill_process_group(pid, Signal::INT));
        }),
        trial("a_worker_serves_nobody_but_its_parent", a_worker_serves_its_parent),
        trial("a_program_that_is_no_worker_is_told", no_worker),
    ];
    // They count processes, and share two CPUs.
    let arguments = Arguments {
        test_threads: Some(1),
        ..Arguments::from_args()
    };
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn cpus() -> Vec<u32> {
    let allowed = rustix::thread::sched_getaffinity(None).expect("affinity");
    (0..1024).filter(|&cpu| allowed.is_set(cpu as usize)).collect()
}

fn spec(ops: Vec<Op>, budget: Duration) -> Spec {
    Spec {
        ops,
        workers: vec![1, 2],
        cpus: cpus(),
        budget,
        seed: 1,
        available: Bytes::gib(1),
        program: Program::this(),
    }
}

/// Processes whose parent is `pid`.
fn children(pid: u32) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").expect("/proc").flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|&child| parent(child) == Some(pid)).collect()
}

/// The parent of a process that lives.
fn parent(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut words = stat.rsplit_once(") ")?.1.split(' ');
    (words.next()? != "Z").then(|| words.next()?.parse().ok())?
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn of(result: &KernelOps, op: Op, workers: u32) -> &Point {
    let point = result
        .points
        .iter()
        .find(|point| (point.op, point.workers) == (op, workers));
    point.unwrap_or_else(|| panic!("{op} x {workers}"))
}

#[allow(clippy::print_stderr)]
fn every_operation() {
    let kinds = [PageKind::Base, PageKind::Thp, PageKind::Hugetlb(Bytes::kib(8))];
    let spec = spec(usual(&kinds, 40, Bytes::mib(16)), Duration::from_secs(3));
    let (result, _) = run(&spec, &mut (), &|| false).expect("measured");
    assert_eq!(result.points.len(), 2 * spec.ops.len());
    for point in &result.points {
        let told = [point.ns.is_some(), point.bound.is_some(), point.not_measured.is_some()];
        assert_eq!(told.iter().filter(|told| **told).count(), 1, "{point:?}");
        let impossible = point.workers * point.op.cpus() > spec.cpus.len() as u32;
        let kind = point.op.kind();
        match &point.not_measured {
            None => assert!(!impossible && point.operations > 0, "{point:?}"),
            Some(why) if kind.is_some_and(|kind| kind.pool().is_some()) => {
                assert!(why.contains("no pool of 8K") || why.contains("needs"), "{why}");
            }
            Some(why) if why.contains("quieter machine") || why.contains("only one visit") => {
                testing::skipped(&format!("the machine is too busy for {}: {why}", point.op));
            }
            Some(why) if kind == Some(PageKind::Thp) => {
                testing::skipped(&format!("no huge page to be had for {}: {why}", point.op));
            }
            Some(why) => assert!(impossible, "{}: {why}", point.op),
        }
    }
    let counted = |op, name: &str| of(&result, op, 1).per_operation.get(name).copied();
    assert_eq!(counted(Op::Segv, "signals"), Some(1.0));
    assert_eq!(counted(Op::Fw, "children"), Some(1.0));
    assert_eq!(counted(Op::Exec, "children"), Some(1.0));
    let faults = counted(Op::AnonWrite { kind: PageKind::Base }, "faults").expect("faults");
    assert!((1.0..1.05).contains(&faults), "{faults}");
    assert!(counted(Op::FileRead, "pages-per-fault").is_some());
    let zeros = of(&result, Op::ZeroRead { kind: PageKind::Base }, 1);
    assert_eq!(
        zeros.backing.as_ref().map(|backed| backed.got.total()),
        Some(Bytes(0)),
        "{zeros:?}"
    );
    assert_eq!(children(std::process::id()), [0; 0]);
}

fn a_stop_ends_the_workers() {
    let seen = Cell::new(0);
    let stop = || {
        seen.set(seen.get().max(children(std::process::id()).len()));
        seen.get() == 2
    };
    let crowd = spec(vec![Op::Fw], Duration::from_secs(60));
    let crowd = Spec {
        workers: vec![2],
        cpus: vec![cpus()[0]; 2],
        ..crowd
    };
    assert!(matches!(run(&crowd, &mut (), &stop), Err(Error::Interrupted)));
    assert_eq!(children(std::process::id()), [0; 0]);
}

/// Ends a measurement in the midst of a crowd, in that way, and looks for what is left.
fn left_by(end: fn(Pid) -> rustix::io::Result<()>) {
    let mut measuring = Command::new("/proc/self/exe")
        .arg(UNTIL_KILLED)
        .process_group(0)
        .spawn()
        .expect("itself again");
    let descendants = || {
        let workers = children(measuring.id());
        let crowd: Vec<u32> = workers.iter().flat_map(|&worker| children(worker)).collect();
        [workers, crowd].concat()
    };
    let mut seen = Vec::new();
    wait_until("a worker with its crowd", || {
        seen = descendants();
        seen.len() > 60
    });
    let pid = Pid::from_child(&measuring);
    end(pid).expect("ended");
    measuring.wait().expect("waited for");
    wait_until("a process is left", || seen.iter().all(|&pid| parent(pid).is_none()));
}

fn a_worker_serves_its_parent() {
    let job = r#"{"op":{"op":"segv"},"cpu":0,"other_cpu":0,"slice":{"secs":0,"nanos":0},"parent":1}"#;
    for told in [job, "{}", ""] {
        let (mut line, its_end) = UnixStream::pair().expect("a socket");
        let program = Program::this();
        let mut worker = Command::new(program.path)
            .args(program.arguments)
            .stdin(OwnedFd::from(its_end))
            .spawn()
            .expect("itself again");
        writeln!(line, "{told}").expect("told");
        let mut answer = String::new();
        line.read_to_string(&mut answer).expect("its end is closed");
        let code = worker.wait().expect("waited for").code();
        assert_eq!((code, answer.as_str()), (Some(2), ""), "{told}");
    }
}

fn no_worker() {
    let with = |path: &str| Spec {
        program: Program {
            path: path.into(),
            arguments: Vec::new(),
        },
        ..spec(vec![Op::Fw], Duration::from_millis(10))
    };
    let (result, _) = run(&with("/bin/false"), &mut (), &|| false).expect("points without numbers");
    let why = of(&result, Op::Fw, 1).not_measured.as_deref().expect("a reason");
    assert!(why.contains("ended too early"), "{why}");
    let error = run(&with("/nonexistent/program"), &mut (), &|| false).expect_err("no such program");
    assert!(matches!(error, Error::Start { .. }), "{error}");
}
