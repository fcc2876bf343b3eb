//! What a command with its environment starts, in a unit or in a container: a JVM, PostgreSQL, MySQL.

mod heap;
#[cfg(test)]
mod tests;

use host::CpuList;
use model::Bytes;

use super::ini::Server;
use super::java::{Java, holds, of_words};
use super::kind::is_java;
use crate::config::Setting;
pub(super) use crate::jvm::READ_BY_JAVA;
use crate::page_options::value_of;
use crate::{JvmKind, Kind, dpdk, jvm};

/// A command, its words first split, and the variables that it gets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Start {
    /// `FILE:LINE`, or the place of what holds the variables.
    pub(super) place: String,
    pub(super) words: Vec<String>,
    /// The command as it is written, where variables in the words have their values.
    pub(super) text: String,
    pub(super) environment: Vec<Setting>,
    /// Of its container, if it is known to be in one.
    pub(super) image: String,
    /// The limit of its memory, with what sets it.
    pub(super) memory: Option<(Bytes, Setting)>,
}

impl Start {
    /// The words from a program on, if it is started.
    pub(super) fn from(&self, is_program: impl Fn(&str) -> bool) -> Option<&[String]> {
        let at = self.words.iter().position(|word| is_program(program(word)))?;
        Some(&self.words[at..])
    }

    /// The same of a program that runs with the limits of the command: at most launchers with their options are in front of it.
    pub(super) fn own(&self, is_program: impl Fn(&str) -> bool) -> Option<&[String]> {
        let own = self.from(is_program)?;
        let (before, _) = self.words.split_at(self.words.len() - own.len());
        let is_launched = before.first().is_none_or(|first| is_launcher(first));
        (is_launched && before.iter().all(|word| is_launcher(word) || is_option(word))).then_some(own)
    }

    /// A JVM with all options that it gets; `None` where neither the command nor a variable shows one.
    pub(super) fn java(&self) -> Option<Java> {
        let started = self.from(is_java);
        let mut words = vec!["java".to_owned()];
        match started {
            // A dollar that is none of a variable begins no option.
            Some(own) => {
                let own = own[1..].iter().take_while(|word| !word.starts_with("$$"));
                words.extend(own.flat_map(|word| self.expanded(word)));
            }
            // A script hands on whatever variable holds options; a JVM reads its own.
            None => words.extend(self.handed(|name| !READ_BY_JAVA.contains(&name))),
        }
        let [before @ .., after] = READ_BY_JAVA;
        let end = 1 + jvm::options(&words).count();
        drop(words.splice(end..end, self.handed(|name| name == after)));
        let before = before.into_iter().flat_map(|own| self.handed(|name| name == own));
        drop(words.splice(1..1, before));
        if started.is_none() && words.len() == 1 {
            return None;
        }
        let place = self.variables().map(|set| &set.place).next();
        let place = place.filter(|_| started.is_none());
        let mut java = of_words(place.unwrap_or(&self.place), words)?;
        if java.jvm.kind == JvmKind::HotSpot {
            java.jvm.refused.extend(self.of_launcher());
        }
        java.nodes = self.nodes();
        let read = self.environment.iter().filter(|set| self.hands_on(&set.name));
        java.written = read.cloned().collect();
        Some(self.with_heap(java))
    }

    /// Does a JVM read the variable, or get it from the command?
    fn hands_on(&self, name: &str) -> bool {
        let mut texts = self.words.iter().chain([&self.text]);
        let is_named = texts.any(|text| holds(text, &format!("${name}")) || holds(text, &format!("${{{name}")));
        is_named || READ_BY_JAVA.contains(&name) || self.from(is_java).is_none()
    }

    /// The first word in each variable of HotSpot that its launcher alone knows.
    fn of_launcher(&self) -> impl Iterator<Item = String> {
        let is_read = |name: &str| matches!(name, "JAVA_TOOL_OPTIONS" | "_JAVA_OPTIONS");
        let all = self.environment.iter().filter(move |set| is_read(&set.name));
        all.filter_map(|set| {
            let mut words = jvm::words_of(&set.value).into_iter();
            words.find(|word| jvm::is_of_launcher(word))
        })
    }

    /// The variables that hold options.
    fn variables(&self) -> impl Iterator<Item = &Setting> {
        let has_options = |value: &str| ["-XX:", "-Xm", "-Xlp"].iter().any(|option| value.contains(option));
        self.environment.iter().filter(move |set| has_options(&set.value))
    }

    /// The options in the variables of such names, with the variables in them.
    fn handed(&self, is_one: impl Fn(&str) -> bool) -> Vec<String> {
        let all = self.variables().filter(|set| is_one(set.name.as_str()));
        let words = all.flat_map(|set| jvm::words_of(&set.value));
        let mut is_own = jvm::is_own();
        words
            .filter_map(|word| self.resolved(&word))
            .filter(|word| is_own(word.as_str()))
            .collect()
    }

    /// The nodes that its memory has to be on. The innermost numactl that sets a policy overrides the others.
    pub(super) fn nodes(&self) -> Option<CpuList> {
        let places = (0..self.words.len()).rev();
        let mut places = places.filter(|at| program(&self.words[*at]) == "numactl");
        places.find_map(|at| policy(&self.words[at + 1..]))?
    }

    /// A word of the command with the variables in it, where `$$` stands for a dollar. An option with one that is not known says nothing.
    fn expanded(&self, word: &str) -> Vec<String> {
        if word.contains("$$") {
            return vec![word.replace("$$", "$")];
        }
        let name = word
            .strip_prefix("${")
            .and_then(|rest| rest.strip_suffix('}'))
            .or_else(|| word.strip_prefix('$'));
        let value = name.and_then(|name| self.environment.iter().rfind(|set| set.name == name));
        match value {
            Some(set) => jvm::words_of(&set.value),
            None if word.starts_with('-') => self.resolved(word).into_iter().collect(),
            None => vec![word.to_owned()],
        }
    }

