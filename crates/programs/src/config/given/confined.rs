//! What starts with a limit of memory, and how much of it the program in it is configured to take.

mod taken;

use model::Bytes;

use super::compose::is_runtime;
use super::ini::Server;
use super::pod::{Container, Pod};
use super::starts::Start;
use super::{Given, Run, Service};
use crate::Kind;
use crate::config::Setting;
use crate::config::files::file_name;

pub use taken::Taken;
use taken::{binary, of_java};

/// A program with a limit of memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confined {
    /// The container or service.
    pub who: String,
    pub limit: Bytes,
    /// The limit, as it is written.
    pub set: Setting,
    pub taken: Taken,
    /// 1 MiB as the limit is written.
    pub mega: &'static str,
    /// May the kernel swap its memory out, as far as is known?
    pub may_swap: bool,
}

impl Given {
    /// What containers and services with a limit of memory are configured to take.
    pub fn confined(&self) -> Vec<Confined> {
        let mut all = Vec::new();
        for pod in &self.pods {
            all.extend(pod.containers.iter().filter_map(|own| of_container(pod, own)));
        }
        all.extend(self.runs.iter().filter_map(|run| self.of_run(run)));
        for service in &self.services {
            let starts = service.starts(&self.environment).into_iter();
            // The limit of a unit does not hold for a container that its command starts.
            let starts = starts.filter(|start| start.from(is_runtime).is_none());
            all.extend(starts.filter_map(|start| self.of_service(service, &start)));
        }
        all
    }

    fn of_service(&self, service: &Service, start: &Start) -> Option<Confined> {
        let set = service.memory.clone()?;
        let limit = binary(&set.value, 1)?;
        let is_alone = self.services.len() == 1 && self.runs.is_empty();
        let server = self.server_of(start, |path| is_alone || start.names(file_name(path)));
        let taken = Taken::of(&start.split(), "", server.as_ref(), limit);
        let taken = taken.or_else(|| of_java(&self.start_of_file(service, start)?, "", limit))?;
        Some(Confined {
            who: service.name.clone(),
            limit,
            set,
            taken,
            mega: "M",
            may_swap: !service.has_no_swap,
        })
    }

    /// A JVM with the options of the only file of them, where the only service names it or reads such a file.
    fn start_of_file(&self, service: &Service, start: &Start) -> Option<Start> {
        let ([only], [_]) = (&self.java[..], &self.services[..]) else {
            return None;
        };
        let is_of = |name: &str| service.name.contains(name) || start.names(name);
        let reads_it = match WITH_OPTIONS.into_iter().find(|name| only.path.contains(*name)) {
            Some(name) => is_of(name),
            None => WITH_OPTIONS.into_iter().any(is_of),
        };
        (reads_it || start.names(file_name(&only.path))).then(|| Start {
            place: only.path.clone(),
            words: only.arguments.clone(),
            environment: Vec::new(),
        })
    }

    fn of_run(&self, run: &Run) -> Option<Confined> {
        let set = run.memory.clone()?;
        let limit = binary(&set.value, 1)?;
        let start = Start {
            place: run.started.as_ref().unwrap_or(&run.place).clone(),
            ..run.start()
        };
        let server = self.server_of(&start, |path| start.names(file_name(path)) || run.mounts(path));
        let taken = Taken::of(&start.split(), &run.image, server.as_ref(), limit)?;
        Some(Confined {
            who: run.name.clone(),
            limit,
            set,
            taken,
            mega: "M",
            // As large as that of memory alone it leaves no swap.
            may_swap: run.swap.as_deref().and_then(|swap| binary(swap, 1)) != Some(limit),
        })
    }

    /// The server that is started, with the settings of the only file of its kind where that is known to be its own.
    fn server_of(&self, start: &Start, is_own: impl Fn(&str) -> bool) -> Option<Server> {
        let mut kinds = [Kind::Postgres, Kind::Mysql].into_iter();
        let started = kinds.find_map(|kind| start.server(kind))?;
        let kind = started.kind;
        let mut files = self.servers.iter().filter(move |server| server.kind == kind);
        Some(match (files.next(), files.next()) {
            (Some(only), None) if is_own(&only.path) => Server {
                settings: only.settings.with(&started.settings),
                ..started
            },
            _ => started,
        })
    }
}

/// Programs whose scripts hand on a file of JVM options.
const WITH_OPTIONS: [&str; 7] = [
    "cassandra",
    "elasticsearch",
    "kafka",
    "logstash",
    "neo4j",
    "opensearch",
    "solr",
];

fn of_container(pod: &Pod, own: &Container) -> Option<Confined> {
    let memory = own.limits.iter().find(|limit| limit.resource == "memory")?;
    let limit = Some(Bytes(memory.amount)).filter(|limit| limit.0 > 0)?;
    let start = Start {
        place: own.place.clone(),
        words: own.words.clone(),
        environment: own.environment.clone(),
    };
    let server = own.postgres.clone().or_else(|| own.mysql.clone());
    let server = server.or_else(|| start.server(Kind::Mysql));
    let taken = Taken::of(&start.split(), &own.image, server.as_ref(), limit)?;
    let is_counted = !taken.asks || own.hugetlb().is_empty();
    is_counted.then(|| Confined {
        who: format!("{} of the pod {}", own.name, pod.name),
        limit,
        set: Setting::new(&memory.place, memory.field(), &memory.written),
        // Without a request the kubelet allows no page of a pool.
        taken: Taken { asks: false, ..taken },
        mega: "Mi",
        may_swap: false,
    })
}

impl Start {
    /// Is this in one of its words?
    fn names(&self, name: &str) -> bool {
        self.words.iter().any(|word| word.contains(name))
    }

    /// Its words as a shell takes them, and `java` in front of options alone.
    fn split(&self) -> Self {
        let apart = |word: &String| shlex::split(word).unwrap_or_else(|| vec![word.clone()]);
        let mut words: Vec<String> = self.words.iter().flat_map(apart).collect();
        if words.first().is_some_and(|word| word.starts_with("-X")) {
            words.insert(0, "java".to_owned());
        }
        Self { words, ..self.clone() }
    }
}

#[cfg(test)]
mod tests;
