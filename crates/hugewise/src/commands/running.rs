//! Running programs and goals: the goal that a running program stands for, and the running programs that a goal is for.

mod alone;
mod own;

use anyhow::{Context, Error, anyhow, bail};
use host::{Snapshot, Source};
use model::setup::Program;
use model::{Bytes, Cause};
use plan::goal::{DatabaseGoal, Goal, Want};
use programs::config::mysql::Options;
use programs::{self, JvmKind, Server, Target, TargetError};

use crate::render::find::unseen::in_words;
use alone::Alone;
use draw::{joined, or_empty};
pub(super) use own::Own;

/// What a running program can stand for.
#[derive(Clone, Copy)]
enum Kind {
    Server(programs::Kind, &'static Server),
    Jvm,
    Vm,
}

/// The goal with all that is read from a running program; any other as it was typed.
pub(super) fn resolved(source: &Source, args: &str) -> anyhow::Result<String> {
    let (word, rest) = args.split_once(':').unwrap_or((args, ""));
    let Some(kind) = Kind::of_word(word) else {
        return Ok(args.to_owned());
    };
    let (first, more) = rest.split_once(',').unwrap_or((rest, ""));
    let running = |word: &str| of_target(source, kind, &only(source, kind, word)?);
    let goal = match (kind, first, first.strip_prefix("pid=")) {
        (_, _, Some(pid)) => running(pid)?,
        (Kind::Server(..), port, None) if port.starts_with("port=") => running(&format!("{word}:{port}"))?,
        (_, "", None) => running(word)?,
        (Kind::Server(_, server), path, None) => match server.in_directory {
            Some(_) if path.starts_with('/') && is_denied(source, path) => {
                bail!("{path} may not be read by this user (run it with sudo)")
            }
            Some(in_directory) if source.list(path).known().is_some() => {
                format!("{}:{}", kind.word(), in_directory(source, path).map_err(Error::msg)?)
            }
            _ => return Ok(with_real_file(source, args)),
        },
        (Kind::Vm, name, None) if !name.contains('=') && name.parse::<Bytes>().is_err() => running(name)?,
        _ => return Ok(args.to_owned()),
    };
    let goal = with_own(&goal, more);
    Ok(match kind {
        Kind::Server(..) => with_real_file(source, &goal),
        Kind::Jvm | Kind::Vm => goal,
    })
}

fn is_denied(source: &Source, path: &str) -> bool {
    let list = source.list(path);
    list.unread().is_some_and(|why| why.unread == Cause::Denied)
}

/// The process that a goal is read from, if it names one: `jvm:pid=7`.
pub(super) fn named_process(args: &str) -> Option<u32> {
    let (_, rest) = args.split_once(':')?;
    rest.split(',').next()?.strip_prefix("pid=")?.parse().ok()
}

/// A link is never written through: Debian's /etc/mysql/my.cnf is one.
fn with_real_file(source: &Source, goal: &str) -> String {
    let (kind, rest) = goal.split_once(':').unwrap_or((goal, ""));
    let end = rest.find(',').unwrap_or(rest.len());
    let (file, more) = rest.split_at(end);
    format!("{kind}:{}{more}", source.real(file))
}

/// What was typed behind the program wins over what was read from it.
fn with_own(goal: &str, more: &str) -> String {
    let (kind, read) = goal.split_once(':').unwrap_or((goal, ""));
    let key = |part: &str| part.split_once('=').map(|(key, _)| key.to_owned());
    let own: Vec<String> = more.split(',').filter_map(key).collect();
    let read = read
        .split(',')
        .filter(|part| key(part).is_none_or(|key| !own.contains(&key)));
    let args = more.split(',').filter(|part| !part.is_empty());
    format!("{kind}:{}", joined(read.chain(args), ","))
}

/// Why a word means no process, with those that may be it.
pub(super) fn with_unseen(why: TargetError) -> anyhow::Error {
    let unseen = match &why {
        TargetError::NotFound { unseen, .. } => in_words(unseen),
        _ => None,
    };
    match unseen {
        Some(unseen) => anyhow!("{why}; {unseen}"),
        None => why.into(),
    }
}

/// The one program that the word means.
fn only(source: &Source, kind: Kind, word: &str) -> anyhow::Result<Target> {
    let mut found = programs::targets(source, &Snapshot::take(source), word)
        .map_err(|why| anyhow!("{} (write --for {})", with_unseen(why), kind.written()))?;
    match found.len() {
        1 => Ok(found.remove(0)),
        count => {
            let all = joined(found.iter().map(described), "; ");
            let (kind, first) = (kind.word(), found[0].main.pid());
            bail!("`{word}` means {count} programs: {all} (name one, such as --for {kind}:pid={first})")
        }
    }
}

/// What tells programs of one kind apart: `postgres 4711 (/srv/pg/data, port 5433, 1.2G resident)`.
fn described(target: &Target) -> String {
    let main = &target.main;
    let guest = target.vm.as_ref().and_then(|vm| vm.name.clone());
    let place = guest
        .or_else(|| target.configuration())
        .or_else(|| target.directory.clone());
    let port = target.listens.as_ref().and_then(|listens| listens.port);
    let port = port.map(|port| format!("port {port}"));
    let resident = main.pages.resident.known().map(|bytes| format!("{bytes} resident"));
    let facts = joined(place.into_iter().chain(port).chain(resident), ", ");
    format!("{} {} ({facts})", main.pages.name, main.pid())
}

/// The running programs that goals are for; `None` if they are for no program that can be looked up.
pub(super) fn programs(source: &Source, goals: &[String]) -> Option<Vec<Program>> {
    let goals = goals.iter().filter_map(|goal| goal.parse::<Goal>().ok());
    let targets: Vec<Vec<Target>> = goals.filter_map(|goal| targets(source, &goal.want)).collect();
    let programs = targets.iter().flatten();
    let mut programs: Vec<Program> = programs.map(|target| program(source, target)).collect();
    programs.sort_by_key(|program| program.pid);
    programs.dedup_by_key(|program| program.pid);
    (!targets.is_empty()).then_some(programs)
}

/// What runs of one goal; `None` if it is for no program that can be looked up.
fn targets(source: &Source, want: &Want) -> Option<Vec<Target>> {
    let snapshot = Snapshot::take(source);
    let found = |word: &str, fits: &dyn Fn(&Target) -> bool| {
        let targets = programs::targets(source, &snapshot, word).unwrap_or_default();
        targets.into_iter().filter(|target| fits(target)).collect()
    };
    let is_java = |target: &Target, heap: Bytes| {
        let asked = target.main.jvm().ok().flatten().and_then(|jvm| jvm.heap_max);
        asked == Some(heap) || doctor::explain::largest_heap(&target.main) == Some(heap)
    };
    let reads = |target: &Target, file: &str| target.configuration().is_some_and(|own| source.real(&own) == file);
    Some(match want {
        Want::Database(goal) => found(goal.kind.word(), &|target| reads(target, &goal.file)),
        Want::Jvm(goal) => found("java", &|target| match &goal.service {
            Some(service) => unit(target).as_ref() == Some(service),
            None => is_java(target, goal.heap),
        }),
        Want::Vm(goal) => found(&goal.name, &|target| target.vm.is_some()),
        Want::Redis => found("redis", &|_| true),
        Want::Placement(goal) => found(&goal.service, &|target| unit(target).as_ref() == Some(&goal.service)),
        Want::Pool(_) | Want::Thp(_) | Want::Oracle(_) | Want::Kubernetes(_) => return None,
    })
}

/// Is the server of a goal MariaDB? By its names, by the sections of its option file, by the program that runs with that file, or
/// as the one that is installed.
pub(super) fn is_mariadb(source: &Source, goal: &DatabaseGoal) -> bool {
    let is_named = |name: &str| name.contains("mariadb");
    let has_sections = || Options::read(source, "", &goal.file).is_ok_and(|options| options.names_mariadb);
    let running = || targets(source, &Want::Database(goal.clone()));
    let runs = || Some(running()?.first()?.main.is_mariadb());
    let is_installed = || source.real("/usr/sbin/mysqld").ends_with("/mariadbd");
    let is_one = || {
        goal.is_mariadb
            || is_named(&goal.file)
            || goal.service.as_deref().is_some_and(is_named)
            || has_sections()
            || runs().unwrap_or_else(is_installed)
    };
    goal.kind == programs::Kind::Mysql && is_one()
}

fn unit(target: &Target) -> Option<String> {
    target.main.cgroup().ok().flatten()?.service.clone()
}

fn program(source: &Source, target: &Target) -> Program {
    let age = programs::age(source, &target.main);
    let started = age.and_then(|age| jiff::Timestamp::now().checked_sub(age).ok());
    Program {
        pid: target.main.pid(),
        name: target.main.pages.name.clone(),
        unit: unit(target),
        started: started.map(|moment| moment.to_string()),
        since: None,
        backing: target.taken(),
    }
}

fn of_target(source: &Source, kind: Kind, target: &Target) -> anyhow::Result<String> {
    let pid = target.main.pid();
    let none = |what: &str| anyhow!("{what} of process {pid} is not known (write --for {})", kind.written());
    let goal = match kind {
        Kind::Server(_, server) => {
            let file = target.configuration();
            must_be_of_the_host(source, target, server, file.as_deref())?;
            let file = file.ok_or_else(|| none("the configuration file"))?;
            let arguments = target.main.arguments.known().map_or(&[][..], Vec::as_slice);
            format!("{}:{file}{}", kind.word(), (server.typed)(arguments))
        }
        Kind::Jvm => jvm(source, target).ok_or_else(|| none("the heap"))?,
        Kind::Vm => vm(source, target)?,
    };
    // A scope or a slice cannot be restarted: a service can.
    Ok(match (unit(target), kind) {
        (_, Kind::Vm) | (None, Kind::Jvm) => goal,
        (Some(service), _) => format!("{goal},service={service}"),
        (None, Kind::Server(..)) => format!("{goal},service=none"),
    })
}

/// A file in a container has the path of another file here, which a plan must not change.
fn must_be_of_the_host(source: &Source, target: &Target, server: &Server, file: Option<&str>) -> anyhow::Result<()> {
    if !has_own_file(source, target, file) {
        return Ok(());
    }
    let setting = server.on;
    bail!(
        "process {} runs in a container, which has a configuration file of its own: plan the pages alone \
         ({}), set `{setting}` in the container, and restart it",
        target.main.pid(),
        Alone::of_server(source, target, file)
    )
}

/// Is the configuration file that of a container? A capture keeps parts of files, so there the control group alone decides.
fn has_own_file(source: &Source, target: &Target, file: Option<&str>) -> bool {
    let groups = target.main.cgroup().ok().flatten();
    let is_other = |file: &str| {
        let inside = source.bytes(&target.main.file(&format!("root{file}")));
        let inside = inside.known().filter(|_| source.is_live());
        inside.is_some_and(|inside| source.bytes(file).known() != Some(inside))
    };
    groups.is_some_and(|groups| groups.is_container) || file.is_some_and(is_other)
}

/// The goal that a plan takes instead of a server whose configuration file it must not change, where the number of its pages
/// is known.
pub(super) fn instead(source: &Source, target: &Target) -> Option<String> {
    target.main.kind.known()?.and_then(programs::Kind::server)?;
    let file = target.configuration();
    let is_own = has_own_file(source, target, file.as_deref());
    is_own
        .then(|| Alone::of_server(source, target, file.as_deref()))?
        .goal()
}

fn jvm(source: &Source, target: &Target) -> Option<String> {
    let jvm = target.main.jvm().ok().flatten()?;
    let heap = doctor::explain::largest_heap(&target.main)?;
    // It takes the default size for one that does not exist, and before JDK 12 for any.
    let page = jvm
        .page_size
        .filter(|page| !jvm.takes_default_alone() && Snapshot::take(source).pool(*page).is_some());
    let more = [
        (jvm.kind == JvmKind::OpenJ9).then(|| ",kind=openj9".to_owned()),
        jvm.collector.map(|collector| format!(",collector={collector}")),
        jvm.version.map(|version| format!(",jdk={version}")),
        jvm.code_cache.map(|size| format!(",code-cache={}", size.exact())),
        page.map(|size| format!(",pages={}", size.exact())),
    ];
    let more: String = more.into_iter().flatten().collect();
    Some(format!("jvm:heap={}{more}", heap.exact()))
}

fn vm(source: &Source, target: &Target) -> anyhow::Result<String> {
    let pid = target.main.pid();
    let vm = target.vm.as_ref();
    let vm = vm.with_context(|| format!("process {pid} runs no virtual machine"))?;
    let hypervisor = match vm.program.as_str() {
        "cloud-hypervisor" => "cloud-hypervisor",
        _ if is_of_libvirt(target) => "libvirt",
        "qemu" => "qemu",
        other => bail!(
            "process {pid} is a virtual machine of `{other}`, whose options are not known here: write --for \
             vm:SIZE,hypervisor=NAME (libvirt, qemu, cloud-hypervisor or esx), or plan its pages alone ({})",
            Alone::of_vm(source, vm)
        ),
    };
    let memory = vm.configured.known().map(|configured| configured.total());
    let Some(memory) = memory.filter(|memory| memory.0 > 0) else {
        let written = Kind::Vm.written();
        bail!("the memory of the guest of process {pid} is not known (write --for {written})");
    };
    let name = or_empty(vm.name.as_ref().map(|name| format!(",name={name}")));
    Ok(format!("vm:{},hypervisor={hypervisor}{name}", memory.exact()))
}

/// libvirt names its guests `guest=NAME,debug-threads=on`.
fn is_of_libvirt(target: &Target) -> bool {
    let arguments = target.main.arguments.known();
    arguments.is_some_and(|all| all.iter().any(|argument| argument.starts_with("guest=")))
}

impl Kind {
    fn of_word(word: &str) -> Option<Self> {
        match word {
            "jvm" | "java" => Some(Self::Jvm),
            "vm" => Some(Self::Vm),
            word => programs::Kind::of_server(word).map(|(kind, server)| Self::Server(kind, server)),
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Server(kind, _) => kind.word(),
            Self::Jvm => "jvm",
            Self::Vm => "vm",
        }
    }

    /// The goal without a running program.
    fn written(self) -> String {
        let first = match self {
            Self::Server(..) => "FILE",
            Self::Jvm => "heap=SIZE",
            Self::Vm => "SIZE",
        };
        format!("{}:{first}", self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::with_own;

    #[test]
    fn what_is_typed_wins_over_what_is_read() {
        let read = "jvm:heap=320M,collector=zgc,jdk=17";
        assert_eq!(with_own(read, ""), read);
        assert_eq!(
            with_own(read, "heap=4G,user=app"),
            "jvm:collector=zgc,jdk=17,heap=4G,user=app"
        );
        let server = with_own("mysql:/etc/my.cnf,service=none", "service=mysqld.service");
        assert_eq!(server, "mysql:/etc/my.cnf,service=mysqld.service");
    }
}