    /// A word of a variable, with the variables in it. Those alone say no more, and one that is not known leaves the word unknown.
    fn resolved(&self, word: &str) -> Option<String> {
        let Some((before, rest)) = word.split_once('$') else {
            return Some(word.to_owned());
        };
        let (name, after) = match rest.strip_prefix('{') {
            Some(rest) => rest.split_once('}')?,
            None => rest.split_at(
                rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                    .unwrap_or(rest.len()),
            ),
        };
        let (name, default) = name
            .split_once(":-")
            .map_or((name, None), |(name, value)| (name, Some(value)));
        let set = self.environment.iter().rev().find(|set| set.name == name);
        let value = set.map(|set| set.value.as_str()).or(default)?;
        // Options in a variable are taken where it is set.
        let is_plain = !before.is_empty() && !value.contains(['$', ' ']);
        is_plain.then(|| self.resolved(&format!("{before}{value}{after}")))?
    }

    /// What a program of DPDK asks of each node, or of all together.
    pub(super) fn socket_mem(&self) -> Option<Setting> {
        dpdk::memory(&self.place, &self.words)
    }

    /// The directory whose hugetlbfs it takes that of, where it names one and needs files.
    pub(super) fn huge_dir(&self) -> Option<&str> {
        let by_files = self.words.iter().all(|word| word != "--in-memory");
        value_of(&self.words, "--huge-dir").filter(|_| by_files)
    }

    /// Is it one of DPDK that needs a hugetlbfs?
    pub(super) fn takes_by_files(&self) -> bool {
        let is_it = |name: &str| Kind::of(name, &[]) == Some(Kind::Dpdk);
        let without = |word: &String| matches!(&**word, "--in-memory" | "--no-huge");
        self.from(is_it).is_some_and(|own| !own.iter().any(without))
    }

    /// Memory of all nodes together, which DPDK does not accept beside that of each.
    pub(super) fn asks_twice(&self) -> Option<Setting> {
        dpdk::socket_mem(&self.words)?;
        let (name, mib) = dpdk::whole(&self.words)?;
        Some(Setting::new(&self.place, name, mib))
    }

    /// A server of this kind with what its arguments set, if it is started.
    pub(super) fn server(&self, kind: Kind) -> Option<Server> {
        let words = self.from(|name| Kind::of(name, &[]) == Some(kind))?;
        let set = (kind.server()?.set_by)(words).into_iter();
        let setting = |(name, value): (String, String)| Setting::new(&self.place, name, value);
        Some(Server {
            is_mariadb: words[0].ends_with("mariadbd"),
            nodes: self.nodes(),
            ..Server::new(kind, &self.place, set.map(setting).collect())
        })
    }
}

/// The name of a program, without the marks of systemd in front.
pub(super) fn program(word: &str) -> &str {
    let name = word.rsplit('/').next().unwrap_or_default();
    name.trim_start_matches(MARKS)
}

/// What systemd takes in front of a command (systemd.service(5)).
const MARKS: [char; 6] = ['-', '@', '+', '!', ':', '|'];

/// Those of a command.
pub(super) fn marks(word: &str) -> &str {
    let name = word.trim_start_matches(MARKS);
    &word[..word.len() - name.len()]
}

/// Does it start a program with its own limits? sudo sets others, and a container has its own.
fn is_launcher(word: &str) -> bool {
    let known = [
        "exec", "numactl", "taskset", "env", "nice", "ionice", "chrt", "stdbuf", "nohup",
    ];
    known.contains(&program(word))
}

/// An option of such a launcher, or its value.
fn is_option(word: &str) -> bool {
    let is_number = word.starts_with(|c: char| c.is_ascii_digit());
    is_number || word == "all" || word.contains('=') || (word.starts_with('-') && !word.contains('/'))
}

/// The policy that options of numactl(8) set, if any: the nodes that it binds to, or `None` where it binds to none that are known.
fn policy(words: &[String]) -> Option<Option<CpuList>> {
    let (mut words, mut policy): (_, Option<Option<CpuList>>) = (words.iter().map(String::as_str), None);
    while let Some(word) = words.next().filter(|word| word.starts_with('-')) {
        let (name, attached) = match word.strip_prefix("--") {
            Some(long) => long
                .split_once('=')
                .map_or((long, None), |(name, value)| (name, Some(value))),
            None => {
                let value = word.get(2..).filter(|value| !value.is_empty());
                (word.get(1..2).unwrap_or_default(), value)
            }
        };
        let mut value = || attached.or_else(|| words.next()).unwrap_or_default();
        match name {
            "m" | "membind" => policy = Some(value().trim_start_matches('=').parse().ok()),
            "l" | "localalloc" => policy = Some(None),
            "N" | "cpunodebind" | "c" | "cpubind" | "C" | "physcpubind" => {
                value();
            }
            "i" | "interleave" | "w" | "weighted-interleave" | "p" | "preferred" | "P" | "preferred-many" => {
                value();
                policy = Some(None);
            }
            _ => {}
        }
    }
    policy
}

/// Servers with files of their own, and what starts them: arguments win over the one file that was given.
pub(super) fn with_arguments(files: Vec<Server>, started: impl Iterator<Item = Server>) -> Vec<Server> {
    let (is_one, mut servers) = (files.len() == 1, files);
    for start in started {
        match &mut servers[..] {
            [only] if is_one => {
                only.settings.0.extend(start.settings.0);
                only.is_mariadb |= start.is_mariadb;
                only.nodes = start.nodes.or(only.nodes.take());
            }
            _ => servers.push(start),
        }
    }
    servers
}
