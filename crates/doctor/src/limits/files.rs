//! Limits as files of services, pam_limits and sysctl set them.

use model::Bytes;
use model::findings::Severity;
use programs::config::given::{Container, FileKind, Locked, Run, Service};
use programs::config::{LimitLine, Setting, memlock_for};
use programs::{Evidence, Limit, Lock, Locks};

use super::guests::{not_raised, unknown_device};
use super::segments;
use crate::facts::running;
use crate::links;
use crate::rule::{Answer, Case};

pub(super) fn not_for_services(evidence: &Evidence) -> Answer {
    if !evidence.files.has(FileKind::Unit) {
        return Err("no file of that kind was given: unit".into());
    }
    let locked = evidence.files.locked();
    let cases = evidence.files.services.iter().filter_map(|service| {
        let user = service.user.as_ref()?;
        let (promised, line) = memlock_for(&evidence.files.limits, &user.value, &[])?;
        let set = service.unit.limit();
        if set.is_some_and(|(_, (limit, _))| *limit >= promised) {
            return None;
        }
        let has = set.map_or_else(|| DEFAULT.to_owned(), |(_, (limit, _))| limit.to_string());
        // A line for all users is not meant for each service, only for those that lock memory.
        let is_meant = line.domain != "*" || locked.iter().any(|(own, _)| own.name == service.name);
        let case = unlike_limits_conf(&service.name, &has, promised, line).info_if(!is_meant);
        let case = case.seen(&user.place, "User", &user.value);
        let (name, place) = set.map_or(("LimitMEMLOCK", &service.path), |(name, (_, place))| (name, place));
        let case = case.seen(place, name, has);
        let case = case.unlimited(&format!("systemctl edit {}", service.name));
        let note = "a number in LimitMEMLOCK= counts bytes, and in limits.conf KiB";
        Some(case.fix_if(set.is_some(), note))
    });
    Ok(cases.collect())
}

/// The limit of services that set none: the kernel's (Linux 5.16 raised it), and 8M from systemd 251 on (systemd/systemd#22701).
const DEFAULT: &str = "systemd's default (64K, or 8M with Linux 5.16 or systemd 251 and later)";

/// A service that may lock less than limits.conf sets for its user.
pub(super) fn unlike_limits_conf(who: &str, has: &str, promised: Limit, line: &LimitLine) -> Case {
    Case::sure(format!(
        "the memlock limit of {who} is {has}, and limits.conf sets {promised}: that file applies to logins, not to services"
    ))
    .seen_limit(line)
}

impl Case {
    /// A service gets no limit by an edit of its unit: the section and the setting, a line each as the file has them.
    pub(super) fn unlimited(self, edit: &str) -> Self {
        self.fix(format!("{edit}, and there these two lines:"))
            .fix("[Service]")
            .fix("LimitMEMLOCK=infinity")
    }

    /// With a line of limits.conf.
    pub(super) fn seen_limit(self, line: &LimitLine) -> Self {
        let field = format!("{} {} memlock", line.domain, line.kind);
        self.seen(&line.place, field, &line.value)
    }
}

/// Limits of files that are too low, or above what a user may have.
pub(super) fn too_low(evidence: &Evidence) -> Answer {
    let units = evidence
        .files
        .locked()
        .into_iter()
        .filter_map(|(service, locked)| in_unit(service, &locked));
    let guests = evidence.files.guests.iter();
    let guests = guests.filter_map(|guest| unknown_device(evidence, guest).or_else(|| not_raised(evidence, guest)));
    let instances = segments::instances(evidence);
    let others = containers(evidence).into_iter().chain(guests);
    Ok(units.chain(others).chain(instances).collect())
}

