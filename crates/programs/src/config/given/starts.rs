//! What a command with its environment starts, in a unit or in a container: a JVM, PostgreSQL, MySQL.

use host::CpuList;

use super::ini::Server;
use super::java::{Java, of_words};
use super::kind::is_java;
use crate::config::Setting;
use crate::{Kind, dpdk};

/// Variables that the JVM itself or its launcher reads.
pub(super) const READ_BY_JAVA: [&str; 3] = ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"];

/// A command, its words first split, and the variables that it gets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Start {
    /// `FILE:LINE`, or the place of what holds the variables.
    pub(super) place: String,
    pub(super) words: Vec<String>,
    pub(super) environment: Vec<Setting>,
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
        // A script hands on whatever variable holds options; a JVM reads its own.
        let counts = |name: &str| READ_BY_JAVA.contains(&name) || started.is_none();
        let has_options = |value: &str| value.contains("-XX:") || value.contains("-Xm");
        let variables: Vec<&Setting> = self.environment.iter().filter(|set| has_options(&set.value)).collect();
        let mut words = vec!["java".to_owned()];
        let options = variables.iter().filter(|set| counts(&set.name));
        let handed = options.clone().flat_map(|set| set.value.split_whitespace());
        words.extend(handed.filter_map(|word| self.resolved(word)));
        let own = started.map_or(&[][..], |words| &words[1..]);
        words.extend(own.iter().flat_map(|word| self.expanded(word)));
        if started.is_none() && words.len() == 1 {
            return None;
        }
        let place = options.map(|set| &set.place).next().filter(|_| started.is_none());
        let java = of_words(place.unwrap_or(&self.place), words)?;
        let nodes = self.nodes();
        Some(Java { nodes, ..java })
    }

    /// The nodes that its memory has to be on. The innermost numactl that sets a policy overrides the others.
    pub(super) fn nodes(&self) -> Option<CpuList> {
        let places = (0..self.words.len()).rev();
        let mut places = places.filter(|at| program(&self.words[*at]) == "numactl");
        places.find_map(|at| policy(&self.words[at + 1..]))?
    }

    /// `$JAVA_OPTS` and `${JAVA_OPTS}` as systemd splits them.
    fn expanded(&self, word: &str) -> Vec<String> {
        let name = word
            .strip_prefix("${")
            .and_then(|rest| rest.strip_suffix('}'))
            .or_else(|| word.strip_prefix('$'));
        let value = name.and_then(|name| self.environment.iter().rev().find(|set| set.name == name));
        value.map_or_else(
            || vec![word.to_owned()],
            |set| set.value.split_whitespace().map(str::to_owned).collect(),
        )
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

    /// What a program of DPDK asks of each node.
    pub(super) fn socket_mem(&self) -> Option<Setting> {
        let list = dpdk::socket_mem(&self.words)?;
        Some(Setting::new(&self.place, "--socket-mem", list))
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
fn program(word: &str) -> &str {
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
    let known = ["numactl", "taskset", "env", "nice", "ionice", "chrt", "stdbuf", "nohup"];
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

#[cfg(test)]
mod tests {
    use super::{Start, policy};

    #[test]
    fn the_last_policy_of_numactl_holds() {
        let nodes = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            policy(&words).map(|nodes| nodes.map(|nodes| nodes.to_string()))
        };
        let on = |nodes: &str| Some(Some(nodes.to_owned()));
        for line in [
            "-N all -m 0 postgres",
            "-m0 java",
            "--cpunodebind all --membind 0 -- java",
            "-N1 -C 2-3 --membind=0 java -m 1",
        ] {
            assert_eq!(nodes(line), on("0"), "{line}");
        }
        assert_eq!(nodes("--membind=0-1 java"), on("0-1"));
        for line in ["-i all java", "-l java", "-m all java", "--preferred 1 java"] {
            assert_eq!(nodes(line), Some(None), "{line}");
        }
        for line in ["-N 0 java -m 1", "java"] {
            assert_eq!(nodes(line), None, "{line}");
        }
        let started = |line: &str| {
            let words = line.split(' ').map(str::to_owned).collect();
            let start = Start {
                words,
                ..Start::default()
            };
            start.nodes().map(|nodes| nodes.to_string())
        };
        let by_systemd = "numactl --membind=0 -/usr/bin/numactl";
        for (own, nodes) in [("--membind=1", Some("1")), ("-N 1", Some("0")), ("-i all", None)] {
            assert_eq!(
                started(&format!("{by_systemd} {own} postgres")).as_deref(),
                nodes,
                "{own}"
            );
        }
    }
}
