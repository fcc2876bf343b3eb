//! Containers as a compose file, a `docker run` command or a Quadlet starts them: what runs in them, and what they may lock.

use std::iter::Peekable;

use model::{Bytes, Cause, Unread};

use super::garbled::empty;
use super::starts::{Start, program};
use super::yaml::{self, Node, What};
use super::{namespaces, quadlet, shell};
use crate::config::Setting;
use crate::jvm::size_of;
use crate::locks::NODE_FILES;
use crate::{Kind, Limit, image_names};

/// A container of Docker, Podman or their kin, which takes pages from the pools of the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// `FILE:LINE`.
    pub place: String,
    /// Its service, `--name`, or its image.
    pub name: String,
    pub image: String,
    /// The program that its image is known to hold.
    pub kind: Option<Kind>,
    /// `ulimits: memlock:` or `--ulimit memlock=`, in bytes, with its place.
    pub memlock: Option<(Limit, String)>,
    /// Is a part of its settings written elsewhere (`extends`, an alias)?
    pub is_partial: bool,
    /// Has it CAP_IPC_LOCK, by its name or as one of all?
    pub may_lock: bool,
    /// Is the file of a node of Elasticsearch or OpenSearch mounted in it?
    pub(super) has_node_file: bool,
    /// Its limit of memory.
    pub(super) memory: Option<Setting>,
    /// Is it a unit of systemd?
    pub is_quadlet: bool,
    /// Does a command of Podman start it?
    pub by_podman: bool,
    /// Does Podman start it without sudo, so that a user without root may own it?
    pub may_be_rootless: bool,
    pub environment: Vec<Setting>,
    /// What it starts, the program first.
    pub words: Vec<String>,
    /// Settings with which it does not start.
    pub(super) refused: Vec<Unread>,
}

impl Run {
    pub(super) fn start(&self) -> Start {
        let memory = self.memory.as_ref();
        Start {
            place: self.place.clone(),
            words: self.words.clone(),
            environment: self.environment.clone(),
            image: self.image.clone(),
            memory: memory.and_then(|set| Some((size_of(&set.value)?, set.clone()))),
            ..Start::default()
        }
    }

    /// The largest heap of the JVM in it, if its options are known.
    pub fn heap(&self) -> Option<Bytes> {
        self.start().java()?.jvm.heap_max
    }

    /// An image starts its own program where it is given options alone.
    pub(super) fn of_image(mut self, image: &str) -> Self {
        image.clone_into(&mut self.image);
        self.kind = image_names::program(image);
        let has_program = self.words.first().is_some_and(|word| !word.starts_with('-'));
        if let Some(program) = image_names::command(image).filter(|_| !has_program) {
            self.words.insert(0, program.to_owned());
        }
        self
    }

    fn allow(&mut self, capability: &str) {
        let name = capability.to_ascii_uppercase();
        self.may_lock |= matches!(name.trim_start_matches("CAP_"), "IPC_LOCK" | "ALL");
    }

    fn limit(&mut self, place: &str, written: &str) -> Result<(), Unread> {
        let garbled = || Setting::new(place, "memlock", written).garbled("bytes that it may lock, or -1");
        let limit = match written {
            "-1" | "unlimited" | "infinity" => Limit::Unlimited,
            bytes => Limit::Bytes(bytes.parse().map_err(|_| garbled())?),
        };
        self.memlock = Some((limit, place.to_owned()));
        Ok(())
    }