/// A unit whose limit is below what its program locks. A log that is not locked costs little: there only a limit that is set counts.
fn in_unit(service: &Service, locked: &Locked) -> Option<Case> {
    let need = locked.bytes;
    let set = service.unit.limit();
    let (limit, bytes) = match set {
        Some((_, (Limit::Bytes(bytes), _))) if is_low(*bytes, need) => (Bytes(*bytes).to_string(), *bytes),
        None if locked.what != Locks::Log => ("not set".to_owned(), 0),
        _ => return None,
    };
    let severity = match locked.what {
        Locks::Guest => Severity::Error,
        _ => Severity::Warning,
    };
    let amount = need.map_or_else(|| "memory".to_owned(), |need| format!("{need} or more"));
    let case = Case::likely(format!(
        "{} locks {amount}, and {}= is {limit} ({}: {})",
        service.name,
        set.map_or("LimitMEMLOCK", |(name, _)| name),
        what(locked.what),
        unlocked(locked.what)
    ))
    .severity(severity)
    .link(Some(links::UNITS))
    .seen_line(&locked.setting)
    .with(set, |case, (name, (_, place))| {
        case.seen(place, format!("{name}, in bytes"), bytes)
    })
    .when(set.is_none(), |case| case.seen(&service.path, "LimitMEMLOCK", DEFAULT));
    // No value with a unit: about what is locked, and no multiple of a KiB. QEMU locks more than its guest's memory.
    let meant = bytes.saturating_mul(1024);
    let is_about = |need: Bytes| meant >= need.0 && meant / 2 <= need.0;
    let is_in_kib = locked.what == Locks::Log && !bytes.is_multiple_of(1024) && need.is_some_and(is_about);
    Some(case.unlimited(&format!("systemctl edit {}", service.name)).fix_if(
        is_in_kib,
        format!("or LimitMEMLOCK={bytes}K: a number alone counts bytes there, and KiB for `ulimit -l`"),
    ))
}

/// Memory that a program locks of which the amount is not known is more than this.
const LEAST: Bytes = Bytes::mib(64);

/// A program locks more than what is known of its need.
fn is_low(limit: u64, need: Option<Bytes>) -> bool {
    limit <= need.unwrap_or(LEAST).0
}

/// What is locked, in words.
pub(super) fn what(locks: Locks) -> &'static str {
    match locks {
        Locks::Guest => "its guest's memory, for a device of the host or by mem-lock",
        Locks::Log => "the log of varnishd",
        Locks::Heap => "all of its memory, with the heap",
        Locks::Model => "the weights of its model",
        Locks::All => "all of its memory",
    }
}

/// What happens where it may not be locked.
fn unlocked(locks: Locks) -> &'static str {
    match locks {
        Locks::Guest => "the guest does not start",
        Locks::Log | Locks::All => "it stays unlocked, and can be swapped",
        Locks::Heap => {
            "a node of a cluster does not start (`memory locking requested ... but memory is not locked`), one alone stays unlocked"
        }
        Locks::Model => "they stay unlocked, and can be dropped or swapped",
    }
}

/// Containers whose limit is above that of their user, or too low for a program that locks its memory.
fn containers(evidence: &Evidence) -> Vec<Case> {
    let runs = evidence.files.runs.iter();
    let cases = runs.filter_map(|run| above_user(evidence, run).or_else(|| in_run(evidence, run)));
    let pods = evidence.files.containers().filter_map(in_pod);
    cases.chain(pods).collect()
}

/// A container with a limit that is too low. One without any has that of its run-time, which is no limit for what is to lock memory.
fn in_run(evidence: &Evidence, run: &Run) -> Option<Case> {
    let lock = evidence.files.lock_of(run);
    let Reason { why, least, outcome } = Reason::of(lock.as_ref(), run.heap(), &run.words, &run.environment)?;
    // Podman reads no file of Docker.
    let by_docker = || evidence.files.memlock_of_docker.as_ref();
    let is_dockers = !run.is_quadlet && !run.by_podman;
    let limit = run.memlock.as_ref().or_else(|| by_docker().filter(|_| is_dockers));
    let bytes = match limit {
        Some((Limit::Unlimited, _)) => return None,
        Some((Limit::Bytes(bytes), _)) => *bytes,
        None if lock.is_none() || run.is_partial || is_unlimited(evidence, OF_CONTAINERS) => return None,
        None if matches!(evidence.files.default_memlock, Some((Limit::Unlimited, _))) => return None,
        None => 0,
    };
    if run.may_lock || least.is_some_and(|least| !is_low(bytes, Some(least))) {
        return None;
    }
    let may = match limit {
        Some((limit, _)) => format!("may lock {limit}"),
        None => "sets no memlock limit, and gets that of its run-time (64K or 8M by default)".to_owned(),
    };
    let link = match run.is_quadlet {
        true => links::QUADLET,
        false => links::DOCKER_RUN,
    };
    let case = Case::likely(format!("{} {may}, and {why}: {outcome}", run.name))
        .severity(Severity::Warning)
        .link(Some(link));
    let case = match (limit, &lock) {
        (Some((_, place)), _) => case.seen(place, "memlock, in bytes", bytes),
        (None, Some(lock)) => case.seen_line(&lock.setting),
        (None, None) => case,
    };
    Some(raised(
        case.seen(&run.place, "CAP_IPC_LOCK", "not added"),
        evidence,
        run,
    ))
}

/// With how its limit is raised.
fn raised(case: Case, evidence: &Evidence, run: &Run) -> Case {
    if run.is_quadlet {
        return case.fix("Ulimit=memlock=-1:-1 below [Container], then: systemctl daemon-reload, and restart it");
    }
    let has_limit = run.memlock.is_some();
    case.fix("compose: ulimits: {memlock: -1} (docker stack deploy: Docker 20.10 and later); docker run: --ulimit memlock=-1 (a number counts bytes, where limits.conf counts KiB)")
        .fix_if(
            !has_limit,
            "or for all containers of Docker, in /etc/docker/daemon.json: \"default-ulimits\": {\"memlock\": {\"Name\": \"memlock\", \"Hard\": -1, \"Soft\": -1}}, then: systemctl restart docker",
        )
        .fix_if(
            !has_limit && is_unlimited(evidence, &["docker.service"]),
            "LimitMEMLOCK= of docker.service is the limit of dockerd: containers are started by containerd, and do not get it",
        )
}

/// Run-times of pods: what they name control groups by, and their processes. Docker runs containerd too, and comes before it.
const RUN_TIMES: [(&str, &str); 3] = [
    ("docker-", "dockerd"),
    ("crio-", "crio"),
    ("cri-containerd-", "containerd"),
];

/// Where the run-time of a pod has the limit of its containers: by its control group, else by what runs.
pub(super) fn of_run_time(evidence: &Evidence, group: &str) -> String {
    let runs = |name: &str| running(evidence).any(|program| program.pages.name == name);
    let by_group = RUN_TIMES.iter().find(|(prefix, _)| group.contains(*prefix));
    match by_group.or_else(|| RUN_TIMES.iter().find(|(_, name)| runs(name))) {
        None => "LimitMEMLOCK of containerd.service or crio.service".to_owned(),
        Some((_, "dockerd")) => "default-ulimits in /etc/docker/daemon.json, and restart docker".to_owned(),
        Some((_, name)) => format!("LimitMEMLOCK=infinity in a drop-in of {name}.service, and restart {name}"),
    }
}

/// Services whose limit containers get.
const OF_CONTAINERS: &[&str] = &["containerd.service", "crio.service"];

/// Has one of these services no limit, by the files that were given?
pub(super) fn is_unlimited(evidence: &Evidence, names: &[&str]) -> bool {
    let mut services = evidence.files.services.iter();
    services.any(|service| {
        let limit = service.unit.limit().map(|(_, (limit, _))| *limit);
        names.contains(&service.name.as_str()) && limit == Some(Limit::Unlimited)
    })
}