    /// Takes options of `run` up to a word that is none, which is the answer: the image.
    pub(super) fn options<'w>(
        &mut self,
        place: &str,
        words: &mut Peekable<impl Iterator<Item = &'w str>>,
    ) -> Result<Option<&'w str>, Unread> {
        while let Some(word) = words.next() {
            if !word.starts_with('-') {
                return Ok(Some(word));
            }
            if word == "--" {
                return Ok(words.next());
            }
            let (name, attached) = named(word);
            let behind = || words.next_if(|next| !is_option(next));
            let value = attached.or_else(behind).unwrap_or_default();
            self.option(place, &name, value)?;
        }
        Ok(None)
    }

    /// An option of `run`.
    pub(super) fn option(&mut self, place: &str, name: &str, value: &str) -> Result<(), Unread> {
        let place = place.to_owned();
        match name {
            "--privileged" => self.may_lock |= !is_off(value),
            "-m" | "--memory" => self.memory = Some(Setting::new(place, "memory", value)),
            "--name" => value.clone_into(&mut self.name),
            "--cap-add" => self.allow(value),
            "--device" => self.device(place, value),
            "-v" | "--volume" | "--mount" => self.has_node_file |= names_node_file(value),
            "-e" | "--env" => {
                let (name, value) = value.split_once('=').unwrap_or((value, ""));
                self.set(&place, name, value);
            }
            "--sysctl" => {
                let name = value.split('=').next().unwrap_or_default();
                self.refused.extend(namespaces::refused(place, name));
            }
            "--ulimit" => {
                if let Some(limit) = value.strip_prefix("memlock=") {
                    self.limit(&place, limit.split(':').next().unwrap_or_default())?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// `/dev/hugepages` among the devices: a hugetlbfs is mounted there.
    fn device(&mut self, place: String, written: &str) {
        let of_host = written.split(':').next().unwrap_or_default();
        if of_host.contains("hugepages") {
            let why = format!(
                "{written}: the container does not start, as a hugetlbfs is a mount and no device. Leave it out. \
                 For System V segments (Oracle) use --ulimit memlock=-1 or --cap-add=IPC_LOCK instead (ulimits or cap_add in a compose file). \
                 A program that maps files there needs a volume: -v /dev/hugepages:/dev/hugepages"
            );
            self.refused.push(Unread::new(Cause::Garbled, place, why));
        }
    }

    fn set(&mut self, place: &str, name: &str, value: &str) {
        self.environment.push(Setting::new(place, name, value));
    }
}

/// Does a command line start a container?
pub(super) fn is_runtime(program: &str) -> bool {
    matches!(program, "docker" | "podman" | "nerdctl")
}

/// Does a text begin with commands of which one starts a container? Of one that is not closed that is not known.
pub(super) fn is_command(text: &str) -> bool {
    shell::starts(text, is_runtime) && shell::all_words("", text).map_or(true, |words| started(&words).is_some())
}

/// Options of sudo, env, systemd-run and their kin whose value is a name, so that a `docker` behind them is none of a program.
const WITH_NAME: [&str; 8] = ["-u", "-g", "-U", "--user", "--group", "--uid", "--gid", "--unit"];

/// The words from `docker` on, and those behind its `run` or `create`. Its other commands start no container that they describe.
pub(super) fn started(words: &[String]) -> Option<(&[String], &[String])> {
    (0..words.len()).find_map(|at| {
        let (before, own) = words.split_at(at);
        let is_one = own.first().is_some_and(|word| is_runtime(program(word)));
        let is_value = before.last().is_some_and(|word| WITH_NAME.contains(&word.as_str()));
        (is_one && !is_value).then(|| Some((own, behind_run(&own[1..])?)))?
    })
}

/// Options come before the command. Others than those without a value have theirs in the next word, unless that is one of these commands.
fn behind_run(words: &[String]) -> Option<&[String]> {
    const ALONE: [&str; 14] = [
        "-D",
        "--debug",
        "--debug-full",
        "--experimental",
        "--insecure-registry",
        "--kube-hide-dupe",
        "--noout",
        "-r",
        "--remote",
        "--syslog",
        "--tls",
        "--tlsverify",
        "--trace",
        "--transient-store",
    ];
    let (first, rest) = words.split_first()?;
    let is_next = || matches!(rest.first().map(String::as_str), Some("run" | "create" | "container"));
    match first.as_str() {
        "run" | "create" => Some(rest),
        "container" => behind_run(rest),
        option if option.starts_with('$') || option.contains('=') || ALONE.contains(&option) => behind_run(rest),
        option if option.starts_with('-') => behind_run(if is_next() { rest } else { rest.get(1..)? }),
        _ => None,
    }
}

pub(super) fn parse(path: &str, text: &str) -> Result<Vec<Run>, Unread> {
    if quadlet::is_quadlet(text) {
        return quadlet::parse(path, text).map(|run| vec![run]);
    }
    if is_command(text) {
        return command(path, text).map(|run| vec![run]);
    }
    let mut runs = Vec::new();
    for document in yaml::documents(path, text)? {
        for (name, service) in document.get("services").map_or(&[][..], Node::entries) {
            runs.push(of_service(name, service)?);
        }
    }
    match runs.is_empty() {
        true => Err(empty(path, "no service of a compose file and no `docker run` is in it")),
        false => Ok(runs),
    }
}

fn of_service(name: &str, service: &Node) -> Result<Run, Unread> {
    let mut run = Run {
        place: service.place(),
        name: name.to_owned(),
        ..Run::default()
    };
    run.may_lock = service.text_of("privileged") == Some("true");
    let limits = service.get("ulimits");
    let is_elsewhere = limits.is_some_and(|node| node.what == What::Alias);
    run.is_partial = is_elsewhere || ["<<", "extends"].iter().any(|key| service.get(key).is_some());
    let of_deploy = || service.at(&["deploy", "resources", "limits", "memory"]);
    let memory = service.get("mem_limit").or_else(of_deploy);
    run.memory = memory.map(|node| Setting::new(node.place(), "memory", node.text().unwrap_or_default()));
    for capability in service.items_of("cap_add") {
        run.allow(capability.text().unwrap_or_default());
    }
    if let Some(memlock) = limits.and_then(|node| node.get("memlock")) {
        let written = memlock
            .text()
            .or_else(|| memlock.get("soft")?.text())
            .unwrap_or_default();
        run.limit(&memlock.place(), written)?;
    }
    for (name, value, node) in pairs(service.get("environment")) {
        run.set(&node.place(), name, value);
    }
    let volumes = service.items_of("volumes").iter();
    let mut volumes = volumes.filter_map(|node| node.text().or_else(|| node.text_of("target")));
    run.has_node_file = volumes.any(names_node_file);
    for device in service.items_of("devices") {
        run.device(device.place(), device.text().unwrap_or_default());
    }
    let sysctls = pairs(service.get("sysctls")).into_iter();
    let refused = sysctls.filter_map(|(name, _, node)| namespaces::refused(node.place(), name));
    run.refused.extend(refused);
    for key in ["entrypoint", "command"] {
        let Some(node) = service.get(key) else { continue };
        let words = node.items().iter().filter_map(Node::text).map(str::to_owned);
        run.words.extend(words);
        run.words.extend(node.text().and_then(shlex::split).unwrap_or_default());
    }
    Ok(run.of_image(service.text_of("image").unwrap_or_default()))
}

/// `./es.yml:/usr/share/elasticsearch/config/elasticsearch.yml:ro`, or what of it is in the container.
fn names_node_file(volume: &str) -> bool {
    NODE_FILES.iter().any(|name| volume.contains(name))
}

/// Names and values, of a map or of a list.
fn pairs(node: Option<&Node>) -> Vec<(&str, &str, &Node)> {
    let entries = node.map_or(&[][..], Node::entries).iter();
    let of_map = entries.map(|(name, value)| (name.as_str(), value.text().unwrap_or_default(), value));
    let of_list = node.map_or(&[][..], Node::items).iter().filter_map(|item| {
        let (name, value) = item.text()?.split_once('=')?;
        Some((name, value, item))
    });
    of_map.chain(of_list).collect()
}

/// The name of an option, and its value where it is not the next word. Short ones without a value may come before another in one word, and
/// the value of a short one may follow it there (spf13/pflag).
fn named(word: &str) -> (String, Option<&str>) {
    if word.starts_with("--") {
        return match word.split_once('=') {
            Some((name, value)) => (name.to_owned(), Some(value)),
            None => (word.to_owned(), SWITCHES.contains(&word).then_some("")),
        };
    }
    let mut rest = word[1..].trim_start_matches(['d', 'i', 't', 'P', 'q']).chars();
    match rest.next() {
        None | Some('=') => (word.to_owned(), Some("")),
        Some(name) => {
            let value = rest.as_str();
            let value = value.strip_prefix('=').unwrap_or(value);
            (format!("-{name}"), (!value.is_empty()).then_some(value))
        }
    }
}

/// Options of `run` that have no value.
const SWITCHES: [&str; 26] = [
    "--detach",
    "--disable-content-trust",
    "--env-host",
    "--help",
    "--http-proxy",
    "--init",
    "--interactive",
    "--no-healthcheck",
    "--no-hostname",
    "--no-hosts",
    "--oom-kill-disable",
    "--passwd",
    "--privileged",
    "--publish-all",
    "--quiet",
    "--read-only",
    "--read-only-tmpfs",
    "--replace",
    "--rm",
    "--rmi",
    "--rootfs",
    "--sig-proxy",
    "--tls-verify",
    "--tty",
    "--unsetenv-all",
    "--use-api-socket",
];

/// A switch that is switched off (Go's `ParseBool`).
fn is_off(value: &str) -> bool {
    ["0", "f", "F", "false", "False", "FALSE"].contains(&value)
}

/// `docker run --ulimit memlock=-1 --cap-add IPC_LOCK -e A=B IMAGE WORDS`.
fn command(path: &str, text: &str) -> Result<Run, Unread> {
    let words = shell::all_words(path, text)?;
    let before = started(&words).map_or(0, |(own, _)| words.len() - own.len());
    let start = Start {
        place: format!("{path}:{}", shell::line(text, before)),
        words,
        ..Start::default()
    };
    of_start(&start).unwrap_or_else(|| Err(without_image(&start.place)))
}

fn without_image(place: &str) -> Unread {
    empty(place, "the `run` command names no image")
}

/// The same as a command of a script.
pub(super) fn of_start(start: &Start) -> Option<Result<Run, Unread>> {
    let (own, behind) = started(&start.words)?;
    let sudo = start.from(|program| matches!(program, "sudo" | "doas"));
    let by_root = sudo.is_some_and(|all| all.len() > own.len());
    Some(of_words(&start.place, program(&own[0]) == "podman", behind, by_root))
}

fn of_words(place: &str, by_podman: bool, behind: &[String], by_root: bool) -> Result<Run, Unread> {
    let mut words = behind.iter().map(String::as_str).peekable();
    let mut run = Run {
        place: place.to_owned(),
        name: "the container".to_owned(),
        by_podman,
        may_be_rootless: by_podman && !by_root,
        ..Run::default()
    };
    let image = run.options(place, &mut words)?.ok_or_else(|| without_image(place))?;
    run.words = words.map(str::to_owned).collect();
    Ok(run.of_image(image))
}

/// Not `-1`, which is a value.
fn is_option(word: &str) -> bool {
    let name = word.strip_prefix('-').and_then(|rest| rest.chars().next());
    name.is_some_and(|first| first == '-' || first.is_ascii_alphabetic())
}