/// Kubernetes has no setting for it: containers have the limit of their run-time.
fn in_pod(container: &Container) -> Option<Case> {
    let lock = Lock::asked(&container.place, &container.words, &container.environment);
    let heap = container.java.as_ref().and_then(|java| java.jvm.heap_max);
    let Reason { why, least, outcome } = Reason::of(lock.as_ref(), heap, &container.words, &container.environment)?;
    let raises = container.words.iter().any(|word| word == "ulimit");
    let hook = container
        .hook
        .as_ref()
        .filter(|_| (least.is_none() || lock.is_some()) && !raises)?;
    Some(
        Case::likely(format!(
            "{}: {why}, and `ulimit` in a hook changes the limit of the hook's shell alone: {outcome}",
            container.name
        ))
        .severity(Severity::Warning)
        .seen_line(hook)
        .unlimited("on the nodes: systemctl edit containerd (or crio, docker)")
        .fix("restart that run-time and start the pod again; added capabilities reach programs of root alone")
        .fix("or let it not lock its memory: a kubelet runs without swap by default"),
    )
}

/// A container of a user's own Podman gets no limit above the hard one of its user. Which user that is no file shows: the highest
/// of limits.conf counts. A user without a line has the system's default there, which may be above it.
fn above_user(evidence: &Evidence, run: &Run) -> Option<Case> {
    let (limit, place) = run.memlock.as_ref().filter(|_| run.may_be_rootless)?;
    let own = evidence.config.limits.known().into_iter().flatten();
    let lines = own.chain(&evidence.files.limits);
    let lines = lines.filter(|line| line.kind != "soft" && line.domain != "root");
    let hard = lines.filter_map(|line| Some((line.memlock()?, line)));
    let (most, line) = hard.max_by_key(|(most, _)| *most)?;
    let is_of_all = line.domain == "*";
    if *limit <= most || !(is_of_all || *limit == Limit::Unlimited) {
        return None;
    }
    let of = match is_of_all {
        true => format!("the user's hard limit ({most})"),
        false => format!("every hard limit of limits.conf (at most {most}, for {})", line.domain),
    };
    let case = Case::likely(format!(
        "{} does not start where a user without root runs it: its memlock limit ({limit}) is above {of}",
        run.name
    ));
    Some(
        case.severity(Severity::Warning)
            .link(Some(links::PODMAN_RUN))
            .info_if(!is_of_all)
            .seen(place, "memlock", limit)
            .seen_limit(line)
            .fix("give the user that runs it a line of its own: `USER hard memlock unlimited`, and log in again")
            .fix("or leave the option out (--ulimit host): the container has the limits of its user"),
    )
}

/// Why a program locks memory, how much it locks at least if that is known, and what happens where it may not.
struct Reason {
    why: String,
    least: Option<Bytes>,
    outcome: &'static str,
}

impl Reason {
    /// By a setting of its own, or by another way.
    fn of(lock: Option<&Lock>, heap: Option<Bytes>, words: &[String], environment: &[Setting]) -> Option<Self> {
        let Some(lock) = lock else {
            return other(environment, words);
        };
        let heap = heap.filter(|_| lock.what == Locks::Heap);
        Some(Self {
            why: format!("{} locks {}", lock.setting.name, what(lock.what)),
            least: Some(heap.or_else(|| lock.least(words)).unwrap_or(LEAST)),
            outcome: unlocked(lock.what),
        })
    }
}

/// For its huge pages, or for input and output.
fn other(environment: &[Setting], words: &[String]) -> Option<Reason> {
    let mut variables = environment.iter();
    if variables.any(|set| set.name == "HUGETLB_SHM" && set.value.trim_matches('"') == "yes") {
        return Some(Reason {
            why: "HUGETLB_SHM=yes makes System V segments of huge pages".to_owned(),
            least: None,
            outcome: "before Linux 5.16 they count as locked memory; from there on they need CAP_IPC_LOCK (cap_add: [IPC_LOCK])",
        });
    }
    let is_mariadb = words.first().is_some_and(|word| word.ends_with("mariadbd"));
    is_mariadb.then(|| Reason {
        why: "MariaDB 10.6 and later lock the rings of io_uring, on kernels before 5.12 out of the limit of all processes of the user"
            .to_owned(),
        least: Some(Bytes::mib(1)),
        outcome: "`io_uring_queue_init() failed with ENOMEM`; its huge pages need no such limit",
    })
}
